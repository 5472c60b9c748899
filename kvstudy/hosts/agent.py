"""What runs on a host while it is measured: it owns the lease, the programs (by SHA-256), the scratch folder
and every process that is started there. It knows nothing of Dask.

    python -m kvstudy.hosts.agent '{"folder": "~/.cache/kvstudy", "name": "a", "address": "10.0.0.11", "who":
    "perf@laptop"}'

Frames on stdin, answers on stdout (wire.py). Objects that it is asked to make live here; their methods run in
its main thread, one after the other. Words, beats and the end are taken by another thread at once.

However it ends, its processes end with it:

    stdin closed             its worker is gone: orderly, at once
    no frame for SILENCE_S   who measures cannot be reached any more: the same
    SIGKILL                  the kernel signals its children (process.py); what is left the next agent ends
                             (session.py)
"""

import errno
import json
import os
import queue
import shutil
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from kvstudy.errors import KvstudyError, in_words
from kvstudy.hosts import ship, wire
from kvstudy.hosts.adoption import become_parent_of_orphans
from kvstudy.hosts.folder import claim
from kvstudy.hosts.host import Here
from kvstudy.hosts.lease import Lease
from kvstudy.hosts.session import AlreadyMeasuring, Session
from kvstudy.hosts.version import versions

SILENCE_S = 12.0
ORDERLY_S = 2.0  # for what runs here when it ends: who waits for it waits 5 s (agent_process.py)
PIECE_BYTES = 4 << 20
DISK_IS_FULL_BYTES = 64 << 10


class Agent:
    def __init__(self, here: Here, folder: Path, session: Session):
        self._here, self._folder, self._session = here, folder, session
        self._objects: dict[int, object] = {}
        self._todo: queue.SimpleQueue[tuple[int, str, bytes]] = queue.SimpleQueue()
        self._answers = os.fdopen(os.dup(1), "wb")
        self._answering = threading.Lock()
        self._last_frame = time.monotonic()
        become_parent_of_orphans()
        os.dup2(2, 1)  # what is printed is no answer

    def serve(self) -> None:
        """Until it ends."""
        threading.Thread(target=self._receive, daemon=True, name="receive").start()
        threading.Thread(target=self._watch, daemon=True, name="watch").start()
        self._answer(0, True, {"pid": os.getpid(), "versions": versions()})
        while True:
            number, kind, payload = self._todo.get()
            try:
                answer = True, getattr(self, f"_on_{kind}")(*wire.unpack(payload))
            except Exception as error:  # whatever it is, who asked has to know
                answer = False, self._named_disk(_sendable(error))
            self._answer(number, *answer)

    def _receive(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                number, (kind, payload) = wire.unpack(wire.read_frame(sys.stdin.buffer))
                self._last_frame = time.monotonic()
                if kind == "tell":
                    self._here.messages.add(*wire.unpack(payload))
                    self._answer(number, True, None)
                elif kind == "beat":
                    self._answer(number, True, time.time_ns())
                elif kind == "end":
                    break
                else:
                    self._todo.put((number, kind, payload))
        self._end()

    def _watch(self) -> None:
        while time.monotonic() - self._last_frame < SILENCE_S:
            time.sleep(1.0)
        self._end()

    def _end(self) -> None:
        """Of this process too, also in the middle of a method, and whatever fails on the way: while it is
        there nobody else gets the host."""
        try:
            self._session.end_children(ORDERLY_S)
            # Who left its session is ours, as an orphan.
            for child in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    child.kill()
            drop_scratch(self._folder)
            self._session.__exit__()
        finally:
            os._exit(0)

    def _answer(self, number: int, is_well: bool, value: object) -> None:
        try:
            frame = wire.pack((number, is_well, wire.pack(value)))
        except Exception as error:
            said = KvstudyError(f"answer cannot be sent: {error!r}")
            frame = wire.pack((number, False, wire.pack(said)))
        with self._answering, suppress(BrokenPipeError):
            wire.write_frame(self._answers, frame)

    def _named_disk(self, error: KvstudyError) -> KvstudyError:
        """What fails on a full disk often says something else: a recording that ends too early."""
        full = in_words(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        if shutil.disk_usage(self._folder).free < DISK_IS_FULL_BYTES and full not in error.message.lower():
            error.message = f"{full}: {error.message}"
            error.args = (error.message,)
        return error

    # ---- what it is asked to do ------------------------------------------------------------------------

    def _on_make(self, number: int, make: object, arguments: tuple) -> None:
        self._objects[number] = make(self._here, *arguments)

    def _on_call(self, number: int, method: str, arguments: tuple, named: dict) -> object:
        return getattr(self._objects[number], method)(*arguments, **named)

    def _on_folder(self, name: str) -> Path:
        """One for the files of a run."""
        path = self._folder / "runs" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _on_files(self, folder: Path) -> list[tuple[str, int]]:
        return [(path.name, path.stat().st_size) for path in sorted(folder.iterdir()) if path.is_file()]

    def _on_read(self, path: Path, offset: int) -> bytes:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(PIECE_BYTES)

    def _on_write(self, path: Path, piece: bytes, is_first: bool) -> None:
        with path.open("wb" if is_first else "ab") as file:
            file.write(piece)

    def _on_drop(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def _on_rest(self) -> None:
        """Answered when all before it is done."""

    def _on_missing(self, digests: list[str]) -> list[str]:
        return ship.missing(self._folder, digests)

    def _on_keep(self, digest: str, piece: bytes, is_last: bool) -> None:
        ship.keep(self._folder, digest, piece, is_last)

    def _on_lay_out(self, manifest: list[ship.Item]) -> None:
        ship.lay_out(self._folder, manifest)


def drop_scratch(folder: Path) -> None:
    """Stores and files of runs; fills and programs stay for the next one."""
    for name in ("runs", "work/stores"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _sendable(error: Exception) -> KvstudyError:
    """As it is where that can be sent; else in words."""
    if isinstance(error, KvstudyError):
        return error
    if isinstance(error, OSError):
        return KvstudyError(in_words(error))
    return KvstudyError(f"{type(error).__name__}: {error}")


def _keep_to(cores: tuple[int, ...]) -> None:
    """The system takes those of them that there are, and an error where there are none."""
    with suppress(OSError):
        os.sched_setaffinity(0, cores)
    if missing := sorted(set(cores) - os.sched_getaffinity(0)):
        raise KvstudyError(
            f"host has no such cores, or may not use them: {', '.join(map(str, missing))}",
            f"it has {os.cpu_count()}: mend cores in the file of hosts",
        )


def _session(folder: Path) -> Session:
    """Who has the lease is the only one of this machine."""
    try:
        return Session(folder / "work").__enter__()
    except AlreadyMeasuring as error:
        raise KvstudyError(
            f"folder is in use by another host: folder={folder}",
            "name one on a disk of each host's own under folder: homes are often shared",
        ) from error


def main(asked: dict) -> None:
    folder = Path(asked["folder"]).expanduser()
    cores = tuple(asked["cores"]) if asked.get("cores") else None
    try:
        if cores:
            _keep_to(cores)
        claim(folder)
        Lease(asked["who"], asked.get("token", ""), asked["name"]).__enter__()  # both end with this process
        session = _session(folder)
    except (KvstudyError, OSError) as error:
        wire.write_frame(sys.stdout.buffer, wire.pack((0, False, wire.pack(_sendable(error)))))
        return
    drop_scratch(folder)
    here = Here(
        folder / ship.TREE, folder / "work", session.registered, asked["name"], asked["address"], cores
    )
    Agent(here, folder, session).serve()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
