"""process.csv: once a second, what service, generator and machine did in that second.

``second`` counts from the start of the measured window; seconds of the warm-up are negative. CPU, bytes and
switches are those of the second, not totals; shares are of all cores.

Whose CPU time it was is asked of the processes, each of which the kernel counts by the clock. What it tells
of the machine's cores it counts by looking at them 100 to 1 000 times a second, and a load at a constant rate
can be in step with that: at 20 000 and 40 000 requests per second it saw up to a third more work than there
was. That count is used where not all processes can be seen, as in a container.
"""

import csv
import math
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

import psutil

from kvstudy.measure.kernel_counts import (
    Pacer,
    Processes,
    ProcessTexts,
    Threads,
    ThreadTexts,
    Usage,
    usage_between,
)

PROCESS_COLUMNS = (
    "second",
    "interval_s",
    "ended_s",  # since the window began; who was woken late ends it behind its second
    "service_cpu_s",
    "generator_cpu_s",
    "harness_cpu_s",
    "service_rss_bytes",
    "generator_rss_bytes",
    "service_read_bytes",
    "service_written_bytes",
    "service_switches_voluntary",
    "service_switches_involuntary",
    "service_threads",
    "busy_share",
    "steal_share",
    "foreign_cpu_share",
    "throttled_s",
    "service_jit_cpu_s",
)
OF_THE_SERVICE = frozenset(name for name in PROCESS_COLUMNS if name.startswith("service_"))
OF_THE_GENERATOR = frozenset(name for name in PROCESS_COLUMNS if name.startswith("generator_"))
ON_TIME_S = 0.1  # who wakes so near a second ends it
# What is not known of a service whose processes are not.
NEED_THE_SERVICE = OF_THE_SERVICE | {"foreign_cpu_share"}
LOWEST_PRIORITY = 19
CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class _Reading:
    at: float
    generator_cpu_s: float
    harness_cpu_s: float
    generator_rss: int
    read_bytes: int
    written_bytes: int
    busy_s: float
    steal_s: float
    throttled: dict[Path, float]
    threads: tuple[ThreadTexts, ...]
    processes: ProcessTexts


class Transferred:
    """Bytes that several processes have read and written; of one that has ended what was known last."""

    def __init__(self, pids: tuple[int, ...]):
        self._known: dict[psutil.Process, tuple[int, int]] = {}
        for pid in pids:
            with suppress(psutil.Error):  # it has ended since they were looked for
                self._known[psutil.Process(pid)] = 0, 0

    def read_and_written(self) -> tuple[int, int]:
        for process, before in self._known.items():
            read, written = _io_bytes(process)
            self._known[process] = max(read, before[0]), max(written, before[1])
        read_bytes, written_bytes = map(sum, zip((0, 0), *self._known.values(), strict=True))
        return read_bytes, written_bytes


class Sampler:
    """``start`` when the generator starts, ``stop`` when it has ended; a thread of its own. ``service_pids``:
    the processes of the service, the first of which lives as long as it; none where they are not known: then
    there are no columns of it, and nobody knows whose the rest is. None: it is on another host; so is a
    generator whose pid is None; there are no columns of what is elsewhere.

    What the service starts meanwhile is its own too, by its session or by who started it: CPU, memory and
    threads, which the text says that is read of every process. Bytes and switches, which would cost further
    files, are those of ``service_pids`` alone.

    It shares the cores with what is measured, and must not be what makes a second slow. Its thread has the
    lowest priority, which alone does not help: a kernel lets a thread that runs finish its tick, 4 ms of it.
    So it never holds a core for longer than one small reading (some 20 to 200 µs): it breathes between two of
    them, the long ones, of all threads and all processes, are cut in many, and what they say is worked out at
    the end.

    ``start_of_window``: ``time.monotonic()`` at which the measured window begins.
    """

    def __init__(
        self,
        service_pids: tuple[int, ...] | None,
        generator_pid: int | None,
        start_of_window: float,
        process_csv: Path,
    ):
        left_out = (
            OF_THE_SERVICE if service_pids is None else frozenset() if service_pids else NEED_THE_SERVICE
        ) | (OF_THE_GENERATOR if generator_pid is None else frozenset())
        self._cpu_groups = cpu_groups()
        left_out |= frozenset() if throttled_by_group(self._cpu_groups) else {"throttled_s"}
        self._columns = tuple(name for name in PROCESS_COLUMNS if name not in left_out)
        service_pids = service_pids or ()
        self._service = frozenset(str(pid).encode() for pid in service_pids)
        self._transferred = Transferred(service_pids)
        self._generator = None if generator_pid is None else psutil.Process(generator_pid)
        self._generator_used_s = 0.0
        self._harness = psutil.Process()
        self._threads = [Threads(pid) for pid in service_pids]
        self._processes = Processes(service_pids, {generator_pid, self._harness.pid} - {None})
        self._start_of_window = start_of_window
        self._process_csv = process_csv
        self._readings: list[tuple[int, _Reading]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="sampler")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> list[dict]:
        """Writes the file and returns its rows."""
        self._over.set()
        self._thread.join()
        for threads in self._threads:
            threads.close()
        usages = usage_between([reading.processes for _, reading in self._readings], self._service)
        rows = [
            self._row(second - 1, before, now, usage)
            for ((_, before), (second, now)), usage in zip(pairwise(self._readings), usages, strict=True)
            if now.at - before.at > 0.2
        ]
        rows = [{name: row[name] for name in self._columns} for row in rows]
        write_series(self._process_csv, self._columns, rows)
        return rows

    def _run(self) -> None:
        """Reads at the start and then at whole seconds of the measured window, so that a row is one of its
        seconds; and at the end, since on a busy machine the last reading may have been seconds before."""
        os.setpriority(
            os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY
        )  # of this thread alone, as Linux has it
        second = -int(max(0.0, self._start_of_window - time.monotonic())) - 1
        while (now := self._read()) is not None:
            second = max(second, math.floor(now.at - self._start_of_window))
            self._readings.append((second, now))
            second = max(second + 1, math.ceil(time.monotonic() - self._start_of_window))
            if self._over.wait(max(0.0, self._start_of_window + second - time.monotonic())):
                break
        if now is None or time.monotonic() - now.at <= 1.0:
            return
        if (last := self._read()) is not None:
            passed_s = round(last.at - self._start_of_window)
            self._readings.append((max(self._readings[-1][0] + 1, passed_s), last))

    def _row(self, second: int, before: _Reading, now: _Reading, usage: Usage) -> dict:
        interval_s = now.at - before.at
        capacity_s = interval_s * (psutil.cpu_count() or 1)
        generator_s = now.generator_cpu_s - before.generator_cpu_s
        harness_s = now.harness_cpu_s - before.harness_cpu_s
        ours_s = usage.service_cpu_s + generator_s + harness_s
        if now.processes.are_all:
            foreign_s = usage.others_cpu_s
            busy_s = ours_s + foreign_s
        else:
            busy_s = now.busy_s - before.busy_s
            foreign_s = max(0.0, busy_s - ours_s)
        switches_before, switches = (
            tuple(map(sum, zip((0, 0), *(one.switches() for one in reading.threads), strict=True)))
            for reading in (before, now)
        )
        values = (
            second,
            interval_s,
            _or_on_time(now.at - self._start_of_window, second + 1.0),
            usage.service_cpu_s,
            generator_s,
            harness_s,
            usage.service_rss_bytes,
            now.generator_rss,
            now.read_bytes - before.read_bytes,
            now.written_bytes - before.written_bytes,
            max(0, switches[0] - switches_before[0]),
            max(0, switches[1] - switches_before[1]),
            usage.service_threads,
            busy_s / capacity_s,
            (now.steal_s - before.steal_s) / capacity_s,
            foreign_s / capacity_s,
            _most_throttled_s(before.throttled, now.throttled),
            sum(one.jit_cpu_s() for one in now.threads) - sum(one.jit_cpu_s() for one in before.threads),
        )
        return {
            name: round(value, 6) if isinstance(value, float) else value
            for name, value in zip(PROCESS_COLUMNS, values, strict=True)
        }

    def _read(self) -> _Reading | None:
        """None once the service has ended. A generator that has ended keeps what it used."""
        at, pause = time.monotonic(), Pacer()
        of_service = self._processes.of_service()
        if of_service is None:
            return None
        pause()
        read_bytes, written_bytes = self._transferred.read_and_written()
        pause()
        generator_cpu_s = self._generator_cpu_s()
        pause()
        busy_s, steal_s = machine_times()
        pause()
        harness = self._harness.cpu_times()
        pause()
        generator_rss = _rss_bytes(self._generator) if self._generator else 0
        pause()
        throttled = throttled_by_group(self._cpu_groups)
        return _Reading(
            at,
            generator_cpu_s,
            harness.user + harness.system,
            generator_rss,
            read_bytes,
            written_bytes,
            busy_s,
            steal_s,
            throttled,
            threads=tuple(threads.read(pause) for threads in self._threads),
            processes=self._processes.read(of_service, pause),
        )

    def _generator_cpu_s(self) -> float:
        if self._generator is None:
            return 0.0
        try:
            times = self._generator.cpu_times()
            self._generator_used_s = times.user + times.system
        except psutil.Error:
            pass
        return self._generator_used_s


def machine_times() -> tuple[float, float]:
    """Seconds that the cores were busy for this machine, and seconds stolen by its host, both summed over
    cores since boot."""
    times = psutil.cpu_times()
    steal = getattr(times, "steal", 0.0)
    waiting = times.idle + getattr(times, "iowait", 0.0)
    guest = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # already inside user and nice
    return sum(times) - waiting - steal - guest, steal


def throttled_by_group(groups: list[Path]) -> dict[Path, float]:
    """Seconds in which a CPU quota of each of these control groups kept it off the cores since it exists; 0
    where it has none. Without a group where that cannot be seen. Version 2 counts microseconds, version 1
    nanoseconds."""
    found = {}
    for folder in groups:
        with suppress(OSError, ValueError):
            counts = dict(line.split() for line in (folder / "cpu.stat").read_text("ascii").splitlines())
            found[folder] = (
                int(counts.get("throttled_usec", 0)) / 1e6 + int(counts.get("throttled_time", 0)) / 1e9
            )
    return found


def _or_on_time(ended_s: float, planned_s: float) -> float:
    return planned_s if abs(ended_s - planned_s) < ON_TIME_S else ended_s


def _most_throttled_s(before: dict[Path, float], now: dict[Path, float]) -> float:
    """Of any group: several may have been kept off at once."""
    return max((used - before.get(group, used) for group, used in now.items()), default=0.0)


def cpu_groups(cgroups: Path = CGROUPS, own: Path = OWN_CGROUPS) -> list[Path]:
    """Folders of our control groups that count what CPU quotas took, and of those above them."""
    try:
        lines = own.read_text("ascii", errors="replace").splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        place = PurePosixPath(path.lstrip("/"))
        # Controllers that are mounted together may be named in another order there.
        roots = [cgroups / name for name in dict.fromkeys((controllers, "cpu"))] if controllers else [cgroups]
        folders += [root / one for root in roots for one in (place, *place.parents)]
    return [folder for folder in folders if (folder / "cpu.stat").is_file()]


def _io_bytes(process: psutil.Process) -> tuple[int, int]:
    try:
        counters = process.io_counters()
    except (psutil.Error, AttributeError):
        return 0, 0
    return counters.read_bytes, counters.write_bytes


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def write_series(path: Path, columns: tuple[str, ...], rows: list[dict]) -> None:
    """A row per second; a cell that a row lacks stays empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
