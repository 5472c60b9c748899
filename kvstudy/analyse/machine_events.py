"""What the machine did to a run, as events beside the JVM's and the store's: from process.csv and the service
times.

    cpu_steal        the host took CPU time from the machine
    cpu_foreign      other processes used the CPU
    cpu_throttled    a CPU quota held the run back
    service_stopped  no connection was answered for a while, and neither the JVM nor the store reports a pause
    that long: the process
                     was paused, swapped out or starved

The first three last the share of the machine's CPU time that was lost, times the second, one for each second
of a row; they count only where the validity checks would not let it pass. A stop shows in the service times:
all connections wait equally long and are answered in the same moment, so about as many answers as there are
connections take about as long as the longest. It ended when they came; where the generator kept no single
answers that is not known, and the middle of the second is taken. With fewer than four connections a stop
cannot be told from a slow request.
"""

import numpy as np

from kvstudy.analyse.evidence import ends_s
from kvstudy.analyse.validity import FOREIGN_SHARE_PASS, STEAL_SHARE_PASS
from kvstudy.record.hdr import Histogram
from kvstudy.record.jfr import Event

STOP_MS_MIN = 50.0
_STOP_TIMES_MEDIAN_MIN = 20.0  # longer than the second's median by so much: no mere queue
_CONNECTIONS_MIN = 4
_PAUSES = ("gc_pause", "safepoint", "write_stall", "wal_sync")


def process_events(process: dict[str, np.ndarray], start_epoch_s: float) -> list[Event]:
    """Events of the measured seconds, by time. ``process``: kvstudy.record.process_series; ``start_epoch_s``:
    of the measured window."""
    ended_s = ends_s(process)
    measured = ended_s > 0
    end_s = ended_s[measured]
    length_s = process["interval_s"][measured] if "interval_s" in process else np.ones(len(end_s))
    lost: dict[str, np.ndarray] = {}
    for kind, column, passes in (
        ("cpu_steal", "steal_share", STEAL_SHARE_PASS),
        ("cpu_foreign", "foreign_cpu_share", FOREIGN_SHARE_PASS),
    ):
        if column in process:
            share = process[column][measured]
            lost[kind] = np.where(share > passes, share, 0.0)
    if "throttled_s" in process:
        lost["cpu_throttled"] = process["throttled_s"][measured] / length_s
    events = [
        Event(
            kind,
            start_epoch_s + begin_s,
            round(1e3 * float(share[row]) * part_s, 3),
            {"share": round(float(share[row]), 4)},
        )
        for kind, share in lost.items()
        for row in np.flatnonzero(np.nan_to_num(share) > 0)
        for begin_s, part_s in _seconds(float(end_s[row]), float(length_s[row]))
        if begin_s + part_s > 0
    ]
    return sorted(events, key=lambda event: (event.start_epoch_s, event.kind))


def _seconds(end_s: float, length_s: float) -> list[tuple[float, float]]:
    """Begin and length of the seconds that a row is of: more than one where it was read late. Nobody knows in
    which of them it was."""
    count = max(1, round(length_s))
    return [(end_s - count + number, length_s / count) for number in range(count)]


def stops(
    service_seconds: list[tuple[int, Histogram]],
    connections: int,
    events: list[Event],
    start_epoch_s: float,
    slowest: dict[str, np.ndarray],
) -> list[Event]:
    """``service_stopped`` events. ``service_seconds``: second of the window and its service times;
    ``events``: what is known already; ``slowest``: kvstudy.record.slowest."""
    answered_s = (slowest["due_us"] + slowest["response_us"]) / 1e6
    found = []
    pauses = [event for event in events if event.kind in _PAUSES]
    for second, histogram in service_seconds:
        longest_ms = histogram.max_us / 1e3
        if connections < _CONNECTIONS_MIN or not longest_ms >= max(
            STOP_MS_MIN, _STOP_TIMES_MEDIAN_MIN * histogram.percentile_us(50) / 1e3
        ):
            continue
        waited = histogram.count_above(histogram.max_us / 2)
        if not 0.75 * connections <= waited <= 2 * connections:
            continue
        ended = answered_s[(slowest["service_us"] > histogram.max_us / 2) & (np.floor(answered_s) == second)]
        end_s = start_epoch_s + (float(np.median(ended)) if len(ended) else second + 0.5)
        if not any(
            pause.duration_ms >= longest_ms / 2
            and pause.start_epoch_s <= end_s + 0.5
            and pause.start_epoch_s + pause.duration_ms / 1e3 >= end_s - 0.5 - longest_ms / 1e3
            for pause in pauses
        ):
            found.append(
                Event(
                    "service_stopped",
                    end_s - longest_ms / 1e3,
                    round(longest_ms, 3),
                    {"connections_waiting": waited},
                )
            )
    return found
