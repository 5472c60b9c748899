"""The highest rate that keeps an objective: which rate to try next, and what the answers say. Starts nothing
itself.

A search has two parts. The first comes near the knee:

    bisect   halves [held, missed] as report 1 does it
    mlr      MLRsearch (RFC draft of the IETF's benchmarking group, library of FD.io), which repeats trials
             near the edge

The second measures the knee: sweeps that start below it and raise the rate trial by trial until one misses.
The low trials at a sweep's start let the service get over the overload before. Sweeps go on until the knee is
known to ``precision``, or the trials are used up.

A trial has one of three answers. ``HELD`` and ``MISSED`` are about the service. ``UNKNOWN`` says that the
trial itself failed (the generator was saturated or late, a foreign process took the cores): it says nothing,
is repeated, and never counts as missed. A service that died under the load missed its rate.

The answer is an interval that holds the knee in 95 of 100 searches (``plan/knee.py``), by the same rule here
and on the pages.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kvstudy.errors import KvstudyError
from kvstudy.plan.knee import KneePosterior
from kvstudy.plan.objective import Answer, Search

# A trial that says nothing is repeated so often; then the machine is not fit for the question.
UNKNOWN_IN_A_ROW_MAX = 3
# The first part ends when held and missed are so near to each other.
NEAR = 0.25
# A grid of rates on which the knee may not lie is laid wider by so much.
WIDER = 4
# A sweep starts so many steps below the interval, and crosses it in about so many.
STEPS_BELOW = 2
STEPS_ACROSS = 3
# MLRsearch: a rate is decided by so many trials near the edge; an odd number, so that half of them is never a
# tie.
MLR_TRIALS_PER_RATE = 3
MLR_EXCEED_RATIO = 0.5
# A rate at an end of what is allowed is beyond the knee, or below it, with so much certainty.
SURE = 0.975

Measure = Callable[[float, str], tuple[Answer, str]]


@dataclass(frozen=True)
class Trial:
    """``purpose``: "search" while coming near, then "sweep" ("confirm" in runs of before); ``note``: what was
    observed."""

    rate_rps: float
    answer: Answer
    purpose: str = "search"
    note: str = ""


@dataclass(frozen=True)
class Found:
    """What a search knows. ``held_rps``: surely held more often than not; ``missed_rps``: surely missed more
    often than not; between them lies the knee, ``knee_rps`` its median. None: no such rate among those that
    were allowed. ``precise``: the interval is as narrow as was wanted; ``why_wide``: what ended a search
    before it was, where that is known."""

    held_rps: float | None
    knee_rps: float | None
    missed_rps: float | None
    precise: bool
    trials: list[Trial]
    why_wide: str | None = field(default=None, compare=False)

    def interval(self) -> str:
        """In words, for the terminal."""
        if self.knee_rps is None:
            return "cannot tell: no trial said anything"
        why = f": {self.why_wide}" if self.why_wide else ""
        if self.held_rps is None and self.missed_rps is None:
            return f"cannot tell{why}" if why else "cannot tell: too few trials"
        low = "no rate surely held" if self.held_rps is None else f"{_in_short(self.held_rps)}/s held"
        high = "no rate missed" if self.missed_rps is None else f"{_in_short(self.missed_rps)}/s missed"
        return f"[{low}, {high}] (95 %)" + ("" if self.precise else f", not narrowed down{why}")


def _in_short(rate_rps: float) -> str:
    """Whole, or three digits of one that is small."""
    return f"{rate_rps:.0f}" if rate_rps >= 100 else f"{rate_rps:.3g}"


def found_in(trials: list[Trial], lowest_rps: float, highest_rps: float, precision: float) -> Found:
    """What ``trials`` of one search, in the order in which they were made, say about the knee."""
    spoke = _spoke(trials)
    if not spoke:
        return Found(None, None, None, False, trials)
    knee = _Posterior(lowest_rps, highest_rps).of(spoke)
    low, middle, high = knee.quantiles(1 - SURE, 0.5, SURE)
    # At an end of the rates that were allowed the other side is the prior's alone: it must not make few
    # trials sure.
    held = None if low < lowest_rps else knee.quantiles(1 - SURE, below_rps=highest_rps)[0]
    missed = None if high > highest_rps else knee.quantiles(SURE, above_rps=lowest_rps)[0]
    return Found(
        held,
        min(max(middle, lowest_rps), highest_rps),
        missed,
        _is_precise(knee, lowest_rps, highest_rps, precision),
        trials,
    )


def held_shares(
    trials: list[Trial], lowest_rps: float, highest_rps: float, rates_rps: list[float]
) -> list[tuple[float, float, float]]:
    """Of each rate (low, median, high) of the share of trials that hold it, by the posterior that
    ``found_in`` has; empty when no trial spoke."""
    spoke = _spoke(trials)
    if not spoke:
        return []
    knee = _Posterior(lowest_rps, highest_rps).of(spoke)
    return [knee.held_share(rate) for rate in rates_rps]


def expected_trials(search: Search) -> int:
    """About as many trials as one search takes: both ends, the halvings until it is near, the sweeps."""
    halvings = math.ceil(
        math.log2(math.log(search.highest_rate / search.lowest_rate) / math.log1p(_near(search)))
    )
    near_the_edge = MLR_TRIALS_PER_RATE if search.method == "mlr" else 1
    return min(
        search.trials_max, 2 + max(0, halvings) * near_the_edge + search.sweeps * (STEPS_BELOW + STEPS_ACROSS)
    )


def search_stable_rate(search: Search, measure: Measure) -> Found:
    """``measure(rate_rps, purpose)`` makes one trial and says its answer and a note. KvstudyError after too
    many unknown ones."""
    return _Searcher(search, measure).run()


def _spoke(trials: list[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.answer is not Answer.UNKNOWN]


class _Posterior:
    """Of trials that become more: where the grid stays, only the new ones are added to it."""

    def __init__(self, lowest_rps: float, highest_rps: float):
        self._lowest_rps, self._highest_rps = lowest_rps, highest_rps
        self._grids: dict[tuple[float, float], tuple[KneePosterior, int]] = {}  # and of how many trials

    def of(self, trials: list[Trial]) -> KneePosterior:
        """``trials``: those of before, and perhaps more. The grid is laid around the rates between which the
        answers change, so that it is fine where the knee may be. Where a wrong answer has led away from it,
        what is known reaches to the grid's end: the grid is then laid wider."""
        held = [trial.rate_rps for trial in trials if trial.answer is Answer.HELD]
        missed = [trial.rate_rps for trial in trials if trial.answer is Answer.MISSED]
        low, high = sorted((max(held, default=self._lowest_rps), min(missed, default=self._highest_rps)))
        low, high = low / 2, high * 2
        before, self._grids = self._grids, {}
        while True:
            low, high = max(self._lowest_rps, low), min(self._highest_rps, high)
            knee, known = before.get((low, high)) or (KneePosterior(low, high), 0)
            for trial in trials[known:]:
                knee.add(trial.rate_rps, trial.answer is Answer.HELD)
            self._grids[low, high] = knee, len(trials)
            surely_held, surely_missed = knee.interval()
            reaches_below = low > self._lowest_rps and surely_held < low
            reaches_above = high < self._highest_rps and surely_missed > high
            if not reaches_below and not reaches_above:
                return knee
            low, high = low / (WIDER if reaches_below else 1), high * (WIDER if reaches_above else 1)


def _is_precise(knee: KneePosterior, lowest_rps: float, highest_rps: float, precision: float) -> bool:
    low, high = knee.interval()
    return (
        high <= low * (1 + precision)
        or knee.probability_above(highest_rps) > SURE
        or knee.probability_above(lowest_rps) < 1 - SURE
    )


def _near(search: Search) -> float:
    return max(NEAR, search.precision)


class _OutOfTrials(Exception):
    pass


class _Searcher:
    def __init__(self, search: Search, measure: Measure):
        self._search = search
        self._measure = measure
        self._trials: list[Trial] = []

    def run(self) -> Found:
        try:
            self._come_near()
            self._sweep_until_precise()
            why_wide = f"{_in_short(self._search.lowest_rate)}/s is missed each time: lower lowest_rate"
        except _OutOfTrials:
            why_wide = "out of trials"
        search = self._search
        found = found_in(self._trials, search.lowest_rate, search.highest_rate, search.precision)
        return found if found.precise else replace(found, why_wide=why_wide)

    def _try(self, rate_rps: float, purpose: str = "search") -> bool:
        """True when held. Unknown trials are repeated and count against the budget like any other."""
        for _ in range(UNKNOWN_IN_A_ROW_MAX):
            if len(self._trials) >= self._search.trials_max:
                raise _OutOfTrials
            answer, note = self._measure(rate_rps, purpose)
            self._trials.append(Trial(rate_rps, answer, purpose, note))
            if answer is not Answer.UNKNOWN:
                return answer is Answer.HELD
        raise KvstudyError(
            f"search cannot go on: {UNKNOWN_IN_A_ROW_MAX} trials in a row say nothing: "
            f"rate={rate_rps:.0f}/s: {note}",
            "mend what it says; where generator or machine are the limit, quieten them or lower highest_rate",
        )

    def _come_near(self) -> None:
        if self._search.method == "bisect":
            self._bisect()
        else:
            self._mlr()

    def _bisect(self) -> None:
        held, missed = self._search.lowest_rate, self._search.highest_rate
        if self._try(missed) or not self._try(held):
            return
        while missed / held > 1 + _near(self._search):
            middle = (held + missed) / 2
            if self._try(middle):
                held = middle
            else:
                missed = middle

    def _mlr(self) -> None:
        from MLRsearch import Config, MultipleLossRatioSearch, SearchGoal
        from MLRsearch.trial_measurement import AbstractMeasurer, MeasurementResult

        search, attempt = self._search, self._try

        class Measurer(AbstractMeasurer):
            def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
                held = attempt(intended_load)
                # Held or not is what is asked, not how much is lost: the objective is a latency. A tenth lost
                # pulls its first guess down.
                return MeasurementResult(
                    intended_duration, intended_load, offered_count=10, loss_count=0 if held else 1
                )

        goal = SearchGoal(
            loss_ratio=0.0,
            exceed_ratio=MLR_EXCEED_RATIO,
            relative_width=_near(search),
            initial_trial_duration=1.0,
            final_trial_duration=1.0,
            duration_sum=float(MLR_TRIALS_PER_RATE),
            preceding_targets=1,
            fail_fast=False,
        )
        # Time is counted in trials here, each of "duration" 1: their real length and the budget are ours.
        config = Config(
            goals=[goal],
            min_load=search.lowest_rate,
            max_load=search.highest_rate,
            search_duration_max=7 * 86400.0,
            warmup_duration=0.0,
        )
        MultipleLossRatioSearch(config=config).search(Measurer())

    def _sweep_until_precise(self) -> None:
        """Stops by what ``found_in`` says of the same trials. A service that misses the lowest rate each time
        is asked no further: nothing below may be tried."""
        search, sweeps, in_vain = self._search, 0, 0
        known = _Posterior(search.lowest_rate, search.highest_rate)
        while in_vain < search.sweeps:
            knee = known.of(_spoke(self._trials))
            precise = _is_precise(knee, search.lowest_rate, search.highest_rate, search.precision)
            if precise and sweeps >= search.sweeps:
                return
            low, high = knee.interval()
            step = max((high / low) ** (1 / STEPS_ACROSS), 1 + search.precision / 2)
            rate = min(max(search.lowest_rate, low / step**STEPS_BELOW), search.highest_rate)
            first = rate
            while self._try(rate, "sweep") and rate < search.highest_rate:
                rate = min(search.highest_rate, rate * step)
            in_vain = in_vain + 1 if rate == first == search.lowest_rate else 0
            sweeps += 1
