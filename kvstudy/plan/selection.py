"""``--only KEY=VALUE``: the part of a plan whose runs have these values. The same key twice means either
value."""

from collections.abc import Iterable
from dataclasses import asdict, replace

from kvstudy.errors import ExperimentError, meant
from kvstudy.plan.factors import ServiceOptions
from kvstudy.plan.run_plan import Plan, PlannedRun
from kvstudy.units import parse_rate_rps, write_rate


def selected(plan: Plan, only: Iterable[str]) -> Plan:
    """The runs that match every key, at their old place in the plan; ExperimentError when a key or a value is
    nobody's."""
    wanted: dict[str, set[str]] = {}
    for word in only:
        key, separator, value = word.partition("=")
        if not separator:
            raise ExperimentError(f"--only takes KEY=VALUE: {word}", "as --only workload=unique_put")
        wanted.setdefault(key, set()).add(as_planned(key, value))
    runs = plan.runs
    for key, values in wanted.items():
        present = {facts[key] for facts in map(facts_of, plan.runs) if key in facts}
        if not present:
            known = sorted({name for run in plan.runs for name in facts_of(run)})
            hint = meant(key, known, f"keys: {', '.join(known)}")
            raise ExperimentError(f"no run has such a key: {key}", hint)
        unknown = values - present
        if unknown:
            raise ExperimentError(
                f"no run has this value: {key}={min(unknown)}",
                f"values: {', '.join(sorted(present))}",
            )
        runs = [run for run in runs if facts_of(run).get(key) in values]
    if not runs:
        raise ExperimentError(f"no run has all of these: {' '.join(only)}")
    return replace(plan, runs=runs)


def as_planned(key: str, value: str) -> str:
    """What a plan has for a rate or a size that is written with a suffix: ``memtable_bytes=4m``; of other
    keys, and of what is none, the value as it is."""
    try:
        if key == "rate" and value != "closed":
            return write_rate(parse_rate_rps(value))
        if key in ServiceOptions.model_fields:
            return str(getattr(ServiceOptions.model_validate({key: value}), key)[0])
    except ValueError:
        pass
    return value


def facts_of(run: PlannedRun) -> dict[str, str]:
    """What --only can ask for, as text: every parameter of the run by its name in the experiment file."""
    configuration = run.configuration
    facts = asdict(configuration)
    facts |= facts.pop("workload_args") | facts.pop("service") | configuration.variant
    facts["subject"] = configuration.spec.label
    rate = "closed" if configuration.closed_loop else write_rate(configuration.offered_rate_rps)
    facts |= {"rate": rate, "repeat": run.repeat, "profiled": "yes" if run.profile else "no"}
    facts |= {"records": configuration.fill["records"]} if configuration.fill else {}
    for not_asked in (
        "experiment",
        "question",
        "fill",
        "pause",
        "awake",
        "cores",
        "jvm",
        "offered_rate_rps",
        "duration_s",
        "warm_up_s",
        "timeout_s",
        "variant",
        "script",
        "statuses",
        "read_back",
    ):
        facts.pop(not_asked)
    return {key: str(value) for key, value in facts.items()}
