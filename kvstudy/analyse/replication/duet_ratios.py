"""Claims about an option that a duet answers: the same experiment, workload, measure, values, connections and
rate as the rule asks of independent runs, and of no others.

    rows = option_duets.answers(found)
    measured_by_duet(question, rows)      our number, or None where no duet asked just that
"""

import math

import pandas as pd

from kvstudy.analyse.replication.measured import DuetQuestion, Measured


def measured_by_duet(asked: DuetQuestion, rows: pd.DataFrame) -> Measured | None:
    """``rows``: of ``option_duets.answers``. None also where the duet has no interval, or leaves its word
    open for what a side did to its rounds, since then a narrow interval says nothing either."""
    rates = rows["offered_rate_rps"]
    mine = rows[
        (rows["experiment"] == asked.experiment)
        & (rows["workload"] == asked.workload)
        & (rows["measure"] == asked.measure)
        & (rows["before_name"] == asked.before)
        & (rows["after_name"] == asked.after)
        & (rows["connections"] == asked.connections)
        & (rates.isna() if asked.offered_rate_rps is None else rates == asked.offered_rate_rps)
        & (rows["why"] == "")
    ]
    if mine.empty or math.isnan(mine["low"].iloc[0]):
        return None
    row = mine.iloc[0]
    launches = int(row["runs_before"])
    return Measured(
        float(row["ratio"]),
        float(row["low"]),
        float(row["high"]),
        launches,
        row["word"],
        same_within=row["same_within"],
        fewest=launches,
        by_duet=asked.experiment,
        is_own=bool(row["is_own"]),
        flattered=row["flattered"],
    )
