"""What comes from the hosts of a run when it ends, under which name, and what is said of a host that is lost
then."""

import errno
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvstudy.errors import HostLost, RunFailed
from kvstudy.measure.crew import SHARED, Crew, Member
from kvstudy.measure.limits import Needs
from kvstudy.service_failure import is_of_service


class Away:
    """A host whose files are in a folder of their own; ``is_lost`` when they are asked for."""

    is_remote = True

    def __init__(self, folder, files, is_lost=False):
        self.name, self._folder, self._is_lost = folder.name, folder, is_lost
        folder.mkdir()
        for name in files:
            (folder / name).write_text(f"{name} of {folder.name}")

    def run_folder(self, _here):
        return self._folder

    def settle(self):
        pass

    def drop(self, _there):
        pass

    def fetch(self, there, here, only=None):
        if self._is_lost:
            raise HostLost(f"host {self.name} is lost: its worker ended")
        for path in there.iterdir():
            if only is None or path.name in only:
                (here / path.name).write_text(path.read_text())


@pytest.fixture
def member(tmp_path):
    def made(name, files, **how):
        station = SimpleNamespace(begin=lambda *_: {}, end=lambda: None)
        one = Member(Away(tmp_path / name, files, **how), station)
        one.begin(None, tmp_path / "here", "run")
        return one

    (tmp_path / "here").mkdir()
    return made


def test_files_of_several_generators_keep_their_part_when_the_load_has_failed(tmp_path, member):
    files = ["generator.json", "generator.log", "process.csv"]
    crew = Crew(member("a", ["process.csv"]), (member("b", files), member("c", files)))
    assert crew.end(tmp_path / "here") is None
    found = {path.name: path.read_text() for path in (tmp_path / "here").iterdir()}
    assert found == {
        "process.csv": "process.csv of a",
        **{
            f"{name.replace('.', f'-{number}.')}": f"{name} of {host}"
            for number, host in ((1, "b"), (2, "c"))
            for name in files
        },
    }


def test_what_was_brought_and_merged_is_not_brought_again(tmp_path, member):
    here = tmp_path / "here"
    one, two = member("b", ["latency.hlog"]), member("c", ["latency.hlog"])
    crew = Crew(member("a", []), (one, two))
    for generator in (one, two):
        generator.fetch(here, lambda name, generator=generator: crew.named(generator, name))
    assert {path.name for path in here.iterdir()} == {"latency-1.hlog", "latency-2.hlog"}
    for path in here.iterdir():
        path.unlink()
    assert crew.end(here) is None and list(here.iterdir()) == []


def test_of_a_host_that_still_writes_only_what_is_asked_for_is_brought_and_the_rest_at_the_end(
    tmp_path, member
):
    here = tmp_path / "here"
    one = member("a", ["generator.json", "service.log"])
    crew = Crew(one, (one,))
    one.fetch(here, only=["generator.json"])
    assert [path.name for path in here.iterdir()] == ["generator.json"]
    (tmp_path / "a" / "service.log").write_text("its last line")
    assert crew.end(here) is None
    assert (here / "service.log").read_text() == "its last line"


def test_a_host_that_loads_its_own_service_is_none_of_this_machine(member):
    """Its processes are children of an agent there, and its runs say where they were measured."""
    there, other = member("a", []), member("b", [])
    here = Member(SimpleNamespace(name="", is_remote=False), None)
    crews = Crew(there, (there,)), Crew(there, (other,)), Crew(here, (here,))
    assert [crew.is_one_host for crew in crews] == [True, False, True]
    assert [crew.is_here for crew in crews] == [False, False, True]
    assert [crew.names for crew in crews] == ["a", "a ← b", ""]


def test_who_has_one_host_is_told_that_service_and_generator_share_it(member):
    one = member("a", [])
    one.station.check_disk = one.station.check_port = one.station.check_open_files = lambda *_: None
    one.station.limit_notes = lambda _needs: []
    one.station.awake_note = lambda _wanted: None
    one.station.pinning = lambda _threads, _wanted: None
    needs = Needs(connections=1, memory_groups=False)
    assert Crew(one, (one,)).check(0, "auto", None, needs, [], 0) == [f"host a: {SHARED}"]


def test_cores_are_shared_out_on_the_host_that_service_and_generator_share(member):
    there, other = member("a", []), member("b", [])
    there.station.pinning = lambda threads, wanted: f"{wanted} by the host, for {threads} threads"
    assert Crew(there, (there,)).pinning(2, "shared", "hosts") == "shared by the host, for 2 threads"
    assert Crew(there, (other,)).pinning(2, "shared", "hosts").reason == "hosts"


def test_a_host_that_is_lost_at_the_end_is_said_and_the_others_are_heard(tmp_path, member):
    crew = Crew(member("a", ["service.log"], is_lost=True), (member("b", ["generator.json"]),))
    assert crew.end(tmp_path / "here") == "host a is lost: its worker ended"
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["generator.json"]


def test_the_hosts_of_a_run_have_to_be_quiet_and_not_the_machine_where_it_was_typed(member):
    service, generator, lost = (member(name, []) for name in "abc")
    service.station.disturbed_now = lambda: "other programs used 40 % of the CPU time, over 20 %"
    generator.station.disturbed_now = lambda: None

    def disturbed_now():
        raise HostLost("host c is lost: its worker ended")

    lost.station.disturbed_now = disturbed_now
    here = Member(SimpleNamespace(name="", is_remote=False), None)
    assert (
        Crew(service, (generator,)).disturbed_now()
        == "host a: other programs used 40 % of the CPU time, over 20 %"
    )
    assert Crew(lost, (generator,)).disturbed_now() is None  # the run will say so
    assert Crew(here, (generator,)).disturbed_now() is None


def test_a_disk_without_room_is_said_before_what_failed_for_want_of_it(tmp_path, member, monkeypatch):
    died = "service died during measure: exit 1: it said nothing"
    there, other, lost = (member(name, []) for name in "abc")
    there.station.full_disk = other.station.full_disk = lambda: None

    def gone():
        raise HostLost("host c is lost: its worker ended")

    lost.station.full_disk = gone
    crew = Crew(there, (other, lost))

    def reason(error) -> str:
        return crew.reason(RunFailed(error) if isinstance(error, str) else error, tmp_path / "run")

    assert reason(died) == died
    other.station.full_disk = lambda: Path("/data/stores")
    told = reason(died)
    assert told == f"host b: no space left on device: /data/stores: {died}"
    assert not is_of_service(f"failed: {told}") and is_of_service(f"failed: {died}")
    assert reason(told) == told
    other.station.full_disk = lambda: None
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    assert reason(died) == f"no space left on device: {tmp_path}: {died}"
    assert reason(OSError(errno.ENOSPC, "No space left on device")) == f"no space left on device: {tmp_path}"


def test_where_a_host_is_lost_the_others_which_may_still_be_at_work_are_asked_nothing(tmp_path, member):
    there, other = (member(name, []) for name in "ab")
    there.station.full_disk = other.station.full_disk = lambda: pytest.fail("asked")
    assert Crew(there, (other,)).reason(HostLost("host b is lost"), tmp_path) == "host b is lost"


def test_space_port_and_limits_are_looked_at_on_the_hosts(member):
    """Each generator opens its part of the connections, the service all of them."""
    asked, needs = [], Needs(connections=1001, memory_groups=True)
    service, *generators = (member(name, []) for name in "abc")
    service.station.check_disk = lambda *what: asked.append(what)
    service.station.check_port = lambda port: asked.append(port)
    service.station.limit_notes = lambda what: asked.append(what) or ["note: no direct I/O"]
    service.station.awake_note = lambda _wanted: None
    for one in generators:
        one.station.check_open_files = lambda connections: asked.append(connections)
        one.station.awake_note = lambda wanted: f"note: processors sleep, and {wanted} was asked"
    notes = Crew(service, tuple(generators)).check(8080, "auto", None, needs, [], 1 << 30, "free some")
    assert asked == [([], 1 << 30, "free some"), 8080, needs, 501, 501]
    assert notes == ["host a: note: no direct I/O"] + [
        f"host {name}: note: processors sleep, and auto was asked" for name in "bc"
    ]
