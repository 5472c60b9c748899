"""run.json: every parameter of a run with its unit, what it was measured with, when, and how it ended."""

from kvstudy.measure.artifacts import Artifacts
from kvstudy.plan.run_plan import PlannedRun
from kvstudy.record.run_folder import SCHEMA_VERSION
from kvstudy.subject.evidence.profiler import cpu_engine


def run_facts(
    planned: PlannedRun,
    run_id: str,
    label: str,
    outcome: str,
    artifacts: Artifacts,
    phases: dict[str, dict[str, str]],
    data_check: dict | None,
    search: dict,
    preset: str | None,
    same_percent: float,
    profiled: dict[str, str],
    digests: dict[str, str] | None = None,
) -> dict:
    """``phases``: start and stop of each in UTC; ``data_check``: counts, or None where nothing was read back;
    ``search``: what a trial of a search says about it; ``preset``: of the experiment file's presets
    the one that was asked for; ``same_percent``: below which the experiment takes two sides for the same;
    ``profiled``: from when to when a profiler ran, as far as it came; ``digests``: of the programs and the
    script when the run began, None for those of now."""
    configuration = planned.configuration
    revision, dirty = artifacts.revision
    facts = {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "experiment": configuration.experiment,
        "label": label,
        "question": configuration.question,
        "preset": preset,
        "same_within_percent": same_percent,
        "outcome": outcome,
        "workload": configuration.workload,
        "workload_args": configuration.workload_args,
        "script": configuration.script,
        "statuses": configuration.statuses,
        "method": configuration.method,
        "server": configuration.server,
        "subject": configuration.subject,
        "service": configuration.service,
        "jvm": configuration.jvm,
        "variant": configuration.variant,
        "fill": configuration.fill,
        "pause": configuration.pause,
        "head_start_bytes": configuration.head_start_bytes,
        "head_start_writes": planned.head_start_writes,
        "awake": configuration.awake,
        "cores": configuration.cores,
        "generator": configuration.generator,
        "closed_loop": configuration.closed_loop,
        "arrivals": configuration.arrivals,
        "spin": configuration.spin,
        "connections": configuration.connections,
        "threads": configuration.threads,
        "offered_rate_rps": configuration.offered_rate_rps,
        "duration_s": configuration.duration_s,
        "warm_up_s": configuration.warm_up_s,
        "timeout_s": configuration.timeout_s,
        "profile": list(planned.profile) if planned.profile else None,
        "repeat": planned.repeat,
        "repeats": planned.repeats,
        "plan_index": planned.plan_index,
        "plan_size": planned.plan_size,
        "seed": planned.seed,
        "identity": planned.identity(),
        "revision": revision,
        "dirty": dirty,
        "tool_versions": artifacts.versions,
        "tool_digests": artifacts.digests_of(configuration) if digests is None else digests,
        "phases": phases,
        "data_check": data_check,
    }
    if planned.profile:
        facts["profiler"] = {"cpu_engine": cpu_engine(), **profiled}
    if planned.purpose != "measure":
        facts["search"] = {"purpose": planned.purpose, **search}
    return facts
