import numpy as np
import pytest
from histograms import encoded

from kvstudy.analyse.machine_events import process_events, stops
from kvstudy.analyse.observation import observe
from kvstudy.record import hdr, slowest
from kvstudy.record.jfr import Event

NOT_KEPT = slowest.read("due_us,response_us,service_us,connection\n", "slowest.csv")


def process(**columns):
    usual = {
        "second": np.arange(-2.0, 6.0),
        "interval_s": np.ones(8),
        "steal_share": np.zeros(8),
        "foreign_cpu_share": np.full(8, 0.02),
        "throttled_s": np.zeros(8),
    }
    return usual | {name: np.asarray(values, dtype=float) for name, values in columns.items()}


def test_a_quiet_machine_has_no_events():
    assert process_events(process(), 1000.0) == []


@pytest.mark.parametrize(
    ("column", "values", "kind", "duration_ms"),
    [
        ("steal_share", [0.5, 0, 0, 0, 0, 0.03, 0, 0], "cpu_steal", 30),
        ("foreign_cpu_share", [0.9, 0, 0, 0, 0, 0.4, 0, 0.04], "cpu_foreign", 400),
        ("throttled_s", [0, 0, 0, 0, 0, 0.25, 0, 0], "cpu_throttled", 250),
    ],
)
def test_what_disturbed_a_measured_second_is_an_event_in_it(column, values, kind, duration_ms):
    (event,) = process_events(process(**{column: values}), 1000.0)
    assert (event.kind, event.start_epoch_s, event.duration_ms) == (kind, 1003.0, duration_ms)


def test_a_row_that_was_read_late_is_of_the_seconds_before_its_own_and_not_of_those_behind():
    late = process(interval_s=[1, 1, 1, 1, 1, 3, 1, 1], foreign_cpu_share=[0, 0, 0, 0, 0, 0.5, 0, 0])
    late["second"] = np.array([-2.0, -1, 0, 1, 2, 5, 6, 7])
    found = process_events(late, 1000.0)
    assert [event.start_epoch_s - 1000 for event in found] == [3, 4, 5]
    assert {event.duration_ms for event in found} == {500.0}


def served(slow, slow_us=800_000, usual_us=100):
    return [(3, hdr.decode(encoded(np.concatenate([np.full(1000, usual_us), np.full(slow, slow_us)]))))]


def test_a_moment_in_which_every_connection_waited_is_a_stop():
    (event,) = stops(served(8), 8, [], 1000.0, NOT_KEPT)
    assert event.kind == "service_stopped" and event.duration_ms == pytest.approx(800, rel=1e-3)
    assert event.start_epoch_s == pytest.approx(1003.5 - 0.8, abs=1e-3)


def test_a_stop_ended_when_its_answers_came():
    answers = {
        "due_us": np.array([2_300_000, 2_305_000, 3_700_000]),
        "response_us": np.array([800_000, 797_000, 150]),
        "service_us": np.array([800_000, 797_000, 150]),
        "connection": np.arange(3),
    }
    (event,) = stops(served(8), 8, [], 1000.0, answers)
    assert event.start_epoch_s == pytest.approx(1002.3, abs=2e-3)


@pytest.mark.parametrize(
    ("why", "seconds", "connections", "events"),
    [
        ("the JVM paused", served(8), 8, [Event("gc_pause", 1002.9, 700.0, {})]),
        ("the store stalled", served(8), 8, [Event("write_stall", 1003.1, 790.0, {})]),
        ("one slow request", served(1), 8, []),
        ("many slow requests, one after the other", served(80), 8, []),
        ("too few connections to tell", served(2), 2, []),
        ("short", served(8, slow_us=20_000), 8, []),
        ("slow all the time", served(8, usual_us=200_000), 8, []),
        ("nothing answered", [(3, hdr.decode(encoded([])))], 8, []),
    ],
)
def test_what_is_not_a_stop_is_not_called_one(why, seconds, connections, events):
    assert stops(seconds, connections, events, 1000.0, NOT_KEPT) == [], why


def test_a_short_pause_does_not_explain_a_long_stop():
    assert len(stops(served(8), 8, [Event("gc_pause", 1003.2, 5.0, {})], 1000.0, NOT_KEPT)) == 1


def test_a_column_that_was_not_recorded_or_is_empty_gives_no_event():
    assert process_events({"second": np.arange(3.0), "steal_share": np.array([np.nan, 0, 0])}, 1000.0) == []


def test_disturbances_stand_among_the_events_of_a_run(make_run):
    rows = observe(make_run(process={"foreign_cpu_share": 0.3}))
    assert {(row["kind"], row["start_s"], row["duration_ms"]) for row in rows["events"]} == {
        ("cpu_foreign", float(second), 300.0) for second in range(6)
    }
