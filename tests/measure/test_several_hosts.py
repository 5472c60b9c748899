"""What the service's host told, by the clock of the run."""

from kvstudy.measure.several_hosts import moved
from kvstudy.subject.protocol import Evidence

TOLD, MOVED = "2026-11-24T20:00:01.000000Z", "2026-11-24T20:00:00.750000Z"


def test_events_and_counters_are_moved_and_the_memory_group_of_a_run_over_hosts_is_recorded():
    group = {"limit_bytes": 256 << 20, "killed": False}
    found = moved(
        Evidence({"gc": [{"start_utc": TOLD, "gc_id": 7}]}, {TOLD: {"puts": 1.0}}, group),
        lambda at_s: at_s - 0.25,
    )
    assert found == Evidence({"gc": [{"start_utc": MOVED, "gc_id": 7}]}, {MOVED: {"puts": 1.0}}, group)


def test_what_was_not_told_is_not_told_by_another_clock():
    assert moved(Evidence(), lambda at_s: at_s - 0.25) == Evidence()
