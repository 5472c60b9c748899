"""Which commands measure an experiment, and how long each takes: what a reader types for what nobody has
decided yet.

    commands_of([Path("experiments/wal.yaml")], "full")

gives ``kvstudy run …`` and, where the experiment has sides, ``kvstudy compare …``; ``only`` as ``--only`` of
both.
"""

import shlex
from collections.abc import Sequence
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


def commands_of(files: Sequence[Path], preset: str | None, only: tuple[str, ...] = ()) -> list[Command]:
    """Of files that have no such preset: none, unless no file has it; no duet where ``only`` leaves not both
    sides."""
    found, missing = [], None
    for file in files:
        try:
            experiment = Experiment.load(file, preset)
            compared = Experiment.load(file, preset, compared=True)
        except ExperimentError as error:
            if "no such preset" in error.message:
                missing = missing or error
                continue
            raise
        of_preset = ["--preset", experiment.preset] if experiment.preset else []
        chosen = [part for word in only for part in ("--only", word)]
        name, words = experiment.name, shlex.join([str(file), *of_preset, *chosen])
        question = " ".join(experiment.question.split())
        with naming(file, files):
            runs_s = selected(plan(experiment), only).estimated_s
            duets = _duets(compared, only)
        found.append(Command(name, question, f"kvstudy run {words}", runs_s))
        if duets:
            seconds = sum(one.estimated_s for one in duets)
            found.append(Command(name, question, f"kvstudy compare {words}", seconds, len(duets)))
    if missing and not found:
        raise missing
    return found


def _duets(experiment: Experiment, only: tuple[str, ...]) -> list:
    """Empty where the file does not say how it is measured as a duet, or varies nothing that makes two sides:
    then it is about two builds."""
    if not experiment.comparing.model_fields_set:
        return []
    try:
        return comparisons(experiment, only=only)
    except OneSideOnly:
        return []
    except ExperimentError:
        if only:
            return []
        raise
