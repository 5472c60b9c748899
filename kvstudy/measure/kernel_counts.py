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

COMPILERS = (
    b"C1 CompilerThre",
    b"C2 CompilerThre",
)  # the JVM's compiler threads, as the kernel cuts their names
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
# parent, the time of start.
_OWN, _OF_CHILDREN, _PARENT, _STARTED = (11, 12), (13, 14), 1, 19
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
        for number in _names_in(self._folder):
            pause()
            status = self._text(f"{number}/status")
            if status:
                statuses[number] = status[-STATUS_TAIL_BYTES:]
                if status.split(b"\n", 1)[0].partition(b"\t")[2] in COMPILERS and (
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


@dataclass(frozen=True)
class CpuTexts:
    """What the kernel tells of the CPU time of each process; not yet worked out."""

    stats: list[bytes]
    ours: frozenset[bytes]  # process numbers of those that were left out

    def of_processes(self) -> dict[tuple[bytes, bytes], "_Used"]:
        """By number and time of start: a number is given anew when its process has ended."""
        processes = {}
        for text in self.stats:
            number, fields = text.partition(b" ")[0], _fields(text)
            processes[number, fields[_STARTED]] = _Used(
                _cpu_s(text, _OWN), _cpu_s(text, _OF_CHILDREN), fields[_PARENT] in self.ours
            )
        return processes


@dataclass(frozen=True)
class _Used:
    own_s: float
    of_children_s: float  # of those that have ended and were waited for
    is_child_of_ours: bool


def cpu_between(readings: list[CpuTexts]) -> list[float]:
    """CPU seconds that all processes together used from each reading to the next, those among them that ended
    in between.

    Each process is compared with itself: the time of one that has ended vanishes with it, and a difference of
    two sums would be short by all that it ever used. What it used last is found with who waited for it, above
    what was known of it. That can be one reading late, where a parent was read before its child ended and the
    child was looked for afterwards; and it never comes from a parent that ignores its children's ends, which
    is why no more than one reading is waited for it.
    """
    used, owed_s = [], 0.0
    processes = [reading.of_processes() for reading in readings]
    for before, now in pairwise(processes):
        nothing = _Used(0.0, 0.0, False)
        own_s = sum(use.own_s - before.get(process, nothing).own_s for process, use in now.items())
        of_ended_s = sum(
            use.of_children_s - before.get(process, nothing).of_children_s for process, use in now.items()
        )
        known_s = sum(
            use.own_s + use.of_children_s
            for process, use in before.items()
            if process not in now and not use.is_child_of_ours
        )
        last_s = of_ended_s - known_s - owed_s
        used.append(own_s + max(0.0, last_s))
        owed_s = min(known_s, max(0.0, -last_s))
    return used


class Others:
    """Reads the CPU time of all processes but ``ours``, a few at a time and with a breath after them. Threads
    of the kernel count too.

    They are read in the order of their start, a parent before its child: one that ends while they are read is
    then counted late, where in the other order it would be counted as living and as an ended child at once.
    Numbers do not tell the order, they begin anew.
    """

    def __init__(self, ours: set[int]):
        self._ours = frozenset(str(pid).encode() for pid in ours)
        self._started: dict[str, int] = {}
        number, name = _KERNELS_FIRST_THREAD
        self._all_are_seen = name in _read_file(f"/proc/{number}/stat")

    def read(self, pause: Pacer) -> CpuTexts | None:
        """None where not all processes of the machine can be seen: in a container, or with a /proc that hides
        them."""
        if not self._all_are_seen:
            return None
        names = [name for name in _names_in("/proc") if name[0].isdigit() and name.encode() not in self._ours]
        stats = {}
        for place, name in enumerate(sorted(names, key=lambda name: self._started.get(name, sys.maxsize))):
            if text := _read_file(f"/proc/{name}/stat"):
                stats[name] = text
            if place % PROCESSES_PER_PAUSE == 0:
                pause()
        self._started = {name: int(_fields(text)[_STARTED]) for name, text in stats.items()}
        return CpuTexts(list(stats.values()), self._ours)


def _fields(stat: bytes) -> list[bytes]:
    """Those behind the name, which may hold spaces and parentheses of its own."""
    return stat.rpartition(b")")[2].split()


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


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
