"""Histograms of values that a test makes up, counted in numpy instead of one by one."""

import functools

import numpy as np

from kvstudy.record import hdr

DAY_US = 86_400_000_000


def encoded(values_us, highest_us: int = DAY_US, digits: int = 3) -> str:
    """The text of a histogram of these values, each from 0 to ``highest_us``, in whole microseconds."""
    return _encoded(np.asarray(values_us, dtype=np.int64).tobytes(), highest_us, digits)


@functools.lru_cache(maxsize=256)  # runs of one test often have the same values
def _encoded(values_us: bytes, highest_us: int, digits: int) -> str:
    layout = hdr.Layout(1, highest_us, digits)
    places = np.searchsorted(_lowest_us(layout), np.frombuffer(values_us, dtype=np.int64), side="right") - 1
    return hdr.encode(hdr.Histogram(layout, *np.unique(places, return_counts=True)))


@functools.cache
def _lowest_us(layout: hdr.Layout) -> np.ndarray:
    return layout.bounds_us(np.arange(layout.bucket_total))[0]
