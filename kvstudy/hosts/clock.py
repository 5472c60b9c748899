"""How far the clocks of two hosts are apart, and within which bound that is known.

    port = Clock(address).port          on one host: answers each byte with its time
    offset_to(address, port)            on the other: Offset(theirs − ours, bound), of the fastest of ROUNDS
                                        round trips

A round trip that took t says that their clock was read some time within t: the offset is right to ± t / 2,
whatever the network does. The fastest one says most. UTC alone crosses hosts: a monotonic clock means nothing
elsewhere.

    watch = ClockWatch()                on each host, while times of two hosts are set beside one another
    watch.course(since)                 how straight its wall clock went meanwhile

Two offsets say nothing of what lies between them. What a wall clock did there each host sees by itself:
beside a clock that nobody sets or slews it goes on a straight line.
"""

import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

LOOK_EVERY_S = 0.2
SLEW_MAX = 500e-6  # what NTP may slew: 500 ppm
TRIES = 5
ROUNDS = 200
TIMEOUT_S = 2.0
# Of Linux; elsewhere the monotonic clock is slewed with the wall clock, and only steps are seen.
STEADY = getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC)
_NS_BYTES = 8
BANDWIDTH_BYTES = 16 << 20


@dataclass(frozen=True)
class Offset:
    """``offset_ns``: what has to be added to our time to get theirs; right to ± ``bound_ns``.
    ``round_trip_ns``: the median one."""

    at_ns: int
    offset_ns: int
    bound_ns: int
    round_trip_ns: int


def moved_by(before: Offset, after: Offset, at_ns: int) -> float:
    """Their time minus ours at ``at_ns`` of our clock, in ns: on the straight line through both, so that a
    drift is followed."""
    length = after.at_ns - before.at_ns
    share = (at_ns - before.at_ns) / length if length else 0.0
    return before.offset_ns + share * (after.offset_ns - before.offset_ns)


@dataclass(frozen=True)
class Course:
    """Of a wall clock between two looks at it. ``wandered_ns``: how far it was off the straight line between
    them, at most; ``step_ns``: by how much it moved at once, more than it may be slewed."""

    wandered_ns: int
    step_ns: int


def course_of(looks: list[tuple[int, int]]) -> Course:
    """``looks``: (a steady time, the wall clock minus that), in ns, in their order."""
    (begin, first), (end, last) = looks[0], looks[-1]
    slope = (last - first) / (end - begin) if end > begin else 0.0
    wandered = max(abs(ahead - first - slope * (at - begin)) for at, ahead in looks)
    step = 0.0
    for (earlier, before), (later, after) in pairwise(looks):
        moved = after - before
        beyond = abs(moved) - SLEW_MAX * (later - earlier)
        if beyond > abs(step):
            step = beyond if moved > 0 else -beyond
    return Course(round(wandered), round(step))


class ClockWatch:
    """Looks at the wall clock of this host every LOOK_EVERY_S, until ``close``. ``wall_ns``, ``steady_ns``:
    the clocks."""

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = lambda: time.clock_gettime_ns(STEADY),
    ):
        self._wall_ns, self._steady_ns = wall_ns, steady_ns
        self._looks: list[tuple[int, int]] = []
        self._looking, self._over = threading.Lock(), threading.Event()
        threading.Thread(target=self._watch, daemon=True, name="clock watch").start()

    def mark(self) -> int:
        """A moment that ``course`` may begin with."""
        return self._look()

    def course(self, since: int) -> Course:
        """From the mark until now."""
        self._look()
        with self._looking:
            return course_of([look for look in self._looks if look[0] >= since])

    def close(self) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            self._look()

    def _look(self) -> int:
        """The nearest of a few tries: between the two clocks one may be kept waiting."""
        with self._looking:
            tries = []
            for _ in range(TRIES):
                before, wall, after = self._steady_ns(), self._wall_ns(), self._steady_ns()
                tries.append((after - before, before, wall - (before + after) // 2))
            _, at, ahead = min(tries)
            self._looks.append((at, ahead))
            return at


class Clock:
    """Serves the time of this host, and takes what it is sent as fast as it comes, until ``close``."""

    def __init__(self, address: str, now_ns: Callable[[], int] = time.time_ns):
        self._now_ns = now_ns
        self._server = socket.create_server((address, 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True, name="clock").start()

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # else accept() would go on waiting
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                with suppress(OSError), connection:
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(TIMEOUT_S)
        if connection.recv(1) == b"b":  # a stream, for the bandwidth: one byte when all of it has come
            left = BANDWIDTH_BYTES
            while left > 0 and (got := len(connection.recv(1 << 18))):
                left -= got
            connection.sendall(b".")
            return
        while True:
            connection.sendall(self._now_ns().to_bytes(_NS_BYTES, "big"))
            if not connection.recv(1):
                return


def offset_to(
    address: str, port: int, now_ns: Callable[[], int] = time.time_ns, rounds: int = ROUNDS
) -> Offset:
    """OSError when the other host cannot be reached."""
    found = []
    with socket.create_connection((address, port), timeout=TIMEOUT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(rounds):
            sent, begun = now_ns(), time.monotonic_ns()
            connection.sendall(b"?")
            theirs = int.from_bytes(_exactly(connection, _NS_BYTES), "big")
            length = time.monotonic_ns() - begun
            found.append((length, theirs - (sent + length // 2)))
    length, offset = min(found)
    return Offset(now_ns(), offset, -(-length // 2), sorted(found)[len(found) // 2][0])


def bandwidth_bytes_per_s(address: str, port: int) -> float:
    """To the other host, of one connection."""
    block = bytes(1 << 18)
    with socket.create_connection((address, port), timeout=TIMEOUT_S * 5) as connection:
        connection.sendall(b"b")
        begun = time.monotonic()
        for _ in range(BANDWIDTH_BYTES // len(block)):
            connection.sendall(block)
        _exactly(connection, 1)
        return BANDWIDTH_BYTES / (time.monotonic() - begun)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise OSError("clock of the other host hung up")
        data += piece
    return data


if __name__ == "__main__":
    # kvstudy hosts check: until who asks hangs up.
    print(Clock(sys.argv[1]).port, flush=True)
    sys.stdin.read()
