"""A core that is slowed now and then is told from one that works evenly, whatever its speed."""

import itertools

import pytest

from kvstudy.measure.steadiness import slow_share


class Core:
    """Does a piece of work in ``piece_s(now_s)`` seconds."""

    def __init__(self, piece_s):
        self.now_s, self._piece_s = 0.0, piece_s

    def clock(self) -> float:
        return self.now_s

    def work(self) -> None:
        self.now_s += self._piece_s(self.now_s)


@pytest.mark.parametrize("piece_s", [1e-5, 3e-4])
def test_a_core_that_works_evenly_is_never_slow_whatever_its_speed(piece_s):
    core = Core(lambda now_s: piece_s)
    assert slow_share(2.0, core.clock, core.work) == 0.0


def test_a_core_that_works_at_a_tenth_for_fifty_milliseconds_a_second_is_slow_for_a_twentieth():
    core = Core(lambda now_s: 1e-4 if now_s % 1 < 0.05 else 1e-5)
    assert slow_share(4.0, core.clock, core.work) == pytest.approx(0.05, abs=0.02)


def test_pieces_that_swing_by_a_third_are_not_slow():
    swing = itertools.cycle([1e-5, 1.3e-5])
    core = Core(lambda now_s: next(swing))
    assert slow_share(1.0, core.clock, core.work) == 0.0


def test_the_real_clock_gives_a_share():
    assert 0.0 <= slow_share(0.1) <= 1.0
