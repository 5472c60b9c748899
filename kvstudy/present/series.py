"""What tells the lines of a chart apart: a name for every run, made of what was asked for and differs among
the runs.

    series.names(runs)                                     lines over offered rates: "put, report-4, key 8 B,
                                                           value 12 B"
    series.names(runs, series.CONNECTIONS, ("workload",))  lines over connections, in panels of workloads:
    "report-5, cache_entries=0"
    series.colours(runs)                                   a colour for each of these, as the column
                                                           ``colour``

``COLUMN`` as ``colour_by`` of a figure asks for these names in the place of a column of runs.
"""

import json

import pandas as pd

from kvstudy.analyse.configuration import CONFIGURATION, SERIES
from kvstudy.present import theme, words

COLUMN = "series"
CONNECTIONS = "connections"
_FIRST = ["workload", "experiment", "variant", "label", "data", "connections", "threads"]
_REST = [column for column in CONFIGURATION if column not in (*_FIRST, "offered_rate_rps")]
_MANY_IN_ONE = (
    "variant",
    "data",
    "service_options",
    "service_program",
    "subject",
    "profiler",
    "machine",
)  # columns of several names and values
_A_THREAD_EACH = 0


def names(runs: pd.DataFrame, along: str = "offered_rate_rps", said: tuple[str, ...] = ()) -> pd.Series:
    """The same text for configured runs that differ in ``along`` and the repeat alone, another for all
    others; index as ``runs``.

    ``said``: columns that the chart says elsewhere, as in the headings of its panels. Along connections a
    thread for each is no difference.
    """
    if runs.empty:
        return pd.Series([], index=runs.index, dtype=object)
    found = runs.reset_index(drop=True)
    if along == CONNECTIONS:
        found = found.assign(threads=_threads(found), connections=0)
    found = found.assign(name="")
    for column in (*_FIRST, *_REST):
        # Data and method follow the workload, so they tell apart only what is of one.
        within = (
            ["name"]
            if column in ("workload", "experiment", "variant", "label", "connections", "threads")
            else ["name", *said]
        )
        if column not in said:
            texts = differing(found, column, within)
            found["name"] = [
                ", ".join(filter(None, parts)) for parts in zip(found["name"], texts, strict=True)
            ]
    alone = (
        found["experiment"]
        if along == CONNECTIONS
        else pd.Series([words.value("connections", size) for size in found["connections"]], dtype=object)
    )
    found["name"] = found["name"].where(found["name"] != "", alone)
    return pd.Series(found["name"].tolist(), index=runs.index, dtype=object)


def colours(runs: pd.DataFrame) -> dict[str, str]:
    """``{name: colour}`` of the names in the column ``colour``: those of connections where these alone tell
    the lines apart, those of the theme's named values where all names are such, else one after the other."""
    known = sorted(runs["colour"].unique())
    sizes = dict(
        runs[["colour", "connections"]].drop_duplicates().sort_values("connections").itertuples(index=False)
    )
    if all(name == words.value("connections", size) for name, size in sizes.items()):
        hues = theme.colours("connections", sizes.values())
        return {name: hues[size] for name, size in sizes.items()}
    if set(known) <= theme.NAMED.keys():
        return theme.colours(COLUMN, known)
    return {name: theme.CATEGORIES[number % len(theme.CATEGORIES)] for number, name in enumerate(known)}


def differing(runs: pd.DataFrame, column: str, within: list[str]) -> pd.Series:
    """What ``column`` says of each run; "" where it says the same of all runs that are equal in
    ``within``."""
    texts = pd.Series("", index=runs.index, dtype=object)
    if runs[column].nunique(dropna=False) < 2:
        return texts
    for _, group in runs.groupby(within, sort=False):
        if group[column].nunique(dropna=False) > 1:
            texts[group.index] = _describe_values(column, group[column].tolist())
    return texts


def _threads(runs: pd.DataFrame) -> pd.Series:
    """Threads of each run, _A_THREAD_EACH where its series has as many as connections."""
    each = (
        (runs["threads"] == runs["connections"])
        .groupby([runs[column].astype(str) for column in SERIES])
        .transform("all")
    )
    return runs["threads"].mask(each, _A_THREAD_EACH)


def _describe_values(column: str, values: list) -> list[str]:
    if column in _MANY_IN_ONE:
        parts = [_parts(value) for value in values]
        differing = [
            name
            for name in dict.fromkeys(name for part in parts for name in part)
            if len({str(part.get(name)) for part in parts}) > 1
        ]
        texts = [[_part(column, name, part[name]) for name in differing if name in part] for part in parts]
        return [", ".join(part) or "default" for part in texts]
    if column == "threads":
        return [
            "a thread each" if value == _A_THREAD_EACH else words.value(column, value) for value in values
        ]
    if column in ("profiled", "processors_awake"):
        return [words.factor(column) if value else f"not {words.factor(column)}" for value in values]
    return [words.value(column, value) for value in values]


def _parts(value: str) -> dict:
    if value == "null":
        return {}
    return (
        json.loads(value)
        if value.startswith("{")
        else dict(part.partition("=")[::2] for part in value.split())
    )


def _part(column: str, name: str, value) -> str:
    if column == "variant":
        return f"{name}={value}"
    return (
        f"{words.factor(name)} {words.count(value) if name.endswith('_count') else words.value(name, value)}"
    )
