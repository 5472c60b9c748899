"""What `make bench-scaling` measures can be measured; how long it takes is said there alone."""

import pytest
from scaling import REPEATS, of_plan


@pytest.mark.parametrize("runs", [7, REPEATS, 4 * REPEATS])
def test_a_plan_of_as_many_runs_as_were_asked_for_can_be_made(runs):
    assert of_plan(runs)[0][0] == f"a plan of {runs} runs"
