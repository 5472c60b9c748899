"""What the store held, second by second, on page 07."""

import sys
from pathlib import Path

import pytest

from kvstudy.analyse import store_counters
from kvstudy.present import notebook
from kvstudy.present.figures import store

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.append(str(CHECKOUT / "tests" / "analyse"))

from run_maker import RunMaker

RUN = "20261120T204223Z-put-rep1"
HEAD = (
    "second,at_s,flushes,compactions,level0_runs,tables,table_bytes,memtable_bytes,frozen_memtables,"
    "frozen_memtables_stall_time_ms,level0_slowdown_stall_time_ms"
)
SECONDS = [
    "-1,-0.5,0,0,0,1,1048576,2097152,0,0,0",
    "0,0.5,1,0,1,2,2097152,1048576,1,0,5",
    "1,1.5,3,1,2,4,4194304,1048576,0,0,255",
]


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """``tables(lines)``: of one run with such a store.csv; None: without one."""
    monkeypatch.setenv("KVSTUDY_ROOT", str(tmp_path))
    for borrowed in ("notebooks", "experiments"):
        (tmp_path / borrowed).symlink_to(CHECKOUT / borrowed)

    def of(lines):
        more = {} if lines is None else {"store.csv": "\n".join(lines) + "\n"}
        RunMaker(tmp_path / "data" / "raw")(RUN, experiment="reproduce", more=more)
        return notebook.all_tables()

    return of


def test_tables_sizes_and_stalls_are_drawn_on_one_clock_and_told(tables):
    figure = store.counters(tables([HEAD, *SECONDS]), RUN)
    drawn = {trace.name: list(trace.y) for trace in figure.data}
    assert drawn["tables"] == [1, 2, 4] and drawn["runs of level 0"] == [0, 1, 2]
    assert drawn["tables, MiB"] == [1, 2, 4] and drawn["memtables, MiB"] == [2, 1, 1]
    assert drawn["stall: level0 slowdown"] == [0.005, 0.25]
    assert "stall: frozen memtables" not in drawn, "of a cause that stalled nobody there is no bar"
    finding = figure.layout.meta["finding"].replace("\u202f", " ")
    assert finding == (
        "3 flushes and 1 compaction; 1 to 4 tables, at most 2 runs in level 0; "
        "writers waited 255 ms for level0 slowdown"
    )


def test_a_store_that_stalled_nobody_says_so(tables):
    quiet = [line.rsplit(",", 1)[0] + ",0" for line in SECONDS]
    assert (
        store.counters(tables([HEAD, *quiet]), RUN).layout.meta["finding"].endswith("no writer was stalled")
    )


@pytest.mark.parametrize(
    "lines",
    [None, [HEAD, SECONDS[0]], ["second,at_s,requests_total", "0,0.5,3", "1,1.5,4"], [HEAD, "0,nonsense"]],
    ids=["none recorded", "one reading", "another program's", "not readable"],
)
def test_without_counters_of_our_store_the_chart_says_so(tables, lines):
    assert "no counters of the store" in store.counters(tables(lines), RUN).layout.meta["finding"]


def test_the_committed_runs_have_counters():
    run = sorted((CHECKOUT / "data" / "reference" / "reproduce").glob("*unique-put*"))[0]
    from kvstudy.analyse import run_files

    found = run_files.load(run, check=False)
    counters = store_counters.read_run(found, run.name)
    assert counters is not None and (counters.rows["tables"] >= 0).all()


def test_no_run_has_no_counters(tables):
    assert "no counters of the store" in store.counters(tables(None), None).layout.meta["finding"]
