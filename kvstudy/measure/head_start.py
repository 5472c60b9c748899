"""What puts repeats out of step: before the warm-up each writes a part of its own of the experiment's
``head_start``.

Every repeat begins with an empty memtable, or with the same store. Without a head start all of them flush and
compact at the same moments, and nothing tells a compaction from whatever else comes so long after the start.
"""

from collections.abc import Callable
from pathlib import Path

from kvstudy.measure.fill import write_records
from kvstudy.plan.run_plan import PlannedRun
from kvstudy.subject.protocol import LiveSubject


def head_start(
    planned: PlannedRun,
    subject: LiveSubject,
    loadgen: Path,
    workloads: Path,
    log: Path,
    registered: Callable[[int, bool], None],
) -> int:
    """Writes it, and returns how many records that were. They are of the workload's own keys, with their own
    values; but where each key is to be written once, of the keys behind them."""
    writes, arguments = planned.head_start_writes, planned.configuration.workload_args
    first = arguments["key_count"] if planned.configuration.workload == "unique_put" else 0
    count = writes if first else arguments["key_count"]
    write_records(
        loadgen,
        workloads,
        planned.configuration.spec,
        subject,
        writes,
        "head start",
        log,
        registered,
        key_count=count,
        first_key=first,
        key_bytes=arguments["key_bytes"],
        value_bytes=arguments["value_bytes"],
    )
    return writes
