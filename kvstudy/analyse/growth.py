"""How the cost of a request grows with the work: with the records that are stored, with the data per byte of
memory, with the connections.

    growths()                     the three experiments, each with what its work is
    runs_with_work(tables, growth)        its latency runs, with ``work`` and ``line``
    points(tables, growth)        one row per run and measure
    at_each(tables, growth)       medians at each amount of work
    lines(tables, growth)         what is compared along the work
    steps(tables, growth)         claims of each line: the most work over the least
    compared(tables)              the most work against the least: a word for each measure; one family
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from kvstudy.analyse import percentile_grid
from kvstudy.analyse.claim import COMPARISON, Claim, Place
from kvstudy.analyse.comparison import families
from kvstudy.analyse.comparison.pairs import pair
from kvstudy.analyse.comparison.words import CANNOT_TELL, MIN_RUNS, TOO_FEW
from kvstudy.analyse.configuration import (
    COMPARISON_COLUMNS,
    CPU,
    RESOLUTION_US,
    comparisons,
    configured,
    why_not_repeats,
    with_words,
)
from kvstudy.analyse.medians import median
from kvstudy.analyse.tables import Tables
from kvstudy.plan.factors import MEMORY as GROUP
from kvstudy.units import parse_size_bytes

P99, MEMORY = "p99", "memory"
MEASURES = (P99, CPU, MEMORY)
PERCENTILES = (50.0, 99.0)
COLUMNS = ["growth", "line", "least", "most", *COMPARISON_COLUMNS]
AT_COLUMNS = ["line", "measure", "work", "value", "runs"]


@dataclass(frozen=True)
class Growth:
    """``work``: of each run, NaN where it has none; ``factor``: the column of configured runs in which two
    amounts of work differ, and what follows it alone; ``along``: all columns that differ with the work."""

    experiment: str
    name: str
    work: Callable[[pd.DataFrame], pd.Series]
    factor: str
    along: tuple[str, ...]


def growths() -> tuple[Growth, ...]:
    return (RECORDS, DATA, CONNECTIONS)


def growth_of(experiment: str) -> Growth:
    return next(one for one in growths() if one.experiment == experiment)


def _records(runs: pd.DataFrame) -> pd.Series:
    return _each(runs["fill"], lambda fill: float(fill["records"]))


def _bytes_by_memory(runs: pd.DataFrame) -> pd.Series:
    """Of keys and values, to those of the memory group; what the files take beyond depends on the store."""
    data = _each(runs["fill"], lambda fill: fill["records"] * float(fill["key_bytes"] + fill["value_bytes"]))
    return data / _each(runs["service_options"], lambda options: float(parse_size_bytes(options[GROUP])))


def _each(column: pd.Series, read: Callable[[dict], float]) -> pd.Series:
    """Of JSON objects; NaN where one has no such key."""

    def one(text: str) -> float:
        try:
            return read(json.loads(text))
        except (ValueError, KeyError, TypeError):
            return np.nan

    return pd.Series([one(text) for text in column], index=column.index, dtype="float64")


RECORDS = Growth("scale", "records in the store", _records, "data", ("data", "fill"))
DATA = Growth(
    "larger-than-memory",
    "bytes of records for each byte of memory",
    _bytes_by_memory,
    "variant",
    ("variant", "service_options"),
)
CONNECTIONS = Growth(
    "connections",
    "connections",
    lambda runs: runs["connections"].astype("float64"),
    "connections",
    ("connections", "threads", "pinning"),
)


def runs_with_work(tables: Tables, growth: Growth) -> pd.DataFrame:
    """Runs at a rate, configured; those without work left out. ``line``: what is the same along the work: the
    workload, and how its keys are drawn where that differs."""
    runs = tables.runs[(tables.runs["experiment"] == growth.experiment) & ~tables.runs["profiled"]]
    runs = configured(runs[~runs["closed_loop"]])
    runs = runs.assign(work=growth.work(runs), line=_line(runs))
    return runs[runs["work"] > 0]


def _line(runs: pd.DataFrame) -> pd.Series:
    drawn = [json.loads(text or "{}").get("distribution") or "" for text in runs["workload_args"]]
    differ = len(set(drawn)) > 1
    names = [
        f"{workload}, {keys}" if differ and keys else workload
        for workload, keys in zip(runs["workload"], drawn, strict=True)
    ]
    return pd.Series(names, index=runs.index, dtype=object)


def points(tables: Tables, growth: Growth) -> pd.DataFrame:
    """``runs_with_work`` once for each of MEASURES, with ``measure`` and ``value``, in us or bytes."""
    runs = runs_with_work(tables, growth)
    at = tables.columns("percentiles", "run_id", "latency_kind", "percentile", "latency_us")
    at = at[(at["latency_kind"] == "response") & percentile_grid.at(at["percentile"], 99.0)]
    p99 = runs["run_id"].map(at.set_index("run_id")["latency_us"])
    values = {P99: p99, CPU: runs["service_cpu_us_per_answer"], MEMORY: runs["service_rss_max_bytes"]}
    every = pd.concat(
        [runs.assign(measure=name, value=value) for name, value in values.items()], ignore_index=True
    )
    return every[every["value"] > 0]


def at_each(tables: Tables, growth: Growth) -> pd.DataFrame:
    """AT_COLUMNS: of each line, measure and amount of work the median of the valid runs; NaN where these are
    no repeats of one another."""
    rows = [
        (line, measure, work, np.nan if why_not_repeats(part) else median(part["value"]), len(part))
        for (line, measure, work), part in _valid(tables, growth).groupby(
            ["line", "measure", "work"], sort=False
        )
    ]
    frame = pd.DataFrame(rows, columns=AT_COLUMNS)
    return frame.sort_values("work", kind="stable", ignore_index=True)


@dataclass(frozen=True)
class Step:
    """From the ``least`` work of a ``line`` to the ``most`` that has valid runs. ``claims``: of each of
    MEASURES that was read there, the most over the least; without a number where the runs differ in more than
    the work, and ``why``. ``none_valid``: amounts of work beyond these, with how many runs were lost there:
    all of them."""

    line: str
    least: float
    most: float
    claims: tuple[Claim, ...]
    none_valid: tuple[tuple[float, int], ...] = ()


def steps(tables: Tables, growth: Growth) -> tuple[Step, ...]:
    """Of each line with two amounts of work, in the words of ``compared``; memory has none: it is no cost of
    a request."""
    valid = _valid(tables, growth)
    found = []
    for line, (least, most), runs in lines(tables, growth):
        claims = []
        for measure, part in valid[valid["line"] == line].groupby("measure", sort=False):
            ends = [part[part["work"] == work] for work in (least, most)]
            if all(map(len, ends)):
                claims.append(_step(tables, growth, line, measure, ends))
        lost = runs.loc[~runs["work"].between(least, most), "work"].value_counts().sort_index()
        if claims:
            found.append(Step(line, least, most, tuple(claims), tuple(lost.items())))
    return tuple(found)


def lines(tables: Tables, growth: Growth) -> list[tuple[str, tuple[float, float], pd.DataFrame]]:
    """Each line with two amounts of work that have valid runs: the least and the most of these, and all its
    runs."""
    found = []
    for line, runs in runs_with_work(tables, growth).groupby("line", sort=False):
        works = runs.loc[runs["verdict"] != "FAIL", "work"]
        if works.nunique() > 1:
            found.append((line, (works.min(), works.max()), runs))
    return found


def _step(tables: Tables, growth: Growth, line: str, measure: str, ends: list[pd.DataFrame]) -> Claim:
    whys = [why_not_repeats(pd.concat(ends), growth.along), *map(why_not_repeats, ends)]
    why = next(filter(None, whys), "")
    claim = Claim(
        Place(line, experiment=growth.experiment),
        measure,
        "ratio",
        np.nan,
        runs=sum(map(len, ends)),
        rule=COMPARISON,
        sides=(len(ends[0]), len(ends[1])),
        word=CANNOT_TELL,
        why=why,
    )
    if why:
        return claim
    resolution = RESOLUTION_US if measure == P99 else 0.0
    found = pair(ends[0]["value"], ends[1]["value"], resolution=resolution)
    rows = tables.cached(compared)
    rows = rows[(rows["growth"] == growth.experiment) & (rows["line"] == line) & (rows["measure"] == measure)]
    said = next(rows.itertuples()) if len(rows) == 1 else None
    few = min(claim.sides) < MIN_RUNS
    return replace(
        claim,
        estimate=found.ratio,
        interval=None if few else (found.low, found.high),
        ends=(median(ends[0]["value"]), median(ends[1]["value"])),
        word=said.word if said else CANNOT_TELL if few or measure != MEMORY else "",
        why=said.why if said else TOO_FEW if few else "",
        within_percent=100 * said.same_within if said else None,
    )


def _valid(tables: Tables, growth: Growth) -> pd.DataFrame:
    found = points(tables, growth)
    return found[found["verdict"] != "FAIL"]


def compared(tables: Tables) -> pd.DataFrame:
    """COLUMNS, of all growths that were measured; ``before`` is the least work of which runs are valid,
    ``after`` the most."""
    parts = []
    for growth in growths():
        for line, (least, most), mine in lines(tables, growth):
            rows = between(tables, growth, mine, least, most)
            parts.append(rows.assign(growth=growth.experiment, line=line, least=least, most=most))
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    return with_words(pd.concat(parts, ignore_index=True), families.OWN_PAGE * tables.part)[COLUMNS]


def between(
    tables: Tables,
    growth: Growth,
    runs: pd.DataFrame,
    least: float,
    most: float,
    percentiles: tuple[float, ...] = PERCENTILES,
    cpu: bool = True,
) -> pd.DataFrame:
    """Rows of ``comparisons`` without a word: of ``runs``, those with the ``most`` work against those with
    the ``least``."""
    ends = runs[runs["work"].isin([least, most])]
    sides = [ends.loc[ends["work"] == work, growth.factor].iloc[0] for work in (least, most)]
    return comparisons(tables.only(ends["run_id"]), growth.factor, *sides, percentiles, cpu=cpu, share=None)
