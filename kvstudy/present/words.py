"""Numbers as a reader reads them: a unit that fits, three significant digits, a thin space between thousands.

Input units are in the argument names; a missing number (NaN, None) reads "–".
"""

import math

from kvstudy.analyse.comparison.words import NEITHER, SAME, findable_limit
from kvstudy.units import plural

THIN_SPACE = "\u202f"
MISSING = "–"
_ACRONYMS = ("wal", "gc", "cpu", "put", "get")


def latency(latency_us: float | None, digits: int = 3, like_us: float | None = None) -> str:
    """``1240.0`` → "1.24 ms"; ``like_us``: in the unit of that one."""
    if _missing(latency_us):
        return MISSING
    for scale, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if abs(latency_us if like_us is None else like_us) >= scale * 0.9995:
            return f"{_digits(latency_us / scale, digits)} {unit}"
    return f"{_digits(latency_us, digits)} µs"


def from_to(least_us: float, most_us: float) -> str:
    """``(870.0, 1240.0)`` → "870 µs to 1.24 ms"; one latency where both read alike."""
    least, most = latency(least_us), latency(most_us)
    return least if least == most else f"{least} to {most}"


def rate(rate_rps: float | None) -> str:
    """``12500.0`` → "12 500 r/s" (requests per second)."""
    return MISSING if _missing(rate_rps) else f"{count(rate_rps)} r/s"


def about_rate(rate_rps: float | None) -> str:
    """A rate that nobody chose, of two digits: ``24046.0`` → "24 000 r/s"."""
    return rate(rate_rps if _missing(rate_rps) or math.isinf(rate_rps) else float(f"{rate_rps:.2g}"))


def count(number: float | None) -> str:
    """A whole number with a thin space between thousands."""
    return MISSING if _missing(number) else f"{round(number):,}".replace(",", THIN_SPACE)


def counted(number: float, thing: str) -> str:
    """``(1, "run")`` → "1 run"; ``(3, "run")`` → "3 runs"; ``(2, "launch")`` → "2 launches"."""
    return f"{count(number)} {plural(number, thing)}"


def of_which_count(counted_ones: int, of: int, thing: str) -> str:
    """``(0, 1, "run")`` → "0 of 1 run counts"; ``(0, 2, "launch")`` → "0 of 2 launches count"."""
    return f"{count(counted_ones)} of {counted(of, thing)} count{'s' if 1 in (counted_ones, of) else ''}"


def interval(low: float, high: float, formatter) -> str:
    """``[low, high]`` as ``formatter`` writes them, a unit of both only once; nothing where there is none:
    one run has no spread."""
    if _missing(low) or math.isclose(low, high):
        return ""
    if formatter is times:
        return f" [{_beside_one(low, high).removesuffix(' ×')}, {_beside_one(high, low)}]"
    return "" if formatter(low) == formatter(high) else f" [{_both(low, ', ', high, formatter)}]"


def ratio(number: float, low: float, high: float) -> str:
    """``(1.004, 1.003, 1.005)`` → "1.004 × [1.003, 1.005 ×]"."""
    return estimate_of_ratio(number, low, high) + interval(low, high, times)


def estimate_of_ratio(number: float, low: float, high: float) -> str:
    """Without its interval: no 1.00 of one that excludes 1."""
    return _beside_one(number) if low > 1 or high < 1 else times(number)


def extent(least: float, most: float, formatter) -> str:
    """``(least … most)``, likewise: what few runs spread over."""
    return "" if _missing(least) or least == most else f" ({_both(least, ' … ', most, formatter)})"


def kind(latency_kind: str) -> str:
    """``response`` → "response time", ``lateness`` → "send lateness"; ``own_lateness`` is its part that is
    the generator's own."""
    lateness = {"lateness": "send lateness", "own_lateness": "send lateness on a free connection"}
    return lateness.get(latency_kind) or f"{latency_kind} time"


def share(fraction: float | None, digits: int = 3) -> str:
    """``0.1234`` → "12.3 %"."""
    return MISSING if _missing(fraction) else f"{_digits(100 * fraction, digits)} %"


def times(ratio: float | None, digits: int = 3) -> str:
    """``1.337`` → "1.34 ×"."""
    return MISSING if _missing(ratio) else f"{_digits(ratio, digits)} ×"


def _beside_one(number: float, other_end: float | None = None) -> str:
    """A ratio with so many digits that it does not read as 1 where it is not, since a word rests on the side
    of 1 that an interval lies on; nor as the other end."""
    texts = [times(number, digits) for digits in range(3, 7)]
    others = [None if other_end is None else times(other_end, digits) for digits in range(3, 7)]
    told = (
        text
        for text, other in zip(texts, others, strict=True)
        if text != other and (number == 1 or float(text.removesuffix(" ×").replace(THIN_SPACE, "")) != 1)
    )
    return next(told, texts[0])


def size(size_bytes: float | None) -> str:
    """``2_500_000`` → "2.38 MiB"."""
    if _missing(size_bytes):
        return MISSING
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(size_bytes) >= scale:
            return f"{_digits(size_bytes / scale)} {unit}"
    return f"{round(size_bytes)} B"


def chosen_size(size_bytes: int) -> str:
    """A size that somebody chose, in the unit in which it is a whole number: ``100_000`` → "100 kB", ``4096``
    → "4 KiB"."""
    for scale, unit in ((10**6, "MB"), (10**3, "kB"), (2**20, "MiB"), (2**10, "KiB")):
        if size_bytes and size_bytes % scale == 0:
            return f"{count(size_bytes // scale)} {unit}"
    return f"{count(size_bytes)} B"


def percentile(number: float) -> str:
    """``99.0`` → "p99", ``99.9`` → "p99.9"."""
    return f"p{number:g}"


def value(factor: str, given) -> str:
    """A factor's value with its unit: ``("offered_rate_rps", 2000.0)`` → "2 000 r/s"; ``("connections", 1)``
    → "1 connection"."""
    if isinstance(given, str):
        return given or ("no label" if factor == "label" else "default")
    if factor == "closed_loop":
        return "closed loop" if given else "on a schedule"
    if factor == "offered_rate_rps" and (_missing(given) or given == math.inf):
        return "closed loop"
    if _missing(given):
        return MISSING
    if factor.endswith("_rps"):
        return rate(given)
    if factor.endswith("_us"):
        return latency(given)
    if factor.endswith("_bytes"):
        return chosen_size(given)
    if factor in ("connections", "threads"):
        return f"{count(given)} {factor if given != 1 else factor[:-1]}"
    return f"{given:g}" if isinstance(given, float) else str(given)


def factor(name: str) -> str:
    """A column's or event's name for people: "offered_rate_rps" → "offered rate"; "wal_sync" → "WAL sync"."""
    for unit in ("_rps", "_us", "_ms", "_bytes", "_s"):
        name = name.removesuffix(unit)
    return " ".join(part.upper() if part in _ACRONYMS else part for part in name.split("_"))


def word(row) -> str:
    """Of a row of ``comparisons``: "faster", "the same within 5 %", "cannot tell"."""
    return f"{SAME} within {100 * row.same_within:.3g} %" if row.word == SAME else row.word


def doubt(why: str, found: float) -> str:
    """What stands beside *cannot tell*: ``why`` no more is said, or else what could have been found."""
    return why if why not in ("", NEITHER) else findable(found)


def findable(ratio: float) -> str:
    """What runs that cannot tell could have found: ``1.12`` → "only a difference above 12 % could have been
    found". Where no limit can be given, some difference may be found all the same: of the other side."""
    limit = findable_limit(ratio)
    return (
        f"only a difference above {limit} could have been found"
        if limit
        else "even a large difference could have been missed"
    )


def findable_briefly(ratio: float, enough: bool) -> str:
    """The same in a table; ``enough``: whether there are runs or launches enough for any word."""
    return findable_limit(ratio) or ("nothing for certain" if enough else "nothing")


def several(things: list[str]) -> str:
    """``["a", "b", "c"]`` → "a, b and c"."""
    return (
        things[0]
        if len(things) == 1
        else f"{', '.join(things[:-1])} and {things[-1]}"
        if things
        else "nothing"
    )


def _both(low: float, between: str, high: float, formatter) -> str:
    first, last = formatter(low), formatter(high)
    unit = f" {last.rpartition(' ')[2]}"
    return f"{first.removesuffix(unit)}{between}{last}"


def _missing(number) -> bool:
    return number is None or (isinstance(number, float) and math.isnan(number)) or number != number


def _digits(number: float, digits: int = 3) -> str:
    number = float(f"{number:.{digits}g}")
    if abs(number) >= 1000:
        return count(number)
    if number == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    return f"{number:.{min(places, 4)}f}"
