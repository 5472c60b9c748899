"""What duets say of options, in the place of independent runs: both sides were alive at once, so a duet
decides more with fewer launches.

    found = option_duets(duets(study_duets()))     of all duets those whose sides are values of one option
    answers(found)                                 a row per question, as options.compared_options has them
    rows = with_duets(compared_options(tables), found)
                                                   the same table, each row ``by`` a duet or by runs

Of each question (experiment, both values, workload, measure) one answer stands, the first of these that is
decided, or else the first that there is:

    the reader's own last duet; the last committed one; independent runs

So no undecided answer takes the place of a decided one. Of two values that a duet compares, independent
runs are told only where they decide more than it does at the highest rate; what they leave open is not, of
whatever workload. ``beside`` says what the duet, or the reader's own one, leaves open of such a row, and what
a decided answer that gave way says where that is another word.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from kvstudy.analyse import duets as measured
from kvstudy.analyse.claim import CLOSED_LOOP
from kvstudy.analyse.comparison import launches
from kvstudy.analyse.comparison.words import (
    CANNOT_TELL,
    CHEAPER,
    DEARER,
    FASTER,
    LOST_MORE_OF_DUET,
    SLOWER,
)
from kvstudy.analyse.configuration import CPU, RATE
from kvstudy.analyse.duets import Duet
from kvstudy.analyse.options import (
    COLUMNS,
    DEFAULT,
    QUESTION,
    ROW,
    at_highest_rate,
    differing_parts,
    distance_from_default,
    parts_of,
)

BY_DUET, BY_RUNS = "duet", "runs"
OWN_CANNOT_TELL = "your own duet cannot tell yet"
DUET_CANNOT_TELL = "its duet cannot tell"
RUNS_CALL, REFERENCE_CALLS = "independent runs call", "the reference's duet calls"
_ADDED = ["by", "is_own", "beside", "flattered"]
# What the options are asked for, by the names that independent runs have for it.
_MEASURES = {launches.P50: "p50", launches.P99: "p99", launches.CPU: CPU, launches.RATE: RATE}
_TURNED = {FASTER: SLOWER, SLOWER: FASTER, CHEAPER: DEARER, DEARER: CHEAPER}


def option_duets(found: Iterable[Duet]) -> list[Duet]:
    """Those of two values of an option of the service, of the JVM or of a size; builds and subjects are
    none."""
    return [one for one in found if _is_of_options(one.a) and _is_of_options(one.b)]


def _is_of_options(side: str) -> bool:
    return (side == DEFAULT or "=" in side) and "subject" not in parts_of(side)


def with_duets(compared: pd.DataFrame, found: Sequence[Duet], own: Iterable[str] = ()) -> pd.DataFrame:
    """``compared``: rows of ``options.compared_options``; ``own``: experiments whose runs are the reader's.
    Rows of both, with ``by``, ``is_own``, ``beside`` and ``flattered``, of duets alone."""
    runs = compared.assign(by=BY_RUNS, is_own=compared["experiment"].isin(list(own)), beside="", flattered="")
    rows = answers(found)
    if rows.empty:
        return runs
    asked, answered = _keys(rows, QUESTION), _keys(rows[rows["word"] != CANNOT_TELL], ROW)
    # At a lower rate they may decide what they leave open at the highest, which is the one that is told.
    said = _words(at_highest_rate(runs))
    keeps = [
        question not in asked or (row in said and row not in answered and word != CANNOT_TELL)
        for question, row, word in zip(_each(runs, QUESTION), _each(runs, ROW), runs["word"], strict=True)
    ]
    runs = runs[np.array(keeps, dtype=bool)]
    rows = rows.assign(
        beside=[
            _and(beside, _another(RUNS_CALL, row, word, said.get(row, word)))
            for beside, row, word in zip(rows["beside"], _each(rows, ROW), rows["word"], strict=True)
        ]
    )
    every = _keys(rows, ROW)
    runs = runs.assign(beside=[DUET_CANNOT_TELL if row in every else "" for row in _each(runs, ROW)])
    decided = _keys(runs, ROW)
    rows = rows[[row not in decided for row in _each(rows, ROW)]]
    return pd.concat([part for part in (runs, rows) if len(part)], ignore_index=True)


def answers(found: Sequence[Duet]) -> pd.DataFrame:
    """One row per question: of the reader's last duet, or of the last committed one where his decides
    nothing."""
    parts = [_of_duet(duet) for duet in _last(found)]
    rows = pd.DataFrame([row for part in parts for row in part], columns=[*COLUMNS, *_ADDED])
    if rows.empty:
        return rows
    # Own ones come first, and stay so among those that are decided alike.
    order = rows.assign(open=rows["word"] == CANNOT_TELL).sort_values("open", kind="stable")
    open_of_own = _keys(order[order["open"] & order["is_own"]], ROW)
    theirs = order[~order["open"] & ~order["is_own"].astype(bool)]
    said = dict(zip(_each(theirs, ROW), theirs["word"], strict=True))
    first = order.drop_duplicates(ROW).drop(columns="open")
    beside = [
        OWN_CANNOT_TELL
        if not is_own and row in open_of_own
        else _another(REFERENCE_CALLS, row, word, said.get(row, word))
        for is_own, row, word in zip(first["is_own"], _each(first, ROW), first["word"], strict=True)
    ]
    return first.assign(beside=beside)


def _last(found: Sequence[Duet]) -> list[Duet]:
    """Of each two values in each experiment the last duet of the reader's own, and the last committed one."""
    kept = {}
    for duet in measured.last_first(found):
        kept.setdefault((duet.experiment, frozenset((duet.a, duet.b)), duet.is_own), duet)
    return list(kept.values())


def _of_duet(duet: Duet) -> list[dict]:
    """Its measures as rows, a ratio always over the default; at a rate where it was measured at one and in a
    closed loop."""
    turned = distance_from_default(duet.b) < distance_from_default(duet.a)
    before, after = differing_parts(*((duet.b, duet.a) if turned else (duet.a, duet.b)))
    rows = {}
    claims = sorted(
        zip(measured.claims(duet), duet.results, strict=True),
        key=lambda both: both[0].subject.offered_rate_rps == CLOSED_LOOP,
    )
    for claim, one in claims:
        if one.measure not in _MEASURES:
            continue
        place, name = claim.subject, _MEASURES[one.measure]
        closed = place.offered_rate_rps in (CLOSED_LOOP, None)
        low, high = (one.low, one.high) if not turned else (1 / one.high, 1 / one.low)
        ends = [end if one.measure == launches.RATE else end / 1000 for end in (one.a, one.b)]
        rows.setdefault(
            (place.workload, name),
            {
                "experiment": duet.experiment,
                "before_name": before,
                "after_name": after,
                "workload": place.workload,
                "connections": place.connections,
                "threads": 1,
                "offered_rate_rps": np.nan if closed else place.offered_rate_rps,
                "measure": name,
                "before": ends[turned],
                "after": ends[not turned],
                "ratio": 1 / one.ratio if turned else one.ratio,
                "low": low,
                "high": high,
                "word": _TURNED.get(one.word, one.word) if turned else one.word,
                "runs_before": one.launches,
                "runs_after": one.launches,
                "differs": "",
                "apart": False,
                "invalid_before": 0,
                "of_before": 0,
                "invalid_after": 0,
                "of_after": 0,
                "p": one.p,
                "p_same": one.p_same,
                "same_within": one.same_within,
                "noise": one.noise,
                "slack": 0.0,
                "found": one.found,
                "family": 1,
                "why": claim.why,
                "by": BY_DUET,
                "is_own": duet.is_own,
                "beside": "",
                "flattered": LOST_MORE_OF_DUET if one.flattered else "",
            },
        )
    return list(rows.values())


def _another(who: str, row: tuple, word: str, said: str) -> str:
    """What gave way to the decided ``word``; "" where it said the same."""
    return f"{who} {row[-1]} {said}" if CANNOT_TELL not in (word, said) and word != said else ""


def _and(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _words(top: pd.DataFrame) -> dict[tuple, str]:
    """What runs decide of each question. Several rows of one, as of two builds, decide it where all say the
    same."""
    words: dict[tuple, set[str]] = {}
    for row, word in zip(_each(top, ROW), top["word"], strict=True):
        words.setdefault(row, set()).add(word)
    return {row: next(iter(said)) for row, said in words.items() if len(said) == 1 and said != {CANNOT_TELL}}


def _each(rows: pd.DataFrame, columns: list[str]) -> list[tuple]:
    return list(rows[columns].itertuples(index=False, name=None))


def _keys(rows: pd.DataFrame, columns: list[str]) -> set[tuple]:
    return set(_each(rows, columns))
