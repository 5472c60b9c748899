"""Processes that leave whoever started them (a daemon forks and takes a session of its own) become ours, so
that they end with the run.

On Linux a process may ask to become the parent of all orphans below it. Where that cannot be asked, nobody
who escaped is found.
"""

import ctypes
import os
import sys
from contextlib import suppress
from typing import ClassVar

import psutil

from kvstudy.hosts.process import OwnedProcess

PR_SET_CHILD_SUBREAPER = 36
END_TIMEOUT_S = 5.0


def become_parent_of_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Adoption:
    """Made before a process is started. Of two sides nobody can tell whose an escaped process is: the last
    that ends ends them."""

    _going_on: ClassVar[list["Adoption"]] = []

    def __init__(self):
        become_parent_of_orphans()
        self._before = {child.pid for child in _below_us()}
        self._going_on.append(self)

    def escaped(self) -> list[psutil.Process]:
        """Processes below us that were started since, and are in no session of an OwnedProcess."""
        return [
            child
            for child in _below_us()
            if child.pid not in self._before and _session(child.pid) not in OwnedProcess.alive
        ]

    def end_escaped(self) -> list[int]:
        """Ends them, orderly, then by force. Their numbers. They are left to another side that goes on."""
        if self in self._going_on:
            self._going_on.remove(self)
        if self._going_on:
            for other in self._going_on:
                other._before &= self._before
            return []
        found = left = self.escaped()
        for act in (psutil.Process.terminate, psutil.Process.kill):
            for process in left:
                with suppress(psutil.Error):
                    act(process)
            _, left = psutil.wait_procs(left, timeout=END_TIMEOUT_S)
        return [process.pid for process in found]


def _below_us() -> list[psutil.Process]:
    """Living ones."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if child.status() != psutil.STATUS_ZOMBIE:
                found.append(child)
    return found


def _session(pid: int) -> int | None:
    with suppress(OSError):
        return os.getsid(pid)
    return None
