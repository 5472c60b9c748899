"""Where does the time go? The shares of the subsystems in the samples of profiled runs; those of one
configuration share a median, and no others.

rows = shares(tables)           one row per run, event and subsystem, with all that was asked of the run
typical(rows, "workload")       one row per event, configuration and subsystem: the median over its runs
network_and_store(rows)         of each configuration the CPU that goes to the network, and to the store
at_highest_rate(claims)         of each workload those at its highest rate

Fewer than MIN_RUNS profiles decide nothing: they have an extent, and the word is *cannot tell*. With more of
them a word needs the whole interval.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pandas as pd

from kvstudy.analyse import frames
from kvstudy.analyse.answers import Answer
from kvstudy.analyse.claim import Claim, Place, median_claim, place
from kvstudy.analyse.comparison.words import CANNOT_TELL, MIN_RUNS
from kvstudy.analyse.configuration import configured, each_configuration
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.validity import FAIL

NETWORK = ("socket read", "response", "idle")  # reading from the socket, answering, waiting for events
NETWORK_MIN, STORE_MAX = 0.5, 0.1  # what 05-flame-graphs expects of their shares
OF_NETWORK, OF_STORE = "network", "store"  # measures
MORE, LESS = "more", "less"  # than NETWORK_MIN or STORE_MAX, with the whole interval
TOO_FEW, NOT_SHOWN = f"fewer than {MIN_RUNS} profiled runs", "the interval holds both"
COLUMNS = ["offered_rate_rps", "connections", "differs", "subsystem", "share", "runs", "valid", "why"]
_POINT = ["offered_rate_rps", "connections"]


def shares(tables: Tables) -> pd.DataFrame:
    """One row per profiled run, event and subsystem that occurs: ``share`` (0 – 1) of the run's samples, the
    columns of ``configured`` runs, ``valid`` (bool) and ``why`` ("" when it is)."""
    if tables.stacks.empty:
        return pd.DataFrame()
    why = failures(tables)
    runs = configured(tables.runs)
    runs = runs.assign(
        valid=~runs["run_id"].isin(list(why)), why=[why.get(run_id, "") for run_id in runs["run_id"]]
    )
    return frames.shares(tables.stacks).merge(runs, on="run_id")


def failures(tables: Tables) -> dict[str, str]:
    """Of every run that FAILed its checks what they saw: "rate_held: 71 %"."""
    failed = tables.validity[tables.validity["verdict"] == FAIL]
    reasons = (failed["check"] + ": " + failed["observed"]).groupby(failed["run_id"]).agg("; ".join)
    return {
        run_id: reasons.get(run_id, "its checks failed")
        for run_id in tables.runs.loc[tables.runs["verdict"] == FAIL, "run_id"]
    }


def typical(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """``event``, ``by`` and COLUMNS: of each configuration the median over its valid runs, or over the
    invalid ones where it has no other, scaled so that the subsystems make a whole. ``differs``: what tells it
    from others of the same value, rate and connections."""
    found = []
    for event, of_event in rows.groupby("event", sort=False):
        for value, mine in of_event.groupby(by, sort=True):
            for differs, part in _configurations(mine):
                middle = _by_run(part).median()
                first, runs = part.iloc[0], part["run_id"].nunique()
                why = first["why"]
                found += [
                    (event, value, *first[_POINT], differs, name, share, runs, bool(first["valid"]), why)
                    for name, share in (middle / middle.sum()).items()
                ]
    return pd.DataFrame(found, columns=["event", by, *COLUMNS])


def network_and_store(rows: pd.DataFrame) -> Answer | None:
    """Two claims of each workload and configuration, with the words MORE, LESS and *cannot tell*: OF_NETWORK
    of more than NETWORK_MIN, OF_STORE of more than STORE_MAX. One without a valid run has no estimate, and
    says what its checks saw. None without a profile of the CPU."""
    cpu = rows[rows["event"] == "cpu"] if len(rows) else rows
    if cpu.empty:
        return None
    claims = [
        claim
        for _, mine in cpu.groupby("workload", sort=True)
        for differs, part in _configurations(mine)
        for claim in (
            _claim(part, OF_NETWORK, NETWORK, NETWORK_MIN, differs),
            _claim(part, OF_STORE, (OF_STORE,), STORE_MAX, differs),
        )
    ]
    return Answer(tuple(claims), cpu.loc[cpu["valid"], "run_id"].nunique())


def at_highest_rate(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Of each workload those at its highest rate that has a valid run, a closed loop before any rate;
    several of one measure are of several configurations."""
    claims = tuple(claims)
    known = [claim for claim in claims if claim.runs]
    highest: dict[str, float] = {}
    for claim in known or claims:
        rate, name = claim.subject.offered_rate_rps, claim.subject.workload
        highest[name] = max(rate, highest.get(name, 0.0))
    return tuple(
        claim
        for claim in known or claims
        if claim.subject.offered_rate_rps == highest[claim.subject.workload]
    )


def _configurations(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Of one value the rows of each rate, number of connections and configuration; of its runs only the valid
    ones, where there are any."""
    for _, point in rows.groupby(_POINT, sort=True, dropna=False):
        runs = point.drop_duplicates("run_id")
        for differs, part in each_configuration(runs):
            chosen = part[part["valid"]] if part["valid"].any() else part
            yield differs, point[point["run_id"].isin(chosen["run_id"])]


def _by_run(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per run, a column per subsystem; 0 where a run has no sample of one that others have."""
    return rows.pivot_table(
        index="run_id", columns="subsystem", values="share", aggfunc="sum", fill_value=0.0
    )


def _claim(rows: pd.DataFrame, measure: str, subsystems: Sequence[str], limit: float, differs: str) -> Claim:
    first = rows.iloc[0]
    where: Place = place(first, first["experiment"])
    if not first["valid"]:
        return Claim(where, measure, "share", math.nan, word=CANNOT_TELL, why=first["why"], variant=differs)
    of = _by_run(rows).reindex(columns=list(subsystems), fill_value=0.0).sum(axis=1)
    found = median_claim(of, where, measure, "share", differs)
    assert found is not None
    return _worded(found, limit)


def _worded(claim: Claim, limit: float) -> Claim:
    if claim.runs < MIN_RUNS or claim.interval is None:
        word, why = CANNOT_TELL, TOO_FEW
    else:
        low, high = claim.interval
        word = MORE if low > limit else LESS if high <= limit else CANNOT_TELL
        why = NOT_SHOWN if word == CANNOT_TELL else ""
    return replace(claim, word=word, why=why)
