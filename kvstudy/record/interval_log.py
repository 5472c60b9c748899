"""HdrHistogram interval logs (latency.hlog): one line per interval and tag, on the clock of the epoch.

    #[StartTime: 1795207345.000 (seconds since epoch), …]
    "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
    Tag=response,0.000,1.000,2.015,HISTFAAAA…

Time stamps are seconds since the epoch, or since StartTime (or BaseTime) when they are more than a year
before it. Histograms stay text here: whoever needs one decodes it (kvstudy.record.hdr).

Measured intervals are of one length in a log, a second or a part of it (``step_s``); those of the warm-up
last a second. The last one ends with the run, earlier or later than the others would.
"""

import itertools
import math
import re
from dataclasses import dataclass

from kvstudy.errors import FormatError
from kvstudy.record import hdr

_COMMENT_TIME = re.compile(r"#\[(StartTime|BaseTime): *(\d+(?:\.\d+)?) ")
_INTERVAL = re.compile(r"(?:Tag=([^,]+),)?(\d+(?:\.\d+)?),(\d+(?:\.\d+)?),(\d+(?:\.\d+)?),(\S+)")
_LEGEND = '"StartTimestamp"'
_YEAR_S = 365 * 24 * 3600.0
WARM_UP_TAG = "warmup_"  # loadgen's log holds the warm-up too, under tags of its own
MEASURED_TAGS = ("", "response", "service", "lateness")  # of a rate in steps there are others besides
# Of so many milliseconds each fits into a second without a rest: those that loadgen writes.
STEPS_S = tuple(ms / 1000 for ms in range(1000, 9, -1) if 1000 % ms == 0)
_NEAR_S = 0.003  # times are written in whole milliseconds


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


def by_second(text: str, file: str) -> str:
    """The log with its measured intervals added up to seconds, a line each; a log of seconds as it is. Each
    begins and ends with its second, whichever intervals of it are there; the last one ends with the run.

    FormatError as ``read`` and ``step_s``; ValueError for a histogram that cannot be read.
    """
    intervals = read(text, file)
    if step_s(intervals, file) == 1:
        return text
    lines = text.splitlines(keepends=True)
    measured = [interval for interval in intervals if interval.tag in MEASURED_TAGS]
    begun_s = min(interval.start_epoch_s for interval in measured)
    of_tags = [[one for one in measured if one.tag == tag] for tag in {one.tag for one in measured}]
    last_s = max(_second(interval, begun_s) for interval in measured)
    for parts in itertools.chain.from_iterable(in_seconds(of_tag, begun_s) for of_tag in of_tags):
        first, last = parts[0], parts[-1]
        start_s = begun_s + (second := _second(first, begun_s))
        length_s = 1.0 if second < last_s else last.start_epoch_s - start_s + last.length_s
        found = [_INTERVAL.fullmatch(lines[one.line - 1].rstrip("\r\n")) for one in parts]
        longest = max((one[4] for one in found), key=float)
        tag = f"Tag={first.tag}," if first.tag else ""
        histogram = hdr.encode(hdr.merge(hdr.decode(one.histogram) for one in parts))
        for one in parts:
            lines[one.line - 1] = ""
        stamp_s = float(found[0][2]) - (first.start_epoch_s - start_s)
        lines[first.line - 1] = f"{tag}{stamp_s:.3f},{length_s:.3f},{longest},{histogram}\n"
    return "".join(lines)


def in_seconds(intervals: list[Interval], begun_s: float) -> list[list[Interval]]:
    """Those that began in the same second, counted from ``begun_s``, together; all in the order of time."""
    seconds: dict[int, list[Interval]] = {}
    for one in sorted(intervals, key=lambda interval: interval.start_epoch_s):
        seconds.setdefault(_second(one, begun_s), []).append(one)
    return list(seconds.values())


def _second(one: Interval, begun_s: float) -> int:
    return math.floor(one.start_epoch_s - begun_s + _NEAR_S)


def step_s(intervals: list[Interval], file: str) -> float:
    """How long each measured interval lasts. Where there is but one, which ended with the run, a second if it
    does not say another of STEPS_S.

    FormatError with the line where they have none of STEPS_S, or begin at other distances: what is worked out
    by the second would be of no second then.
    """
    measured = [interval for interval in intervals if interval.tag in MEASURED_TAGS]
    begun = list({round(one.start_epoch_s, 3): one for one in reversed(measured)}.values())
    begun.sort(key=lambda interval: interval.start_epoch_s)
    if len(begun) < 2:
        return next((step for one in begun for step in STEPS_S if one.length_s == step), 1.0)
    # Of a log merged from several hosts an interval lasts until its last part has ended it.
    lengths_s = [
        min(one.length_s, after.start_epoch_s - one.start_epoch_s) for one, after in itertools.pairwise(begun)
    ]
    shortest_s = min(lengths_s)
    step = min(STEPS_S, key=lambda step: abs(step - shortest_s))
    if abs(step - shortest_s) > _NEAR_S:
        line = begun[lengths_s.index(shortest_s)].line
        raise FormatError(file, line, f"an interval of {shortest_s:.3f} s, which does not fit into a second")
    for one in begun:
        after_s = one.start_epoch_s - begun[0].start_epoch_s
        if abs(after_s - step * round(after_s / step)) > _NEAR_S:
            raise FormatError(
                file, one.line, f"an interval {after_s:.3f} s after the first, where each has {step:g} s"
            )
    return step
