"""A claim is data: every number of a comparison is in it, and no word but those that a rule may say."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from kvstudy.analyse import claim
from kvstudy.analyse.claim import CLOSED_LOOP, Claim, Place, comparison_claim, median_claim
from kvstudy.analyse.comparison.words import TOO_FEW
from kvstudy.analyse.configuration import compare_values, with_words

ROW = SimpleNamespace(
    workload="get",
    connections=4,
    threads=1,
    offered_rate_rps=2000.0,
    measure="p50",
    before=20.0,
    after=30.0,
    ratio=1.5,
    low=1.4,
    high=1.6,
    word="slower",
    runs_before=5,
    runs_after=6,
    same_within=0.05,
    found=1.12,
    why="",
)


def test_a_comparison_keeps_every_number_of_its_row():
    found = comparison_claim(ROW, "handler=selector", "handler=workers", "handler")
    assert found == Claim(
        Place("get", 4, 2000.0, "handler"),
        "p50",
        "ratio",
        1.5,
        (1.4, 1.6),
        "slower",
        11,
        claim.COMPARISON,
        "handler=selector",
        "handler=workers",
        sides=(5, 6),
        ends=(20.0, 30.0),
        within_percent=5.0,
        findable_percent=pytest.approx(12.0),
    )


@pytest.mark.parametrize("runs", [1, 2, 4])
def test_runs_too_few_for_any_word_have_no_interval_and_could_have_found_nothing(runs):
    sides = [pd.Series([value * (1 + 0.01 * number) for number in range(runs)]) for value in (20.0, 30.0)]
    place = {name: vars(ROW)[name] for name in ("workload", "connections", "threads", "offered_rate_rps")}
    lost = {"invalid_before": 0, "of_before": runs, "invalid_after": 0, "of_after": runs}
    row = {**place, "measure": "p50", "same_within": 0.05, **lost, **compare_values(*sides, 0.05, 1.0)}
    (few,) = with_words(pd.DataFrame([row])).itertuples()
    found = comparison_claim(few, "a", "b")
    assert found.findable_percent is None and found.interval is None and not found.decided
    assert (found.why, found.estimate, found.sides) == (TOO_FEW, few.ratio, (runs, runs))
    with_ends = SimpleNamespace(**{**vars(ROW), "runs_after": runs})
    assert comparison_claim(with_ends, "a", "b").interval is None


def test_a_comparison_in_a_closed_loop_is_of_no_rate():
    assert (
        comparison_claim(
            SimpleNamespace(**{**vars(ROW), "offered_rate_rps": math.nan}), "a", "b"
        ).subject.offered_rate_rps
        == CLOSED_LOOP
    )


def test_only_a_word_that_says_so_makes_two_sides_differ():
    found = comparison_claim(ROW, "a", "b")
    assert found.differs and found.decided
    assert not replace(found, word="the same").differs and replace(found, word="the same").decided


def test_few_runs_have_an_extent_and_enough_of_them_an_interval():
    few, enough = (
        median_claim([3.0, 1.0, 2.0], Place("get"), "p99", "us"),
        median_claim([1.0, 2.0, 3.0, 4.0, 5.0], Place("get"), "p99", "us"),
    )
    assert (few.estimate, few.interval, few.extent, few.runs) == (2.0, None, (1.0, 3.0), 3)
    assert enough.extent is None and enough.interval[0] < 3.0 < enough.interval[1]
    assert median_claim([math.nan], Place(), "p99", "us") is None


def test_a_unit_that_nobody_knows_is_refused():
    with pytest.raises(AssertionError, match="unit=ms"):
        Claim(Place(), "p99", "ms", 1.0)
