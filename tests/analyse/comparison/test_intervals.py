import math

import numpy as np

from kvstudy.analyse.comparison.intervals import median_interval, ratio_interval


def test_the_interval_of_a_ratio_is_the_same_every_time_and_in_every_order():
    before, after = (
        [100.0, 102.0, 99.0, 101.0, 103.0],
        [1.02 * value for value in (103.0, 99.0, 101.0, 100.0, 102.0)],
    )
    low, high = ratio_interval(before, after)
    assert low <= 1.02 <= high and ratio_interval(sorted(before), after[::-1]) == (low, high)


def test_the_median_of_one_run_has_no_interval():
    alone = median_interval([5.0])
    assert alone.estimate == 5.0 and math.isnan(alone.low) and math.isnan(alone.high)


def test_the_interval_of_a_median_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(8)
    hits = [
        interval.low <= 10 <= interval.high
        for interval in (median_interval(generator.normal(10, 1, 10)) for _ in range(400))
    ]
    assert 0.91 <= np.mean(hits) <= 0.99
