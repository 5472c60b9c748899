"""Durations, rates and sizes as people write them in experiment files, and back.

``10s 500ms 1.5m 2h`` → seconds; ``2000 2k 1.5M`` → requests per second; ``128m 1g 4096`` → bytes (powers of
1024). A bare number is no duration: 10 could be seconds or minutes, so the unit has to be said. Each has a
bound, beyond which it is a number that was mistyped by some digits.
"""

import re
from decimal import Decimal

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
# Decimals, so that 700ms is 0.7 and not the float above it.
_DURATION_UNITS_S = {
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}
_RATE_SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_SIZE_SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
DURATION_MAX_S = 7 * 86_400
RATE_MAX_RPS = 100 * 10**6
SIZE_MAX_BYTES = 1 << 50
PERCENT_DIGITS_MAX = 6


def parse_duration_s(text: object) -> float:
    """Seconds of ``500ms``, ``10s``, ``1.5m`` or ``2h``, whole microseconds; ValueError says what a duration
    looks like."""
    match = re.fullmatch(rf"\s*{_NUMBER}\s*(us|ms|s|m|h)\s*", text if isinstance(text, str) else "")
    if match is None:
        raise ValueError(f"not a duration: {text!r}; write a number and its unit: 500ms, 10s, 1.5m, 2h")
    seconds = Decimal(match[1]) * _DURATION_UNITS_S[match[2]]
    if seconds > DURATION_MAX_S:
        raise ValueError(f"a duration is at most {DURATION_MAX_S // 86_400} days: {text!r}")
    if seconds % _DURATION_UNITS_S["us"]:
        raise ValueError(f"a duration is in whole microseconds: {text!r}")
    return float(seconds)


def counted(number: float, thing: str) -> str:
    """``(1, "run")`` → "1 run"; ``(3, "run")`` → "3 runs"; ``(2, "launch")`` → "2 launches"."""
    return f"{number} {plural(number, thing)}"


def plural(number: float, thing: str) -> str:
    """``thing``, or several of it."""
    return thing if number == 1 else f"{thing}{'es' if thing.endswith(('ch', 'sh')) else 's'}"


def format_duration(seconds: float) -> str:
    """``90`` → ``1m 30s``; under a minute with at most one decimal: ``8s``, ``2.5s``."""
    if seconds < 60:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    words = [f"{hours}h"] if hours else []
    words += [f"{minutes}m"] if minutes else []
    words += [f"{left}s"] if left and not hours else []
    return " ".join(words)


def write_duration(seconds: float) -> str:
    """As ``parse_duration_s`` and loadgen read it, exact to the microsecond: ``5s``, ``2500ms``, ``50us``."""
    microseconds = round(seconds * 1e6)
    for unit, size in (("s", 1_000_000), ("ms", 1000)):
        if microseconds % size == 0:
            return f"{microseconds // size}{unit}"
    return f"{microseconds}us"


def percent(share: float, digits: int = 0, *limits: float) -> str:
    """``0.1234`` with one digit → "12.3 %"; with more where rounding would put it on a limit, or on its other
    side: 0.98996 of at least 0.99 is "98.996 %"."""
    while digits < PERCENT_DIGITS_MAX and any(
        not _lie_alike(share, round(share, digits + 2), limit) for limit in limits
    ):
        digits += 1
    return f"{100 * share:.{digits}f} %"


def _lie_alike(share: float, rounded: float, limit: float) -> bool:
    return share == limit or (rounded > limit if share > limit else rounded < limit)


def parse_rate_rps(value: object) -> float:
    """Requests per second of ``2000``, ``2k`` or ``1.5M``; ValueError when it is not a positive rate."""
    match = re.fullmatch(rf"\s*{_NUMBER}([kMG]?)\s*", str(value))
    rate_rps = Decimal(match[1]) * _RATE_SUFFIXES[match[2]] if match else Decimal(0)
    if isinstance(value, bool) or float(rate_rps) == 0:
        raise ValueError(f"not a rate: {value!r}; write requests per second: 2000 or 2k")
    if rate_rps > RATE_MAX_RPS:
        raise ValueError(f"a rate is at most {RATE_MAX_RPS // 10**6}M requests per second: {value!r}")
    return float(rate_rps)


def write_rate(rps: float) -> str:
    """As ``parse_rate_rps`` and the generators read it, to its last digit: ``2000``, ``0.5``, ``1234567``."""
    return f"{Decimal(repr(float(rps))):f}".removesuffix(".0")


def parse_size_bytes(value: object) -> int:
    """Bytes of ``4096``, ``128m`` or ``1g`` (k, m and g are powers of 1024); ValueError otherwise."""
    match = re.fullmatch(r"([0-9]+)([kmgKMG]?)", str(value))
    if match is None:
        raise ValueError(f"not a size: {value!r}; write bytes, or a number with k, m or g: 4096, 128m, 1g")
    size_bytes = int(match[1]) * _SIZE_SUFFIXES[match[2].lower()]
    if size_bytes > SIZE_MAX_BYTES:
        raise ValueError(f"a size is at most {SIZE_MAX_BYTES >> 50} PiB: {value!r}")
    return size_bytes


def format_bytes(count: float) -> str:
    """``1536`` → ``1.5 KiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")
