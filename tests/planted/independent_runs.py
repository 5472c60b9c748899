"""How wide is the interval of a duet, beside that of independent runs of the same hour and as much time?

    python tests/planted/independent_runs.py [--each 3] [--write FILE]          (make independent-runs)

By turns, of GET and of PUT: a duet of LAUNCHES launches of the service beside itself, and RUNS runs of the
service alone, every other one called side a. A run is as long as it must be for all of them to take as long
as the duet's launches did, from starting a service to stopping it. Both have the same load, warm-up, heap,
store and cores. Intervals are those of duet_power.py: 95 %, of the mean log ratio, of launches as pairs, and
of runs as two heaps. Each comparison is a line of --outcomes, so the script may be interrupted; it goes on
with the next."""

import argparse
import json
import statistics
import sys
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import duet_power
import numpy as np

import kvstudy
from kvstudy.analyse.comparison import launches
from kvstudy.errors import KvstudyError
from kvstudy.measure.compare import compare, launch_duration_s
from kvstudy.measure.execute import execute
from kvstudy.plan.comparison import comparisons
from kvstudy.plan.experiment import APART, Experiment
from kvstudy.project import project_root

NAME = "independent-runs"
LAUNCHES, RUNS = 6, 12
WARM_UP_S = 5
OTHERWISE_S = 2  # of a run: its start and its stop
OUTCOMES = Path(__file__).with_name("independent-runs.jsonl")
MEASURES = (launches.P50, launches.CPU)


@dataclass(frozen=True)
class Compared:
    """``widths``: by measure, half the interval of the duet and half that of the runs, of log ratios;
    ``ratios``: by measure, what the runs said of b to a, which are the same."""

    workload: str
    number: int
    date: str
    machine: str
    duet_s: float
    runs_s: float
    widths: dict[str, tuple[float, float]]
    ratios: dict[str, float]


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--each", type=int, default=3, help="comparisons of each workload")
    arguments.add_argument("--outcomes", type=Path, default=OUTCOMES)
    arguments.add_argument("--write", type=Path, help="the table into this file, too")
    given = arguments.parse_args()
    root, known = project_root(), recorded(given.outcomes)
    there = {(one.workload, one.number) for one in known}
    try:
        for number in range(1, given.each + 1):
            for workload in duet_power.WORKLOADS:
                if (workload, number) not in there and (found := measured(root, workload, number)):
                    known.append(found)
                    with given.outcomes.open("a", encoding="utf-8") as out:
                        out.write(json.dumps(asdict(found)) + "\n")
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
    lines = table(known)
    print("\n".join(lines))
    if given.write:
        text = ["# A duet's interval beside that of independent runs", ""]
        text += [one for line in lines for one in duet_power.wrapped(line)]
        given.write.write_text("\n".join(text) + "\n", encoding="utf-8")


def recorded(file: Path) -> list[Compared]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [Compared(**json.loads(line)) for line in lines]


def measured(root: Path, workload: str, number: int) -> Compared | None:
    """None where too few launches or runs say something, which is told; then nothing is noted."""
    seed = 1000 * number + duet_power.WORKLOADS.index(workload)
    try:
        duet, duet_s = _duet(root, workload, seed)
        values, runs_s = _runs(root, workload, seed, duet_s)
    except (KvstudyError, LookupError) as error:
        print(f"{workload} {number}: {error}", file=sys.stderr)
        return None
    widths, ratios = {}, {}
    for measure in MEASURES:
        a, b = (np.log(values[measure][side::2]) for side in (0, 1))
        widths[measure] = duet[measure], duet_power.width_of_heaps(a, b)
        ratios[measure] = float(np.exp(b.mean() - a.mean()))
    when, where = date.today().isoformat(), duet_power.this_machine()
    return Compared(workload, number, when, where, round(duet_s, 1), round(runs_s, 1), widths, ratios)


def _duet(root: Path, workload: str, seed: int) -> tuple[dict[str, float], float]:
    """By measure half its interval; the seconds of its launches, those included that were disturbed."""
    (planned,) = comparisons(experiment(workload, seed, compared=True), builds=(".", "."))
    print(f"{workload}: duet", file=sys.stderr, flush=True)
    duet = compare(planned, root, label=NAME)
    if duet.found is None:
        raise LookupError("no launch of the duet was sealed")
    widths = {}
    for measure in MEASURES:
        ratios = duet.found.tables.ratios
        count = ((ratios["measure"] == measure) & (ratios["loop"] == "rate")).sum()
        width = duet_power.widths_of(duet.found, measure)
        if count < LAUNCHES or width is None:
            raise LookupError(f"{count} of {LAUNCHES} launches of the duet give a value of {measure}")
        widths[measure] = width[0]
    return widths, sum(map(launch_duration_s, duet.launches))


def _runs(root: Path, workload: str, seed: int, duet_s: float) -> tuple[dict[str, np.ndarray], float]:
    """By measure the values of the runs, as they were made; their seconds, those included that were disturbed
    and made again."""
    each_s = round(duet_s / RUNS - OTHERWISE_S, 1)
    print(f"{workload}: {RUNS} runs of {each_s} s", file=sys.stderr, flush=True)
    result = execute(experiment(workload, seed, each_s=each_s), root, label=NAME, retries=2)
    valid = {run.facts["repeat"]: run.run_id for run in result.sealed if run.run_id not in result.invalid}
    if len(valid) < RUNS:
        raise LookupError(f"{len(valid)} of {RUNS} repeats are valid: {result.summary()}")
    ids = [valid[repeat] for repeat in sorted(valid)]
    runs = kvstudy.runs(source="own", run_id=ids).set_index("run_id").loc[ids]
    p50 = kvstudy.percentiles(source="own", run_id=ids, latency_kind="response", percentile=50)
    values = {
        launches.P50: p50.set_index("run_id").loc[ids, "latency_us"].to_numpy(dtype=float),
        launches.CPU: runs["service_cpu_us_per_answer"].to_numpy(dtype=float),
    }
    return values, sum(map(launch_duration_s, [*result.sealed, *result.failed]))


def experiment(workload: str, seed: int, *, each_s: float = 10.0, compared: bool = False) -> Experiment:
    of_duets = {"primary": "cpu", "within": "10m", "until": "all", "launches": LAUNCHES, "closed_pairs": 0}
    asked = duet_power.SHORT | of_duets | {"warm_up": f"{WARM_UP_S}s", "pairs": duet_power.MANY_PAIRS}
    return Experiment.from_parameters(
        duet_power.LOAD
        | {
            "name": NAME,
            "question": "How wide is the interval of a duet beside that of independent runs?",
            "expectation": "A third of it at most, for p50 and for CPU per request.",
            "jvm": {"heap": "128m"},
            "workload": workload,
            "cores": APART,
            "rate": 20_000,
            "fill": {"records": 300_000, "methods": ["GET", "PUT"]},
            "duration": f"{each_s}s",
            "warm_up": f"{WARM_UP_S}s",
            "repeats": RUNS,
            "seed": seed,
        }
        | ({"compare": asked} if compared else {}),
        compared=compared,
    )


def table(known: list[Compared]) -> list[str]:
    if not known:
        return ["No comparison is finished yet."]
    dates, machines = (sorted({getattr(one, name) for one in known}) for name in ("date", "machine"))
    lines = [
        (
            f"{' and '.join(dict.fromkeys((dates[0], dates[-1])))}, {'; '.join(machines)}. A duet has "
            f"{LAUNCHES} launches of {duet_power.MANY_PAIRS} pairs; beside it stand {RUNS} runs of one "
            "service alone, every other one called side a. Half widths of 95 % intervals of the mean log "
            "ratio."
        ),
        "",
        (
            "| workload | duet, s | runs, s | p50: duet | p50: runs | times as wide | CPU: duet | "
            "CPU: runs | times as wide |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in sorted(known, key=lambda one: (one.workload, one.number)):
        cells = [f"{one.duet_s:.0f}", f"{one.runs_s:.0f}"]
        for measure in MEASURES:
            of_duet, of_runs = one.widths[measure]
            wider = f"{of_runs / of_duet:.1f}" if of_runs else ""
            cells += [f"{of_duet:.1%}", f"{of_runs:.1%}", wider]
        lines.append(f"| {one.workload} | {' | '.join(cells)} |")
    times = {
        measure: [runs / duet for one in known for duet, runs in [one.widths[measure]] if runs]
        for measure in MEASURES
    }
    told = (
        f"{measure} {statistics.median(found):.1f} ({min(found):.1f} to {max(found):.1f}), of {len(found)}"
        for measure, found in times.items()
        if found
    )
    return [
        *lines,
        "",
        f"Times as wide, median and range: {'; '.join(told)}. Runs resolve a median in whole microseconds: "
        "where it was the same in all of them their interval has no width.",
    ]


if __name__ == "__main__":
    main()
