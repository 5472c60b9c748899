"""Which seconds of a profiled run were its slow ones: by them the profile is converted a second time, so that
a slow second can be set beside a usual one.
"""

import math
from pathlib import Path

from kvstudy.record import hdr, interval_log

SLOW_SHARE, SECONDS_MAX = 0.2, 5
WHOLE_S = 0.5  # a shorter rest of a second at the end is no second
AT_BORDER_S = 0.1  # so much of a second a profile may lack: it ends with the window, give or take a poll


def slow_seconds(latency_log: Path, covered: tuple[float, float]) -> list[tuple[float, float]]:
    """Begin and end (seconds since the epoch) of the fifth of the measured seconds with the highest p99, at
    most SECONDS_MAX and at least one; none when nothing was logged. ``covered``: when the profiler ran, by
    the log's clock: other seconds it cannot tell of. Of a closed loop by service time, which is all that it
    has."""
    if not latency_log.is_file():
        return []
    intervals = interval_log.read(latency_log.read_text(encoding="utf-8"), latency_log.name)
    kind = "response" if any(interval.tag == "response" for interval in intervals) else "service"
    of_kind = [interval for interval in intervals if interval.tag == kind]
    begun_s = min((interval.start_epoch_s for interval in of_kind), default=0.0)
    ranked = sorted(
        (-_p99_us(hdr.merge(hdr.decode(one.histogram) for one in second)), begin_s, end_s)
        for second in interval_log.in_seconds(of_kind, begun_s)
        for begin_s, end_s in [(second[0].start_epoch_s, second[-1].start_epoch_s + second[-1].length_s)]
        if end_s - begin_s >= WHOLE_S
        and covered[0] <= begin_s + AT_BORDER_S
        and end_s - AT_BORDER_S <= covered[1]
    )
    kept = ranked[: min(SECONDS_MAX, max(1, round(SLOW_SHARE * len(ranked))))] if ranked else []
    return sorted((begin_s, end_s) for _, begin_s, end_s in kept)


def _p99_us(histogram: hdr.Histogram) -> float:
    """A second in which nothing was answered is the slowest."""
    return histogram.percentile_us(99.0) if histogram.total else math.inf
