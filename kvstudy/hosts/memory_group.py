"""A memory group (cgroup) of one's own with a limit: anonymous memory and page cache of the processes in it
together.

    with MemoryGroup(128 << 20) as group:
        subprocess.Popen([*group.prefix, "java", …])     # the process and all that it starts are in the group
    group.killed                                         # the kernel ended one of them for want of memory

Version 1 and version 2. Making one needs a group that this user may write to: root's, or a delegated one.
What a killed measurement left behind goes when the next one begins: ``drop_left_behind``.
"""

import os
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psutil

from kvstudy.errors import ToolMissing

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
NAME = "kvstudy-"
HINT = "run as root, or in a delegated group: systemd-run --user --scope -p Delegate=yes …"
REMOVE_TIMEOUT_S = 10.0
TRIED_WITH_BYTES = 64 << 20
_NUMBERS = count(1)


class NoMemoryGroup(ToolMissing):
    """What is missing, and what to do."""


@dataclass(frozen=True)
class Controller:
    """Below which group new ones are made, and the names of their files. ``swap``: the file that keeps pages
    from going to swap instead, with what it has to hold; None: the limit."""

    version: int
    parent: Path
    limit: str
    swap: tuple[str, str | None]
    peak: str
    kills: str  # has a line "oom_kill N"


def controller() -> Controller:
    """NoMemoryGroup where the system has none."""
    mounted, own = CGROUPS / "memory", {}
    for line in _text(MEMBERSHIP).splitlines():
        _, controllers, path = line.split(":", 2)
        own[controllers] = path.lstrip("/")
    for controllers, path in own.items():
        if "memory" in controllers.split(","):
            parent = mounted / path
            return Controller(
                1,
                parent if parent.is_dir() else mounted,
                "memory.limit_in_bytes",
                ("memory.memsw.limit_in_bytes", None),
                "memory.max_usage_in_bytes",
                "memory.oom_control",
            )
    if "memory" in _text(CGROUPS / "cgroup.controllers").split():
        return Controller(
            2,
            _delegated(CGROUPS / own.get("", "")),
            "memory.max",
            ("memory.swap.max", "0"),
            "memory.peak",
            "memory.events",
        )
    raise NoMemoryGroup(
        "this system has no memory groups (cgroup controller memory)",
        "measure without a memory limit, or on a Linux whose kernel has the controller",
    )


def try_out() -> None:
    """Makes a group, runs a process in it, and removes it. NoMemoryGroup says what did not work."""
    with MemoryGroup(TRIED_WITH_BYTES) as group:
        done = subprocess.run([*group.prefix, "true"], capture_output=True, text=True)
    if done.returncode != 0:
        raise NoMemoryGroup(f"a process cannot be put into a memory group: {done.stderr.strip()[:200]}", HINT)


def drop_left_behind() -> None:
    """Empty groups whose maker is gone. Never fails."""
    with suppress(NoMemoryGroup, OSError):
        for directory in controller().parent.glob(f"{NAME}*"):
            pid = directory.name.removeprefix(NAME).split("-")[0]
            if pid.isdigit() and not psutil.pid_exists(int(pid)):
                with suppress(OSError):  # not empty, or not ours
                    directory.rmdir()


class MemoryGroup:
    """``killed`` and ``peak_bytes`` are known also after its end; None: the kernel does not tell."""

    def __init__(self, limit_bytes: int):
        self.limit_bytes = limit_bytes
        self._controller = controller()
        self.directory = self._controller.parent / f"{NAME}{os.getpid()}-{next(_NUMBERS)}"
        self.version = self._controller.version
        self._last: tuple[bool, int | None] | None = None

    def __enter__(self) -> "MemoryGroup":
        try:
            self.directory.mkdir()
            (self.directory / self._controller.limit).write_text(str(self.limit_bytes))
        except OSError as error:
            self._remove()
            raise NoMemoryGroup(
                f"cannot make a memory group: {(error.strerror or str(error)).lower()}: {self.directory}",
                HINT,
            ) from None
        name, value = self._controller.swap
        with suppress(OSError):  # a kernel that does not count swap
            (self.directory / name).write_text(value or str(self.limit_bytes))
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    def end(self) -> None:
        """Removes it. Safe to call again."""
        if self._last is None:
            self._last = self.killed, self.peak_bytes
            self._remove()

    @property
    def prefix(self) -> list[str]:
        """Before a command line: moves the process into the group, then becomes the command."""
        return ["/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self.directory)]

    @property
    def killed(self) -> bool:
        if self._last:
            return self._last[0]
        words = _text(self.directory / self._controller.kills).split()
        return "oom_kill" in words and words[words.index("oom_kill") + 1] != "0"

    @property
    def peak_bytes(self) -> int | None:
        if self._last:
            return self._last[1]
        text = _text(self.directory / self._controller.peak).strip()
        return int(text) if text.isdigit() else None

    @property
    def facts(self) -> dict:
        """For machine.json."""
        return {
            "version": self.version,
            "limit_bytes": self.limit_bytes,
            "peak_bytes": self.peak_bytes,
            "killed": self.killed,
        }

    def _remove(self) -> None:
        """The page cache that is charged to it goes to the group above."""
        deadline = time.monotonic() + REMOVE_TIMEOUT_S
        while self.directory.exists() and time.monotonic() < deadline:
            with suppress(OSError):  # its processes are still ending
                self.directory.rmdir()
                return
            time.sleep(0.1)


def forget_pages(directory: Path) -> None:
    """Drops a directory's files from the page cache, so that the next reader's group has to pay for them."""
    for path in directory.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def _delegated(own: Path) -> Path:
    """The nearest group above this process's that gives memory to those below it and may be written to; in
    version 2 a group that has processes has no groups below it. Else the root."""
    for group in (own, *own.parents):
        if not group.is_relative_to(CGROUPS):
            break
        if "memory" in _text(group / "cgroup.subtree_control").split() and os.access(group, os.W_OK):
            return group
    return CGROUPS


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
