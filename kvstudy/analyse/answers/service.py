"""How fast is the service, which rates does it hold, and what does waiting add? Claims of valid runs at
offered rates, and of searches."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from kvstudy.analyse import rates
from kvstudy.analyse.answers import Answer, latency_at, service_tables, unanswered
from kvstudy.analyse.claim import HELD, SEARCH, Claim, Place, comparison_claim, median_claim
from kvstudy.analyse.comparison import families
from kvstudy.analyse.comparison.words import CANNOT_TELL, DIFFERENT, MIN_RUNS, TOO_FEW
from kvstudy.analyse.configuration import comparisons, each_configuration
from kvstudy.analyse.tables import Tables
from kvstudy.plan.objective import Answer as TrialAnswer

P99 = "p99"
_PLACE = ["connections", "threads", "offered_rate_rps"]
HELD_EVERY, MET_ITS_LIMIT = "held every rate", "met a rate that it did not hold"
OFFERED, HIGHEST = "highest rate offered", "highest rate held"
WAITS_MIN = 1.1  # of response over service time: less is no waiting to speak of


def p99_of_workloads(tables: Tables) -> Answer | None:
    """p99 of each workload at the rate and connections that most workloads share, the fastest first."""
    tables = service_tables(tables)
    points = latency_at(tables, 99)
    if points.empty:
        return unanswered(tables.select(closed_loop=False))
    place = ["experiment", "connections", "threads", "offered_rate_rps"]
    shared = points.groupby(place)["workload"].nunique()
    best = shared[shared == shared.max()].index[-1]
    here = points.set_index(place).sort_index().loc[[best]]
    claims = [
        median_claim(
            mine["latency_us"], Place(workload, int(best[1]), float(best[3]), best[0]), P99, "us", difference
        )
        for workload, group in here.reset_index().groupby("workload")
        for difference, mine in each_configuration(group)
    ]
    return Answer(tuple(sorted(claims, key=lambda claim: claim.estimate)), len(here))


def rates_held(tables: Tables) -> Answer | None:
    """Of the rates chosen beforehand: first the highest that was offered; then of each combination the
    highest rate it held, and in ``ends`` beside it the lowest it did not (infinite where it held all). A
    combination that held none has no estimate; one with fewer than MIN_RUNS runs at a rate decides
    nothing."""
    tables = service_tables(tables).select(search="")
    held, runs = rates.held_rates(tables), rates.runs_with_rate_outcome(tables)
    if held.empty:
        return unanswered(tables.select(closed_loop=False))
    claims = [
        Claim(Place(), OFFERED, "rps", float(runs["offered_rate_rps"].max()), runs=len(runs), rule=HELD)
    ]
    for row in held.itertuples():
        lowest_lost = math.inf if np.isnan(row.saturation_rps) else row.saturation_rps
        few = row.fewest < MIN_RUNS
        word = CANNOT_TELL if few else HELD_EVERY if math.isinf(lowest_lost) else MET_ITS_LIMIT
        claims.append(
            Claim(
                Place(row.workload, int(row.connections), experiment=row.experiment),
                HIGHEST,
                "rps",
                row.highest_held_rps,
                rule=HELD,
                runs=int(row.runs),
                word=word,
                why=TOO_FEW if few else "",
                variant=row.variant,
                ends=(row.highest_held_rps, lowest_lost),
            )
        )
    return Answer(tuple(claims), len(runs))


def repeated_against_unique(tables: Tables) -> Answer | None:
    """p99 of repeated keys over that of unique ones, PUT and GET, where both were measured at their highest
    rate."""
    chosen = service_tables(tables)
    measured = set(chosen.runs.loc[~chosen.runs["profiled"], "workload"])
    parts = [(f"unique_{method}", f"repeated_{method}") for method in ("put", "get")]
    claims = []
    for unique, repeated in parts:
        rows = comparisons(chosen, "workload", unique, repeated, (99.0,), share=families.SMALL / 2)
        rows = rows[rows["measure"] == P99]
        rows = (
            rows[
                (
                    rows[_PLACE].fillna(math.inf) == rows[_PLACE].iloc[-1:].fillna(math.inf).squeeze(axis=0)
                ).all(axis=1)
            ]
            if len(rows)
            else rows
        )
        claims += [comparison_claim(row, unique, repeated) for row in rows.itertuples()]
    if claims:
        return Answer(tuple(claims), sum(claim.runs for claim in claims))
    asked = [names for names in parts if measured.issuperset(names)]
    return unanswered(chosen.select(workload={name for names in asked for name in names})) if asked else None


def more_connections(tables: Tables) -> Answer | None:
    """p99 on the most connections over that on the fewest, everything that was measured on both; first the
    largest difference that is decided."""
    tables = tables.select(experiment="reproduce")
    sizes = sorted(tables.runs.loc[~tables.runs["profiled"], "connections"].unique())
    if len(sizes) < 2:
        return None
    rows = comparisons(tables, "connections", sizes[0], sizes[-1], (99.0,), share=families.SMALL)
    rows = rows[rows["measure"] == P99]
    if rows.empty:
        return unanswered(tables)
    certain = rows[rows["word"].isin(DIFFERENT)]
    first = (
        certain["ratio"].map(lambda ratio: abs(math.log(ratio))).idxmax() if len(certain) else rows.index[-1]
    )
    ordered = [first, *(index for index in rows.index if index != first)]
    claims = [
        comparison_claim(row, str(sizes[0]), str(sizes[-1]), "reproduce")
        for row in rows.loc[ordered].itertuples()
    ]
    return Answer(tuple(claims), sum(claim.runs for claim in claims))


def waiting(tables: Tables) -> Answer | None:
    """Where response time exceeds service time the most, of valid runs: that gap is what a closed loop would
    hide. Of each configuration the median over runs of their own ratio; the largest of all is told, which is
    the largest by chance too."""
    tables = service_tables(tables)
    response, service = latency_at(tables, 99), latency_at(tables, 99, "service")
    pairs = response.merge(service[["run_id", "latency_us"]], on="run_id", suffixes=("", "_service"))
    if pairs.empty:
        return unanswered(tables.select(closed_loop=False))
    groups = [group for _, group in pairs.groupby("configuration")]
    most = max(map(len, groups))
    groups = [group for group in groups if len(group) >= min(MIN_RUNS, most)]  # one run more is no median
    claims = [_waited(group) for group in groups]
    worst = max(claims, key=lambda claim: claim.estimate)
    if worst.estimate < WAITS_MIN:
        return None
    return Answer((replace(worst, chosen_from=len(claims)),), worst.runs)


def _waited(runs: pd.DataFrame) -> Claim:
    """``runs``: of one configuration, with both latencies."""
    first = runs.iloc[0]
    where = Place(first["workload"], int(first["connections"]), float(first["offered_rate_rps"]))
    claim = median_claim(runs["latency_us"] / runs["latency_us_service"], where, P99, "ratio")
    assert claim is not None
    ends = (float(runs["latency_us_service"].median()), float(runs["latency_us"].median()))
    return replace(claim, baseline="from the send", variant="from the due time", ends=ends)


def stable_rate(tables: Tables, experiment: str, workload: str, key_bytes: int | None = None) -> Claim | None:
    """The knee that the last search found, between the rate surely held and the one surely missed (infinite:
    none was); None where no rate was surely held."""
    runs = tables.select(experiment=experiment, workload=workload).runs
    runs = runs[runs["search"] != ""]
    if key_bytes is not None:
        runs = runs[runs["workload_args"].str.contains(f'"key_bytes": {key_bytes}')]
    searches = rates.each_search(runs)
    if not searches:
        return None
    runs = searches[-1]
    found = rates.knee_of(runs)
    if found.held_rps is None:
        return None
    missed = math.inf if found.missed_rps is None else found.missed_rps
    return Claim(
        Place(workload, int(runs["connections"].iloc[0]), experiment=experiment),
        "stable rate",
        "rps",
        found.knee_rps,
        (found.held_rps, missed),
        runs=int((runs["answer"] != TrialAnswer.UNKNOWN.value).sum()),
        rule=SEARCH,
        variant=f"the last of {len(searches)} searches" if len(searches) > 1 else "",
    )


def searches(tables: Tables) -> Answer | None:
    """Report 1's question: the highest rate with a mean of at most 1 ms on one connection."""
    claims = tuple(
        claim for method in ("put", "get") if (claim := stable_rate(tables, "report-1", method)) is not None
    )
    return (
        Answer(claims, sum(claim.runs for claim in claims))
        if claims
        else unanswered(tables.select(experiment="report-1"))
    )
