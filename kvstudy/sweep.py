"""What 02-sweep calls: its parameters, the plan as a table, and the measurement with somebody watching.

    asked = sweep.read_parameters()           the notebook's parameters, or else the main experiment
    experiment = sweep.experiment(asked)      refuses what it does not know, before anything is started
    sweep.plan_table(experiment)              one row per run
    sweep.build(asked)                        service and generator
    await sweep.measure(experiment, asked)    progress, rate and p99 of the run under way, a stop button

In a batch (papermill, nbconvert) nobody watches: the same runs are measured with a line of text.
"""

import asyncio
import os
import sys
from contextlib import redirect_stderr
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from kvstudy.errors import ExperimentError, one_line
from kvstudy.hosts.hosts_file import HostsFile
from kvstudy.measure import build as builder
from kvstudy.measure.execute import execute
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.labels import check_label
from kvstudy.plan.run_plan import PlannedRun, plan
from kvstudy.plan.show import plan_head
from kvstudy.present import extension
from kvstudy.present.markdown import Markdown
from kvstudy.present.notebook import MAIN
from kvstudy.project import project_root
from kvstudy.sweep_view import SweepView

WATCHED = "JPY_SESSION_NAME"  # Jupyter's server sets it for a kernel that a person has a notebook open on

LOOKS_UP_S = 0.5


@dataclass(frozen=True)
class SweepParameters:
    """``experiment`` for ``Experiment.from_parameters``; the rest for the measurement."""

    root: Path
    experiment: dict
    preset: str | None
    label: str
    resume: bool
    hosts: HostsFile | None = None
    generators: int = 1


def read_parameters(executed: list[str] | None = None) -> SweepParameters:
    """What this notebook was asked for; ``executed``: IPython's ``In``, None for this kernel's."""
    root = project_root()
    parameters = extension.parameters(executed)
    if executed is None:
        _check_one_place(parameters)
    given = {name: value for name, value in parameters.items() if value is not None}
    preset, label, resume, hosts_file, generators = (
        given.pop(name, default)
        for name, default in (
            ("preset", None),
            ("label", ""),
            ("resume", True),
            ("hosts_file", None),
            ("generators", 1),
        )
    )
    if not isinstance(label, str) or not isinstance(resume, bool):
        raise ExperimentError(
            f"wrong parameter: label={label!r} resume={resume!r}", "label is a text, resume True or False"
        )
    check_label(label)
    if not isinstance(preset, str | None):
        raise ExperimentError(f"wrong parameter: preset={preset!r}", "preset is a name, as quick or full")
    for name, file in (("experiment_file", given.get("experiment_file")), ("hosts_file", hosts_file)):
        if not isinstance(file, str | Path | None):
            raise ExperimentError(f"wrong parameter: {name}={file!r}", f"{name} is the path of a file")
    if (
        not isinstance(generators, int)
        or isinstance(generators, bool)
        or generators < 1
        or (generators > 1 and hosts_file is None)
    ):
        raise ExperimentError(
            f"wrong parameter: generators={generators!r} hosts_file={hosts_file!r}",
            "generators is a number of hosts; more than one need a hosts_file",
        )
    hosts = HostsFile.load(_found(root, str(hosts_file))) if hosts_file is not None else None
    file = given.get("experiment_file")
    if not given:
        given["experiment_file"] = str(root / "experiments" / f"{MAIN}.yaml")
    elif file is not None:
        given["experiment_file"] = str(_found(root, file))
    return SweepParameters(root, given, preset, label, resume, hosts, generators)


def _check_one_place(parameters: dict) -> None:
    """A plan that nobody asked for would be measured: ExperimentError where the kernel has other values."""
    hint = "parameters stand in the first cell, which begins with # Defaults: execute it, then this one"
    if not parameters:
        raise ExperimentError("the cell of the parameters was not executed", hint)
    if elsewhere := extension.set_elsewhere(parameters):
        named = ", ".join(f"{name}={one_line(value)}" for name, value in elsewhere.items())
        raise ExperimentError(f"set in another cell than the first: {named}", hint)


def _found(root: Path, file: str) -> Path:
    """From where it was typed, or from the project."""
    there = root / file
    return there if not Path(file).is_file() and there.is_file() else Path(file)


def experiment(asked: SweepParameters) -> Experiment:
    """ExperimentError with the key and the nearest known one where something is wrong."""
    return Experiment.from_parameters(asked.experiment, asked.preset)


def describe(experiment: Experiment) -> Markdown:
    """Its question, what is expected, how long it takes and how much disk it needs."""
    return Markdown("\n\n".join(line.strip() for line in plan_head(plan(experiment))))


def plan_table(experiment: Experiment) -> pd.DataFrame:
    """One row per run, in the order in which they are measured; of a search one per line of trials."""
    return pd.DataFrame([_row(run) for run in plan(experiment).runs])


def build(asked: SweepParameters) -> None:
    """Service and generator. What goes to stderr is red in JupyterLab, as an error: how a build goes on is
    none."""
    with redirect_stderr(sys.stdout):
        builder.build(asked.root)


async def measure(experiment: Experiment, asked: SweepParameters, watched: bool | None = None) -> Markdown:
    """Measures what is missing, and says what there is. Stopped, by the button or the kernel's interrupt, it
    seals the run under way as failed and keeps those before it.

    ``watched``: None finds out. Then a thread measures, so that the kernel hears the click; and only then the
    generator tells of every second.
    """
    watched = WATCHED in os.environ if watched is None else watched
    goes_on_by = "this cell, executed again," if asked.resume else "this notebook with resume = True"
    wanted = {
        "label": asked.label,
        "resume": asked.resume,
        "hosts": asked.hosts,
        "generators": asked.generators,
        "goes_on_by": goes_on_by,
    }
    if not watched:
        return _done(execute(experiment, asked.root, **wanted).summary())
    with SweepView() as view:

        def measured() -> str | None:
            try:
                return execute(experiment, asked.root, **wanted, progress_of=view.progress).summary()
            except KeyboardInterrupt:
                return None

        # Not asyncio.to_thread: cancelled, it would not wait for the run to be sealed.
        work = asyncio.get_running_loop().run_in_executor(None, copy_context().run, measured)
        while not work.done():
            try:
                # With a timeout: an interrupt does not wake a kernel that waits for nothing else.
                await asyncio.wait([work], timeout=LOOKS_UP_S)
            except asyncio.CancelledError:  # the kernel's interrupt
                view.stop()
        summary = work.result()
    if summary is not None:
        return _done(summary)
    kept = "They are sealed and kept; the" if view.completed else "The"
    return Markdown(
        f"**Stopped** after {view.completed} of {view.planned} runs. {kept} run under way is sealed as "
        f"failed. {goes_on_by[0].upper()}{goes_on_by[1:]} goes on from here."
    )


def _done(summary: str) -> Markdown:
    return Markdown("  \n".join(summary.splitlines()))


def _row(run: PlannedRun) -> dict:
    configuration = run.configuration
    return {
        "run": run.plan_index + 1,
        "workload": configuration.workload,
        "connections": configuration.connections,
        "threads": configuration.threads,
        "rate": "closed loop" if configuration.closed_loop else f"{configuration.offered_rate_rps:g}/s",
        "variant": " ".join(f"{name}={value}" for name, value in configuration.variant.items()),
        "repeat": f"{run.repeat} of {run.repeats}",
        "warm-up, s": configuration.warm_up_s,
        "measured, s": configuration.measured_s,
        "profiled": ", ".join(run.profile or ()),
    }
