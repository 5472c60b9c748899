"""What measuring over hosts costs, beside its goals: `make bench-hosts` (ROUNDS=10, about 20 minutes, quiet,
root).

    python tests/hosts/hosts_cost.py [--rounds 10] [--only begin --only start --only idle --only one]

    begin   how far apart two loadgens on two hosts begin, by a server that notes when it hears of each first
    start   four hosts: from `kvstudy run` to the launch of the first service
    idle    one service, loaded in slices: in half of them the worker of a cluster that nobody uses waits on
            this machine, in the others it is stopped (SIGSTOP): p50, CPU per request, and the worker's CPU.
            What differs between two launches of the service, often more than 3 %, is on both sides
    one     a duet of the service beside itself here, and here by `--hosts` of one host at 127.0.0.1, in turn:
            p50, CPU per request

Slices resolve nanoseconds. Of `idle` a launch is one ratio, judged as a duet's; of `one` the mean of a duet's
two sides is compared by the rule of the pages. Each says *the same within 3 %*, a difference, or *cannot
tell*. Exits with 1 when a goal below is missed; *cannot tell* misses it.
"""

import argparse
import json
import math
import random
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psutil

ROOT = Path(__file__).parents[2]
sys.path[:0] = [
    str(ROOT),
    *(str(ROOT / folder) for folder in ("tests/hosts", "tests/measure", "service/bench")),
]

from namespaces import Namespaces, missing, this_machine
from project import UNDISTURBED, Project
from served import Bench

from kvstudy.analyse.comparison.pairs import pair
from kvstudy.analyse.comparison.stopping import looked_at
from kvstudy.analyse.comparison.words import SAME, word
from kvstudy.hosts.process import wait_until
from kvstudy.project import loadgen_binary
from kvstudy.record.duet import slices_of
from kvstudy.record.run_folder import SealedRun, sealed_runs

APART_S_MAX = 0.001
TO_LAUNCH_S_MAX = 15.0
IDLE_SHARE_MAX = 0.005
SAME_WITHIN = 0.03
LEADS_S = (3.0, 6.0, 12.0)
# Of `idle`: the worker beats once a second, so a slice has two of its beats.
SLICES = ["-c", "4", "-t", "1", "-R", "10000", "-d", "70s", "--warmup", "8s", "--slice", "2s"]
SLICES += ["--settle", "200ms", "--gap", "50ms..150ms", "--order", "random"]
SWITCH_AHEAD_S = 0.02
RECORDS = 100_000
P50, CPU = MEASURES = ("p50, us", "CPU per request, us")


def main() -> int:
    arguments = argparse.ArgumentParser(description="what measuring over hosts costs")
    arguments.add_argument("--rounds", type=int, default=10)
    arguments.add_argument("--only", choices=STEPS, action="append")
    arguments.add_argument("--serve", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.serve:
        return serve(given.serve)
    if lacks := missing():
        print(f"this machine lacks: {', '.join(lacks)}", file=sys.stderr)
        return 2
    with (
        tempfile.TemporaryDirectory(prefix="bench-hosts-") as folder,
        Namespaces(Path(folder) / "hosts", ["a", "b", "c", "d"]) as hosts,
    ):
        project = Project(Path(folder) / "project")
        met = [STEPS[name](hosts, project, given.rounds) for name in given.only or STEPS]
    return 0 if all(met) else 1


def is_met(what: str, found: str, goal: str, met: bool) -> bool:
    print(f"{'ok' if met else 'MISSED':7} {what}: {found} (goal: {goal})", flush=True)
    return met


# ---- when two generators begin -----------------------------------------------------------------------------


class FirstArrivals:
    """A server in a process of its own, where nothing else keeps it from looking at the clock."""

    def __init__(self, address: str):
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = f"http://{address}:{self._process.stdout.readline().strip()}"

    def end(self) -> list[float]:
        """Of each host that was heard of, when it was first: seconds of one clock."""
        said, _ = self._process.communicate()
        return list(json.loads(said).values())


def serve(address: str) -> int:
    """Answers every request until stdin is closed; then says of each host when it heard of it first."""
    at: dict[str, float] = {}
    server = socket.create_server((address, 0))
    print(server.getsockname()[1], flush=True)
    waiting = selectors.DefaultSelector()
    for one in (server, sys.stdin):
        waiting.register(one, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is sys.stdin:
                print(json.dumps(at))
                return 0
            if key.fileobj is server:
                connection, (host, _) = server.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                waiting.register(connection, selectors.EVENT_READ, host)
                continue
            try:
                if not key.fileobj.recv(1 << 16):
                    raise ConnectionError
                at.setdefault(key.data, time.monotonic())
                key.fileobj.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            except OSError:
                waiting.unregister(key.fileobj)
                key.fileobj.close()


def begin(hosts: Namespaces, _project: Project, rounds: int) -> bool:
    """Parts of a load are out of step by a share of the time between two requests: here by 50 us."""
    apart = []
    for _ in range(2 * rounds):
        arrived = next(filter(None, (first_arrivals(hosts, lead_s) for lead_s in LEADS_S)), None)
        assert arrived, "the generators were never ready in time"
        apart.append(max(arrived) - min(arrived))
    middle_s = statistics.median(apart)
    found = f"{1e3 * middle_s:.2f} ms in the middle of {len(apart)}, {1e3 * max(apart):.2f} ms at most"
    return is_met("two generators begin apart", found, f"{1e3 * APART_S_MAX:g} ms", max(apart) <= APART_S_MAX)


def first_arrivals(hosts: Namespaces, lead_s: float) -> list[float] | None:
    """Of both generators; None where one was not ready in time."""
    server = FirstArrivals(hosts.own_address)
    try:
        start = datetime.now(UTC) + timedelta(seconds=lead_s)
        load = ["-c", "2", "-t", "1", "-R", "20000", "-d", "200ms", "--warmup", "50ms"]
        load += ["--start-at", start.strftime("%Y-%m-%dT%H:%M:%S.%fZ")]
        for number, name in enumerate("bc", start=1):
            hosts.start(name, [str(loadgen_binary(ROOT)), *load, "--part", f"{number}/2", server.url])
        time.sleep(lead_s)
        wait_until(lambda: not hosts.pids("b") and not hosts.pids("c"), 60)
    finally:
        arrived = server.end()
    return arrived if len(arrived) == 2 else None


# ---- from the command to the first launch ------------------------------------------------------------------


def start(hosts: Namespaces, project: Project, _rounds: int) -> bool:
    file = hosts.yaml(a=["service"], b=["generator"], c=["generator"], d=["generator"])
    took = []
    for _ in range(3):
        experiment = project.experiment(subject="kv-service", connections=6, rate=300)
        begun = time.monotonic()
        measuring = project.kvstudy("run", experiment, "--hosts", file, "--generators", 3)
        launched = wait_until(lambda: "kv-service.jar" in " ".join(hosts.pids("a").values()), 60)
        took.append(time.monotonic() - begun)
        code, out, err = project.finished(measuring)
        assert launched and code == 0, out + err
    found = ", ".join(f"{one:.1f}" for one in took) + " s"
    met = max(took) <= TO_LAUNCH_S_MAX
    return is_met("four hosts, from the command to the first launch", found, f"{TO_LAUNCH_S_MAX:g} s", met)


# ---- an idle worker beside a measurement -------------------------------------------------------------------


def idle(hosts: Namespaces, project: Project, rounds: int) -> bool:
    file = hosts.yaml(a=["service"], b=["generator"])
    assert project.finished(project.kvstudy("hosts", "up", file))[0] == 0
    ratios: dict[str, list[float]] = {name: [] for name in MEASURES}
    shares = []
    try:
        worker = psutil.Process(hosts.pid_of("a", "dask_host"))
        for number in range(rounds):
            found, share = with_and_without(worker, seed=number + 1)
            shares.append(share)
            for name in MEASURES:
                ratios[name].append(math.log(found[name]))
            print(
                f"round {number + 1} of {rounds}: "
                + ", ".join(f"{name.partition(',')[0]} {found[name]:.4f}" for name in MEASURES),
                flush=True,
            )
    finally:
        assert project.finished(project.kvstudy("hosts", "down", file))[0] == 0
    all_shares = ", ".join(f"{100 * share:.2f}" for share in sorted(shares))
    middle = statistics.median(shares)
    met = [
        is_met(
            "CPU of the idle worker",
            f"{100 * middle:.2f} % of a core (by round: {all_shares})",
            f"{100 * IDLE_SHARE_MAX:g} %",
            middle <= IDLE_SHARE_MAX,
        )
    ]
    for name, better in zip(MEASURES, ("lower", "less"), strict=True):
        of = looked_at(ratios[name], SAME_WITHIN)
        said = word(of["low"], of["high"], of["p"], of["p_same"], better, of["launches"])
        found = f"{of['ratio']:.4f} [{of['low']:.4f}, {of['high']:.4f}] of {rounds} launches: {said}"
        what = f"{name.partition(',')[0]} beside an idle worker, to that while it is stopped"
        met.append(is_met(what, found, f"the same within {100 * SAME_WITHIN:g} %", said == SAME))
    return all(met)


def with_and_without(worker: psutil.Process, seed: int) -> tuple[dict[str, float], float]:
    """Of one launch the ratio of each measure, with the worker to without, and the share of a core that the
    worker used while it was not stopped."""
    with Bench("idle-worker") as bench:
        service = bench.service("service", {"memtable_bytes": "4m"})
        bench.fill(service, RECORDS)
        target = f"{service.url}/v0/entity?id=idle"
        urllib.request.urlopen(urllib.request.Request(target, b"x" * 100, method="PUT"), timeout=10).close()
        result_file = bench.folder / "slices.json"
        command = [str(loadgen_binary(ROOT)), *SLICES, "--seed", str(seed), "--alternate", target, target]
        planned = json.loads(subprocess.check_output([*command, "--print-slices"]))["slices"]
        start_s = time.time() + 2.0
        at = datetime.fromtimestamp(start_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        generator = subprocess.Popen(
            [*command, "--start-at", at, "--json", str(result_file)], stdout=subprocess.DEVNULL
        )
        (served,) = service.pids
        cpu_ns, idle_cpu_s, idle_s = {}, 0.0, 0.0
        try:
            for one in planned:
                wait_to(start_s + one["start_ns"] / 1e9 - SWITCH_AHEAD_S)
                (worker.resume if one["server"] == "A" else worker.suspend)()
                wait_to(start_s + one["counted_from_ns"] / 1e9)
                before, used, begun = threads_cpu_ns(served), threads_cpu_ns(worker.pid), time.monotonic()
                wait_to(start_s + one["end_ns"] / 1e9)
                cpu_ns[one["slice"]] = threads_cpu_ns(served) - before
                if one["server"] == "A" and one["measured"]:
                    idle_cpu_s += (threads_cpu_ns(worker.pid) - used) / 1e9
                    idle_s += time.monotonic() - begun
            code = generator.wait(60)
        finally:
            worker.resume()
            generator.kill()
            generator.wait()
        assert code == 0, f"loadgen ended with {code}"
        slices = json.loads(result_file.read_text())["alternate"]["slices"]
    p50, cpu = ({"A": [], "B": []} for _ in MEASURES)
    for one in slices:
        p50[one["server"]].append(one["response_time_ns"]["percentiles"]["50"])
        cpu[one["server"]].append(cpu_ns[one["slice"]] / one["response_time_ns"]["count"])
    ratios = (statistics.median(sides["A"]) / statistics.median(sides["B"]) for sides in (p50, cpu))
    return dict(zip(MEASURES, ratios, strict=True)), idle_cpu_s / idle_s


def wait_to(at_s: float) -> None:
    time.sleep(max(0.0, at_s - time.time()))


def threads_cpu_ns(pid: int) -> int:
    """Of all threads that live."""
    found = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += int((thread / "schedstat").read_text().split()[0])
        except OSError:  # it has just ended
            continue
    return found


# ---- one host through Dask ---------------------------------------------------------------------------------


def measured(project: Project, *more: object) -> SealedRun:
    before = {run.path for run in sealed_runs(project.raw)} if project.raw.is_dir() else set()
    experiment = project.experiment(
        subject="kv-service",
        jvm={"heap": ["128m", "129m"]},  # a duet needs a factor, and this one is none
        service={"memtable_bytes": "4m"},
        workload="get",
        fill={"records": RECORDS},
        connections=4,
        rate=10_000,
        duration="10s",
        warm_up="4s",
        compare={
            "warm_up": "5s",
            "pairs": 14,
            "closed_pairs": 0,
            "not_counted": "100ms",
            "counted": "300ms",
            "gap": "20ms..80ms",
            "profile": [],
            "launches": 1,
            "within": "2m",
        },
    )
    code, out, err = project.finished(project.kvstudy("compare", experiment, *more, code=UNDISTURBED))
    assert code == 0, out + err
    (run,) = [run for run in sealed_runs(project.raw) if run.path not in before]
    assert run.facts["outcome"] == "completed", run.facts["outcome"]
    return run


def figures(run: SealedRun) -> dict[str, float]:
    """The mean over both sides of the median over its slices."""
    slices = slices_of(run)
    slices = slices[slices["loop"] == "rate"]
    by_side = {
        P50: slices.groupby("side")["p50_ns"].median() / 1e3,
        CPU: (slices["cpu_ns"] / slices["answered"]).groupby(slices["side"]).median() / 1e3,
    }
    return {name: float(by_side[name].mean()) for name in MEASURES}


def are_same(
    before: list[dict[str, float]], called: str, after: list[dict[str, float]], other: str
) -> list[bool]:
    met = []
    for name in MEASURES:
        ours, theirs = [one[name] for one in before], [one[name] for one in after]
        ratio, said = compared(ours, theirs, "lower" if name == P50 else "less")
        found = f"{np.median(ours):.2f} {called}, {np.median(theirs):.2f} {other}, {ratio}: {said}"
        met.append(is_met(name, found, f"the same within {100 * SAME_WITHIN:g} %", said == SAME))
    return met


def one(_hosts: Namespaces, project: Project, rounds: int) -> bool:
    """No namespace: network, disk and programs are the same on both ways."""
    here: list[dict[str, float]] = []
    by_hosts: list[dict[str, float]] = []
    order = random.Random(11)
    with this_machine(project.root.parent / "of-this-machine") as file:
        for number in range(rounds):
            for by_dask in order.sample([False, True], 2):
                if by_dask:
                    by_hosts.append(figures(measured(project, "--hosts", file)))
                else:
                    here.append(figures(measured(project)))
            print(f"round {number + 1} of {rounds} done", flush=True)
    return all(are_same(here, "on the local path", by_hosts, "through Dask"))


def compared(before: list[float], after: list[float], better: str) -> tuple[str, str]:
    of = pair(before, after, SAME_WITHIN)
    said = word(of.low, of.high, of.p, of.p_same, better, min(of.runs_before, of.runs_after))
    return f"{of.ratio:.3f} [{of.low:.3f}, {of.high:.3f}]", said


STEPS: dict[str, Callable[[Namespaces, Project, int], bool]] = {
    "begin": begin,
    "start": start,
    "idle": idle,
    "one": one,
}


if __name__ == "__main__":
    sys.exit(main())
