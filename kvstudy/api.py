"""The tables of the study as pandas DataFrames, for who explores them: docs/api.md.

    kvstudy.runs(experiment="reproduce", method="PUT")            runs whose columns have these values
    kvstudy.percentiles(workload="put", percentile=[50, 99])      a table's own columns select rows
    kvstudy.runs(source="reference")                              the committed runs, whatever was measured
    kvstudy.load("/tmp/from-a-colleague")                         run folders from anywhere

A keyword names a column of the table, or of ``runs``; its value is one value or a list of them, and None
leaves the column free. A value that no row has is refused with the nearest that there is; values that no row
has together select an empty frame. Every call returns a frame of its own, which its caller may change. Rows
are read when they are asked for, and read again only when runs came or went.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from numbers import Real

import pandas as pd
import pyarrow.dataset as ds
from hdrh.histogram import HdrHistogram

from kvstudy import workers
from kvstudy.analyse import schema, tables
from kvstudy.analyse.run_files import load
from kvstudy.analyse.tables import (
    EVERYTHING,
    OWN_ALONE,
    OWN_THEN_REFERENCE,
    REFERENCE_ALONE,
    Tables,
    is_several,
)
from kvstudy.errors import KvstudyError, one_line
from kvstudy.project import EXPORT_VARIABLE, project_root, workloads_root

__all__ = [
    "columns",
    "dataset",
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
MISSING = (float("nan"), pd.NA)  # of either a column has one kind
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
    """One row per run, interval of the measured window and latency kind. The histograms, by far the largest
    column, only where ``columns`` names them: ``kvstudy.histogram`` reads and joins them."""
    if columns is None:
        columns = [name for name in schema.names("intervals") if name != "histogram"]
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
    _check_table(table)
    return pd.DataFrame(
        [(one.name, one.dtype, one.meaning) for one in schema.TABLES[table]],
        columns=["column", "type", "meaning"],
    )


def dataset(table: str, source: str = "study", **selection: object) -> ds.Dataset:
    """``table`` as a pyarrow Dataset, of the runs whose columns have these values. Nothing is read until rows
    are asked for, and then only the columns and rows that are: for more than fits into memory, and for who
    asks in SQL. KvstudyError for an unknown table or column, and for a value that no run has."""
    _check_table(table)
    wanted = _wanted(selection)
    _check_columns(wanted, schema.names("runs"))
    whole = _study("all" if "run_id" in wanted and source == "study" else source)
    for column, values in wanted.items():
        _check_values(column, values, whole.runs[column])
    return whole.select(**wanted).dataset(table)


def histogram(
    run_id: str,
    latency_kind: str = "response",
    start_s: float | None = None,
    stop_s: float | None = None,
    of: Tables | None = None,
) -> HdrHistogram:
    """Every latency of one run, in microseconds: the histograms of its intervals, added up, from ``start_s``
    to ``stop_s`` of the measured window (None: its begin, its end). ``of``: what ``kvstudy.load`` returned.

    Intervals are whole: one counts when it begins in that time. KvstudyError for an unknown run, and for one
    without such histograms.
    """
    if not (of is None or isinstance(of, Tables)):
        raise KvstudyError(f"not tables: of={one_line(of)}", "give what kvstudy.load returned")
    found = _study("all") if of is None else of
    if not isinstance(run_id, str):
        raise KvstudyError(f"no such run: {one_line(run_id)}", "name one run by its run_id")
    if run_id not in set(found.runs["run_id"]):
        raise KvstudyError(f"no such run: {run_id}", schema.nearest(str(run_id), found.runs["run_id"]))
    for name, value in (("start_s", start_s), ("stop_s", stop_s)):
        if not (value is None or isinstance(value, Real)):
            raise KvstudyError(f"not a time: {name}={value!r}", "a number of seconds, or None")
    rows = found.only([run_id]).intervals
    rows = rows[rows["latency_kind"] == str(latency_kind)]
    if rows.empty:
        raise KvstudyError(
            f"no histogram of this run: run_id={run_id} latency_kind={latency_kind}",
            "wrk and wrk2 write none; loadgen writes response, service and lateness",
        )
    begin, end = rows["start_s"].min(), rows["start_s"].max() + rows["length_s"].max()
    first = begin if start_s is None else start_s
    stop = end if stop_s is None else stop_s
    within = rows[(rows["start_s"] >= first) & (rows["start_s"] < stop)]
    if within.empty:
        raise KvstudyError(
            f"no second of this run: start_s={first:g} stop_s={stop:g}"
            if rows["length_s"].max() >= 1
            else f"no interval of this run: start_s={first:g} stop_s={stop:g}",
            f"it has those from {begin:g} to {end:g} s, of {rows['length_s'].max():g} s each",
        )
    whole, *rest = (HdrHistogram.decode(text) for text in within["histogram"])
    for one in rest:
        whole.add(one)
    return whole


def _table(name: str, source: str, columns: list[str] | None, selection: dict[str, object]) -> pd.DataFrame:
    wanted = _wanted(selection)
    columns = None if columns is None else _listed(columns)
    own = set(schema.names(name))
    _check_columns(wanted, [*schema.names(name), *schema.names("runs")])
    _check_columns(columns or [], schema.names(name))
    of_rows = {column for column in wanted if column in own and column != "run_id" and name != "runs"}
    whole = _study("all" if "run_id" in wanted and source == "study" else source)
    of_runs = {column: values for column, values in wanted.items() if column not in of_rows}
    for column, values in of_runs.items():
        _check_values(column, values, whole.runs[column])
    found = whole.select(**of_runs) if of_runs else whole
    shown = list(schema.names(name)) if columns is None else columns
    read = list(dict.fromkeys([*shown, *sorted(of_rows)])) or ["run_id"]  # without columns there are rows
    rows = found.columns(name, *read)
    for column in sorted(of_rows):
        # Rows of other runs are read only where these do not answer.
        if missing := _missing(wanted[column], rows[column]):
            _check_values(column, missing, whole.columns(name, column)[column])
        rows = rows[rows[column].isin(wanted[column])]
    return rows[shown].reset_index(drop=True).copy()


def _check_table(table: str) -> None:
    if not _is_one_of(table, schema.TABLES):
        raise KvstudyError(f"no such table: {table}", f"tables: {', '.join(schema.TABLES)}")


def _check_columns(asked: Iterable[str], known: Collection[str]) -> None:
    for column in asked:
        if not _is_one_of(column, known):
            raise KvstudyError(f"no such column: {column}", schema.nearest(str(column), known))


def _missing(values: list, column: pd.Series) -> list:
    """Those that no row has; NaN and NA, which say that there is no value, are none."""
    there = set(column.dropna().unique())
    return [value for value in values if not (_is_missing(value) or value in there)]


def _check_values(column: str, values: list, known: pd.Series) -> None:
    """KvstudyError for a value that none of all rows has, and none could have, with the nearest that there
    is. Where there are no rows nobody knows, unless the column has names of its own."""
    if known.empty and column not in schema.ENUMERATED:
        return
    possible = {True, False} if known.dtype == bool else _possible(column)
    for value in _missing(values, known):
        if value not in possible:
            raise KvstudyError(
                f"no row has this value: {column}={value!r}",
                _nearest(value, sorted(set(known.dropna().unique()) | possible)),
            )


def _possible(column: str) -> set:
    """What stands in a file, and may not be measured yet, among it."""
    root = project_root()
    files = {
        "experiment": (root / "experiments").glob("*.yaml"),
        "workload": workloads_root(root).glob("*.lua"),
    }
    return {*schema.POSSIBLE.get(column, ()), *(path.stem for path in files.get(column, ()))}


def _nearest(value: object, known: list) -> str:
    """``known``: sorted."""
    if known and all(isinstance(one, Real) for one in [value, *known]):
        within = max(known[0], min(value, known[-1]))  # of infinity every difference is as large
        return f"the nearest is {min(known, key=lambda one: abs(one - within)):.10g}"
    texts = [f"{one:.10g}" if isinstance(one, float) else str(one) for one in known]
    return schema.nearest(str(value), texts)


def _study(source: str) -> Tables:
    if not _is_one_of(source, SOURCES):
        raise KvstudyError(f"no such source: {source}", f"sources: {', '.join(SOURCES)}")
    return tables.study_tables(
        spread=workers.processes, progress=EXPORT_VARIABLE not in os.environ, places=SOURCES[source]
    )


def _listed(value: object) -> list:
    return list(value) if is_several(value) else [value]


def _wanted(selection: dict[str, object]) -> dict[str, list]:
    """Column → values; KvstudyError for one that no cell can hold, and for a whole frame or mapping, whose
    names are not meant."""
    for column, value in selection.items():
        if isinstance(value, pd.DataFrame | Mapping):
            raise KvstudyError(
                f"not a value of a column: {column}={one_line(value)}",
                f'of a frame name its column: {column}=frame["{column}"]',
            )
    wanted = {column: _listed(value) for column, value in selection.items() if value is not None}
    for column, values in wanted.items():
        for value in values:
            if not _is_one_value(value):
                raise KvstudyError(
                    f"not a value of a column: {column}={value!r}", "name one value, or a list of them"
                )
        if any(map(_is_missing, values)):
            wanted[column] = [*values, *MISSING]
    return wanted


def _is_one_value(value: object) -> bool:
    try:
        return hash(value) is not None
    except TypeError:
        return False


def _is_missing(value: object) -> bool:
    return value is pd.NA or value != value


def _is_one_of(value: object, names: Collection[str]) -> bool:
    """Whether a caller's argument, which may be of any type, is one of these names."""
    return isinstance(value, str) and value in names
