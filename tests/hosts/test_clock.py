"""Clocks of two hosts, by clocks that the test sets."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from kvstudy.errors import RunFailed
from kvstudy.hosts.clock import Clock, ClockWatch, Course, Offset, course_of, moved_by, offset_to
from kvstudy.hosts.host import Here
from kvstudy.measure.base_station import BaseStation
from kvstudy.measure.several_hosts import Clocks, moved
from kvstudy.subject.protocol import Evidence

sys.path.append(str(Path(__file__).parents[1] / "analyse"))


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


SECOND_NS = 10**9


def looks(ahead_ns, seconds: int = 60) -> list[tuple[int, int]]:
    """Five a second."""
    times = [place * SECOND_NS // 5 for place in range(5 * seconds + 1)]
    return [(at, round(ahead_ns(at / SECOND_NS))) for at in times]


def test_a_clock_that_drifts_goes_on_a_straight_line():
    assert course_of(looks(lambda at_s: 250e6 + 50e3 * at_s)) == Course(0, 0)


def test_a_step_within_what_may_drift_is_seen():
    """25 ms in a minute; 500 ppm are 30."""
    course = course_of(looks(lambda at_s: 25e6 * (at_s > 30)))
    assert course.step_ns == pytest.approx(25e6, rel=0.01)
    assert course.wandered_ns == pytest.approx(12.5e6, rel=0.01)
    assert course_of(looks(lambda at_s: -25e6 * (at_s > 30))).step_ns == pytest.approx(-25e6, rel=0.01)


def slewed_ns(at_s: float) -> float:
    """From the middle on."""
    return 400e3 * max(0.0, at_s - 30)


def test_a_clock_that_is_slewed_in_the_middle_wanders_and_was_not_set():
    assert course_of(looks(slewed_ns)) == Course(6_000_000, 0)


def test_moved_times_are_right_within_their_bound_also_where_either_clock_was_slewed():
    def offset(at_s: float, host_ns: float, reference_ns: float) -> Offset:
        return Offset(round(at_s * SECOND_NS), round(reference_ns - host_ns), 10_000, 20_000)

    for of_host, of_reference in ((slewed_ns, lambda _: 0.0), (lambda _: 0.0, slewed_ns)):
        clocks = Clocks(
            "b",
            {"a": offset(0, of_host(0), of_reference(0))},
            {"a": offset(60, of_host(60), of_reference(60))},
            {"a": course_of(looks(of_host)), "b": course_of(looks(of_reference))},
        )
        clocks.check()
        off_s = [
            abs(clocks.moved_s("a", at_s) - (of_reference(at_s) - of_host(at_s)) / 1e9) for at_s in range(61)
        ]
        assert 0.005 < max(off_s) <= clocks.bound_s("a") < 0.007
        assert clocks.facts()["wandered_us"] == {
            "a": clocks.courses["a"].wandered_ns / 1e3,
            "b": clocks.courses["b"].wandered_ns / 1e3,
        }


@pytest.mark.parametrize("host", ["a", "b"])
def test_a_clock_that_was_set_by_a_little_fails_the_run_whichever_hosts_it_is(host):
    clocks = Clocks("b", {"a": Offset(0, 0, 10_000, 20_000)}, courses={host: Course(12_500_000, 25_000_000)})
    said = f"clock of host {host} was set while it was measured: it moved by 25.0 ms at once"
    with pytest.raises(RunFailed, match=said):
        clocks.check()


def test_a_host_sees_that_its_own_clock_is_set():
    ahead_ns = 0
    watch = ClockWatch(wall_ns=lambda: time.time_ns() + ahead_ns)
    try:
        before = watch.mark()
        assert abs(watch.course(before).step_ns) < 1_000_000
        ahead_ns = 25_000_000
        course = watch.course(before)
        assert course.step_ns == pytest.approx(25e6, abs=1e6)
        after = watch.mark()
        assert abs(watch.course(after).step_ns) < 1_000_000
    finally:
        watch.close()


def test_causes_of_the_tail_are_named_by_events_of_a_wrong_clock_as_by_those_of_a_right_one():
    """Answers wait for pauses of 60 ms; the service's clock is 250 ms ahead and gains 50 ppm."""
    from test_tail import SECONDS, tables

    from kvstudy.analyse import tail

    draw, window_s, begun_s = np.random.default_rng(7), 1_795_207_345.0, -20.0
    events, slow, answers = [], {}, []
    for run in range(6):
        slow[run] = {}
        answers.append((run, 0.5, 400))
        for start in draw.uniform(1, SECONDS - 2, 7):
            events.append((run, "gc_pause", start, 60.0))
            events.append((run, "flush", draw.uniform(1, SECONDS - 2), 60.0))
            due_s = start + draw.uniform(0, 0.03, 30)
            answers += [(run, due, round(1e6 * (start + 0.06 - due))) for due in due_s]
            slow[run][int(start + 0.06)] = 30

    def ahead_s(right_s: float) -> float:
        return 0.25 + (right_s - window_s - begun_s) * 50e-6

    def offset(right_s: float) -> Offset:
        return Offset(
            round(1e9 * (right_s + ahead_s(right_s))), round(-1e9 * ahead_s(right_s)), 10_000, 20_000
        )

    clocks = Clocks("b", {"a": offset(window_s - 3)}, {"a": offset(window_s + SECONDS + 1)})
    clocks.check()

    def by_clock_of(dated) -> list:
        noted = [
            (run, kind, dated(window_s + start) - window_s, length) for run, kind, start, length in events
        ]
        return tail.causes(tables(noted, slow, answers), 5_000)

    def put_right(right_s: float) -> float:
        wrong = datetime.fromtimestamp(right_s + ahead_s(right_s), UTC).isoformat(timespec="microseconds")
        seen = Evidence({"gc": [{"start_utc": wrong}]}, None)
        (event,) = moved(seen, lambda at_s: at_s + clocks.moved_s("a", at_s)).events["gc"]
        return datetime.fromisoformat(event["start_utc"]).timestamp()

    right, wrong, mended = (
        by_clock_of(dated) for dated in (lambda at: at, lambda at: at + ahead_s(at), put_right)
    )
    assert right.iloc[0]["cause"] == "gc_pause" and right.iloc[0]["word"] == tail.LINKED
    assert mended[["cause", "word"]].equals(right[["cause", "word"]])
    assert mended["share"].to_numpy() == pytest.approx(right["share"].to_numpy(), abs=0.02)
    assert wrong.iloc[0]["share"] < 0.3  # what it would have been


def test_the_machine_where_it_is_typed_is_named_as_that():
    """It takes part where the service runs at an address, and has no name."""
    clocks = Clocks("b", {"": Offset(0, 0, 10_000, 20_000)}, courses={"": Course(12_500_000, 25_000_000)})
    with pytest.raises(
        RunFailed, match="^clock of the machine where you type was set while it was measured: "
    ):
        clocks.check()
    station = BaseStation(Here(Path(), Path(), lambda *_: None), None, None)
    clock = Clock("127.0.0.1")
    clock.close()
    said = f"the machine where you type does not reach 127.0.0.1:{clock.port}: connection refused"
    with pytest.raises(RunFailed, match=f"hosts cannot compare their clocks: {said}"):
        station.clock_offset("127.0.0.1", clock.port)
