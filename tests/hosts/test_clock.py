"""Clocks of two hosts, by clocks that the test sets."""

import time

import pytest

from kvstudy.errors import RunFailed
from kvstudy.hosts.clock import Clock, Offset, moved_by, offset_to
from kvstudy.measure.several_hosts import Clocks


@pytest.mark.parametrize("planted_ns", [250_000_000, -250_000_000, 0])
def test_a_planted_offset_is_found_within_its_bound(planted_ns):
    clock = Clock("127.0.0.1", now_ns=lambda: time.time_ns() + planted_ns)
    try:
        found = offset_to("127.0.0.1", clock.port)
    finally:
        clock.close()
    assert abs(found.offset_ns - planted_ns) <= found.bound_ns


def test_a_drift_is_followed_between_two_looks():
    def after(seconds: int) -> Offset:
        return Offset(seconds * 10**9, 250_000_000 + seconds * 50_000, 1_000, 2_000)

    assert moved_by(after(0), after(60), 30 * 10**9) == pytest.approx(250_000_000 + 30 * 50_000)


def test_a_clock_that_was_set_meanwhile_fails_the_run_and_a_drifting_one_does_not():
    clocks = Clocks("b", {"a": Offset(0, 0, 10_000, 20_000)})
    clocks.after["a"] = Offset(10 * 10**9, 500_000, 10_000, 20_000)  # 50 ppm
    clocks.check()
    clocks.after["a"] = Offset(10 * 10**9, 90_000_000, 10_000, 20_000)
    with pytest.raises(RunFailed, match="clock of host a was set while it was measured: it moved by 90.0 ms"):
        clocks.check()
