"""Which commands measure an experiment, and how long each takes: what a reader types for what nobody has
decided yet.

    commands_of([Path("experiments/wal.yaml")], "full")

gives ``kvstudy run …`` and, where the experiment has sides, ``kvstudy compare …``; ``only`` as ``--only`` of
both.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvstudy.errors import ExperimentError
from kvstudy.plan.comparison import OneSideOnly, comparisons
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.refusal import naming
from kvstudy.plan.run_plan import plan
from kvstudy.plan.selection import selected


@dataclass(frozen=True)
class Command:
    """``seconds``: about how long it takes, builds apart; ``duets``: how many it measures, 0 where it
    measures runs."""

    experiment: str
    question: str
    command: str
    seconds: float
    duets: int = 0


def commands_of(
    files: Sequence[Path],
    preset: str | None,
    only: tuple[str, ...] = (),
    left_out: Callable[[Path], None] = lambda _file: None,
) -> list[Command]:
    """Of files that have no such preset: none, and ``left_out`` is told of them, unless no file has it; no
    duet where ``only`` leaves not both sides."""
    found, missing = [], {}
    for file in files:
        try:
            experiment = Experiment.load(file, preset)
        except ExperimentError as error:
            if "no such preset" in error.message:
                missing[file] = error
                continue
            raise
        with naming(file, files):
            runs_s = selected(plan(experiment), only).estimated_s
            found.append(_command("run", experiment, file, only, runs_s))
            if duets := duets_of(file, experiment, only):
                found.append(duets)
    if missing and not found:
        raise next(iter(missing.values()))
    for file in missing:
        left_out(file)
    return found


def duets_of(file: Path, experiment: Experiment, only: tuple[str, ...] = ()) -> Command | None:
    """What measures the duets of a file, whose ``experiment`` was loaded with the preset that is asked for;
    None where it has none."""
    duets = _duets(Experiment.load(file, experiment.preset, compared=True), only)
    seconds = sum(one.estimated_s for one in duets)
    return _command("compare", experiment, file, only, seconds, len(duets)) if duets else None


def _command(
    verb: str, experiment: Experiment, file: Path, only: tuple[str, ...], seconds: float, duets: int = 0
) -> Command:
    of_preset = ["--preset", experiment.preset] if experiment.preset else []
    chosen = [part for word in only for part in ("--only", word)]
    words = shlex.join(["kvstudy", verb, str(file), *of_preset, *chosen])
    return Command(experiment.name, " ".join(experiment.question.split()), words, seconds, duets)


def _duets(experiment: Experiment, only: tuple[str, ...]) -> list:
    """Empty where the file does not say how it is measured as a duet, or varies nothing that makes two sides:
    then it is about two builds."""
    if "comparing" not in experiment.model_fields_set:
        return []
    try:
        return comparisons(experiment, only=only)
    except OneSideOnly:
        return []
    except ExperimentError:
        if only:
            return []
        raise
