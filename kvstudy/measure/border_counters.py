"""What each of two sides has used when a slice's counted part begins and when it ends: CPU in nanoseconds,
compilers, bytes written; and what the machine's host and other programs took meanwhile.

CPU is a process's own clock, which the kernel keeps by nanoseconds and which holds the time of threads that
have ended. The compilers' part is read from their threads; one that has ended keeps what it had used when it
was last seen.

A side is all members of its sessions and all that these start, also into a session of its own: what it starts
later counts as its own from its first moment, and what ends keeps what it had used when it was last seen.

Borders are known before: loadgen starts at a given time (``--start-at``). A thread sleeps until each and
reads both sides first, some 0.2 ms of work; when it began and when it had done so is kept too, since on a
busy machine it may come late. The wall clock is asked once, at the beginning, and all else goes by the
monotonic one; ``clock_step_ns`` says by how much the former was set meanwhile."""

import os
import re
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from kvstudy.hosts.process import names_in
from kvstudy.measure.kernel_counts import parent_of
from kvstudy.plan.comparison import SIDES
from kvstudy.subject.evidence.jvm import COMPILER_THREADS

SHORT_SLEEP_S = 0.5  # nobody waits longer than this for the thread to notice that it is over
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_WRITTEN = re.compile(rb"^write_bytes: (\d+)", re.MULTILINE)
_STEAL = 8  # of the line `cpu` of /proc/stat
_KERNELS_FIRST_THREAD = "2"


@dataclass(frozen=True)
class Used:
    """By one process since it began."""

    cpu_ns: int
    compiler_ns: int
    written_bytes: int


@dataclass(frozen=True)
class Border:
    """``read_at_ns``, ``done_at_ns``: when the sides began to be read, and when they had been; UTC by the
    monotonic clock. ``sides``: by name, those whose processes are known. ``others_ns``: CPU of every
    other process by its number; None where not all can be seen. ``steal_ns``: of all cores since boot."""

    read_at_ns: int
    sides: Mapping[str, Used]
    others_ns: Mapping[str, int] | None = None
    steal_ns: int = 0
    done_at_ns: int = 0


@dataclass(frozen=True)
class Taken:
    """What the machine's host and other programs used from one border to another, in core nanoseconds.
    ``time_ns``: how long that was; ``foreign_ns``: None where it is not known."""

    time_ns: int
    steal_ns: int
    foreign_ns: int | None


def cpu_clock(pid: int) -> int:
    """The id of a process's CPU clock, made as clock_getcpuclockid(3) makes it: the number, negated, and 2
    for CPU time of a whole process."""
    return (~pid << 3) | 2


class ProcessCounters:
    """Reads one process; None once it has ended."""

    def __init__(self, pid: int):
        self._clock = cpu_clock(pid)
        self._folder = f"/proc/{pid}"
        self._is_compiler: dict[str, bool] = {}
        self._compiler_ns: dict[str, int] = {}

    def read(self) -> Used | None:
        try:
            cpu_ns = time.clock_gettime_ns(self._clock)
        except OSError:
            return None
        return Used(cpu_ns, self._compilers(), self._written())

    def _compilers(self) -> int:
        for number in names_in(f"{self._folder}/task"):
            if number not in self._is_compiler:
                self._is_compiler[number] = (
                    _read(f"{self._folder}/task/{number}/comm").strip() in COMPILER_THREADS
                )
            if self._is_compiler[number] and (
                fields := _read(f"{self._folder}/task/{number}/schedstat").split()
            ):
                self._compiler_ns[number] = int(fields[0])
        return sum(self._compiler_ns.values())

    def _written(self) -> int:
        """0 where the kernel does not say, as for processes of others."""
        found = _WRITTEN.search(_read(f"{self._folder}/io"))
        return int(found[1]) if found else 0


class SideCounters:
    """Reads all processes of a side together; None once the first of them has ended. One of the others that
    ends keeps what it had used when it was last read."""

    def __init__(self, pids: Iterable[int]):
        self._first, *others = pids
        self._processes = {pid: ProcessCounters(pid) for pid in (self._first, *others)}
        self._last: dict[int, Used] = {}
        self._ended: list[Used] = []

    @property
    def pids(self) -> Collection[int]:
        return self._processes.keys()

    def read(self) -> Used | None:
        for pid, process in list(self._processes.items()):
            used = process.read()
            if used is None and pid == self._first:
                return None
            if used is None:
                del self._processes[pid]
                self._ended += [self._last.pop(pid)] if pid in self._last else []
            else:
                self._last[pid] = used
        return self._sum()

    def joined(self, pids: Iterable[int]) -> Used:
        """Takes in what the side has started since then; the sum with it."""
        for pid in set(pids) - self._processes.keys():
            process = ProcessCounters(pid)
            if (used := process.read()) is not None:
                self._processes[pid], self._last[pid] = process, used
        return self._sum()

    def _sum(self) -> Used:
        read = [*self._ended, *self._last.values()]
        return Used(
            *(sum(getattr(one, name) for one in read) for name in ("cpu_ns", "compiler_ns", "written_bytes"))
        )


def taken(before: Border, now: Border) -> Taken:
    """Programs that ended in between are left out. A side whose processes are not known is not counted as
    foreign either: nobody knows which of the others it is."""
    foreign_ns = None
    if {*SIDES} <= before.sides.keys() & now.sides.keys() and None not in (before.others_ns, now.others_ns):
        foreign_ns = sum(max(0, used - before.others_ns.get(one, 0)) for one, used in now.others_ns.items())
    return Taken(now.done_at_ns - before.done_at_ns, now.steal_ns - before.steal_ns, foreign_ns)


@dataclass
class BorderReader:
    """``with BorderReader(pids, borders_ns, ours) as reader: …``; then ``reader.at[border_ns]``, of the
    borders that were read.

    ``pids``: of the sides by name, the one that was started first; none where they are not known.
    ``borders_ns``: UTC. ``ours``: numbers of processes that are not foreign, the generator's and our own;
    more of them may be added while it goes on.
    """

    pids: Mapping[str, tuple[int, ...]]
    borders_ns: Collection[int]
    ours: set[int]
    at: dict[int, Border] = field(default_factory=dict)
    clock_step_ns: int = 0

    def __enter__(self) -> "BorderReader":
        self._wall_minus_monotonic_ns = _wall_minus_monotonic_ns()
        self._sessions = {
            os.getsid(pid): name for name, pids in self.pids.items() for pid in pids if _leads_session(pid)
        }
        self._strangers: set[int] = set()
        self._counters = {name: SideCounters(pids) for name, pids in self.pids.items() if pids}
        self._all_are_seen = _KERNELS_FIRST_THREAD in names_in("/proc") and b"kthreadd" in _read(
            f"/proc/{_KERNELS_FIRST_THREAD}/comm"
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="borders")
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        self._read()  # the first time costs more: each thread is asked for its name
        for border_ns in sorted(set(self.borders_ns)):
            while (left_s := (border_ns - self._now_ns()) / 1e9) > 0:
                if self._over.wait(min(left_s, SHORT_SLEEP_S)):
                    return
            border = self._read()
            if border is None:
                return
            self.at[border_ns] = border
            step_ns = _wall_minus_monotonic_ns() - self._wall_minus_monotonic_ns
            self.clock_step_ns = max(self.clock_step_ns, step_ns, key=abs)

    def _now_ns(self) -> int:
        return time.monotonic_ns() + self._wall_minus_monotonic_ns

    def _read(self) -> Border | None:
        at = self._now_ns()
        sides = {name: counters.read() for name, counters in self._counters.items()}
        if None in sides.values():
            return None
        done_at, steal_ns = self._now_ns(), _steal_ns()
        started: dict[str, list[int]] = {name: [] for name in self._counters}
        known = {*self.ours, os.getpid(), *(pid for one in self._counters.values() for pid in one.pids)}
        others = {int(number) for number in names_in("/proc") if number[0].isdigit()} - known
        for pid in sorted(others):  # most begin behind who started them
            if side := self._side_of(pid, started):
                started[side].append(pid)
        self._strangers = others.difference(*started.values())
        for name, pids in started.items():
            if pids:
                sides[name] = self._counters[name].joined(pids)
        foreign = dict(_clocks(self._strangers)) if self._all_are_seen else None
        return Border(at, sides, foreign, steal_ns, done_at)

    def _side_of(self, pid: int, started: Mapping[str, list[int]]) -> str | None:
        """By its session, or by who started it, which is asked once of each. ``started``: what is new of each
        side."""
        session = _session_of(pid)
        if session in self._sessions or pid in self._strangers:
            return self._sessions.get(session)
        parent = _parent_of(pid)
        for name, counters in self._counters.items():
            if parent in counters.pids or parent in started[name]:
                if session == pid:
                    self._sessions[pid] = name
                return name
        return None


def _wall_minus_monotonic_ns() -> int:
    """The nearest of a few tries: between its two clocks one may be kept waiting."""
    tries = []
    for _ in range(5):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        tries.append((after - before, wall - (before + after) // 2))
    return min(tries)[1]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _parent_of(pid: int) -> int | None:
    """None once it has ended."""
    stat = _read(f"/proc/{pid}/stat")
    return parent_of(stat) if stat else None


def _leads_session(pid: int) -> bool:
    """As what we start does. A process in a session of others would make these its side's."""
    return _session_of(pid) == pid


def _clocks(pids: Iterable[int]) -> Iterable[tuple[str, int]]:
    for pid in pids:
        with suppress(OSError):  # it has ended
            yield str(pid), time.clock_gettime_ns(cpu_clock(pid))


def _steal_ns() -> int:
    fields = _read("/proc/stat").split(b"\n", 1)[0].split()
    return int(fields[_STEAL]) * TICK_NS if len(fields) > _STEAL else 0


def _read(path: str) -> bytes:
    """The first 4 KiB; empty when whom it is about has ended."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(4096)
    except OSError:
        return b""
