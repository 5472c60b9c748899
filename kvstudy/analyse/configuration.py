"""What makes two runs repeats of one another: every column that was asked for is the same. Only repeats share a median.

    runs = configured(tables.runs)                 adds ``data`` and ``configuration``
    comparisons(tables, "label", "before", "after")    ratio of medians for every configuration that both have
"""

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd

from kvstudy.analyse.statistics import compare
from kvstudy.analyse.tables import Tables

# One series of runs over connections, threads and rates …
SERIES = ["experiment", "label", "variant", "workload", "data", "method", "server", "generator", "closed_loop", "service_options", "profiled", "processors_awake"]
# … and one point of it, repeated.
CONFIGURATION = [*SERIES, "connections", "threads", "offered_rate_rps"]

# What changes together with a factor and so cannot be held equal in a comparison over it.
_FOLLOWS = {
    "variant": {"service_options"},
    "workload": {"data", "method"},
    "connections": {"threads"},
    "experiment": {"label"},
    "generator": {"closed_loop", "offered_rate_rps"},
}
RATE, CPU = "achieved rate", "CPU per request"  # measures beside the percentiles
_BETTER = {RATE: "higher", CPU: "less"}
COMPARISON_COLUMNS = [
    "workload", "connections", "threads", "offered_rate_rps", "measure", "before", "after", "ratio", "low", "high", "word", "runs_before", "runs_after",
]  # fmt: skip


def configured(runs: pd.DataFrame) -> pd.DataFrame:
    """``runs`` with ``data`` (the workload's arguments that matter) and ``configuration`` (equal for repeats)."""
    runs = runs.copy()
    runs["data"] = [_data(run) for run in runs.itertuples()]
    runs["configuration"] = ["·".join(str(value) for value in row) for row in runs[CONFIGURATION].itertuples(index=False)]
    return runs


def alike(runs: pd.DataFrame, factor: str) -> pd.Series:
    """For configured runs: equal where they differ in nothing that was asked for but ``factor`` and what changes together with it."""
    others = [column for column in CONFIGURATION if column != factor and column not in _FOLLOWS.get(factor, set())]
    # A missing offered rate (closed loop) is a value like any other here.
    return pd.Series(["·".join(str(value) for value in row) for row in runs[others].itertuples(index=False)], index=runs.index, dtype=object)


def comparisons(tables: Tables, factor: str, before, after, percentiles: Sequence[float] = (50.0, 99.0, 99.9), cpu: bool = False) -> pd.DataFrame:
    """One row per measure and configuration that has believed runs on both sides of ``factor`` (a column of runs).

    Measures: response time at ``percentiles`` (microseconds, lower is better), achieved rate in a closed loop (higher is better);
    with ``cpu`` CPU per request, microseconds of the service without the JVM's compilers (a cost, less is better).
    Columns COMPARISON_COLUMNS: medians before and after, their ratio after / before with its interval, and the word.
    """
    believed = tables.believed()
    runs = configured(believed.runs)
    runs["key"] = alike(runs, factor)
    measured = _measures(believed, runs, percentiles, cpu)
    rows = []
    for (_, measure), group in measured.groupby(["key", "measure"], sort=True):
        first, second = group[group[factor] == before], group[group[factor] == after]
        if first.empty or second.empty:
            continue
        result = compare(first["value"], second["value"], _BETTER.get(measure, "lower"))
        rows.append([*(first[column].iloc[0] for column in COMPARISON_COLUMNS[:4]), measure, float(np.median(first["value"])), float(np.median(second["value"])),
                     result.ratio, result.low, result.high, result.word, result.runs_before, result.runs_after])  # fmt: skip
    # Said for every column, since a table without rows has no types of its own, and lends that to the tables that it is joined to.
    numbers = dict.fromkeys(("before", "after", "ratio", "low", "high"), "float64")
    return pd.DataFrame(rows, columns=COMPARISON_COLUMNS).astype(numbers | dict.fromkeys(("connections", "threads", "runs_before", "runs_after"), "int64"))


def _measures(tables: Tables, runs: pd.DataFrame, percentiles: Sequence[float], cpu: bool) -> pd.DataFrame:
    """One row per run and measure: the run's columns, ``measure`` and ``value`` (missing and zero values left out)."""
    points = tables.percentiles[tables.percentiles["latency_kind"] == "response"]
    parts = []
    for percentile in percentiles:
        values = points.loc[np.isclose(points["percentile"], percentile), ["run_id", "latency_us"]]
        part = runs[~runs["closed_loop"]].merge(values.rename(columns={"latency_us": "value"}), on="run_id")
        parts.append(part.assign(measure=f"p{percentile:g}"))
    parts.append(runs[runs["closed_loop"]].assign(measure=RATE, value=runs["achieved_rate_rps"]))
    if cpu:
        parts.append(runs.assign(measure=CPU, value=runs["service_cpu_us_per_answer"]))
    measured = pd.concat(parts, ignore_index=True)
    return measured[measured["value"] > 0]


def _data(run) -> str:
    """The workload's arguments, but for the keys of unique_put: it gets as many as its rate can write, which makes it no other workload."""
    arguments = json.loads(run.workload_args or "{}")
    if run.workload == "unique_put":
        arguments.pop("key_count", None)
    return json.dumps(arguments, sort_keys=True)
