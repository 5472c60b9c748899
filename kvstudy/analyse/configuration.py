"""What makes two runs repeats of one another: everything that was asked for, the programs and the machine are the same. Only repeats
share a median.

    runs = configured(tables.runs)                     adds ``data`` and ``configuration``, a digest
    comparisons(tables, "label", "before", "after")    ratio of medians for every pair of configurations that differ in the label alone
    differing(runs, ["workload"])                      what tells configurations apart that the columns named do not
"""

import hashlib
import json
from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from kvstudy.analyse import conditions
from kvstudy.analyse.statistics import compare
from kvstudy.analyse.tables import Tables

# One series of runs over connections, threads and rates …
SERIES = ["experiment", "label", "variant", "workload", "data", "method", "server", "generator", "closed_loop", "service_options", "profiled",
          "processors_awake", "duration_s", "warm_up_s", *(name for name in conditions.COLUMNS if name != "pinning")]
# … and one point of it, repeated. On which cores it ran follows from its threads.
CONFIGURATION = [*SERIES, "connections", "threads", "pinning", "offered_rate_rps"]

# What changes together with a factor and so cannot be held equal in a comparison over it. A label stands for a change to the service, so
# its program may differ; within one side it may not, as nothing else.
_FOLLOWS = {
    "label": {"service_program"},
    "variant": {"service_options", "jvm"},
    "workload": {"data", "method", "fill"},
    "data": {"fill"},
    "connections": {"threads", "pinning"},
    "threads": {"pinning"},
    "experiment": {"label"},
    "generator": {"closed_loop", "offered_rate_rps", "generator_program", "arrivals", "spin"},
}
RATE, CPU = "achieved rate", "CPU per request"  # measures beside the percentiles
_BETTER = {RATE: "higher", CPU: "less"}
COMPARISON_COLUMNS = [
    "workload", "connections", "threads", "offered_rate_rps", "measure", "before", "after", "ratio", "low", "high", "word", "runs_before", "runs_after",
    "differs",
]  # fmt: skip


def configured(runs: pd.DataFrame) -> pd.DataFrame:
    """``runs`` with ``data`` (the workload's arguments that matter) and ``configuration`` (a digest, equal for repeats)."""
    runs = runs.copy()
    runs["data"] = [_data(run) for run in runs.itertuples()]
    runs["configuration"] = _digests(runs, CONFIGURATION)
    return runs


def alike(runs: pd.DataFrame, factor: str) -> pd.Series:
    """For configured runs: equal where they differ in nothing but ``factor`` and what changes together with it."""
    return _digests(runs, [column for column in CONFIGURATION if column != factor and column not in _FOLLOWS.get(factor, set())])


def differing(runs: pd.DataFrame, said: Sequence[str]) -> list[str]:
    """The columns of CONFIGURATION, but for ``said``, in which configured runs differ that are equal in all of ``said``."""
    groups = runs.groupby(list(said), dropna=False) if said else None
    rest = [column for column in CONFIGURATION if column not in said]
    counts = {column: (groups[column].nunique(dropna=False).max() if said else runs[column].nunique(dropna=False)) for column in rest} if len(runs) else {}
    return [column for column, count in counts.items() if count > 1]


def not_alike(tables: Tables, factor: str, before, after) -> list[str]:
    """Why the two sides share no configuration: the columns in which their closest configurations differ, apart from ``factor`` and what follows it.

    Empty where a side has no believed run, or where some configurations do differ in ``factor`` alone.
    """
    runs = configured(tables.believed().runs)
    first, second = (runs[runs[factor] == side].drop_duplicates("configuration") for side in (before, after))
    others = [column for column in CONFIGURATION if column != factor and column not in _FOLLOWS.get(factor, set())]
    unlike = [[column for column in others if str(getattr(one, column)) != str(getattr(other, column))]
              for one, other in product(first.itertuples(), second.itertuples())]
    return min(unlike, key=len, default=[])


def comparisons(tables: Tables, factor: str, before, after, percentiles: Sequence[float] = (50.0, 99.0, 99.9), cpu: bool = False) -> pd.DataFrame:
    """One row per measure and pair of configurations that have believed runs, one on either side of ``factor`` (a column of runs).

    Measures: response time at ``percentiles`` (microseconds, lower is better), achieved rate in a closed loop (higher is better);
    with ``cpu`` CPU per request, microseconds of the service without the JVM's compilers (a cost, less is better).
    Columns COMPARISON_COLUMNS: medians before and after, their ratio after / before with its interval, and the word; ``differs``: what tells
    rows of one workload, connections and rate apart, such as two builds under one label, "" where nothing has to be told apart.
    """
    believed = tables.believed()
    runs = configured(believed.runs)
    runs["key"] = alike(runs, factor)
    told = _told_apart(runs[runs[factor].isin([before, after])], factor)
    measured = _measures(believed, runs, percentiles, cpu)
    rows = []
    for (_, measure), group in measured.groupby(["key", "measure"], sort=True):
        sides = [[mine for _, mine in group[group[factor] == side].groupby("configuration", sort=True)] for side in (before, after)]
        for first, second in product(*sides):
            result = compare(first["value"], second["value"], _BETTER.get(measure, "lower"))
            differs = dict.fromkeys(filter(None, (told[first["configuration"].iloc[0]], told[second["configuration"].iloc[0]])))
            rows.append([*(first[column].iloc[0] for column in COMPARISON_COLUMNS[:4]), measure, float(np.median(first["value"])), float(np.median(second["value"])),
                         result.ratio, result.low, result.high, result.word, result.runs_before, result.runs_after, " against ".join(differs)])  # fmt: skip
    # Said for every column, since a table without rows has no types of its own, and lends that to the tables that it is joined to.
    numbers = dict.fromkeys(("before", "after", "ratio", "low", "high"), "float64")
    frame = pd.DataFrame(rows, columns=COMPARISON_COLUMNS).astype(numbers | dict.fromkeys(("connections", "threads", "runs_before", "runs_after"), "int64"))
    return frame.sort_values(["workload", "connections", "threads", "offered_rate_rps"], kind="stable", ignore_index=True)


def _told_apart(runs: pd.DataFrame, factor: str) -> dict[str, str]:
    """Configuration → what tells it from others of the same side and place."""
    place, told = [factor, *(name for name in COMPARISON_COLUMNS[:4] if name != factor)], {}
    for _, one in runs.drop_duplicates("configuration").groupby(place, dropna=False):
        parts = [[f"{name} {text}" for text in _different_parts(one[name])] for name in differing(one, place)]
        told |= {name: ", ".join(texts) for name, *texts in zip(one["configuration"], *parts, strict=True)}
    return told


def _different_parts(values: pd.Series) -> list[str]:
    """Of JSON objects only what differs between them; other values as they are."""
    if not all(str(value).startswith("{") for value in values):
        return [str(value) for value in values]
    parts = [json.loads(value) for value in values]
    names = [name for name in sorted({name for part in parts for name in part}) if len({str(part.get(name)) for part in parts}) > 1]
    return [" ".join(f"{name}={part.get(name, conditions.NOT_RECORDED)}" for name in names) for part in parts]


def _digests(runs: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """A missing offered rate (closed loop) is a value like any other here."""
    rows = runs[list(columns)].itertuples(index=False)
    return pd.Series([hashlib.sha256(repr([str(value) for value in row]).encode()).hexdigest()[:16] for row in rows], index=runs.index, dtype=object)


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
