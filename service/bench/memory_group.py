"""A memory group (cgroup) of one's own with a limit: anonymous memory and page cache of the processes in it
together.

    with MemoryGroup(128 << 20) as group:
        subprocess.Popen([*group.prefix, "java", …])     # the process and all that it starts are in the group

Version 1 and version 2. Making one needs a group that this user may write to: root's, or a delegated one.
"""

import contextlib
import os
import pathlib
import time

CGROUP = pathlib.Path("/sys/fs/cgroup")


class NoMemoryGroup(Exception):
    """What is missing, and what to do."""


class MemoryGroup:
    def __init__(self, limit_bytes: int):
        self.limit_bytes = limit_bytes
        parent, self._limit = _parent()
        self.directory = parent / f"kv-bench-{os.getpid()}-{time.monotonic_ns()}"

    def __enter__(self) -> "MemoryGroup":
        try:
            self.directory.mkdir()
            (self.directory / self._limit).write_text(str(self.limit_bytes))
        except OSError as error:
            self._remove()
            raise NoMemoryGroup(
                f"cannot make a memory group: {error}\n"
                "run as root, or in a delegated group: systemd-run --user --scope -p Delegate=yes …"
            ) from None
        return self

    @property
    def prefix(self) -> list[str]:
        """Before a command line: moves the process into the group, then becomes the command."""
        return ["sh", "-c", f'echo $$ > {self.directory}/cgroup.procs && exec "$@"', "sh"]

    def __exit__(self, *_) -> None:
        self._remove()

    def _remove(self) -> None:
        """The page cache that is charged to it goes to the group above."""
        deadline = time.monotonic() + 10
        while self.directory.exists() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # its processes are still ending
                self.directory.rmdir()
                return
            time.sleep(0.1)


def _parent() -> tuple[pathlib.Path, str]:
    """The group that this process is in, or for version 2, where a group with processes has no groups below
    it, the root; and the limit's file."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            own = CGROUP / "memory" / path.lstrip("/")
            return (own if own.is_dir() else CGROUP / "memory"), "memory.limit_in_bytes"
    if (
        "memory" in (CGROUP / "cgroup.controllers").read_text().split()
        if (CGROUP / "cgroup.controllers").exists()
        else False
    ):
        return CGROUP, "memory.max"
    raise NoMemoryGroup(
        "this system has no memory groups (cgroup controller memory): nothing can be measured larger than "
        "memory"
    )


def forget_pages(directory: pathlib.Path) -> None:
    """Drops a directory's files from the page cache, so that the next reader's group has to pay for them."""
    for path in directory.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
