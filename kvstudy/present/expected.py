"""Whether what a page expected came true, as sentences; every number and word is computed from the runs on
the page.

expected.neighbouring_rates(tables)      03: close together up to the saturation point
expected.mostly_undecided(compared)      06: most changes move a ratio by no more than repeats differ
"""

from itertools import pairwise

import numpy as np
import pandas as pd
from IPython.display import Markdown

from kvstudy.analyse.comparison.intervals import CONFIDENCE
from kvstudy.analyse.comparison.outcomes import allowed
from kvstudy.analyse.comparison.words import CANNOT_TELL, DIFFERENT, FASTER, MIN_RUNS, SAME, SLOWER
from kvstudy.analyse.configuration import comparisons
from kvstudy.analyse.rates import held_rates
from kvstudy.analyse.tables import Tables
from kvstudy.present import words

TOGETHER = (
    2.0  # two latencies lie close together when their ratio, with its whole interval, is within this factor
)
_TITLE = "**Against the Expectation:**"


def neighbouring_rates(tables: Tables) -> Markdown:
    """Of every two neighbouring rates that were held, all else equal: does p99 lie within TOGETHER? And was
    any rate past a saturation point?

    Judged by the intervals, all of them together at 95 %: no word is asked of a family. A rate at which the
    service made a larger share of the runs invalid is judged by its survivors, so nothing favourable is said
    of it (``comparison.outcomes``)."""
    pairs = _pairs(tables)
    pairs = _pairs(tables, 1 - (1 - CONFIDENCE) / len(pairs)) if len(pairs) > 1 else pairs
    if pairs.empty:
        return Markdown(
            f"{_TITLE} no two neighbouring rates have valid runs that are otherwise alike, so nothing "
            f"can be told. {_past(tables)}"
        )
    sure = pairs[["runs_before", "runs_after"]].min(axis=1) >= MIN_RUNS
    close = sure & (pairs["low"] >= 1 / TOGETHER) & (pairs["high"] <= TOGETHER) & _may_be(pairs, SAME)
    apart = sure & (
        ((pairs["low"] > TOGETHER) & _may_be(pairs, SLOWER))
        | ((pairs["high"] < 1 / TOGETHER) & _may_be(pairs, FASTER))
    )
    verdict = (
        "it did not hold"
        if apart.any()
        else "it held, as far as it was tested"
        if close.all()
        else CANNOT_TELL
    )
    sentence = (
        f"{_TITLE} {verdict}. Of {words.counted(len(pairs), 'pair')} of neighbouring rates that were "
        f"held, all else equal, {close.sum()} lie close together at p99 "
        f"(within a factor of {TOGETHER:g}, the whole interval), {apart.sum()} further apart; of "
        f"{(~close & ~apart).sum()} our runs cannot tell."
    )
    if apart.any():
        ratios = np.log(pairs.loc[apart, "ratio"]).abs()
        row = pairs.loc[ratios.idxmax()]
        sentence += (
            f" Furthest apart: {row['workload']}, {words.value('connections', row['connections'])}, "
            f"p99 {words.latency(row['before'])} at {words.rate(row['one'])} and "
            f"{words.latency(row['after'])} at {words.rate(row['other'])}, ratio "
            f"{words.times(row['ratio'])}{words.interval(row['low'], row['high'], words.times)}."
        )
    return Markdown(f"{sentence} {_past(tables)}")


def _pairs(tables: Tables, confidence: float = CONFIDENCE) -> pd.DataFrame:
    """p99 of every two neighbouring rates that have valid runs, of the whole tables: what the service made
    invalid counts."""
    rates = sorted(tables.believed().runs["offered_rate_rps"].dropna().unique())
    parts = [
        comparisons(tables, "offered_rate_rps", low, high, (99.0,), share=None, confidence=confidence).assign(
            one=low, other=high
        )
        for low, high in pairwise(rates)
    ]
    pairs = (
        pd.concat([part for part in parts if len(part)], ignore_index=True)
        if any(map(len, parts))
        else pd.DataFrame(columns=["measure"])
    )
    return pairs[pairs["measure"] == words.percentile(99)]


def _may_be(pairs: pd.DataFrame, word: str) -> pd.Series:
    found = [
        allowed(word, row.invalid_before, row.of_before, row.invalid_after, row.of_after) == word
        for row in pairs.itertuples()
    ]
    return pd.Series(found, index=pairs.index, dtype=bool)


def mostly_undecided(compared: pd.DataFrame) -> Markdown:
    """Of the comparisons with enough runs a side: are fewer than half decided?"""
    enough = (
        compared[compared[["runs_before", "runs_after"]].min(axis=1) >= MIN_RUNS]
        if len(compared)
        else compared
    )
    if enough.empty:
        return Markdown(f"{_TITLE} no comparison has {MIN_RUNS} runs a side, so none could be decided.")
    decided = int(enough["word"].isin(DIFFERENT).sum())
    verdict = (
        "it held: most changes moved no ratio by more than the repeats differ"
        if 2 * decided < len(enough)
        else "it did not hold: half of the changes or more moved a ratio by more than the repeats differ"
    )
    return Markdown(
        f"{_TITLE} {verdict}. Of {words.counted(len(enough), 'comparison')} with {MIN_RUNS} runs a "
        f"side or more, at every rate that was measured, {decided} {'is' if decided == 1 else 'are'} "
        "decided."
    )


def _past(tables: Tables) -> str:
    found = held_rates(tables)
    lost = int(found["saturation_rps"].notna().sum())
    if not lost:
        return "No offered rate was past a saturation point, so what happens there was not tested."
    return (
        f"{lost} of {words.counted(len(found), 'combination')} of workload, connections and options "
        "met a rate that they did not hold: those runs are grey and in no median, "
        "so that what happens there can be seen, but is no claim."
    )
