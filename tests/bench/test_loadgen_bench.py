"""The table of `make bench-loadgen`: each goal a row, whatever is missing."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "loadgen" / "bench" / "bench.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("loadgen_bench", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["loadgen_bench"] = module
    spec.loader.exec_module(module)
    return module


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
