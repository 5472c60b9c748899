"""A plan as people read it: what will be run, in which order, how long it takes and how much disk it
needs."""

from collections.abc import Sequence

from kvstudy.plan.commands import Command
from kvstudy.plan.comparison import Comparison
from kvstudy.plan.run_plan import Plan, PlannedRun
from kvstudy.plan.search import expected_trials
from kvstudy.units import counted, format_bytes, format_duration


def total_line(plans: Sequence[Plan], duets: Sequence[Comparison] = ()) -> str:
    """What all plans and duets together take, in one line."""
    runs = sum(_expected_runs(plan) for plan in plans)
    names = dict.fromkeys([one.experiment.name for one in (*plans, *duets)])
    counts = [counted(runs, "run")] if plans else []
    counts += [counted(len(duets), "duet")] if duets else []
    least_s = sum(one.estimated_s for one in (*plans, *duets))
    most_s = sum(plan.estimated_s for plan in plans) + sum(one.at_most_s for one in duets)
    most = f", at most {format_duration(most_s)}" if round(most_s - least_s) else ""
    about = f"about {format_duration(least_s)} in all{most}, builds apart"
    return f"{', '.join(names)}: {' and '.join(counts)}, {about}"


def duet_lines(duets: Sequence[Comparison]) -> list[str]:
    """One line per duet."""
    return [
        f"{one.experiment.name}: {one.names[1]} beside {one.names[0]}: "
        f"{' '.join(load.workload for load in one.loads)}; a launch takes about "
        f"{format_duration(round(one.launch_s))}, all about {format_duration(round(one.estimated_s))}, "
        f"at most {format_duration(round(one.at_most_s))}"
        for one in duets
    ]


def as_duets_line(command: Command) -> str:
    """Below a plan: what else may be done with its file."""
    what = "a duet" if command.duets == 1 else f"{command.duets} duets"
    return f"as {what}: {command.command} (about {format_duration(round(command.seconds))})"


def command_lines(commands: Sequence[Command]) -> list[str]:
    """One line per command, how long it takes first."""
    words = [(format_duration(round(one.seconds)), one.command, one.question) for one in commands]
    widths = [max((len(row[column]) for row in words), default=0) for column in range(2)]
    return [f"{time:>{widths[0]}}  {command:{widths[1]}}  {question}" for time, command, question in words]


def plan_head(plan: Plan) -> list[str]:
    """Question, expectation and summary, and one line per fill."""
    experiment = plan.experiment
    preset = f" ({experiment.preset})" if experiment.preset else ""
    latency_runs = sum(run.profile is None for run in plan.runs)
    what = (
        f"{counted(len(plan.runs), 'line')} of a search"
        if experiment.search
        else counted(len(plan.runs), "run")
    )
    lines = [
        f"{experiment.name}{preset}: {experiment.question}",
        f"expected: {' '.join(experiment.expectation.split())}",
        f"{what} ({latency_runs} for latency, {len(plan.runs) - latency_runs} "
        "profiled), about "
        f"{format_duration(plan.estimated_s)}, up to {format_bytes(plan.disk_bytes)} on disk; order "
        f"from seed {experiment.seed}",
    ]
    if experiment.search:
        lines.append(
            f"search ({experiment.search.method}): at most {experiment.search.trials_max} trials for "
            "each line below, "
            f"until the knee is known to {100 * experiment.search.precision:g}%"
        )
    return lines + [
        f"  fill {fill['records']} records, key {fill['key_bytes']} B, value {fill['value_bytes']} B"
        for fill in plan.fills
    ]


def plan_lines(plan: Plan) -> list[str]:
    """One line per fill and run, and a summary first."""
    lines = plan_head(plan)
    width = len(str(len(plan.runs)))
    for run in plan.runs:
        kind = f"  profiled: {','.join(run.profile)}" if run.profile else ""
        lines.append(
            f"  {run.plan_index + 1:{width}}  repeat {run.repeat}/{run.repeats}  "
            f"{run.configuration.summary()}  "
            f"{format_duration(run.configuration.warm_up_s)} + "
            f"{format_duration(run.configuration.measured_s)}{_head_start(run)}{kind}"
        )
    return lines


def _head_start(run: PlannedRun) -> str:
    return f"  after {run.head_start_writes} writes" if run.configuration.head_start_bytes is not None else ""


def _expected_runs(plan: Plan) -> int:
    search = plan.experiment.search
    return len(plan.runs) if search is None else len(plan.runs) * expected_trials(search)
