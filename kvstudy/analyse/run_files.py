"""Run folders from anywhere → tables: of a colleague, of another machine, of an older checkout.

    tables = load("/tmp/20261123T030716Z-repeated-get-c4-t4-r02000-rep1")      one run
    tables = load("/tmp/from-a-colleague")                                     all that lie below it

Nothing is written, neither there nor under data/. What is not a sealed run of kvstudy, or no longer as it
was sealed, is refused in one line.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from kvstudy.analyse import schema
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.tidy.part import observed
from kvstudy.errors import KvstudyError, NotSealed, RunFolderError, SealBroken, no_folder
from kvstudy.record.duet import is_duet
from kvstudy.record.run_folder import SealedRun, open_run, sealed_runs
from kvstudy.record.verification import Problem, verify, without_seal


def load(path: str | Path, check: bool = True) -> Tables:
    """The tables of the sealed runs at or below ``path``, as attributes: ``load(path).percentiles``.

    ``check``: recompute the checksums first. RunFolderError for what is no such folder, or damaged; launches
    of duets have other tables and are left out, and alone they are refused.
    """
    if not isinstance(path, str | os.PathLike) or path == "":
        raise RunFolderError(f"not a path: {path!r}", "name a run folder, or a folder of them")
    folder = Path(os.path.expanduser(path))
    if not os.path.isdir(folder):  # false, too, of a name that no folder can have, as one that is too long
        raise RunFolderError(no_folder(folder), "name a run folder, or a folder of them")
    runs = _only_runs(_sealed(folder), folder)
    for problems in _checked(runs, folder) if check else ():
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise SealBroken(
                f"{problems[0]}{more}", "load(path, check=False) reads the sealed runs as they are"
            )
    rows = _observed(runs)
    frames = {
        name: schema.conform(name, rows[name].to_pandas()) if name in rows else schema.empty(name)
        for name in schema.TABLES
    }
    return Tables(**frames, source=str(folder), folders={run.run_id: run.path for run in runs})


def _checked(runs: list[SealedRun], folder: Path) -> Iterator[list[Problem]]:
    """What is wrong: runs whose seal is gone, then run by run."""
    yield without_seal(folder)
    yield from (verify(run.path) for run in runs)


def _sealed(folder: Path) -> list[SealedRun]:
    found = sealed_runs(folder)
    if found:
        return found
    if (folder / "run.json").is_file():
        open_run(folder)  # says that it is not sealed
    raise NotSealed(
        f"no sealed run here: {folder}",
        "a run folder holds run.json and SHA256SUMS; name one, or a folder of them",
    )


def _only_runs(found: Iterable[SealedRun], folder: Path) -> list[SealedRun]:
    """Each run id once, without launches of duets."""
    runs: dict[str, SealedRun] = {}
    for run in found:
        if is_duet(run):
            continue
        if missing := run.missing_facts:
            raise RunFolderError(
                f"not a run of kvstudy: {run.path}", f"its run.json lacks {', '.join(missing[:3])}"
            )
        runs.setdefault(run.run_id, run)
    if not runs:
        raise RunFolderError(
            f"only launches of duets here: {folder}", "kvstudy.analyse.tables.study_duets reads those"
        )
    return list(runs.values())


def _observed(runs: list[SealedRun]) -> dict[str, pa.Table]:
    """Table → rows; one run after the other, so that an error names its run."""
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    for run in runs:
        try:
            rows = observed(run)
        except KvstudyError:
            raise
        except Exception as error:  # what somebody else wrote into a run.json may be of any type
            raise RunFolderError(
                f"cannot be read as a run: {run.path}: {type(error).__name__}: {error}",
                "its run.json has a value that no run has",
            ) from error
        for name, of_run in rows.items():
            parts[name].append(of_run)
    return {name: pa.concat_tables(of_runs) for name, of_runs in parts.items()}
