"""Rows of the parts that index.json lists: of one table, of the runs and the columns asked for, and of no
other.

    stored = Stored(root / "data/tidy")
    stored.frame("intervals", run_ids, ["run_id", "second", "p99_us"])

What was read last is kept, up to CACHE_BYTES, since the charts of a page ask for the same runs again and
again. Tables that were rebuilt meanwhile are followed: a run whose seal is as it was has the same rows in
another part.
"""

from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from threading import RLock

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kvstudy.analyse import schema
from kvstudy.analyse.tidy import part
from kvstudy.analyse.tidy.build import lacking, read_index
from kvstudy.errors import KvstudyError

CACHE_BYTES = 256 << 20
_ATTEMPTS = 3  # while another process replaces the parts


class Stored:
    """``folders``: run id → run folder; ``smoke``: the runs of the preset smoke. KvstudyError when tables
    were never built."""

    def __init__(self, tidy_root: Path):
        self.tidy_root = tidy_root
        self._cache: OrderedDict[tuple, pa.Table] = OrderedDict()
        self._cached_bytes = 0
        self._reading = RLock()  # a notebook's choosers ask from a thread of their own
        self._open()
        self._seals = {
            run_id: run["seal"] for content in self._parts.values() for run_id, run in content["runs"].items()
        }

    def frame(
        self, table: str, run_ids: Iterable[str] | None = None, columns: list[str] | None = None
    ) -> pd.DataFrame:
        """Rows of ``run_ids`` (None: of all that were there when this was opened) ordered by run, typed as
        kvstudy.analyse.schema says; ``columns`` None: all of them."""
        wanted = set(self._seals if run_ids is None else run_ids)
        with self._reading:
            rows = self._read(table, wanted, columns)
        # In one piece: of a column in many chunks Arrow puts all together whenever some of its rows are
        # taken.
        return schema.conform(table, rows.combine_chunks().to_pandas(), columns)

    def _read(self, table: str, wanted: set[str], columns: list[str] | None) -> pa.Table:
        for _ in range(_ATTEMPTS):
            try:
                return self._rows(table, wanted, columns)
            except FileNotFoundError:
                self._follow(wanted)
        raise self._lost()

    def dataset(self, table: str, run_ids: Iterable[str] | None = None) -> ds.Dataset:
        """Rows of these runs (None: of all) as they lie in their parts, for who filters by other columns or
        asks in SQL: nothing is read yet."""
        wanted = set(self._seals if run_ids is None else run_ids)
        held = {
            name: content["runs"].keys()
            for name, content in self._parts.items()
            if table in content["files"] and wanted & content["runs"].keys()
        }
        files = [str(self._file(name, table)) for name in held]
        found = ds.dataset(files, schema=schema.arrow_schema(table), format="parquet")
        if all(runs <= wanted for runs in held.values()):
            return found
        return found.filter(ds.field("run_id").isin(sorted(wanted)))

    def _open(self) -> None:
        for _ in range(_ATTEMPTS):
            index = read_index(self.tidy_root)
            if index is None:
                raise KvstudyError(f"no tables here: {self.tidy_root}", "run: kvstudy tables")
            try:
                self._parts = {name: part.manifest(self.tidy_root / name) for name in index["parts"]}
            except (OSError, ValueError):
                continue
            self.version = index["version"]
            without_rows = lacking(index)
            self.folders = {
                run_id: Path(path) for run_id, path in index["folders"].items() if run_id not in without_rows
            }
            self.smoke = {
                run_id
                for content in self._parts.values()
                for run_id, run in content["runs"].items()
                if run["smoke"]
            }
            return
        raise self._lost()

    def _follow(self, wanted: set[str]) -> None:
        """The parts of now, as long as they say the same of these runs."""
        before = self.version
        self._open()
        now = {
            run_id: run["seal"] for content in self._parts.values() for run_id, run in content["runs"].items()
        }
        if self.version != before or any(now.get(run_id) != self._seals.get(run_id) for run_id in wanted):
            raise KvstudyError(
                f"the tables were made anew since they were read: {self.tidy_root}",
                "read them again: in a notebook, restart and run all",
            )

    def _rows(self, table: str, wanted: set[str], columns: list[str] | None) -> pa.Table:
        read = None if columns is None else tuple(dict.fromkeys(["run_id", *columns]))
        parts, experiments = [], set()
        for name, content in self._parts.items():
            mine = wanted & content["runs"].keys()
            if mine and table in content["files"]:
                rows = self._part(name, table, read)
                whole = len(mine) == len(content["runs"])
                parts.append(
                    rows
                    if whole
                    else rows.filter(pc.is_in(rows["run_id"], pa.array(sorted(mine), pa.large_string())))
                )
                experiments.add(content["folder"])
        if not parts:
            return schema.arrow_schema(table).empty_table()
        rows = pa.concat_tables(parts)
        return rows if len(experiments) == 1 else rows.take(pc.sort_indices(rows["run_id"]))

    def _part(self, name: str, table: str, columns: tuple[str, ...] | None) -> pa.Table:
        key = (name, table, columns)
        if key not in self._cache:
            file = self._file(name, table)
            try:
                rows = part.read(file, table, columns)
            except FileNotFoundError:
                raise
            except part.DAMAGED as error:
                file.unlink(missing_ok=True)  # the next build sees that the part is not whole
                raise KvstudyError(
                    f"{file}: damaged: {str(error).splitlines()[0]}",
                    "run: kvstudy tables (it is made anew from its runs)",
                ) from error
            self._cache[key] = rows
            self._cached_bytes += rows.nbytes
        self._cache.move_to_end(key)
        while self._cached_bytes > CACHE_BYTES and len(self._cache) > 1:
            self._cached_bytes -= self._cache.popitem(last=False)[1].nbytes
        return self._cache[key]

    def _file(self, name: str, table: str) -> Path:
        return self.tidy_root / name / f"{table}.parquet"

    def _lost(self) -> KvstudyError:
        return KvstudyError(f"parts of the tables are missing: {self.tidy_root}", "run: kvstudy tables")
