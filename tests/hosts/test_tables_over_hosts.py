"""Tables made by the hosts of a cluster: the same bytes, whoever made them."""

import errno
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_agent import host_at

from kvstudy import tables_on_hosts
from kvstudy.analyse.tidy import part
from kvstudy.analyse.tidy.build import rebuild
from kvstudy.errors import HostLost, KvstudyError, SealBroken
from kvstudy.hosts.remote import RemoteHost
from kvstudy.record.run_folder import sealed_runs
from kvstudy.tables_on_hosts import _Work

sys.path.append(str(Path(__file__).parents[1] / "analyse"))
from duet_maker import DuetMaker
from run_maker import RunMaker

SPREAD = """
from kvstudy.analyse.tidy import build, part
build.SPREAD_FROM_RUNS = 1
"""
HOSTS_ALONE = f"""{SPREAD}
def refused(task):
    raise AssertionError("made here")
part.make = refused
"""


def content(folder: Path) -> dict[str, bytes]:
    """Of every file but the lock, by its path."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def made(raw: Path) -> None:
    run, duet = RunMaker(raw), DuetMaker(raw)
    for number in range(1, 4):
        for experiment in ("rates", "handler"):
            run(f"20261120T20422{number}Z-{experiment}", experiment=experiment, repeat=number)
        duet(number)


def unreachable():
    raise KvstudyError("no way to it")


def test_parts_that_a_host_cannot_make_are_made_by_others_and_at_last_here(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KVSTUDY_LEASE", f" of test {os.getpid()}")
    monkeypatch.setattr("kvstudy.analyse.tidy.build.SPREAD_FROM_RUNS", 1)
    made(tmp_path / "raw")
    rebuild([tmp_path / "raw"], tmp_path / "tidy")
    here = content(tmp_path / "tidy")
    away = RemoteHost("away", "10.0.0.9", str(tmp_path / "away"), unreachable)
    with host_at(tmp_path / "there") as host:
        for hosts in ([away, host], [away]):
            shutil.rmtree(tmp_path / "tidy")
            rebuild(
                [tmp_path / "raw"],
                tmp_path / "tidy",
                spread=lambda make, tasks, hosts=hosts: _Work(hosts, make, tasks).done(),
            )
            assert content(tmp_path / "tidy") == here
            assert "makes no tables: host away: no way to it" in capsys.readouterr().err


def test_what_was_mostly_read_before_is_made_here_and_nothing_of_it_is_sent(tmp_path, monkeypatch):
    monkeypatch.setattr("kvstudy.analyse.tidy.build.SPREAD_FROM_RUNS", 1)
    made(tmp_path / "raw")
    rebuild([tmp_path / "raw"], tmp_path / "tidy")
    run = RunMaker(tmp_path / "raw")
    run("20261120T204224Z-rates", experiment="rates", repeat=4)
    for number in range(2):
        run(f"20261120T20422{number}Z-sweep", experiment="sweep", repeat=number + 1)
    made_there, made_here = [], []

    def made_by(who, task):
        who.append((task.batch.folder, task.fresh_runs, len(task.batch.runs)))
        return part.make(task)

    def make_there(_work, _host, _station, _number, task):
        return made_by(made_there, task)

    monkeypatch.setattr(_Work, "_make_there", make_there)
    rebuild(
        [tmp_path / "raw"],
        tmp_path / "tidy",
        spread=lambda _make, tasks: _Work(
            [Failing("a", None)], lambda task: made_by(made_here, task), tasks
        ).done(),
    )
    assert made_here == [("rates", 1, 4)]
    assert made_there == [("sweep", 2, 2)]


class Failing(RemoteHost):
    """Is there, and fails as ``error`` says when it makes a part."""

    def __init__(self, name, error):
        super().__init__(name, "10.0.0.9", "there", unreachable)
        self._error = error

    def renew(self):
        pass

    def stationed(self, *_):
        def make(*_):
            raise self._error

        return SimpleNamespace(sees=lambda _task: True, make=make)

    def run_folder(self, here):
        return here

    def drop(self, _there):
        pass


def test_a_host_that_fails_makes_no_more_parts_and_all_of_them_are_made(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("kvstudy.analyse.tidy.build.SPREAD_FROM_RUNS", 1)
    made(tmp_path / "raw")
    rebuild([tmp_path / "raw"], tmp_path / "tidy")
    here = content(tmp_path / "tidy")
    shutil.rmtree(tmp_path / "tidy")
    hosts = [
        Failing("full", KvstudyError("no space left on device")),
        Failing("old", KvstudyError("other code here than where the tables are asked for")),
    ]
    rebuild(
        [tmp_path / "raw"], tmp_path / "tidy", spread=lambda make, tasks: _Work(hosts, make, tasks).done()
    )
    assert content(tmp_path / "tidy") == here
    said = capsys.readouterr().err
    assert "makes no more tables: host full: no space left on device" in said
    assert "makes no more tables: host old: other code here than where the tables are asked for" in said


def send_all(monkeypatch) -> None:
    """As to a host that has no disk together with this machine."""
    stationed = RemoteHost.stationed

    def made_blind(host, *arguments):
        return SimpleNamespace(sees=lambda _task: False, make=stationed(host, *arguments).make)

    monkeypatch.setattr(RemoteHost, "stationed", made_blind)


def test_a_part_that_cannot_be_packed_here_is_made_here_and_the_host_makes_the_others(
    tmp_path, monkeypatch, capsys
):
    """As of a run that cannot be read, or a disk that is full."""
    monkeypatch.setenv("KVSTUDY_LEASE", f" of test {os.getpid()}")
    monkeypatch.setattr("kvstudy.analyse.tidy.build.SPREAD_FROM_RUNS", 1)
    made(tmp_path / "raw")
    rebuild([tmp_path / "raw"], tmp_path / "tidy")
    here, packed, made_here = content(tmp_path / "tidy"), tables_on_hosts._packed, []
    shutil.rmtree(tmp_path / "tidy")
    send_all(monkeypatch)

    def pack(task, file):
        if task.batch.folder == "rates":
            raise OSError(errno.EIO, "input/output error")
        return packed(task, file)

    def make(task):
        made_here.append(task.batch.folder)
        return part.make(task)

    monkeypatch.setattr(tables_on_hosts, "_packed", pack)
    with host_at(tmp_path / "there") as host:
        rebuild(
            [tmp_path / "raw"],
            tmp_path / "tidy",
            spread=lambda _make, tasks: _Work([host], make, tasks).done(),
        )
    assert content(tmp_path / "tidy") == here and made_here == ["rates"]
    assert "makes no" not in capsys.readouterr().err


def test_runs_that_lie_elsewhere_are_sent_to_a_host_as_they_are(tmp_path, monkeypatch, capsys):
    """A run, or a file of it, may be a link to another disk."""
    monkeypatch.setenv("KVSTUDY_LEASE", f" of test {os.getpid()}")
    monkeypatch.setattr("kvstudy.analyse.tidy.build.SPREAD_FROM_RUNS", 1)
    made(tmp_path / "raw")
    (tmp_path / "elsewhere").mkdir()
    run, other = [one.path for one in sealed_runs(tmp_path / "raw")][:2]
    for path in (run, other / "run.json"):
        path.symlink_to(shutil.move(path, tmp_path / "elsewhere"))
    rebuild([tmp_path / "raw"], tmp_path / "tidy")
    here = content(tmp_path / "tidy")
    shutil.rmtree(tmp_path / "tidy")
    send_all(monkeypatch)
    with host_at(tmp_path / "there") as host:
        rebuild(
            [tmp_path / "raw"],
            tmp_path / "tidy",
            spread=lambda _make, tasks: _Work([host], None, tasks).done(),
        )
    assert content(tmp_path / "tidy") == here and "makes no" not in capsys.readouterr().err


class Hanging(Failing):
    def __init__(self, name):
        super().__init__(name, None)
        self.given_up = threading.Event()

    def give_up(self, _why):
        self.given_up.set()


def test_who_is_interrupted_waits_for_no_part_that_is_under_way(monkeypatch, capsys):
    quick, hanging, is_under_way = Failing("quick", None), Hanging("hanging"), threading.Event()

    def make_there(_work, host, _station, _number, task):
        if host is quick:
            is_under_way.wait(60)
            return task
        is_under_way.set()
        hanging.given_up.wait(60)
        raise HostLost("host hanging is lost: interrupted")

    monkeypatch.setattr(_Work, "_make_there", make_there)
    tasks = [part.Task(part.Batch(name, ()), None, "") for name in ("one", "two")]
    done = _Work([quick, hanging], None, tasks).done()
    assert next(done) in tasks
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        done.throw(KeyboardInterrupt)
    assert time.monotonic() - begun < 10 and capsys.readouterr().err == ""


def test_what_is_wrong_with_a_run_is_said_at_once_and_by_no_other_host(tmp_path, monkeypatch):
    monkeypatch.setattr("kvstudy.analyse.tidy.build.SPREAD_FROM_RUNS", 1)
    made(tmp_path / "raw")
    hosts = [Failing("a", SealBroken("file does not match its checksum: run.json"))]

    def spread(make, tasks):
        def here(_task):
            raise AssertionError("made here")

        return _Work(hosts, here, tasks).done()

    with pytest.raises(SealBroken, match="does not match its checksum"):
        rebuild([tmp_path / "raw"], tmp_path / "tidy", spread=spread)


def test_a_part_that_comes_damaged_is_refused(tmp_path):
    made(tmp_path / "raw")
    tasks = []
    rebuild([tmp_path / "raw"], tmp_path / "tidy", spread=lambda make, all_of: tasks.extend(all_of) or [])
    rebuild([tmp_path / "raw"], tmp_path / "tidy")
    (folder,) = [path.parent for path in (tmp_path / "tidy" / "rates").rglob("part.json")]
    (folder / "runs.parquet").write_bytes(b"PAR1")
    batch = part.Batch("rates", ())
    with pytest.raises(KvstudyError, match="came damaged: rates: runs"):
        part.adopt(folder, part.Task(batch, tmp_path / "tidy", part.code_version()))


@pytest.mark.machine
@pytest.mark.xdist_group("hosts")
def test_tables_made_by_hosts_have_the_bytes_of_those_made_here(hosts, project):
    file = hosts.yaml(a=["service"], b=["generator"])
    # Where hosts have a disk of their own: runs that lie there have to be sent.
    hidden = hosts.folder / "there" / "data"
    hidden.mkdir()
    (project.root / "data").symlink_to(hidden)
    made(project.raw)
    tidy = project.root / "data" / "tidy"
    assert project.finished(project.kvstudy("tables"))[0] == 0
    here = content(tidy)
    assert len(sealed_runs(project.raw)) == 9 and len([name for name in here if "runs.parquet" in name]) == 2
    shutil.rmtree(tidy)
    code, out, err = project.finished(project.kvstudy("tables", "--cluster", file, code=HOSTS_ALONE))
    assert code == 0, out + err
    assert content(tidy) == here
    assert not hosts.pids("a") and not hosts.pids("b")


@pytest.mark.machine
@pytest.mark.xdist_group("hosts")
@pytest.mark.parametrize("cut", ["b", "ab"], ids=["one host is gone", "all are gone"])
def test_hosts_that_cannot_be_reached_make_no_tables_and_all_are_made(hosts, project, cut):
    file = hosts.yaml(a=["service"], b=["generator"])
    made(project.raw)
    tidy = project.root / "data" / "tidy"
    assert project.finished(project.kvstudy("tables"))[0] == 0
    here = content(tidy)
    shutil.rmtree(tidy)
    for name in cut:
        hosts.cut(name)
    try:
        code, out, err = project.finished(
            project.kvstudy("tables", "--cluster", file, code=SPREAD if cut == "ab" else HOSTS_ALONE), 60
        )
    finally:
        for name in cut:
            hosts.heal(name)
    assert code == 0 and all(f"makes no tables: host {name} " in err for name in cut), out + err
    assert ("all are made here: no host can be reached" in err) == (cut == "ab")
    assert content(tidy) == here
