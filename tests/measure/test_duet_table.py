"""What is said of a duet while it goes on: when it is over, and why."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "analyse"))
from duet_maker import DuetMaker, slices

from kvstudy.analyse.comparison.location import typical_launch
from kvstudy.analyse.comparison.looks import LAST_LOOK
from kvstudy.analyse.comparison.words import CANNOT_TELL, SAME, SLOWER
from kvstudy.analyse.duets import duet_of
from kvstudy.measure.duet_table import none_counts, nothing_to_come, progress_lines, table_lines, undecided
from kvstudy.record.run_folder import sealed_runs


@pytest.fixture
def found(tmp_path):
    """A duet of seven launches, made once for each test; ``found(**facts)``."""

    def of(launches: int = 7, **changes):
        make = DuetMaker(tmp_path)
        for launch in range(1, launches + 1):
            make(launch, ratio=1.1, **changes)
        return duet_of(sealed_runs(tmp_path), "c0ffee")

    return of


def test_a_primary_measure_without_a_value_is_undecided_and_said(found):
    duet = found(launches=5, primary={"workload": "get", "loop": "rate", "measure": "p99"})
    assert undecided(duet) == 1 + len(duet.results) and nothing_to_come(duet) == ""
    line = "get at the rate p99 (primary): undecided: no launch gives a value of it"
    for lines in (
        progress_lines(duet, 30.0),
        table_lines(duet, "over"),
        table_lines(duet, "over", markdown=True),
    ):
        assert line in [one.strip() for one in lines]


def test_odd_launches_are_told_and_groups_are_an_answer(found):
    duet = found()
    (first, *rest) = duet.results
    lines = "\n".join(table_lines(replace(duet, results=[replace(first, odd=2), *rest]), "over"))
    assert f"odd launches, which weigh less than half: put at the rate p50: 2 of {first.launches}" in lines
    grouped = replace(first, odd=3, is_typical=False, word=CANNOT_TELL)
    lines = "\n".join(table_lines(replace(duet, results=[grouped, *rest]), "over"))
    assert "cannot tell: launches fall into groups" in lines and "odd launches" not in lines
    assert progress_lines(replace(duet, results=[grouped, *rest]), 30.0)


def test_groups_that_agree_are_told_beside_their_word(found):
    duet = found()
    logs = np.array([[0.53, 0.12, 0.50, 0.13, 0.14, 0.41, 0.13, 0.10]])
    (first, *rest) = duet.results
    agreed = replace(first, is_typical=False, word=SLOWER, last=typical_launch(logs))
    lines = "\n".join(table_lines(replace(duet, results=[agreed, *rest]), "over"))
    assert (
        "no launch is typical, but all agree; ratios of launches: put at the rate p50: 1.105 to 1.699"
        in lines
    )


def test_code_that_is_still_being_compiled_is_told_with_its_remedy(found):
    duet = found(launches=2, parts={("put", "rate"): slices(compiler_ns=5e6)})
    told = (
        "code was still being compiled in 2 of 2 launches, which took b 25 % of the CPU in the last of them: "
        "a longer `warm_up` compares compiled code"
    )
    assert told in [one.strip() for one in progress_lines(duet, 30.0)]
    assert told in table_lines(duet, "over", markdown=True)


def test_launches_that_count_without_any_value_are_not_said_not_to_count(found):
    duet = found(launches=2, parts={("put", "rate"): slices(3)})
    assert duet.counted == 2 and not duet.results
    assert table_lines(duet, "the time is over") == [
        "2 launches count, but none gives a value: the time is over"
    ]


def test_what_kept_every_launch_from_a_value_is_said(found):
    duet = found(launches=2, parts={("put", "closed"): slices(8, loop="closed")}, saturated=("closed",))
    told = "2 launches count, but none gives a value (put closed: everything without value, starved)"
    assert progress_lines(duet, 30.0) == [told]
    assert table_lines(duet, "the time is over") == [f"{told}: the time is over"]


def test_rounds_that_the_machine_disturbed_are_called_rounds(found):
    duet = found(launches=1, parts={("put", "rate"): slices(6, foreign_ns=1e12)})
    assert progress_lines(duet, 30.0) == [
        "1 launch counts, but none gives a value (rounds kept: 0 %, machine disturbed 5)"
    ]


def test_where_a_side_was_busy_the_reason_and_what_helps_are_said_of_a_primary_measure_without_a_value(found):
    busy = slices(8, workload="get", idle_cpu_ns=1e12)
    duet = found(
        launches=2,
        parts={("put", "rate"): slices(8), ("get", "rate"): busy},
        primary={"workload": "get", "loop": "rate", "measure": "p50"},
    )
    told = [line for line in progress_lines(duet, 30.0) if "get at the rate p50 (primary): undecided" in line]
    assert (
        len(told) == 1 and "(rounds kept: 0 %, other side busy 7; where compilers keep a side busy" in told[0]
    )


def test_after_six_launches_without_a_value_of_the_primary_measure_nobody_waits_for_one(found):
    primary = {"workload": "get", "loop": "rate", "measure": "p99"}
    duet = found(launches=6, primary=primary)
    why = "none of the first 6 launches gives a value of the primary measure"
    assert nothing_to_come(duet, "primary") == why
    open_ = replace(duet, results=[replace(one, word=CANNOT_TELL) for one in duet.results])
    assert nothing_to_come(open_) == "", "the others may be decided yet"
    assert nothing_to_come(open_, "primary") == why
    decided = replace(duet, results=[replace(one, word=SAME) for one in duet.results])
    assert nothing_to_come(decided) == why


def test_after_six_launches_without_any_value_nobody_waits_for_one(found):
    duet = found(launches=6, parts={("put", "rate"): slices(3)})
    assert nothing_to_come(duet).startswith("none of the first 6 launches gives a value")


def test_held_back_words_are_no_decision_and_beyond_the_last_look_nothing_is_planned(found):
    duet = found()
    assert nothing_to_come(duet) == "every measure is decided"
    held = replace(duet.results[0], word=CANNOT_TELL, held_back="slower")
    assert nothing_to_come(replace(duet, results=[held, *duet.results[1:]])).startswith(
        "no further launch helps: the word of 1 measure is held back"
    )
    open_ = [replace(one, word=CANNOT_TELL, launches=LAST_LOOK) for one in duet.results]
    assert nothing_to_come(replace(duet, results=open_)).startswith(
        f"no further look is planned after {LAST_LOOK} launches"
    )
    open_[1] = replace(open_[1], launches=LAST_LOOK - 1)
    assert nothing_to_come(replace(duet, results=open_)) == ""


def test_who_waits_for_the_primary_measure_alone_goes_on_until_it_is_decided_and_no_longer(found):
    duet = found()
    first, *others = duet.results
    open_ = [replace(one, word=CANNOT_TELL) for one in others]
    decided = replace(duet, results=[first, *open_])
    assert nothing_to_come(decided) == ""
    assert nothing_to_come(decided, "primary").startswith("the primary measure is decided; 7 others")
    undecided_ = replace(duet, results=[replace(first, word=CANNOT_TELL), *others])
    assert nothing_to_come(undecided_, "primary") == ""
    held = replace(first, word=CANNOT_TELL, held_back=SLOWER)
    told = "no further launch helps: the word of the primary measure is held back"
    assert nothing_to_come(replace(duet, results=[held, *open_]), "primary").startswith(told)
    outvoted = replace(duet, results=[replace(held, may_be_outvoted=3), *open_])
    assert nothing_to_come(outvoted, "primary") == ""


def test_a_limit_of_half_percents_is_told_as_it_was_asked(found):
    duet = found()
    same = replace(duet.results[0], word=SAME, same_within=0.025)
    assert "the same within 2.5 %" in "\n".join(table_lines(replace(duet, results=[same]), "over"))


@pytest.mark.parametrize(
    ("ratio", "told"),
    [
        (1.0042, "a difference of 0.42 % would likely be found"),
        (1.0149, "a difference of 1.5 % would likely be found"),
        (1e40, "even a large difference may be missed"),
    ],
)
def test_what_could_have_been_found_is_told_with_digits_that_say_something(found, ratio, told):
    duet = found()
    open_ = replace(duet.results[0], word=CANNOT_TELL, found=ratio)
    assert f"cannot tell ({told})" in "\n".join(table_lines(replace(duet, results=[open_]), "over"))


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ((1.0004, 1.0036), "[1.0004, 1.0036]"),
        ((0.95, 0.99996), "[0.95000, 0.99996]"),
        ((0.9512, 1.0), "[0.951, 1.000]"),
    ],
)
def test_an_end_of_an_interval_that_is_not_1_is_not_written_as_1(found, ends, told):
    duet = found()
    near = replace(duet.results[0], low=ends[0], high=ends[1])
    assert told in "\n".join(table_lines(replace(duet, results=[near]), "over"))


def test_one_launch_and_one_measure_are_told_as_one(found):
    duet = found(launches=1)
    assert table_lines(duet, "over")[-1].startswith("1 launch; ratio")
    (first, *others) = replace(duet, results=[replace(one, word=SAME) for one in duet.results]).results
    open_ = [first, replace(others[0], word=CANNOT_TELL), *others[1:]]
    assert nothing_to_come(replace(duet, results=open_), "primary").endswith("; 1 other is not")


def test_one_launch_without_any_value_counts(found):
    duet = found(launches=1, parts={("put", "rate"): slices(3)})
    assert table_lines(duet, "over") == ["1 launch counts, but none gives a value: over"]


QUIET_ELSE = {"load_during": {"steal_share_mean": 0.5}}
LOST = {"a": DuetMaker.end(), "b": DuetMaker.end(data_check={"sampled": 9, "missing": 0, "wrong": 1})}
LOGS = {"a": DuetMaker.end(), "b": DuetMaker.end(log_errors=["ERROR: no disk"])}


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"machine": QUIET_ELSE}, "others used the machine", "when it is quiet: the same command with "),
        ({"ends": LOGS}, "2 failed by change; the last one: log_clean_b: ERROR: no disk", "see /"),
        (
            {"machine": QUIET_ELSE, "ends": LOST},
            "2 disturbed or failed from outside, where data_kept of change failed too; the last one: "
            "data_kept_b: 9 sampled, 0 missing, 1 wrong; "
            "machine_quiet: the machine's host took 50 % of the CPU time, over 5 %",
            "see /",
        ),
        (
            {"machine": {"memory_bytes": 300 << 20}},
            "2 disturbed or failed from outside; the last one: memory: 133 %",
            "see /",
        ),
    ],
)
def test_where_no_launch_counts_it_is_said_whose_doing_that_was(tmp_path, found, changes, message, hint):
    told = none_counts(found(2, **changes), sealed_runs(tmp_path)[-1])
    assert told[0] == f"no launch counts, of 2: {message}" and told[1].startswith(hint)
