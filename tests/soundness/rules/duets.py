"""Duets: a word where nothing differs, however often one looks; *the same* said of what is not; what is there
and not found.

Launches are made up after what was measured of the same build on both sides (20 000/s on 4 connections, 693
slices of 11 launches): the log ratio of a round has a standard deviation of 0.05 to 0.3, rounds beside each
other correlate by -0.2 to -0.5, some are disturbed, and a launch has a ratio of its own by what it compiled
and where it put it.
"""

from dataclasses import dataclass

import numpy as np
from simulation import Simulation

from kvstudy.analyse.comparison import looks, stopping
from kvstudy.analyse.comparison.families import holm
from kvstudy.analyse.comparison.words import ALPHA

ROUNDS = 11  # of a launch, the first left out
BATCH = 500  # duets at a time: bounds memory
FEW = (6, 8, 12)  # launches: the first look, and what ten minutes have of two workloads and of one
# Launches, and the share of duets that must find 5 % in them.
POWER = ((8, 0.5), (12, 0.8), (15, 0.9))


@dataclass(frozen=True)
class Noise:
    """Standard deviations of log ratios: of a round within a launch, and of launches. ``step``: to which part
    of itself a median is read."""

    of_round: float
    of_launch: float
    step: float = 0.0008
    drift: float = (
        0.01  # from one slice to the next, which the order A B B A turns into a zigzag of the rounds
    )


GET_P50, PUT_P50 = Noise(0.08, 0.012), Noise(0.15, 0.02)
GET_CPU = Noise(0.0, 0.022)  # sums: one number per launch
PUT_CPU = Noise(0.0, 0.035)
P99 = Noise(0.0, 0.7)  # of merged histograms
WHOLE_MICROSECONDS = Noise(0.08, 0.012, step=0.05)


def rounds(
    generator: np.random.Generator, duets: int, count: int, noise: Noise, ratio: float = 1.0
) -> np.ndarray:
    """Log ratios of the rounds that count: duets × launches × ROUNDS."""
    own = _of_launches(generator, duets, count, noise, ratio)
    z = generator.standard_t(3, size=(duets, count, ROUNDS + 1)) / np.sqrt(3)
    found = noise.of_round * (z[..., 1:] - 0.45 * z[..., :-1]) / np.sqrt(1 + 0.45**2)
    found += (generator.random(found.shape) < 0.05) * generator.normal(
        0, 1, found.shape
    )  # disturbed, and not seen to be
    first = generator.choice((-1, 1), size=(duets, count, 1))
    found += own[..., None] + noise.drift * first * np.where(np.arange(ROUNDS) % 2, -1, 1)
    return np.log1p(noise.step * np.round(np.expm1(found) / noise.step).clip(-0.9 / noise.step))


def launches(
    generator: np.random.Generator, duets: int, count: int, noise: Noise, ratio: float = 1.0
) -> np.ndarray:
    """Log ratios, one row per duet, one column per launch."""
    if not noise.of_round:
        return _of_launches(generator, duets, count, noise, ratio)
    return np.median(rounds(generator, duets, count, noise, ratio), axis=2)


def _of_launches(generator, duets, count, noise, ratio):
    return np.log(ratio) + noise.of_launch * generator.standard_t(4, size=(duets, count)) / np.sqrt(2)


def _batches(trials: int):
    return [min(BATCH, trials - start) for start in range(0, trials, BATCH)]


def said(generator, trials, count, noise, ratio=1.0, within=0.05):
    """How many duets of up to ``count`` launches, looked at after each, get a word of a difference at some
    look, and how many *the same*."""
    differs = same = 0
    for duets in _batches(trials):
        p, p_same = stopping.sequential(launches(generator, duets, count, noise, ratio), within)
        differs += int((p <= ALPHA).sum())
        same += int((p_same <= ALPHA).sum())
    return differs, same


def _differs(count, noise, ratio=1.0):
    return lambda generator, trials: said(generator, trials, count, noise, ratio)[0]


def _same(count, noise, ratio=1.0, within=0.05):
    return lambda generator, trials: said(generator, trials, count, noise, ratio, within)[1]


def _any_of_the_others(generator, trials):
    """Duets of 15 launches with a false word among nine measures besides the primary, which go together by
    half."""
    wrong = 0
    for duets in _batches(trials):
        shared = launches(generator, duets, looks.HORIZON, GET_P50)
        ps = np.array(
            [
                stopping.sequential(
                    (shared + launches(generator, duets, looks.HORIZON, noise)) / np.sqrt(2), 0.05
                )[0]
                for noise in (GET_P50, PUT_P50, GET_CPU, PUT_CPU, P99, GET_P50, PUT_P50, GET_CPU, P99)
            ]
        )
        wrong += sum((holm(column) <= ALPHA).any() for column in ps.T)
    return wrong


SIMULATIONS = [
    *(
        Simulation(
            "duet",
            f"a word where nothing differs, a look after each of {count} launches: {name}",
            _differs(count, noise),
            20_000 if count < 30 else 8_000,
            500,
            at_most=0.05,
        )
        for name, noise, count in (
            *(
                (name, noise, count)
                for count in FEW
                for name, noise in (("p50 of PUT", PUT_P50), ("CPU", PUT_CPU))
            ),
            ("p50 of GET", GET_P50, 15),
            ("p50 of PUT", PUT_P50, 15),
            ("CPU", PUT_CPU, 15),
            ("p99", P99, 15),
            ("p50 in whole microseconds", WHOLE_MICROSECONDS, 15),
            ("p50 of GET", GET_P50, looks.LAST_LOOK),
        )
    ),
    Simulation(
        "duet",
        "a false word among nine measures besides the primary, 15 launches",
        _any_of_the_others,
        4000,
        200,
        at_most=0.05,
    ),
    *(
        Simulation(
            "duet",
            f"the same within 5 % said of a true difference of 5 %, 15 launches: {name}",
            _same(15, noise, 1.05),
            20_000,
            500,
            at_most=0.05,
        )
        for name, noise in (("p50 of GET", GET_P50), ("p50 of PUT", PUT_P50), ("CPU", PUT_CPU))
    ),
    *(
        Simulation(
            "duet",
            f"5 % found within {count} launches: {name}",
            _differs(count, noise, 1.05),
            4000,
            200,
            at_least=goal,
        )
        for count, goal in POWER
        for name, noise in (
            ("p50 of GET", GET_P50),
            ("p50 of PUT", PUT_P50),
            ("CPU of GET", GET_CPU),
            ("CPU of PUT", PUT_CPU),
        )
    ),
    *(
        Simulation(
            "duet",
            f"3 % found within 15 launches: {name}",
            _differs(15, noise, 1.03),
            4000,
            200,
            at_least=0.8,
        )
        for name, noise in (("p50 of GET", GET_P50), ("CPU of GET", GET_CPU))
    ),
    *(
        Simulation(
            "duet",
            f"the same within 5 % said where nothing differs, 15 launches: {name}",
            _same(15, noise),
            4000,
            200,
            at_least=0.9,
        )
        for name, noise in (("p50 of GET", GET_P50), ("CPU of GET", GET_CPU))
    ),
    Simulation(
        "duet", "p99 of 2 × found within 15 launches", _differs(15, P99, 2.0), 4000, 200, at_least=0.8
    ),
]
