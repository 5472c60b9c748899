"""What many hosts, requests and runs cost what is not measured itself: `make bench-scaling`.

    python tests/bench/scaling.py [--runs 10000] [--workers 100] [--parts 100] [--write PAGE.md]

    plan      runs of one experiment in their order: time and memory of a run
    workers   a scheduler with so many idle workers: its share of a core and its memory, and a beat to each
    merge     results of so many generators made one by loadgen merge

Tables and figures of many runs are `make bench-analysis`. Workers are objects of one process beside the
scheduler's, so that a hundred fit on one machine: what is measured is the scheduler, not they. With --write
the table between the two marks of the page is renewed.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kvstudy.plan.experiment import Experiment
from kvstudy.plan.run_plan import plan
from kvstudy.project import loadgen_binary

BEGIN, END = "<!-- figures: make bench-scaling -->", "<!-- end of figures -->"
IDLE_S = 20.0
REPEATS = 500  # of one rate; an experiment has 1000 at most


def main() -> int:
    arguments = argparse.ArgumentParser(description="what many hosts, requests and runs cost")
    arguments.add_argument("--runs", type=int, default=10_000)
    arguments.add_argument("--workers", type=int, default=100)
    arguments.add_argument("--parts", type=int, default=100)
    arguments.add_argument("--write", type=Path)
    given = arguments.parse_args()
    rows = [*of_plan(given.runs), *of_workers(given.workers), *of_merge(given.parts)]
    table = "\n".join(
        ["| what | figure |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in rows)]
        + ["", f"Measured {datetime.now(UTC):%Y-%m-%d} on {psutil.cpu_count()} cores."]
    )
    print(table)
    if given.write:
        text = given.write.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        after = rest.partition(END)[2]
        given.write.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
    return 0


def of_plan(runs: int) -> list[tuple[str, str]]:
    rates = -(-runs // REPEATS)
    experiment = Experiment.from_parameters(
        {
            "question": "how long?",
            "expectation": "1 ms",
            "workload": "put",
            "connections": 4,
            "threads": 1,
            "rate": [1000 + number for number in range(rates)],
        }
        | {"duration": "2s", "warm_up": "1s", "repeats": min(runs, REPEATS)}
    )
    took_s, whole = timed(lambda: plan(experiment))
    tracemalloc.start()
    kept = plan(experiment)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    identities_s, _ = timed(lambda: {run.identity() for run in whole.runs})
    count = len(kept.runs)
    return [
        (f"a plan of {count} runs", f"{took_s:.2f} s, {size / count:.0f} bytes a run"),
        ("their identities, for --resume", f"{identities_s:.2f} s"),
    ]


def of_workers(count: int) -> list[tuple[str, str]]:
    from kvstudy.hosts import dask_host

    with tempfile.TemporaryDirectory() as folder:
        tls, noted = Path(folder) / "tls", Path(folder) / "scheduler.json"
        dask_host.write_certificates(tls)
        scheduler = subprocess.Popen(
            [sys.executable, "-m", "kvstudy.hosts.dask_host", "scheduler", "--address", "127.0.0.1"]
            + ["--file", str(noted), "--tls", str(tls)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
        )
        try:
            while not noted.is_file():
                time.sleep(0.05)
            address = json.loads(noted.read_text())["address"]
            with Workers(address, tls, count) as workers:
                return [
                    (f"{count} workers connect", f"{workers.took_s:.1f} s"),
                    *_idle(scheduler.pid, count),
                    *_beats(dask_host.Cluster(address, tls), count),
                ]
        finally:
            scheduler.terminate()
            scheduler.wait()


class Workers:
    """In a thread with a loop of its own."""

    def __init__(self, address: str, tls: Path, count: int):
        self._given, self._loop = (address, tls, count), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._workers: list = []

    def __enter__(self) -> "Workers":
        self._thread.start()
        self.took_s, _ = timed(lambda: self._wait(self._start(*self._given)))
        return self

    def __exit__(self, *_error: object) -> None:
        self._wait(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _wait(self, work) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(600)

    async def _start(self, address: str, tls: Path, count: int) -> None:
        from kvstudy.hosts import dask_host

        for number in range(count):
            self._workers.append(await dask_host.quiet_worker(address, f"w{number}", "127.0.0.1", tls))

    async def _stop(self) -> None:
        await asyncio.gather(*(worker.close() for worker in self._workers), return_exceptions=True)


def _idle(pid: int, count: int) -> list[tuple[str, str]]:
    process = psutil.Process(pid)
    before, begun = process.cpu_times(), time.monotonic()
    time.sleep(IDLE_S)
    after, length = process.cpu_times(), time.monotonic() - begun
    share = (after.user + after.system - before.user - before.system) / length
    return [
        (
            f"the scheduler with {count} idle workers",
            f"{100 * share:.2f} % of a core, {process.memory_info().rss / 2**20:.0f} MiB",
        )
    ]


def _beats(cluster, count: int) -> list[tuple[str, str]]:
    took_s, _ = timed(cluster.beat_all)
    cluster.close()
    return [(f"a word to each of {count} workers and back, through the scheduler", f"{took_s * 1e3:.0f} ms")]


def of_merge(count: int) -> list[tuple[str, str]]:
    loadgen = loadgen_binary(ROOT)
    nullserver = loadgen.with_name("nullserver")
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([nullserver, "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().split()[-1]
            files = [str(Path(folder) / f"{number}.json") for number in range(1, count + 1)]
            begin = datetime.now(UTC) + timedelta(seconds=1 + count / 10)
            load = ["-c", str(count), "-t", "1", "-R", str(100 * count), "-d", "1s", "--warmup", "100ms"]
            load += ["--start-at", begin.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "--spin", "off"]
            parts = [
                subprocess.Popen(
                    [loadgen, *load, "--part", f"{number}/{count}", "--json", file, url],
                    stdout=subprocess.DEVNULL,
                )
                for number, file in enumerate(files, start=1)
            ]
            if any([part.wait() for part in parts]):
                raise SystemExit("a part of the load failed: see above; try fewer --parts")
        finally:
            server.terminate()
            server.wait()
        took_s, _ = timed(lambda: subprocess.run([loadgen, "merge", *files], check=True, capture_output=True))
    return [(f"results of {count} generators made one", f"{took_s:.2f} s")]


def timed(work: Callable) -> tuple[float, object]:
    begun = time.monotonic()
    found = work()
    return time.monotonic() - begun, found


if __name__ == "__main__":
    sys.exit(main())
