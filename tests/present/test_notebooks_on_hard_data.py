"""Every analysing notebook runs through, whatever the runs are like: a study with nothing valid in it is
still a study."""

import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.append(str(CHECKOUT / "tests" / "analyse"))

from duet_maker import DuetMaker
from run_maker import RunMaker

NOTEBOOKS = [path for path in sorted((CHECKOUT / "notebooks").glob("*.ipynb")) if path.stem != "02-sweep"]

STACKS = {
    "cpu": "java/lang/Thread.run;kv/lsm/LsmStore.get 10\n",
    "alloc": "kv/http/KvServer.handle;byte[] 4096\n",
}
USUAL = {
    "experiment": "reproduce",
    "workload": "unique_get",
    "method": "GET",
    "connections": 4,
    "threads": 4,
    "offered_rate_rps": 2000,
}


def few(count):
    return [np.full(count, 300)] * 4


SITUATIONS = {
    "a duet alone": [],
    "one valid run and an instrument": [
        {},
        {"experiment": "instrument"},
        {"experiment": "stall"},
        {"experiment": "noise", "label": "a1"},
        {"experiment": "noise", "label": "a2"},
    ],
    "only an invalid run": [{"offered_rate_rps": 9000}],
    "only a profiled run": [{"profile": ["cpu", "alloc"], "stacks": STACKS}],
    "hardly a sample": [{"seconds": few(5), "offered_rate_rps": 5}],
    "no file but text": [
        {"without": ("latency.hlog", "events.json", "process.csv"), "connections": 1, "threads": 1}
    ],
    "two labels and a failed run": [
        {"label": "before"},
        {"label": "after"},
        {"outcome": "failed: the service died", "without": ("latency.hlog", "generator.json", "events.json")},
    ],
    "two variants profiled": [
        {"variant": {"handler": handler}, **extra}
        for handler in ("selector", "workers")
        for extra in ({}, {"profile": ["cpu"], "stacks": STACKS})
    ],
    "closed loops at three sizes": [
        {"closed_loop": True, "offered_rate_rps": None, "connections": c, "threads": c} for c in (1, 2, 4)
    ],
    "closed loops at four sizes and a search": [
        *(
            {"closed_loop": True, "offered_rate_rps": None, "connections": c, "threads": c}
            for c in (1, 2, 4, 8)
        ),
        *(
            {
                "experiment": "report-1",
                "offered_rate_rps": rate,
                "search": {"purpose": purpose, "precision": 0.3, "objective": {"mean": 0.001}},
            }
            for rate, purpose in ((9000, "search"), (2000, "search"), (2000, "confirm"))
        ),
    ],
}


def borrow_into(root: Path) -> None:
    """What a project has, but runs."""
    (root / "data").mkdir()
    for borrowed in ("notebooks", "experiments", "data/published"):
        (root / borrowed).symlink_to(CHECKOUT / borrowed)


@pytest.fixture(scope="module", params=SITUATIONS, ids=lambda name: name.replace(" ", "-"))
def project(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    borrow_into(root)
    make = RunMaker(root / "data" / "raw")
    for launch in range(1, 7) if request.param == "a duet alone" else ():
        DuetMaker(root / "data" / "raw")(launch, ratio=1.1)
    for number, changes in enumerate(SITUATIONS[request.param]):
        make(f"20261120T2042{number:02d}Z-rep1", **(USUAL | changes))
    return root


@pytest.fixture
def shell():
    """IPython as a kernel has it, without its files."""
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    shell.extension_manager.loaded.clear()
    yield shell
    shell.user_ns.clear()
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_through(project, path, monkeypatch, shell):
    monkeypatch.setenv("KVSTUDY_ROOT", str(project))
    monkeypatch.setenv("KVSTUDY_EXPORT", "1")
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            shell.run_cell(cell.source, store_history=True).raise_error()
