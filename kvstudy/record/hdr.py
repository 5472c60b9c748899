"""HdrHistogram data: the V2 encoding, merging, percentiles. Counts live in numpy; unit: microseconds.

    histogram = decode("HISTFAAAA…")           one base64 text, as in latency.hlog and generator.json
    histogram.percentile_us(99.9)              highest equivalent value of the bucket, and of percentile 0 the
                                               lowest, as every HdrHistogram library gives it
    merge([first, second]).percentile_us(99)   the way to join seconds or runs: percentiles are never averaged
    encode(histogram)                          the text again

Guarantees: 1. no percentile is interpolated: it is the bound of a bucket that holds a recorded value; 2.
merging is exact: counts add up; 3. a value is known to the histogram's significant digits (3: within 0.1 %).
The library decodes; walking its iterators takes 40 ms a histogram, so counts are taken as one array instead.
"""

import binascii
import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from hdrh.codec import (
    HdrCookieException,
    HdrHistogramEncoder,
    HdrHistogramSettingsException,
    HdrLengthException,
)
from hdrh.histogram import HdrHistogram


@dataclass(frozen=True)
class Layout:
    """How bucket indices map to values (HdrHistogram's own scheme): ``lowest_us`` … ``highest_us`` at
    ``digits`` figures."""

    lowest_us: int
    highest_us: int
    digits: int

    def __post_init__(self) -> None:
        if not (1 <= self.lowest_us <= self.highest_us // 2 and 0 <= self.digits <= 5):
            raise ValueError(
                f"impossible histogram: lowest={self.lowest_us}, highest={self.highest_us}, "
                f"digits={self.digits}"
            )

    @cached_property
    def unit_bits(self) -> int:
        return math.floor(math.log2(self.lowest_us))

    @cached_property
    def half_bits(self) -> int:
        """Half of the sub-buckets of a bucket, as a power of two: 10 for three digits."""
        return max(0, math.ceil(math.log2(2 * 10**self.digits)) - 1)

    @cached_property
    def bucket_total(self) -> int:
        """Length of the array of counts."""
        reach, buckets = 1 << (self.half_bits + 1 + self.unit_bits), 1
        while reach <= self.highest_us:
            reach <<= 1
            buckets += 1
        return (buckets + 1) << self.half_bits

    def bounds_us(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest value (both inclusive) counted at each index."""
        bucket = (indices >> self.half_bits) - 1
        sub = (indices & ((1 << self.half_bits) - 1)) + (1 << self.half_bits)
        first = bucket < 0
        sub = np.where(first, sub - (1 << self.half_bits), sub)
        shift = np.where(first, 0, bucket) + self.unit_bits
        lowest = sub << shift
        return lowest, lowest + (np.int64(1) << shift) - 1


@dataclass(frozen=True)
class Histogram:
    """Counts of the buckets that are not empty: ``indices`` rise, ``counts`` > 0; both int64 of the same
    length."""

    layout: Layout
    indices: np.ndarray
    counts: np.ndarray

    @cached_property
    def total(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def lowest_us(self) -> np.ndarray:
        return self.layout.bounds_us(self.indices)[0]

    @cached_property
    def highest_us(self) -> np.ndarray:
        return self.layout.bounds_us(self.indices)[1]

    @cached_property
    def cumulative(self) -> np.ndarray:
        return np.cumsum(self.counts)

    @property
    def max_us(self) -> float:
        """NaN when empty, as every figure of an empty histogram."""
        return float(self.highest_us[-1]) if self.total else math.nan

    @property
    def mean_us(self) -> float:
        return int(self._middle_us @ self.counts) / self.total if self.total else math.nan

    @property
    def stdev_us(self) -> float:
        """Over the recorded values, not a sample's estimate. The sum is exact: in which order BLAS adds
        depends on the processor, and tables have the same bytes whoever makes them."""
        if not self.total:
            return math.nan
        return math.sqrt(math.fsum((self._middle_us - self.mean_us) ** 2 * self.counts) / self.total)

    @property
    def _middle_us(self) -> np.ndarray:
        width = self.highest_us - self.lowest_us + 1
        return self.lowest_us + width // 2

    def ranks(self, percentiles: Sequence[float]) -> np.ndarray:
        """How many samples lie at or below each percentile (0 – 100): at least one, rounded to the nearest,
        as wrk2 and loadgen do."""
        return ranks(self.total, percentiles)

    def percentiles_us(self, percentiles: Sequence[float]) -> np.ndarray:
        """Latency at each percentile; NaN when empty."""
        if not self.total:
            return np.full(len(percentiles), math.nan)
        buckets = np.searchsorted(self.cumulative, self.ranks(percentiles))
        bounds = np.where(np.asarray(percentiles) == 0, self.lowest_us[buckets], self.highest_us[buckets])
        return bounds.astype(float)

    def percentile_us(self, percentile: float) -> float:
        return float(self.percentiles_us([percentile])[0])

    def samples_beyond(self, percentiles: Sequence[float]) -> np.ndarray:
        """Samples above the rank of each percentile: what an estimate of it rests on."""
        return (
            self.total - self.ranks(percentiles) if self.total else np.zeros(len(percentiles), dtype=np.int64)
        )

    def count_above(self, threshold_us: float) -> int:
        """Samples in buckets that begin above ``threshold_us``."""
        return int(self.counts[self.lowest_us > threshold_us].sum())


def ranks(total: int, percentiles: Sequence[float]) -> np.ndarray:
    """``Histogram.ranks`` where only the number of samples is known."""
    wanted = np.floor(np.asarray(percentiles, dtype=float) / 100 * total + 0.5)
    return np.clip(wanted, 1, max(1, total)).astype(np.int64)


def decode(text: str) -> Histogram:
    """A base64 text of the compressed V2 encoding. ValueError says what is wrong with it."""
    try:
        payload = HdrHistogramEncoder.decode(text)
    except HdrCookieException:
        raise ValueError("not a compressed HdrHistogram V2") from None
    except (
        HdrLengthException,
        HdrHistogramSettingsException,
        binascii.Error,
        zlib.error,
        ValueError,
        TypeError,
    ) as reason:
        raise ValueError(f"histogram is damaged: {reason}") from None
    head = payload.payload
    layout = Layout(head.lowest_trackable_value, head.highest_trackable_value, head.significant_figures)
    try:
        payload.init_counts(layout.bucket_total)
    except (IndexError, ValueError, OverflowError, MemoryError) as reason:
        raise ValueError(f"histogram is damaged: {reason}") from None
    counts = np.frombuffer(payload.get_counts(), dtype=np.int64)
    indices = np.flatnonzero(counts)
    return Histogram(layout, indices, counts[indices])


def encode(histogram: Histogram) -> str:
    """What ``decode`` reads."""
    layout = histogram.layout
    written = HdrHistogram(layout.lowest_us, layout.highest_us, layout.digits)
    if histogram.total:
        # The highest value tells the library how many counts to write. It adds value by value, so the counts
        # are put in their places here.
        written.record_value(int(histogram.lowest_us[-1]))
        np.frombuffer(written.counts, dtype=np.int64)[histogram.indices] = histogram.counts
    return written.encode().decode()


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """One histogram of all samples. ValueError for none, or for histograms of different layouts."""
    parts = list(histograms)
    if not parts:
        raise ValueError("no histogram to merge")
    layout = parts[0].layout
    if any(part.layout != layout for part in parts):
        raise ValueError(f"histograms of different layouts: {sorted({str(part.layout) for part in parts})}")
    indices, places = np.unique(np.concatenate([part.indices for part in parts]), return_inverse=True)
    counts = np.zeros(len(indices), dtype=np.int64)
    np.add.at(counts, places, np.concatenate([part.counts for part in parts]))
    return Histogram(layout, indices, counts)
