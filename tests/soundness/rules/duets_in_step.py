"""Duets whose slices are in step with something of the machine: stops every 1.03 s beside slices of 0.67 s,
or every 2.68 s, which is the time of A B B A. They befall one side and spare the other for as long as a part
lasts, so single launches differ, though nothing does.

What keeps that from being a word is the draw of who goes first: of two launches one is the other way round,
and the same happens to the other side. The stops may begin anywhere, or at the same moment of every launch,
as what begins with the launch does. ``draws_first=False`` shows what would be said without.
"""

from dataclasses import dataclass

import numpy as np
from simulation import Simulation

from kvstudy.analyse.comparison import looks, stopping
from kvstudy.analyse.comparison.words import ALPHA
from kvstudy.plan.comparison import SIDES, turned


@dataclass(frozen=True)
class Stops:
    """Of the machine, from anywhere or from the same moment of every launch."""

    every_s: float
    length_s: float
    same_phase: bool = False


NEARLY = Stops(1.03, 0.007)
EXACTLY = Stops(2.68, 0.02, same_phase=True)
SLICE_S, NOT_COUNTED_S, GAP_S = 0.65, 0.15, 0.02
DRAWN_GAP_S = (0.02, 0.6)  # a gap of drawn length: at most half of what comes back
ROUNDS, LAUNCHES = 12, looks.HORIZON
USUAL_US, USUAL_P99_US, OF_SLICE, OF_LAUNCH = 20.0, 60.0, 0.08, 0.012


def _starts_s(generator: np.random.Generator, duets: int, drawn_gaps: bool) -> np.ndarray:
    """Of the counted part of each slice: duets × launches × slices."""
    low, high = DRAWN_GAP_S if drawn_gaps else (GAP_S, GAP_S)
    gaps = generator.uniform(low, high, (duets, LAUNCHES, 2 * ROUNDS))
    ends = np.cumsum(SLICE_S + gaps, axis=2)
    return ends - gaps - SLICE_S + NOT_COUNTED_S


def _stopped_share(starts_s: np.ndarray, phase_s: np.ndarray, stops: Stops) -> np.ndarray:
    """Of each counted part the share in which the machine stands still."""

    def until(time_s: np.ndarray) -> np.ndarray:
        whole, rest = np.divmod(time_s, stops.every_s)
        return whole * stops.length_s + np.minimum(rest, stops.length_s)

    counted_s = SLICE_S - NOT_COUNTED_S
    begin = starts_s + phase_s[..., None]
    return (until(begin + counted_s) - until(begin)) / counted_s


def launches(
    generator: np.random.Generator,
    duets: int,
    stops: Stops,
    drawn_gaps: bool = False,
    draws_first: bool = True,
) -> dict[str, np.ndarray]:
    """Log ratios of b to a, a row per duet and a column per launch, of the mean and of p99."""
    phases = generator.uniform(0, stops.every_s, (duets, 1 if stops.same_phase else LAUNCHES))
    phases = np.broadcast_to(phases, (duets, LAUNCHES))
    stopped = _stopped_share(_starts_s(generator, duets, drawn_gaps), phases, stops)
    firsts = [
        [
            turned("slice get rate", duet, number)[0] if draws_first else SIDES[0]
            for number in range(1, LAUNCHES + 1)
        ]
        for duet in generator.integers(1 << 32, size=duets)
    ]
    noise = np.exp(OF_SLICE * generator.standard_t(3, stopped.shape) / np.sqrt(3))
    means_us = noise * USUAL_US + stopped * stops.length_s * 1e6 / 2
    # A B B A …: as a row of pairs, and in each pair as a before b.
    a_comes_second = np.arange(ROUNDS) % 2 == 1
    turned_round = a_comes_second[None, None, :] ^ (np.array(firsts) == SIDES[1])[..., None]

    def by_side(values: np.ndarray) -> np.ndarray:
        pairs = values.reshape(duets, LAUNCHES, ROUNDS, 2)
        # The first round is left out.
        return np.where(turned_round[..., None], pairs[..., ::-1], pairs)[:, :, 1:]

    own = OF_LAUNCH * generator.standard_t(4, (duets, LAUNCHES)) / np.sqrt(2)
    mean, share = by_side(means_us), by_side(stopped).mean(axis=2)
    with np.errstate(divide="ignore"):
        slow_us = np.where(share > 0.01, stops.length_s * 1e6 * (1 - 0.01 / share), 0.0)
    p99_us = np.maximum(slow_us, USUAL_P99_US * np.exp(0.1 * generator.standard_normal(share.shape)))
    return {
        "mean": own + np.median(np.log(mean[..., 1] / mean[..., 0]), axis=2),
        "p99": own + np.log(p99_us[..., 1] / p99_us[..., 0]),
    }


def said(generator: np.random.Generator, trials: int, measure: str, stops: Stops, **how) -> int:
    """How many duets get a word of a difference at some look."""
    p, _ = stopping.sequential(launches(generator, trials, stops, **how)[measure], 0.05)
    return int((p <= ALPHA).sum())


def _said(measure: str, stops: Stops, **how):
    return lambda generator, trials: said(generator, trials, measure, stops, **how)


SIMULATIONS = [
    Simulation(
        "duet in step",
        f"a word where nothing differs, {told}, {gaps}: {measure}",
        _said(measure, stops, drawn_gaps=drawn_gaps),
        4000,
        300,
        at_most=0.05,
    )
    for told, stops in (
        ("a stop every 1.03 s from anywhere", NEARLY),
        ("a stop every four slices from the same moment", EXACTLY),
    )
    for gaps, drawn_gaps in (("even gaps", False), ("drawn gaps", True))
    for measure in ("mean", "p99")
]
