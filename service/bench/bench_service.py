#!/usr/bin/env python3
"""PUT and GET of the service beside one-nio with an empty handler, closed loop, alternating in one run.

    python3 service/bench/bench_service.py --loadgen loadgen/target/release/loadgen --rounds 5 --seconds 5

Needs the built jar, a built loadgen and JAVA_HOME with a JDK 25; nothing but Python's own library. Each round
measures every subject once at each number of connections, in an order that is turned round from round to
round, so that a machine that slows down slows all of them. A ratio compares one round's service with the same
round's empty handler, which gets the very same requests; printed are the geometric mean over the rounds, its
95 % interval (paired.py) and the smallest and largest. With --json the single rates are kept.

With --beside JAR the service of another build takes turns with this one on a store of its own, filled in the
same way: two sittings differ by more than most changes do, so only that tells what a change of the code did;
or, with --beside-options or --beside-java and the same build, what an option of the service or the JVM does.

A step during which the machine's host took over 3 % of a CPU is measured again, up to four times; a round
with a step that stayed disturbed has no ratio, and it says how many there were.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from functools import partial

from paired import ratio_of_rounds

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
JAR = REPOSITORY / "service/target/kv-service.jar"
EMPTY_SERVER_JAR = JAR.with_name("empty-server.jar")
WORKLOADS = REPOSITORY / "experiments/workloads"
BESIDE = "service beside"  # its name in the table and in --json
REQUESTS = {
    "put": ("unique_put.lua", "201"),
    "get": ("random_get.lua", "200"),
}  # workload and expected status of the service
STEAL_SHARE_MAX = 0.03  # of one CPU
ATTEMPTS_MAX = 5
JVM = [
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-XX:+PerfDisableSharedMem",
]


def start(command: list[str], log: pathlib.Path) -> tuple[subprocess.Popen, str]:
    """The process and the address that it says it is ready at."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log.open("w"), text=True)
    line = process.stdout.readline()
    if not line.startswith("ready: "):
        process.kill()
        sys.exit(f"not ready: {' '.join(command)}\n{log.read_text()}")
    return process, line.split()[1]


def java_program() -> str:
    """The java of JAVA_HOME, or else the first one on PATH."""
    return shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin") or shutil.which("java")


def loaded(
    options,
    url: str,
    script: str,
    connections: int,
    seconds: float,
    warm_up: float,
    expect: str | None = None,
    rate: float | None = None,
    before: tuple[str, ...] = (),
) -> dict:
    """loadgen's result of one thread: at a constant rate, or in a closed loop when there is none; ``before``
    goes before its name."""
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        pace = ["--closed"] if rate is None else ["-R", f"{rate:.0f}"]
        command = [
            *before,
            options.loadgen,
            *pace,
            "-t1",
            f"-c{connections}",
            f"-d{seconds + warm_up:g}s",
            "--warmup",
            f"{warm_up:g}s",
        ]
        command += ["--json", result.name, "-s", str(WORKLOADS / script)]
        command += (["--expect", expect] if expect else []) + [
            url,
            "--",
            "threads=1",
            f"key_count={options.records}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=WORKLOADS)
        if done.returncode != 0:
            sys.exit(f"loadgen failed ({done.returncode}): {' '.join(command)}\n{done.stdout}{done.stderr}")
        return json.load(open(result.name))


def answered(
    options,
    server: tuple[subprocess.Popen, str],
    script: str,
    connections: int,
    seconds: float,
    expect: str | None,
) -> dict:
    """Of a closed loop: the rate of the measured time, and the server's CPU for each request, warm-up and
    all."""
    process, url = server
    before = _cpu_s(process.pid)
    figures = loaded(options, url, script, connections, seconds, 1, expect)
    cpu_us = (_cpu_s(process.pid) - before) / figures["counts"]["completed"] * 1e6
    return {"rate_rps": figures["counts"]["measured"] / figures["measured_s"], "cpu_us_per_request": cpu_us}


def undisturbed(step: Callable[[], dict]) -> dict:
    """What ``step`` found in the first attempt that the host left alone, or in the last one; ``undisturbed``:
    whether it was left alone."""
    for _ in range(ATTEMPTS_MAX):
        steal, began = steal_s(), time.monotonic()
        found = step()
        found["undisturbed"] = (steal_s() - steal) / (time.monotonic() - began) <= STEAL_SHARE_MAX
        if found["undisturbed"]:
            break
    return found


def steal_s() -> float:
    """CPU seconds that the machine's host gave to others since the machine started."""
    return int(pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / os.sysconf("SC_CLK_TCK")


def fill(options, url: str) -> None:
    command = [
        options.loadgen,
        "--closed",
        "-t1",
        "-c64",
        "-d1h",
        "--warmup",
        "0s",
        "-s",
        str(WORKLOADS / "fill.lua"),
        url,
        "--",
    ]
    began = time.monotonic()
    subprocess.run(
        [*command, "threads=1", f"key_count={options.records}"],
        check=True,
        capture_output=True,
        cwd=WORKLOADS,
    )
    print(f"filled {options.records} records in {time.monotonic() - began:.0f} s", flush=True)


def come_to_rest(process: subprocess.Popen, url: str) -> None:
    """Returns when no memtable waits for its flush and the process has used less than a tenth of a core for
    two seconds: what a fill leaves to flush and compact would be measured with the requests. CPU says more
    than counters do: a compaction counts when it has ended."""
    still = 0
    while still < 2 or counters(url, "kv_store_frozen_memtables") != (0,):
        before = _cpu_s(process.pid)
        time.sleep(1)
        still = still + 1 if _cpu_s(process.pid) - before < 0.1 else 0


def counters(url: str, *names: str) -> tuple[int, ...]:
    """What the service's /metrics says under these names."""
    text = urllib.request.urlopen(f"{url}/metrics", timeout=30).read().decode()
    return tuple(int(float(re.search(rf"^{name} (\S+)", text, re.M).group(1))) for name in names)


def _cpu_s(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate_summary(values: list[float]) -> str:
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}–{max(values):,.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loadgen", default=str(REPOSITORY / "loadgen/target/release/loadgen"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=5, help="measured time of each step; one second of warm-up before it"
    )
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument(
        "--records", type=int, default=1_000_000, help="records in the store before GET is measured"
    )
    parser.add_argument("--heap", default="128m", help="-Xmx of both servers")
    parser.add_argument("--selectors", default="1", help="selector threads of both servers")
    parser.add_argument("--only", nargs="+", choices=["put", "get"], default=["put", "get"])
    parser.add_argument(
        "--dir", help="directory of stores that are kept and used again if they are there (default: new ones)"
    )
    parser.add_argument("--jar", default=str(JAR))
    parser.add_argument(
        "--beside", metavar="JAR", help="another build of the service, to take turns with this one"
    )
    parser.add_argument("--service-options", default="--wal interval", help="further options of the service")
    parser.add_argument("--beside-options", help="further options of the service beside (default: the same)")
    parser.add_argument(
        "--beside-java",
        default="",
        metavar="OPTIONS",
        help="further options of the JVM beside, as -Dkv.socketCalls=false",
    )
    parser.add_argument("--json", help="file for every single rate")
    options = parser.parse_args()
    options.loadgen = str(pathlib.Path(options.loadgen).resolve())
    work = pathlib.Path(tempfile.mkdtemp(prefix="kv-bench-"))
    jars = {"service": options.jar} | ({BESIDE: options.beside} if options.beside else {})
    common = [java_program(), *JVM, f"-Xmx{options.heap}"]
    servers = []
    rates = []
    try:
        empty = start(
            [*common, "-jar", str(EMPTY_SERVER_JAR), "--port", "0", "--selectors", options.selectors],
            work / "empty.log",
        )
        servers.append(empty[0])
        services = {}
        for name, jar in jars.items():
            store = pathlib.Path(options.dir) / name if options.dir else work / name
            fresh = not store.exists()
            java = options.beside_java.split() if name == BESIDE else []
            command = [
                *common,
                *java,
                "-jar",
                jar,
                "--port",
                "0",
                "--dir",
                str(store),
                "--selectors",
                options.selectors,
            ]
            further = (
                options.service_options
                if name == "service" or options.beside_options is None
                else options.beside_options
            )
            services[name] = start([*command, *further.split()], work / f"{name}.log")
            servers.append(services[name][0])
            if fresh:
                fill(options, services[name][1])
                come_to_rest(*services[name])
        subjects = {
            kind: [("empty handler", empty, script, None)]
            + [(name, service, script, expect) for name, service in services.items()]
            for kind, (script, expect) in REQUESTS.items()
        }
        steps = [
            (kind, c, subject)
            for kind in options.only
            for c in options.connections
            for subject in subjects[kind]
        ]
        for kind in options.only:
            for _, server, script, expect in subjects[kind]:
                answered(options, server, script, 64, 4, expect)  # compile the code paths
        for number in range(options.rounds):
            for kind, connections, (name, server, script, expect) in (
                steps if number % 2 == 0 else reversed(steps)
            ):
                found = undisturbed(
                    partial(answered, options, server, script, connections, options.seconds, expect)
                )
                rates.append(
                    {"round": number, "kind": kind, "connections": connections, "subject": name, **found}
                )
            print(f"round {number + 1} of {options.rounds} done", flush=True)
    finally:
        for process in servers:
            process.terminate()
            process.wait(timeout=60)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(rates, indent=1))
        shutil.rmtree(work, ignore_errors=True)

    print(
        f"\n{options.records} records of 16 + 100 bytes, -Xmx{options.heap}, {options.selectors} "
        f"selectors, {options.service_options}"
        + (f"; {BESIDE}: {options.beside_options}" if options.beside_options is not None else "")
        + (f"; {BESIDE}: {options.beside_java}" if options.beside_java else "")
    )
    print(
        f"{options.rounds} rounds of {options.seconds:g} s; medians (smallest–largest), ratios: "
        "geometric mean [95 % interval] (smallest–largest)\n"
    )
    print_table(rates, options.only, options.connections, list(jars))


def print_table(rates: list[dict], kinds: list[str], connections: list[int], services: list[str]) -> None:
    """A row for each kind of request, number of connections and service, from the rounds that the host left
    alone."""
    print(
        "| request | connections | empty handler, 1/s | service, 1/s | CPU, µs | to the empty handler |"
        + (f" {BESIDE}, to it |" if BESIDE in services else "")
    )
    print("|---" * (7 if BESIDE in services else 6) + "|")
    for kind, c in itertools.product(kinds, connections):
        kept, disturbed = of_quiet_rounds(rates, kind, c)
        if not kept:
            print(f"| {kind.upper()} | {c} | every round disturbed by the host | | | |")
            continue
        of = {
            name: [r["rate_rps"] for r in kept if r["subject"] == name]
            for name in ("empty handler", *services)
        }
        left_out = f", {disturbed} rounds disturbed" if disturbed else ""
        for name in services:
            cells = [rate_summary(of["empty handler"]), rate_summary(of[name])]
            cpu = statistics.median(r["cpu_us_per_request"] for r in kept if r["subject"] == name)
            row = [
                kind.upper(),
                f"{c}",
                cells[0],
                f"{name}: {cells[1]}",
                f"{cpu:.2f}",
                ratios(of[name], of["empty handler"]) + left_out,
            ]
            if BESIDE in services:
                row.append(ratios(of["service"], of[BESIDE]) if name == "service" else "")
            print(f"| {' | '.join(row)} |")


def of_quiet_rounds(rates: list[dict], kind: str, connections: int) -> tuple[list[dict], int]:
    """What was measured of one kind of request on so many connections, round by round, in the rounds that the
    host left alone; and how many it did not."""
    here = [rate for rate in rates if (rate["kind"], rate["connections"]) == (kind, connections)]
    disturbed = {rate["round"] for rate in here if not rate["undisturbed"]}
    return [
        rate for rate in sorted(here, key=lambda rate: rate["round"]) if rate["round"] not in disturbed
    ], len(disturbed)


def ratios(ours: list[float], theirs: list[float]) -> str:
    """Round by round."""
    return ratio_of_rounds(ours, theirs).text()


if __name__ == "__main__":
    main()
