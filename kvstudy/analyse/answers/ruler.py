"""Can the ruler be trusted? Claims about the generator, about a stall, and about the same thing measured
twice."""

from collections.abc import Sequence

import pandas as pd

from kvstudy.analyse import percentile_grid
from kvstudy.analyse.answers import Answer, latency_at, unanswered
from kvstudy.analyse.claim import CLOSED_LOOP, Place, comparison_claim, median_claim
from kvstudy.analyse.comparison import families
from kvstudy.analyse.configuration import RATE, comparisons, each_configuration, why_not_repeats
from kvstudy.analyse.options import SAME_THING, usual_sides
from kvstudy.analyse.profiling_cost import cost
from kvstudy.analyse.tables import Tables

BESIDE_WRK2 = "wrk2"  # the experiment, and the generator
RESPONSE, SERVICE, CLOSED = "response", "service", "closed loop"


def empty_server(tables: Tables) -> Answer | None:
    """The median of a server that does nothing, at each rate."""
    tables = tables.select(experiment="instrument", profiled=False)
    points = latency_at(tables, 50)
    if points.empty:
        return unanswered(tables)
    claims = [
        median_claim(
            mine["latency_us"],
            Place(offered_rate_rps=float(rate), experiment="instrument"),
            "p50",
            "us",
            difference,
        )
        for rate, group in points.groupby("offered_rate_rps")
        for difference, mine in each_configuration(group)
    ]
    return Answer(tuple(claims), len(points))


def generators(tables: Tables) -> Answer | None:
    """loadgen against wrk in a closed loop, by the rate that they achieve."""
    tables = tables.select(experiment="generators")
    rows = compared_generators(tables)
    rows = rows[rows["measure"] == RATE]
    if rows.empty:
        return unanswered(tables)
    if len(rows) > 1:
        runs = tables.believed().runs
        return Answer((), len(runs), why=_why_not_repeats(runs))
    claim = comparison_claim(next(rows.itertuples()), "wrk", "loadgen", "generators")
    return Answer((claim,), claim.runs)


def beside_wrk2(tables: Tables) -> Answer | None:
    """The median that wrk2 reports against loadgen's, of the same service at the same rates."""
    tables = tables.select(experiment=BESIDE_WRK2)
    rows = compared_with_wrk2(tables)
    rows = rows[rows["measure"] == "p50"]
    if rows.empty:
        return unanswered(tables)
    if rows.duplicated(["workload", "connections", "threads", "offered_rate_rps"]).any():
        runs = tables.believed().runs
        return Answer((), len(runs), why=_why_not_repeats(runs, ["offered_rate_rps"]))
    claims = [comparison_claim(row, "loadgen", "wrk2", BESIDE_WRK2) for row in rows.itertuples()]
    return Answer(tuple(claims), sum(claim.runs for claim in claims))


def stall(tables: Tables) -> Answer | None:
    """p99 of a service that stands still for a second: from the due time, from the send, and in a
    closed loop."""
    mine = tables.select(experiment="stall", profiled=False)
    tables = mine.believed()
    points = tables.percentiles.merge(tables.runs, on="run_id")
    points = points[percentile_grid.at(points["percentile"], 99) & points["latency_us"].notna()]
    closed, kind = points["closed_loop"], points["latency_kind"]
    seen = {
        RESPONSE: points[(kind == RESPONSE) & ~closed],
        SERVICE: points[(kind == SERVICE) & ~closed],
        CLOSED: points[(kind == RESPONSE) & closed],
    }
    if any(part.empty for part in seen.values()):
        return unanswered(mine)
    if mixed := next(filter(None, map(why_not_repeats, seen.values())), ""):
        return Answer((), len(tables.runs), why=mixed)
    rate = float(seen[RESPONSE]["offered_rate_rps"].iloc[0])
    claims = [
        median_claim(
            part["latency_us"],
            Place(offered_rate_rps=CLOSED_LOOP if name == CLOSED else rate, experiment="stall"),
            "p99",
            "us",
            name,
        )
        for name, part in seen.items()
    ]
    return Answer(tuple(claims), len(seen[RESPONSE]) + len(seen[CLOSED]))


def noise(tables: Tables) -> Answer | None:
    """The same thing measured twice: every word that says they differ is a false alarm."""
    rows = same_thing_twice(tables, SAME_THING)
    if rows.empty:
        return unanswered(tables.select(experiment=SAME_THING))
    claims = [
        comparison_claim(row, "first", "second", SAME_THING)
        for row in rows.sort_values("workload", kind="stable").itertuples()
    ]
    # The measures of one configuration are of the same runs.
    runs = (
        rows.groupby(["workload", "connections", "threads", "offered_rate_rps"], dropna=False)[
            ["runs_before", "runs_after"]
        ]
        .max()
        .sum()
        .sum()
    )
    return Answer(tuple(claims), int(runs))


def profiling(tables: Tables) -> Answer | None:
    """A closed loop with the profiler against the same without."""
    rows = profiled_against_not(tables)
    if rows.empty:
        return unanswered(tables.select(experiment="profile-cost"))
    claims = [comparison_claim(row, "not profiled", "profiled", "profile-cost") for row in rows.itertuples()]
    first = rows[rows["measure"] == rows["measure"].iloc[0]]
    return Answer(tuple(claims), int(first[["runs_before", "runs_after"]].sum().sum()))


def _why_not_repeats(runs: pd.DataFrame, along: Sequence[str] = ()) -> str:
    """Of the first generator whose runs share no median."""
    return next(filter(None, (why_not_repeats(mine, along) for _, mine in runs.groupby("generator"))), "")


def same_thing_twice(tables: Tables, experiment: str) -> pd.DataFrame:
    """Comparisons of an experiment whose two sides are the same thing: no word should say that they differ.

    The sides are two variants that differ in spelling only, or two labels.
    """
    chosen = tables.select(experiment=experiment)
    factor = "variant" if chosen.runs["variant"].nunique() > 1 else "label"
    names = usual_sides(factor, list(dict.fromkeys(chosen.runs.sort_values("start_utc")[factor])))
    if len(names) < 2:
        return comparisons(chosen, factor, "", "none")
    return comparisons(chosen, factor, names[0], names[-1], cpu=True, share=families.SMALL)


def compared_generators(tables: Tables, experiment: str = "generators") -> pd.DataFrame:
    """Comparisons of loadgen with wrk in a closed loop."""
    return comparisons(
        tables.select(experiment=experiment), "generator", "wrk", "loadgen", share=families.SMALL
    )


def compared_with_wrk2(tables: Tables, experiment: str = BESIDE_WRK2) -> pd.DataFrame:
    """Comparisons of a real wrk2 with loadgen, each rate by itself: before is loadgen."""
    return comparisons(
        tables.select(experiment=experiment), "generator", "loadgen", "wrk2", share=families.SMALL
    )


def profiled_against_not(tables: Tables, experiment: str = "profile-cost") -> pd.DataFrame:
    """``analyse.profiling_cost.cost``: before is without the profiler."""
    return cost(tables.select(experiment=experiment))
