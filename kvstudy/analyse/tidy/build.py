"""Brings data/tidy up to date with the sealed runs.

    rebuild([root / "data/raw"], root / "data/tidy")                 in this process
    rebuild(…, spread=workers.processes)                             in several: anything that maps
                                                                     ``part.make`` over tasks, in any order

Order, so that an end at any point leaves tables that the next build completes: stamps are taken, parts are
made, index.json is replaced, then what it does not list is removed. Parts that an interrupted build finished
are found again by their names. One builder at a time: the others wait for its lock, which ends with its
process, and then find the work done.
"""

import errno
import fcntl
import json
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from kvstudy.analyse import schema
from kvstudy.analyse.tidy import part, version
from kvstudy.analyse.tidy.batches import Source, batches
from kvstudy.analyse.tidy.part import Task
from kvstudy.analyse.tidy.seals import seal_of, stamp_of
from kvstudy.errors import KvstudyError, in_words
from kvstudy.record.run_folder import SealedRun, check_link, run_folders, seal_digest
from kvstudy.record.verification import seal_missing, verify

INDEX = "index.json"
_KEYS = {"version", "parts", "folders", "stamps", "left_out", "unread", "aside"}
LOCK = ".lock"
SPREAD_FROM_RUNS = 100  # to read; fewer are done before another process has started
Spread = Callable[[Callable[[Task], Task], list[Task]], Iterable[Task]]
_PART = re.compile(rf"[0-9a-f]{{32}}|\..*{re.escape(part.UNFINISHED)}")


def rebuild(raw_roots: list[Path], tidy_root: Path, progress: bool = True, spread: Spread = map) -> None:
    """Makes the parts of runs that are new or changed, drops those of runs that are gone; nothing is written
    when nothing changed.

    A run that stands under two roots is taken from the first one; under one root twice, from the folder that
    is as it was sealed. One that does not say what it is of, one that cannot be read as a run, and one whose
    seal is gone are left out, with a line on stderr.
    """
    code, (folders, aside) = version.code_version(), _folders_of_runs(raw_roots)
    asked = {
        "version": code,
        "folders": {run_id: str(folder) for run_id, folder in folders.items()},
        "stamps": {run_id: stamp_of(folder) for run_id, folder in folders.items()},
        "aside": {str(folder): why for folder, why in aside.items()},
    }
    if _are_there(tidy_root, asked):
        if progress:
            _tell(read_index(tidy_root) or {})
        return
    with _alone(tidy_root, progress):
        if _are_there(tidy_root, asked):  # made by who had the lock
            return
        before = read_index(tidy_root) or {}
        left_out = _left_out(folders, asked["stamps"], before if before.get("version") == code else {})
        folders = {run_id: folder for run_id, folder in folders.items() if run_id not in left_out}
        there = _whole_parts(tidy_root, code)
        known = {
            (run_id, run["seal"]): folder
            for folder, content in there.items()
            for run_id, run in content["runs"].items()
            if run_id not in content["unread"]
        }
        seals = _seals(folders, asked["stamps"], _listed(tidy_root, there), known)
        wanted = {
            (batch.folder, batch.runs[0].run_id): batch
            for batch in batches(Source(run_id, seals[run_id], folder) for run_id, folder in folders.items())
        }
        tasks = [
            Task(
                batch,
                tidy_root,
                code,
                {
                    run.run_id: known[run.run_id, run.seal]
                    for run in batch.runs
                    if (run.run_id, run.seal) in known
                },
            )
            for batch in wanted.values()
            if tidy_root / batch.part_name(code) not in there
        ]
        fresh = sum(task.fresh_runs for task in tasks)
        with tqdm(total=fresh, desc="reading runs", unit="run", delay=2, disable=not progress) as bar:
            for task in (spread if fresh >= SPREAD_FROM_RUNS else map)(part.make, tasks):
                wanted[task.batch.folder, task.batch.runs[0].run_id] = task.batch  # sealed as it was found
                bar.update(task.fresh_runs)
        parts = [batch.part_name(code) for batch in wanted.values()]
        unread = {
            run_id: f"{folders[run_id]}: {why}"
            for name in parts
            for run_id, why in part.manifest(tidy_root / name)["unread"].items()
        }
        index = {"parts": parts, "left_out": left_out, "unread": unread, **asked}
        _tell(index)
        _replace(tidy_root / INDEX, json.dumps(index, indent=1) + "\n")
        _sweep(tidy_root, set(parts))


def read_index(tidy_root: Path) -> dict | None:
    """``version``, ``parts``, and by run id ``folders`` (of the runs), ``stamps`` (seals.py), and why of
    those that have no rows: ``left_out`` before they were read, ``unread`` when they were. ``aside``: other
    folders of runs, and why they are none of these. None when there is none, or it is damaged."""
    try:
        index = json.loads((tidy_root / INDEX).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return None
    return index if isinstance(index, dict) and index.keys() >= _KEYS else None


def lacking(index: dict) -> dict[str, str]:
    """Run id → why it has no rows."""
    return {**index.get("left_out", {}), **index.get("unread", {})}


def _are_there(tidy_root: Path, asked: dict) -> bool:
    index = read_index(tidy_root)
    return (
        index is not None
        and all(index.get(name) == value for name, value in asked.items())
        and all(part.whole(tidy_root / name) for name in index["parts"])
    )


def _folders_of_runs(roots: list[Path]) -> tuple[dict[str, Path], dict[Path, str]]:
    """Run id → folder; and of folders that are left aside why."""
    found: dict[str, Path] = {}
    aside: dict[Path, str] = {}
    for root in roots:
        check_link(root)
        sealed, unsealed = run_folders(root.resolve())
        aside |= {folder: str(seal_missing(folder)) for folder in unsealed}
        same: dict[str, list[Path]] = defaultdict(list)
        for run in sealed:
            same[run.run_id].append(run.path)
        for run_id, folders in same.items():
            taken = _whole_one(folders)
            read = found.setdefault(run_id, taken)
            aside |= {
                folder: f"{folder}: run {run_id} is read from {read}" for folder in folders if folder != taken
            }
    return dict(sorted(found.items())), aside


def _whole_one(folders: list[Path]) -> Path:
    """Of folders of one run the first that is as it was sealed, else the first."""
    if len(folders) == 1:
        return folders[0]
    return next((folder for folder in folders if not verify(folder)), folders[0])


def _left_out(folders: dict[str, Path], stamps: dict[str, str], index: dict) -> dict[str, str]:
    """Run id → why nothing can be told of that run. Those that stand as they stood then are not looked at."""
    known, looked_at = index.get("left_out", {}), index.get("stamps", {})
    found = {}
    for run_id, folder in folders.items():
        stands = looked_at.get(run_id) == stamps[run_id]
        if why := known.get(run_id, "") if stands else SealedRun(folder).why_unknown:
            found[run_id] = why
    return found


def _tell(index: dict) -> None:
    without_rows = {index["folders"][run_id]: why for run_id, why in lacking(index).items()}
    for folder, why in (without_rows | index.get("aside", {})).items():
        print(f"left out: {why}; put back what it was, or move {folder} out of data", file=sys.stderr)


def _listed(tidy_root: Path, there: dict[Path, dict]) -> dict[str, tuple[str, str]]:
    """Run id → stamp and seal of the runs in the tables of before, as far as their parts are whole."""
    index = read_index(tidy_root) or {}
    stamps = index.get("stamps", {})
    return {
        run_id: (stamps[run_id], run["seal"])
        for name in index.get("parts", [])
        for run_id, run in there.get(tidy_root / name, {"runs": {}})["runs"].items()
        if run_id in stamps
    }


def _seals(
    folders: dict[str, Path],
    stamps: dict[str, str],
    listed: dict[str, tuple[str, str]],
    known: Container[tuple[str, str]],
) -> dict[str, str]:
    """Of a run that stands as it stood when it was last looked at, that of then. Of another one every file is
    looked at, now if a part has its rows already, else when it is read."""
    seals = {}
    for run_id, folder in folders.items():
        stamp, seal = listed.get(run_id, ("", ""))
        if stamp != stamps[run_id]:
            seal = seal_digest(folder)
            seal = seal_of(folder) if (run_id, seal) in known else seal
        seals[run_id] = seal
    return seals


def _whole_parts(tidy_root: Path, code: str) -> dict[Path, dict]:
    """Folder → manifest of every part of this code that is as it was written, listed or not."""
    found = {
        folder: part.whole(folder)
        for folder in _folders(tidy_root)
        if not folder.name.endswith(part.UNFINISHED)
    }
    return {folder: content for folder, content in found.items() if content and content["version"] == code}


def _folders(tidy_root: Path) -> Iterator[Path]:
    """The folders of parts, unfinished ones among them; what is none of ours is left alone."""
    for experiment in tidy_root.iterdir():
        if experiment.is_dir():
            yield from (
                folder for folder in experiment.iterdir() if _PART.fullmatch(folder.name) and folder.is_dir()
            )


def _sweep(tidy_root: Path, wanted: set[str]) -> None:
    for folder in list(_folders(tidy_root)):
        if str(folder.relative_to(tidy_root)) not in wanted:
            shutil.rmtree(folder, ignore_errors=True)
            if not any(folder.parent.iterdir()):
                folder.parent.rmdir()
    for name in schema.ALL_TABLES:  # as tables were kept before they had parts
        (tidy_root / f"{name}.parquet").unlink(missing_ok=True)


def _replace(file: Path, text: str) -> None:
    """By whoever holds the lock: what one left that was killed here is overwritten."""
    new = file.with_name(f".{file.name}{part.UNFINISHED}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def _alone(tidy_root: Path, progress: bool) -> Iterator[None]:
    try:
        tidy_root.mkdir(parents=True, exist_ok=True)
        file = (tidy_root / LOCK).open("w")
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        raise KvstudyError(
            f"there are runs that the tables lack, and they cannot be written: {in_words(error)}",
            f"make {tidy_root} writable for you, or look at them in a copy of the project",
        ) from error
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if progress:
                tqdm.write(
                    f"another process makes these tables: waiting for it: {tidy_root}", file=sys.stderr
                )
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
