"""Tables made by the hosts of a cluster: the same bytes, whoever made them."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from test_agent import host_at

from kvstudy.analyse.tidy import part
from kvstudy.analyse.tidy.build import rebuild
from kvstudy.errors import KvstudyError
from kvstudy.hosts.remote import RemoteHost
from kvstudy.record.run_folder import sealed_runs
from kvstudy.tables_on_hosts import _Work

sys.path.append(str(Path(__file__).parents[1] / "analyse"))
from duet_maker import DuetMaker
from run_maker import RunMaker

HOSTS_ALONE = """
from kvstudy.analyse.tidy import build, part
build.SPREAD_FROM_RUNS = 1
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
