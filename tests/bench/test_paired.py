"""Intervals of the benchmarks' ratios: as those of scipy, and as often right as they say."""

import math
import random

import bench_programs
import pytest
from scipy import stats


@pytest.fixture(scope="module")
def paired():
    return bench_programs.program("service/bench/paired.py")


@pytest.mark.parametrize("degrees", [1, 2, 5, 23, 30, 31, 60, 500])
def test_the_points_of_students_distribution_are_scipys(paired, degrees):
    assert paired.t_95(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=1e-3)


def test_the_interval_is_that_of_a_paired_t_test_of_logarithms(paired):
    ours, theirs = [110.0, 121.0, 99.0, 130.0], [100.0, 100.0, 101.0, 120.0]
    low, high = stats.ttest_rel(
        [math.log(x) for x in ours], [math.log(x) for x in theirs]
    ).confidence_interval(0.95)
    found = paired.ratio_of_rounds(ours, theirs)
    assert (found.low, found.high) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-4)
    other = paired.ratio_of_rounds(theirs, ours)
    assert (1 / other.high, 1 / other.mean, 1 / other.low) == pytest.approx(
        (found.low, found.mean, found.high)
    )


def test_95_of_100_intervals_hold_the_true_ratio_whatever_both_sides_share(paired):
    seed = random.randrange(2**32)
    source = random.Random(seed)
    held = 0
    for _ in range(2000):
        rounds = [(source.gauss(0, 0.3), source.gauss(math.log(1.05), 0.02)) for _ in range(6)]
        found = paired.ratio_of_rounds(
            [math.exp(shared + own) for shared, own in rounds], [math.exp(shared) for shared, _ in rounds]
        )
        held += found.low <= 1.05 <= found.high
    assert 0.93 <= held / 2000 <= 0.97, f"seed {seed}"  # over four standard deviations to either side


def test_one_round_has_no_interval_and_says_so(paired):
    assert paired.ratio_of_rounds([2.0], [1.0]).text() == "2.000 [one round: no interval] (2.000–2.000)"
    assert paired.ratio_of_rounds([2.0, 2.0], [1.0, 1.0]).text(2) == "2.00 [2.00, 2.00] (2.00–2.00)"
