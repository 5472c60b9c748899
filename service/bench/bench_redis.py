#!/usr/bin/env python3
"""PUT and GET of the service beside SET and GET of Redis, closed loop, taking turns in one run.

    .venv/bin/python service/bench/bench_redis.py --rounds 5 --seconds 5

Needs redis-server and redis-benchmark on PATH. Each has the generator that was made for it: loadgen speaks
HTTP to the service, redis-benchmark its own shorter protocol to Redis; both have one thread. So no duet can
be made of it, and rounds are: in each, who comes first is drawn as for the slices of a duet. Both write a log
that is synced once a second or more often (Redis: appendonly, everysec; ours: --wal interval) or, with --sync
always, before a write is answered (Redis: appendfsync always; ours: --wal always). Both hold the same number
of records of 16 + 100 bytes. Printed are medians over the rounds, the smallest and the largest, and the ratio
within each round with its interval (rounds.py).
"""

import argparse
import itertools
import subprocess
from functools import partial
from urllib.parse import urlsplit

from rounds import left_alone, rate_summary, ratio_of_rounds, undisturbed
from served import Bench, run

from kvstudy.errors import RunFailed
from kvstudy.plan.comparison import turned
from kvstudy.plan.subject import SubjectSpec
from kvstudy.subject.command import Command

COMMANDS = {"put": "set", "get": "get"}
WORKLOADS = {"put": "unique_put", "get": "random_get"}
WAL_OF_SYNC = {"everysec": "interval", "always": "always"}
SIDES = {"a": "redis", "b": "service"}
SEED = 1


def redis(bench: Bench, sync: str):
    """Answering."""
    words = [
        "redis-server",
        "--port",
        "{port}",
        "--bind",
        "127.0.0.1",
        "--dir",
        "{dir}",
        "--appendonly",
        "yes",
    ]
    spec = SubjectSpec(
        name="redis",
        command=[*words, "--appendfsync", sync, "--save", ""],
        needs=["redis-server", "redis-benchmark"],
    )
    return bench.launched("redis", Command(spec, bench.root, None))


def redis_rps(live, records: int, command: str, connections: int, requests: int) -> float:
    """As redis-benchmark prints it."""
    options = {"p": urlsplit(live.url).port, "c": connections, "n": requests, "r": records, "d": 100}
    words = [word for name, value in options.items() for word in (f"-{name}", str(value))]
    done = subprocess.run(["redis-benchmark", *words, "-t", command, "--csv"], capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise RunFailed(f"redis-benchmark failed: exit={done.returncode}: {said[-1] if said else 'no word'}")
    return float(done.stdout.strip().splitlines()[-1].split(",")[1].strip('"'))


def measured(bench: Bench, options, service, other) -> dict[tuple[str, int], list[dict[str, dict]]]:
    """For each kind of request and number of connections its rounds: what was found of each side."""
    of_redis = partial(redis_rps, other, options.records)
    requests = {
        kind: round(options.seconds * of_redis(command, 64, 200_000)) for kind, command in COMMANDS.items()
    }
    rounds: dict[tuple[str, int], list[dict[str, dict]]] = {}
    for number in range(1, options.rounds + 1):
        for kind, connections in itertools.product(COMMANDS, options.connections):

            def step(side: str, kind=kind, connections=connections) -> dict:
                if side == "redis":
                    return {"rate_rps": of_redis(COMMANDS[kind], connections, requests[kind])}
                workload = WORKLOADS[kind]
                found = bench.loaded(service, workload, options.records, connections, options.seconds)
                return {"rate_rps": found["counts"]["measured"] / found["measured_s"]}

            order = turned(f"{kind} {connections}", SEED, number)
            rounds.setdefault((kind, connections), []).append(
                {SIDES[side]: undisturbed(partial(step, SIDES[side])) for side in order}
            )
        print(f"round {number} of {options.rounds} done", flush=True)
    return rounds


def table(rounds: dict[tuple[str, int], list[dict[str, dict]]]) -> list[str]:
    """A row for each kind of request and number of connections, from the rounds that the host left alone."""
    lines = [
        "| request | connections | Redis, 1/s | service, 1/s | ratio | rounds |",
        "|---|---|---|---|---|---|",
    ]
    for (kind, connections), found in rounds.items():
        kept = left_alone(found)
        rates = [[one[side]["rate_rps"] for one in kept] for side in ("redis", "service")]
        cells = (
            [*map(rate_summary, rates), ratio_of_rounds(*rates[::-1]).text()]
            if kept
            else ["every round disturbed by the host", "", ""]
        )
        lines.append(
            f"| {' | '.join([kind.upper(), f'{connections}', *cells, f'{len(kept)} of {len(found)}'])} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
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
    with Bench("kv-redis") as bench:
        other = redis(bench, options.sync)
        service = bench.service("service", {"wal": WAL_OF_SYNC[options.sync]}, options.heap)
        bench.fill(service, options.records)
        # of random keys: nearly all of them are there then
        redis_rps(other, options.records, "set", 64, 2 * options.records)
        rounds = measured(bench, options, service, other)
    print(
        f"\n{options.records} records of 16 + 100 bytes, synced {options.sync}, {options.rounds} rounds of "
        f"about {options.seconds:g} s; medians (smallest–largest), ratios: typical round [95 % interval] "
        "(smallest–largest)\n"
    )
    print("\n".join(table(rounds)))


if __name__ == "__main__":
    run(main)
