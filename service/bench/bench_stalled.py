#!/usr/bin/env python3
"""Latency of GET on other connections while writers are stalled, or while checkpoints are made.

    .venv/bin/python service/bench/bench_stalled.py --seconds 20
    .venv/bin/python service/bench/bench_stalled.py --seconds 20 --checkpoints

Writers put large values in a closed loop, each on its own connection, into a store with small memtables whose
compaction stops writers soon, so most of them wait at any time. With --checkpoints one writer fills memtables
of the usual size, and checkpoints are made one after the other, each of which flushes one. Meanwhile loadgen
gets small values at a constant rate; its response time counts from the intended start.

Exit code 1 when the p99 of GET is --limit-ms or more, or when the writers, taken together, were stalled, or
checkpoints made, for less than half of the time that the GETs took.
"""

import argparse
import http.client
import os
import re
import shutil
import statistics
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
PAUSE_S = 0.01  # between two writes while checkpoints are made: 6 MB/s, which stalls nobody
SHARE_MIN = 0.5


def stalled_s(url: str) -> float:
    """Seconds that writers have waited for flush or compaction so far, all causes and writers together."""
    text = urllib.request.urlopen(f"{url}/metrics", timeout=30).read().decode()
    return sum(
        float(seconds)
        for seconds in re.findall(r"^kv_store_write_stall_seconds_total\{.*\} (\S+)", text, re.M)
    )


def write(url: str, number: int, stop: threading.Event, answers: list[int], pause_s: float) -> None:
    """A closed loop of PUTs, with a pause after each, until ``stop``; counts 201 in ``answers[0]``, 503 in
    ``answers[1]``, anything else in ``answers[2]``."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    sent = 0
    while not stop.is_set():
        connection.request("PUT", f"/v0/entity?id=stalled-{number}-{sent % 200}", body=VALUE)
        answer = connection.getresponse()
        answer.read()
        answers[{201: 0, 503: 1}.get(answer.status, 2)] += 1
        sent += 1
        time.sleep(pause_s)
    connection.close()


def checkpoint(url: str, folder: Path, stop: threading.Event, took_s: list[float]) -> None:
    """One after the other until ``stop``, each deleted when it is made; appends how long it took."""
    while not stop.is_set():
        made = folder / f"checkpoint-{len(took_s)}"
        began = time.monotonic()
        asked = urllib.request.Request(f"{url}/v0/admin/checkpoint?dir={made}", method="POST")
        urllib.request.urlopen(asked, timeout=60).read()
        took_s.append(time.monotonic() - began)
        shutil.rmtree(made)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jar", type=Path, help="of another build")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", type=float, default=500, help="GETs a second")
    parser.add_argument("--writers", type=int, help="16; with --checkpoints 1")
    parser.add_argument(
        "--checkpoints", action="store_true", help="no writer is stalled, checkpoints are made"
    )
    parser.add_argument(
        "--records", type=int, default=10_000, help="small records in the store, which the GETs are for"
    )
    parser.add_argument("--limit-ms", type=float, default=5)
    options = parser.parse_args()
    many = options.writers or (1 if options.checkpoints else 16)
    stop, answers, took_s = threading.Event(), [[0, 0, 0] for _ in range(many)], []
    with Bench("kv-stalled") as bench:
        given, pause_s = ({}, PAUSE_S) if options.checkpoints else (STALLING, 0.0)
        service = bench.service("service", given, heap="256m", jar=options.jar)
        url = service.url
        bench.fill(service, options.records)
        get = service, "random_get", options.records, 16
        bench.loaded(*get, seconds=5, rate=options.rate)  # compile the code path
        writers = [
            threading.Thread(target=write, args=(url, i, stop, answers[i], pause_s), daemon=True)
            for i in range(many)
        ]
        if options.checkpoints:
            given_to = url, bench.folder, stop, took_s
            writers.append(threading.Thread(target=checkpoint, args=given_to, daemon=True))
        try:
            for writer in writers:
                writer.start()
            before, began = stalled_s(url), time.monotonic()
            figures = bench.loaded(*get, seconds=options.seconds, rate=options.rate)
            lasted_s = time.monotonic() - began
            share = (sum(took_s) if options.checkpoints else (stalled_s(url) - before) / many) / lasted_s
        finally:
            stop.set()
        for writer in writers:
            writer.join(60)
    response = figures["response_time"]
    percentiles = {name: response["percentiles"][name] / 1000 for name in ("50", "99", "99.9")}
    written, refused, wrong = (sum(column) for column in zip(*answers, strict=True))
    what = (
        f"{len(took_s)} checkpoints are made, of {1000 * statistics.median(took_s or [0]):.0f} ms each"
        if options.checkpoints
        else f"{many} writers are stalled"
    )
    print(f"GET while {what}: " + ", ".join(f"p{name}={ms:.2f}ms" for name, ms in percentiles.items()))
    print(f"writers: written={written}, refused={refused}, wrong={wrong}; that took {share:.0%} of the time")
    if wrong or share < SHARE_MIN:
        print(
            f"that took less than {SHARE_MIN:.0%} of the time, or writers got wrong answers: nothing is said "
            "of GET",
            file=sys.stderr,
        )
        return 1
    return 0 if percentiles["99"] < options.limit_ms else 1


if __name__ == "__main__":
    run(main)
