"""The highest rate that keeps an objective: which rate to try next, and what the answers prove. Starts nothing itself.

    bisect   halves [held, missed] as report 1 does, until it is narrower than ``precision``
    mlr      MLRsearch (RFC draft of the IETF's benchmarking group, library of FD.io): short trials first, repeats near the edge, a
             rate counts as held while at most half of its trials miss, so that one disturbed trial does not decide

A trial has one of three answers. ``HELD`` and ``MISSED`` speak about the service. ``UNKNOWN`` says that the trial itself failed (the
generator was saturated or late, a foreign process took the cores): it proves nothing, is repeated, and never counts as missed.

What a search returns is confirmed: the rate it found is measured again ``confirmations`` times on a fresh service, and all of them
have to hold; else the next lower candidate is confirmed. The result is [highest confirmed, lowest refused]: rates are refused by
trials, not by extrapolation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from kvstudy.errors import KvstudyError
from kvstudy.plan.objective import Answer, Search

# A trial that says nothing is repeated so often; then the machine is not fit for the question.
UNKNOWN_IN_A_ROW_MAX = 3
# MLRsearch: a rate is decided by so many trials near the edge; an odd number, so that half of them is never a tie.
MLR_TRIALS_PER_RATE = 3
MLR_EXCEED_RATIO = 0.5


@dataclass(frozen=True)
class Trial:
    """``purpose``: search or confirm; ``note``: what was observed, for the table of trials."""

    rate_rps: float
    answer: Answer
    purpose: str = "search"
    note: str = ""


@dataclass
class Found:
    """``highest_confirmed_rps``: None when no rate was confirmed; ``lowest_refused_rps``: None when the highest rate allowed was held.

    ``complete``: False when the budget of trials ended the search before its precision was reached.
    """

    highest_confirmed_rps: float | None = None
    lowest_refused_rps: float | None = None
    complete: bool = True
    trials: list[Trial] = field(default_factory=list)

    def interval(self) -> str:
        low = "nothing confirmed" if self.highest_confirmed_rps is None else f"{self.highest_confirmed_rps:.0f}/s confirmed"
        high = "no rate refused" if self.lowest_refused_rps is None else f"{self.lowest_refused_rps:.0f}/s refused"
        return f"[{low}, {high}]" + ("" if self.complete else ", not narrowed down: out of trials")


def found_in(trials: list[Trial], confirmations: int) -> Found:
    """The same interval, from the sealed trials of a search, in any order: what a page shows needs no file of its own."""
    found = Found(trials=trials)
    missed = {trial.rate_rps for trial in trials if trial.answer is Answer.MISSED and trial.purpose == "confirm"}
    confirmed = [rate for rate in {trial.rate_rps for trial in trials} - missed
                 if sum(t.rate_rps == rate and t.purpose == "confirm" and t.answer is Answer.HELD for t in trials) >= confirmations]
    found.highest_confirmed_rps = max(confirmed, default=None)
    floor = found.highest_confirmed_rps or 0.0
    found.lowest_refused_rps = min((t.rate_rps for t in trials if t.answer is Answer.MISSED and t.rate_rps > floor), default=None)
    found.complete = found.highest_confirmed_rps is not None
    return found


def expected_trials(search: Search) -> int:
    """About as many trials as one search takes: the halvings of its interval, both ends, the confirmations."""
    halvings = math.ceil(math.log2((search.highest_rate - search.lowest_rate) / (search.lowest_rate * search.precision)))
    near_the_edge = MLR_TRIALS_PER_RATE if search.method == "mlr" else 1
    return min(search.trials_max, halvings * near_the_edge + 2) + search.confirmations


Measure = Callable[[float, str], tuple[Answer, str]]


class _OutOfTrials(Exception):
    pass


def search_stable_rate(search: Search, measure: Measure) -> Found:
    """``measure(rate_rps, purpose)`` runs one trial and says its answer and a note. KvstudyError after too many unknown ones."""
    return _Searcher(search, measure).run()


class _Searcher:
    def __init__(self, search: Search, measure: Measure):
        self._search = search
        self._measure = measure
        self._found = Found()

    def run(self) -> Found:
        try:
            candidate = self._bisect() if self._search.method == "bisect" else self._mlr()
            self._confirm(candidate)
        except _OutOfTrials:
            self._found.complete = False
        return self._found

    def _try(self, rate_rps: float, purpose: str = "search") -> bool:
        """True when held. Unknown trials are repeated and count against the budget like any other."""
        for _ in range(UNKNOWN_IN_A_ROW_MAX):
            if len(self._found.trials) >= self._search.trials_max + (self._search.confirmations if purpose == "confirm" else 0):
                raise _OutOfTrials
            answer, note = self._measure(rate_rps, purpose)
            self._found.trials.append(Trial(rate_rps, answer, purpose, note))
            if answer is not Answer.UNKNOWN:
                return answer is Answer.HELD
        raise KvstudyError(f"search cannot go on: {UNKNOWN_IN_A_ROW_MAX} trials in a row say nothing: rate={rate_rps:.0f}/s: {note}",
                           "the generator or the machine is the limit here: quieten the machine, or lower highest_rate")

    def _bisect(self) -> float | None:
        """The highest rate that was held once; None when the lowest was not."""
        held, missed = self._search.lowest_rate, self._search.highest_rate
        if self._try(missed):
            return missed
        self._refused(missed)
        if not self._try(held):
            self._refused(held)
            return None
        while (missed - held) / held > self._search.precision:
            middle = (held + missed) / 2
            if self._try(middle):
                held = middle
            else:
                missed = middle
                self._refused(middle)
        return held

    def _mlr(self) -> float | None:
        """The lower bound that MLRsearch finds relevant; None when the lowest rate is not held."""
        from MLRsearch import Config, MultipleLossRatioSearch, SearchGoal
        from MLRsearch.trial_measurement import AbstractMeasurer, MeasurementResult
        search, attempt = self._search, self._try

        class Measurer(AbstractMeasurer):
            def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
                held = attempt(intended_load)
                # Held or not is what is asked, not how much is lost: the objective is a latency. A tenth lost pulls its first guess down.
                return MeasurementResult(intended_duration, intended_load, offered_count=10, loss_count=0 if held else 1)

        goal = SearchGoal(loss_ratio=0.0, exceed_ratio=MLR_EXCEED_RATIO, relative_width=search.precision, initial_trial_duration=1.0,
                          final_trial_duration=1.0, duration_sum=float(MLR_TRIALS_PER_RATE), preceding_targets=1, fail_fast=False)
        # Time is counted in trials here, each of "duration" 1: their real length and the budget are ours.
        config = Config(goals=[goal], min_load=search.lowest_rate, max_load=search.highest_rate, search_duration_max=7 * 86400.0,
                        warmup_duration=0.0)
        result = MultipleLossRatioSearch(config=config).search(Measurer())[goal]
        if result.relevant_upper_bound is not None:
            self._refused(float(result.relevant_upper_bound))
        return None if result.relevant_lower_bound is None else float(result.relevant_lower_bound)

    def _confirm(self, candidate: float | None) -> None:
        """Measures the candidate again; one miss refuses it, and a rate lower by the precision becomes the candidate."""
        while candidate is not None and self._found.highest_confirmed_rps is None:
            if all(self._try(candidate, "confirm") for _ in range(self._search.confirmations)):
                self._found.highest_confirmed_rps = candidate
                return
            self._refused(candidate)
            lower = candidate * (1 - self._search.precision)
            candidate = lower if lower >= self._search.lowest_rate else None

    def _refused(self, rate_rps: float) -> None:
        lowest = self._found.lowest_refused_rps
        self._found.lowest_refused_rps = rate_rps if lowest is None else min(lowest, rate_rps)
