#!/usr/bin/env python3
"""Latency of PUT and GET by value size, one connection, in turn; is any size out of line with the others?

    .venv/bin/python service/bench/bench_value_size.py --rounds 300

The sizes lie on both sides of every size at which the service takes another path: 16 KiB (what a worker
copies behind the head), 63 KiB (what a selector does), 64 000 bytes (one read), 64 KiB (one call of a large
answer, the first buffer of a body). Each round asks once for each size, in an order drawn for that round:
what 1 MiB leaves behind, garbage and buffers, meets no size more often than another. The client's own time is
part of each number and the same for all sizes of about the same length.

Exit code 1 when the median of a size is more than --limit times its share of a line through two others. Some
sizes lie so close together that all of them may be slow, so there is more than one line (``shares``).
"""

import argparse
import http.client
import os
import pathlib
import random
import socket
import statistics
import sys
import time
from urllib.parse import urlsplit

from served import Bench, run

KIB = 1024
SIZES = [1, 4, 15, 16, 17, 62, 64, 66, 256, 1024]  # KiB
WARM_UP_ROUNDS = 200


def ask(connection: http.client.HTTPConnection, method: str, size: int, value: bytes | None) -> float:
    """Seconds that one request took."""
    begin = time.perf_counter()
    connection.request(method, f"/v0/entity?id=v{size}", body=value)
    answer = connection.getresponse()
    body = answer.read()
    took = time.perf_counter() - begin
    if answer.status != (201 if method == "PUT" else 200) or (method == "GET" and len(body) != size):
        sys.exit(
            f"wrong answer: method={method}, value_bytes={size}, status={answer.status}, bytes={len(body)}"
        )
    return took


def measured(port: int, rounds: int) -> dict[tuple[str, int], list[float]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sizes = [size * KIB for size in SIZES]
    values = {size: os.urandom(size) for size in sizes}
    times = {(method, size): [] for method in ("PUT", "GET") for size in sizes}
    for number in range(-WARM_UP_ROUNDS, rounds):
        for size in random.Random(number).sample(sizes, len(sizes)):
            for method, value in (("PUT", values[size]), ("GET", None)):
                took = ask(connection, method, size, value)
                if number >= 0:
                    times[method, size].append(took)
    connection.close()
    return times


def shares(times: dict[int, float], size: int) -> list[float]:
    """What ``size`` may take, in seconds, by each line that can be drawn; ``times``: seconds by size.

    - through the sizes next to it;
    - through the nearest of at most half its size and the nearest of at least twice its size;
    - through the two nearest of at least twice and four times its size, and not less than half of what the
      nearer one takes: where larger sizes cost more a byte, that line falls to nothing;
    - where there are no such two, through the two nearest of at most half and a quarter, and not less than
      the nearer one takes.

    The last two alone say something of the ends, and of several slow sizes at an end.
    """
    sizes = sorted(times)
    at = sizes.index(size)
    half, double = _nearest_below(sizes, size), _nearest_above(sizes, size)
    quarter = _nearest_below(sizes, half) if half else None
    fourfold = _nearest_above(sizes, double) if double else None
    found = []
    if 0 < at < len(sizes) - 1:
        found.append(_on_line(times, size, sizes[at - 1], sizes[at + 1]))
    if half and double:
        found.append(_on_line(times, size, half, double))
    if double:
        line = _on_line(times, size, double, fourfold) if fourfold else 0
        found.append(max(line, times[double] / 2))
    if quarter and not fourfold:
        found.append(max(_on_line(times, size, quarter, half), times[half]))
    return found


def _nearest_below(sizes: list[int], size: int) -> int | None:
    return max((one for one in sizes if 2 * one <= size), default=None)


def _nearest_above(sizes: list[int], size: int) -> int | None:
    return min((one for one in sizes if one >= 2 * size), default=None)


def _on_line(times: dict[int, float], size: int, first: int, second: int) -> float:
    return times[first] + (size - first) / (second - first) * (times[second] - times[first])


def of_share(times: dict[int, float], size: int) -> float:
    """How many times its least share ``size`` takes."""
    return times[size] / min(shares(times, size))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument(
        "--limit", type=float, default=2.0, help="most times of its share that a size may take (default: 2)"
    )
    parser.add_argument("--handler", default="selector", choices=["selector", "workers", "virtual"])
    parser.add_argument("--jar", type=pathlib.Path, help="of another build")
    options = parser.parse_args()
    with Bench("kv-value-size") as bench:
        service = bench.service("service", {"handler": options.handler}, heap="256m", jar=options.jar)
        times = measured(urlsplit(service.url).port, options.rounds)
    out_of_line = 0
    print(f"{'':4} {'value_kib':>9} {'p50_us':>9} {'p99_us':>9} {'of_its_share':>12}")
    for method in ("PUT", "GET"):
        medians = {size * KIB: statistics.median(times[method, size * KIB]) for size in SIZES}
        for size, median in medians.items():
            ratio = of_share(medians, size)
            p99 = statistics.quantiles(times[method, size], n=100)[98]
            print(f"{method:4} {size // KIB:9} {median * 1e6:9.0f} {p99 * 1e6:9.0f} {ratio:12.2f}")
            out_of_line += ratio > options.limit
    print(
        f"sizes out of line: {out_of_line}, limit {options.limit:g} times the share of a line through two "
        f"other sizes, {options.rounds} rounds"
    )
    return 1 if out_of_line else 0


if __name__ == "__main__":
    run(main)
