"""A host that is reached by frames: what ``Host`` promises, over any link to its agent.

A beat every BEAT_S tells both ends that the other one is there. Where none is answered for BEAT_TIMEOUT_S the
host is lost: whoever waits for it gets HostLost, and the agent, which hears nothing either, ends all that
runs there (agent.py).
"""

import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol, TypeVar

from kvstudy.errors import HostLost, KvstudyError
from kvstudy.hosts import ship, version, wire
from kvstudy.hosts.agent import PIECE_BYTES

T = TypeVar("T")
BEAT_S = 2.0
BEAT_TIMEOUT_S = 6.0
RENEW_TIMEOUT_S = 10.0  # what goes on until kvstudy has ended takes five more: 15 in all
RETIRE_TIMEOUT_S = 2.0  # for the end of an agent that was lost: it ends by itself
STEP_S = 0.2
SETTLE_TIMEOUT_S = 5.0


class Link(Protocol):
    """To the agent of one host. Errors of any kind mean that it is not there any more."""

    versions: dict[str, str | None]  # of the agent: version.py

    def exchange(self, frame: bytes) -> bytes: ...

    def end(self) -> None:
        """Of the agent, and of all that runs there; waits for it."""


class RemoteHost:
    """``link`` opens a new agent; so does ``renew`` after the last one was lost."""

    is_remote = True

    def __init__(self, name: str, address: str, folder: str, link: Callable[[], Link]):
        self.name, self.address, self.folder = name, address, folder
        self._open = link
        self._threads = _Threads(f"host {name}")
        self._link: Link | None = None
        self._lost: str | None = "not begun"
        self._given_up: str | None = None
        self._numbers = count(1)
        self._beats = 0
        self._companions: tuple[RemoteHost, ...] = ()

    @property
    def is_lost(self) -> bool:
        return self._lost is not None

    @contextmanager
    def together_with(self, others: Iterable["RemoteHost"]) -> Iterator[None]:
        """Who waits for this host gets HostLost when one of the others is lost, too."""
        self._companions = tuple(others)
        try:
            yield
        finally:
            self._companions = ()

    def renew(self) -> None:
        """A fresh agent. KvstudyError says why there is none: out of reach, in use, another version, a folder
        of somebody else's; given up."""
        end = time.monotonic() + RENEW_TIMEOUT_S
        self._retire(RETIRE_TIMEOUT_S)
        self._check_not_given_up()
        try:
            self._link = self._opened(end)
            version.check(self._link.versions)
        except KvstudyError as error:
            self._retire(RETIRE_TIMEOUT_S)
            raise self.named(error) from None
        self._lost = None
        self._beats += 1
        threading.Thread(target=self._beat, args=(self._beats,), daemon=True, name="beat").start()
        if self._given_up:  # meanwhile
            self.abandon(self._given_up)
            self._check_not_given_up()

    def _opened(self, end: float) -> Link:
        """One that opens later is ended at once."""
        opening = self._threads.submit(self._open)
        try:
            return opening.result(max(0.0, end - time.monotonic()))
        except NotInTime:
            opening.add_done_callback(_end_late)
            raise HostLost(f"host {self.name} does not answer within {RENEW_TIMEOUT_S:g} s") from None
        except KvstudyError:
            raise
        except Exception as error:  # another kvstudy there may know nothing of what it is asked
            raise KvstudyError(f"agent cannot be had: {_in_words(error)}", version.HINT) from error

    def _check_not_given_up(self) -> None:
        if self._given_up:
            raise HostLost(f"host {self.name} is lost: {self._given_up}")

    def stationed(self, make: Callable[..., T], *arguments: object) -> T:
        number = next(self._numbers)
        self._ask("make", number, make, arguments)
        return _Away(self, number)

    def call(self, number: int, method: str, arguments: tuple, named: dict) -> object:
        return self._ask("call", number, method, arguments, named)

    def tell(self, word: str) -> None:
        with suppress(KvstudyError):
            self._ask("tell", word)

    def now_ns(self) -> int:
        """By the clock of the host."""
        return self._ask("beat")

    def run_folder(self, here: Path) -> Path:
        return self._ask("folder", here.name)

    def fetch(self, there: Path, here: Path, only: Collection[str] | None = None) -> None:
        for name, size in self._ask("files", there):
            if only is not None and name not in only:
                continue
            with (here / name).open("wb") as file:
                for offset in range(0, size, PIECE_BYTES):
                    file.write(self._ask("read", there / name, offset))

    def drop(self, there: Path) -> None:
        self._ask("drop", there)

    def settle(self) -> None:
        if self._lost:
            return
        resting = self._threads.submit(self._link.exchange, asked("rest"))
        end = time.monotonic() + SETTLE_TIMEOUT_S
        why = f"it does not answer within {SETTLE_TIMEOUT_S:g} s"
        while not self._lost and time.monotonic() < end:
            try:
                resting.result(STEP_S)
                return
            except NotInTime:
                continue
            except Exception as error:
                why = _in_words(error)
                break
        if not self._lost:  # else it is silent, and its agent ends by itself
            self.abandon(why)

    def abandon(self, why: str) -> None:
        self._lose(why)
        self._retire()

    def give_up(self, why: str) -> None:
        self._given_up = why
        self.abandon(why)

    def send(self, here: Path, there: Path) -> None:
        for piece, is_first, _ in _pieces(here):
            self._ask("write", there, piece, is_first)

    def ship(self, root: Path, items: list[ship.Item]) -> None:
        """These files of the project, as they were when they were listed; each goes there once."""
        wanted = set(self._ask("missing", [item.digest for item in items]))
        for item in items:
            if item.digest in wanted:
                wanted.discard(item.digest)
                ship.check_unchanged(root, item)
                for piece, _, is_last in _pieces(root / item.path):
                    self._ask("keep", item.digest, piece, is_last)
        self._ask("lay_out", items)

    def end(self) -> None:
        answers = self._lost is None
        self._lost = self._lost or "ended"
        self._retire(BEAT_TIMEOUT_S if answers else RETIRE_TIMEOUT_S)
        self._threads.end()

    def _retire(self, timeout_s: float = BEAT_TIMEOUT_S) -> None:
        link, self._link = self._link, None
        if link is not None:
            with suppress(Exception):
                self._soon(link.end, timeout_s)

    @property
    def _loss(self) -> str:
        return f"host {self.name} is lost: {self._lost}"

    def _ask(self, kind: str, *payload: object) -> object:
        if self._lost:
            raise HostLost(self._loss)
        frame, link = asked(kind, *payload), self._link
        try:
            is_well, packed = wire.unpack(self._answer(self._threads.submit(link.exchange, frame)))
            value = wire.unpack(packed)
        except _CompanionLost as lost:
            raise HostLost(lost.message) from None
        except KvstudyError as error:
            self._lose(error.message)
            raise HostLost(f"host {self.name} is lost: {error.message}") from error
        except Exception as error:
            self._lose(_in_words(error))
            raise HostLost(f"host {self.name} is lost: {_in_words(error)}") from error
        if not is_well:
            raise self.named(value)
        return value

    def named(self, error: KvstudyError) -> KvstudyError:
        """With the name of this host, where it does not say it itself."""
        if not re.search(rf"\bhost {re.escape(self.name)}\b", error.message):
            error.message = f"host {self.name}: {error.message}"
            error.args = (error.message,)
        return error

    def _answer(self, asked: Future) -> bytes:
        """Waits as long as the host is there, and its companions are."""
        while True:
            try:
                return asked.result(STEP_S)
            except NotInTime:
                if self._lost:
                    raise HostLost(self._lost) from None
                if gone := next((one for one in self._companions if one.is_lost), None):
                    raise _CompanionLost(gone._loss) from None

    def _soon(self, work: Callable[[], T], timeout_s: float) -> T:
        try:
            return self._threads.submit(work).result(timeout_s)
        except NotInTime:
            raise HostLost(f"host {self.name} does not answer within {timeout_s:g} s") from None

    def _lose(self, why: str) -> None:
        self._lost = self._lost or why

    def _beat(self, number: int) -> None:
        """Until the host is lost, or has another agent."""
        frame, link = asked("beat"), self._link
        while not self._lost and number == self._beats:
            try:
                self._threads.submit(link.exchange, frame).result(BEAT_TIMEOUT_S)
            except NotInTime:
                self._lose(f"it does not answer within {BEAT_TIMEOUT_S:g} s")
            except RuntimeError:
                return  # ended
            except Exception as error:
                self._lose(_in_words(error))
            time.sleep(BEAT_S)


def give_up(hosts: Iterable[RemoteHost], why: str) -> None:
    """All at once: one that cannot be reached is waited for."""
    hosts = list(hosts)
    with ThreadPoolExecutor(max(1, len(hosts))) as threads:
        list(threads.map(lambda host: host.give_up(why), hosts))


class _CompanionLost(HostLost):
    """The host that was asked is there."""


class _Threads:
    """For calls of a link: as many as hang at once. An executor's threads are waited for at the end of the
    process, these are not: a call through a scheduler that stands still returns when that goes on.

    None ends before ``end``: what a call has started (a scheduler) ends with the thread that started it."""

    def __init__(self, name: str):
        self._name = name
        self._todo: SimpleQueue[tuple[Future, Callable, tuple] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._changing = threading.Lock()
        self._count, self._has_ended = 0, False

    def submit(self, work: Callable[..., T], *arguments: object) -> "Future[T]":
        """RuntimeError after the end."""
        future: Future[T] = Future()
        with self._changing:
            if self._has_ended:
                raise RuntimeError("host has ended")
            self._todo.put((future, work, arguments))
            if not self._idle.acquire(blocking=False):
                self._count += 1
                threading.Thread(target=self._work, daemon=True, name=self._name).start()
        return future

    def end(self) -> None:
        """Of each when it has nothing to do."""
        with self._changing:
            if not self._has_ended:
                self._has_ended = True
                for _ in range(self._count):
                    self._todo.put(None)

    def _work(self) -> None:
        while (given := self._todo.get()) is not None:
            future, work, arguments = given
            try:
                future.set_result(work(*arguments))
            except BaseException as error:
                future.set_exception(error)
            del future, work, arguments, given  # what they hold may be large
            self._idle.release()


class _Away:
    """An object that lives on a host: its methods are called there."""

    def __init__(self, host: RemoteHost, number: int):
        self._host, self._number = host, number

    def __getattr__(self, method: str) -> Callable:
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda *arguments, **named: self._host.call(self._number, method, arguments, named)


def _end_late(opening: Future) -> None:
    if opening.exception() is None:
        with suppress(Exception):
            opening.result().end()


def asked(kind: str, *payload: object) -> bytes:
    """A frame for an agent."""
    return wire.pack((kind, wire.pack(payload)))


def _pieces(path: Path) -> Iterator[tuple[bytes, bool, bool]]:
    """At least one, each with whether it is the first, and the last. Two are in memory, of a file of any
    size."""
    with path.open("rb") as file:
        piece, is_first = file.read(PIECE_BYTES), True
        while is_first or piece:
            after = file.read(PIECE_BYTES)
            yield piece, is_first, not after
            piece, is_first = after, False


def _in_words(error: Exception) -> str:
    if isinstance(error, KvstudyError):
        return error.message
    text = str(error).splitlines()
    return (text[0] if text else type(error).__name__)[:200]
