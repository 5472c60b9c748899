"""One measurement at a time: data/work/session.json names who measures and which processes he has started.

What a killed kvstudy left behind is found there by the next one and ended: a process is ended only when its pid, its start time and
its owner's absence all agree, so never a stranger that got the same pid.
"""

import errno
import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from kvstudy.errors import KvstudyError


class Session:
    """``with Session(work_root) as session``: refuses when another measurement is alive, and cleans up after a dead one."""

    def __init__(self, work_root: Path):
        self._path = work_root / "session.json"
        self._children: dict[int, float] = {}
        self.ended_orphans: list[int] = []

    def __enter__(self) -> "Session":
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_note(self._path.parent, error) from error
        before = self._read()
        if before is not None:
            if _alive(before["pid"], before["started"]):
                raise KvstudyError(f"another measurement is running: pid={before['pid']}", "wait for it, or stop it with Ctrl-C: two at a time "
                                   "would measure each other")
            self.ended_orphans = [child["pid"] for child in before["children"] if _end(child["pid"], child["started"])]
        self._write()
        return self

    def __exit__(self, *_error: object) -> None:
        self.end_children()
        self._path.unlink(missing_ok=True)

    def end_children(self) -> None:
        """Ends every child that is still registered: one whose creator was interrupted before he knew it."""
        for pid, started in list(self._children.items()):
            _end(pid, started)
            self._children.pop(pid, None)

    def registered(self, pid: int, alive: bool) -> None:
        """A child has started or has ended. KvstudyError when a new one cannot be noted; one that stays noted after its end does no harm."""
        if alive:
            try:
                self._children[pid] = psutil.Process(pid).create_time()
            except psutil.NoSuchProcess:
                return
            self._write()
        else:
            self._children.pop(pid, None)
            with suppress(OSError, KvstudyError):
                self._write()

    def _read(self) -> dict | None:
        try:
            return json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return None  # not written by us: every write is whole or absent

    def _write(self) -> None:
        facts = {"pid": os.getpid(), "started": psutil.Process().create_time(),
                 "children": [{"pid": pid, "started": started} for pid, started in self._children.items()]}
        new = self._path.with_suffix(".new")
        try:
            new.write_text(json.dumps(facts), encoding="utf-8")
            new.replace(self._path)
        except OSError as error:
            raise _cannot_note(new, error) from error


def _cannot_note(path: Path, error: OSError) -> KvstudyError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "free some space and run the same command with --resume; sealed runs are kept" if full else "measuring writes there: make it writable, or measure in a copy"
    return KvstudyError(f"cannot note who measures: {path}: {(error.strerror or str(error)).lower()}", hint)


def _alive(pid: int, started: float) -> bool:
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _end(pid: int, started: float) -> bool:
    """Ends an orphan and its group: orderly, then by force. True when there was one."""
    if not _alive(pid, started):
        return False
    for number in (signal.SIGCONT, signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            break
        end = time.monotonic() + (5 if number == signal.SIGTERM else 0)
        while _alive(pid, started) and time.monotonic() < end:
            time.sleep(0.05)
        if not _alive(pid, started):
            break
    return True
