"""The table of `make bench-loadgen`: each goal a row, whatever is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import bench_programs
import pytest

FILE = Path(__file__).parents[2] / "loadgen" / "bench" / "bench.py"


@pytest.fixture(scope="module")
def bench():
    return bench_programs.program("loadgen/bench/bench.py")


def rows(bench, measured: dict[tuple[str, str], list[float]]) -> dict[str, list[str]]:
    """By goal: what is asked, what was measured, the verdict."""
    told = [bench.table_row(goal, lambda *key: measured.get(key, [])) for goal in bench.goals()]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in told]
    assert len({what for what, *_ in cells}) == len(cells) > 30
    return {what: rest for what, *rest in cells}


def test_without_any_run_every_goal_is_a_row_that_says_so(bench):
    assert {verdict for *_, verdict in rows(bench, {}).values()} == {"not measured"}


def test_a_goal_is_reached_or_not_by_its_median(bench):
    found = rows(
        bench,
        {
            ("1000 connections", "rss_mib"): [15, 90, 16],
            ("400000/s", "rate_rps"): [100_000, 120_000, 900_000],
            ("2000/s asleep", "spun_share"): [0.0],
        },
    )
    assert found["1000 connections: memory"] == ["≤ 50 MiB", "16 (15 – 90) MiB", "reached"]
    assert found["static request, one core"][2] == "**not reached: 0.80 × the goal**"
    assert found["2000/s asleep: waited busily"] == [
        "≤ 0 % of the time",
        "0 (0 – 0) % of the time",
        "reached",
    ]


def test_what_another_program_sets_the_limit_of_is_not_measured_without_it_and_the_rest_is(bench):
    ours = {("closed loop", "rate_rps"): [230.0], ("pipelined 16", "rate_rps"): [3e6]}
    found = rows(bench, ours)
    assert found["closed loop"] == [
        "≥ 1.15 × wrk's /s",
        "no undisturbed run of closed loop: wrk",
        "not measured",
    ]
    assert found["pipelined 16, one core"][2] == "reached"
    beside = rows(bench, ours | {("closed loop: wrk", "rate_rps"): [200.0, 199.0, 201.0]})
    assert beside["closed loop"] == ["≥ 1.15 × wrk's 200 /s", "230 (230 – 230) /s", "reached"]


def test_a_rate_that_the_generator_missed_itself_is_no_measurement_of_its_punctuality(bench):
    case = "150000/s"
    figures = {(case, "missed_share"): [0.5, 0.0005], (case, "saturated"): [True, False]}
    what = f"{case}: rate missed, generator not saturated"
    assert rows(bench, figures)[what] == ["≤ 0.1 %", "0.05 (0.05 – 0.05) %", "reached"]
    figures[case, "saturated"] = [True, True]
    assert rows(bench, figures)[what][1:] == ["the generator was the limit in every run", "not measured"]


# What each case runs: the function, what it is given but the URL, and what by name.
RUNS = {
    "2000/s spin": ("loadgen", 3, "-c64", "-R2000", "--spin", "auto"),
    "2000/s spin: waiting loop": ("waiting_loop", 2000, 3, 70.0),
    "2000/s asleep": ("loadgen", 3, "-c64", "-R2000", "--spin", "off"),
    "2000/s asleep: waiting loop": ("waiting_loop", 2000, 3, 70.0),
    "2000/s spin, nice -20": ("loadgen", 3, "-c64", "-R2000", ("before", ("nice", "-n", "-20"))),
    "2000/s unpinned": ("loadgen", 3, "-c64", "-R2000", ("pinned", False)),
    "20000/s spin": ("loadgen", 3, "-c64", "-R20000", "--spin", "auto"),
    "20000/s spin: waiting loop": ("waiting_loop", 20000, 3, 70.0),
    "20000/s asleep": ("loadgen", 3, "-c64", "-R20000", "--spin", "off"),
    "20000/s asleep: waiting loop": ("waiting_loop", 20000, 3, 70.0),
    "20000/s spin, nice -20": ("loadgen", 3, "-c64", "-R20000", ("before", ("nice", "-n", "-20"))),
    "20000/s unpinned": ("loadgen", 3, "-c64", "-R20000", ("pinned", False)),
    "50000/s": ("loadgen", 3, "-c64", "--spin", "off", "-R50000"),
    "50000/s: waiting loop": ("waiting_loop", 50000, 3, 0),
    "50000/s slack 50us": ("loadgen", 3, "-c64", "-R50000", "--slack", "50us"),
    "50000/s slack 100us": ("loadgen", 3, "-c64", "-R50000", "--slack", "100us"),
    "150000/s": ("loadgen", 3, "-c64", "--spin", "off", "-R150000"),
    "Lua 120000/s": ("loadgen", 3, "-c64", "--spin", "off", "-R120000", "-s", "put.lua"),
    "400000/s": ("loadgen", 3, "-c64", "--spin", "off", "-R400000"),
    "Lua 400000/s": ("loadgen", 3, "-c64", "--spin", "off", "-R400000", "-s", "put.lua"),
    "closed loop": ("loadgen", 3, "-c64", "--closed"),
    "closed loop: wrk": ("wrk", 3),
    "pipelined 16": ("loadgen", 3, "-c64", "--closed", "-s", "pipeline.lua"),
    "pipelined 16: wrk": ("pipelined_by_wrk", 3),
    "alternate": ("alternate", "-c64", "-R20000", "--spin", "1ms"),
    "alternate: two slices": ("alternate", "-c64", "-R20000", "--spin", "1ms", ("slice_ms", 4380)),
    "alternate: one server": ("loadgen", 9, "-c64", "-R20000", "--spin", "1ms"),
    "two parts": ("parts", 3),
    "2000/s c16": ("loadgen", 3, "-c16", "-R2000"),
    "2000/s c16: wrk2": ("wrk2", 3, 2000),
    "20000/s c16": ("loadgen", 3, "-c16", "-R20000"),
    "20000/s c16: wrk2": ("wrk2", 3, 20000),
    "1000 connections": ("loadgen", 3, "-c1000", "-R10000"),
}


def test_each_case_runs_with_its_own_options_whatever_comes_behind_it(bench, monkeypatch):
    calls = []

    def recorder(program):
        def record(*arguments, **named):
            told = [a.name if isinstance(a, Path) else a for a in arguments if a != "URL"]
            calls.append((program, *told, *named.items()))
            return {"spin_us": 70.0}

        return record

    for program in {program for program, *_ in RUNS.values()}:
        monkeypatch.setattr(bench, program, recorder(program))
    monkeypatch.setenv("WRK2", "wrk2")
    # All of them before the first is run: an earlier case must not run with what a loop has gone on to.
    cases = list(bench.cases(3))
    assert [name for name, *_ in cases] == list(RUNS)
    for _, _, measure in cases:
        measure("URL")
    assert dict(zip(RUNS, calls, strict=True)) == RUNS
    assert [name for name, pinned, _ in cases if not pinned] == ["2000/s unpinned", "20000/s unpinned"]


def test_the_limits_that_another_case_sets_are_told_as_finely_as_they_are_tight(bench):
    """One server alone is told in whole microseconds: 5 % of 17 us are less than that."""
    found = rows(
        bench,
        {
            ("alternate", "response_p50_us"): [17.9],
            ("alternate: one server", "response_p50_us"): [17.0],
            ("alternate: two slices", "response_p50_us"): [17.5],
        },
    )
    limit = "≤ 1.05 × two long slices' 17.5 µs"
    assert found["alternate: p50"] == [limit, "17.9 (17.9 – 17.9) µs", "reached"]


@pytest.mark.machine
def test_a_missing_program_is_one_line_with_its_cure_and_the_table_is_printed(bench, tmp_path):
    results = tmp_path / "bench.jsonl"
    row = {"programs": bench.programs(), "round": "1", "case": "1000 connections", "attempt": 1}
    row |= {"foreign_share": 0.0, "figures": {"rss_mib": 15.0}}
    results.write_text(json.dumps(row) + "\n")
    done = subprocess.run(
        [sys.executable, FILE, "--rounds", "1", "--only", "no such case", "--results", results],
        env=os.environ | {"PATH": str(tmp_path), "WRK2": "/nowhere/wrk2"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            "wrk is missing, and what is measured beside it is left out: apt-get install wrk",
            "wrk2 is missing, and what is measured beside it is left out: "
            "WRK2 must be the path of a program: /nowhere/wrk2",
        ],
    )
    assert "| 1000 connections: memory | ≤ 50 MiB | 15 (15 – 15) MiB | reached |" in done.stdout
    assert (
        "| closed loop | ≥ 1.15 × wrk's /s | no undisturbed run of closed loop, closed loop: wrk |"
        in done.stdout
    )
