"""How evenly a core works. A host that takes processor time without telling its guest (no steal), or
throttles it, shows only in that the same work takes longer now and then: whole percents of requests wait."""

import time
from collections.abc import Callable

import numpy as np

WINDOW_S = 0.01
SLOW = 0.5  # of the median speed


def slow_share(
    for_s: float,
    clock: Callable[[], float] = time.thread_time,
    work: Callable[[], None] | None = None,
) -> float:
    """Share of the windows of 10 ms in which this core did less than half of what it does in the middle one.

    By the thread's CPU time: what other programs take is not counted.
    """
    work = work or _count
    speeds: list[float] = []
    end_s = clock() + for_s
    began_s, done = clock(), 0
    while (now_s := clock()) < end_s:
        if now_s - began_s >= WINDOW_S:
            speeds.append(done / (now_s - began_s))
            began_s, done = now_s, 0
        work()
        done += 1
    return float(np.mean(np.array(speeds) < SLOW * np.median(speeds))) if speeds else 0.0


def _count() -> None:
    """About 10 µs."""
    for _ in range(500):
        pass
