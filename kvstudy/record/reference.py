"""The committed runs: of data/raw those that were asked for and that the machine left alone are copied to
data/reference.

Of the runs asked for one is left out for what the kernel counted in its measured seconds
(``kvstudy/disturbance.py``) and for nothing else: what its own checks reject is copied too, and stays marked
as invalid.

Every clone carries them: what no table or page reads is left out (``record/copies.py``).

Of duets every launch is copied, disturbed ones too: their rules leave those out, and say how many. What is
measured replaces its own kind alone: duets of an experiment leave its independent runs where they are, and
the other way round.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kvstudy.disturbance import disturbance
from kvstudy.errors import RunFolderError, SealBroken
from kvstudy.record import copies
from kvstudy.record.run_folder import DUET, SealedRun, sealed_runs
from kvstudy.record.swap import replacing
from kvstudy.record.verification import verify
from kvstudy.service_failure import is_of_service
from kvstudy.units import format_bytes

REFERENCE_BYTES_MAX = 20_000_000  # every clone carries them


@dataclass(frozen=True)
class Published:
    """Of one experiment: runs asked for that were copied and left out, and the bytes of those copied."""

    experiment: str
    copied: int
    disturbed: int
    size_bytes: int


def measured_experiments(raw_root: Path) -> tuple[str, ...]:
    """Names of the experiments that have sealed runs, sorted."""
    return tuple(sorted({run.path.parent.name for run in sealed_runs(raw_root)}))


def publish(
    raw_root: Path,
    reference_root: Path,
    experiments: tuple[str, ...] | None = None,
    asked_for: Callable[[SealedRun], bool] = lambda run: True,
    asked: str = "the runs asked for",
    preset: str = "reference",
) -> list[Published]:
    """Replaces the runs of each experiment (default: of all that have runs) under ``reference_root``; other
    experiments there stay.

    Of several runs of one identity and label the newest completed one is taken, else the newest; of a search
    every trial. RunFolderError, and nothing replaced, when an experiment has no undisturbed run or all would
    be larger than REFERENCE_BYTES_MAX; SealBroken when a run is not as it was sealed. ``asked`` is what
    ``asked_for`` asks for, in words; ``preset``: that measures it.
    """
    names = measured_experiments(raw_root) if experiments is None else experiments
    if not names:
        raise RunFolderError(f"no sealed run here: {raw_root}", "measure first: make reference")
    kept: dict[str, list[SealedRun]] = {}
    published = []
    for name in names:
        sealed = sealed_runs(raw_root / name)
        runs = [run for run in sealed if (not run.is_smoke if _is_duet(run) else asked_for(run))]
        measure = f"kvstudy run experiments/{name}.yaml --preset {preset} --resume --retries 2"
        if not runs:
            raise RunFolderError(
                f"no run to publish: experiment={name} sealed={len(sealed)}, none of them of {asked}", measure
            )
        quiet = [run for run in runs if _is_duet(run) or not disturbance(run.machine.get("load_during"))]
        kept[name] = list({_which(run): run for run in sorted(quiet, key=_worth)}.values())
        if not kept[name]:
            raise RunFolderError(
                f"no undisturbed run to publish: experiment={name} runs={len(runs)}", measure
            )
        published.append(
            Published(name, len(kept[name]), len(runs) - len(quiet), sum(map(copies.size_bytes, kept[name])))
        )
    stay = {name: _of_another_kind(reference_root / name, runs) for name, runs in kept.items()}
    _check_size(
        published, reference_root, sum(_size_bytes(run.path) for runs in stay.values() for run in runs)
    )
    for run in [run for runs in kept.values() for run in runs]:
        if problems := verify(run.path):
            raise SealBroken(str(problems[0]), "it is not data any more: delete the run and measure it again")
    for name, runs in kept.items():
        _replace(reference_root / name, runs, stay[name])
    return published


def _which(run: SealedRun) -> tuple:
    """The same of runs of which one is copied: tries at one run, in one series. One that its service did not
    survive is an answer, which no later try takes back: the rest would be survivors."""
    if run.facts.get("search") or is_of_service(run.facts["outcome"]):
        return (run.run_id,)
    return run.facts.get("label"), run.facts.get("identity", run.run_id)


def _worth(run: SealedRun) -> tuple[bool, str]:
    """Of two tries the greater is copied: one that was completed, then the newer one."""
    return run.facts["outcome"] == "completed", run.run_id


def _is_duet(run: SealedRun) -> bool:
    return run.facts.get("kind") == DUET


def _of_another_kind(folder: Path, runs: list[SealedRun]) -> list[SealedRun]:
    """Of those in ``folder``: duets where none of ``runs`` is one, independent runs where none is one."""
    kinds = set(map(_is_duet, runs))
    return [run for run in sealed_runs(folder) if _is_duet(run) not in kinds]


def _check_size(published: list[Published], reference_root: Path, stay_bytes: int) -> None:
    new = {one.experiment: one.size_bytes for one in published}
    stay = (
        [path for path in reference_root.iterdir() if path.is_dir() and path.name not in new]
        if reference_root.is_dir()
        else []
    )
    total = sum(new.values()) + sum(map(_size_bytes, stay)) + stay_bytes
    if total > REFERENCE_BYTES_MAX:
        largest = max(new, key=new.__getitem__)
        raise RunFolderError(
            f"too large to be committed: size={format_bytes(total)} "
            f"limit={format_bytes(REFERENCE_BYTES_MAX)}",
            f"the largest is {largest} with {format_bytes(new[largest])}; name fewer experiments, or "
            "measure fewer profiled runs",
        )


def _replace(folder: Path, runs: list[SealedRun], stay: list[SealedRun]) -> None:
    """An interrupted copy leaves the old runs, or none, never a mixture."""
    with replacing(folder) as new:
        for run in runs:
            copies.copy(run, new / run.path.name)
        for run in stay:
            shutil.copytree(run.path, new / run.path.name)


def _size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
