"""What profiling costs the service: profiled runs against the same configurations unprofiled, run in turns.

    cost(tables.select(experiment="profile-cost"))      one row per configuration that was run both ways

Only an experiment whose profiled runs are shuffled among the others (``profile: {interleave: true}``) answers
this: elsewhere they come last, and what the machine did meanwhile would count as their cost.
"""

import pandas as pd

from kvstudy.analyse.comparison import families
from kvstudy.analyse.configuration import (
    COMPARISON_COLUMNS,
    CONFIGURATION,
    CPU,
    RATE,
    compare_values,
    configured,
    each_configuration,
    lost_runs,
    with_words,
)
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.validity import FAIL

_SAME = [name for name in CONFIGURATION if name not in ("profiled", "profiler")]


def cost(tables: Tables) -> pd.DataFrame:
    """``comparisons`` of without the profiler (before) with it (after), in the same columns.

    Measures: ``achieved rate`` (requests per second) in a closed loop, where a cost shows as fewer answers;
    everywhere ``CPU per request`` (microseconds of the service's CPU time, as ``comparisons`` has it). Of
    runs that FAILed a check none is measured; those that the service made invalid are counted on their side.
    """
    runs = configured(tables.runs)
    rows = []
    for _, group in runs.groupby(_SAME, sort=True, dropna=False):
        plain = group[~group["profiled"]]
        if not plain.empty:
            rows += [
                row
                for differs, profiled in each_configuration(group[group["profiled"]])
                for row in _compared(plain, profiled, differs)
            ]
    return with_words(pd.DataFrame(rows, columns=COMPARISON_COLUMNS), families.SMALL * tables.part)


def _compared(plain: pd.DataFrame, profiled: pd.DataFrame, differs: str) -> list[dict]:
    rows = []
    for measure, column in ((RATE, "achieved_rate_rps"), (CPU, "service_cpu_us_per_answer")):
        before, after = (side.loc[side["verdict"] != FAIL, column].dropna() for side in (plain, profiled))
        if (measure == RATE and not plain["closed_loop"].all()) or before.empty or after.empty:
            continue
        rows.append(
            {
                **plain[["workload", "connections", "threads"]].iloc[0],
                "measure": measure,
                "differs": differs,
                "apart": False,
                **lost_runs(plain["excluded"], profiled["excluded"]),
                **compare_values(before, after, float(plain["same_within"].min())),
            }
        )
    return rows
