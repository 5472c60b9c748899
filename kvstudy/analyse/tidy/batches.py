"""Which runs share a part of the tables: a function of the runs alone, whoever asks and however they came.

Runs of one folder, in the order of their names, are cut after each whose name's digest says so, and after
RUNS_MAX at the latest. So a run that comes or goes changes the batch it is in, at times the next ones up to a
cut, and no other: cut by position, a run that goes would change all that follow.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

CUT_ONE_IN = 64  # runs, on average
RUNS_MAX = 100


@dataclass(frozen=True)
class Source:
    """A sealed run; ``seal``: what it holds, as a digest (seals.py)."""

    run_id: str
    seal: str
    path: Path


@dataclass(frozen=True)
class Batch:
    """``folder``: name of the folder that the runs stand in, their experiment's."""

    folder: str
    runs: tuple[Source, ...]

    def part_name(self, version: str) -> str:
        """Of the part that code of ``version`` makes of these runs, relative to data/tidy; where the runs
        stand has no say."""
        return part_name(version, self.folder, {run.run_id: run.seal for run in self.runs})

    def sealed_as(self, seals: Mapping[str, str]) -> "Batch":
        """The same runs, those that ``seals`` names, by run id, with these."""
        runs = [replace(run, seal=seals.get(run.run_id, run.seal)) for run in self.runs]
        return replace(self, runs=tuple(runs))


def part_name(version: str, folder: str, seals: dict[str, str]) -> str:
    """``seals``: run id → seal."""
    text = "\n".join([version, folder, *(f"{seal}  {run_id}" for run_id, seal in sorted(seals.items()))])
    return f"{folder}/{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def batches(sources: Iterable[Source]) -> list[Batch]:
    """Sorted by folder, and within one by run."""
    ordered = sorted(sources, key=lambda run: (run.path.parent.name, run.run_id))
    return [
        Batch(folder, runs)
        for folder, group in groupby(ordered, key=lambda run: run.path.parent.name)
        for runs in _cut(group)
    ]


def _cut(runs: Iterable[Source]) -> Iterator[tuple[Source, ...]]:
    batch: list[Source] = []
    for run in runs:
        batch.append(run)
        if (
            len(batch) == RUNS_MAX
            or int.from_bytes(hashlib.sha256(run.run_id.encode()).digest()[:4], "big") % CUT_ONE_IN == 0
        ):
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)
