"""Which crew measures what, and who takes over from one that cannot go on."""

import json
import threading
from types import SimpleNamespace

import pytest
from trial import trial

from kvstudy.errors import HostLost, KvstudyError
from kvstudy.measure.side_by_side import Share, is_of, measured_alike, of_these_crews, side_by_side
from kvstudy.plan.run_plan import plan


def crew(name):
    return SimpleNamespace(names=name, members=())


def share(*runs, home=None, missing=None):
    return Share(list(runs), list(runs) if missing is None else missing, home)


def test_what_a_crew_left_of_its_last_share_is_measured_whole_by_another_that_had_nothing_more_to_do(capsys):
    measured, begun, other_is_done = [], threading.Event(), threading.Event()

    def measure(runs, by):
        if by.names == "a":
            measured.append(("a", runs[0]))
            begun.set()
            other_is_done.wait(60)
            raise KvstudyError("host a is lost")
        begun.wait(60)
        measured.extend(("b", run) for run in runs)
        other_is_done.set()

    def unmeasured(runs):
        return [run for run in runs if run not in {run for _, run in measured}]

    with pytest.raises(KvstudyError, match="host a is lost"):
        side_by_side([share(1, 2, 3), share(4, 5)], [crew("a"), crew("b")], measure, unmeasured)
    assert sorted(run for by, run in measured if by == "b") == [1, 2, 3, 4, 5]
    assert len([by for by, _ in measured if by == "a"]) == 1
    assert "hosts a measure no more: host a is lost" in capsys.readouterr().err


def test_a_share_that_is_resumed_stays_on_the_hosts_that_began_it():
    measured = {}

    def measure(runs, by):
        measured.setdefault(by.names, []).extend(runs)

    todo = [share(1, 2, missing=[2], home="b"), share(3, 4, missing=[4], home="b"), share(5)]
    side_by_side(todo, [crew("a"), crew("b")], measure, lambda _runs: [])
    assert set(measured["b"]) >= {2, 4} and {1, 3}.isdisjoint(measured["b"])
    assert set(measured.get("a", [])) <= {5}


def test_a_share_whose_hosts_are_not_there_any_more_is_measured_whole():
    measured = []
    side_by_side(
        [share(1, 2, missing=[2], home="gone")],
        [crew("a")],
        lambda runs, _by: measured.extend(runs),
        lambda _runs: [],
    )
    assert measured == [1, 2]


@pytest.mark.parametrize(
    ("noted", "now", "same"),
    [
        ({"a": "1", "g": "2"}, {"a": "1", "g": "2"}, True),
        ({"a": "1", "g": "2"}, {"a": "1", "g": "3"}, False),
        ({"a": None, "g": None}, {"a": "1", "g": "2"}, False),
        ({"a": None, "g": None}, {"a": None, "g": None}, True),  # systems that have no such number
    ],
)
def test_a_run_is_of_hosts_when_the_same_machines_have_these_names_still(noted, now, same):
    machine = {"hosts": {name: {"machine_id": known} for name, known in noted.items()}}
    run = SimpleNamespace(facts={"hosts": {"service": "a", "generators": ["g"]}}, machine=machine)
    machines = {name: {"machine_id": known} for name, known in now.items()}
    there = SimpleNamespace(names="a ← g", is_here=False, machines=machines)
    assert is_of(run, there) is same
    assert not is_of(run, SimpleNamespace(is_here=True))


def test_of_a_share_those_runs_count_that_one_crew_has_measured():
    runs = plan(trial(repeats=5)).runs

    def sealed(run, service):
        hosts = {"service": service, "generators": ["g"]}
        return SimpleNamespace(facts={"identity": run.identity(), "hosts": hosts})

    before = [sealed(runs[0], "a"), sealed(runs[1], "a"), sealed(runs[2], "b"), sealed(runs[3], "gone")]
    (one,), kept = of_these_crews(runs, before, ["a ← g", "b ← g"])
    assert one.home == "a ← g" and kept == before[:2] and one.missing == runs[2:]


class Host:
    """Whoever waits for it gets HostLost when it is given up."""

    def __init__(self):
        self.gone = threading.Event()
        self.why = ""

    def give_up(self, why):
        self.why = why
        self.gone.set()

    def wait(self):
        assert self.gone.wait(30)
        raise HostLost(f"host is lost: {self.why}")


def crew_of(name, *hosts):
    return SimpleNamespace(names=name, members=tuple(SimpleNamespace(host=one) for one in hosts))


def test_who_is_stopped_in_one_crew_stops_all_of_them_and_it_is_no_success():
    """As by the button of a notebook, which is seen by the thread of a crew."""
    hosts, begun, both = {name: Host() for name in "ab"}, [], threading.Barrier(2)

    def measure(runs, by):
        begun.extend(runs)
        both.wait(30)
        if by.names == "a":
            raise KeyboardInterrupt
        hosts["b"].wait()

    crews = [crew_of(name, host) for name, host in hosts.items()]
    with pytest.raises(KeyboardInterrupt):
        side_by_side([share(1), share(2), share(3), share(4)], crews, measure, lambda runs: runs)
    assert sorted(begun) == [1, 2]
    assert all(host.why == "interrupted" for host in hosts.values())


def test_who_is_stopped_in_the_last_crew_that_measures_is_no_success():
    def measure(_runs, _by):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side([share(1)], [crew_of("a", Host())], measure, lambda runs: runs)


def test_hosts_of_what_is_stopped_are_given_up_all_at_once():
    """One that cannot be reached takes seconds."""
    at_once = threading.Barrier(4)

    class Slow(Host):
        def give_up(self, why):
            at_once.wait(30)
            super().give_up(why)

    def measure(_runs, _by):
        raise KeyboardInterrupt

    crews = [crew_of(name, Slow(), Slow()) for name in "ab"]
    with pytest.raises(KeyboardInterrupt):
        side_by_side([share(1)], crews, measure, lambda runs: runs)


def test_when_no_crew_is_left_it_ends_with_what_happened_first():
    def measure(_runs, _by):
        raise KvstudyError("host is lost")

    with pytest.raises(KvstudyError, match="host is lost"):
        side_by_side([share(1), share(2), share(3)], [crew("a"), crew("b")], measure, lambda runs: runs)


def test_whether_a_run_is_of_the_programs_of_its_hosts_is_asked_there_and_of_no_other_host():
    """What a command names may be another program on each of them, and here."""

    def run(service, digest):
        facts = {"hosts": {"service": service, "generators": ["g"]}, "digest": digest}
        return SimpleNamespace(facts=facts, machine={})

    def crew_with(name, digest):
        station = SimpleNamespace(are_alike=lambda runs: [facts["digest"] == digest for facts in runs])
        member = SimpleNamespace(station=station)
        return SimpleNamespace(names=f"{name} ← g", is_here=False, machines={}, service=member)

    runs = [run("a", "1"), run("b", "1"), run("b", "2"), run("gone", "1")]
    crews = [crew_with("a", "1"), crew_with("b", "2")]
    assert measured_alike(runs, crews) == [True, False, True, False]
