"""What each option does: every experiment that varies one is compared with the value that the service has by
default.

    options = compared_options(tables)      one row per experiment, other value, configuration and measure
    at_highest_rate(options)                of them those at the highest rate and most connections
    count_runs(tables, options)             how many runs they rest on
    varied_factor(tables_of_one_experiment) what is compared there: the factor, the default's runs, the others

A factor is a service or JVM option (``variant``), or a size of the workload (``data``) where no option is
varied.
"""

import json
from dataclasses import dataclass

import pandas as pd

from kvstudy.analyse.comparison import families
from kvstudy.analyse.comparison.words import CANNOT_TELL
from kvstudy.analyse.configuration import (
    COMPARISON_COLUMNS,
    comparison_key,
    comparisons,
    configured,
    with_words,
)
from kvstudy.analyse.tables import Tables
from kvstudy.plan.comparing import DEFAULT
from kvstudy.units import parse_size_bytes

# What the service and the JVM do when they are not told otherwise; of a cache: that there is none.
DEFAULTS = {
    "handler": "selector",
    "wal": "interval",
    "compaction": "leveled",
    "gc": "G1",
    "cache_entries": "0",
    "heap": "128m",
}
# A difference without a meaning: two spellings of one heap, measured to see what chance makes of them.
SAME_THING = "noise"
# What they vary is told on a page of their own: the tail, the peers, how cost grows.
OF_OTHER_PAGES = frozenset({"tail-intervention", "peers", "scale", "connections", "larger-than-memory"})
OF_WORKLOAD = ("key_", "value_", "distribution")  # begin what is asked of the service: no change of it
USUAL_LABELS = ("before", "after")
COLUMNS = ["experiment", "before_name", "after_name", *COMPARISON_COLUMNS]
# What one row answers.
QUESTION = ["experiment", "before_name", "after_name"]
ROW = [*QUESTION, "workload", "measure"]
_PLACE = ["workload", "connections", "threads", "offered_rate_rps"]


@dataclass(frozen=True)
class VariedFactor:
    """``factor``: a column of configured runs; ``before``: its default value; ``others``: the rest, in
    order."""

    factor: str
    before: str
    others: tuple[str, ...]


def varied_factor(tables: Tables) -> VariedFactor | None:
    """What the runs of one experiment compare; None when they vary neither an option nor the workload's
    sizes."""
    runs = configured(tables.runs[~tables.runs["profiled"]])
    for factor, order in (("variant", distance_from_default), ("data", _sizes)):
        if factor == "data":
            runs = runs[runs.groupby("workload")["data"].transform("nunique") > 1]
        values = sorted(set(runs[factor]), key=order)
        if len(values) > 1:
            return VariedFactor(factor, values[0], tuple(values[1:]))
    return None


def compared_options(tables: Tables, percentiles: tuple[float, ...] = (50.0, 99.0)) -> pd.DataFrame:
    """COLUMNS: ``analyse.configuration.comparisons`` of every experiment with two sides, each other value
    against the default."""
    parts = []
    for experiment in sorted(set(tables.runs["experiment"]) - {SAME_THING} - OF_OTHER_PAGES):
        mine, varied = tables.select(experiment=experiment), tables.cached(varied_of, experiment)
        for other in varied.others if varied else ():
            rows = comparisons(mine, varied.factor, varied.before, other, percentiles, cpu=True, share=None)
            before, after = differing_parts(varied.before, other)
            parts.append(rows.assign(experiment=experiment, before_name=before, after_name=after))
    parts = [part for part in parts if len(part)]
    return (
        with_words(pd.concat(parts, ignore_index=True), families.OPTIONS * tables.part)[COLUMNS]
        if parts
        else pd.DataFrame(columns=COLUMNS)
    )


def at_highest_rate(compared: pd.DataFrame) -> pd.DataFrame:
    """Of ``compared_options`` the rows, of each experiment, value, workload and measure, of the highest rate,
    there of the most connections, and there of the fewest threads. Several of one question are of runs that
    share no median, as of two builds: each is told, with what ``differs``."""
    top = compared.assign(rate=compared["offered_rate_rps"].fillna(-1))
    for column, chosen in (("rate", "max"), ("connections", "max"), ("threads", "min")):
        if len(top):
            top = top[top[column] == top.groupby(ROW, sort=False)[column].transform(chosen)]
    return top.drop(columns="rate").sort_values(["experiment", "workload", "after_name"], kind="stable")


@dataclass(frozen=True)
class Tally:
    """How many comparisons decide something, of how many. Sizes of the workload are no option of the service,
    and are counted apart."""

    decided: int
    of: int
    sizes_decided: int
    sizes: int


def tally(top: pd.DataFrame) -> Tally:
    """``top``: rows of ``at_highest_rate``; the share of invalid runs is a measure as any other."""
    decided, is_size = top["word"] != CANNOT_TELL, of_sizes(top)
    return Tally(
        int((decided & ~is_size).sum()),
        int((~is_size).sum()),
        int((decided & is_size).sum()),
        int(is_size.sum()),
    )


def of_sizes(rows: pd.DataFrame) -> pd.Series:
    return rows["after_name"].astype(str).str.startswith(OF_WORKLOAD)


def count_runs(tables: Tables, rows: pd.DataFrame) -> int:
    """How many runs ``rows`` of ``compared_options`` rest on. Those of the default count once, however many
    values stand against them."""
    behind = set()
    for experiment, rows_there in rows.groupby("experiment"):
        varied = tables.cached(varied_of, experiment)
        runs = tables.cached(_comparable_runs, experiment)
        for other in varied.others:
            before, after = differing_parts(varied.before, other)
            places = rows_there.loc[
                (rows_there["before_name"] == before) & (rows_there["after_name"] == after), _PLACE
            ].drop_duplicates()
            pair = runs[runs[varied.factor].isin([varied.before, other])].merge(places, on=_PLACE)
            behind |= set(pair.loc[pair.groupby("key")[varied.factor].transform("nunique") == 2, "run_id"])
    return len(behind)


def varied_of(tables: Tables, experiment: str) -> VariedFactor | None:
    """``varied_factor`` of one experiment."""
    return varied_factor(tables.select(experiment=experiment))


def _comparable_runs(tables: Tables, experiment: str) -> pd.DataFrame:
    """Believed runs, with the ``key`` that those of all sides share."""
    runs = configured(tables.select(experiment=experiment).believed().runs)
    runs["key"] = comparison_key(runs, tables.cached(varied_of, experiment).factor)
    return runs


def differing_parts(before: str, after: str) -> tuple[str, str]:
    """Only what differs: ``("gc=G1 heap=128m", "gc=Z heap=128m")`` → ("gc=G1", "gc=Z")."""
    first, second = parts_of(before), parts_of(after)
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    return tuple(
        " ".join(f"{name}={side[name]}" for name in names if name in side) or DEFAULT
        for side in (first, second)
    )


def parts_of(value: str) -> dict[str, str]:
    """Of a variant, of a duet's side or of a workload's arguments: name → value as text."""
    if value == DEFAULT:
        return {}
    if value.startswith("{"):
        return {name: str(size) for name, size in json.loads(value).items()}
    return dict(part.partition("=")[::2] for part in value.split())


def distance_from_default(variant: str) -> tuple:
    """Sorts the default first, then by the values."""
    parts = parts_of(variant)
    return sum(DEFAULTS.get(name, value) != value for name, value in parts.items()), [
        _as_number(value) for value in parts.values()
    ]


def _sizes(data: str) -> list:
    return [_as_number(value) for value in parts_of(data).values()]


def _as_number(value: str) -> tuple:
    """Sorts numbers and sizes, as ``512m``, before other values."""
    try:
        return 0, float(parse_size_bytes(value)), ""
    except ValueError:
        return (0, float(value), "") if value.replace(".", "", 1).isdigit() else (1, 0.0, value)


def usual_sides(factor: str, values: list) -> list:
    """Of a factor's values in their order those that are compared when nobody names the sides: the first and
    the last of these."""
    if factor != "label":
        return values
    named = [value for value in values if value]
    return list(USUAL_LABELS) if set(USUAL_LABELS) <= set(named) else named if len(named) > 1 else values
