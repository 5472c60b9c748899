"""Causes of the tail: what has nothing to do with the slow answers must not be called linked to them, and
what makes them must be.

A study is two configurations of five repeats of 30 s, in bins of 10 ms. *In step*: whatever makes the answers
slow comes at the same moments of every repeat, and nobody recorded it. *Out of step*: it is recorded, as
"cause", and begins its rhythm elsewhere in every repeat. Beside it run bystanders, none of which makes
anything slow.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from simulation import Simulation

from kvstudy.analyse.linked import LINKED, SIGNIFICANCE, Question, judge
from kvstudy.analyse.permutation import Repeats, shifted_p

RULE = "linked"
BINS, STEP_S, LENGTH_S = 3000, 0.01, 30.0
CONFIGURATIONS, REPEATS, EVENTS, DRAWS = 2, 5, 8, 999
JITTER_S = 0.05
Moments = Callable[[np.random.Generator], np.ndarray]


def comes(generator: np.random.Generator, starts_s: np.ndarray, height: tuple[float, float]) -> np.ndarray:
    """Bins of a run in which something is felt for 0.1 to 0.3 s from each of the starts, each time as strong
    as ``height`` allows."""
    first = np.clip(starts_s / STEP_S, 0, BINS - 1).astype(int)
    last = np.clip(first + generator.integers(10, 30, len(first)), 0, BINS)
    strength, change = generator.uniform(*height, len(first)), np.zeros(BINS + 1)
    np.add.at(change, first, strength)
    np.add.at(change, last, -strength)
    return np.maximum(np.cumsum(change)[:-1], 0).round(6)


def at_the_same_moments(generator: np.random.Generator) -> Moments:
    """Eight moments, the same in all repeats, but for some jitter."""
    base = generator.uniform(0, LENGTH_S - 1, EVENTS)
    return lambda own: base + own.normal(0, JITTER_S, EVENTS)


def decaying(_: np.random.Generator) -> Moments:
    """Often at the beginning of each run, and rarely at its end, as what a compiler or a cold cache does."""
    return lambda own: np.minimum(own.exponential(LENGTH_S / 5, EVENTS + own.poisson(4)), LENGTH_S - 0.1)


def periodic(generator: np.random.Generator) -> Moments:
    """A rhythm of 3 s that begins with the run."""
    begin = generator.uniform(0, 3)
    return lambda own: np.arange(begin, LENGTH_S, 3.0) + own.normal(0, JITTER_S / 5)


def anywhere_in_its_rhythm(_: np.random.Generator) -> Moments:
    """A rhythm of 3 s that begins elsewhere in every run."""
    return lambda own: np.arange(own.uniform(0, 3), LENGTH_S, 3.0)


def runs_of(
    generator: np.random.Generator, moments: Moments, height: tuple[float, float]
) -> list[list[np.ndarray]]:
    """Of each configuration the bins of each repeat."""
    return [
        [comes(generator, moments(generator), height) for _ in range(REPEATS)] for _ in range(CONFIGURATIONS)
    ]


def question(slow: list[list[np.ndarray]], felt: list[list[np.ndarray]]) -> Question:
    return Question(
        tuple(Repeats(tuple(of), tuple(by)) for of, by in zip(slow, felt, strict=True)),
        EVENTS * CONFIGURATIONS * REPEATS,
    )


def in_step(counted: str, generator: np.random.Generator, trials: int, rule=judge) -> int:
    """Of so many studies in how many ``counted`` is linked to answers that are slow by the same clock as it.
    All three bystanders are asked about together, as the kinds of event of a page are."""
    wrong = 0
    for _ in range(trials):
        moments = {name: of(generator) for name, of in BYSTANDERS.items()}
        slow = runs_of(generator, moments[counted], (1, 50))
        asked = {name: question(slow, runs_of(generator, of, (5, 10))) for name, of in moments.items()}
        wrong += rule(asked, DRAWS, int(generator.integers(2**32)))[counted].word == LINKED
    return wrong


def in_step_and_worse_in_some(counted: str, generator: np.random.Generator, trials: int, rule=judge) -> int:
    """As ``in_step``, of repeats on a machine that is now faster, now slower: where answers are slower, the
    bystander takes longer too."""
    wrong = 0
    for _ in range(trials):
        moments = BYSTANDERS[counted](generator)
        worse = generator.lognormal(0, 1, (CONFIGURATIONS, REPEATS))
        slow, felt = (
            [
                [run * factor for run, factor in zip(of, factors, strict=True)]
                for of, factors in zip(runs_of(generator, moments, height), worse, strict=True)
            ]
            for height in ((1, 50), (5, 10))
        )
        wrong += (
            rule({counted: question(slow, felt)}, DRAWS, int(generator.integers(2**32)))[counted].word
            == LINKED
        )
    return wrong


def out_of_step(counted: str, generator: np.random.Generator, trials: int, rule=judge) -> int:
    """Of so many studies in how many ``counted`` is linked: the cause, which makes the answers slow, or one
    of three bystanders."""
    found = 0
    for _ in range(trials):
        moments = anywhere_in_its_rhythm(generator)
        cause = runs_of(generator, moments, (5, 10))
        # Of most runs, and there are slow answers that the cause does not make.
        slow = [
            [
                run * (generator.random() < 0.9)
                + comes(generator, generator.uniform(0, LENGTH_S - 1, 3), (1, 50))
                for run in of
            ]
            for of in cause
        ]
        kinds = {"cause": cause} | {
            name: runs_of(generator, of(generator), (5, 10)) for name, of in BYSTANDERS.items()
        }
        found += (
            rule(
                {name: question(slow, felt) for name, felt in kinds.items()},
                DRAWS,
                int(generator.integers(2**32)),
            )[counted].word
            == LINKED
        )
    return found


def by_shifts_alone(questions: dict[str, Question], draws: int, seed: int) -> dict[str, object]:
    """A rule that was used once: the events of each run come at another time of it. What it calls linked is
    often not."""
    generator = np.random.default_rng(seed)

    def word(one: Question) -> object:
        slow, felt = (
            [run for group in one.groups for run in getattr(group, side)] for side in ("slow", "felt_ms")
        )
        linked = shifted_p(slow, felt, draws, generator) <= SIGNIFICANCE
        return type("Judgement", (), {"word": LINKED if linked else ""})

    return {name: word(one) for name, one in questions.items()}


BYSTANDERS = {"same phase": at_the_same_moments, "decaying": decaying, "periodic": periodic}
SIMULATIONS = [
    *(
        Simulation(RULE, f"{name} bystander, repeats in step", partial(in_step, name), 200, 40, at_most=0.05)
        for name in BYSTANDERS
    ),
    *(
        Simulation(
            RULE,
            f"{name} bystander, repeats in step, some of them worse in all",
            partial(in_step_and_worse_in_some, name),
            200,
            20,
            at_most=0.05,
        )
        for name in BYSTANDERS
    ),
    *(
        Simulation(
            RULE,
            f"{name} bystander beside a cause, repeats out of step",
            partial(out_of_step, name),
            200,
            20,
            at_most=0.05,
        )
        for name in BYSTANDERS
    ),
    Simulation(RULE, "the cause, repeats out of step", partial(out_of_step, "cause"), 200, 20, at_least=0.95),
]
