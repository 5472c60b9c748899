"""HdrHistogram interval logs (latency.hlog): one line per second and tag, on the clock of the epoch.

    #[StartTime: 1795207345.000 (seconds since epoch), …]
    "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
    Tag=response,0.000,1.000,2.015,HISTFAAAA…

Time stamps are seconds since the epoch, or since StartTime (or BaseTime) when they are more than a year
before it. Histograms stay text here: whoever needs one decodes it (kvstudy.record.hdr).
"""

import re
from dataclasses import dataclass

from kvstudy.errors import FormatError

_COMMENT_TIME = re.compile(r"#\[(StartTime|BaseTime): *(\d+(?:\.\d+)?) ")
_INTERVAL = re.compile(r"(?:Tag=([^,]+),)?(\d+(?:\.\d+)?),(\d+(?:\.\d+)?),(\d+(?:\.\d+)?),(\S+)")
_LEGEND = '"StartTimestamp"'
_YEAR_S = 365 * 24 * 3600.0


@dataclass(frozen=True)
class Interval:
    """``tag``: response, service or lateness; ``start_epoch_s``: seconds since the epoch; ``line``: where it
    stands."""

    tag: str
    start_epoch_s: float
    length_s: float
    histogram: str
    line: int


def read(text: str, file: str) -> list[Interval]:
    """Every interval in the order of the text; ``file``: its name, for errors.

    FormatError with the line for anything that is none of the three kinds of line.
    """
    start_s = base_s = None
    intervals: list[Interval] = []
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if line.startswith("#"):
            found = _COMMENT_TIME.match(line)
            if found and found[1] == "StartTime":
                start_s = float(found[2])
            elif found:
                base_s = float(found[2])
            continue
        if line.startswith(_LEGEND) or not line.strip():
            continue
        found = _INTERVAL.fullmatch(line.rstrip("\r\n"))
        if found is None or not line.endswith("\n"):
            raise FormatError(
                file, number, f"not an interval of a histogram log, or cut: {line[:60].rstrip()!r}"
            )
        stamp_s = float(found[2])
        if base_s is None:
            base_s = start_s if start_s is not None and stamp_s < start_s - _YEAR_S else 0.0
        intervals.append(Interval(found[1] or "", stamp_s + base_s, float(found[3]), found[5], number))
    return intervals
