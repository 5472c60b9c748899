"""What trials say about the knee."""

import pytest

from kvstudy.plan.knee import KneePosterior


def knee(*trials) -> KneePosterior:
    known = KneePosterior(1000, 20_000)
    for rate_rps, held in trials:
        known.add(rate_rps, held)
    return known


def test_without_a_trial_the_knee_may_be_anywhere_and_outside_too():
    low, high = knee().interval()
    assert low < 1000 and high > 20_000


def test_each_answer_moves_the_knee_to_its_side_and_repeats_narrow_it():
    held, missed = [(9000, True)] * 3, [(11_000, False)] * 3
    low, high = knee(*held, *missed).interval()
    assert 8000 < low < 9900 and 10_100 < high < 12_500
    again = knee(*held * 4, *missed * 4).interval()
    assert again[1] / again[0] < high / low


def test_a_rate_with_mixed_answers_is_near_the_knee_and_held_in_about_half_of_the_trials():
    mixed = knee(*[(10_000, True), (10_000, False)] * 6, *[(5000, True)] * 3, *[(20_000, False)] * 3)
    low, middle, high = mixed.held_share(10_000)
    assert low < 0.5 < high and middle == pytest.approx(0.5, abs=0.15)
    assert mixed.held_share(5000)[0] > 0.8 and mixed.held_share(20_000)[2] < 0.2


def test_one_answer_against_all_others_does_not_move_the_knee_far():
    without = knee(*[(9000, True)] * 5, *[(11_000, False)] * 5).quantiles(0.5)[0]
    with_one = knee((4000, False), *[(9000, True)] * 5, *[(11_000, False)] * 5).quantiles(0.5)[0]
    assert with_one == pytest.approx(without, rel=0.1)


def test_a_miss_right_after_an_overload_says_less_than_one_of_a_rested_service():
    rested = knee((9000, True), (9000, False)).probability_above(9500)
    tired = knee((20_000, False), (9000, False), (9000, True)).probability_above(9500)
    assert tired > rested
