"""Notebooks as readers change them: a wrong value in the first cell is told in a line, and what *Your turn*
proposes can be done."""

import re
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from test_notebooks_on_hard_data import CHECKOUT, NOTEBOOKS, STACKS, USUAL, borrow_into, shell

sys.path.append(str(CHECKOUT / "tests" / "analyse"))

from duet_maker import DuetMaker
from run_maker import RunMaker

from kvstudy.analyse import tables
from kvstudy.errors import KvstudyError
from kvstudy.present import notebook
from kvstudy.present.extension import parameters
from kvstudy.present.page import EXPLORE_TAG

__all__ = ["shell"]
WRONG = (12, "misspelt", ["wal"])
PROPOSED = {  # what the cell after *Your turn* has, and what its text proposes in the place of that
    "00-study": [('method="PUT"', 'method="GET"'), ("percentile=99.9", "percentile=50")],
    "01-instrument": [('"WARN"', '"FAIL"'), ('"WARN"', '"WARN", experiment="peers"')],
    "03-percentiles": [("[:1]", "[1:2]"), ("histogram(name)", "histogram(name, stop_s=3)"), ("50, ", "90, ")],
    "04-capacity": [
        ("service_cpu_us_per_answer", "service_rss_max_bytes"),
        ("counted,", "counted[counted['workload'] == 'unique_get'],"),
    ],
    "05-flame-graphs": [("kv/lsm", "kv/http"), ('event="alloc"', 'event="cpu_slow"')],
    "06-before-after": [("percentile=50", "percentile=99.9")],
    "07-tail": [("nlargest(1", "nlargest(2"), ("second - 0.5 < start_s", "second - 2 < start_s")],
    "08-published-reports": [
        *(("report == 1", f"report == {number}") for number in (2, 3, 5)),
        ("report == 1", "report == 2 and method == 'GET'"),
    ],
    "09-explore": [
        (
            'now.slowest.groupby("connection")["response_us"].agg(["count", "median", "max"])',
            'px.scatter(now.runs, x="offered_rate_rps", y="service_cpu_share")',
        ),
        (
            'now.slowest.groupby("connection")["response_us"].agg(["count", "median", "max"])',
            'px.ecdf(now.slowest, x="response_us")',
        ),
    ],
    "10-peers": [
        ("asked.", "asked.query(\"workload == 'random_get'\")."),
        ("service_cpu_us_per_answer", "response_mean_us"),
    ],
    "11-growth": [("service_cpu_share", "generator_cpu_share")],
}

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code(path: Path) -> list:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A valid run, one that did not hold its rate, a profiled one and a duet."""
    root = tmp_path_factory.mktemp("project")
    borrow_into(root)
    make = RunMaker(root / "data" / "raw")
    profiled = {"profile": ["cpu", "alloc"], "stacks": STACKS}
    for number, changes in enumerate(({}, {"offered_rate_rps": 9000}, profiled)):
        make(f"20261120T2042{number:02d}Z-rep1", **(USUAL | changes))
    for launch in range(1, 7):
        DuetMaker(root / "data" / "raw")(launch, ratio=1.1)
    return root


@pytest.fixture
def reference_alone(monkeypatch):
    """Pages see the committed runs, whatever lies in data/raw here."""
    study_tables = tables.study_tables

    def of_reference(**asked):
        return study_tables(**asked | {"places": tables.REFERENCE_ALONE})

    for module in (tables, notebook):
        monkeypatch.setattr(module, "study_tables", of_reference)
    monkeypatch.setenv("KVSTUDY_ROOT", str(CHECKOUT))


@each
def test_a_wrong_value_of_any_parameter_is_told_in_a_line(project, path, monkeypatch, shell):
    monkeypatch.setenv("KVSTUDY_ROOT", str(project))
    monkeypatch.setenv("KVSTUDY_EXPORT", "1")
    first, *rest = [cell.source for cell in code(path)]
    for name in parameters([first]):
        for wrong in WRONG:
            for source in (first, f"# Parameters\n{name} = {wrong!r}", *rest):
                error = shell.run_cell(source, store_history=True).error_in_exec
                if error is not None:
                    assert isinstance(error, KvstudyError), (name, wrong, source)
                    assert error.hint and "\n" not in error.message
                    break


@pytest.mark.parametrize(("rate_rps", "counted"), [(None, "**2 runs**"), (9000, "**1 run**")])
def test_the_page_of_the_tail_counts_the_runs_that_are_invalid(
    project, rate_rps, counted, monkeypatch, shell
):
    monkeypatch.setenv("KVSTUDY_ROOT", str(project))
    monkeypatch.setenv("KVSTUDY_EXPORT", "1")
    (path,) = (path for path in NOTEBOOKS if path.stem == "07-tail")
    first, loads, *rest = [cell.source for cell in code(path)]
    shell.run_cell(f"{first}\noffered_rate_rps = {rate_rps}", store_history=True).raise_error()
    told = shell.run_cell(loads, store_history=True).result.data
    assert told.startswith(counted) and "1 of them invalid" in told
    (doubts,) = (source for source in rest if "summary.checks(" in source)
    checks = shell.run_cell(doubts.replace("notebook.show", ""), store_history=True).result
    assert checks["FAIL"].sum() > 0


@pytest.mark.usefixtures("reference_alone")
def test_the_page_of_the_tail_offers_the_profiled_runs_of_the_workload_that_is_asked_for(monkeypatch, shell):
    monkeypatch.setenv("KVSTUDY_EXPORT", "1")
    (path,) = (path for path in NOTEBOOKS if path.stem == "07-tail")
    first, loads, *rest = [cell.source for cell in code(path)]
    (shows,) = (source for source in rest if "moment.shown(" in source)
    for source in (f'{first}\nworkload = "unique_put"', loads):
        shell.run_cell(source, store_history=True).raise_error()
    html = shell.run_cell(shows, store_history=True).result.data
    offered = re.findall(r'<option value="\d+">(\w+)', html)
    assert set(offered) == {"unique_put"} and len(offered) == 2, "a profiled one and the worst"


@each
@pytest.mark.usefixtures("reference_alone")
def test_what_a_reader_is_asked_to_try_can_be_done_and_shows_something(path, monkeypatch, shell):
    monkeypatch.setenv("KVSTUDY_EXPORT", "1")
    cells = nbformat.read(path, as_version=4).cells
    turn = max(place for place, cell in enumerate(cells) if "Your turn" in cell.source)
    text, last = cells[turn].source, next(cell for cell in cells[turn:] if cell.cell_type == "code")
    before = [
        cell.source
        for cell in cells[:turn]
        if cell.cell_type == "code"
        and ({"parameters", EXPLORE_TAG} & set(cell.metadata.get("tags", [])) or "%load_ext" in cell.source)
    ]
    for source in before:
        shell.run_cell(source, store_history=True).raise_error()
    for old, new in [("", ""), *PROPOSED[path.stem]]:
        assert old in last.source, (text, old)
        changed = shell.run_cell(last.source.replace(old, new, 1) if old else last.source)
        changed.raise_error()
        assert is_something(changed.result), (text, new)


def is_something(shown: object) -> bool:
    if isinstance(shown, (pd.DataFrame, pd.Series, dict)):
        return len(shown) > 0
    return shown is None or any(len(trace.x) for trace in shown.data)
