#!/usr/bin/env python3
"""The slowest answers at half the saturation rate while flush and compaction run, beside the same without
them.

    .venv/bin/python service/bench/bench_tail.py
    .venv/bin/python service/bench/bench_tail.py --beside before/kv-service.jar      or --beside main

Duets of bench-tail.yaml. First both sides are loaded in a closed loop, in one launch; the rate of the others
is half (--share) of what the side that flushes and compacts answered there. With --beside the service of
another build flushes and compacts beside this one, at the same rate. Fails when a side that should did not
flush and compact in each launch, or when the other one did at all.
"""

import argparse
import statistics
from pathlib import Path

from served import run

from kvstudy.errors import KvstudyError
from kvstudy.measure.compare import DuetInProgress, compare
from kvstudy.measure.duet_table import table_lines
from kvstudy.plan.comparison import SIDES, changed, comparisons
from kvstudy.plan.experiment import Experiment
from kvstudy.project import project_root
from kvstudy.record import process_series
from kvstudy.record.duet import side_file, slices_of
from kvstudy.record.run_folder import SealedRun
from kvstudy.subject.builds import check_revisions
from kvstudy.units import parse_duration_s

FILE = Path(__file__).with_name("bench-tail.yaml")
BUSY = "compaction=leveled"
WORK = ("flushes", "compactions")


def saturation_rps(root: Path) -> float:
    """Median over the slices of the side that flushes and compacts, the first one apart."""
    (one,) = comparisons(Experiment.load(FILE, "saturation", compared=True))
    *_, run = compare(one, root).launches  # those that were disturbed come before it
    slices = slices_of(run)
    rates = slices.loc[(slices["side"] == "b") & (slices["round"] > 1), "rate_rps"]
    if rates.empty:
        raise KvstudyError(f"no saturation rate: {run.facts['outcome']}", f"see {run.path}")
    return statistics.median(rates)


def work_in(run: SealedRun, side: str) -> tuple[int, ...]:
    """Flushes and compactions of a side from its warm-up to its last slice."""
    file = side_file("store.csv", side)
    counters = process_series.read(run.text(file), file)
    return tuple(int(counters[name][-1] - counters[name][0]) for name in WORK)


def check_work(duet: DuetInProgress) -> str:
    """How much each side did in a launch. KvstudyError where that is not what was to be measured."""
    told = []
    for side, name in zip(SIDES, duet.comparison.names, strict=True):
        is_busy = duet.comparison.loads[0].of(side).service["compaction"] != "none"
        done = [work_in(run, side) for run in duet.launches if run.facts["outcome"] == "completed"]
        if not done:
            raise KvstudyError(f"no launch was completed; the first: {duet.launches[0].facts['outcome']}")
        if any((count > 0) != is_busy for one in done for count in one):
            raise KvstudyError(f"not what was to be measured: {name}: {' and '.join(WORK)} by launch: {done}")
        medians = [f"{statistics.median(one[place] for one in done):g} {WORK[place]}" for place in (0, 1)]
        told.append(f"{name}: {' and '.join(medians)} a launch")
    return "; ".join(told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=0.5, help="of the saturation rate")
    parser.add_argument("--beside", metavar="JAR", help="another build: a jar of it, or a revision")
    parser.add_argument(
        "--within",
        metavar="TIME",
        help="how long a duet may go on (default: the file's)",
    )
    options = parser.parse_args()
    try:
        within_s = parse_duration_s(options.within) if options.within else None
    except ValueError as wrong:  # argparse would name the function instead of saying it
        parser.error(f"--within: {wrong}")
    root = project_root()
    check_revisions([options.beside] if options.beside else [], root)
    saturation = saturation_rps(root)
    rate = round(options.share * saturation)
    print(f"saturation rate {saturation:,.0f} 1/s, closed loop; offered rate {rate:,} 1/s", flush=True)
    experiment = changed(
        Experiment.from_parameters({"experiment_file": str(FILE), "rate": rate}, compared=True),
        within=within_s,
    )
    duets = comparisons(experiment)
    if options.beside:
        duets += comparisons(experiment, builds=(options.beside, "."), only=[BUSY])
    for one in duets:
        duet = compare(one, root)
        print("\n".join(["", *table_lines(duet.found, duet.over, markdown=True)]))
        print(check_work(duet), flush=True)


if __name__ == "__main__":
    run(main)
