import math
import random

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from kvstudy.analyse import noise, statistics
from kvstudy.analyse.statistics import CANNOT_TELL, FASTER, SLOWER, compare, median_interval, rank_interval
from kvstudy.record import hdr

BEFORE = [100.0, 102.0, 99.0, 101.0, 103.0]


def test_a_clear_fall_of_latency_is_faster_and_of_rate_slower():
    after = [value * 0.8 for value in BEFORE]
    assert compare(BEFORE, after).word == FASTER
    assert compare(BEFORE, after, better="higher").word == SLOWER
    assert compare(after, BEFORE).word == SLOWER
    assert compare(BEFORE, after).ratio == pytest.approx(0.8)


def test_a_cost_that_rises_is_dearer_and_one_that_falls_cheaper():
    cost = [20.0, 20.5, 21.0, 19.5, 20.2]
    assert compare(cost, [value * 1.3 for value in cost], better="less").word == "dearer"
    assert compare(cost, [value * 0.8 for value in cost], better="less").word == "cheaper"


def test_the_interval_holds_the_ratio_of_medians_and_is_the_same_every_time():
    first = compare(BEFORE, [value * 1.02 for value in reversed(BEFORE)])
    assert first.low <= first.ratio <= first.high
    assert first == compare(sorted(BEFORE), [value * 1.02 for value in BEFORE])


def test_the_same_numbers_on_both_sides_cannot_be_told_apart():
    same = compare(BEFORE, BEFORE)
    assert (same.word, same.ratio) == (CANNOT_TELL, 1.0)


def test_fewer_than_five_runs_a_side_never_decide():
    assert compare(BEFORE[:4], [1.0] * 10).word == CANNOT_TELL
    assert compare(BEFORE, [1.0] * 4).word == CANNOT_TELL
    assert compare(BEFORE, [1.0] * 5).word == FASTER


@pytest.mark.parametrize("values", [[], [1.0, -1.0], [1.0, math.nan], [0.0]])
def test_what_is_no_measurement_is_refused(values):
    with pytest.raises(ValueError, match="one positive, finite number per run"):
        compare(values, BEFORE)


SHAPES = {
    "normal, 3 %": lambda generator, size: 1 + 0.03 * generator.standard_normal(size),
    "heavy tails": lambda generator, size: np.exp(0.03 * generator.standard_t(2, size)),
    "two modes": lambda generator, size: 1 + 0.02 * generator.standard_normal(size) + 0.3 * (generator.random(size) < 0.3),
    "skewed": lambda generator, size: generator.lognormal(0, 0.5, size),
}


@pytest.mark.parametrize("repeats", [5, 10])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_thing_twice_is_called_different_in_at_most_one_of_twenty_experiments(shape, repeats):
    """Seeds are fixed: the rate is a property of the rule. 2 000 experiments leave a standard error of half a percent."""
    generator = np.random.default_rng(repeats)
    found = np.concatenate([statistics.words(SHAPES[shape](generator, (100, repeats)), SHAPES[shape](generator, (100, repeats)))
                            for _ in range(20)])
    assert (found != CANNOT_TELL).mean() <= 0.05


def test_power_grows_with_repeats_and_false_positives_do_not():
    measured = np.exp(0.02 * np.random.default_rng(3).standard_normal(40))
    few, many = (noise.power(measured, repeats, trials=200).share for repeats in (5, 12))
    assert few < many and many > 0.8
    assert noise.false_positive_rate(measured, repeats=12, trials=300).share <= 0.05
    assert noise.repeats_needed(measured, ratio=1.10, trials=100) == 5
    assert noise.repeats_needed(measured, ratio=1.001, most=6, trials=100) is None


def test_noise_is_what_repeats_of_the_same_variant_differ_by():
    import pandas as pd

    runs = pd.DataFrame({"variant": ["a"] * 4 + ["b"] * 4 + ["c"], "p99_us": [98.0, 100, 100, 102, 980, 1000, 1000, 1020, 7]})
    found = noise.relative_noise(runs, "p99_us", by=["variant"])
    assert len(found) == 8
    assert np.log(found).max() == pytest.approx(math.log(1.02) * math.sqrt(4 / 3))
    with pytest.raises(ValueError, match="no group with two runs"):
        noise.relative_noise(runs.tail(1), "p99_us", by=["variant"])


def test_the_median_of_one_run_has_no_interval():
    alone = median_interval([5.0])
    assert alone.estimate == 5.0 and math.isnan(alone.low) and math.isnan(alone.high)


def test_the_interval_of_a_median_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(8)
    hits = [interval.low <= 10 <= interval.high for interval in
            (median_interval(generator.normal(10, 1, 10)) for _ in range(400))]
    assert 0.91 <= np.mean(hits) <= 0.99


def test_the_interval_of_a_percentile_widens_towards_the_tail():
    seed = random.randrange(1 << 30)
    print(f"seed={seed}")
    recorded = HdrHistogram(1, 86_400_000_000, 3)
    # So many that 1 000 lie beyond p99.9: of five the spread may happen to be small.
    for value, count in zip(*np.unique(np.random.default_rng(seed).lognormal(6, 0.8, 1_000_000).astype(int), return_counts=True), strict=True):
        recorded.record_value(int(value), int(count))
    histogram = hdr.decode(recorded.encode().decode())
    widths = []
    for percentile in (50, 99, 99.9):
        interval = rank_interval(histogram, percentile)
        assert interval.low <= interval.estimate <= interval.high
        widths.append((interval.high - interval.low) / interval.estimate)
    assert widths[0] < widths[1] < widths[2]
