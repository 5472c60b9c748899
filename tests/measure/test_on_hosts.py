"""What a host is brought before it takes part in a run."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from trial import configuration, trial

from kvstudy.errors import ExperimentError, HostLost
from kvstudy.hosts.hosts_file import HostsFile
from kvstudy.measure import on_hosts
from kvstudy.measure.on_hosts import Needs
from kvstudy.plan.run_plan import Plan, PlannedRun
from kvstudy.plan.subject import SubjectSpec
from kvstudy.subject.command import Command


class Host:
    """Notes what it is sent."""

    name = "b"

    def renew(self):
        pass

    def ship(self, _root, items):
        self.files = {item.path for item in items}

    def stationed(self, *_):
        pass


def brought(root, script, is_service=False, subjects=()) -> set[str]:
    plan = Plan(trial(), [PlannedRun(replace(configuration(), script=script), 1, 1, 7)])
    host = Host()
    Needs(plan, SimpleNamespace(builds={}, subjects=dict(enumerate(subjects))), root, None).member(
        host, is_service
    )
    return host.files


def test_what_a_command_names_in_the_project_is_on_the_services_host_alone(root):
    words = ["sh", "my/notes.txt", "--config=other/not.lua", "/etc/hostname", "{port}"]
    subject = Command(SubjectSpec.model_validate({"command": words}), root, None)
    there = {"experiments/workloads/put.lua"}
    assert brought(root, None, False, [subject]) == there
    assert brought(root, None, True, [subject]) == there | {"my/notes.txt", "other/not.lua"}


@pytest.fixture
def root(tmp_path):
    for name in (
        "experiments/workloads/put.lua",
        "own.lua",
        "beside.lua",
        "my/own.lua",
        "my/keys.lua",
        "my/parts/values.lua",
        "my/notes.txt",
        "other/not.lua",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize("is_service", [False, True], ids=["a generator's", "a service's"])
def test_a_script_from_anywhere_in_the_project_is_on_the_host_with_what_it_may_require(root, is_service):
    assert brought(root, "my/own.lua", is_service) == {
        "experiments/workloads/put.lua",
        "my/own.lua",
        "my/keys.lua",
        "my/parts/values.lua",
    }


def test_of_a_script_in_the_projects_own_folder_not_all_of_the_project_is_brought(root):
    assert brought(root, "own.lua") == {"experiments/workloads/put.lua", "own.lua", "beside.lua"}


def test_without_a_script_of_ones_own_the_projects_are_brought(root):
    assert brought(root, None) == {"experiments/workloads/put.lua"}


@pytest.mark.parametrize("script", ["/home/perf/own.lua", "../own.lua", "my/../../own.lua"])
def test_a_script_that_is_not_in_the_project_is_refused_before_anything_starts(root, script):
    with pytest.raises(ExperimentError) as refused:
        brought(root, script)
    assert refused.value.message == f"script cannot be brought to other hosts: script={script}"
    assert "put it into the project" in refused.value.hint


def test_who_is_interrupted_while_hosts_are_brought_what_they_need_waits_for_none(root, monkeypatch):
    given_up = []

    class Slow(Host):
        def __init__(self, name):
            self.name, self.is_over = name, threading.Event()

        def ship(self, _root, _items):
            if self.name == "a":
                raise KeyboardInterrupt
            self.is_over.wait(30)
            raise HostLost("host b is lost: the measurement is over")

        def give_up(self, _why):
            given_up.append(self.name)
            self.is_over.set()

    class Hosts:
        def __init__(self, file, *_):
            self.hosts = {name: Slow(name) for name in file.hosts}

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(on_hosts, "Hosts", Hosts)
    roles = {"a": "service", "b": "generator"}
    hosts = {name: {"address": name, "roles": [role]} for name, role in roles.items()}
    file, plan = (
        HostsFile.model_validate({"ssh": {}, "hosts": hosts}),
        Plan(trial(), [PlannedRun(configuration(), 1, 1, 7)]),
    )
    artifacts = SimpleNamespace(builds={}, subjects={})
    with (
        pytest.raises(KeyboardInterrupt),
        on_hosts.crews_on(file, root, None, plan, artifacts, root, 1, None),
    ):
        pass
    assert sorted(given_up) == ["a", "b"]


def test_a_host_that_was_lost_is_brought_what_the_others_have_whatever_is_saved_meanwhile(root):
    brought = []

    class Lost(Host):
        def ship(self, _root, items):
            brought.append(items)

        def now_ns(self):
            raise HostLost("host b is lost")

    plan = Plan(trial(), [PlannedRun(configuration(), 1, 1, 7)])
    member = Needs(plan, SimpleNamespace(builds={}, subjects={}), root, None).member(Lost(), False)
    (root / "experiments" / "workloads" / "put.lua").write_text("-- another one")
    member.ready()
    assert len(brought) == 2 and brought[0] == brought[1]


def test_of_a_host_that_is_lost_for_good_it_is_said_how_the_measurement_goes_on(root):
    class Lost(Host):
        def now_ns(self):
            raise HostLost("host b is lost: it does not answer within 6 s")

    plan = Plan(trial(), [PlannedRun(configuration(), 1, 1, 7)])
    host = Lost()
    member = Needs(plan, SimpleNamespace(builds={}, subjects={}), root, None).member(host, False)

    def refuse():
        raise HostLost("host b: its worker is gone")

    host.renew = refuse
    with pytest.raises(HostLost) as lost:
        member.ready()
    assert lost.value.message == "host b: its worker is gone" and "--resume goes on" in lost.value.hint
