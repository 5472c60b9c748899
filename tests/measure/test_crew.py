"""What comes from the hosts of a run when it ends, under which name, and what is said of a host that is lost
then."""

from types import SimpleNamespace

import pytest

from kvstudy.errors import HostLost
from kvstudy.measure.crew import Crew, Member


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

    def fetch(self, there, here):
        if self._is_lost:
            raise HostLost(f"host {self.name} is lost: its worker ended")
        for path in there.iterdir():
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


def test_a_host_that_is_lost_at_the_end_is_said_and_the_others_are_heard(tmp_path, member):
    crew = Crew(member("a", ["service.log"], is_lost=True), (member("b", ["generator.json"]),))
    assert crew.end(tmp_path / "here") == "host a is lost: its worker ended"
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["generator.json"]
