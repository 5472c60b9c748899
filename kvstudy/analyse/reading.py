"""Sealed runs → their rows, read by as many processes as there are cores where there are many.

    for tables in observed(runs, progress=True): …      table name → Arrow table, of up to BATCH_RUNS runs, in the order of ``runs``

The readers are processes of their own, since what takes the time is Python. They ignore Ctrl-C, which their creator sees and answers by
ending them, and die with it.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context

import pyarrow as pa
from tqdm.auto import tqdm

from kvstudy.analyse import schema
from kvstudy.analyse.observation import observe
from kvstudy.record.run_folder import SealedRun

BATCH_RUNS = 25  # rows of so many runs are turned into Arrow at a time: bounds the Python objects alive
PARALLEL_RUNS_MIN = 150  # fewer are read before a second process has started
READERS_MAX = 8  # each takes some 150 MiB
_PR_SET_PDEATHSIG = 1


def observed(runs: list[SealedRun], progress: bool) -> Iterator[dict[str, pa.Table]]:
    """Raises what ``observe`` raises, whichever process it happened in."""
    batches = [runs[at : at + BATCH_RUNS] for at in range(0, len(runs), BATCH_RUNS)]
    with tqdm(total=len(runs), desc="reading runs", unit="run", delay=2, disable=not progress) as bar:
        for batch, tables in zip(batches, _read_all(batches, len(runs)), strict=True):
            bar.update(len(batch))
            yield tables


def readers(runs: int) -> int:
    """How many processes read so many runs; 1 is this one."""
    return 1 if runs < PARALLEL_RUNS_MIN else min(READERS_MAX, len(os.sched_getaffinity(0)))


def _read_all(batches: list[list[SealedRun]], runs: int) -> Iterator[dict[str, pa.Table]]:
    if readers(runs) == 1:
        yield from map(_read, batches)
        return
    # Not forked: a notebook's kernel has threads, and a fork of it their locks.
    with ProcessPoolExecutor(readers(runs), mp_context=get_context("spawn"), initializer=_begin_reader) as pool:
        yield from pool.map(_read, batches)


def _read(batch: list[SealedRun]) -> dict[str, pa.Table]:
    parts: dict[str, list[list[dict] | dict]] = {name: [] for name in schema.TABLES}
    for run in batch:
        for name, of_run in observe(run).items():
            parts[name].append(of_run)
    return {name: _arrow(parts[name], schema.arrow_schema(name)) for name in schema.TABLES}


def _arrow(parts: list[list[dict] | dict], columns: pa.Schema) -> pa.Table:
    """One table of what ``observe`` has of several runs: of each its rows, or its columns."""
    if isinstance(parts[0], dict):
        return pa.concat_tables([pa.Table.from_pydict(of_run, schema=columns) for of_run in parts])
    return pa.Table.from_pylist(list(chain.from_iterable(parts)), schema=columns)


def _begin_reader() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
