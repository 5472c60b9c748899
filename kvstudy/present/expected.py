"""Whether what a page expected came true, as sentences; every number and word is computed from the runs on
the page.

expected.ruler_is_true(tables)           01: fast on an empty server, blind to no stall, no false alarm
expected.neighbouring_rates(tables)      03: close together up to the saturation point
expected.mostly_undecided(compared)      06: most changes move a ratio by no more than repeats differ
expected.published_stay_near(judged)     08: rates and latencies stay within a factor of two
expected.each_holds_and_one_does_not(tables)  10: small values are held by each, large ones not by all
expected.grows_with_the_work(tables)     11: p99 at most doubles, or grows by more than the work
"""

from collections.abc import Collection
from functools import partial

import pandas as pd

from kvstudy.analyse import neighbours, peers
from kvstudy.analyse.answers import Answer, ruler
from kvstudy.analyse.capacity import HELD, NOT_HELD
from kvstudy.analyse.claim import Claim
from kvstudy.analyse.comparison.looks import FIRST_LOOK
from kvstudy.analyse.comparison.words import CANNOT_TELL, DIFFERENT, MIN_RUNS, TOO_FEW
from kvstudy.analyse.expected_growth import Held, held_against
from kvstudy.analyse.neighbours import TOGETHER
from kvstudy.analyse.option_duets import BY_DUET
from kvstudy.analyse.rates import held_rates
from kvstudy.analyse.replication.verdicts import FACTOR, MISTAKEN, NOT_REPRODUCED, REPRODUCED, UNPROVEN
from kvstudy.analyse.tables import Tables
from kvstudy.present import growth, words
from kvstudy.present.markdown import Markdown

_TITLE = "**Against the Expectation:**"
_VERDICTS = {HELD: "it held, as far as it was tested", NOT_HELD: "it did not hold", CANNOT_TELL: CANNOT_TELL}
_NOT = {HELD: NOT_HELD, NOT_HELD: HELD, CANNOT_TELL: CANNOT_TELL}
# What 01-instrument expects: such a median of an empty server at this rate; of a stall of a second p99 is at
# least so long where it shows, and shorter where it hides.
_EMPTY_RPS, _EMPTY_P50_US, _STALLED_P99_US = 2000, 100.0, 100_000.0
# What 10-peers expects: at the first place each program holds the rate with such a median, at the second one
# of them does not hold it.
_SMALL_RPS, _SMALL_BYTES, _SMALL_P50_US = 1000, 100, 1000.0
_LARGE_RPS, _LARGE_BYTES = 4000, 100_000


def ruler_is_true(tables: Tables) -> Markdown:
    """The generator alone, a stall, and the same thing measured twice."""
    alone = [
        claim for claim in _claims(ruler.empty_server(tables)) if claim.subject.offered_rate_rps == _EMPTY_RPS
    ]
    seen = {claim.variant: claim for claim in _claims(ruler.stall(tables))}
    shows, hides = ([seen[name]] if name in seen else [] for name in (ruler.RESPONSE, ruler.CLOSED))
    twice = _claims(ruler.noise(tables))
    alarms = sum(claim.differs for claim in twice)
    enough = [HELD if min(claim.sides) >= MIN_RUNS else CANNOT_TELL for claim in twice]
    verdicts = {
        f"a server that does nothing at {words.rate(_EMPTY_RPS)}, p50 {_latencies(alone)}": _of_all(
            [_below(claim, _EMPTY_P50_US) for claim in alone]
        ),
        f"a stall of a second, p99 {_latencies(shows)} from the due time, {_latencies(hides)} in a closed "
        "loop": _of_all(
            [_NOT[_below(claim, _STALLED_P99_US)] for claim in shows]
            + [_below(claim, _STALLED_P99_US) for claim in hides]
        ),
        f"the same thing measured twice, {alarms} of {words.counted(len(twice), 'comparison')} called "
        "different": NOT_HELD if alarms else _of_all(enough),
    }
    lines = [f"- {said}: {_VERDICTS[verdict]}." for said, verdict in verdicts.items()]
    return Markdown("\n".join([_TITLE, "", *lines]))


def _claims(answer: Answer | None) -> tuple[Claim, ...]:
    return answer.claims if answer else ()


def _below(claim: Claim, limit_us: float) -> str:
    """Of the claim's whole interval."""
    if claim.interval is None:
        return CANNOT_TELL
    low, high = claim.interval
    return HELD if high < limit_us else NOT_HELD if low >= limit_us else CANNOT_TELL


def _latencies(claims: Collection[Claim]) -> str:
    return words.several([words.latency(claim.estimate) for claim in claims]) if claims else "not measured"


def neighbouring_rates(tables: Tables) -> Markdown:
    """Of every two neighbouring rates that were held, all else equal: does p99 lie within TOGETHER
    (``analyse.neighbours``)? And was any rate past a saturation point?"""
    found = neighbours.neighbouring_rates(tables)
    pairs = found.pairs
    if pairs.empty:
        return Markdown(
            f"{_TITLE} no two neighbouring rates have valid runs that are otherwise alike, so nothing "
            f"can be told. {_past(tables)}"
        )
    close, apart = int(pairs["close"].sum()), int(pairs["apart"].sum())
    sentence = (
        f"{_TITLE} {_VERDICTS[found.verdict]}. Of {words.counted(len(pairs), 'pair')} of neighbouring "
        f"rates that were held, all else equal, {close} lie close together at p99 (within a factor of "
        f"{TOGETHER:g}, the whole interval), {apart} further apart; of {len(pairs) - close - apart} our "
        "runs cannot tell."
    )
    if apart:
        row = found.furthest
        # Tables have the interval of each pair by itself.
        wider = " (wider than by itself: all pairs together at 95 %)" if len(pairs) > 1 else ""
        sentence += (
            f" Furthest apart: {row['workload']}, {words.value('connections', row['connections'])}, "
            f"p99 {words.latency(row['before'])} at {words.rate(row['one'])} and "
            f"{words.latency(row['after'])} at {words.rate(row['other'])}, ratio "
            f"{words.ratio(*row[['ratio', 'low', 'high']])}"
            f"{wider}."
        )
    return Markdown(f"{sentence} {_past(tables)}")


def mostly_undecided(compared: pd.DataFrame) -> Markdown:
    """Of the comparisons with enough runs a side, or launches: do fewer than half show a difference? *The
    same* is none, though it is decided."""
    if compared.empty:
        return Markdown(f"{_TITLE} no option was varied here, so there is nothing to count.")
    by_duet = compared["by"].eq(BY_DUET) if "by" in compared else pd.Series(False, index=compared.index)
    least = by_duet.map({True: FIRST_LOOK, False: MIN_RUNS})
    enough = compared[compared[["runs_before", "runs_after"]].min(axis=1) >= least]
    launches = f" or {FIRST_LOOK} launches of a duet" if by_duet.any() else ""
    if enough.empty:
        return Markdown(
            f"{_TITLE} no comparison of options has {MIN_RUNS} runs a side{launches}, so none could be "
            "decided."
        )
    differ = int(enough["word"].isin(DIFFERENT).sum())
    verdict = (
        "it held: most changes moved no ratio by more than the repeats differ"
        if 2 * differ < len(enough)
        else "it did not hold: half of the changes or more moved a ratio by more than the repeats differ"
    )
    return Markdown(
        f"{_TITLE} {verdict}. Of {words.counted(len(enough), 'comparison')} with {MIN_RUNS} runs a "
        f"side{launches} or more, at every rate that was measured, {differ} "
        f"{'shows' if differ == 1 else 'show'} a difference."
    )


def published_stay_near(judged: pd.DataFrame) -> Markdown:
    """``judged``: of ``claims.judge``. Of the rates and latencies that do not fall by their own report; where
    a claim is not decided our number decides nothing here, either."""
    fallen = int((judged["verdict"] == MISTAKEN).sum())
    compared = judged[
        judged["quantity"].str.endswith(("_rps", "_us"))
        & ~judged["verdict"].isin([MISTAKEN, UNPROVEN])
        & (judged["runs"] > 0)
    ]
    sure = compared[compared["verdict"].isin([REPRODUCED, NOT_REPRODUCED])]
    low, high = sure["low"] / sure["published"], sure["high"] / sure["published"]
    near = int(((low >= 1 / FACTOR) & (high <= FACTOR)).sum())
    off = int(((low > FACTOR) | (high < 1 / FACTOR)).sum())
    verdict = NOT_HELD if off else HELD if near and near == len(compared) else CANNOT_TELL
    return Markdown(
        f"{_TITLE} {_VERDICTS[verdict]}. Of {words.count(len(compared))} published rates and latencies "
        f"{near} {'is' if near == 1 else 'are'} within a factor of {FACTOR:g} of ours (the whole interval) "
        f"and {off} further off; of {len(compared) - near - off} our runs cannot tell. {fallen} of "
        f"{words.counted(len(judged), 'claim')} {'falls' if fallen == 1 else 'fall'} by the report's own "
        "output."
    )


def each_holds_and_one_does_not(tables: Tables) -> Markdown:
    """Of the small values every program must do what was expected, of the large ones one is enough."""
    small = peers.expected(tables, _SMALL_RPS, _SMALL_BYTES, _SMALL_P50_US)
    large = peers.expected(tables, _LARGE_RPS, _LARGE_BYTES)
    every, one_does_not = _of_all(small.values()), _NOT[_of_all(large.values())]
    does = f"hold it with a p50 under {words.latency(_SMALL_P50_US)}"
    lines = [
        f"- {words.rate(_SMALL_RPS)}, {words.chosen_size(_SMALL_BYTES)}: {_VERDICTS[every]}"
        f"{_who(small, does)}.",
        f"- {words.rate(_LARGE_RPS)}, {words.chosen_size(_LARGE_BYTES)}: {_VERDICTS[one_does_not]}"
        f"{_who(large, 'hold it')}.",
    ]
    return Markdown("\n".join([_TITLE, "", *lines]))


def _of_all(verdicts: Collection[str]) -> str:
    """HELD where all of them are, NOT_HELD where one is."""
    if NOT_HELD in verdicts:
        return NOT_HELD
    return HELD if verdicts and CANNOT_TELL not in verdicts else CANNOT_TELL


def _who(verdicts: dict[str, str], does: str) -> str:
    """Of which programs what was found."""
    if not verdicts:
        return ": not measured"
    named = {
        said: words.several(names)
        for verdict, said in ((HELD, does), (NOT_HELD, "do not"), (CANNOT_TELL, CANNOT_TELL))
        if (names := [name for name, found in verdicts.items() if found == verdict])
    }
    text = "; ".join(f"{said}: {names}" for said, names in named.items())
    return f". {text[0].upper()}{text[1:]}"


def grows_with_the_work(tables: Tables) -> Markdown:
    """p99 of each line between two amounts of work, against what was expected of their ratio."""
    lines = [f"- {_grew(held)}." for held in held_against(tables)]
    return Markdown("\n".join([_TITLE, "", *lines]) if lines else f"{_TITLE} {CANNOT_TELL}: not measured.")


def _grew(held: Held) -> str:
    limit = f"{'More than' if held.beyond else 'At most'} {words.times(held.limit, 2)}"
    begun = (
        f"{held.line}, {held.growth.name}, {growth.works(held.growth, held.least, held.most)}: "
        f"{_VERDICTS[held.verdict]}. {limit} was expected of p99"
    )
    if held.row is None:
        return f"{begun}, and there are no valid runs at both"
    few = f" ({TOO_FEW})" if min(held.row.runs_before, held.row.runs_after) < MIN_RUNS else ""
    times = partial(words.times, digits=2)
    return f"{begun}; it is {times(held.row.ratio)}{words.interval(held.row.low, held.row.high, times)}{few}"


def _past(tables: Tables) -> str:
    found = held_rates(tables)
    sure = found[found["fewest"] >= MIN_RUNS]
    lost, few = int(sure["saturation_rps"].notna().sum()), len(found) - len(sure)
    why = TOO_FEW.replace(" a side", " at a rate") if few else "no run says whether its rate was held"
    if sure.empty:
        return f"Cannot tell whether an offered rate was past a saturation point: {why}."
    unsure = f" Of {few} of {len(found)} combinations the runs cannot tell: {why}." if few else ""
    if not lost:
        return f"No offered rate was past a saturation point, so what happens there was not tested.{unsure}"
    return (
        f"{lost} of {words.counted(len(sure), 'combination')} of workload, connections and options "
        "met a rate that they did not hold: those runs are grey and in no median, "
        f"so that what happens there can be seen, but is no claim.{unsure}"
    )
