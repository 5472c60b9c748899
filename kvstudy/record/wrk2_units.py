"""Quantities as wrk and wrk2 print them: `630.00us`, `5.32s `, `11.83k`, `43.13MB`, `96.55%`, `-nan`.

Times come out in microseconds, sizes in bytes (wrk's K is 1024), counts and rates as they are. `-nan` (an
empty histogram) is NaN: unknown, not zero. Everything else that is not a number with a known unit raises
ValueError.
"""

import re

_QUANTITY = re.compile(r"(?P<number>-?nan|\d+(?:\.\d+)?)(?P<unit>[A-Za-z%]*)\s*\Z")

TIME_UNITS_US = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6, "usec": 1.0, "msec": 1e3}
COUNT_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
SIZE_UNITS_BYTES = {"B": 1.0, "KB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40, "PB": 2.0**50}


def _quantity(text: str, units: dict[str, float], what: str) -> float:
    match = _QUANTITY.match(text.strip())
    if match is None:
        raise ValueError(f"not a {what}: {text.strip()!r}")
    number, unit = match["number"], match["unit"]
    if unit not in units:
        raise ValueError(
            f"not a {what}, unit unknown: {text.strip()!r}, known={' '.join(filter(None, units))}"
        )
    return float("nan") if number.endswith("nan") else float(number) * units[unit]


def time_us(text: str) -> float:
    """`0.94ms` → 940.0; units us, ms, s, m (minutes), h, and the older usec, msec."""
    return _quantity(text, TIME_UNITS_US, "time")


def count(text: str) -> float:
    """`11.83k` → 11830.0."""
    return _quantity(text, COUNT_UNITS, "number")


def size_bytes(text: str) -> float:
    """`43.13MB` → 45225083 (rounded by wrk to two decimals of the unit)."""
    return _quantity(text, SIZE_UNITS_BYTES, "size")


def share_percent(text: str) -> float:
    """`96.55%` → 96.55."""
    return _quantity(text, {"%": 1.0}, "share")
