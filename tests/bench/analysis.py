"""How long many runs take from sealed folders to tables and figures: `make bench-analysis`.

    python tests/bench/analysis.py [--runs 1000 --runs 10000] [--source data/raw --source data/reference]

Real sealed runs are copied under new run ids, as many as asked for, in experiments of fifty; their files are
links to those of the source, so that 10 000 take little room. Measured, each in a process of its own, with
its CPU time and the peak memory of it and its workers together: the first rebuild by all processors, a
rebuild with ten new runs, one with nothing new, and every figure of every experiment (of 1 000 runs, at
most). Exits with 1 when a goal below is not met.
"""

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kvstudy.record.run_folder import SEAL, SealedRun, sealed_runs

NEW_RUNS = 10
RUNS_PER_EXPERIMENT = 50
PEAK_BYTES_MAX = 2 << 30
SECONDS_MAX = {
    "rebuild": 0.010,
    "ten-new": 3.0,
    "none-new": 3.0,
    "figures": 0.050,
}  # rebuild and figures: for each run
FIGURES_RUNS_MAX = 1000


def main() -> int:
    arguments = argparse.ArgumentParser(description="time the analysis of many runs")
    arguments.add_argument("--runs", type=int, action="append", help="how many (default: 1000, then 10000)")
    arguments.add_argument("--source", type=Path, action="append")
    arguments.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    arguments.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.step:
        return step(given.step, given.data)
    source = sealed_runs(*(given.source or [ROOT / "data" / "raw", ROOT / "data" / "reference"]))
    if not source:
        print(
            "no sealed run to copy: measure some first (make smoke), or name a folder with --source",
            file=sys.stderr,
        )
        return 2
    return 0 if all([measured(runs, source) for runs in given.runs or [1000, 10_000]]) else 1


def measured(runs: int, source: list[SealedRun]) -> bool:
    """Prints what each step took beside its goal; whether all were met."""
    # Beside the checkout, where links to its files can be made.
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-analysis-", dir=ROOT / "build") as scratch:
        data = Path(scratch) / "data"
        for number in range(runs):
            copy(source[number % len(source)], data / "raw", number)
        print(
            f"{runs} runs, copies of {len(source)} sealed runs, {len(os.sched_getaffinity(0))} processors",
            flush=True,
        )
        met = [timed("rebuild", data, runs)]
        for number in range(NEW_RUNS):
            copy(source[number % len(source)], data / "raw", runs + number)
        met += [timed("ten-new", data), timed("none-new", data)]
        if runs <= FIGURES_RUNS_MAX:
            met.append(timed("figures", data, runs))
    return all(met)


def copy(run: SealedRun, raw: Path, number: int) -> None:
    """A sealed run under a new id, with a seal of its own."""
    run_id, experiment = f"{run.run_id}-{number:05d}", f"bench-{number // RUNS_PER_EXPERIMENT:03d}"
    target = raw / experiment / run_id
    target.mkdir(parents=True)
    for file in run.path.iterdir():
        if file.name not in ("run.json", SEAL) and not file.name.removesuffix(".gz").endswith(
            (".jfr", ".html")
        ):
            linked(file, target / file.name)
    facts = {**run.facts, "run_id": run_id, "experiment": experiment}
    (target / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    kept = {file.name for file in target.iterdir()} - {"run.json"}
    sealed = [line for line in (run.path / SEAL).read_text().splitlines() if line.split("  ", 1)[1] in kept]
    own = hashlib.sha256((target / "run.json").read_bytes()).hexdigest()
    (target / SEAL).write_text("\n".join([*sealed, f"{own}  run.json"]) + "\n", encoding="utf-8")


def linked(file: Path, target: Path) -> None:
    """A hard link, or, where the file system has too many of a file or none at all, a copy."""
    try:
        os.link(file, target)
    except OSError:
        target.write_bytes(file.read_bytes())


def timed(name: str, data: Path, runs: int = 1) -> bool:
    begin = time.monotonic()
    with subprocess.Popen(
        [sys.executable, __file__, "--step", name, "--data", str(data)], stdout=subprocess.PIPE, text=True
    ) as process:
        peak = Peak(process.pid)
        answer = process.communicate()[0]
        peak_bytes = peak.stop()
    seconds, goal_s = time.monotonic() - begin, SECONDS_MAX[name] * runs
    if process.returncode:
        raise SystemExit(f"the step failed: {name}")
    result = json.loads(answer.splitlines()[-1])
    met = seconds <= goal_s and peak_bytes <= PEAK_BYTES_MAX
    print(
        f"  {name:9} {seconds:6.1f} s (goal {goal_s:.0f} s)  {result['cpu_s']:6.1f} s of CPU  peak "
        f"{peak_bytes / 2**20:5.0f} MiB (goal {PEAK_BYTES_MAX >> 20} MiB)  "
        f"{'met' if met else 'NOT MET'}  {result['what']}",
        flush=True,
    )
    return met


class Peak:
    """Memory of a process and all that it starts, together, while they run: proportional set size, so that
    what they share counts once."""

    def __init__(self, pid: int):
        self._process, self._stopped, self._bytes = psutil.Process(pid), threading.Event(), 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._stopped.set()
        self._thread.join()
        return self._bytes

    def _watch(self) -> None:
        while not self._stopped.wait(0.1):
            used = 0
            try:
                for process in (self._process, *self._process.children(recursive=True)):
                    used += process.memory_full_info().pss
            except psutil.Error:
                continue  # one ended meanwhile
            self._bytes = max(self._bytes, used)


def step(name: str, data: Path) -> int:
    what = draw(data) if name == "figures" else rebuild(data)
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({"cpu_s": sum(one.ru_utime + one.ru_stime for one in used), "what": what}))
    return 0


def rebuild(data: Path) -> str:
    from kvstudy import workers
    from kvstudy.analyse import tables

    tables.rebuild([data / "raw"], data / "tidy", progress=False, spread=workers.processes)
    files = list((data / "tidy").rglob("*.parquet"))
    return f"{sum(path.stat().st_size for path in files) / 2**20:.0f} MiB of parquet in {len(files)} files"


def draw(data: Path) -> str:
    """What the notebooks draw, once for each experiment."""
    from kvstudy.analyse import tables, tail
    from kvstudy.present import flame
    from kvstudy.present.figures.rate import achieved_against_offered, latency_against_rate
    from kvstudy.present.figures.seconds import latency_heat_map, time_line
    from kvstudy.present.figures.spectrum import percentile_spectrum, response_against_service
    from kvstudy.present.figures.stacks import icicle, subsystem_shares
    from kvstudy.present.figures.tail import causes_by_workload, slow_time_line

    everything = tables.load(data / "tidy")
    drawn = 0
    for experiment in everything.runs["experiment"].unique():
        study = everything.select(experiment=experiment)
        profiled = study.only(study.runs.loc[study.runs["profiled"], "run_id"].head(1))
        for draw_one in (
            percentile_spectrum,
            response_against_service,
            latency_against_rate,
            achieved_against_offered,
            latency_heat_map,
            time_line,
        ):
            draw_one(study).to_json()
            drawn += 1
        if len(study.intervals):
            limit_us = tail.threshold_us(study)
            causes_by_workload(tail.page_causes(study).groups).to_json()
            slow_time_line(study, limit_us).to_json()
            drawn += 2
        if len(profiled.stacks):
            icicle(profiled).to_json()
            drawn += 1
        shares = flame.shares(study)
        if len(shares):
            subsystem_shares(shares, by="workload").to_json()
            drawn += 1
    return f"{drawn} figures of {everything.runs['experiment'].nunique()} experiments"


STEPS = tuple(SECONDS_MAX)

if __name__ == "__main__":
    raise SystemExit(main())
