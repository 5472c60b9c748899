"""Filled stores: written once per content, checked, kept under data/work/fills, and restored by copy or
reflink for each run.

data/work/fills/<digest>/store/        what the subject wrote
data/work/fills/<digest>/filled.json   written last: without it, or cut, the fill is not whole, and is made
                                       again
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from kvstudy.errors import RunFailed
from kvstudy.hosts.memory_group import forget_pages
from kvstudy.hosts.process import OwnedProcess
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.generator import check_exit, path_arguments
from kvstudy.measure.script import FILL, fill_digest
from kvstudy.plan.run_plan import Configuration, fill_bytes, fill_identity
from kvstudy.plan.subject import SubjectSpec
from kvstudy.subject.protocol import LiveSubject, Place

FILL_CONNECTIONS = 16
FILL_THREADS = 2
LEAST_S, RECORDS_PER_S_MIN = 60, 2000  # so long a fill may take, and longer by so much
RECORDS_AT_REST_PER_S = 100_000  # that compaction merges at least, once nothing is written any more
FILLED = "filled.json"
# As workloads/fill.lua says it: of the service, and of no mistake in the script.
_NOT_ACKNOWLEDGED = re.compile(rf"/{re.escape(FILL)}: .*: fill: (.+)")
PIECE_BYTES = 128 << 10  # of a table's data, as SSTableWriter writes it


class Fills:
    """``registered``: called for each process, see Session. ``doing``: told what goes on, for the progress
    bar."""

    def __init__(
        self,
        work_root: Path,
        workloads: Path,
        artifacts: Artifacts,
        registered: Callable[[int, bool], None],
        doing: Callable[[str], None],
    ):
        self._root = work_root / "fills"
        self._workloads = workloads
        self._artifacts = artifacts
        self._registered = registered
        self._doing = doing

    def folder(self, configuration: Configuration) -> Path:
        identity = json.dumps(self._identity(configuration), sort_keys=True)
        return self._root / hashlib.sha256(identity.encode()).hexdigest()[:16]

    def _identity(self, configuration: Configuration) -> dict:
        """What was written, by what and how."""
        by = {"service": self._artifacts.subject_digest(configuration)}
        return fill_identity(configuration) | by | self._way

    @property
    def _way(self) -> dict:
        """``is_flushed``: as fills of before were not, whose last records lay in a log."""
        return {"script": fill_digest(self._workloads), "is_flushed": True}

    def make(self, configuration: Configuration) -> None:
        """Fills the store that ``restore`` copies, where that was not done yet."""
        if configuration.fill is None or not configuration.spec.is_restored:
            return
        folder = self.folder(configuration)
        if _noted(folder / FILLED) is None:
            self._fill(configuration, folder)

    def restore(self, configuration: Configuration, store: Path) -> None:
        """Makes ``store`` the filled one of this configuration, filling first where that was not done yet;
        else an empty folder."""
        if configuration.fill is None or not configuration.spec.is_restored:
            store.mkdir(parents=True)
            return
        folder = self.folder(configuration)
        self.make(configuration)
        store.parent.mkdir(parents=True, exist_ok=True)
        try:
            _copy(folder / "store", store)
            if configuration.memory_bytes is not None:
                forget_pages(store)  # else they would be in memory that its group does not pay for
        except OSError as error:
            raise RunFailed(f"filled store could not be restored: {str(error)[:300]}") from error

    def write(self, configuration: Configuration, subject: LiveSubject, log: Path) -> None:
        """Into a subject that runs: all of the fill's records."""
        fill = configuration.fill
        write_records(
            self._artifacts.loadgen,
            self._workloads,
            configuration.spec,
            subject,
            fill["records"],
            "fill",
            log,
            self._registered,
            key_count=fill["records"],
            key_bytes=fill["key_bytes"],
            value_bytes=fill["value_bytes"],
        )

    def _fill(self, configuration: Configuration, folder: Path) -> None:
        """The subject is started on an empty folder, written to, counted where it can say that, left to come
        to rest, and stopped in order."""
        self._doing(f"fill {configuration.fill['records']} records")
        shutil.rmtree(folder, ignore_errors=True)
        self._drop_fills_of_others()
        (folder / "store").mkdir(parents=True)
        records = configuration.fill["records"]
        subject = self._artifacts.subject(configuration).launch(
            Place(folder / "store", folder, registered=self._registered, filling=True)
        )
        try:
            self.write(configuration, subject, folder / "generator.log")
            if not subject.come_to_rest(rest_s := 60 + records / RECORDS_AT_REST_PER_S):
                raise RunFailed(
                    f"filled store did not come to rest: flush or compaction still runs after {rest_s:.0f} s"
                )
            found = subject.count_records()
        finally:
            fault = subject.stop()
        if found is not None and found != records:
            raise RunFailed(f"fill lost records: filled={records} found={found}")
        if fault:
            raise RunFailed(f"{fault}: after the fill")
        _note(folder / FILLED, self._identity(configuration) | {"found": found})

    def _drop_fills_of_others(self) -> None:
        """Of other builds, or made in another way: they would never be restored again. So would those that
        were interrupted, which have no marker."""
        for folder in self._root.glob("*/"):
            noted = _noted(folder / FILLED) or {}
            is_of_a_build = noted.get("service") in self._artifacts.subject_digests.values()
            if not (is_of_a_build and noted.items() >= self._way.items()):
                shutil.rmtree(folder, ignore_errors=True)


def disk_needed(configurations: list[Configuration], fills: Fills, stores_bytes: int) -> int:
    """Bytes: of the fills that are not there yet, which are kept side by side, and of the stores."""
    filled = [one for one in configurations if one.fill and one.spec.is_restored]
    sizes = {fills.folder(one): fill_bytes(one.fill) for one in filled}
    return stores_bytes + sum(size for folder, size in sizes.items() if not (folder / FILLED).is_file())


def write_records(
    loadgen: Path,
    workloads: Path,
    spec: SubjectSpec,
    subject: LiveSubject,
    writes: int,
    phase: str,
    log: Path,
    registered: Callable[[int, bool], None],
    **arguments: int,
) -> None:
    """So many writes, as fast as they are answered. RunFailed when loadgen or the subject fails, or not all
    were answered in the time that a slow service has for them. ``arguments``: of workloads/fill.lua."""
    length_s = LEAST_S + writes // RECORDS_PER_S_MIN
    statuses = ",".join(map(str, spec.statuses_of("PUT")))
    given = (
        arguments | {"writes": writes, "threads": FILL_THREADS, "put_status": statuses} | path_arguments(spec)
    )
    words = [f"{name}={value}" for name, value in given.items()]
    command = [
        str(loadgen),
        "--closed",
        "-c",
        str(FILL_CONNECTIONS),
        "-t",
        str(FILL_THREADS),
        "-d",
        f"{length_s}s",
        "--warmup",
        "1ms",
        "--expect",
        statuses,
        "--timeout",
        "30s",
        "-s",
        str(workloads / FILL),
        subject.url,
        "--",
        *words,
    ]
    begun = time.monotonic()
    generator = OwnedProcess(command, stderr_path=log, registered=registered)
    try:
        while not generator.wait(0.1):
            subject.check_alive(phase)
    finally:
        code = generator.stop(timeout_s=2)
    try:
        check_exit("loadgen", code, log)
    except RunFailed as error:
        if said := _NOT_ACKNOWLEDGED.search(error.message):
            raise RunFailed(f"{phase} was not acknowledged: {said[1]}") from error
        raise
    if time.monotonic() - begun >= length_s:  # else the script has ended it when all were acknowledged
        raise RunFailed(
            f"{phase} was not over in time: writes={writes} time={length_s}s",
            "write fewer records: the service takes fewer than that in this time",
        )


def _note(marker: Path, facts: dict) -> None:
    """Whole or not at all, also when the disk is full. RunFailed when it cannot be written."""
    new = marker.with_suffix(".new")
    try:
        with new.open("w", encoding="utf-8") as file:
            file.write(json.dumps(facts, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(marker)
    except OSError as error:
        raise RunFailed(
            f"fill could not be noted: {marker}: {(error.strerror or str(error)).lower()}"
        ) from error


def _noted(marker: Path) -> dict | None:
    """What was filled; None where there is no fill, or its note cannot be read."""
    try:
        facts = json.loads(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


def _copy(source: Path, target: Path) -> None:
    """By shared blocks where the file system can (XFS, Btrfs) and cp is GNU's; else written in pieces as the
    service writes its tables' data, so that a run reads it from pages as large as after a fill of its own."""
    shared = subprocess.run(["cp", "-a", "--reflink=always", str(source), str(target)], capture_output=True)
    if shared.returncode != 0:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, copy_function=_copy_in_pieces)


def _copy_in_pieces(source: str, target: str) -> None:
    with open(source, "rb") as old, open(target, "wb") as new:
        shutil.copyfileobj(old, new, PIECE_BYTES)
