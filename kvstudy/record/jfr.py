"""events.json: GC pauses, safepoints and the store's own events of a run, converted from its JFR recording
before sealing.

{"gc": [{"kind": "gc_pause", "start_utc": "2026-11-20T20:41:07.123456Z", "duration_ms": 3.1, "attributes":
{…}}], "safepoints": […],
 "store": […]}
"""

import json
from dataclasses import dataclass
from datetime import datetime

from kvstudy.errors import FormatError

GROUPS = ("gc", "safepoints", "store")


@dataclass(frozen=True)
class Event:
    """``start_epoch_s``: seconds since the epoch; ``duration_ms`` ≥ 0; ``attributes``: what the event carries
    (bytes, cause, …)."""

    kind: str
    start_epoch_s: float
    duration_ms: float
    attributes: dict


def read(text: str, file: str) -> list[Event]:
    """Every event, by start time; ``file``: the text's name, for errors. FormatError names the entry that is
    not an event."""
    try:
        groups = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(file, error.lineno, f"not JSON: {error.msg}") from None
    if not isinstance(groups, dict) or (unknown := set(groups) - set(GROUPS)):
        what = (
            "not an object"
            if not isinstance(groups, dict)
            else f"unknown groups: {', '.join(sorted(unknown))}"
        )
        raise FormatError(file, None, f"{what}, expected={', '.join(GROUPS)}")
    for group, entries in groups.items():
        if not isinstance(entries, list):
            raise FormatError(file, None, f"not a list: {group}")
    events = [
        _event(file, group, at, entry) for group in GROUPS for at, entry in enumerate(groups.get(group, []))
    ]
    return sorted(events, key=lambda event: (event.start_epoch_s, event.kind, event.duration_ms))


def _event(file: str, group: str, at: int, entry: dict) -> Event:
    try:
        duration_ms = float(entry["duration_ms"])
        if not duration_ms >= 0:
            raise ValueError(f"duration_ms={duration_ms}")
        return Event(
            str(entry["kind"]), epoch_s(entry["start_utc"]), duration_ms, dict(entry.get("attributes") or {})
        )
    except (KeyError, TypeError, ValueError) as reason:
        raise FormatError(
            file, None, f"not an event: {group}[{at}]: {type(reason).__name__} {reason}"
        ) from None


def epoch_s(utc: str) -> float:
    """Seconds since the epoch of an ISO-8601 time with its zone; ValueError for one without."""
    moment = datetime.fromisoformat(utc)
    if moment.tzinfo is None:
        raise ValueError(f"time without a zone: {utc}")
    return moment.timestamp()
