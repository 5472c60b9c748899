#!/usr/bin/env python3
"""How long GETs wait for the syncs of other connections' writes, with --wal always and each handler.

    .venv/bin/python service/bench/bench_synced.py

Sixteen writers send one PUT after the other, each of which is synced before its answer, while loadgen sends
GETs at a constant rate on connections of its own. With the selector handler the thread that holds a
connection syncs, so GETs that it holds wait; with the others they should not. Beside it the same GETs without
any writer. The handlers take turns, round by round.
"""

import argparse
import statistics
import threading
from pathlib import Path

import bench_stalled
from served import Bench, run

from kvstudy.errors import RunFailed

HANDLERS = ("selector", "workers", "virtual")


def measured(bench: Bench, options, service, writers: int) -> dict:
    """Percentiles of GET in milliseconds, and how many PUTs were acknowledged meanwhile."""
    stop, answers = threading.Event(), [[0, 0, 0] for _ in range(writers)]
    threads = [
        threading.Thread(
            target=bench_stalled.write, args=(service.url, i, stop, answers[i], 0.0), daemon=True
        )
        for i in range(writers)
    ]
    for thread in threads:
        thread.start()
    try:
        figures = bench.loaded(service, "random_get", options.records, 16, options.seconds, rate=options.rate)
    finally:
        stop.set()
    for thread in threads:
        thread.join(60)
    if any(written == 0 or wrong for written, _refused, wrong in answers):
        raise RunFailed(f"writers did not write: written, refused and wrong of each: {answers}")
    return {name: us / 1000 for name, us in figures["response_time"]["percentiles"].items()} | {
        "puts": sum(answer[0] for answer in answers)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jar", type=Path, help="of another build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=float, default=500, help="GETs a second")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--records", type=int, default=10_000)
    options = parser.parse_args()
    bench_stalled.VALUE = bytes(100)
    services, found = {}, {}
    with Bench("kv-synced") as bench:
        for handler in HANDLERS:
            always = {"wal": "always", "handler": handler}
            services[handler] = bench.service(handler, always, heap="256m", jar=options.jar)
            bench.fill(services[handler], options.records)
        for number in range(options.rounds + 1):  # the first one compiles
            for handler in HANDLERS:
                for writers in (0, options.writers):
                    found.setdefault((handler, writers), []).append(
                        measured(bench, options, services[handler], writers)
                    )
            print(f"round {number} of {options.rounds} done", flush=True)
    print(
        f"\nGET at {options.rate:g} 1/s, {options.rounds} rounds of {options.seconds:g} s, medians "
        "(smallest-largest), ms\n"
    )
    print("| handler | writers | p50 | p99 | p99.9 | PUT acknowledged, 1/s |\n|---|---|---|---|---|---|")
    for (handler, writers), rounds in found.items():
        of = {name: [one[name] for one in rounds[1:]] for name in ("50", "99", "99.9", "puts")}
        cells = [
            f"{statistics.median(of[name]):.2f} ({min(of[name]):.2f}-{max(of[name]):.2f})"
            for name in ("50", "99", "99.9")
        ]
        print(
            f"| {handler} | {writers} | {' | '.join(cells)} | "
            f"{statistics.median(of['puts']) / (options.seconds + 1):,.0f} |"
        )


if __name__ == "__main__":
    run(main)
