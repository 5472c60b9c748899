"""That the simulations of slices in step could see a fault: without the draw of who goes first they do."""

import numpy as np
import pytest
from rules.duets_in_step import EXACTLY, launches, said


@pytest.mark.parametrize("measure", ["mean", "p99"])
def test_without_the_draw_of_the_first_side_what_is_in_step_with_the_slices_is_a_word(measure):
    generator = np.random.default_rng(7)
    wrong = said(generator, 300, measure, EXACTLY, draws_first=False)
    assert wrong > 60, f"{wrong} of 300"


def test_single_launches_differ_by_far_where_slices_are_in_step():
    found = launches(np.random.default_rng(7), 100, EXACTLY)
    assert (np.abs(found["p99"]) > np.log(1.25)).mean() > 0.5
