"""What a plan needs of the machine beyond programs, memory and disk: memory groups, open files. Asked before
anything is started, of this machine or, by its station, of a host.

    needs = limits.needs(configurations)
    for told in limits.notes(needs, root): print(told)     KvstudyError for what cannot be had
    limits.check_open_files(needs.connections)             all that a generator's host needs
"""

import ctypes
import mmap
import os
import resource
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from kvstudy.errors import KvstudyError
from kvstudy.hosts import memory_group
from kvstudy.plan.run_plan import Configuration
from kvstudy.subject.evidence.jvm import heap_bytes
from kvstudy.units import format_bytes

# Of a process beside its connections: tables, logs, the jar, its libraries.
FILES_BESIDE_CONNECTIONS = 512
READ_PAST_CACHE = "compaction reads through the page cache, and drives out what is read"
FAULTS_STOP = "a GET that has to wait for the disk stops its selector"
PAGE_BYTES = 4096


@dataclass(frozen=True)
class Needs:
    """Of all runs of a plan. ``connections``: the most at once; ``memory_groups``: a service has a limit of
    its memory; ``heap_bytes``: the largest one that a JVM is given, 0 where none is."""

    connections: int
    memory_groups: bool
    heap_bytes: int = 0


def needs(configurations: Iterable[Configuration]) -> Needs:
    configurations = list(configurations)
    return Needs(
        max((one.connections for one in configurations), default=0),
        any(one.memory_bytes is not None for one in configurations),
        max((heap_bytes(one.jvm) or 0 for one in configurations), default=0),
    )


def notes(needed: Needs, root: Path) -> Iterator[str]:
    """What will be so without being what was asked for. Raises the soft limit of open files where that
    suffices."""
    check_open_files(needed.connections)
    if needed.heap_bytes > (there := psutil.virtual_memory().total):
        raise KvstudyError(
            f"not enough memory: heap={format_bytes(needed.heap_bytes)} of the machine={format_bytes(there)}",
            "choose a smaller heap: jvm: {heap: 128m}",
        )
    if needed.memory_groups:
        memory_group.try_out()
        if why := direct_io_problem(root):
            yield f"note: no direct I/O: {why}: {READ_PAST_CACHE}"
        if why := mincore_problem(root):
            yield f"note: no mincore: {why}: {FAULTS_STOP}"


def check_open_files(connections: int) -> None:
    needed, (soft, hard) = connections + FILES_BESIDE_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise KvstudyError(
            f"not enough open files: needed={needed} limit={hard} connections={connections}",
            f"as root: prlimit --pid $$ --nofile={needed} (of another host: in its limits.conf), or choose "
            "fewer connections: --only connections=…",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))  # what is started here takes it over


def direct_io_problem(folder: Path) -> str | None:
    """Why files below ``folder`` cannot be read past the page cache, or None."""
    if not hasattr(os, "O_DIRECT"):
        return "this system has no O_DIRECT"
    with _file_of_a_page(folder) as name:
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECT)
        except OSError as error:
            return f"{(error.strerror or str(error)).lower()}: the file system of {folder}"
        try:
            with mmap.mmap(-1, PAGE_BYTES) as aligned:
                os.preadv(descriptor, [aligned], 0)
        except OSError as error:
            return f"{(error.strerror or str(error)).lower()}: the file system of {folder}"
        finally:
            os.close(descriptor)
    return None


def mincore_problem(folder: Path) -> str | None:
    """Why nobody tells whether a page of a file below ``folder`` is in memory, or None."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "mincore"):
        return "this system has no mincore"
    with _file_of_a_page(folder) as name, open(name, "r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        page[0]  # read: it is in memory now
        held = (ctypes.c_char * len(page)).from_buffer(page)
        told = ctypes.c_ubyte(0)
        failed = library.mincore(held, ctypes.c_size_t(PAGE_BYTES), ctypes.byref(told))
        del held  # else the mapping could not be closed
        if failed:
            return os.strerror(ctypes.get_errno()).lower()
    return None if told.value & 1 else "it says of a page just read that it is not in memory"


@contextmanager
def _file_of_a_page(folder: Path) -> Iterator[str]:
    """Removed at the end; in the nearest folder that is there."""
    while not folder.is_dir():
        folder = folder.parent
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".kvstudy-") as file:
        file.write(bytes(PAGE_BYTES))
        file.flush()
        os.fsync(file.fileno())
        yield file.name
