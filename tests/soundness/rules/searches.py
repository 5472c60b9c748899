"""Searches for the stable rate: how often is the answer an answer, and does it hold the knee?

The service: each trial's limit is drawn around the knee, and is lower for a while after an overload. Both may
be as the posterior takes them (normal; lower by 20 %, half of that after the next trial that is held, and so
on: one of ``knee.MEMORIES``), or otherwise: heavy tails, a memory that is none of these, misses that have
nothing to do with the rate, a knee that moves meanwhile. The knee is drawn within a factor of 1.35 of
11 250/s.

An answer is counted when it is precise, or bounded on both sides, and holds the knee. An empty one holds
nothing. Where the knee may lie beyond the highest rate allowed, no answer can be bounded there: it must have
a rate that is surely held.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from simulation import Simulation

from kvstudy.plan.objective import Answer, Objective, Search
from kvstudy.plan.search import Found, search_stable_rate

KNEE_RPS = 11_250.0
SIZES = {
    "": Search(method="bisect", objective=Objective(mean="1ms"), lowest_rate=500, highest_rate=100_000),
    # of report-1 and report-4, presets quick and reference
    "to 30 % in 12 trials": Search(
        method="bisect",
        objective=Objective(mean="1ms"),
        lowest_rate=4000,
        highest_rate=48_000,
        precision=0.3,
        trials_max=12,
    ),
    "to 10 % in 30 trials": Search(
        method="bisect",
        objective=Objective(mean="1ms"),
        lowest_rate=1000,
        highest_rate=60_000,
        precision=0.1,
        trials_max=30,
    ),
}
AT_THE_TOP = SIZES[""].model_copy(update={"highest_rate": KNEE_RPS})


@dataclass(frozen=True)
class Service:
    """``noise``: relative spread of a trial's limit, for heavy tails the scale of a t distribution;
    ``overload``: by how much an overload lowers it, of which the share ``fades_to`` is left after each trial
    that is held; ``stray``: the share of trials that miss for no reason; ``wanders``, ``sinks``: the knee, by
    so much a trial."""

    noise: float
    heavy: bool = False
    overload: float = 0.0
    fades_to: float = 0.5
    stray: float = 0.0
    wanders: float = 0.0
    sinks: float = 0.0


class Trials:
    """``knee_rps``: that of the next trial."""

    def __init__(self, service: Service, generator: np.random.Generator, knee_rps: float):
        self._service, self._generator, self.knee_rps, self._lowered = service, generator, knee_rps, 0.0

    def measure(self, rate_rps: float, _purpose: str) -> tuple[Answer, str]:
        service, draw = self._service, self._generator
        by = draw.standard_t(3) if service.heavy else draw.standard_normal()
        over = rate_rps > self.knee_rps * np.exp(service.noise * by) * (1 - self._lowered)
        self._lowered = service.overload if over else self._lowered * service.fades_to
        missed = over or draw.random() < service.stray
        self.knee_rps *= np.exp(service.wanders * draw.standard_normal() - service.sinks)
        return (Answer.MISSED if missed else Answer.HELD), ""


def is_answer(found: Found) -> bool:
    return found.precise or None not in (found.held_rps, found.missed_rps)


def has_a_held_rate(found: Found) -> bool:
    return found.held_rps is not None


def holds(found: Found, knee_rps: float) -> bool:
    return (found.held_rps or 0) <= knee_rps <= (found.missed_rps or np.inf)


def answers(
    asked: Search,
    service: Service,
    around: float,
    answered: Callable[[Found], bool],
    generator: np.random.Generator,
    trials: int,
) -> list[tuple[bool, bool]]:
    """Of each search whether it has an answer, and whether what it says holds the knee of its last trial."""
    found = []
    for _ in range(trials):
        made = Trials(service, generator, KNEE_RPS * np.exp(generator.uniform(-around, around)))
        said = search_stable_rate(asked, made.measure)
        found.append((answered(said), holds(said, made.knee_rps)))
    return found


def _held(*of, generator: np.random.Generator, trials: int) -> int:
    return sum(answered and held for answered, held in answers(*of, generator, trials))


def _simulation(
    told: str,
    service: Service,
    asked: Search = SIZES[""],
    method: str = "bisect",
    around: float = 0.3,
    limit: bool = False,
) -> Simulation:
    asked = asked.model_copy(update={"method": method})
    at_the_top = asked.highest_rate == KNEE_RPS
    count = partial(_held, asked, service, around, has_a_held_rate if at_the_top else is_answer)
    what = "a rate is surely held and the interval" if at_the_top else "there is an answer and it"
    return Simulation(
        rule=f"search ({method})",
        counted=f"{what} holds the knee, {told}",
        count=lambda generator, trials: count(generator=generator, trials=trials),
        trials=300,
        trials_short=12,
        at_least=0.9,
        limit=limit,
    )


NOISES = (0.03, 0.1)
REMEMBERED = {"overload": 0.2, "fades_to": 0.5}
# None of what the posterior knows: its memories are gone after one trial, or halve with each.
OTHER_MEMORY = {"overload": 0.15, "fades_to": 0.8}

SIMULATIONS = [
    *(
        _simulation(
            f"{noise:.0%} noise, {'an overload is remembered' if memory else 'no memory'}",
            Service(noise, **memory),
            method=method,
        )
        for method in ("bisect", "mlr")
        for noise in NOISES
        for memory in ({}, REMEMBERED)
    ),
    *(
        _simulation(
            f"{noise:.0%} noise, at the highest rate allowed", Service(noise), AT_THE_TOP, around=0.03
        )
        for noise in NOISES
    ),
    *(
        _simulation(f"{noise:.0%} noise, {told}", replace(service, noise=noise), limit=limit)
        for noise in NOISES
        for told, service, limit in (
            ("heavy tails (t3)", Service(0, heavy=True), False),
            ("15 % remembered, of which 80 % after each trial", Service(0, **OTHER_MEMORY), True),
            ("3 % of trials miss for no reason", Service(0, stray=0.03), False),
        )
    ),
    *(
        _simulation(f"{size}, {noise:.0%} noise, {told}", Service(noise, **memory), asked)
        for size, asked in SIZES.items()
        if size
        for noise in NOISES
        for told, memory in (("no memory", {}), ("an overload is remembered", REMEMBERED))
    ),
    _simulation("3% noise, the knee wanders by 1 % a trial", Service(0.03, wanders=0.01), limit=True),
    _simulation("3% noise, the knee sinks by 0.5 % a trial", Service(0.03, sinks=0.005), limit=True),
]
