#!/usr/bin/env python3
"""PUT and GET of the service beside SET and GET of Redis, closed loop, alternating in one run.

    python3 service/bench/bench_redis.py --rounds 5 --seconds 5

Needs redis-server and redis-benchmark on PATH, the built jar, a built loadgen and JAVA_HOME with a JDK 25.
Each has the generator that was made for it: loadgen speaks HTTP to the service, redis-benchmark its own
shorter protocol to Redis; both have one thread. Both write a log that is synced once a second or more often
(Redis: appendonly, everysec; ours: --wal interval) or, with --sync always, before a write is answered (Redis:
appendfsync always; ours: --wal always), and hold the same number of records of 16 + 100 bytes. What is
printed is as in bench_service.py: medians over the rounds, the smallest and the largest, and the ratio within
each round.
"""

import argparse
import itertools
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial

import bench_service as bench

COMMANDS = {"put": "set", "get": "get"}
WAL_OF_SYNC = {"everysec": "interval", "always": "always"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loadgen", default=str(bench.REPOSITORY / "loadgen/target/release/loadgen"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds",
        type=float,
        default=5,
        help="measured time of each step of the service; Redis gets as many requests as last about so long",
    )
    parser.add_argument("--connections", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--heap", default="128m")
    parser.add_argument(
        "--sync", choices=WAL_OF_SYNC, default="everysec", help="when both sync their log, as Redis calls it"
    )
    options = parser.parse_args()
    missing = [name for name in ("redis-server", "redis-benchmark") if shutil.which(name) is None]
    if missing:
        sys.exit(f"not on PATH: {', '.join(missing)}\napt-get install redis-server redis-tools")
    work = pathlib.Path(tempfile.mkdtemp(prefix="kv-bench-"))
    servers = []
    try:
        command = [
            bench.java_program(),
            *bench.JVM,
            f"-Xmx{options.heap}",
            "-jar",
            str(bench.JAR),
            "--port",
            "0",
            "--dir",
            str(work / "store"),
            "--wal",
            WAL_OF_SYNC[options.sync],
        ]
        service = bench.start(command, work / "service.log")
        servers.append(service[0])
        bench.fill(options, service[1])
        bench.come_to_rest(*service)
        redis, port = redis_server(work, options.sync)
        servers.append(redis)
        redis_answered(
            port, options, "set", 64, 2 * options.records
        )  # of random keys: nearly all of them are there then
        print_table(options, measured(options, service, port))
    finally:
        for process in servers:
            process.terminate()
            process.wait(timeout=60)
        shutil.rmtree(work, ignore_errors=True)


def redis_server(work: pathlib.Path, sync: str) -> tuple[subprocess.Popen, str]:
    """The process, answering, and its port on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [
        "redis-server",
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        str(work),
        "--appendonly",
        "yes",
        "--appendfsync",
        sync,
        "--save",
        "",
    ]
    process = subprocess.Popen(words, stdout=(work / "redis.log").open("w"), stderr=subprocess.STDOUT)
    for _ in range(100):
        if b"PONG" in subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True).stdout:
            return process, str(port)
        time.sleep(0.1)
    process.kill()
    sys.exit(f"redis-server is not ready after 10 s\n{(work / 'redis.log').read_text()}")


def redis_answered(port: str, options, command: str, connections: int, requests: int) -> dict:
    """The rate, as redis-benchmark prints it."""
    words = [
        "redis-benchmark",
        "-p",
        port,
        "-c",
        str(connections),
        "-n",
        str(requests),
        "-r",
        str(options.records),
        "-d",
        "100",
        "-t",
        command,
        "--csv",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return {"rate_rps": float(done.stdout.strip().splitlines()[-1].split(",")[1].strip('"'))}


def measured(options, service: tuple[subprocess.Popen, str], port: str) -> list[dict]:
    """A rate for each round, kind of request, number of connections and subject; who comes first changes from
    round to round."""
    rates = []
    requests = {
        command: round(options.seconds * redis_answered(port, options, command, 64, 200_000)["rate_rps"])
        for command in COMMANDS.values()
    }
    for number in range(options.rounds):
        steps = list(itertools.product(COMMANDS, options.connections, ("service", "redis")))
        for kind, connections, subject in steps if number % 2 == 0 else reversed(steps):
            if subject == "redis":
                step = partial(
                    redis_answered, port, options, COMMANDS[kind], connections, requests[COMMANDS[kind]]
                )
            else:
                script, expect = bench.REQUESTS[kind]
                step = partial(bench.answered, options, service, script, connections, options.seconds, expect)
            rates.append(
                {
                    "round": number,
                    "kind": kind,
                    "connections": connections,
                    "subject": subject,
                    **bench.undisturbed(step),
                }
            )
        print(f"round {number + 1} of {options.rounds} done", flush=True)
    return rates


def print_table(options, rates: list[dict]) -> None:
    print(
        f"\n{options.records} records of 16 + 100 bytes, synced {options.sync}, {options.rounds} "
        f"rounds of about {options.seconds:g} s; medians (smallest–largest) of the rounds that the "
        "host left alone\n"
    )
    print("| request | connections | Redis, 1/s | service, 1/s | ratio |\n|---|---|---|---|---|")
    for kind, connections in itertools.product(COMMANDS, options.connections):
        kept, disturbed = bench.of_quiet_rounds(rates, kind, connections)
        of = {
            subject: [rate["rate_rps"] for rate in kept if rate["subject"] == subject]
            for subject in ("redis", "service")
        }
        if not kept:
            print(f"| {kind.upper()} | {connections} | every round disturbed by the host | | |")
            continue
        print(
            f"| {kind.upper()} | {connections} | {bench.rate_summary(of['redis'])} | "
            f"{bench.rate_summary(of['service'])} | "
            f"{bench.ratios(of['service'], of['redis'])}"
            f"{f', {disturbed} rounds disturbed' if disturbed else ''} |"
        )


if __name__ == "__main__":
    main()
