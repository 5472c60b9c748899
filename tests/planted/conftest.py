"""Real runs with a known fault planted in them: `make tail-causes`, `make violations`. Too long and too
dependent on a quiet machine for `make test`; the files are named so that pytest takes them only when
asked."""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "measure")]

from project import Project, project

RETRIES = 4
PATIENCE = "5m"


@pytest.fixture
def measured(project: Project, request):
    """``measured(experiment keys, code=…)``: the tables of one experiment, run by a kvstudy process that
    executes ``code`` first.

    With ``undisturbed`` a run that the machine's host or other programs disturbed is measured again, up to
    RETRIES times, and stays out of the tables: what was planted would not be the cause of the slow answers in
    it. A run that stayed disturbed is an error that says so.
    """
    from kvstudy.analyse import tables
    from kvstudy.record.reference import publish

    def run(code: str | None = None, undisturbed: bool = False, **experiment):
        again = ("--retries", RETRIES, "--patience", PATIENCE) if undisturbed else ()
        status, out, err = project.finished(
            project.kvstudy("run", project.experiment(**experiment), *again, code=code), timeout_s=1800
        )
        assert status in (0, 1), err
        data = project.root / "data"
        runs = data / "raw"
        if undisturbed:
            runs = data / "reference"
            copied = publish(data / "raw", runs)[0].copied
            assert copied == experiment.get("repeats", 1), (
                f"the machine was disturbed in every attempt at a run: undisturbed={copied}\n{out}"
            )
        tables.rebuild([runs], data / "tidy", progress=False)
        return tables.load(data / "tidy")

    return run
