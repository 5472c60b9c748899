"""How much load is too much, in sentences: where searches found the knee, which rates chosen beforehand were
held, and whether latency gave a warning (``analyse.capacity``).

    capacity.answer(tables, trials)                      the answer, and a line for each search
    capacity.expectation(tables, trials, percentile)     does latency bend before the achieved rate does?

``tables``: runs of any experiment; ``trials``: those of searches for a stable rate.
"""

import json
import math
from collections import Counter
from dataclasses import dataclass

import pandas as pd

from kvstudy.analyse import capacity, percentile_grid
from kvstudy.analyse.capacity import (
    ALONE,
    BEND,
    HELD,
    HELD_IN_PART,
    LATE,
    NEITHER,
    NOT_HELD,
    UNKNOWN,
    UNSURE,
    WARNED,
    RatesChosen,
    Search,
)
from kvstudy.analyse.comparison.words import CANNOT_TELL, TOO_FEW
from kvstudy.analyse.configuration import COMBINATION
from kvstudy.analyse.tables import Tables
from kvstudy.plan.objective import Answer
from kvstudy.plan.search import Found
from kvstudy.present import series, words
from kvstudy.present.markdown import Markdown

_COMBINATIONS = "of workload, connections and options"
_VERDICTS = {
    HELD: "it held, as far as it was tested",
    HELD_IN_PART: "it held in part",
    NOT_HELD: "it did not hold",
    CANNOT_TELL: CANNOT_TELL,
}


@dataclass(frozen=True)
class NamedSearch:
    """A search with its ``name``: what tells it from the others; ``objective``: in words."""

    name: str
    objective: str
    search: Search

    @property
    def trials(self) -> pd.DataFrame:
        return self.search.trials

    @property
    def knee(self) -> Found:
        return self.search.knee

    def _at_most(self, held_rps: float) -> str:
        """What was seen at the highest rate, of which few trials are not sure."""
        highest = self.trials[self.trials["offered_rate_rps"] == self.trials["offered_rate_rps"].max()]
        rate = highest["offered_rate_rps"].iloc[0]
        answers = highest.loc[highest["answer"] != Answer.UNKNOWN.value, "answer"]
        if answers.empty or rate <= held_rps:
            return ""
        count = f"{(answers == Answer.HELD.value).sum()} of {words.counted(len(answers), 'trial')}"
        return f", since {words.rate(rate)}, the highest that was tried, was held in {count}"

    def sentence(self) -> str:
        held, missed = self.knee.held_rps, self.knee.missed_rps
        basis = f"{self.objective}; {words.counted(self.search.decided_trials, 'run')}"
        if held is not None and missed is not None:
            return (
                f"{words.about_rate(held)} is held more often than not, {words.about_rate(missed)} is "
                f"missed more often than not ({basis})"
            )
        if held is not None:
            return (
                f"{words.about_rate(held)} is held more often than not ({basis}){self._at_most(held)}; "
                "no rate that it tried is surely too much"
            )
        if missed is not None:
            return (
                f"{words.about_rate(missed)} is missed more often than not ({basis}); no rate that it "
                "tried is surely held"
            )
        return (
            f"cannot tell: {words.counted(len(self.trials), 'trial')} are too few to say of any rate that "
            "it is held or missed"
        )


def searches(trials: Tables) -> list[NamedSearch]:
    """What ``trials`` are of: a search for each line of runs and each objective, by name."""
    found = capacity.searches(trials)
    if not found:
        return []
    names = series.names(pd.concat([one.trials for one in found]), said=("experiment", "workload"))
    named = [
        NamedSearch(
            f"{one.experiment}, {one.workload}, {names[one.trials.index[0]]}", _objective(one.goal), one
        )
        for one in found
    ]
    return sorted(named, key=lambda one: (one.name, json.dumps(one.search.goal, sort_keys=True)))


def answer(tables: Tables, trials: Tables) -> Markdown:
    """The answer: what the searches and the rates chosen beforehand say, then a line for each search."""
    searched = searches(trials)
    parts = [part for part in (_of_searches(searched), _of_rates(tables)) if part]
    if not parts:
        return Markdown(
            "**Found:** cannot tell: there is no search for a stable rate and no run at an offered rate."
        )
    lines = [f"- {one.name}: {one.sentence()}." for one in searched]
    return Markdown("\n".join([f"**Found:** {'; '.join(parts)}.", *([""] if lines else []), *lines]))


def expectation(tables: Tables, trials: Tables, percentile: float = 99.0) -> Markdown:
    """Whether latency bent at rates that were still achieved, counted over searches and over the combinations
    of ``tables``."""
    of_searches = Counter(search.warning for search in capacity.searches(trials))
    of_rates = Counter(capacity.warnings_of_rates(tables, percentile))
    verdict = _VERDICTS[capacity.expectation(of_searches + of_rates)]
    texts = {
        WARNED: "missed a rate that was achieved: latency broke the objective first",
        LATE: "missed a rate that was not achieved either",
        NEITHER: "met no rate that was too much",
        UNSURE: "decided nothing",
    }
    sentences = [_counts(of_searches, texts, "search", "searches")]
    over = f"over {BEND:g} times that at the lowest rate"
    texts = {
        WARNED: f"had {words.percentile(percentile)} {over} at a rate that was held",
        LATE: f"met a rate that was not held, with no {words.percentile(percentile)} {over} before it",
        NEITHER: f"held every rate, with no {words.percentile(percentile)} {over}",
        ALONE: "met one rate only",
        UNKNOWN: f"had no {words.percentile(percentile)}",
        UNSURE: "had too few valid runs, or runs that differed too much, to tell",
    }
    sentences.append(_counts(of_rates, texts, "combination", "combinations", f" {_COMBINATIONS}"))
    if of_rates[UNKNOWN]:
        sentences.append(percentile_grid.why_not(tables.percentiles["percentile"], percentile))
    return Markdown(" ".join([f"**Against the Expectation:** {verdict}.", *filter(None, sentences)]))


def _counts(counted: Counter, texts: dict[str, str], one: str, several: str, of_what: str = "") -> str:
    if counted.total() == 1:
        return f"The only {one}{of_what} {texts[next(iter(counted))]}."
    parts = [f"{counted[kind]} {text}" for kind, text in texts.items() if counted[kind]]
    if len(parts) == 1:
        return f"All {parts[0].replace(' ', f' {several}{of_what} ', 1)}."
    return f"Of {counted.total()} {several}{of_what} {'; '.join(parts)}." if parts else ""


def _objective(goal: dict) -> str:
    """``{"mean": 0.001}`` → "a mean of at most 1 ms"."""
    limits = [
        f"{'a mean' if name == 'mean' else name.replace('p999', 'p99.9')} of at most {goal[name] * 1e3:g} ms"
        for name in ("mean", "p50", "p99", "p999")
        if goal.get(name)
    ]
    return words.several(limits) if limits else "its objective"


def _of_searches(searched: list[NamedSearch]) -> str:
    if not searched:
        return ""
    if len(searched) == 1:
        return "one search for the highest rate that keeps an objective answers below"
    ends = Counter((one.knee.held_rps is not None, one.knee.missed_rps is not None) for one in searched)
    texts = {
        (True, True): "found the knee between two rates",
        (True, False): "met no rate that is surely too much",
        (False, True): "found every rate too much",
        (False, False): "decided nothing",
    }
    parts = [f"{ends[kind]} {text}" for kind, text in texts.items() if ends[kind]]
    return f"of {len(searched)} searches for the highest rate that keeps an objective {', '.join(parts)}"


def _of_rates(tables: Tables) -> str:
    chosen = capacity.rates_chosen(tables)
    if chosen is None:
        return ""
    experiments = sorted(chosen.runs["experiment"].unique())
    named = [f"`{name}`" for name in experiments]
    whose = "of the rates chosen beforehand in " + (
        words.several(named) if len(named) < 4 else f"{len(named)} experiments"
    )
    if chosen.points.empty:
        why = words.several([f"{check} ({count})" for check, count in chosen.failed])
        return f"{whose} nothing can be told: no run shows whether its rate was held; checks failed: {why}"
    total, few = len(chosen.points), TOO_FEW.replace(" a side", " at a rate")
    if chosen.undecided == total:
        return f"{whose} {CANNOT_TELL} which are held: {few} in {_each(total, total)}"
    unsure = f"; {few}, too few to be sure, are in {chosen.undecided} of {total}" if chosen.undecided else ""
    unjudged = (
        f" ({chosen.uninformative} of {chosen.tried} cannot be judged: none of their runs shows it)"
        if chosen.uninformative
        else ""
    )
    if chosen.lost.empty:
        return (
            f"{whose}, at most {words.rate(chosen.highest_held_rps)}, none was too much{unjudged}: "
            f"{_each(total - chosen.undecided, total)} "
            f"held what it was offered, and what saturates it lies above{unsure}"
        )
    return f"{whose} {_limits(chosen, unjudged)}{unsure}"


def _each(combinations: int, total: int) -> str:
    """``combinations`` of ``total``."""
    if combinations == 1:
        return f"{'the only' if total == 1 else 'one'} combination {_COMBINATIONS}"
    return f"each of {combinations} combinations {_COMBINATIONS}"


def _limits(chosen: RatesChosen, unjudged: str) -> str:
    """What was held, and the lowest rate that was not, by whom."""
    lost, total = chosen.lost, len(chosen.points)
    best = (
        "none was held"
        if math.isnan(chosen.highest_held_rps)
        else f"the highest that was held is {words.rate(chosen.highest_held_rps)}"
    )
    names = dict(zip(chosen.runs[COMBINATION], series.names(chosen.runs), strict=True))
    first = lost.iloc[0]
    return (
        f"{best}{unjudged}; {len(lost)} of {words.counted(total, 'combination')} {_COMBINATIONS} met one "
        f"that is too much, the lowest {words.rate(first['saturation_rps'])} by {names[first[COMBINATION]]}"
    )
