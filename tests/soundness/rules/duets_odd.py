"""Duets of which some launches are odd: memory was placed or code was compiled in another way, and one side
is slower by a tenth to two thirds for as long as the launch lasts. Asked about is the typical launch.

Counted is a word at any look, even one that later looks take back. Launches are log ratios, normal with a
standard deviation of 1.5 % but for what is named. ``odd_both`` befalls either side, as in two equal builds;
``odd_b`` always makes b slower: the typical launch does not differ all the same.

    python tests/soundness/rules/duets_odd.py      how many launches it takes, beside the t interval alone
"""

import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]

from rules.duets import FEW
from scipy import stats
from simulation import Simulation

from kvstudy.analyse.comparison import location, looks, stopping
from kvstudy.analyse.comparison.words import ALPHA

Launches = Callable[[np.random.Generator, int, int], np.ndarray]
USUAL = 0.015
LEAST, MOST = math.log(1.1), math.log(1.7)  # p50 of odd launches over that of others, as measured
WITHIN = 0.05
BATCH = 500


def normal(generator: np.random.Generator, duets: int, count: int) -> np.ndarray:
    return USUAL * generator.standard_normal((duets, count))


def heavy(generator: np.random.Generator, duets: int, count: int) -> np.ndarray:
    return USUAL * generator.standard_t(3, (duets, count))


def drifting(generator: np.random.Generator, duets: int, count: int) -> np.ndarray:
    """The spread grows threefold, and whoever goes first gains more and more: who does is drawn."""
    gained = generator.choice((-1, 1), (duets, count)) * np.linspace(0, 0.03, count)
    return normal(generator, duets, count) * np.linspace(1, 3, count) + gained


def odd_both(share: float) -> Launches:
    return lambda generator, duets, count: _odd(generator, duets, count, share, (-1, 1))


def odd_b(share: float) -> Launches:
    return lambda generator, duets, count: _odd(generator, duets, count, share, (1,))


def halves(one: float, other: float) -> Launches:
    def launches(generator: np.random.Generator, duets: int, count: int) -> np.ndarray:
        return normal(generator, duets, count) + generator.choice((one, other), (duets, count))

    return launches


def groups(share: float, one: float, other: float) -> Launches:
    """``share``: of the launches that are of the one kind."""

    def launches(generator: np.random.Generator, duets: int, count: int) -> np.ndarray:
        of_kind = generator.choice((one, other), (duets, count), p=(share, 1 - share))
        return normal(generator, duets, count) + of_kind

    return launches


def _odd(generator, duets, count, share, sides):
    by = generator.choice(sides, (duets, count)) * generator.uniform(LEAST, MOST, (duets, count))
    return normal(generator, duets, count) + (generator.random((duets, count)) < share) * by


def said(generator, trials, launches: Launches, count: int, ratio: float = 1.0) -> tuple[int, int, int]:
    """How many duets of up to ``count`` launches get a word of a difference at some look, how many *the
    same*, and how many either."""
    found = np.zeros(3, dtype=int)
    for begun in range(0, trials, BATCH):
        logs = launches(generator, min(BATCH, trials - begun), count) + math.log(ratio)
        differs, same = (p <= ALPHA for p in stopping.sequential(logs, WITHIN))
        found += differs.sum(), same.sum(), (differs | same).sum()
    return tuple(found.tolist())


def _said(which: int, launches: Launches, count: int, ratio: float = 1.0):
    return lambda generator, trials: said(generator, trials, launches, count, ratio)[which]


def _stands(launches: Launches, count: int):
    """How many duets say at their last launch that the sides differ."""

    def stands(generator: np.random.Generator, trials: int) -> int:
        return sum(
            (one := stopping.looked_at(logs, WITHIN))["p"] <= ALPHA and one["low"] > 1
            for logs in launches(generator, trials, count)
        )

    return stands


DIFFERS, SAME, EITHER = range(3)
RULE = "duet with odd launches"
ONE_IN_FIVE = odd_both(0.2)


def _wrong(what: str, which: int, count: int, kinds: dict[str, Launches], ratio: float = 1.0):
    """Of each kind of launches how often a word that is wrong of it is said."""
    trials = 6000 if count < 30 else 4000
    return [
        Simulation(
            RULE,
            f"{what}, {count} launches: {told}",
            _said(which, launches, count, ratio),
            trials,
            200,
            at_most=0.05,
        )
        for told, launches in kinds.items()
    ]


SIMULATIONS = [
    *(
        simulation
        for count in FEW
        for simulation in _wrong(
            "a word of a difference where the typical launch has none",
            DIFFERS,
            count,
            {"one in five odd, either side": ONE_IN_FIVE, "one in three odd, always b": odd_b(1 / 3)},
        )
    ),
    *(
        simulation
        for count in (looks.HORIZON, looks.LAST_LOOK)
        for simulation in _wrong(
            "a word of a difference where the typical launch has none",
            DIFFERS,
            count,
            {
                "normal": normal,
                "heavy tails (t3)": heavy,
                "drift": drifting,
                "one in five odd, either side": ONE_IN_FIVE,
                "one in five odd, always b": odd_b(0.2),
                "one in three odd, either side": odd_both(1 / 3),
                "one in three odd, always b": odd_b(1 / 3),
            },
        )
    ),
    *(
        simulation
        for count in (*FEW, looks.HORIZON, looks.LAST_LOOK)
        for simulation in _wrong(
            "any word where no launch is typical",
            EITHER,
            count,
            {
                "half 15 % faster, half 15 % slower": halves(-0.15, 0.15),
                "half the same, half 35 % slower": halves(0.0, 0.3),
            },
        )
    ),
    *_wrong(
        "the same within 5 % said of a true difference of 5 %",
        SAME,
        looks.LAST_LOOK,
        {
            "normal": normal,
            "one in five odd, either side": ONE_IN_FIVE,
            "one in three odd, either side": odd_both(1 / 3),
        },
        1 + WITHIN,
    ),
    *(
        Simulation(
            RULE,
            f"{what} within {count} launches, one in five odd",
            _said(which, ONE_IN_FIVE, count, ratio),
            4000,
            200,
            at_least=goal,
        )
        for what, which, ratio, count, goal in (
            ("5 % found", DIFFERS, 1.05, 8, 0.4),
            ("5 % found", DIFFERS, 1.05, 12, 0.65),
            ("5 % found", DIFFERS, 1.05, 15, 0.75),
            ("5 % found", DIFFERS, 1.05, 30, 0.95),
            ("3 % found", DIFFERS, 1.03, 15, 0.75),
            ("the same within 5 % said where nothing differs", SAME, 1.0, 15, 0.7),
            ("the same within 5 % said where nothing differs", SAME, 1.0, 30, 0.95),
        )
    ),
    *(
        Simulation(
            RULE,
            f"{told} 12 % slower, the others 50 %: found within {count} launches",
            _said(DIFFERS, groups(share, math.log(1.12), math.log(1.5)), count),
            4000,
            200,
            at_least=goal,
        )
        for told, share in (("half", 0.5), ("two in five", 0.4), ("three in five", 0.6))
        for count, goal in ((10, 0.8), (15, 0.9))
    ),
    *(
        Simulation(
            RULE,
            f"{told} 12 % slower, the others 50 %: the word stands after {count} launches",
            _stands(groups(share, math.log(1.12), math.log(1.5)), count),
            400,
            40,
            at_least=0.8,
        )
        for told, share in (("half", 0.5), ("two in five", 0.4))
        for count in (15, 30)
    ),
]


def needed(logs: np.ndarray, plain: bool) -> dict[str, np.ndarray]:
    """Launches until a word of a difference, and until *the same*; infinite where there is none. ``plain``:
    by the mean and its t interval."""
    found = {"a difference": np.full(len(logs), np.inf), "the same": np.full(len(logs), np.inf)}
    for count in range(looks.FIRST_LOOK, logs.shape[1] + 1):
        first = logs[:, :count]
        if plain:
            mean = np.abs(first.mean(axis=1))
            error = np.maximum(location.RESOLUTION, first.std(axis=1, ddof=1)) / math.sqrt(count)
            differs = 2 * stats.t.sf(mean / error, count - 1)
            same = stats.t.sf((math.log1p(WITHIN) - mean) / error, count - 1)
        else:
            seen = location.typical_launch(first)
            differs, same = seen.p(0.0), seen.p_same(math.log1p(WITHIN))
        limits = looks.nominal_p(ALPHA, count), looks.nominal_p(2 * ALPHA, count) / 2
        for name, p, limit in zip(found, (differs, same), limits, strict=True):
            found[name] = np.minimum(found[name], np.where(p <= limit, count, np.inf))
    return found


def main() -> None:
    generator, duets, most = np.random.default_rng(20261124), 4000, 40
    print("| launches | truth | until | t interval | typical launch |\n|---|---|---|---|---|")
    for told, launches in (
        ("normal", normal),
        ("heavy tails (t3)", heavy),
        ("one in five odd, either side", ONE_IN_FIVE),
        ("one in five odd, always b", odd_b(0.2)),
        ("one in three odd, either side", odd_both(1 / 3)),
    ):
        logs = launches(generator, duets, most)
        for truth, until in ((1.05, "a difference"), (1.03, "a difference"), (1.0, "the same")):
            cells = []
            for plain in (True, False):
                taken = needed(logs + math.log(truth), plain)[until]
                middle = np.median(taken)
                cells.append(
                    f"{f'{middle:.0f}' if math.isfinite(middle) else f'over {most}'}; "
                    f"{(taken <= looks.HORIZON).mean():.0%} within {looks.HORIZON}"
                )
            print(f"| {told} | {truth:g} × | {until} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
