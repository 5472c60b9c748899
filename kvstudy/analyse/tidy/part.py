"""One part of the tables: the rows of one batch of runs.

    make(Task(batch, tidy_root, version, known))     writes the part, from ``known`` parts where they hold a
                                                     run, else from its folder
    whole(folder)                                    its part.json, or None when the part is not there as it
                                                     was written

``make`` needs nothing but its task and the files that this names, so any process may do it that sees them.
Two that make the same part at once write the same bytes; the second finds the name taken and drops its own.
"""

import hashlib
import json
import shutil
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kvstudy.analyse import schema
from kvstudy.analyse.duet_observation import observe_duet
from kvstudy.analyse.evidence import why_unreadable
from kvstudy.analyse.observation import observe
from kvstudy.analyse.tidy.batches import Batch, Source, part_name
from kvstudy.analyse.tidy.seals import seal_of
from kvstudy.analyse.tidy.version import code_version
from kvstudy.analyse.validity import FAIL
from kvstudy.errors import KvstudyError
from kvstudy.record.duet import is_duet
from kvstudy.record.run_folder import SealedRun

MANIFEST = "part.json"
UNFINISHED = ".new"
DAMAGED = (
    OSError,
    pa.ArrowException,
)  # what Arrow raises for a file that is not, or no longer, what was written
_ROW_GROUP_ROWS = 100_000


@dataclass(frozen=True)
class Task:
    """A part to make. ``known``: run id → folder of a part of the same version that holds this run under the
    same seal."""

    batch: Batch
    tidy_root: Path
    version: str
    known: dict[str, Path] = field(default_factory=dict)

    @property
    def fresh_runs(self) -> int:
        """How many run folders have to be read."""
        return len(self.batch.runs) - len(self.known)


def make(task: Task) -> Task:
    """Writes the part of ``task``, and returns it with the seals of its runs as they were found: of those
    that are read every file is looked at. KvstudyError when this process runs other code than who asks for
    it."""
    if task.version != code_version():
        raise KvstudyError(
            f"other code here than where the tables are asked for: version={code_version()} "
            f"asked={task.version}",
            "install the same revision of kvstudy, and the same libraries, in both places",
        )
    folder = task.tidy_root / task.batch.part_name(task.version)
    new = folder.with_name(f".{folder.name}.{uuid4().hex[:8]}{UNFINISHED}")
    new.mkdir(parents=True)
    try:
        tables, fresh, unread = _rows(task)
        files = {name: _written(new / f"{name}.parquet", rows) for name, rows in tables.items() if len(rows)}
        unreadable = _unreadable(tables) | unread.keys()
        batch = task.batch.sealed_as(
            {run.run_id: seal_of(run.path) for run in fresh if run.run_id in unreadable}
        )
        runs = {run.run_id: {"seal": run.seal, "smoke": SealedRun(run.path).is_smoke} for run in batch.runs}
        content = {
            "version": task.version,
            "folder": batch.folder,
            "runs": runs,
            "unread": unread,
            "files": files,
        }
        (new / MANIFEST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        _name(new, task.tidy_root / batch.part_name(task.version))
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return replace(task, batch=batch)


def adopt(new: Path, task: Task) -> Task:
    """Takes the part of ``task`` from ``new``, where it came from another machine, and returns it as ``make``
    does. KvstudyError when it is not what was written there."""
    content = manifest(new)
    for name, known in content["files"].items():
        if _digest(new / f"{name}.parquet") != known["sha256"]:
            raise KvstudyError(f"part of the tables came damaged: {task.batch.folder}: {name}", "try again")
    (new / MANIFEST).write_text((new / MANIFEST).read_text(encoding="utf-8"), encoding="utf-8")  # the newest
    batch = task.batch.sealed_as({run_id: run["seal"] for run_id, run in content["runs"].items()})
    folder = task.tidy_root / batch.part_name(task.version)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _name(new, folder)
    return replace(task, batch=batch)


def manifest(folder: Path) -> dict:
    """The content of part.json; OSError or ValueError when there is none."""
    return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))


def whole(folder: Path) -> dict | None:
    """The manifest of a part all of whose files are as they were written. A file that was touched since is
    read and compared; of the others the size is looked at, and what a disk does to them in silence is found
    by the checksums of their pages when they are read."""
    try:
        content = manifest(folder)
        seals = {run_id: run["seal"] for run_id, run in content["runs"].items()}
        written_ns = (folder / MANIFEST).stat().st_ctime_ns
        same = all(
            _unchanged(folder / f"{name}.parquet", known, written_ns)
            for name, known in content["files"].items()
        )
        named = f"{folder.parent.name}/{folder.name}" == part_name(
            content["version"], content["folder"], seals
        )
        return content if same and named else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def read(file: Path, table: str, columns: tuple[str, ...] | None = None) -> pa.Table:
    """One of DAMAGED when the file is not what was written."""
    wanted = schema.arrow_schema(table)
    wanted = wanted if columns is None else pa.schema([wanted.field(name) for name in columns])
    return pq.ParquetFile(file, page_checksum_verification=True).read(columns=wanted.names).cast(wanted)


def _unchanged(file: Path, known: dict, written_ns: int) -> bool:
    stat = file.stat()
    return stat.st_size == known["bytes"] and (
        stat.st_ctime_ns <= written_ns or _digest(file) == known["sha256"]
    )


def _rows(task: Task) -> tuple[dict[str, pa.Table], list[Source], dict[str, str]]:
    """Table → rows, ordered by run, and within one as it was read (Arrow's sort is stable); the runs that
    were read; and run id → why of those that have no rows, since what they say is nothing that a run says."""
    parts: dict[str, list[pa.Table]] = {
        name: [schema.arrow_schema(name).empty_table()] for name in schema.ALL_TABLES
    }
    fresh = [run for run in task.batch.runs if run.run_id not in task.known]
    holders = defaultdict(list)
    for run in task.batch.runs:
        if run.run_id in task.known:
            holders[task.known[run.run_id]].append(run)
    for folder, runs in holders.items():
        try:
            for name, rows in _known_rows(folder, runs).items():
                parts[name].append(rows)
        except DAMAGED:
            fresh += runs
    unread = {}
    for source in fresh:
        run = SealedRun(source.path)
        try:
            of_run = observed(run)
        except Exception as error:
            unread[run.run_id] = f"cannot be read as a run: {why_unreadable(run, error)}"
            continue
        for name, rows in of_run.items():
            parts[name].append(rows)
    return {name: _by_run(tables) for name, tables in parts.items()}, fresh, dict(sorted(unread.items()))


def _unreadable(tables: dict[str, pa.Table]) -> set[str]:
    """Runs that failed their check ``readable``: what is not as it was sealed does."""
    rows = [tables[name].select(["run_id", "check", "verdict"]) for name in ("validity", "duet_validity")]
    return {
        row["run_id"]
        for row in chain.from_iterable(table.to_pylist() for table in rows)
        if (row["check"], row["verdict"]) == ("readable", FAIL)
    }


def _known_rows(folder: Path, runs: list[Source]) -> dict[str, pa.Table]:
    ids = pa.array([run.run_id for run in runs], pa.large_string())
    tables = {name: read(folder / f"{name}.parquet", name) for name in manifest(folder)["files"]}
    return {name: table.filter(pc.is_in(table["run_id"], ids)) for name, table in tables.items()}


def observed(run: SealedRun) -> dict[str, pa.Table]:
    """Table → rows of this run, read from its folder; of a launch of a duet those of other tables."""
    rows = observe_duet(run) if is_duet(run) else observe(run)
    return {name: _arrow(of_run, schema.arrow_schema(name)) for name, of_run in rows.items()}


def _arrow(rows: list[dict] | dict, columns: pa.Schema) -> pa.Table:
    """Of rows, or of columns."""
    if isinstance(rows, dict):
        return pa.Table.from_pydict(rows, schema=columns)
    return pa.Table.from_pylist(rows, schema=columns)


def _by_run(parts: list[pa.Table]) -> pa.Table:
    table = pa.concat_tables(parts).combine_chunks()
    return table.take(pc.sort_indices(table["run_id"])).combine_chunks()


def _written(file: Path, table: pa.Table) -> dict:
    # Dictionaries pay for names, not for histograms: each is different.
    names = [name for name in table.column_names if name != "histogram"]
    pq.write_table(
        table,
        file,
        compression="zstd",
        row_group_size=_ROW_GROUP_ROWS,
        use_dictionary=names,
        write_page_checksum=True,
    )
    return {"bytes": file.stat().st_size, "sha256": _digest(file)}


def _name(new: Path, folder: Path) -> None:
    """Gives a finished part its name, in the place of a damaged one."""
    if whole(folder) is None:
        shutil.rmtree(folder, ignore_errors=True)
        try:
            new.rename(folder)
        except OSError:
            if whole(folder) is None:  # else another process was faster
                raise


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
