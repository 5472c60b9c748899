"""A load over several hosts: when it begins, and what the service's host told, by the clock of the run."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from trial import configuration

from kvstudy.errors import RunFailed
from kvstudy.hosts.clock import Course, Offset
from kvstudy.measure import several_hosts
from kvstudy.measure.crew import Crew, Member
from kvstudy.measure.generator import check_exit
from kvstudy.measure.several_hosts import SeveralHostsLoad, moved
from kvstudy.measure.start_in_time import MissedStart, started_in_time
from kvstudy.measure.supervision import SupervisedLoad
from kvstudy.record import process_series
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


class Station:
    """Of a service and of a generator, without either. ``too_late``: so often its generator begins too
    late."""

    def __init__(self, too_late: int = 0):
        self.told: set[str] = set()
        self.too_late = too_late
        self.starts_s: list[float] = []
        self.attended: list[str] = []
        self.seconds: list[dict] = []

    def watch_clock(self):
        return 0

    def clock_course(self, _since):
        return Course(0, 0)

    def open_clock(self):
        return 1

    def close_clock(self):
        pass

    def now_s(self):
        return 1000.0

    def clock_offset(self, _address, _port):
        return Offset(0, 0, 1, 2)

    def commands(self, *_):
        return [None]

    def generate(self, _command, _measured, _cores, at_s, _over):
        self.starts_s.append(at_s)
        if len(self.starts_s) <= self.too_late:
            raise MissedStart("generator failed: exit 1: too late to start")
        return SupervisedLoad(rows=[])

    def attend(self, timing):
        self.attended.append(timing.is_over)
        while timing.is_over not in self.told:
            time.sleep(0.01)
        return SupervisedLoad(rows=[])

    def sampled(self):
        return self.seconds


def load_of(tmp_path, generator: Station) -> tuple[SeveralHostsLoad, Station]:
    def member(name, station):
        host = SimpleNamespace(name=name, address=name, is_remote=True, tell=station.told.add)
        return Member(host, station)

    service = Station()
    crew = Crew(member("a", service), (member("b", generator),))
    for one in crew.members:
        one.fetch = lambda *_: None
    one = replace(configuration(), warm_up_s=0.5)
    return SeveralHostsLoad(crew, one, tmp_path, tmp_path, lambda _phase: None, lambda: None), service


def test_a_load_whose_generator_was_not_ready_in_time_begins_again_with_more_of_it(tmp_path):
    generator = Station(too_late=2)
    load, service = load_of(tmp_path, generator)
    begun = load.run("http://a:1", over="run")
    assert generator.starts_s == [1000.0 + lead_s for lead_s in several_hosts.LEADS_S]
    assert begun.timestamp() == generator.starts_s[-1]
    assert len(set(service.attended)) == 3, "what ends one try must not end the next"


def test_a_load_that_never_begins_in_time_fails_and_says_so(tmp_path):
    load, _ = load_of(tmp_path, Station(too_late=9))
    with pytest.raises(RunFailed, match="too late to start"):
        load.run("http://a:1", over="run")


def test_what_fails_otherwise_is_not_tried_again():
    tried = []

    def fail(lead_s):
        tried.append(lead_s)
        raise RunFailed("service died")

    with pytest.raises(RunFailed, match="service died"):
        started_in_time(fail, (1.0, 2.0))
    assert tried == [1.0]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("too late to start: --start-at 2026 had passed when all connections were open", MissedStart),
        ("the time is past: --start-at 2026", MissedStart),
        ("connection refused", RunFailed),
    ],
)
def test_a_generator_that_came_too_late_is_told_from_one_that_failed(tmp_path, said, kind):
    (tmp_path / "log").write_text(f"{said}\n")
    with pytest.raises(RunFailed, match=said) as failed:
        check_exit("loadgen", 1, tmp_path / "log")
    assert type(failed.value) is kind


def test_the_load_of_a_run_is_that_of_its_hosts_and_not_of_the_machine_where_it_was_typed(
    tmp_path, monkeypatch
):
    """Of a service at an address the machine where it was typed takes the place."""
    monkeypatch.setattr(several_hosts.machine, "load_during", lambda rows: {"steal_share_mean": rows[0]})
    typed, generator = (
        Member(SimpleNamespace(name=name, address=name, is_remote=bool(name)), None) for name in ("", "b")
    )
    load = SeveralHostsLoad(
        Crew(typed, (generator,)), configuration(), tmp_path, tmp_path, lambda _phase: None, lambda: None
    )
    load.sampled = {"": [0.9], "b": [0.1]}
    assert load.load_during() == {"steal_share_mean": 0.1}


def test_a_second_that_a_generators_host_did_not_read_is_still_one_of_the_service(tmp_path):
    """Its host was too busy then: just that second must not be missing."""
    service, generator = (
        Member(SimpleNamespace(name=name, address=name, is_remote=True), None) for name in "ab"
    )
    load = SeveralHostsLoad(
        Crew(service, (generator,)), configuration(), tmp_path, tmp_path, lambda _phase: None, lambda: None
    )
    load.sampled = {
        "a": [{"second": second, "interval_s": 1.0, "steal_share": 0.5} for second in range(-3, 7)],
        "b": [
            {"second": second, "generator_cpu_s": 0.1, "generator_rss_bytes": 1} for second in (-1, 0, 3, 4)
        ],
    }
    load._merge_process()
    written = process_series.read((tmp_path / "process.csv").read_text(), "process.csv")
    assert written["second"].tolist() == [-1, 0, 1, 2, 3, 4]
    assert np.isnan(written["generator_cpu_s"]).tolist() == [False, False, True, True, False, False]


def test_of_a_load_that_failed_what_others_took_meanwhile_is_known_all_the_same(tmp_path):
    """A service that died beside a neighbour that took its CPU has not missed the rate."""
    load, service = load_of(tmp_path, Station(too_late=99))
    share = {"steal_share": 0.4, "foreign_cpu_share": 0.0, "busy_share": 1.0}
    service.seconds = [{"second": 0, "interval_s": 1.0, "ended_s": 1.0} | share]
    with pytest.raises(RunFailed):
        load.run("http://a:1", over="run")
    assert load.load_during()["steal_share_mean"] == 0.4


def test_what_a_generator_found_is_merged_by_the_clock_of_the_run():
    """Its own clock is 250 ms behind: by that its window would begin before those of the others."""
    found = {
        "start_utc": "2026-11-20T20:41:06.750000000Z",
        "measure_start_utc": "2026-11-20T20:41:07.750000000Z",
        "stop_utc": "2026-11-20T23:59:59.999000000Z",
        "counts": {"completed": 7},
    }
    assert several_hosts.by_run_clock(found, lambda _own_ns: 250_000_000) == {
        "start_utc": "2026-11-20T20:41:07.000000000Z",
        "measure_start_utc": "2026-11-20T20:41:08.000000000Z",
        "stop_utc": "2026-11-21T00:00:00.249000000Z",
        "counts": {"completed": 7},
    }
