"""A plan as people read it: what will be run, in which order, how long it takes and how much disk it
needs."""

from kvstudy.plan.run_plan import Plan, PlannedRun
from kvstudy.plan.search import expected_trials
from kvstudy.units import format_bytes, format_duration


def total_line(plans: list[Plan]) -> str:
    """What all plans together take, in one line."""
    runs = sum(_expected_runs(plan) for plan in plans)
    names = ", ".join(plan.experiment.name for plan in plans)
    return (
        f"{names}: {runs} runs, about {format_duration(sum(plan.estimated_s for plan in plans))} in all, "
        "builds apart"
    )


def plan_head(plan: Plan) -> list[str]:
    """Question, expectation and summary, and one line per fill."""
    experiment = plan.experiment
    profile = f" ({experiment.profile_name})" if experiment.profile_name else ""
    latency_runs = sum(run.profile is None for run in plan.runs)
    what = "lines of a search" if experiment.search else "runs"
    lines = [
        f"{experiment.name}{profile}: {experiment.question}",
        f"expected: {' '.join(experiment.expectation.split())}",
        f"{len(plan.runs)} {what} ({latency_runs} for latency, {len(plan.runs) - latency_runs} "
        "profiled), about "
        f"{format_duration(plan.estimated_s)}, up to {format_bytes(plan.disk_bytes)} on disk; order "
        f"from seed {experiment.seed}",
    ]
    if experiment.search:
        lines.append(
            f"search ({experiment.search.method}): at most {experiment.search.trials_max} trials for "
            "each line below, "
            f"until the knee is known to {experiment.search.precision:.0%}"
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
