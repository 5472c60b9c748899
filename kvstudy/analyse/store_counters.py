"""What the store counted in a run, second by second: how many tables it had, how large they were, and
how long writers were stalled.

    counters = store_counters.read_run(tables, run_id)     None where the run recorded none
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from kvstudy.analyse.tables import Tables
from kvstudy.errors import KvstudyError
from kvstudy.record import process_series
from kvstudy.record.run_folder import open_run

FILE = "store.csv"
COUNTS = ("tables", "level0_runs", "frozen_memtables")
SIZES = ("table_bytes", "memtable_bytes")
_STALLED = "_stall_time_ms"  # by cause: frozen_memtables, level0_slowdown, level0_stop
_WORK = ("flushes", "compactions")


@dataclass(frozen=True)
class StoreCounters:
    """``rows``: one per reading, by ``at_s`` from the start of the measured window; columns COUNTS, SIZES and
    flushes and compactions until then. ``stalls``: one per pair of neighbouring readings and cause that
    stalled at all: ``at_s`` in their middle, ``cause``, ``share`` of the time between them, above 1 where
    several writers waited at once, and ``stalled_ms``."""

    rows: pd.DataFrame
    stalls: pd.DataFrame


def read_run(tables: Tables, run_id: str) -> StoreCounters | None:
    """Of a run whose counters are those of our store."""
    folder = tables.folders.get(run_id)
    run = open_run(folder) if folder else None
    if run is None or not run.has(FILE):
        return None
    try:
        rows = pd.DataFrame(process_series.read(run.text(FILE), FILE))
    except KvstudyError:  # the run's check "readable" says of every file why
        return None
    if len(rows) < 2 or not {"at_s", *COUNTS, *SIZES, *_WORK} <= set(rows.columns):
        return None
    return StoreCounters(rows[["at_s", *COUNTS, *SIZES, *_WORK]], _stalls(rows))


def _stalls(rows: pd.DataFrame) -> pd.DataFrame:
    at_s = rows["at_s"].to_numpy()
    apart_s = np.maximum(np.diff(at_s), 1e-3)
    parts = []
    for column in rows.columns:
        if column.endswith(_STALLED) and (stalled_ms := np.diff(rows[column].to_numpy())).any():
            parts.append(
                pd.DataFrame(
                    {
                        "at_s": (at_s[1:] + at_s[:-1]) / 2,
                        "cause": column.removesuffix(_STALLED),
                        "share": stalled_ms / 1000 / apart_s,
                        "stalled_ms": stalled_ms,
                    }
                )
            )
    empty = pd.DataFrame({"at_s": [], "cause": [], "share": [], "stalled_ms": []})
    return pd.concat(parts, ignore_index=True) if parts else empty
