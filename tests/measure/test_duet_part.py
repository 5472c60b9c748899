"""loadgen's command line of one part of a duet. (What a part finds: whole duets in test_compare.py.)"""

from pathlib import Path

import trial

from kvstudy.measure.duet_part import Turn, part_command
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


def test_whose_slice_is_the_first_is_the_first_address():
    for line in lines():
        assert " --alternate http://127.0.0.1:2 http://127.0.0.1:1 " in line
