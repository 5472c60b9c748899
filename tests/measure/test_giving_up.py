"""What ends a measurement: failures in a row, or one that every other run meets too."""

from types import SimpleNamespace

import pytest

from kvstudy.errors import KvstudyError
from kvstudy.measure.giving_up import FailuresInARow, check_script, is_of_script

FAILED = "failed: generator failed: exit 1: "


def run(outcome: str) -> SimpleNamespace:
    return SimpleNamespace(facts={"outcome": outcome}, path="data/raw/shop/run-1")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (f"{FAILED}/p/experiments/mine.lua:1: attempt to call field 'fromat' (a nil value)", True),
        (f"{FAILED}...a/long/way/to/experiments/mine.lua:1: attempt to call", True),
        (f"{FAILED}/p/experiments/parts/users.lua:7: attempt to index a nil value", True),
        (f"{FAILED}/p/experiments/mine.lua: request() must return a string, not nil", True),
        (f"{FAILED}/p/experiments/workloads/put.lua: init(): workload: unknown argument: x", True),
        ("failed: host b: generator failed: exit 1: /p/mine.lua:1: '=' expected near 'x'", True),
        (f"{FAILED}/p/experiments/workloads/fill.lua: response(): fill: PUT answered 500", False),
        (f"{FAILED}cannot open 4 connections: http://127.0.0.1:80/mine.lua: refused", False),
        ("failed: generator failed: signal 9: it said nothing", False),
        ("failed: service died during measure: exit=1: mine.lua:1: no", False),
        ("completed", False),
    ],
)
def test_a_mistake_of_a_script_is_told_from_what_a_service_does(outcome, expected):
    assert is_of_script(outcome) == expected


def test_one_mistake_of_a_script_ends_it_and_says_where():
    for end in (check_script, FailuresInARow("run").note):
        end(run("failed: service died during measure: signal 9"))
        with pytest.raises(KvstudyError) as ended:
            end(run(f"{FAILED}/p/mine.lua:1: no"))
        assert str(ended.value) == (
            "a script failed: generator failed: exit 1: /p/mine.lua:1: no\n"
            "  see data/raw/shop/run-1; mend it and run the same command with --resume"
        )


def test_three_failures_in_a_row_end_it_and_others_do_not():
    failures = FailuresInARow("launch")
    for outcome in ("failed: a", "failed: b", "completed", "failed: c", "failed: d"):
        failures.note(run(outcome))
    with pytest.raises(KvstudyError, match="^3 launches in a row failed, the last one: e\n"):
        failures.note(run("failed: e"))
