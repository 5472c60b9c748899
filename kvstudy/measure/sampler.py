"""process.csv and store.csv: once a second, what service, generator and machine did in that second, and the store's counters.

``second`` counts from the start of the measured window; seconds of the warm-up are negative. CPU, bytes and switches are those of the
second, not totals; shares are of all cores; the store's columns are the counters as /metrics has them.
"""

import csv
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from kvstudy.errors import KvstudyError
from kvstudy.measure import metrics

PROCESS_COLUMNS = (
    "second", "interval_s", "service_cpu_s", "generator_cpu_s", "harness_cpu_s", "service_rss_bytes", "generator_rss_bytes",
    "service_read_bytes", "service_written_bytes", "service_switches_voluntary", "service_switches_involuntary", "service_threads",
    "busy_share", "steal_share", "foreign_cpu_share", "throttled_s", "service_jit_cpu_s",
)
COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")  # the JVM's compiler threads, as the kernel cuts their names
LOWEST_PRIORITY = 19
CGROUP_CPU = Path("/sys/fs/cgroup/cpu.stat")


@dataclass(frozen=True)
class _Reading:
    at: float
    service_cpu_s: float
    generator_cpu_s: float
    harness_cpu_s: float
    read_bytes: int
    written_bytes: int
    voluntary: int
    involuntary: int
    busy_s: float
    steal_s: float
    throttled_s: float
    jit_cpu_s: float


class Sampler:
    """``start`` when the generator starts, ``stop`` when it has ended; a thread of its own.

    It shares the cores with what is measured, so it does there what must be done there and the rest at the end, and gives way: its thread
    has the lowest priority.

    ``start_of_window``: ``time.monotonic()`` at which the measured window begins. ``store_metrics``: the service's /metrics, for store.csv.
    """

    def __init__(self, service_pid: int, generator_pid: int, start_of_window: float, process_csv: Path, store_csv: Path,
                 store_metrics: Callable[[], str]):
        self._service = psutil.Process(service_pid)
        self._generator = psutil.Process(generator_pid)
        self._generator_used_s = 0.0
        self._jit_used_s: dict[str, float] = {}
        self._harness = psutil.Process()
        self._start_of_window = start_of_window
        self._paths = process_csv, store_csv
        self._store_metrics = store_metrics
        self._rows: list[dict] = []
        self._store_texts: list[tuple[int, str]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="sampler")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> list[dict]:
        """Writes both files; store.csv only where the service has such counters. Returns the rows of process.csv."""
        self._over.set()
        self._thread.join()
        _write(self._paths[0], PROCESS_COLUMNS, self._rows)
        rows = [{"second": second, **counters} for second, text in self._store_texts if (counters := metrics.parse(text))]
        if rows:
            columns = dict.fromkeys(name for row in rows for name in row)
            _write(self._paths[1], tuple(columns), rows)
        return self._rows

    def _run(self) -> None:
        """Ticks on whole seconds of the measured window, so that a row is one of its seconds."""
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)  # of this thread alone, as Linux has it
        before = self._read()
        second = -int(max(0.0, self._start_of_window - time.monotonic())) - 1
        while True:
            second += 1
            if self._over.wait(max(0.0, self._start_of_window + second - time.monotonic())):
                return
            now = self._read()
            if before is not None and now is not None and now.at - before.at > 0.2:
                self._rows.append(self._row(second - 1, before, now))
                self._ask_store(second - 1)
            before = now

    def _ask_store(self, second: int) -> None:
        try:
            self._store_texts.append((second, self._store_metrics()))
        except KvstudyError:
            return  # the service died or is stopped: the run says so itself; a missing second shows as a gap

    def _row(self, second: int, before: _Reading, now: _Reading) -> dict:
        interval_s = now.at - before.at
        capacity_s = interval_s * (psutil.cpu_count() or 1)
        ours_s = sum(getattr(now, name) - getattr(before, name) for name in ("service_cpu_s", "generator_cpu_s", "harness_cpu_s"))
        busy_s = now.busy_s - before.busy_s
        memory = _rss_bytes(self._service), _rss_bytes(self._generator)
        values = (
            second, interval_s, now.service_cpu_s - before.service_cpu_s, now.generator_cpu_s - before.generator_cpu_s,
            now.harness_cpu_s - before.harness_cpu_s, *memory, now.read_bytes - before.read_bytes, now.written_bytes - before.written_bytes,
            max(0, now.voluntary - before.voluntary), max(0, now.involuntary - before.involuntary), _threads(self._service), busy_s / capacity_s,
            (now.steal_s - before.steal_s) / capacity_s, max(0.0, busy_s - ours_s) / capacity_s, now.throttled_s - before.throttled_s,
            now.jit_cpu_s - before.jit_cpu_s,
        )
        return {name: round(value, 6) if isinstance(value, float) else value for name, value in zip(PROCESS_COLUMNS, values, strict=True)}

    def _read(self) -> _Reading | None:
        """None once the service has ended. A generator that has ended keeps what it used."""
        try:
            with self._service.oneshot():
                times, written = self._service.cpu_times(), _io_bytes(self._service)
        except psutil.Error:
            return None
        machine = machine_times()
        harness = self._harness.cpu_times()
        threads = _threads_of(self._service.pid)
        for number, status in threads.items():
            if status.get("Name") in COMPILERS:  # one that has ended keeps what it used: the JVM ends those that have nothing to do
                self._jit_used_s[number] = max(self._jit_used_s.get(number, 0.0), _cpu_s(self._service.pid, number))
        return _Reading(time.monotonic(), times.user + times.system, self._generator_cpu_s(), harness.user + harness.system, *written,
                        *_context_switches(threads), *machine, throttled_s(), sum(self._jit_used_s.values()))

    def _generator_cpu_s(self) -> float:
        try:
            times = self._generator.cpu_times()
            self._generator_used_s = times.user + times.system
        except psutil.Error:
            pass
        return self._generator_used_s


def machine_times() -> tuple[float, float]:
    """Seconds that the cores were busy for this machine, and seconds stolen by its host, both summed over cores since boot."""
    times = psutil.cpu_times()
    steal = getattr(times, "steal", 0.0)
    waiting = times.idle + getattr(times, "iowait", 0.0)
    guest = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # already inside user and nice
    return sum(times) - waiting - steal - guest, steal


def throttled_s() -> float:
    """Seconds this cgroup was kept off the cores by its CPU quota, since it exists; 0 where there is none."""
    try:
        for line in CGROUP_CPU.read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(" ")
            if name == "throttled_usec":
                return int(value) / 1e6
    except OSError:
        pass
    return 0.0


def _io_bytes(process: psutil.Process) -> tuple[int, int]:
    try:
        counters = process.io_counters()
    except (psutil.Error, AttributeError):
        return 0, 0
    return counters.read_bytes, counters.write_bytes


def _threads_of(pid: int) -> dict[str, dict[str, str]]:
    """Number → what the kernel tells of each thread, by its names."""
    told = {}
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            text = status.read_text(encoding="ascii", errors="replace")
        except OSError:
            continue  # the thread has ended
        told[status.parent.name] = {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
    return told


def _context_switches(threads: dict[str, dict[str, str]]) -> tuple[int, int]:
    """Voluntary and involuntary ones of all threads: what the kernel gives for a process is its first thread's alone."""
    return tuple(sum(int(status.get(f"{kind}_ctxt_switches", 0)) for status in threads.values()) for kind in ("voluntary", "nonvoluntary"))


def _cpu_s(pid: int, thread: str) -> float:
    """CPU seconds of a thread so far; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/task/{thread}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def _threads(process: psutil.Process) -> int:
    try:
        return process.num_threads()
    except psutil.Error:
        return 0


def _write(path: Path, columns: tuple[str, ...], rows: list[dict]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
