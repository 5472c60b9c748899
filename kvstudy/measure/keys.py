"""Which keys a generator's thread asks for, and what is stored under them: experiments/workloads/keyspace.lua once more, in Python.

    key_of(42, 16)                                   "k000000000000042"
    list(islice(requests(configuration, 0, seed), 3))  [("PUT", 77), ("PUT", 3), ("PUT", None)]

The order of a thread's requests is fixed by workload, arguments, seed and thread: who knows how many of them were sent knows what they
wrote. ``None`` stands for a key that cannot be told for sure: Zipf's law needs a power whose last bit may differ between two programs.
tests/workloads compares both sides, request by request.
"""

import math
import struct
from collections.abc import Callable, Iterator

from kvstudy.plan.run_plan import Configuration

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_GOLDEN = 0.6180339887
_UNSURE = 1e-9  # relative distance to the next whole number under which a power's last bit could matter


def key_of(number: int, key_bytes: int) -> str:
    return "k" + str(number).zfill(key_bytes - 1)


def value_of(key: str, value_bytes: int) -> bytes:
    length = value_bytes - len(key) - 1
    return f"{key} {(_LETTERS * (length // len(_LETTERS) + 1))[:length]}".encode()


def walk(configuration: Configuration, position: int) -> int:
    """The key at a position of the walk that all threads share: thread t of T takes positions t, t + T, …"""
    key_count = configuration.workload_args["key_count"]
    if configuration.workload.startswith("repeated_"):
        return position % key_count
    return position * _step(key_count) % key_count


def requests(configuration: Configuration, thread: int, seed: int) -> Iterator[tuple[str, int | None]]:
    """Method and key number of a thread's requests, without end. ValueError for a workload whose keys are not known here."""
    workload, arguments = configuration.workload, configuration.workload_args
    if workload in ("unique_put", "unique_get", "repeated_put", "repeated_get"):
        position = thread
        while True:
            yield configuration.method, walk(configuration, position)
            position += configuration.threads
    if workload not in ("put", "get", "random_get", "delete", "mixed"):
        raise ValueError(f"keys of this workload are not known: {workload}")
    random = LuaRandom(seed * 1009 + thread)
    draw = _drawn("uniform" if workload == "random_get" else arguments["distribution"], arguments["key_count"], random.draw)
    read_share = arguments.get("read_share", 0.5)
    while True:
        method = configuration.method if workload != "mixed" else "GET" if random.draw() < read_share else "PUT"
        yield method, draw()


class LuaRandom:
    """LuaJIT's math.random after math.randomseed(seed): the combined Tausworthe generator TW223 of Pierre L'Ecuyer, "Tables of maximally
    equidistributed combined LFSR generators" (1999), with four components of 64 bits."""

    _COMPONENTS = ((63, 31, 18), (58, 19, 28), (55, 24, 7), (47, 21, 8))
    _MASK = (1 << 64) - 1

    def __init__(self, seed: float):
        self._state = []
        value = float(seed)
        for component in self._COMPONENTS:
            value = value * math.pi + math.e
            (bits,) = struct.unpack("<Q", struct.pack("<d", value))
            least = 1 << (64 - component[0])
            self._state.append(bits + least if bits < least else bits)
        for _ in range(10):
            self.draw()

    def draw(self) -> float:
        """0 ≤ u < 1, of 52 bits."""
        state, mask, result = self._state, self._MASK, 0
        for place, (k, q, s) in enumerate(self._COMPONENTS):
            z = state[place]
            z = ((((z << q) & mask) ^ z) >> (k - s)) ^ (((z & (mask << (64 - k))) << s) & mask)
            state[place] = z
            result ^= z
        return (result & 0xF_FFFF_FFFF_FFFF) / (1 << 52)


def _drawn(distribution: str, key_count: int, random: Callable[[], float]) -> Callable[[], int | None]:
    if distribution == "uniform":
        return lambda: int(random() * key_count)
    rank = _zipfian_rank(key_count, random)
    if distribution == "latest":
        return lambda: None if (drawn := rank()) is None else key_count - 1 - drawn
    step = _step(key_count)
    return lambda: None if (drawn := rank()) is None else drawn * step % key_count


def _zipfian_rank(key_count: int, random: Callable[[], float]) -> Callable[[], int | None]:
    theta = 0.99
    zeta, zeta2 = 0.0, 1 + 0.5**theta
    for rank in range(1, key_count + 1):
        zeta += 1 / rank**theta
    alpha = 1 / (1 - theta)
    eta = (1 - (2 / key_count) ** (1 - theta)) / (1 - zeta2 / zeta)

    def drawn() -> int | None:
        u = random()
        uz = u * zeta
        if key_count == 1:
            return 0
        if abs(uz - 1) < _UNSURE or abs(uz - zeta2) < _UNSURE:
            return None
        if uz < zeta2:
            return 0 if uz < 1 else 1
        place = key_count * (eta * u - eta + 1) ** alpha
        return None if abs(place - round(place)) < _UNSURE * key_count else min(key_count - 1, int(place))

    return drawn


def _step(key_count: int) -> int:
    """Of the scattered walk: near the golden section of the range, and without a common divisor."""
    step = max(1, math.floor(key_count * _GOLDEN))
    while math.gcd(step, key_count) != 1:
        step += 1
    return step
