"""loadgen's command line of one part of a duet, and who watches its sides. (What a part finds: whole duets in
test_compare.py.)"""

import os
import re
import time
from pathlib import Path

import pytest
import trial

from kvstudy.errors import RunFailed
from kvstudy.measure.duet_part import Turn, attend_part, part_command
from kvstudy.plan.comparison import comparisons


def lines(**change) -> list[str]:
    """Of the part at the rate, and of that in a closed loop."""
    sides = {"service": {"handler": ["selector", "workers"]}}
    (comparison,) = comparisons(trial.trial(**sides | change))
    (load,) = comparison.loads
    turn = Turn({"a": "http://127.0.0.1:1", "b": "http://127.0.0.1:2"}, "b", seed=7)
    workloads = Path("/p/experiments/workloads")
    return [
        " ".join(part_command("loadgen", workloads, load, loop, turn, None, Path("/r/j")))
        for loop in load.loops
    ]


def test_a_rate_and_times_are_written_to_their_last_digit():
    at_rate, closed = lines(rate=1_234_567, timeout="400us")
    assert " -R 1234567 " in at_rate and " -R " not in closed and " --closed " in closed
    assert " --spin auto " in at_rate and " --spin " not in closed
    for line in (at_rate, closed):
        assert " --slice 650ms --settle 150ms --gap 20ms..350ms " in line and " --timeout 400us " in line


def test_a_closed_loop_writes_behind_the_keys_of_the_part_at_the_rate():
    at_rate, closed = lines(workload="unique_put", rate=2000)
    skipped = re.search(r" skip=(\d+) ", closed)
    assert " skip=" not in at_rate and skipped and int(skipped[1]) >= 2000 * 30
    assert not any(" skip=" in line for line in lines(workload="put"))


def test_whose_slice_is_the_first_is_the_first_address():
    for line in lines():
        assert " --alternate http://127.0.0.1:2 http://127.0.0.1:1 " in line


def test_a_side_that_died_is_told_also_where_the_load_was_over_before_it_was_looked_at():
    """On a busy host: the generator elsewhere found nobody, and said so first."""

    def died() -> None:
        raise RunFailed("side a: service died during put: signal 9")

    pids = {"a": (os.getpid(),), "b": (os.getpid(),)}
    with pytest.raises(RunFailed, match="^side a: service died during put: signal 9"):
        attend_part(pids, [time.time_ns()], lambda: True, died, at_most_s=1)
