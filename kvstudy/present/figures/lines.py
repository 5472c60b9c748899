"""Which panel, colour and dash a run's line has, so that no two lines of a chart look the same.

A chart says by what its lines are coloured and by what it is cut into panels. Runs can differ in more: in
what is left, the first of ``_TELLING`` that tells them apart. That becomes the dash of the line, and a legend
names it; where a chart has no dash left to give, or would need more of them than an eye tells apart, it
becomes panels too.
"""

import json
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from kvstudy.analyse.configuration import CONFIGURATION
from kvstudy.present import words

DASHES = ("solid", "dash", "dashdot", "longdash")
_FIRST = (
    "workload",
    "connections",
    "offered_rate_rps",
    "variant",
    "label",
    "generator",
    "experiment",
    "server",
    "threads",
    "data",
)
_TELLING = (*_FIRST, *(column for column in CONFIGURATION if column not in _FIRST))
_SAID_ANYWAY = ("workload", "connections", "offered_rate_rps")
_NUMBER = re.compile(r"\d+")
_YES_NO = {
    "processors_awake": ("processors asleep", "processors awake"),
    "profiled": ("not profiled", "profiled"),
}


def factors(panel_by: str | Sequence[str] | None) -> list[str]:
    """One column, several or none, as a list."""
    return [] if panel_by is None else [panel_by] if isinstance(panel_by, str) else list(panel_by)


def placed(
    runs: pd.DataFrame, colour_by: str, panel_by: Sequence[str], dashes: bool = True
) -> tuple[pd.DataFrame, int]:
    """Configured ``runs`` and how many panels stand abreast. New columns:

    panel     number of its panel, from 0; ``heading`` its text
    colour    value of ``colour_by``; "" where that is no column of runs
    dash      number of its dash, from 0; ``dash_text`` what it stands for, "" where there is but one
    hover_title  what the line is of, apart from its colour: "unique_put, 4 connections, 2 000 r/s"
    """
    known = runs.copy(deep=False)
    # A closed loop has no offered rate: it stands behind the highest one.
    for name in known.select_dtypes("float"):
        known[name] = known[name].fillna(np.inf)
    known["colour"] = known.get(colour_by, "")
    panels = [name for name in panel_by if name != colour_by]
    rest = _distinguishing_columns(known, ["colour", *panels])
    if not dashes or known[rest].drop_duplicates().shape[0] > len(DASHES):
        panels, rest = [*panels, *rest], []
    varied = [name for name in panels if known[name].nunique() > 1]
    said = [*panels, *rest, *(name for name in _SAID_ANYWAY if name not in (*panels, *rest, colour_by))]
    numbers = {name: _numbers(known, names) for name, names in (("panel", panels), ("dash", rest))}
    texts = {
        name: _texts(known, names)
        for name, names in (("heading", varied), ("dash_text", rest), ("hover_title", said))
    }
    return runs.assign(colour=known["colour"], **numbers, **texts), _abreast(known, varied)


def _distinguishing_columns(runs: pd.DataFrame, key: list[str]) -> list[str]:
    """The columns that tell apart configurations that are equal in ``key``."""
    key, found = list(key), []
    for name in _TELLING:
        groups = runs.groupby(key, dropna=False)
        if (groups["configuration"].transform("nunique") == 1).all():
            break
        if name not in key and (groups[name].transform("nunique") > 1).any():
            key.append(name)
            found.append(name)
    return found


def _abreast(runs: pd.DataFrame, varied: list[str]) -> int:
    """Three where the last of several factors has three values and every row of panels is full: a column is a
    value then; else two."""
    values = [runs[name].nunique() for name in varied]
    full = len(values) > 1 and len(runs[varied].drop_duplicates()) == np.prod(values)
    return 3 if full and values[-1] == 3 else 2


def _numbers(runs: pd.DataFrame, names: list[str]) -> pd.Series | int:
    return (
        runs.groupby([_in_order(runs[name]) for name in names], sort=True, dropna=False).ngroup()
        if names
        else 0
    )


def _in_order(values: pd.Series) -> pd.Series:
    """Texts in which numbers are sorted as numbers: value_bytes 100 before 9000."""
    texts = {
        value: _NUMBER.sub(lambda number: number[0].zfill(12), value)
        for value in values.unique()
        if isinstance(value, str)
    }
    return values.map(texts) if texts else values


def _texts(runs: pd.DataFrame, names: list[str]) -> list[str]:
    columns = [runs[name].map(_named(name, runs[name])) for name in names]
    return (
        [", ".join(dict.fromkeys(texts)) for texts in zip(*columns, strict=True)]
        if columns
        else [""] * len(runs)
    )


def _named(name: str, values: pd.Series) -> dict:
    """Every value of a column → its text; of a workload's sizes only those that differ."""
    known = list(values.unique())
    if name in ("data", "service_options", "service_program", "subject", "profiler", "machine"):
        parts = [json.loads(text) if text.startswith("{") else {} for text in known]
        differ = [
            key
            for key in dict.fromkeys(key for part in parts for key in part)
            if len({str(part.get(key)) for part in parts}) > 1
        ]
        return {
            text: " ".join(f"{key}={part[key]}" for key in differ if key in part) or "default"
            for text, part in zip(known, parts, strict=True)
        }
    if name in _YES_NO:
        return {value: _YES_NO[name][bool(value)] for value in known}
    return {value: words.value(name, value) for value in known}
