"""Causes of the tail as page 07 tells them: whole tables of runs go in, and the words that the page says are
counted.

The studies are those of tail.py. Each slow answer is one of those that the generator kept, each event one
that the service recorded.
"""

from functools import partial

import numpy as np
import tidy
from hdrh.histogram import HdrHistogram
from rules import tail
from simulation import Simulation

from kvstudy.analyse.linked import LINKED
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.tail import page_causes

RULE = "linked, as page 07 says it"
KINDS = {"same phase": "flush", "decaying": "gc_pause", "periodic": "compaction"}
CAUSE = "write_stall"
SECONDS = int(tail.LENGTH_S)
SLOW_US = (10_000, 60_000)


def _second() -> str:
    """The answers of any second: 980 quick ones and twenty slow ones, so that the slowest percent is over
    about 35 ms."""
    histogram = HdrHistogram(1, 3_600_000_000, 3)
    histogram.record_value(150, 980)
    for latency_us in np.linspace(*SLOW_US, 20):
        histogram.record_value(int(latency_us))
    return histogram.encode().decode()


SECOND = _second()


def page(
    slow: list[list[np.ndarray]], felt: dict[str, list[list[np.ndarray]]], generator: np.random.Generator
) -> Tables:
    """``slow``: of each run of each configuration the moments at which answers were slow; ``felt``: kind →
    the moments of its events."""
    ids = [
        [f"c{place}-rep{repeat}" for repeat in range(tail.REPEATS)] for place in range(tail.CONFIGURATIONS)
    ]
    every = [run for of in ids for run in of]
    answers = [
        (run, moment + generator.uniform(0, 0.2), generator.uniform(*SLOW_US))
        for of, by in zip(ids, slow, strict=True)
        for run, moments in zip(of, by, strict=True)
        for moment in moments
        for _ in range(generator.integers(4, 40))
    ]
    events = [
        (run, kind, moment, generator.uniform(50, 150))
        for kind, by in felt.items()
        for of, own in zip(ids, by, strict=True)
        for run, moments in zip(of, own, strict=True)
        for moment in moments
    ]
    rows = len(every) * SECONDS
    return tidy.tables(
        runs={
            "run_id": every,
            "connections": [place for place, of in enumerate(ids, 1) for _ in of],
            "repeat": [*range(tail.REPEATS)] * tail.CONFIGURATIONS,
            "workload": ["unique_put"] * len(every),
        },
        intervals={
            "run_id": np.repeat(every, SECONDS),
            "start_s": [*map(float, range(SECONDS))] * len(every),
            "second": [*range(SECONDS)] * len(every),
            "count": [1000] * rows,
            "max_us": [float(SLOW_US[1])] * rows,
            "histogram": [SECOND] * rows,
        },
        slowest=dict(zip(("run_id", "due_s", "response_us"), zip(*answers, strict=True), strict=True)),
        events=dict(
            zip(("run_id", "kind", "start_s", "duration_ms"), zip(*events, strict=True), strict=True)
        ),
    )


def moments_of(generator: np.random.Generator, moments: tail.Moments) -> list[list[np.ndarray]]:
    """Of each configuration the moments of each repeat."""
    return [
        [np.sort(moments(generator).clip(0, tail.LENGTH_S - 1)) for _ in range(tail.REPEATS)]
        for _ in range(tail.CONFIGURATIONS)
    ]


def linked(made: Tables, generator: np.random.Generator) -> set[str]:
    """The kinds that the page calls linked anywhere."""
    said = page_causes(made, draws=tail.DRAWS, seed=int(generator.integers(2**32)))
    return {kind for group in said.groups for kind in group.found.loc[group.found["word"] == LINKED, "cause"]}


def in_step(counted: str, generator: np.random.Generator, trials: int) -> int:
    """Of so many pages in how many ``counted`` is linked to answers that are slow by the same clock as it."""
    wrong = 0
    for _ in range(trials):
        moments = {name: of(generator) for name, of in tail.BYSTANDERS.items()}
        felt = {KINDS[name]: moments_of(generator, of) for name, of in moments.items()}
        wrong += KINDS[counted] in linked(
            page(moments_of(generator, moments[counted]), felt, generator), generator
        )
    return wrong


def out_of_step(bystanders: bool, generator: np.random.Generator, trials: int) -> int:
    """Of so many pages in how many the cause is linked, or any of the bystanders beside it."""
    found = 0
    for _ in range(trials):
        cause = moments_of(generator, tail.anywhere_in_its_rhythm(generator))
        felt = {CAUSE: cause} | {
            KINDS[name]: moments_of(generator, of(generator)) for name, of in tail.BYSTANDERS.items()
        }
        # Of most runs, and there are slow answers that the cause does not make.
        slow = [
            [
                np.append(run if generator.random() < 0.9 else [], generator.uniform(0, tail.LENGTH_S - 1, 3))
                for run in of
            ]
            for of in cause
        ]
        said = linked(page(slow, felt, generator), generator)
        found += bool(said - {CAUSE}) if bystanders else CAUSE in said
    return found


SIMULATIONS = [
    *(
        Simulation(RULE, f"{name} bystander, repeats in step", partial(in_step, name), 200, 3, at_most=0.05)
        for name in KINDS
    ),
    Simulation(
        RULE,
        "any bystander beside a cause, repeats out of step",
        partial(out_of_step, True),
        200,
        3,
        at_most=0.05,
    ),
    Simulation(RULE, "the cause, repeats out of step", partial(out_of_step, False), 200, 3, at_least=0.95),
]
