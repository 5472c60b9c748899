"""JFR recording → events.json and store.csv: GC pauses, safepoints and the store's own events, each with UTC
start and duration; and the store's counters, once a second.

``jfr print --json`` of the JDK does the reading; it runs before sealing, so that analysis starts no process.
"""

import json
import math
import re
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kvstudy.errors import FormatError
from kvstudy.subject.jdk import Jdk

RECORDING_SETTINGS = Path(__file__).with_name("recording.jfc")
EVENT_NAMES = (
    "jdk.GarbageCollection,jdk.GCPhasePause,jdk.SafepointBegin,jdk.SafepointEnd,jdk.ExecuteVMOperation,kv.*"
)
COUNTERS = "kv.Counters"
NOT_ATTRIBUTES = frozenset({"startTime", "duration", "eventThread", "stackTrace"})
PRINT_TIMEOUT_S = 120


@dataclass(frozen=True)
class Recording:
    """``events``: ``{"gc": […], "safepoints": […], "store": […]}``; ``counters``: UTC → the store's and the
    cache's counters by name, times in ms; none where the service has no store."""

    events: dict[str, list[dict]]
    counters: dict[str, dict[str, float]]


def read_recording(recording: Path, jdk: Jdk) -> Recording:
    """FormatError when the recording cannot be read."""
    try:
        printed = subprocess.run(
            [jdk.tool("jfr"), "print", "--json", "--events", EVENT_NAMES, str(recording)],
            capture_output=True,
            text=True,
            timeout=PRINT_TIMEOUT_S,
            start_new_session=True,  # a notebook's interrupt goes to all of the kernel's group
        )
    except subprocess.TimeoutExpired:
        raise FormatError(str(recording), None, f"could not be printed within {PRINT_TIMEOUT_S} s") from None
    try:
        events = json.loads(printed.stdout)["recording"]["events"]
    except (ValueError, KeyError):
        raise FormatError(
            str(recording),
            None,
            f"not a readable recording: {(printed.stderr or printed.stdout).strip()[:200]}",
        ) from None
    return Recording(
        sorted_events([event for event in events if event["type"] != COUNTERS]),
        {
            _utc_ms(event["values"]["startTime"]): _counters(event["values"])
            for event in events
            if event["type"] == COUNTERS
        },
    )


def counters_by_second(
    counters: dict[str, dict[str, float]], window: datetime, from_s: float, to_s: float
) -> list[dict[str, float]]:
    """Rows of store.csv, by time. ``second`` counts from the start of the measured ``window``, ``at_s`` says
    when in it the counters were read. Those read before ``from_s`` or after ``to_s`` of the window are of the
    restore and of the data check, not of the load."""
    rows = []
    for utc, values in sorted(counters.items()):
        at_s = (datetime.fromisoformat(utc) - window).total_seconds()
        if from_s <= at_s < to_s:
            rows.append({"second": math.floor(at_s), "at_s": round(at_s, 3), **values})
    return rows


def _counters(values: dict) -> dict[str, float]:
    """Times as jfr prints them become milliseconds: ``flushTime: PT0.1S`` → ``flush_time_ms: 100``."""
    fields = {}
    for name, value in values.items():
        if name not in NOT_ATTRIBUTES:
            is_time = isinstance(value, str)
            fields[_snake_case(name) + ("_ms" if is_time else "")] = _duration_ms(value) if is_time else value
    return fields


def sorted_events(events: list[dict]) -> dict:
    """From ``jfr print``'s events to ours, by start."""
    events = sorted(events, key=lambda event: event["values"]["startTime"])
    of_type: dict[str, list[dict]] = {}
    for event in events:
        of_type.setdefault(event["type"], []).append(event["values"])
    causes = {values["gcId"]: values["cause"] for values in of_type.get("jdk.GarbageCollection", [])}
    gc = [
        _event(
            "gc_pause",
            values,
            {"gc_id": values["gcId"], "name": values["name"], "cause": causes.get(values["gcId"])},
        )
        for values in of_type.get("jdk.GCPhasePause", [])
    ]
    store = [
        _event(
            _snake_case(event["type"].removeprefix("kv.")),
            event["values"],
            {
                _snake_case(name): value
                for name, value in event["values"].items()
                if name not in NOT_ATTRIBUTES
            },
        )
        for event in events
        if event["type"].startswith("kv.")
    ]
    return {"gc": gc, "safepoints": _safepoints(of_type), "store": store}


def _safepoints(of_type: dict[str, list[dict]]) -> list[dict]:
    """One per safepoint, from the request to stop until the threads run again."""
    ends = {values["safepointId"]: values for values in of_type.get("jdk.SafepointEnd", [])}
    operations = {
        values["safepointId"]: values["operation"]
        for values in of_type.get("jdk.ExecuteVMOperation", [])
        if values["safepoint"]
    }
    safepoints = []
    for begin in of_type.get("jdk.SafepointBegin", []):
        end = ends.get(begin["safepointId"])
        if end is None:
            continue  # the recording ended inside it
        length_ms = (_epoch_ns(end["startTime"]) - _epoch_ns(begin["startTime"])) / 1e6 + _duration_ms(
            end["duration"]
        )
        event = _event(
            "safepoint",
            begin,
            {
                "operation": operations.get(begin["safepointId"]),
                "time_to_safepoint_ms": _duration_ms(begin["duration"]),
            },
        )
        safepoints.append(event | {"duration_ms": round(length_ms, 6)})
    return safepoints


def _event(kind: str, values: dict, attributes: dict) -> dict:
    return {
        "kind": kind,
        "start_utc": _utc_ms(values["startTime"]),
        "duration_ms": _duration_ms(values.get("duration")),
        "attributes": attributes,
    }


def _utc_ms(instant: str) -> str:
    """``2026-11-20T20:21:08.968253979Z`` → the same to the microsecond, which is what Python's datetime
    keeps."""
    return re.sub(r"(\.\d{6})\d*Z$", r"\1Z", instant)


def _epoch_ns(instant: str) -> int:
    seconds, _, fraction = instant.removesuffix("Z").partition(".")
    return int(datetime.fromisoformat(seconds).replace(tzinfo=UTC).timestamp()) * 1_000_000_000 + int(
        fraction.ljust(9, "0")[:9] or 0
    )


def _duration_ms(duration: str | None) -> float:
    """ISO 8601 as jfr prints it: ``PT0.0034S``, ``PT1M2.5S``, also negative or absent (0)."""
    match = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(-?[\d.]+)S)?", duration or "PT0S")
    if match is None:
        return 0.0
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return round((hours * 3600 + minutes * 60 + seconds) * 1000, 6)


def _snake_case(name: str) -> str:
    """``WriteStall`` → ``write_stall``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
