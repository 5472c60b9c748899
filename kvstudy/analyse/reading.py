"""Sealed runs → their rows.

    for tables in observed(runs, progress=True): …      table name → Arrow table, of up to BATCH_RUNS runs, in the order of ``runs``
"""

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa
from tqdm.auto import tqdm

from kvstudy.analyse import schema
from kvstudy.analyse.observation import observe
from kvstudy.record.run_folder import SealedRun

BATCH_RUNS = 50  # rows of so many runs are turned into Arrow at a time: bounds the Python objects alive


def observed(runs: list[SealedRun], progress: bool) -> Iterator[dict[str, pa.Table]]:
    """Raises what ``observe`` raises."""
    parts: dict[str, list[list[dict] | dict]] = {name: [] for name in schema.TABLES}
    for number, run in enumerate(tqdm(runs, "reading runs", unit="run", delay=2, disable=not progress), start=1):
        for name, of_run in observe(run).items():
            parts[name].append(of_run)
        if number % BATCH_RUNS == 0 or number == len(runs):
            yield {name: _arrow(parts[name], schema.arrow_schema(name)) for name in schema.TABLES}
            parts = {name: [] for name in schema.TABLES}


def _arrow(parts: list[list[dict] | dict], columns: pa.Schema) -> pa.Table:
    """One table of what ``observe`` has of several runs: of each its rows, or its columns."""
    if isinstance(parts[0], dict):
        return pa.concat_tables([pa.Table.from_pydict(of_run, schema=columns) for of_run in parts])
    return pa.Table.from_pylist(list(chain.from_iterable(parts)), schema=columns)
