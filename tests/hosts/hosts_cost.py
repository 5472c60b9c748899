"""What measuring over hosts costs, beside its goals: `make bench-hosts` (ROUNDS=10, about 20 minutes, quiet,
root).

    python tests/hosts/hosts_cost.py [--rounds 10] [--only begin --only start --only idle --only one]

    begin   how far apart two loadgens on two hosts begin, by a server that notes when it hears of each first
    start   four hosts: from `kvstudy run` to the launch of the first service
    idle    one service, loaded in slices: in half of them the worker of a cluster that nobody uses waits on
            this machine, in the others it is stopped (SIGSTOP): p50, CPU per request, and the worker's CPU.
            What differs between two launches of the service, often more than 3 %, is on both sides
    one     two services at once, loaded in slices in turn: one that the local path has restored and launched,
            one that the same path has at the other end of Dask, on a cluster of one host at 127.0.0.1. While
            the local one is loaded that cluster's worker and agent are stopped: it has none beside it

Slices resolve nanoseconds. A launch is one ratio, judged as a duet's. Each says *the same within 3 %*, a
difference, or *cannot tell*. Exits with 1 when a goal below is missed; *cannot tell* misses it.
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

import psutil

ROOT = Path(__file__).parents[2]
sys.path[:0] = [
    str(ROOT),
    *(str(ROOT / folder) for folder in ("tests/hosts", "tests/measure", "service/bench")),
]

from namespaces import Namespaces, missing, this_machine
from project import Project
from served import Bench

from kvstudy.analyse.comparison.stopping import looked_at
from kvstudy.analyse.comparison.words import SAME, word
from kvstudy.hosts.hosts_file import HostsFile
from kvstudy.hosts.interrupt import interruptible
from kvstudy.hosts.local import LocalHost
from kvstudy.hosts.process import wait_until
from kvstudy.hosts.session import Session
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.crew import Member, local_member
from kvstudy.measure.fill import Fills
from kvstudy.measure.on_hosts import crews_on
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.run_plan import PlannedRun, plan
from kvstudy.project import loadgen_binary, work_root, workloads_root

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
            note_round(ratios, found, number, rounds)
    finally:
        assert project.finished(project.kvstudy("hosts", "down", file))[0] == 0
    all_shares = ", ".join(f"{100 * share:.2f}" for share in sorted(shares))
    middle = statistics.median(shares)
    met = is_met(
        "CPU of the idle worker",
        f"{100 * middle:.2f} % of a core (by round: {all_shares})",
        f"{100 * IDLE_SHARE_MAX:g} %",
        middle <= IDLE_SHARE_MAX,
    )
    return are_same(ratios, "beside an idle worker, to that while it is stopped") and met


def note_round(ratios: dict[str, list[float]], found: dict[str, float], number: int, rounds: int) -> None:
    """``number`` from 0."""
    for name in MEASURES:
        ratios[name].append(math.log(found[name]))
    told = ", ".join(f"{name.partition(',')[0]} {found[name]:.4f}" for name in MEASURES)
    print(f"round {number + 1} of {rounds}: {told}", flush=True)


def are_same(ratios: dict[str, list[float]], what: str) -> bool:
    """``ratios``: logarithms by measure, one of each launch."""
    met = []
    for name, better in zip(MEASURES, ("lower", "less"), strict=True):
        of = looked_at(ratios[name], SAME_WITHIN)
        said = word(of["low"], of["high"], of["p"], of["p_same"], better, of["launches"])
        found = f"{of['ratio']:.4f} [{of['low']:.4f}, {of['high']:.4f}] of {of['launches']} launches: {said}"
        goal = f"the same within {100 * SAME_WITHIN:g} %"
        met.append(is_met(f"{name.partition(',')[0]} {what}", found, goal, said == SAME))
    return all(met)


def with_and_without(worker: psutil.Process, seed: int) -> tuple[dict[str, float], float]:
    """Of one launch the ratio of each measure, with the worker to without, and the share of a core that the
    worker used while it was not stopped."""
    with Bench("idle-worker") as bench:
        service = bench.service("service", {"memtable_bytes": "4m"})
        bench.fill(service, RECORDS)
        (served,) = service.pids
        return in_turn(service.url, served, service.url, served, [worker], seed, bench.folder)


def in_turn(
    url: str,
    served: int,
    other_url: str,
    other_served: int,
    beside: list[psutil.Process],
    seed: int,
    folder: Path,
) -> tuple[dict[str, float], float]:
    """The ratio of each measure of the service at ``url`` to that at ``other_url``, which are loaded in
    turn, and the share of a core that ``beside`` used: they run while the first is loaded, and are stopped
    while the other one is. ``served``: their processes."""
    targets = [f"{one}/v0/entity?id=idle" for one in (url, other_url)]
    for target in targets:
        urllib.request.urlopen(urllib.request.Request(target, b"x" * 100, method="PUT"), timeout=10).close()
    pids = {"A": served, "B": other_served}
    result_file = folder / "slices.json"
    command = [str(loadgen_binary(ROOT)), *SLICES, "--seed", str(seed), "--alternate", *targets]
    planned = json.loads(subprocess.check_output([*command, "--print-slices"]))["slices"]
    start_s = time.time() + 2.0
    at = datetime.fromtimestamp(start_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    generator = subprocess.Popen(
        [*command, "--start-at", at, "--json", str(result_file)], stdout=subprocess.DEVNULL
    )
    cpu_ns, beside_cpu_s, beside_s = {}, 0.0, 0.0
    try:
        for one in planned:
            pid, is_first = pids[one["server"]], one["server"] == "A"
            wait_to(start_s + one["start_ns"] / 1e9 - SWITCH_AHEAD_S)
            for process in beside:
                (process.resume if is_first else process.suspend)()
            wait_to(start_s + one["counted_from_ns"] / 1e9)
            before, used, begun = threads_cpu_ns(pid), cpu_of(beside), time.monotonic()
            wait_to(start_s + one["end_ns"] / 1e9)
            cpu_ns[one["slice"]] = threads_cpu_ns(pid) - before
            if is_first and one["measured"]:
                beside_cpu_s += (cpu_of(beside) - used) / 1e9
                beside_s += time.monotonic() - begun
        code = generator.wait(60)
    finally:
        for process in beside:
            process.resume()
        generator.kill()
        generator.wait()
    assert code == 0, f"loadgen ended with {code}"
    slices = json.loads(result_file.read_text())["alternate"]["slices"]
    p50, cpu = ({"A": [], "B": []} for _ in MEASURES)
    for one in slices:
        p50[one["server"]].append(one["response_time_ns"]["percentiles"]["50"])
        cpu[one["server"]].append(cpu_ns[one["slice"]] / one["response_time_ns"]["count"])
    ratios = (statistics.median(sides["A"]) / statistics.median(sides["B"]) for sides in (p50, cpu))
    return dict(zip(MEASURES, ratios, strict=True)), beside_cpu_s / beside_s


def wait_to(at_s: float) -> None:
    time.sleep(max(0.0, at_s - time.time()))


def cpu_of(processes: list[psutil.Process]) -> int:
    return sum(threads_cpu_ns(one.pid) for one in processes)


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


def one(_hosts: Namespaces, project: Project, rounds: int) -> bool:
    """No namespace: network, disk and programs are the same on both ways."""
    whole = plan(
        Experiment.load(
            project.experiment(
                subject="kv-service",
                workload="get",
                service={"memtable_bytes": "4m"},
                fill={"records": RECORDS},
            )
        )
    )
    ratios: dict[str, list[float]] = {name: [] for name in MEASURES}
    order = random.Random(11)
    with (
        this_machine(project.root.parent / "of-this-machine") as file,
        interruptible(),
        Session(work_root(project.root)) as session,
    ):
        artifacts = Artifacts.needed_by(whole, project.root)
        here = LocalHost(project.root, work_root(project.root), session.registered)
        fills = Fills(
            work_root(project.root),
            workloads_root(project.root),
            artifacts,
            session.registered,
            lambda _doing: None,
        )
        local = local_member(here, artifacts, fills)
        with crews_on(
            HostsFile.load(file),
            work_root(project.root),
            session.registered,
            whole,
            artifacts,
            project.root,
            1,
            local,
        ) as (crew,):
            for number in range(rounds):
                both = {"through Dask": crew.service, "here": local}
                found = both_ways(
                    both, order.sample(list(both), 2), whole.runs[0], number + 1, project.root.parent
                )
                note_round(ratios, found, number, rounds)
    return are_same(ratios, "through Dask, to that on the local path")


def both_ways(
    members: dict[str, Member], order: list[str], planned: PlannedRun, seed: int, parent: Path
) -> dict[str, float]:
    """Of one launch of each."""
    folders = {name: Path(tempfile.mkdtemp(dir=parent, prefix="one-")) for name in order}
    urls, pids = {}, {}
    try:
        for name in order:
            station = members[name].station
            members[name].ready()
            members[name].begin(planned, folders[name], folders[name].name)
            station.restore()
            urls[name] = station.launch(0, None)
            station.come_to_rest()
            pids[name] = listening(urls[name])
        beside = processes_of("kvstudy.hosts.dask_host worker", "kvstudy.hosts.agent")
        assert len(beside) == 2, beside
        asked = (urls["through Dask"], pids["through Dask"], urls["here"], pids["here"])
        ratios, _ = in_turn(*asked, beside, seed, folders["here"])
        return ratios
    finally:
        for name in order:
            members[name].station.stop()
            members[name].end(folders[name])


def listening(url: str) -> int:
    """The process that listens there."""
    port = int(url.rpartition(":")[2])
    (pid,) = {
        one.pid for one in psutil.net_connections("tcp") if one.status == "LISTEN" and one.laddr.port == port
    }
    return pid


def processes_of(*modules: str) -> list[psutil.Process]:
    """Those that run a module; a shell that starts one is none."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if line.startswith(sys.executable) and any(f" -m {module} " in f"{line} " for module in modules):
            found.append(process)
    return found


STEPS: dict[str, Callable[[Namespaces, Project, int], bool]] = {
    "begin": begin,
    "start": start,
    "idle": idle,
    "one": one,
}


if __name__ == "__main__":
    sys.exit(main())
