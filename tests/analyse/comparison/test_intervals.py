import math
import random

import numpy as np
from hdrh.histogram import HdrHistogram

from kvstudy.analyse.comparison.intervals import median_interval, rank_interval, ratio_interval
from kvstudy.record import hdr


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


def test_the_interval_of_a_percentile_widens_towards_the_tail():
    seed = random.randrange(1 << 30)
    print(f"seed={seed}")
    recorded = HdrHistogram(1, 86_400_000_000, 3)
    # So many that 1 000 lie beyond p99.9: of five the spread may happen to be small.
    for value, count in zip(
        *np.unique(np.random.default_rng(seed).lognormal(6, 0.8, 1_000_000).astype(int), return_counts=True),
        strict=True,
    ):
        recorded.record_value(int(value), int(count))
    histogram = hdr.decode(recorded.encode().decode())
    widths = []
    for percentile in (50, 99, 99.9):
        interval = rank_interval(histogram, percentile)
        assert interval.low <= interval.estimate <= interval.high
        widths.append((interval.high - interval.low) / interval.estimate)
    assert widths[0] < widths[1] < widths[2]
