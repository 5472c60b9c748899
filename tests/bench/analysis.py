"""How long 1 000 runs take from sealed folders to tables and figures: `make bench-analysis`.

    python tests/bench/analysis.py [--runs 1000] [--source data/raw --source data/reference]

Real sealed runs are copied under new run ids, as many as asked for, in experiments of fifty. Measured, each in a process of its own,
with its CPU time and peak memory: the first rebuild, a rebuild with one new run, one with nothing new, and every figure of every experiment.
Exits with 1 when a first rebuild and all figures together take 60 s or more, or a process needs 2 GiB or more.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kvstudy.record.run_folder import SealedRun, sealed_runs  # noqa: E402

LIMIT_S, LIMIT_BYTES = 60.0, 2 << 30
RUNS_PER_EXPERIMENT = 50


def main() -> int:
    arguments = argparse.ArgumentParser(description="time the analysis of many runs")
    arguments.add_argument("--runs", type=int, default=1000)
    arguments.add_argument("--source", type=Path, action="append")
    arguments.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    arguments.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.step:
        return step(given.step, given.data)
    source = sealed_runs(*(given.source or [ROOT / "data" / "raw", ROOT / "data" / "reference"]))
    if not source:
        print("no sealed run to copy: measure some first (make smoke), or name a folder with --source", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="bench-analysis-") as scratch:
        data = Path(scratch) / "data"
        for number in range(given.runs):
            copy(source[number % len(source)], data / "raw", number)
        size = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
        print(f"{given.runs} runs, {size / 2**20:.0f} MiB, copies of {len(source)} sealed runs")
        first = timed("rebuild", data)
        copy(source[0], data / "raw", given.runs)
        timed("one-new", data)
        timed("none-new", data)
        figures = timed("figures", data)
    total, cpu_s = (first[name] + figures[name] for name in ("seconds", "cpu_s"))
    peak = max(first["peak_bytes"], figures["peak_bytes"])
    met = total < LIMIT_S and peak < LIMIT_BYTES
    print(f"tables and figures: {total:.1f} s, {cpu_s:.1f} s of CPU (limit {LIMIT_S:.0f} s), peak {peak / 2**20:.0f} MiB (limit {LIMIT_BYTES >> 20} MiB): "
          f"{'met' if met else 'NOT MET'}")
    return 0 if met else 1


def copy(run: SealedRun, raw: Path, number: int) -> None:
    """A sealed run under a new id. The seal's digest of run.json is left as it was: tables are built without recomputing it."""
    run_id, experiment = f"{run.run_id}-{number:05d}", f"bench-{number // RUNS_PER_EXPERIMENT:03d}"
    target = raw / experiment / run_id
    shutil.copytree(run.path, target, ignore=lambda _folder, names: [name for name in names if name.endswith((".jfr", ".html"))])
    facts = {**run.facts, "run_id": run_id, "experiment": experiment}
    (target / "run.json").unlink()
    (target / "run.json").write_text(json.dumps(facts), encoding="utf-8")


def timed(name: str, data: Path) -> dict:
    done = subprocess.run([sys.executable, __file__, "--step", name, "--data", str(data)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    result = json.loads(done.stdout.splitlines()[-1])
    print(f"  {name:9} {result['seconds']:6.1f} s  {result['cpu_s']:6.1f} s of CPU  {result['peak_bytes'] / 2**20:6.0f} MiB  {result['what']}")
    return result


def step(name: str, data: Path) -> int:
    begin = time.monotonic()
    what = draw(data) if name == "figures" else rebuild(data)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": time.monotonic() - begin, "cpu_s": used.ru_utime + used.ru_stime, "peak_bytes": used.ru_maxrss * 1024, "what": what}))
    return 0


def rebuild(data: Path) -> str:
    from kvstudy.analyse import tables

    tables.rebuild([data / "raw"], data / "tidy", progress=False)
    size = sum(path.stat().st_size for path in (data / "tidy").glob("*.parquet"))
    return f"{size / 2**20:.0f} MiB of parquet"


def draw(data: Path) -> str:
    """What the notebooks draw, once for each experiment."""
    from kvstudy.analyse import frames, tables, tail
    from kvstudy.present.figures.rate import achieved_against_offered, latency_against_rate
    from kvstudy.present.figures.seconds import latency_heat_map, time_line
    from kvstudy.present.figures.spectrum import percentile_spectrum, response_against_service
    from kvstudy.present.figures.stacks import icicle, subsystem_shares
    from kvstudy.present.figures.tail import causes, slow_time_line

    everything = tables.load(data / "tidy")
    drawn = 0
    for experiment in everything.runs["experiment"].unique():
        study = everything.select(experiment=experiment)
        profiled = study.only(study.runs.loc[study.runs["profiled"], "run_id"].head(1))
        for draw_one in (percentile_spectrum, response_against_service, latency_against_rate, achieved_against_offered,
                         latency_heat_map, time_line):
            draw_one(study).to_json()
            drawn += 1
        if len(study.intervals):
            limit_us = tail.threshold_us(study)
            causes(tail.causes(study, limit_us), limit_us).to_json()
            slow_time_line(study, limit_us).to_json()
            drawn += 2
        if len(profiled.stacks):
            icicle(profiled).to_json()
            drawn += 1
        shares = frames.shares(study.stacks)
        if len(shares):
            subsystem_shares(shares.merge(study.runs[["run_id", "workload", "label", "variant"]], on="run_id")).to_json()
            drawn += 1
    return f"{drawn} figures of {everything.runs['experiment'].nunique()} experiments"


STEPS = ("rebuild", "one-new", "none-new", "figures")

if __name__ == "__main__":
    raise SystemExit(main())
