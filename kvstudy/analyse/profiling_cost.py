"""What profiling costs the service: profiled runs against the same configurations unprofiled, run in turns.

    cost(tables.select(experiment="profile-cost"))      one row per configuration that was run both ways

Only an experiment whose profiled runs are shuffled among the others (``profile: {interleave: true}``) answers this: elsewhere they come last,
and what the machine did meanwhile would count as their cost.
"""

import pandas as pd

from kvstudy.analyse.configuration import CONFIGURATION, CPU, RATE, configured
from kvstudy.analyse.statistics import compare
from kvstudy.analyse.tables import Tables

_SAME = [name for name in CONFIGURATION if name != "profiled"]
COLUMNS = ["experiment", "workload", "connections", "threads", "measure", "without", "with_profiler", "ratio", "low", "high", "word", "runs_without", "runs_with"]


def cost(tables: Tables) -> pd.DataFrame:
    """Columns COLUMNS: medians of the measure without and with the profiler, their ratio with its interval, and ``compare``'s word.

    Measures: ``achieved rate`` (requests per second) in a closed loop, where a cost shows as fewer answers; everywhere ``CPU per request``
    (microseconds of the service's CPU time, as ``comparisons`` has it). Runs that FAILed a check do not count.
    """
    runs = configured(tables.runs[tables.runs["verdict"] != "FAIL"])
    rows = []
    for _, group in runs.groupby(_SAME, sort=True, dropna=False):
        plain, profiled = group[~group["profiled"]], group[group["profiled"]]
        if plain.empty or profiled.empty:
            continue
        for measure, better, column in ((RATE, "higher", "achieved_rate_rps"), (CPU, "less", "service_cpu_us_per_answer")):
            before, after = plain[column].dropna(), profiled[column].dropna()
            if (measure == RATE and not group["closed_loop"].all()) or before.empty or after.empty:
                continue
            found = compare(before, after, better)
            rows.append([*group[["experiment", "workload", "connections", "threads"]].iloc[0], measure, before.median(), after.median(), found.ratio,
                         found.low, found.high, found.word, found.runs_before, found.runs_after])
    return pd.DataFrame(rows, columns=COLUMNS)
