"""What the kernel counts of threads and processes, read in such small pieces that nobody waits for it, and worked out later.

Reading a file of /proc takes some 20 µs; a breath after each, or after a few, lets whoever waits for the core have it.
"""

import os
import re
import time
from dataclasses import dataclass

COMPILERS = (b"C1 CompilerThre", b"C2 CompilerThre")  # the JVM's compiler threads, as the kernel cuts their names
BREATH_S = 0.001
READING_MAX_S = 0.3
PROCESSES_PER_BREATH = 2
FILE_MAX_BYTES = 8 << 10
STATUS_TAIL_BYTES = 120  # the switches stand at the end
_SWITCHES = tuple(re.compile(rb"^%sctxt_switches:\s*(\d+)" % kind, re.MULTILINE) for kind in (b"voluntary_", b"nonvoluntary_"))
# Fields of a stat file behind the name: user and system time, and the same of children that were waited for.
_OWN, _WITH_CHILDREN = (11, 12), (11, 12, 13, 14)
_KERNELS_FIRST_THREAD = (2, b"(kthreadd)")


class Breath:
    """Called between two readings it sleeps; no longer when READING_MAX_S have gone by since it was made. On a machine without time to
    spare every sleep is a long one, and what is read of a second must not take longer than it."""

    def __init__(self):
        self._until = time.monotonic() + READING_MAX_S

    def __call__(self) -> None:
        if time.monotonic() < self._until:
            time.sleep(BREATH_S)


@dataclass(frozen=True)
class ThreadTexts:
    """What the kernel tells of each thread, by its number, and of the compilers the CPU time too; not yet worked out."""

    statuses: dict[str, bytes]  # the end of each, where the switches stand
    jit_cpu: dict[str, bytes]

    def switches(self) -> tuple[int, int]:
        """Voluntary and involuntary ones of all threads: what the kernel gives for a process is its first thread's alone."""
        return tuple(sum(int(match[1]) for status in self.statuses.values() if (match := pattern.search(status))) for pattern in _SWITCHES)

    def jit_cpu_s(self) -> float:
        """CPU seconds of the compilers, those among them that have ended: the JVM ends those that have nothing to do."""
        return sum(_cpu_s(text, _OWN) for text in self.jit_cpu.values())


class Threads:
    """Reads what the kernel tells of a process's threads, one by one and with a breath after each; a file is opened once."""

    def __init__(self, pid: int):
        self._folder = f"/proc/{pid}/task"
        self._files: dict[str, int] = {}
        self._jit_cpu: dict[str, bytes] = {}

    def read(self, breathe: Breath) -> ThreadTexts:
        """Of the threads that live now; a compiler that has ended keeps what it had used when it was last seen."""
        statuses = {}
        for number in _names_in(self._folder):
            breathe()
            status = self._text(f"{number}/status")
            if status:
                statuses[number] = status[-STATUS_TAIL_BYTES:]
                if status.split(b"\n", 1)[0].partition(b"\t")[2] in COMPILERS and (cpu := self._text(f"{number}/stat")):
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

    def cpu_s(self) -> float:
        """CPU seconds of these processes and of their children that have ended: what one used stays when it ends, with who waited for it."""
        return sum(_cpu_s(text, _WITH_CHILDREN) for text in self.stats)


class Others:
    """Reads the CPU time of all processes but ``ours``, a few at a time and with a breath after them. Threads of the kernel count too."""

    def __init__(self, ours: set[int]):
        self._ours = {str(pid) for pid in ours}
        number, name = _KERNELS_FIRST_THREAD
        self._all_are_seen = name in _read_file(f"/proc/{number}/stat")

    def read(self, breathe: Breath) -> CpuTexts | None:
        """None where not all processes of the machine can be seen: in a container, or with a /proc that hides them."""
        if not self._all_are_seen:
            return None
        stats = []
        for place, name in enumerate(_names_in("/proc")):
            if name[0].isdigit() and name not in self._ours:
                stats.append(_read_file(f"/proc/{name}/stat"))
            if place % PROCESSES_PER_BREATH == 0:
                breathe()
        return CpuTexts([text for text in stats if text])


def _cpu_s(stat: bytes, fields: tuple[int, ...]) -> float:
    values = stat.rpartition(b")")[2].split()
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
