"""Which runs of a plan stay on the same hosts when several crews of hosts measure side by side.

    for share in shares(plan.runs, crews): …      every run in exactly one; each goes to one crew, whole

Runs of different hosts are never repeats of one another, and are not compared. So a share holds all repeats
of its configurations, or at least LEAST_REPEATS of them, and every configuration that these are compared
with: all of one workload, whatever else varies. Where nothing varies but the workload, workloads are what is
compared, and all of them are one share.
"""

from collections import defaultdict
from collections.abc import Sequence

from kvstudy.plan.run_plan import PlannedRun

LEAST_REPEATS = 5  # that a word needs: MIN_RUNS of analyse/comparison/words.py


def shares(runs: Sequence[PlannedRun], crews: int) -> list[list[PlannedRun]]:
    """At most as many of each workload as ``crews`` need to be busy. In the plan's order, within a share
    too."""
    of_workload = defaultdict(set)
    for run in runs:
        of_workload[run.configuration.workload].add(repr(run.configuration))
    part = any(len(configurations) > 1 for configurations in of_workload.values())
    wanted = -(-crews // len(of_workload)) if part else crews
    found: dict[tuple[str, int], list[PlannedRun]] = {}
    for run in runs:
        parts = max(1, min(wanted, run.repeats // LEAST_REPEATS))
        key = run.configuration.workload if part else "", (run.repeat - 1) * parts // run.repeats
        found.setdefault(key, []).append(run)
    return list(found.values())
