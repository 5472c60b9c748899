"""A cluster that is put up is whole, or nothing is left of it but what ``down`` finds. Nothing of Dask runs
here, and a host is this machine's shell."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from test_agent import is_gone

from kvstudy.errors import KvstudyError
from kvstudy.hosts import cluster
from kvstudy.hosts.folder import MARKER
from kvstudy.hosts.hosts_file import HostsFile, Ssh
from kvstudy.hosts.process import wait_until
from kvstudy.hosts.ssh import Remote

PUT_UP = """
import sys
from pathlib import Path
from types import SimpleNamespace
from kvstudy.hosts import cluster
from kvstudy.hosts.hosts_file import HostsFile
cluster._dask = lambda: SimpleNamespace(write_certificates=lambda folder: folder.mkdir(parents=True))
cluster.own_address = lambda _other: "127.0.0.1"
cluster.MODULE = "slow_scheduler"
cluster.up(HostsFile.load(Path(sys.argv[1])), Path(sys.argv[2]))
"""


class ThisMachine(Remote):
    def asked(self, words, given=None, timeout_s=0.0):
        return subprocess.run(["sh", "-c", words], input=given or "", capture_output=True, text=True)


@pytest.fixture
def file(tmp_path) -> Path:
    """Its folder is ``perf``."""
    path = tmp_path / "hosts.yaml"
    hosts = {
        name: {"address": address, "roles": [role]}
        for name, address, role in (("a", "127.0.0.1", "service"), ("b", "127.0.0.2", "generator"))
    }
    ssh = {"python": sys.executable}
    path.write_text(json.dumps({"ssh": ssh, "folder": str(tmp_path / "perf"), "hosts": hosts}))
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_up_that_is_interrupted_while_its_scheduler_starts_leaves_nothing_or_what_down_finds(
    tmp_path, file, number
):
    (tmp_path / "slow_scheduler.py").write_text("import time\ntime.sleep(60)\n")
    work = tmp_path / "work"
    noted = work / "cluster" / cluster.NOTED
    path = os.pathsep.join((str(tmp_path), str(Path(__file__).parents[2])))
    putting_up = subprocess.Popen(
        [sys.executable, "-c", PUT_UP, str(file), str(work)],
        env=os.environ | {"PYTHONPATH": path},
        stderr=subprocess.DEVNULL,
    )
    try:
        assert wait_until(noted.is_file, 30)
        scheduler = json.loads(noted.read_text())["pid"]
        assert psutil.pid_exists(scheduler)
        putting_up.send_signal(number)
        putting_up.wait(30)
    finally:
        putting_up.kill()
    if number == signal.SIGKILL:
        assert not is_gone(scheduler) and cluster.running(work) is None
        with pytest.raises(KvstudyError, match="cluster is up already: not whole yet: pid=") as refused:
            cluster.up(HostsFile.load(file), work)
        assert refused.value.hint == "kvstudy hosts down takes it down"
        assert cluster.down(HostsFile.load(file), work) == []
    assert wait_until(lambda: is_gone(scheduler), 10) and not noted.exists()


def test_a_worker_that_was_started_is_ended_when_another_one_cannot_be(tmp_path, file, monkeypatch):
    begun, ended = threading.Event(), []

    def worker(remote, *_):
        if remote.name == "b":
            begun.set()
            return 77
        begun.wait(10)
        raise KvstudyError("worker cannot be started: host a")

    dask = SimpleNamespace(write_certificates=lambda folder: folder.mkdir(parents=True))
    monkeypatch.setattr(cluster, "_dask", lambda: dask)
    monkeypatch.setattr(cluster, "_start_scheduler", lambda *_: None)
    monkeypatch.setattr(cluster, "_worker", worker)
    monkeypatch.setattr(cluster, "_take_down", lambda _file, facts: ended.append(facts["workers"]))
    with pytest.raises(KvstudyError, match="worker cannot be started: host a"):
        cluster.up(HostsFile.load(file), tmp_path / "work")
    assert ended == [{"b": 77}] and not list((tmp_path / "work").iterdir())


def test_what_is_left_of_a_cluster_whose_scheduler_was_killed_goes_before_another_is_put_up(
    tmp_path, file, monkeypatch
):
    killed = {"name": "killed", "scheduler": "tls://127.0.0.1:1", "pid": 4_000_000, "started": 0.0}
    noted = tmp_path / "work" / "cluster" / cluster.NOTED
    noted.parent.mkdir(parents=True)
    noted.write_text(json.dumps(killed))
    ended = []

    def start(*_):
        assert ended == ["killed"]
        raise KvstudyError("scheduler did not start")

    dask = SimpleNamespace(write_certificates=lambda folder: folder.mkdir(parents=True))
    monkeypatch.setattr(cluster, "_dask", lambda: dask)
    monkeypatch.setattr(cluster, "_start_scheduler", start)
    monkeypatch.setattr(cluster, "_take_down", lambda _file, facts: ended.append(facts["name"]))
    with pytest.raises(KvstudyError, match="scheduler did not start"):
        cluster.up(HostsFile.load(file), tmp_path / "work")


def test_of_certificates_that_a_host_has_no_room_for_nothing_stays_there(tmp_path, file):
    class Full(ThisMachine):
        def asked(self, words, given=None, timeout_s=0.0):
            return super().asked(f"ulimit -f 0; {words}", given)

    for name in cluster.PEM:
        (tmp_path / name).write_text("secret")
    marker = tmp_path / "perf" / MARKER
    marker.parent.mkdir()
    marker.touch()
    remote = Full("a", "127.0.0.1", HostsFile.load(file))
    with pytest.raises(KvstudyError, match="worker cannot be started: host a: "):
        cluster._worker(remote, tmp_path, {"name": "one", "scheduler": "tls://127.0.0.1:1"})
    assert list(marker.parent.rglob("*")) == [marker]


def test_nothing_is_written_to_a_folder_of_somebody_elses_when_a_worker_is_started(tmp_path, file):
    theirs = tmp_path / "perf" / "cluster" / "nodes"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    for name in cluster.PEM:
        (tmp_path / name).touch()
    remote = ThisMachine("a", "127.0.0.1", HostsFile.load(file))
    with pytest.raises(KvstudyError) as refused:
        cluster._worker(remote, tmp_path, {"name": "one", "scheduler": "tls://127.0.0.1:1"})
    folder = tmp_path / "perf"
    assert refused.value.message == f"host a: folder holds something else: folder={folder} found=cluster"
    assert refused.value.hint == "name an empty one under folder"
    assert list(folder.rglob("*")) == [theirs.parent, theirs]


@pytest.mark.parametrize("is_worker", [True, False], ids=["worker", "scheduler"])
def test_a_worker_or_scheduler_that_stands_still_is_ended_in_order(tmp_path, file, monkeypatch, is_worker):
    (tmp_path / "slow_end.py").write_text(
        "import pathlib, signal, sys, time\n"
        "def end(*_):\n    pathlib.Path(sys.argv[1]).touch()\n    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\nprint('ready', flush=True)\ntime.sleep(60)\n"
    )
    monkeypatch.setattr(cluster, "MODULE", "slow_end")
    monkeypatch.setattr(cluster, "remotes", lambda file: [ThisMachine("a", "127.0.0.1", file)])
    in_order = tmp_path / "in order"
    process = subprocess.Popen(
        [sys.executable, "-m", "slow_end", in_order], cwd=tmp_path, stdout=subprocess.PIPE
    )
    facts = (
        {"name": "one", "pid": None, "workers": {"a": process.pid}}
        if is_worker
        else {"pid": process.pid, "started": psutil.Process(process.pid).create_time(), "workers": {}}
    )
    try:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        ending = threading.Thread(target=process.wait)  # else it would stay, as a zombie
        ending.start()
        cluster._take_down(HostsFile.load(file), facts)
        ending.join(10)
    finally:
        process.kill()
        process.stdout.close()
    assert in_order.exists() and time.monotonic() - begun < 8


def test_a_scheduler_that_stands_still_at_its_start_is_not_waited_for(tmp_path, file, monkeypatch):
    (tmp_path / "stands_still.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cluster, "MODULE", "stands_still")
    monkeypatch.setattr(cluster, "own_address", lambda _other: "127.0.0.1")
    facts = {"pid": None}
    try:
        with pytest.raises(KvstudyError, match="scheduler did not start: it stands still: pid="):
            cluster._start_scheduler(HostsFile.load(file), tmp_path, None, facts)
    finally:
        psutil.Process(facts["pid"]).kill()


def test_a_worker_that_ends_without_a_word_is_named(tmp_path, file):
    remote = ThisMachine("a", "127.0.0.1", HostsFile.load(file))
    with pytest.raises(KvstudyError, match="worker did not start: host a: it says nothing"):
        cluster._wait_for_worker(remote, {"name": "one", "workers": {"a": 4_000_000}})


def test_a_worker_that_stands_still_at_its_start_is_not_waited_for(tmp_path, file):
    (tmp_path / "perf" / "cluster" / "one-a").mkdir(parents=True)
    remote = ThisMachine("a", "127.0.0.1", HostsFile.load(file))
    worker = subprocess.Popen(["sleep", "60"])
    try:
        worker.send_signal(signal.SIGSTOP)
        with pytest.raises(KvstudyError, match="worker did not start: host a: it stands still"):
            cluster._wait_for_worker(remote, {"name": "one", "workers": {"a": worker.pid}})
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize(
    ("is_alive", "answers", "is_ours", "does"),
    [
        (True, True, True, []),
        (True, False, True, ["end it", "disconnect", "connect"]),
        (False, False, True, ["end it", "disconnect", "connect"]),
        (True, False, False, "the cluster's scheduler does not answer"),
        (False, False, False, ["disconnect", "connect"]),
    ],
)
def test_a_scheduler_of_ours_that_stands_still_is_replaced_and_one_of_others_is_named(
    tmp_path, file, monkeypatch, is_alive, answers, is_ours, does
):
    hosts, done = cluster.Hosts(HostsFile.load(file), tmp_path, lambda *_: None), []
    hosts._cluster = SimpleNamespace(is_alive=is_alive, answers=lambda: answers)
    hosts._own = {"pid": 1} if is_ours else None
    monkeypatch.setattr(cluster, "_end_scheduler", lambda _facts: done.append("end it"))
    monkeypatch.setattr(hosts, "_disconnect", lambda: done.append("disconnect"))
    monkeypatch.setattr(hosts, "_connect", lambda: done.append("connect"))
    if isinstance(does, str):
        with pytest.raises(KvstudyError, match=does):
            hosts._check_scheduler()
        return
    hosts._check_scheduler()
    assert done == does


@pytest.mark.parametrize("is_ours", [True, False])
def test_what_goes_with_a_cluster_is_its_own_and_lies_in_a_folder_of_ours(
    tmp_path, file, monkeypatch, is_ours
):
    """The file may name another folder by then. In one of ours there may be a cluster of somebody else's,
    whose worker runs there."""
    left, others = (tmp_path / "perf" / "cluster" / name / "key.pem" for name in ("one-a", "another-a"))
    for path in (left, others):
        path.parent.mkdir(parents=True)
        path.touch()
    if is_ours:
        (tmp_path / "perf" / MARKER).touch()
    monkeypatch.setattr(cluster, "remotes", lambda file: [ThisMachine("a", "127.0.0.1", file)])
    facts = {"name": "one", "pid": None, "workers": {"a": 4_000_000}}  # such a process there is not
    assert cluster._take_down(HostsFile.load(file), facts) == []
    assert left.exists() != is_ours and others.exists()
    if is_ours:
        assert cluster._take_down(HostsFile.load(file), facts | {"name": "another"}) == []
        assert not left.parents[1].exists()  # the last one takes the folder of all with it


def test_a_program_that_is_no_python_leaves_nothing_where_a_python_would_claim_the_folder(tmp_path, file):
    """Else the next measurement would find a folder that holds something else."""
    of_others = HostsFile.load(file).model_copy(update={"ssh": Ssh(python="/bin/true")})
    for name in cluster.PEM:
        (tmp_path / name).touch()
    with pytest.raises(KvstudyError, match="worker cannot be started: host a: no python: /bin/true"):
        cluster._worker(
            ThisMachine("a", "127.0.0.1", of_others), tmp_path, {"scheduler": "tls://127.0.0.1:1"}
        )
    assert not (tmp_path / "perf").exists()


def test_a_cluster_of_an_older_kvstudy_is_taken_down_and_not_used(tmp_path, file, monkeypatch):
    """Its notes have neither a name nor its hosts."""
    left = tmp_path / "perf" / "cluster" / "key.pem"
    left.parent.mkdir(parents=True)
    left.touch()
    (tmp_path / "perf" / MARKER).touch()
    monkeypatch.setattr(cluster, "remotes", lambda file: [ThisMachine("a", "127.0.0.1", file)])
    facts = {"scheduler": "tls://127.0.0.1:1", "pid": None, "workers": {"a": 4_000_000}}
    monkeypatch.setattr(cluster, "running", lambda _work: facts)
    with pytest.raises(KvstudyError, match="is of another file of hosts: a is not in it, b is not in it"):
        cluster.Hosts(HostsFile.load(file), tmp_path, lambda *_: None).__enter__()
    assert cluster._take_down(HostsFile.load(file), facts) == []
    assert not left.exists()


def test_a_cluster_that_cannot_be_used_is_taken_down_by_who_has_put_it_up(tmp_path, file, monkeypatch):
    facts = {"hosts": {"a": "127.0.0.1", "b": "127.0.0.2"}, "scheduler": "tls://127.0.0.1:1"}
    ended = []

    def refuse(*_):
        raise KvstudyError("it does not answer")

    monkeypatch.setattr(cluster, "up", lambda *_: facts)
    monkeypatch.setattr(cluster, "_dask", lambda: SimpleNamespace(Cluster=refuse))
    monkeypatch.setattr(cluster, "_take_down", lambda _file, facts: ended.append(facts))
    with pytest.raises(KvstudyError, match="it does not answer"):
        cluster.Hosts(HostsFile.load(file), tmp_path, lambda *_: None).__enter__()
    assert ended == [facts]


def test_the_cluster_of_another_file_is_not_taken_for_this_ones(tmp_path, file, monkeypatch):
    """Both call a host ``b``; the worker of that name is on another machine."""
    facts = {"hosts": {"a": "127.0.0.1", "b": "10.0.0.9", "c": "10.0.0.8"}, "scheduler": "tls://127.0.0.1:1"}
    connected = []
    monkeypatch.setattr(cluster, "running", lambda _work: facts)
    monkeypatch.setattr(cluster, "_dask", lambda: SimpleNamespace(Cluster=lambda *at: connected.append(at)))
    with pytest.raises(KvstudyError) as refused:
        cluster.Hosts(HostsFile.load(file), tmp_path, lambda *_: None).__enter__()
    assert refused.value.message == "the cluster that is up is of another file of hosts: b is at 10.0.0.9"
    assert "kvstudy hosts down" in refused.value.hint and not connected
    facts["hosts"]["b"] = "127.0.0.2"  # one host more than are asked for
    cluster.Hosts(HostsFile.load(file), tmp_path, lambda *_: None).__enter__()
    assert connected


def test_a_cluster_is_taken_down_on_its_own_hosts_whatever_the_file_says_by_then(tmp_path, file, monkeypatch):
    """A worker's pid means another process on another machine of that name."""
    asked = {}
    monkeypatch.setattr(
        cluster.Remote, "asked", lambda one, words, **_: asked.update({one.name: (one.address, words)})
    )
    facts = {
        "name": "one",
        "pid": None,
        "hosts": {"a": "127.0.0.9", "c": "127.0.0.3"},
        "workers": {"a": 4_000_001, "c": 4_000_003},
    }
    assert cluster._take_down(HostsFile.load(file), facts) == []
    assert {name: address for name, (address, _) in asked.items()} == {"a": "127.0.0.9", "c": "127.0.0.3"}
    assert "kill 4000003" in asked["c"][1]


def test_a_worker_is_known_by_the_address_that_its_hosts_name_stands_for(tmp_path, file):
    """Dask names it by a number, and as its owner started it."""
    given = json.loads(file.read_text())
    for name, address in (("a", "localhost"), ("b", "nowhere.invalid")):
        given["hosts"][name]["address"] = address
    hosts = cluster.Hosts(HostsFile.model_validate(given), tmp_path, lambda *_: None)
    workers = {"tcp://127.0.0.1:1": ("tcp://127.0.0.1:1", "127.0.0.1"), "tcp://10.0.0.1:1": ("0", "10.0.0.1")}
    hosts._cluster = SimpleNamespace(workers=lambda: workers)
    assert hosts._workers_of("a") == ["tcp://127.0.0.1:1"] and hosts._workers_of("b") == []


def test_who_is_interrupted_while_hosts_are_ended_leaves_no_cluster(tmp_path, file, monkeypatch):
    def interrupt(_host):
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster.RemoteHost, "end", interrupt)
    ended = []
    monkeypatch.setattr(cluster, "_take_down", lambda _file, facts: ended.append(facts))
    hosts = cluster.Hosts(HostsFile.load(file), tmp_path, lambda *_: None)
    hosts._own = {"pid": 1}
    with pytest.raises(KeyboardInterrupt):
        hosts.__exit__()
    assert ended == [{"pid": 1}]
