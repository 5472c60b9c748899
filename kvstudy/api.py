"""The tables of the study as pandas DataFrames, for who explores them: docs/api.md.

    kvstudy.runs(experiment="reproduce", method="PUT")            runs whose columns have these values
    kvstudy.percentiles(workload="put", percentile=[50, 99])      a table's own columns select rows
    kvstudy.runs(source="reference")                              the committed runs, whatever was measured
    kvstudy.load("/tmp/from-a-colleague")                         run folders from anywhere

A keyword names a column of the table, or of ``runs``; its value is one value or a list of them, and None
leaves the column free. Every call returns a frame of its own, which its caller may change. Rows are read
when they are asked for, and read again only when runs came or went.
"""

import os
from collections.abc import Iterable

import pandas as pd
from hdrh.histogram import HdrHistogram

from kvstudy import workers
from kvstudy.analyse import schema, tables
from kvstudy.analyse.run_files import load
from kvstudy.analyse.tables import EVERYTHING, OWN_ALONE, OWN_THEN_REFERENCE, REFERENCE_ALONE, Tables
from kvstudy.errors import KvstudyError
from kvstudy.project import EXPORT_VARIABLE

__all__ = [
    "columns",
    "events",
    "histogram",
    "intervals",
    "load",
    "percentiles",
    "runs",
    "slowest",
    "stacks",
    "validity",
]
SOURCES = {
    "study": OWN_THEN_REFERENCE,
    "own": OWN_ALONE,
    "reference": REFERENCE_ALONE,
    "all": EVERYTHING,
}


def runs(source: str = "study", columns: list[str] | None = None, **selection: object) -> pd.DataFrame:
    """One row per sealed run. ``source``: study (of each experiment one's own runs, or else the reference's),
    own, reference or all; ``columns``: these alone."""
    return _table("runs", source, columns, selection)


def percentiles(source: str = "study", columns: list[str] | None = None, **selection: object) -> pd.DataFrame:
    """One row per run, latency kind and percentile."""
    return _table("percentiles", source, columns, selection)


def intervals(source: str = "study", columns: list[str] | None = None, **selection: object) -> pd.DataFrame:
    """One row per run, second of the measured window and latency kind. The histograms, by far the largest
    column, only where ``columns`` names them: ``kvstudy.histogram`` reads and joins them."""
    columns = columns or [name for name in schema.names("intervals") if name != "histogram"]
    return _table("intervals", source, columns, selection)


def slowest(source: str = "study", columns: list[str] | None = None, **selection: object) -> pd.DataFrame:
    """One row per run and each of its slowest answers."""
    return _table("slowest", source, columns, selection)


def stacks(source: str = "study", columns: list[str] | None = None, **selection: object) -> pd.DataFrame:
    """One row per profiled run, profiler event and distinct stack."""
    return _table("stacks", source, columns, selection)


def events(source: str = "study", columns: list[str] | None = None, **selection: object) -> pd.DataFrame:
    """One row per run and GC pause, safepoint, flush, compaction, stall or sync of the log."""
    return _table("events", source, columns, selection)


def validity(source: str = "study", columns: list[str] | None = None, **selection: object) -> pd.DataFrame:
    """One row per run and check of its validity."""
    return _table("validity", source, columns, selection)


def columns(table: str) -> pd.DataFrame:
    """Name, type and meaning of every column of ``table``."""
    if table not in schema.TABLES:
        raise KvstudyError(f"no such table: {table}", f"tables: {', '.join(schema.TABLES)}")
    return pd.DataFrame(
        [(one.name, one.dtype, one.meaning) for one in schema.TABLES[table]],
        columns=["column", "type", "meaning"],
    )


def histogram(
    run_id: str,
    latency_kind: str = "response",
    start_s: float | None = None,
    stop_s: float | None = None,
    of: Tables | None = None,
) -> HdrHistogram:
    """Every latency of one run, in microseconds: the histograms of its seconds, added up, from ``start_s``
    to ``stop_s`` of the measured window (None: its begin, its end). ``of``: what ``kvstudy.load`` returned.

    Seconds are whole: one counts when it begins in that time. KvstudyError for an unknown run, and for one
    without such histograms.
    """
    found = _study("all") if of is None else of
    if run_id not in set(found.runs["run_id"]):
        raise KvstudyError(f"no such run: {run_id}", schema.nearest(str(run_id), found.runs["run_id"]))
    seconds = found.only([run_id]).intervals
    seconds = seconds[seconds["latency_kind"] == latency_kind]
    if seconds.empty:
        raise KvstudyError(
            f"no histogram of this run: run_id={run_id} latency_kind={latency_kind}",
            "wrk and wrk2 write none; loadgen writes response, service and lateness",
        )
    first = seconds["second"].min() if start_s is None else start_s
    stop = seconds["second"].max() + 1 if stop_s is None else stop_s
    within = seconds[(seconds["second"] >= first) & (seconds["second"] < stop)]
    if within.empty:
        raise KvstudyError(
            f"no second of this run: start_s={first} stop_s={stop}",
            f"it has the seconds {seconds['second'].min()} to {seconds['second'].max()}",
        )
    whole, *rest = (HdrHistogram.decode(text) for text in within["histogram"])
    for one in rest:
        whole.add(one)
    return whole


def _table(name: str, source: str, columns: list[str] | None, selection: dict[str, object]) -> pd.DataFrame:
    wanted = {column: value for column, value in selection.items() if value is not None}
    columns = None if columns is None else _listed(columns)
    own = set(schema.names(name))
    for column in [*wanted, *(columns or [])]:
        if column not in own and (column not in schema.names("runs") or column not in wanted):
            raise KvstudyError(
                f"no such column: {column}",
                schema.nearest(column, [*schema.names(name), *schema.names("runs")]),
            )
    of_rows = {column for column in wanted if column in own and column != "run_id" and name != "runs"}
    found = _study("all" if "run_id" in wanted and source == "study" else source)
    of_runs = {column: _listed(value) for column, value in wanted.items() if column not in of_rows}
    found = found.select(**of_runs) if of_runs else found
    read = list(dict.fromkeys([*columns, *sorted(of_rows)])) if columns else list(schema.names(name))
    rows = found.columns(name, *read)
    for column in of_rows:
        rows = rows[rows[column].isin(_listed(wanted[column]))]
    return rows[columns or read].reset_index(drop=True).copy()


def _study(source: str) -> Tables:
    if source not in SOURCES:
        raise KvstudyError(f"no such source: {source}", f"sources: {', '.join(SOURCES)}")
    return tables.study_tables(
        spread=workers.processes, progress=EXPORT_VARIABLE not in os.environ, places=SOURCES[source]
    )


def _listed(value: object) -> list:
    return [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
