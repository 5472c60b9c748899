"""Whether sealed runs are still what was sealed: every file against its checksum in SHA256SUMS."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from kvstudy.errors import RunFolderError, reason
from kvstudy.record.run_folder import RUN_JSON, SEAL, open_run, sealed_runs, unsealed_runs

OF_JUPYTER = ".ipynb_checkpoints"  # a folder beside whatever is opened in JupyterLab


@dataclass(frozen=True)
class Problem:
    """One reason why a run folder cannot be trusted: ``file`` is relative to ``run``."""

    run: Path
    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.run / self.file}: {self.what}"


def verify(path: Path) -> list[Problem]:
    """Recomputes the checksums of one sealed run: files changed, missing, added or that cannot be read, each
    by name; and whether the folder is called as the run is. Empty when it is whole."""
    run = open_run(path).path
    problems = []
    expected: dict[str, str] = {}
    try:
        lines = (run / SEAL).read_text(encoding="utf-8", errors="replace").splitlines()
        entries = sorted(os.listdir(run))
    except OSError as error:
        return [Problem(run, SEAL, f"cannot be read: {reason(error)}")]
    if not lines:
        return [Problem(run, SEAL, "seal empty: it names no file")]
    for number, line in enumerate(lines, start=1):
        digest, separator, name = line.partition("  ")
        if len(digest) != 64 or not separator or not name or os.path.basename(name) != name:
            problems.append(Problem(run, SEAL, f"line {number} is not a checksum: {line[:80]!r}"))
        else:
            expected[name] = digest
    for name, digest in expected.items():
        if not (run / name).is_file():
            problems.append(Problem(run, name, "missing: the seal names it"))
            continue
        try:
            with (run / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            problems.append(Problem(run, name, f"cannot be read: {reason(error)}"))
            continue
        if found != digest:
            problems.append(
                Problem(run, name, f"changed after sealing: sha256={found[:16]}… sealed={digest[:16]}…")
            )
    for name in entries:
        if name not in {*expected, SEAL, OF_JUPYTER}:
            problems.append(Problem(run, name, "added after sealing: the seal does not name it"))
    if not any(problem.file in (RUN_JSON, SEAL) for problem in problems):
        problems += _of_another_run(run)
    return problems


def _of_another_run(run: Path) -> list[Problem]:
    """A copy beside its original would count as another run."""
    try:
        own = open_run(run).facts.get("run_id")
    except RunFolderError as error:
        return [Problem(run, RUN_JSON, error.message.replace(f"{run}/", ""))]
    if own != run.name:
        return [Problem(run, RUN_JSON, f"of run {own}: the folder was copied or renamed")]
    return []


def without_seal(*roots: Path) -> list[Problem]:
    """One for each run folder whose seal is gone."""
    return [seal_missing(run) for run in unsealed_runs(*roots)]


def seal_missing(run: Path) -> Problem:
    return Problem(run, SEAL, "seal missing: nobody can say whether the run is as it was sealed")


def verify_all(*roots: Path) -> list[Problem]:
    """``verify`` for every sealed run under the roots, and those whose seal is gone."""
    return [*without_seal(*roots), *(problem for run in sealed_runs(*roots) for problem in verify(run.path))]
