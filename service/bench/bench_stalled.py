#!/usr/bin/env python3
"""Latency of GET on other connections while writers are stalled.

    .venv/bin/python service/bench/bench_stalled.py --seconds 20

Writers put large values in a closed loop, each on its own connection, into a store with small memtables whose
compaction stops writers soon, so most of them wait at any time. Meanwhile loadgen gets small values at a
constant rate; its response time counts from the intended start.

Exit code 1 when the p99 of GET is --limit-ms or more, or when the writers, taken together, were stalled for
less than half of the time that the GETs took.
"""

import argparse
import http.client
import os
import re
import sys
import threading
import time
import urllib.request
from pathlib import Path

from served import Bench, run

# One frozen memtable and a level 0 that stops writers at two runs: they wait for flush or compaction nearly
# all the time.
STALLING = {
    "memtable_bytes": "1m",
    "frozen_memtables": 1,
    "level0_compaction": 2,
    "level0_slowdown": 2,
    "level0_stop": 2,
}
VALUE = os.urandom(64 << 10)
STALLED_SHARE_MIN = 0.5


def stalled_s(url: str) -> float:
    """Seconds that writers have waited for flush or compaction so far, all causes and writers together."""
    text = urllib.request.urlopen(f"{url}/metrics", timeout=30).read().decode()
    return sum(
        float(seconds)
        for seconds in re.findall(r"^kv_store_write_stall_seconds_total\{.*\} (\S+)", text, re.M)
    )


def write(url: str, number: int, stop: threading.Event, answers: list[int]) -> None:
    """A closed loop of PUTs until ``stop``; counts 201 in ``answers[0]`` and 503 in ``answers[1]``, anything
    else in ``answers[2]``."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    sent = 0
    while not stop.is_set():
        connection.request("PUT", f"/v0/entity?id=stalled-{number}-{sent % 200}", body=VALUE)
        answer = connection.getresponse()
        answer.read()
        answers[{201: 0, 503: 1}.get(answer.status, 2)] += 1
        sent += 1
    connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jar", type=Path, help="of another build")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", type=float, default=500, help="GETs a second")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument(
        "--records", type=int, default=10_000, help="small records in the store, which the GETs are for"
    )
    parser.add_argument("--limit-ms", type=float, default=10)
    options = parser.parse_args()
    stop, answers = threading.Event(), [[0, 0, 0] for _ in range(options.writers)]
    with Bench("kv-stalled") as bench:
        service = bench.service("service", STALLING, heap="256m", jar=options.jar)
        url = service.url
        bench.fill(service, options.records)
        get = service, "random_get", options.records, 16
        bench.loaded(*get, seconds=5, rate=options.rate)  # compile the code path
        writers = [
            threading.Thread(target=write, args=(url, i, stop, answers[i]), daemon=True)
            for i in range(options.writers)
        ]
        try:
            for writer in writers:
                writer.start()
            before, began = stalled_s(url), time.monotonic()
            figures = bench.loaded(*get, seconds=options.seconds, rate=options.rate)
            share = (stalled_s(url) - before) / (time.monotonic() - began) / options.writers
        finally:
            stop.set()
        for writer in writers:
            writer.join(60)
    response = figures["response_time"]
    percentiles = {name: response["percentiles"][name] / 1000 for name in ("50", "99", "99.9")}
    written, refused, wrong = (sum(column) for column in zip(*answers, strict=True))
    print(
        f"GET while {options.writers} writers are stalled: "
        + ", ".join(f"p{name}={ms:.2f}ms" for name, ms in percentiles.items())
    )
    print(
        f"writers: written={written}, refused={refused}, wrong={wrong}, stalled for {share:.0%} of the time"
    )
    if wrong or share < STALLED_SHARE_MIN:
        print(
            "writers were not stalled enough, or got wrong answers: nothing is said of GET", file=sys.stderr
        )
        return 1
    return 0 if percentiles["99"] < options.limit_ms else 1


if __name__ == "__main__":
    run(main)
