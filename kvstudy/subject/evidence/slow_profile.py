"""Which seconds of a profiled run were its slow ones: by them the profile is converted a second time, so that
a slow second can be set beside a usual one.
"""

import math
from pathlib import Path

from kvstudy.record import hdr, interval_log

SLOW_SHARE, SECONDS_MAX = 0.2, 5
WHOLE_S = 0.5  # a shorter rest of a second at the end is no second


def slow_seconds(latency_log: Path) -> list[tuple[float, float]]:
    """Begin and end (seconds since the epoch) of the fifth of the measured seconds with the highest p99, at
    most SECONDS_MAX and at least one; none when nothing was logged. Of a closed loop by service time, which
    is all that it has."""
    if not latency_log.is_file():
        return []
    intervals = interval_log.read(latency_log.read_text(encoding="utf-8"), latency_log.name)
    kind = "response" if any(interval.tag == "response" for interval in intervals) else "service"
    ranked = sorted(
        (-hdr.merge(hdr.decode(one.histogram) for one in second).percentile_us(99.0), begin_s, end_s)
        for second in _seconds([interval for interval in intervals if interval.tag == kind])
        for begin_s, end_s in [(second[0].start_epoch_s, second[-1].start_epoch_s + second[-1].length_s)]
        if end_s - begin_s >= WHOLE_S
    )
    kept = ranked[: min(SECONDS_MAX, max(1, round(SLOW_SHARE * len(ranked))))] if ranked else []
    return sorted((begin_s, end_s) for _, begin_s, end_s in kept)


def _seconds(intervals: list[interval_log.Interval]) -> list[list[interval_log.Interval]]:
    """Those of each second from the first on together: an interval may be shorter."""
    seconds: dict[int, list[interval_log.Interval]] = {}
    for one in sorted(intervals, key=lambda interval: interval.start_epoch_s):
        begun_s = seconds[0][0].start_epoch_s if seconds else one.start_epoch_s
        seconds.setdefault(math.floor(one.start_epoch_s - begun_s + 0.001), []).append(one)
    return list(seconds.values())
