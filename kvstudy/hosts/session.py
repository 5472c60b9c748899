"""One measurement at a time: data/work/session.json names who measures and which processes he has started.
He holds data/work/session.lock from before he reads what is noted there until his end: the kernel lets it go
with him, however he ends, and none of his children has it.

What a killed kvstudy left behind is found there by the next one and ended: a process is ended only when its
pid, its start time and its owner's absence all agree, so never a stranger that got the same pid.

Where a process was a wrapper that is gone, what it started still has its session. Nobody else can have that
session's number while one of them lives; but after a start of the machine, or when all of them have ended, it
may be another's. So only those are ended that are of the same user, were started after it, and since the
machine was.
"""

import errno
import fcntl
import json
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path

import psutil

from kvstudy.errors import KvstudyError
from kvstudy.hosts import memory_group
from kvstudy.hosts.process import session_of, wait_until

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
START_TOLERANCE_S = 1.0
ORDERLY_S, KILLED_S = 5.0, 5.0  # for what ends by itself when it is asked to, and for what is killed
HOLDER_TIMEOUT_S = 1.0


class AlreadyMeasuring(KvstudyError):
    """Somebody else does, with the same folder."""


class Session:
    """``with Session(work_root) as session``: refuses when another measurement is alive, and cleans up after
    a dead one."""

    def __init__(self, work_root: Path):
        self._path = work_root / "session.json"
        self._lock: FileIO | None = None
        self._children: dict[int, float] = {}
        self.ended_orphans: list[int] = []

    def __enter__(self) -> "Session":
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = self._path.with_suffix(".lock").open("a+b", buffering=0)
        except OSError as error:
            raise _cannot_note(self._path.parent, error) from error
        try:
            self._hold()
            self._begin()
        except BaseException:
            self._lock.close()
            raise
        return self

    def _hold(self) -> None:
        """The lock; KvstudyError where another one does."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._lock.truncate(0)
            self._lock.write(str(os.getpid()).encode())
        except BlockingIOError:
            raise _is_running(self._holder()) from None
        except OSError as error:
            raise _cannot_note(self._path.with_suffix(".lock"), error) from error

    def _holder(self) -> str:
        """The pid that he writes as soon as he has the lock."""

        def noted() -> str:
            self._lock.seek(0)
            return self._lock.read().decode()

        wait_until(lambda: (pid := noted()).isdigit() and psutil.pid_exists(int(pid)), HOLDER_TIMEOUT_S)
        return noted() or "unknown"

    def _begin(self) -> None:
        """Ends what a dead one has left."""
        before = self._read()
        if before is not None:
            if _alive(before["pid"], before["started"]):
                raise _is_running(before["pid"])  # of a kvstudy that takes no lock
            same_boot = before.get("boot") == _boot()
            self.ended_orphans = [
                child["pid"]
                for child in before["children"]
                if _end([(child["pid"], child["started"])], same_boot)
            ]
        memory_group.drop_left_behind()
        self._write()

    def __exit__(self, *_error: object) -> None:
        try:
            self.end_children()
            self._path.unlink(missing_ok=True)
        finally:
            self._lock.close()

    def end_children(self, orderly_s: float = ORDERLY_S) -> None:
        """Ends every child that is still registered: one whose creator was interrupted before he knew it. All
        at once, by force those that take longer."""
        children = list(self._children.items())
        _end(children, orderly_s=orderly_s)
        for pid, _ in children:
            self._children.pop(pid, None)

    def registered(self, pid: int, alive: bool) -> None:
        """A child has started or has ended. KvstudyError when a new one cannot be noted; one that stays noted
        after its end does no harm."""
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
        facts = {
            "pid": os.getpid(),
            "started": psutil.Process().create_time(),
            "boot": _boot(),
            "children": [{"pid": pid, "started": started} for pid, started in self._children.items()],
        }
        new = self._path.with_suffix(".new")
        try:
            new.write_text(json.dumps(facts), encoding="utf-8")
            new.replace(self._path)
        except OSError as error:
            raise _cannot_note(new, error) from error


def _is_running(pid: int | str) -> AlreadyMeasuring:
    return AlreadyMeasuring(
        f"another kvstudy measures or builds in this folder: pid={pid}",
        "wait for it, or stop it (Ctrl-C; Stop in 02-sweep): two at a time would measure each other",
    )


def _cannot_note(path: Path, error: OSError) -> KvstudyError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = (
        "free some space and run the same command with --resume; sealed runs are kept"
        if full
        else "measuring writes there: make it writable, or measure in a copy"
    )
    return KvstudyError(f"cannot note who measures: {path}: {(error.strerror or str(error)).lower()}", hint)


def _alive(pid: int, started: float) -> bool:
    try:
        process = psutil.Process(pid)
        return (
            abs(process.create_time() - started) < START_TOLERANCE_S
            and process.status() != psutil.STATUS_ZOMBIE
        )
    except psutil.NoSuchProcess:
        return False


def _boot() -> str:
    """Of this start of the machine."""
    with suppress(OSError):
        return BOOT_ID.read_text(encoding="ascii").strip()
    return f"{psutil.boot_time():.0f}"


def _left(leader: int, started: float, same_boot: bool) -> list[psutil.Process]:
    """The process that was noted, and all of its session; where it is gone, who is left of that."""
    if not _alive(leader, started) and (not same_boot or _is_a_stranger(leader, started)):
        return []
    found = []
    for process in session_of(leader):
        with suppress(psutil.Error):
            if process.create_time() >= started - START_TOLERANCE_S and process.uids().real == os.getuid():
                found.append(process)
    return found


def _is_a_stranger(pid: int, started: float) -> bool:
    """Another process has the number now, and so the session of that number is its own. One that ended and
    was asked by nobody for its exit code is still the one that was noted."""
    with suppress(psutil.Error):
        return abs(psutil.Process(pid).create_time() - started) >= START_TOLERANCE_S
    return False


def _end(children: Sequence[tuple[int, float]], same_boot: bool = True, orderly_s: float = ORDERLY_S) -> bool:
    """Ends orphans, as leader and when it started, and their sessions: orderly, then by force. True when
    there was one."""

    def left() -> list[psutil.Process]:
        return [process for leader, started in children for process in _left(leader, started, same_boot)]

    if not left():
        return False
    for number, time_s in ((signal.SIGCONT, 0), (signal.SIGTERM, orderly_s), (signal.SIGKILL, KILLED_S)):
        for process in left():
            with suppress(psutil.Error):
                process.send_signal(number)
        if wait_until(lambda: not left(), time_s):
            break
    return True
