"""What ``--resume`` goes on with: sealed runs and launches that are as they were sealed. Whatever is not kept
for another reason than what was asked for is told."""

from collections.abc import Callable, Iterator
from pathlib import Path

from kvstudy.record.run_folder import SealedRun, sealed_runs
from kvstudy.record.verification import verify

Tell = Callable[[str], None]


def known(folder: Path, tell: Tell) -> Iterator[SealedRun]:
    """Sealed runs of this folder, without those of which nothing can be told."""
    for run in sealed_runs(folder):
        if why := run.why_unknown:
            tell(f"not kept: {why}")
        else:
            yield run


def is_whole(run: SealedRun, tell: Tell) -> bool:
    """True when every file is as it was sealed."""
    problems = verify(run.path)
    if problems:
        tell(f"not kept: {problems[0]}")
    return not problems
