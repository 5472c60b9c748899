"""The words: when each is said, and what forbids it. How often they are wrong: tests/soundness."""

import math
import time

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from kvstudy.analyse.comparison import families, outcomes, power
from kvstudy.analyse.comparison.pairs import difference_p, pair
from kvstudy.analyse.comparison.words import CANNOT_TELL, FASTER, SAME, SLOWER, word
from kvstudy.analyse.configuration import compare_values, with_words

BEFORE = [100.0, 102.0, 99.0, 101.0, 103.0]


def said(before, after, better="lower", outcome=(0, 5, 0, 5), same_within=0.05):
    return families.words([pair(before, after, same_within)], [better], [outcome])[0]


def times(factor):
    return [factor * value for value in BEFORE]


def test_a_clear_fall_of_latency_is_faster_of_a_rate_slower_and_of_a_cost_cheaper():
    assert said(BEFORE, times(0.8)) == FASTER
    assert said(BEFORE, times(0.8), "higher") == SLOWER
    assert said(times(0.8), BEFORE) == SLOWER
    assert (said(BEFORE, times(0.8), "less"), said(BEFORE, times(1.3), "less")) == ("cheaper", "dearer")
    with pytest.raises(ValueError, match="better must be one of"):
        said(BEFORE, BEFORE, "nicer")


def test_what_differs_by_less_than_was_asked_for_is_the_same():
    assert said(BEFORE, [value * 1.005 for value in reversed(BEFORE)]) == SAME
    assert said(BEFORE, [value * 1.005 for value in reversed(BEFORE)], same_within=0.01) == CANNOT_TELL


def test_what_neither_test_decides_cannot_be_told():
    wide = [70.0, 130.0, 95.0, 105.0, 100.0]
    assert said(wide, [1.03 * value for value in wide]) == CANNOT_TELL


def test_fewer_than_five_runs_a_side_never_decide():
    assert said(BEFORE[:4], [1.0] * 10) == CANNOT_TELL and said(BEFORE, [1.0] * 4) == CANNOT_TELL
    assert said(BEFORE, [1.0] * 5) == FASTER and said([19.0] * 5, [19.0] * 5) == SAME


def word_of_steps(before, after, same_within=0.05):
    return families.words([pair([before] * 6, [after] * 6, same_within, resolution=1.0)], ["lower"])[0]


def row_of(before, after, outcome=(0, 6, 0, 6)):
    names = ("invalid_before", "of_before", "invalid_after", "of_after")
    sides = (pd.Series(before), pd.Series(after))
    lost = dict(zip(names, outcome, strict=True))
    place = {"connections": 1, "threads": 1, "measure": "p50", "same_within": 0.05}
    (row,) = with_words(pd.DataFrame([{**place, **lost, **compare_values(*sides, 0.05, 1.0)}])).itertuples()
    return row


def test_what_whole_microseconds_hide_could_not_have_been_found():
    row = row_of([17.0] * 6, [17.0] * 6)
    assert row.word == CANNOT_TELL and row.found == pytest.approx((18 / 17) ** 2, abs=0.06)
    assert row.found > 1.06, "of values without any noise no more than half a step on each side is open"
    exact = power.detectable(0.01, 6, 6)
    assert power.detectable(0.01, 6, 6, slack=0.06) == pytest.approx(exact * math.exp(0.06))
    assert power.share_found(0.0, 6, 6, 1.05, slack=0.06) == 0.0 < power.share_found(0.0, 6, 6, 1.05)


@pytest.mark.parametrize("outcome", [(0, 6, 2, 8), (2, 8, 0, 6)])
def test_no_limit_is_named_where_a_side_lost_more_runs(outcome):
    wide = [70.0, 130.0, 95.0, 105.0, 100.0, 99.0]
    assert math.isfinite(row_of(wide, wide).found) and math.isinf(row_of(wide, wide, outcome).found)


@pytest.mark.parametrize("runs", [1, 2, 4])
def test_fewer_than_five_runs_a_side_have_no_interval(runs):
    few = pair(BEFORE[:runs], times(1.1))
    assert math.isnan(few.low) and math.isnan(few.high) and few.ratio > 1


def test_whole_microseconds_that_are_one_apart_are_never_called_different_and_three_apart_are():
    assert [
        word_of_steps(17, 18),
        word_of_steps(18, 17),
        word_of_steps(1, 2),
        word_of_steps(100, 101, 0.001),
    ] == [CANNOT_TELL] * 4
    assert [word_of_steps(17, 20), word_of_steps(20, 17)] == [SLOWER, FASTER]


def test_nothing_is_the_same_within_less_than_the_step_in_which_it_is_told():
    assert (
        word_of_steps(17, 17) == CANNOT_TELL
        and word_of_steps(17, 17, 0.07) == SAME
        and word_of_steps(100, 100) == SAME
    )


def test_the_interval_of_a_ratio_holds_what_its_values_may_have_been_before_they_were_rounded():
    found = pair([17.0] * 6, [20.0] * 6, resolution=1.0)
    assert found.low <= 19.5 / 17.5 and found.high >= 20.5 / 16.5 and found.ratio == 20 / 17


@pytest.mark.parametrize("values", [[], [1.0, -1.0], [1.0, math.nan], [0.0]])
def test_what_is_no_measurement_is_refused(values):
    with pytest.raises(ValueError, match="one positive, finite number per run"):
        pair(values, BEFORE)


@pytest.mark.parametrize("sides", [(5, 5), (6, 6), (5, 12), (12, 5)])
@pytest.mark.parametrize("resolution", [0.0, 1.0])
def test_the_interval_excludes_1_exactly_where_p_says_a_difference(sides, resolution):
    """But for the few pairs whose medians say the opposite of their means."""
    generator, decided = np.random.default_rng(7), 0
    for _ in range(200):
        before, after = (np.exp(0.05 * generator.standard_normal(count)) for count in sides)
        one = pair(100 * before, 108 * after, resolution=resolution)
        excludes = not one.low <= 1 <= one.high
        assert excludes == (one.p <= 0.05) or (one.ratio > 1) != (np.log(after).mean() > -math.log(1.08))
        assert one.low <= one.ratio <= one.high
        decided += excludes
    assert 20 < decided < 190


def test_the_interval_of_a_ratio_is_the_same_in_every_order():
    before, after = BEFORE, [1.02 * value for value in (103.0, 99.0, 101.0, 100.0, 102.0)]
    found = pair(before, after)
    assert found.low <= 1.02 <= found.high and pair(sorted(before), after[::-1]) == found


def test_five_runs_beside_twenty_are_judged_by_the_spread_of_all():
    few, many = [1.0, 1.001, 1.002, 1.001, 1.0], [1.0, 1.3] * 10
    found = pair(few, many)
    assert found.p > 0.03 > 0.01 > stats.ttest_ind(np.log(few), np.log(many), equal_var=False).pvalue
    assert found.low < 1.01 and pair(few, many, confidence=0.99).low < 1


def test_of_five_runs_beside_twenty_welchs_test_alone_says_three_times_as_many_false_words():
    """2 000 pages of 24 comparisons of normal runs, of which nothing differs, seed 7."""
    runs = np.random.default_rng(7).standard_normal((2000 * 24, 25))
    alone = stats.ttest_ind(runs[:, :5], runs[:, 5:], axis=1, equal_var=False).pvalue
    both = difference_p(runs[:, :5], runs[:, 5:])
    false = [float(np.mean(p.reshape(2000, 24).min(axis=1) < 0.05 / 24)) for p in (alone, both)]
    assert 0.09 < false[0] < 0.14 and false[1] < 0.03, false


def test_a_word_needs_more_in_a_family_than_alone():
    generator = np.random.default_rng(4)
    unclear = next(
        one
        for one in (
            pair(
                np.exp(0.05 * generator.standard_normal(6)), 1.1 * np.exp(0.05 * generator.standard_normal(6))
            )
            for _ in range(999)
        )
        if 0.01 < one.p < 0.03 and not one.low <= 1 <= one.high
    )
    nothing = pair(BEFORE, BEFORE)
    assert families.words([unclear], ["lower"]) == [SLOWER]
    assert families.words([unclear, *[nothing] * 23], ["lower"] * 24)[0] == CANNOT_TELL
    assert families.words([unclear], ["lower"], share=0.1) == [CANNOT_TELL]


@pytest.mark.parametrize("count", [1, 2, 24, 200])
def test_holm_steps_down_from_the_smallest_whatever_the_order(count):
    ps = np.random.default_rng(count).uniform(0, 1, count) ** 4
    ps[: count // 3] = ps[0]  # ties
    stepped = np.minimum(1, np.maximum.accumulate(np.sort(ps) * np.arange(count, 0, -1)))
    assert np.sort(families.holm(ps)) == pytest.approx(stepped, abs=1e-15)
    assert families.holm(ps[::-1]) == pytest.approx(families.holm(ps)[::-1], abs=1e-15)
    assert families.holm(ps).tolist() == multipletests(ps, method="holm")[1].tolist()
    assert families.holm([]).tolist() == []


def test_holm_corrects_as_it_is_defined():
    assert families.holm([0.01, 0.04, 0.03, math.nan]).tolist() == pytest.approx([0.04, 0.09, 0.09, 1.0])


@pytest.mark.parametrize(
    ("better", "factor", "outcome", "expected"),
    [
        ("lower", 0.8, (0, 6, 1, 6), CANNOT_TELL),  # faster, but one of its runs was lost
        ("lower", 1.0, (0, 6, 1, 6), CANNOT_TELL),  # the same, of those that are left
        ("lower", 1.3, (0, 6, 1, 6), SLOWER),  # slower although its worst run does not count
        ("lower", 1.3, (2, 6, 0, 6), CANNOT_TELL),  # slower than the flattered side
        ("less", 0.8, (0, 6, 3, 6), CANNOT_TELL),
        ("lower", 0.8, (2, 6, 2, 6), FASTER),  # both lost as many
    ],
)
def test_nothing_favourable_is_said_of_a_side_that_lost_more_runs(better, factor, outcome, expected):
    assert said(BEFORE, times(factor), better, outcome) == expected


def test_many_more_invalid_runs_are_worse_and_one_more_cannot_be_told():
    assert outcomes.outcome_p(0, 10, 6, 10) < 0.05 < outcomes.outcome_p(0, 6, 1, 6)
    assert outcomes.outcome_p(2, 6, 2, 6) == 1.0 == outcomes.outcome_p(0, 0, 3, 6)
    assert (
        word(math.inf, math.inf, 0.01, 1.0, "fewer", 10) == "worse"
        and word(0.0, 0.0, 0.01, 1.0, "fewer", 10) == "better"
    )


@pytest.mark.parametrize("runs", [5, 6, 10])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 24])
def test_what_could_be_found_is_found_in_four_of_five_other_experiments(runs, alpha):
    """By the word, also where the noise is known from one such experiment alone."""
    generator = np.random.default_rng(11)

    def sides(ratio):
        one, other = np.exp(0.05 * generator.standard_normal((2, runs)))
        return pair(one, ratio * other)

    def is_found(ratio):
        one = sides(ratio)
        return word(one.low, one.high, one.p, one.p_same, "lower", runs, alpha) == SLOWER

    ratio = power.detectable(0.05, runs, runs, alpha)
    assert np.mean([is_found(ratio) for _ in range(200)]) == pytest.approx(0.8, abs=0.1)
    assert power.share_found(0.05, runs, runs, ratio, alpha) == pytest.approx(0.8, abs=0.001)
    estimated = [
        is_found(power.detectable(sides(1.0).noise, runs, runs, alpha, freedom=2 * runs - 2))
        for _ in range(200)
    ]
    assert np.mean(estimated) == pytest.approx(0.8, abs=0.1)


def test_less_is_found_of_more_noise_in_a_family_and_with_a_noise_of_few_runs():
    ratio = power.detectable(0.05, 6, 6)
    assert power.detectable(0.05, 6, 6, 0.05 / 100) > ratio > power.detectable(0.02, 6, 6)
    assert power.detectable(0.05, 6, 6, freedom=4) > power.detectable(0.05, 6, 6, freedom=10) > ratio
    assert power.detectable(0.05, 5, 20) > power.detectable(0.05, 20, 20)
    assert math.isinf(power.detectable(0.05, 4, 6)) and power.share_found(0.05, 4, 6, 2.0) == 0.0


def test_runs_needed_is_the_fewest_that_find_it():
    needed = power.runs_needed(0.05, 1.05)
    assert (
        power.share_found(0.05, needed, needed, 1.05)
        >= 0.8
        > power.share_found(0.05, needed - 1, needed - 1, 1.05)
    )
    assert power.runs_needed(1.0, 1.001) is None
