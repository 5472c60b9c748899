"""Real runs with a known fault planted in them: `make tail-causes`, `make violations`. Too long and too dependent on a quiet machine for
`make test`; the files are named so that pytest takes them only when asked."""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "measure")]

from project import Project, project  # noqa: E402, F401


@pytest.fixture
def measured(project: Project, request):
    """``measured(experiment keys, code=…)``: the tables of one experiment, run by a kvstudy process that executes ``code`` first."""
    from kvstudy.analyse import tables

    def run(code: str | None = None, **experiment):
        status, out, err = project.finished(project.kvstudy("run", project.experiment(**experiment), code=code), timeout_s=400)
        assert status in (0, 1), err
        data = project.root / "data"
        tables.rebuild([data / "raw"], data / "tidy", progress=False)
        return tables.load(data / "tidy")

    return run
