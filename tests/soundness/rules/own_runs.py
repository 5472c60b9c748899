"""Runs of the reader's own beside the reference: how often the answers about options that a page makes of
both have a false word."""

import numpy as np
import tidy
from simulation import Simulation

from kvstudy.analyse.answers import options
from kvstudy.analyse.comparison.families import OPTIONS
from kvstudy.analyse.comparison.words import ALPHA, DIFFERENT
from kvstudy.analyse.tables import Tables
from kvstudy.present.notebook import BESIDE_THE_REFERENCE

RUNS, WORKLOADS = 6, 2
DEFAULT, OTHER = "wal=interval", "wal=always"
# What OTHER is slower by in each experiment, of the reference's machine. On the reader's nothing differs, so
# that the reference decides more of most experiments and these leave the reader's family.
OF_THE_REFERENCE = {"one": 2.0, "two": 2.0, "three": 1.0}


def study(generator: np.random.Generator, slower: dict[str, float], who: str) -> Tables:
    """p99 of RUNS runs a side of each experiment and workload, that differ by 5 %."""
    names, variants, workloads, latencies = [], [], [], []
    for name, factor in slower.items():
        for workload in range(WORKLOADS):
            for variant in (DEFAULT, OTHER):
                middle = 1e4 * (factor if variant == OTHER else 1.0)
                names += [name] * RUNS
                variants += [variant] * RUNS
                workloads += [f"workload {workload}"] * RUNS
                latencies.append(middle * np.exp(0.05 * generator.standard_normal(RUNS)))
    ids = [f"{who}-{number:05d}" for number in range(len(names))]
    return tidy.tables(
        runs={
            "run_id": ids,
            "experiment": names,
            "variant": variants,
            "workload": workloads,
            "service_cpu_us_per_answer": [np.nan] * len(ids),
        },
        percentiles=tidy.p99(ids, np.concatenate(latencies)),
    )


def false_pages(generator: np.random.Generator, trials: int) -> int:
    """Pages that say a difference where the machine it is said of has none."""
    wrong = 0
    for _ in range(trials):
        reference = study(generator, OF_THE_REFERENCE, "run").but(part=BESIDE_THE_REFERENCE)
        mine = study(generator, dict.fromkeys(OF_THE_REFERENCE, 1.0), "own")
        mine = mine.but(own=frozenset(mine.runs["run_id"]), part=BESIDE_THE_REFERENCE)
        found = options.standing(mine, reference)
        rows = found.compared[found.compared["word"].isin(DIFFERENT)]
        wrong += any(name not in found.less or OF_THE_REFERENCE[name] == 1.0 for name in rows["experiment"])
    return wrong


SIMULATIONS = [
    Simulation(
        "own runs beside the reference",
        "pages with a false word about an option, where nothing differs on the reader's machine",
        false_pages,
        150,
        10,
        at_most=ALPHA * OPTIONS,
    )
]
