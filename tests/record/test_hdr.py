"""Against the reference library: whatever it records and encodes, we read with the same numbers."""

import os
import random
import subprocess
import sys

import histograms
import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from kvstudy.record import hdr

DAY_US = 86_400_000_000


def recorded(values, highest_us=DAY_US, digits=3) -> HdrHistogram:
    histogram = HdrHistogram(1, highest_us, digits)
    for value in values:
        histogram.record_value(int(value))
    return histogram


def encoded(values, **layout) -> str:
    return recorded(values, **layout).encode().decode()


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
@pytest.mark.parametrize("highest_us", [3_600_000_000, DAY_US])
def test_percentiles_are_those_of_the_library(digits, highest_us):
    seed = random.randrange(1 << 30)
    print(f"seed={seed}")
    values = np.random.default_rng(seed).lognormal(7, 2, 3000).clip(0, highest_us)
    theirs = recorded(values, highest_us=highest_us, digits=digits)
    ours = hdr.decode(theirs.encode().decode())
    assert ours.total == 3000
    for percentile in (0.1, 10, 50, 75, 90, 99, 99.9, 100):
        # 3000 samples make these ranks whole, so that the library's rounding and ours agree
        assert ours.percentile_us(percentile) == theirs.get_value_at_percentile(percentile)
    wide = recorded([70_001, 90_001], highest_us=highest_us, digits=digits)
    for percentile in (0, 50):
        ours_wide = hdr.decode(wide.encode().decode())
        assert ours_wide.percentile_us(percentile) == wide.get_value_at_percentile(percentile)
    assert ours.mean_us == pytest.approx(theirs.get_mean_value())
    assert ours.stdev_us == pytest.approx(theirs.get_stddev())


@pytest.mark.parametrize("digits", [1, 3])
def test_what_is_encoded_is_what_the_library_encodes(digits):
    seed = random.randrange(1 << 30)
    print(f"seed={seed}")
    values = np.random.default_rng(seed).lognormal(7, 2, 3000).clip(0, DAY_US)
    for some in (values, values[:1], np.array([0, DAY_US]), values[:0]):
        text = encoded(some, digits=digits)
        assert hdr.encode(hdr.decode(text)) == text
        assert histograms.encoded(some, digits=digits) == text


def test_every_bucket_begins_where_the_last_one_ended():
    layout = hdr.Layout(1, DAY_US, 3)
    lowest, highest = layout.bounds_us(np.arange(layout.bucket_total))
    assert lowest[0] == 0 and highest[-1] >= DAY_US
    np.testing.assert_array_equal(lowest[1:], highest[:-1] + 1)
    relative = (highest - lowest)[lowest > 0] / lowest[lowest > 0]
    assert relative.max() <= 0.001


def test_a_bucket_of_a_large_value_has_the_width_the_library_gives_it():
    theirs = HdrHistogram(1, DAY_US, 3)
    layout = hdr.Layout(1, DAY_US, 3)
    assert layout.bucket_total == theirs.counts_len
    for value in (0, 1, 2047, 2048, 4095, 4096, 1_000_000, 5_320_703, DAY_US):
        lowest, highest = layout.bounds_us(np.array([theirs.get_counts_array_index(value)]))
        assert lowest[0] <= value <= highest[0]
        assert highest[0] == theirs.get_highest_equivalent_value(value)


def test_merging_gives_the_histogram_of_all_values():
    seed = random.randrange(1 << 30)
    print(f"seed={seed}")
    generator = np.random.default_rng(seed)
    parts = [generator.lognormal(mean, 1, size) for mean, size in ((5, 400), (8, 1000), (6, 0), (12, 3))]
    merged = hdr.merge(hdr.decode(encoded(part)) for part in parts)
    whole = hdr.decode(encoded(np.concatenate(parts)))
    np.testing.assert_array_equal(merged.indices, whole.indices)
    np.testing.assert_array_equal(merged.counts, whole.counts)


def test_a_merged_percentile_is_not_the_average_of_percentiles():
    quiet, stalled = (
        hdr.decode(encoded([100] * 990 + [200] * 10)),
        hdr.decode(encoded([100] * 500 + [1_000_000] * 500)),
    )
    merged = hdr.merge([quiet, stalled])
    assert merged.percentile_us(99) == 1_000_447  # the bucket of one second
    assert merged.percentile_us(99) != (quiet.percentile_us(99) + stalled.percentile_us(99)) / 2


def test_histograms_of_different_layouts_are_not_merged():
    with pytest.raises(ValueError, match="different layouts"):
        hdr.merge([hdr.decode(encoded([5], digits=2)), hdr.decode(encoded([5], digits=3))])


def test_an_empty_histogram_has_no_figures_rather_than_zeros():
    empty = hdr.decode(encoded([]))
    assert empty.total == 0
    assert np.isnan([empty.mean_us, empty.max_us, empty.stdev_us, empty.percentile_us(50)]).all()
    assert empty.samples_beyond([50]) == [0]


def test_samples_beyond_a_percentile_are_counted_not_estimated():
    histogram = hdr.decode(encoded(range(1, 1001)))
    assert histogram.samples_beyond([50, 99, 99.9, 100]).tolist() == [500, 10, 1, 0]
    assert histogram.count_above(990) == 10


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-8],
        lambda text: text[:40] + "AAAA" + text[44:],
        lambda text: "SGVsbG8gd29ybGQh",
        lambda text: "",
        lambda text: "ä" + text,
    ],
)
def test_a_damaged_histogram_is_an_error_never_an_empty_one(damage):
    with pytest.raises(ValueError, match="histogram|HdrHistogram"):
        hdr.decode(damage(encoded(range(1, 5000, 7))))


SPREADS = """
import numpy as np
from kvstudy.record.hdr import Histogram, Layout
draw = np.random.default_rng(1)
for _ in range(50):
    indices = np.unique(draw.integers(50, 9000, 800))
    one = Histogram(Layout(1, 86_400_000_000, 3), indices, draw.integers(1, 500, len(indices)))
    print(repr(one.mean_us), repr(one.stdev_us))
"""


def test_mean_and_spread_are_the_same_to_the_last_bit_on_every_kind_of_processor():
    said = {
        subprocess.run(
            [sys.executable, "-c", SPREADS],
            env=os.environ | {"OPENBLAS_CORETYPE": kind},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for kind in ("Prescott", "Haswell")
    }
    assert len(said) == 1
