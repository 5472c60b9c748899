#!/usr/bin/env python3
"""How long GETs wait for the syncs of other connections' writes, with --wal always and each handler.

    python3 service/bench/bench_synced.py

Sixteen writers send one PUT after the other, each of which is synced before its answer, while loadgen sends
GETs at a constant rate on connections of its own. With the selector handler the thread that holds a
connection syncs, so GETs that it holds wait; with the others they should not. Beside it the same GETs without
any writer. The handlers take turns, round by round. Needs what bench_service.py needs.
"""

import argparse
import pathlib
import shutil
import statistics
import tempfile
import threading

import bench_stalled
from bench_service import JAR, JVM, REPOSITORY, come_to_rest, fill, java_program, loaded, start

HANDLERS = ("selector", "workers", "virtual")


def measured(options, url: str, writers: int) -> dict:
    """Percentiles of GET in milliseconds, and how many PUTs were acknowledged meanwhile."""
    stop, answers = threading.Event(), [[0, 0, 0] for _ in range(writers)]
    threads = [
        threading.Thread(target=bench_stalled.write, args=(url, i, stop, answers[i]), daemon=True)
        for i in range(writers)
    ]
    for thread in threads:
        thread.start()
    try:
        figures = loaded(options, url, "random_get.lua", 16, options.seconds, 1, "200", options.rate)
    finally:
        stop.set()
    for thread in threads:
        thread.join(60)
    return {name: us / 1000 for name, us in figures["response_time"]["percentiles"].items()} | {
        "puts": sum(answer[0] for answer in answers)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loadgen", default=str(REPOSITORY / "loadgen/target/release/loadgen"))
    parser.add_argument("--jar", default=str(JAR))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=float, default=500, help="GETs a second")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--records", type=int, default=10_000)
    options = parser.parse_args()
    options.loadgen = str(pathlib.Path(options.loadgen).resolve())
    bench_stalled.VALUE = bytes(100)
    work = pathlib.Path(tempfile.mkdtemp(prefix="kv-synced-"))
    services, found = {}, {}
    try:
        for handler in HANDLERS:
            services[handler] = start(
                [
                    java_program(),
                    *JVM,
                    "-Xmx256m",
                    "-jar",
                    options.jar,
                    "--port",
                    "0",
                    "--dir",
                    str(work / handler),
                    "--wal",
                    "always",
                    "--handler",
                    handler,
                ],
                work / f"{handler}.log",
            )
            fill(options, services[handler][1])
            come_to_rest(*services[handler])
        for number in range(options.rounds + 1):  # the first one compiles
            for handler in HANDLERS:
                for writers in (0, options.writers):
                    found.setdefault((handler, writers), []).append(
                        measured(options, services[handler][1], writers)
                    )
            print(f"round {number} of {options.rounds} done", flush=True)
    finally:
        for process, _ in services.values():
            process.terminate()
            process.wait(60)
        shutil.rmtree(work, ignore_errors=True)
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
    main()
