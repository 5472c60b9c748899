"""Durations, rates and sizes as people write them in experiment files, and back.

``10s 500ms 1.5m 2h`` → seconds; ``2000 2k 1.5M`` → requests per second; ``128m 1g 4096`` → bytes (powers of
1024). A bare number is no duration: 10 could be seconds or minutes, so the unit has to be said.
"""

import re

_DURATION_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_RATE_SUFFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_SIZE_SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_duration_s(text: object) -> float:
    """Seconds of ``500ms``, ``10s``, ``1.5m`` or ``2h``; ValueError says what a duration looks like."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|m|h)\s*", text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"not a duration: {text!r}; write a number and its unit: 500ms, 10s, 1.5m, 2h")
    return float(match[1]) * _DURATION_UNITS_S[match[2]]


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
    """As ``parse_duration_s`` reads it, exact to the microsecond: ``5s``, ``2500ms``, ``50us``."""
    microseconds = round(seconds * 1e6)
    for unit, size in (("s", 1_000_000), ("ms", 1000)):
        if microseconds % size == 0:
            return f"{microseconds // size}{unit}"
    return f"{microseconds}us"


def duration_argument(seconds: float) -> str:
    """A duration as loadgen takes it on its command line, exact to the millisecond: ``8s``, ``2500ms``."""
    return write_duration(round(seconds * 1000) / 1000)


def parse_rate_rps(value: object) -> float:
    """Requests per second of ``2000``, ``2k`` or ``1.5M``; ValueError when it is not a positive rate."""
    if isinstance(value, bool):
        raise ValueError(f"not a rate: {value!r}; write requests per second: 2000 or 2k")
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)([kMG]?)\s*", str(value))
    if match is None or float(match[1]) == 0:
        raise ValueError(f"not a rate: {value!r}; write requests per second: 2000 or 2k")
    return float(match[1]) * _RATE_SUFFIXES[match[2]]


def parse_size_bytes(value: object) -> int:
    """Bytes of ``4096``, ``128m`` or ``1g`` (k, m and g are powers of 1024); ValueError otherwise."""
    match = re.fullmatch(r"(\d+)([kmgKMG]?)", str(value))
    if match is None:
        raise ValueError(f"not a size: {value!r}; write bytes, or a number with k, m or g: 4096, 128m, 1g")
    return int(match[1]) * _SIZE_SUFFIXES[match[2].lower()]


def format_bytes(count: float) -> str:
    """``1536`` → ``1.5 KiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")
