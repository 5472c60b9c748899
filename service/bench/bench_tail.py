#!/usr/bin/env python3
"""Response times at half the saturation rate, while flush and compaction run, beside the same without them.

    python3 service/bench/bench_tail.py --rounds 5 --seconds 10

Two services hold the same records, filled by the build that serves them, and get the same requests, half
reads and half writes, at the same constant rate. One has memtables so small that it flushes and compacts all
the time; the other has one memtable for the whole run and never compacts. With --beside JAR another build's
service does as the first. They take turns, who goes first changes, and nobody is measured before all have
come to rest. The rate is half (--share) of what the first one answers in a closed loop. Services run on core
0, the generator on core 1. Response time counts from the intended start, service time from the actual send.
Fails when one that should did not flush and compact in each round, or when the other did at all. Needs what
bench_service.py needs.
"""

import argparse
import itertools
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from bench_service import JAR, JVM, REPOSITORY, come_to_rest, counters, fill, java_program, loaded, start
from paired import ratio_of_rounds

# A flush or a compaction that takes the generator's core away would be measured as the service's: each has
# its own.
ON_CORE_0, ON_CORE_1 = ("taskset", "-c", "0"), ("taskset", "-c", "1")
PERCENTILES = ["50", "99", "99.9", "99.99", "100"]
BUSY = "with flush and compaction"
BESIDE = "with them, the build beside"
CALM = "without"
OPTIONS = {name: ["--memtable-bytes", "4m"] for name in (BUSY, BESIDE)} | {
    CALM: ["--memtable-bytes", "1g", "--compaction", "none"]
}


def background_work(url: str) -> tuple[int, ...]:
    """Flushes and compactions so far."""
    return counters(url, "kv_store_flushes_total", "kv_store_compactions_total")


def run(options, url: str, seconds: float, rate: float | None) -> dict:
    return loaded(options, url, "mixed.lua", options.connections, seconds, 2, "200,201", rate, ON_CORE_1)


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    process.wait(timeout=60)


def filled_store(options, service: list[str], directory: pathlib.Path) -> pathlib.Path:
    """A directory with all records, written by this build and at rest: another build may not read its
    tables."""
    process, url = start([*service, "--dir", str(directory)], directory.with_suffix(".log"))
    try:
        fill(options, url)
        come_to_rest(process, url)
    finally:
        stop(process)
    return directory


def spread(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loadgen", default=str(REPOSITORY / "loadgen/target/release/loadgen"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds",
        type=float,
        default=10,
        help="measured time of each step; two seconds of warm-up before it",
    )
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--heap", default="128m", help="-Xmx of both services")
    parser.add_argument("--jar", default=str(JAR))
    parser.add_argument(
        "--beside", metavar="JAR", help="another build of the service, to take turns with this one"
    )
    parser.add_argument("--share", type=float, default=0.5, help="of the saturation rate")
    parser.add_argument("--service-options", default="", help="further options of both services")
    parser.add_argument("--json", help="file for loadgen's result of every step")
    options = parser.parse_args()
    options.loadgen = str(pathlib.Path(options.loadgen).resolve())
    work = pathlib.Path(tempfile.mkdtemp(prefix="kv-tail-"))
    java = [*ON_CORE_0, java_program(), *JVM, "-XX:+UseG1GC", f"-Xmx{options.heap}", "-jar"]
    further = ["--port", "0", *options.service_options.split()]
    jars = {BUSY: options.jar} | ({BESIDE: options.beside} if options.beside else {}) | {CALM: options.jar}
    services = {}
    results = []
    try:
        filled = {
            jar: filled_store(options, [*java, jar, *further], work / f"filled-{n}")
            for n, jar in enumerate(dict.fromkeys(jars.values()))
        }
        for name, jar in jars.items():
            shutil.copytree(filled[jar], work / name)
            services[name] = start(
                [*java, jar, *further, "--dir", str(work / name), *OPTIONS[name]], work / f"{name}.log"
            )
        saturation = []
        for name, (_, url) in services.items():
            for _ in range(3):
                for service in services.values():
                    come_to_rest(*service)
                rate = run(options, url, 3, None)["achieved_rate_rps"]
                if name == BUSY:
                    saturation.append(rate)
        rate = statistics.median(saturation) * options.share
        print(
            f"saturation rate {spread(saturation, 0)} 1/s, closed loop; offered rate {rate:,.0f} 1/s",
            flush=True,
        )
        for number in range(options.rounds):
            first = number % len(services)
            for name in [*list(services)[first:], *list(services)[:first]]:
                for service in services.values():
                    come_to_rest(*service)
                url = services[name][1]
                before = background_work(url)
                result = run(options, url, options.seconds, rate)
                flushes, compactions = (
                    now - then for now, then in zip(background_work(url), before, strict=True)
                )
                if (name != CALM) != (flushes > 0 and compactions > 0) or (
                    name == CALM and flushes + compactions > 0
                ):
                    sys.exit(
                        f"not what was to be measured: {name}: flushes={flushes}, compactions={compactions}"
                    )
                results.append(
                    {
                        "round": number,
                        "subject": name,
                        "flushes": flushes,
                        "compactions": compactions,
                        "result": result,
                    }
                )
            print(f"round {number + 1} of {options.rounds} done", flush=True)
    finally:
        for process, _ in services.values():
            stop(process)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(results))
        shutil.rmtree(work, ignore_errors=True)

    print(
        f"\n{options.records} records of 16 + 100 bytes, {options.connections} connections, half "
        f"reads, -Xmx{options.heap}"
    )
    print(
        f"{options.rounds} rounds of {options.seconds:g} s at {options.share:g} of the saturation "
        "rate; medians (smallest–largest)\n"
    )
    print(
        "| | "
        + " | ".join(f"p{p}, ms" if p != "100" else "largest, ms" for p in PERCENTILES)
        + " | flushes | compactions |"
    )
    print("|---" * (len(PERCENTILES) + 3) + "|")
    times = {}
    for kind, label in (("response_time", "response time"), ("service_time", "service time")):
        for name in jars:
            of = [r for r in results if r["subject"] == name]
            times[kind, name] = {
                p: [r["result"][kind]["percentiles"][p] / 1e3 for r in of] for p in PERCENTILES
            }
            work_done = [spread([r[work] for r in of], 0) for work in ("flushes", "compactions")]
            print(
                f"| {label} {name} | "
                + " | ".join([spread(times[kind, name][p], 2) for p in PERCENTILES] + work_done)
                + " |"
            )
    for kind in ("response_time", "service_time"):
        for name, other in itertools.combinations(jars, 2):
            ratio = ratio_of_rounds(times[kind, name]["99.9"], times[kind, other]["99.9"])
            print(
                f"\np99.9 of the {kind.replace('_', ' ')} {name} / {other}, in the same round, "
                f"geometric mean [95 % interval] (smallest–largest): {ratio.text(2)}"
            )
    saturated = sum(r["result"]["verdict"]["generator_saturated"] for r in results)
    if saturated:
        print(
            f"\nthe generator had no time to spare in {saturated} of {len(results)} steps: the "
            "response time is partly its own"
        )


if __name__ == "__main__":
    main()
