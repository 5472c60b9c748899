"""What the kernel counts of threads and processes, read in such small pieces that nobody waits for it, and
worked out later.

Reading a file of /proc takes some 20 µs; a breath after each, or after a few, lets whoever waits for the core
have it.
"""

import os
import re
import sys
import time
from dataclasses import dataclass
from itertools import pairwise

from kvstudy.hosts.process import names_in
from kvstudy.subject.evidence.jvm import COMPILER_THREADS

PACE_S = 0.001
READING_MAX_S = 0.3
PROCESSES_PER_PAUSE = 2
FILE_MAX_BYTES = 8 << 10
STATUS_TAIL_BYTES = 120  # the switches stand at the end
_SWITCHES = tuple(
    re.compile(rb"^%sctxt_switches:\s*(\d+)" % kind, re.MULTILINE)
    for kind in (b"voluntary_", b"nonvoluntary_")
)
# Fields of a stat file behind the name: user and system time, the same of children that were waited for, the
# parent, the session, the threads, the time of start, the resident pages.
_OWN, _OF_CHILDREN = (11, 12), (13, 14)
_PARENT, _SESSION, _THREADS, _STARTED, _PAGES = 1, 3, 17, 19, 21
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_KERNELS_FIRST_THREAD = (2, b"(kthreadd)")


class Pacer:
    """Called between two readings it sleeps; no longer when READING_MAX_S have gone by since it was made. On
    a machine without time to spare every sleep is a long one, and what is read of a second must not take
    longer than it."""

    def __init__(self):
        self._until = time.monotonic() + READING_MAX_S

    def __call__(self) -> None:
        if time.monotonic() < self._until:
            time.sleep(PACE_S)


@dataclass(frozen=True)
class ThreadTexts:
    """What the kernel tells of each thread, by its number, and of the compilers the CPU time too; not yet
    worked out."""

    statuses: dict[str, bytes]  # the end of each, where the switches stand
    jit_cpu: dict[str, bytes]

    def switches(self) -> tuple[int, int]:
        """Voluntary and involuntary ones of all threads: what the kernel gives for a process is its first
        thread's alone."""
        return tuple(
            sum(int(match[1]) for status in self.statuses.values() if (match := pattern.search(status)))
            for pattern in _SWITCHES
        )

    def jit_cpu_s(self) -> float:
        """CPU seconds of the compilers, those among them that have ended: the JVM ends those that have
        nothing to do."""
        return sum(_cpu_s(text, _OWN) for text in self.jit_cpu.values())


class Threads:
    """Reads what the kernel tells of a process's threads, one by one and with a breath after each; a file is
    opened once."""

    def __init__(self, pid: int):
        self._folder = f"/proc/{pid}/task"
        self._files: dict[str, int] = {}
        self._jit_cpu: dict[str, bytes] = {}

    def read(self, pause: Pacer) -> ThreadTexts:
        """Of the threads that live now; a compiler that has ended keeps what it had used when it was last
        seen."""
        statuses = {}
        for number in names_in(self._folder):
            pause()
            status = self._text(f"{number}/status")
            if status:
                statuses[number] = status[-STATUS_TAIL_BYTES:]
                if status.split(b"\n", 1)[0].partition(b"\t")[2] in COMPILER_THREADS and (
                    cpu := self._text(f"{number}/stat")
                ):
                    self._jit_cpu[number] = cpu
        for name in [name for name in self._files if name.partition("/")[0] not in statuses]:
            os.close(self._files.pop(name))
        return ThreadTexts(statuses, dict(self._jit_cpu))

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def _text(self, name: str) -> bytes:
        """Empty when the thread has ended."""
        try:
            if name not in self._files:
                self._files[name] = os.open(f"{self._folder}/{name}", os.O_RDONLY)
            return os.pread(self._files[name], FILE_MAX_BYTES, 0)
        except OSError:
            return b""


_Process = tuple[bytes, int]  # number and time of start: a number is given anew when its process has ended


@dataclass(frozen=True)
class ProcessTexts:
    """What the kernel tells of each process; not yet worked out. ``left_out``: numbers of those that are not
    among them. ``are_all``: but for these no process of the machine is missing."""

    stats: list[bytes]
    left_out: frozenset[bytes]
    are_all: bool = True

    def of_processes(self) -> dict[_Process, "_Used"]:
        """In the order of their start, a parent before its child."""
        processes = {}
        for text in self.stats:
            number, fields = text.partition(b" ")[0], _fields(text)
            processes[number, int(fields[_STARTED])] = _Used(
                _cpu_s(text, _OWN),
                _cpu_s(text, _OF_CHILDREN),
                fields[_PARENT],
                fields[_SESSION],
                int(fields[_THREADS]),
                int(fields[_PAGES]) * PAGE_BYTES,
            )
        return dict(sorted(processes.items(), key=lambda process: process[0][1]))


@dataclass(frozen=True)
class _Used:
    own_s: float = 0.0
    of_children_s: float = 0.0  # of those that have ended and were waited for
    parent: bytes = b""
    session: bytes = b""
    threads: int = 0
    rss_bytes: int = 0


@dataclass(frozen=True)
class Usage:
    """CPU seconds from one reading to the next; the service's threads and memory at the latter."""

    service_cpu_s: float
    others_cpu_s: float
    service_threads: int
    service_rss_bytes: int


def usage_between(readings: list[ProcessTexts], service: frozenset[bytes] = frozenset()) -> list[Usage]:
    """What all processes of the service, and all others together, used from each reading to the next, those
    among them that ended in between. ``service``: numbers of its processes at the first reading.

    Each process is compared with itself: the time of one that has ended vanishes with it, and a difference of
    two sums would be short by all that it ever used. What it used last is found with who waited for it, above
    what was known of it. That can be one reading late, where a parent was read before its child ended and the
    child was looked for afterwards; and it never comes from a parent that ignores its children's ends, which
    is why no more than one reading is waited for it. Of children of those that were left out it is not
    awaited at all.
    """
    used, owed_s = [], dict.fromkeys((True, False), 0.0)
    processes = [reading.of_processes() for reading in readings]
    of_service = _of_service(processes, service)
    for reading, (before, now) in zip(readings[1:], pairwise(processes), strict=True):
        own_s, of_ended_s, known_s = (dict.fromkeys((True, False), 0.0) for _ in range(3))
        for process, use in now.items():
            known, whose = before.get(process, _Used()), process in of_service
            own_s[whose] += use.own_s - known.own_s
            of_ended_s[whose] += use.of_children_s - known.of_children_s
        waiting = {process[0]: process in of_service for process in before}
        for process, use in before.items():
            if process not in now and use.parent not in reading.left_out:
                known_s[waiting.get(use.parent, False)] += use.own_s + use.of_children_s
        for whose in (True, False):
            last_s = of_ended_s[whose] - known_s[whose] - owed_s[whose]
            own_s[whose] += max(0.0, last_s)
            owed_s[whose] = min(known_s[whose], max(0.0, -last_s))
        mine = [use for process, use in now.items() if process in of_service]
        used.append(
            Usage(
                own_s[True],
                own_s[False],
                sum(use.threads for use in mine),
                sum(use.rss_bytes for use in mine),
            )
        )
    return used


def _of_service(processes: list[dict[_Process, _Used]], pids: frozenset[bytes]) -> set[_Process]:
    """Of all readings: those with these numbers at the first one, all in a session that one of them leads,
    and all that these start, each from its first moment to its end."""
    first = processes[0] if processes else {}
    found = {process for process in first if process[0] in pids}
    sessions = {process[0] for process in found if first[process].session == process[0]}
    for reading in processes:
        numbers = {process[0] for process in reading.keys() & found}
        for process, use in reading.items():
            if use.session in sessions or use.parent in numbers:
                found.add(process)
                numbers.add(process[0])
    return found


class Processes:
    """Reads the processes of the service at once, and all others but ``ours`` a few at a time and with a
    breath after them: what the service has started meanwhile is among these. Threads of the kernel count too.

    The others are read in the order of their start, a parent before its child: one that ends while they are
    read is then counted late, where in the other order it would be counted as living and as an ended child at
    once. Numbers do not tell the order, they begin anew.
    """

    def __init__(self, service: tuple[int, ...], ours: set[int]):
        self._service = service
        self._ours = frozenset(str(pid).encode() for pid in ours)
        self._not_again = self._ours | {str(pid).encode() for pid in service}
        self._started: dict[str, int] = {}
        number, name = _KERNELS_FIRST_THREAD
        self._all_are_seen = name in _read_file(f"/proc/{number}/stat")

    def of_service(self) -> list[bytes] | None:
        """None once the first of them has ended; without those of the others that have."""
        texts = [_read_file(f"/proc/{pid}/stat") for pid in self._service]
        return [text for text in texts if text] if all(texts[:1]) else None

    def read(self, of_service: list[bytes], pause: Pacer) -> ProcessTexts:
        """These and the others. In a container, or with a /proc that hides processes, not all of the machine
        can be seen; those that the service starts can."""
        stats = {}
        for place, name in enumerate(self._in_order() if self._all_are_seen or self._service else []):
            if text := _read_file(f"/proc/{name}/stat"):
                stats[name] = text
            if place % PROCESSES_PER_PAUSE == 0:
                pause()
        self._started = {name: int(_fields(text)[_STARTED]) for name, text in stats.items()}
        return ProcessTexts([*of_service, *stats.values()], self._ours, self._all_are_seen)

    def _in_order(self) -> list[str]:
        names = [
            name for name in names_in("/proc") if name[0].isdigit() and name.encode() not in self._not_again
        ]
        return sorted(names, key=lambda name: self._started.get(name, sys.maxsize))


def _fields(stat: bytes) -> list[bytes]:
    """Those behind the name, which may hold spaces and parentheses of its own."""
    return stat.rpartition(b")")[2].split()


def parent_of(stat: bytes) -> int:
    """``stat``: of a process that has not ended."""
    return int(_fields(stat)[_PARENT])


def _cpu_s(stat: bytes, fields: tuple[int, ...]) -> float:
    values = _fields(stat)
    return sum(int(values[field]) for field in fields) / os.sysconf("SC_CLK_TCK")


def _read_file(path: str) -> bytes:
    """Empty when whom it is about has ended."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(file, FILE_MAX_BYTES)
    except OSError:
        return b""
    finally:
        os.close(file)
