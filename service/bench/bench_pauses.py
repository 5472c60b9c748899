#!/usr/bin/env python3
"""Pauses of the JVM and bytes that requests allocate, at a constant mixed rate, collector by collector.

    .venv/bin/python service/bench/bench_pauses.py --gc Serial G1 --seconds 300

Each collector gets a service of its own on a copy of the same filled store, and the same requests: half
reads, half writes, 50 000/s over 64 connections, with -Xmx128m. Before that comes a warm-up at the same rate
(--warm-up), and a collection of everything is asked for: the first ones after a start copy what then stays,
and would come at any time in the next minutes. With --from-start none is asked for, and they count.

A pause is a safepoint of the collector, from the moment when threads are asked to stop to the one when they
go on: that is what requests wait for. Other safepoints are counted apart. Bytes are what the JVM counts for
each of its threads (jcmd Thread.print -e, rounded to 1 % by it), by all requests that were answered; threads
that ended meanwhile are left out.

Fails when the first collector named pauses for over a millisecond (--limit-ms), when its selectors allocate
over 32 bytes a request (--limit-bytes), or when a rate was not held.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from served import Bench, Unrecorded, options_of, run

from kvstudy.project import service_jar
from kvstudy.subject.jdk import find_jdk

COLLECTORS = ("Serial", "Parallel", "G1", "Z", "Shenandoah")
SAFEPOINT = re.compile(r'Safepoint "(\w+)",.* Total: +(\d+) ns')
OF_COLLECTOR = re.compile(r"Collect|GC|^(G1|Z|Shenandoah)[A-Z]")
PLACE = re.compile(r" [\d.]+:\d+")  # in the name of a thread: where it listens
THREAD = re.compile(r'^"(.*)" #(\d+) .*\ballocated=(\d+)([BKMG]) ', re.M)
UNITS = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SELECTOR = "NIO Selector"
CONNECTING_S = 1.0  # of the measured step, not in its percentiles
REST_S = 60.0
HELD_SHARE = 0.99  # of the offered rate
SHOWN_BYTES_MIN = 0.1  # a request; threads with less are one row


def safepoints_ms(log: str) -> tuple[list[float], list[float]]:
    """How long the collector's stopped all threads, and how long others did."""
    found = [(name, int(total_ns) / 1e6) for name, total_ns in SAFEPOINT.findall(log)]
    pauses = [ms for name, ms in found if OF_COLLECTOR.search(name)]
    return pauses, [ms for name, ms in found if not OF_COLLECTOR.search(name)]


def allocated(thread_print: str) -> dict[tuple[str, str], int]:
    """By name and number of each Java thread the bytes that it has allocated since it began."""
    return {
        (name, number): int(amount) * UNITS[unit]
        for name, number, amount, unit in THREAD.findall(thread_print)
    }


def by_thread(before: dict, after: dict, requests: int) -> dict[str, float]:
    """Bytes a request by the threads' name, most first."""
    found: dict[str, float] = {}
    for thread, amount in after.items():
        name = PLACE.sub("", thread[0])
        found[name] = found.get(name, 0.0) + (amount - before.get(thread, 0)) / requests
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def of_selectors(threads: dict[str, float]) -> float:
    return sum(amount for name, amount in threads.items() if name.startswith(SELECTOR))


def jcmd(pid: int, *words: str) -> str:
    program = find_jdk().home / "bin" / "jcmd"
    return subprocess.run([program, str(pid), *words], check=True, capture_output=True, text=True).stdout


def allocated_by(pid: int) -> dict[tuple[str, str], int]:
    return allocated(jcmd(pid, "Thread.print", "-e"))


def service_of(bench: Bench, options, gc: str, log: Path) -> Unrecorded:
    """All of its heap from the start: what G1 gives back at a collection of everything it asks for again."""
    flags = [f"-Xmx{options.heap}", f"-Xms{options.heap}", f"-XX:+Use{gc}GC"]
    flags.append(f"-Xlog:safepoint:file={log}:uptime,level,tags:filecount=0")
    jar = options.jar or service_jar(bench.root)
    return Unrecorded(find_jdk(), jar, options.service_options, flags, bench.root, has_admin=None)


def step(bench: Bench, options, gc: str, filled: Path) -> dict:
    """Of a service that is started for it, on a copy of the filled store."""
    store, log = bench.folder / gc, bench.folder / f"{gc}.safepoints"
    shutil.copytree(filled, store)
    service = bench.launched(gc, service_of(bench, options, gc, log), store)
    (pid,) = service.pids
    load = (service, "mixed", options.records, options.connections)
    try:
        service.come_to_rest(REST_S)
        bench.loaded(*load, options.warm_up, CONNECTING_S, options.rate)
        if not options.from_start:
            jcmd(pid, "GC.run")
        before, logged = allocated_by(pid), log.stat().st_size
        result = bench.loaded(*load, options.seconds, CONNECTING_S, options.rate)
        pauses, others = safepoints_ms(log.read_text()[logged:])
        after = allocated_by(pid)
    finally:
        service.stop(timeout_s=60)
        shutil.rmtree(store)
    return {
        "gc": gc,
        "pauses_ms": pauses,
        "other_safepoints_ms": others,
        "bytes_per_request": by_thread(before, after, result["counts"]["completed"]),
        "result": result,
    }


def misses(found: dict, rate: float, limit_ms: float, limit_bytes: float) -> list[str]:
    """What is not as it should be."""
    longest, selectors = max(found["pauses_ms"], default=0.0), of_selectors(found["bytes_per_request"])
    achieved = found["result"]["achieved_rate_rps"]
    return [
        *([f"a pause of {longest:.2f} ms, limit {limit_ms:g}"] if longest > limit_ms else []),
        *(
            [f"{selectors:.1f} bytes a request on selectors, limit {limit_bytes:g}"]
            if selectors > limit_bytes
            else []
        ),
        *([f"{achieved:,.0f}/s instead of {rate:,.0f}/s"] if achieved < HELD_SHARE * rate else []),
    ]


def print_pauses(results: list[dict], limit_ms: float) -> None:
    print(
        f"| collector | pauses | longest, ms | sum, ms | over {limit_ms:g} ms | other safepoints "
        "| longest, ms | sum, ms | bytes a request, selectors | all threads | p99.9, ms | answered, 1/s |"
    )
    print("|---" * 12 + "|")
    for found in results:
        pauses, others, threads = (
            found[name] for name in ("pauses_ms", "other_safepoints_ms", "bytes_per_request")
        )
        cells = [
            found["gc"],
            *(f"{len(pauses)}", f"{max(pauses, default=0):.2f}", f"{sum(pauses):.1f}"),
            f"{sum(ms > limit_ms for ms in pauses)}",
            *(f"{len(others)}", f"{max(others, default=0):.2f}", f"{sum(others):.1f}"),
            *(f"{of_selectors(threads):.1f}", f"{sum(threads.values()):.1f}"),
            f"{found['result']['response_time']['percentiles']['99.9'] / 1e3:.2f}",
            f"{found['result']['achieved_rate_rps']:,.0f}",
        ]
        print(f"| {' | '.join(cells)} |")


def print_threads(results: list[dict]) -> None:
    """A row for each thread that allocates something worth a row."""
    of = {found["gc"]: found["bytes_per_request"] for found in results}
    shown = shown_threads(of.values())
    print(f"| bytes a request, by thread | {' | '.join(of)} |")
    print("|---" * (len(of) + 1) + "|")
    for name in shown:
        print(f"| {name} | {' | '.join(f'{threads.get(name, 0):.1f}' for threads in of.values())} |")
    rest = [sum(amount for name, amount in threads.items() if name not in shown) for threads in of.values()]
    print(f"| all others | {' | '.join(f'{amount:.1f}' for amount in rest)} |")


def shown_threads(of_collectors: Iterable[dict[str, float]]) -> list[str]:
    most: dict[str, float] = {}
    for threads in of_collectors:
        for name, amount in threads.items():
            most[name] = max(most.get(name, 0.0), amount)
    return [
        name for name, amount in sorted(most.items(), key=lambda item: -item[1]) if amount >= SHOWN_BYTES_MIN
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--gc", nargs="+", choices=COLLECTORS, default=["Serial", "G1", "Z"], help="one after the other"
    )
    parser.add_argument("--seconds", type=float, default=300, help="measured time of each collector")
    parser.add_argument("--warm-up", type=float, default=60, help="seconds before it, at the same rate")
    parser.add_argument(
        "--from-start", action="store_true", help="ask for no collection after it: the first ones count too"
    )
    parser.add_argument("--rate", type=float, default=50_000, help="requests a second")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--heap", default="128m", help="-Xmx of the service")
    parser.add_argument("--jar", type=Path, help="of another build")
    parser.add_argument("--service-options", type=options_of, default={})
    parser.add_argument("--limit-ms", type=float, default=1, help="longest pause of the first collector")
    parser.add_argument("--limit-bytes", type=float, default=32, help="a request, on its selectors")
    parser.add_argument("--json", help="file for every pause and loadgen's results")
    options = parser.parse_args()
    results = []
    with Bench("kv-pauses") as bench:
        try:
            store = bench.folder / "filled"
            service = bench.service("fill", options.service_options, options.heap, options.jar, store)
            bench.fill(service, options.records)
            service.stop(timeout_s=60)
            for gc in options.gc:
                results.append(step(bench, options, gc, store))
                print(f"{gc} done", flush=True)
        finally:
            if options.json:
                Path(options.json).write_text(json.dumps(results))

    print(
        f"\n{options.records} records of 16 + 100 bytes, {options.connections} connections, half reads, "
        f"{options.rate:,.0f}/s for {options.seconds:g} s after {options.warm_up:g} s of warm-up, "
        f"{'no' if options.from_start else 'a'} collection asked for, -Xmx{options.heap}\n"
    )
    print_pauses(results, options.limit_ms)
    print()
    print_threads(results)
    faults = [
        f"{found['gc']}: {miss}"
        for found in results
        for miss in misses(
            found,
            options.rate,
            options.limit_ms if found is results[0] else float("inf"),
            options.limit_bytes if found is results[0] else float("inf"),
        )
    ]
    if faults:
        sys.exit("\n" + "\n".join(faults))


if __name__ == "__main__":
    run(main)
