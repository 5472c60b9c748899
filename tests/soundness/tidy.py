"""Made-up tidy tables for simulations: runs that are alike in everything that the simulation does not say.

    tables(runs={"run_id": […], "label": […]}, percentiles={"run_id": […], "latency_us": […]})
                                      the entry of every page takes these
    p99(run_ids, latencies_us)        columns of percentiles

So a simulation counts the words that a page would say, and not only what a rule says of numbers.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from kvstudy.analyse import schema
from kvstudy.analyse.tables import Tables

_ZERO = {schema.TEXT: "", schema.REAL: 1.0, schema.FLAG: False, schema.WHOLE: 0, schema.COUNT: 0}
_USUAL = {
    "verdict": "PASS",
    "same_within": 0.05,
    "attributes": "{}",
    "workload_args": "{}",
    "service_options": "{}",
    "generator": "loadgen",
    "start_utc": "2026-11-23T12:00:00.000Z",
    "latency_kind": "response",
    "sample_count": 10_000,
}
_EMPTY = {name: schema.empty(name) for name in schema.TABLES}


def tables(**of: dict[str, Sequence]) -> Tables:
    """Table name → columns, all of one length. A column that is not given is the same in every row."""
    return Tables(**{**_EMPTY, **{name: _frame(name, columns) for name, columns in of.items()}})


def p99(run_ids: Sequence[str], latencies_us: Sequence[float]) -> dict[str, Sequence]:
    return {"run_id": run_ids, "percentile": np.full(len(run_ids), 99.0), "latency_us": latencies_us}


def _frame(name: str, columns: dict[str, Sequence]) -> pd.DataFrame:
    length = len(next(iter(columns.values())))
    rows = {
        column.name: columns.get(column.name, [_USUAL.get(column.name, _ZERO[column.dtype])] * length)
        for column in schema.TABLES[name]
    }
    return pd.DataFrame(rows)
