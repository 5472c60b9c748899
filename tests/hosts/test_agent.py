"""The agent of a host, without Dask: whoever holds its pipe asks it, and with the pipe all ends."""

import hashlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from kvstudy.errors import HostLost, KvstudyError, RunFailed
from kvstudy.hosts import agent, agent_process, lease, remote, ship, version, wire
from kvstudy.hosts.agent_process import END_TIMEOUT_S, AgentProcess
from kvstudy.hosts.process import OwnedProcess, wait_until
from kvstudy.hosts.remote import RemoteHost
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.crew import SHARED, Crew, Member
from kvstudy.measure.limits import FILES_BESIDE_CONNECTIONS, Needs
from kvstudy.measure.station import Station


@pytest.fixture(autouse=True)
def _own_lease(monkeypatch):
    """There is one a machine, and others may test here at the same time."""
    monkeypatch.setenv("KVSTUDY_LEASE", f" of test {os.getpid()}")


class Keeper:
    """Lives on the host."""

    def __init__(self, here, start: int):
        self._here, self._count = here, start

    def add(self, more: int) -> int:
        self._count += more
        return self._count

    def fail(self) -> None:
        raise RunFailed("service died", "look at its log")

    def start(self, *argv: str) -> int:
        return OwnedProcess(
            list(argv) or ["sleep", "100"],
            stderr_path=self._here.work / "log",
            registered=self._here.registered,
        ).pid

    def wait_for(self, word: str) -> bool:
        return wait_until(lambda: word in self._here.messages, 20)

    def address(self) -> str:
        return self._here.address

    def bear_silence(self, seconds: float) -> None:
        agent.SILENCE_S = seconds

    def end_when_there_is(self, path: str) -> None:
        agent.Session.end_children = lambda *_: wait_until(Path(path).exists, 60)

    def fail_to_end(self) -> None:
        def fail(*_):
            raise OSError("no space left on device")

        agent.Session.end_children = fail


class OpenFiles:
    def __init__(self, _here):
        pass

    def of_what_is_started(self) -> int:
        return int(subprocess.run(["sh", "-c", "ulimit -n"], capture_output=True, check=True).stdout)


def asked_of(folder: Path, token: str = "") -> dict:
    return {"folder": str(folder), "name": "a", "address": "127.0.0.1", "who": "test@here", "token": token}


@contextmanager
def host_at(folder: Path, token: str = ""):
    host = RemoteHost("a", "127.0.0.1", str(folder), lambda: AgentProcess(asked_of(folder, token)))
    try:
        yield host
    finally:
        host.end()


@pytest.fixture
def host(tmp_path):
    with host_at(tmp_path / "there") as made:
        made.renew()
        yield made


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_an_object_lives_on_the_host_and_answers_as_if_it_were_here(host):
    keeper = host.stationed(Keeper, 40)
    assert keeper.add(1) == 41 and keeper.add(1) == 42
    with pytest.raises(RunFailed, match="service died") as failed:
        keeper.fail()
    assert failed.value.hint == "look at its log"
    assert failed.value.message.startswith("host a: ")


class StillLink:
    """To an agent that has nothing to do."""

    versions = version.versions()

    def exchange(self, _frame):
        return wire.pack((True, wire.pack(None)))

    def end(self):
        pass


def test_who_waits_for_one_host_hears_at_once_that_another_one_is_lost(host):
    keeper, other = host.stationed(Keeper, 40), RemoteHost("b", "127.0.0.1", "", StillLink)
    other.renew()
    with ThreadPoolExecutor(1) as threads:
        with host.together_with([other]):
            waiting = threads.submit(keeper.wait_for, "word")
            other.give_up("its plug is pulled")
            with pytest.raises(HostLost, match="^host b is lost: its plug is pulled$"):
                waiting.result(5)
        host.tell("word")
        assert not host.is_lost and keeper.add(1) == 41  # it is there, and nobody has to renew it
    other.end()


class SilentLink(StillLink):
    """To an agent that is not heard any more, nor is its end."""

    def exchange(self, *_frame):
        threading.Event().wait()

    end = exchange


def test_of_a_host_that_is_found_lost_meanwhile_it_is_not_waited_for_that_it_settles(monkeypatch):
    for name, seconds in (("BEAT_TIMEOUT_S", 1.0), ("SETTLE_TIMEOUT_S", 60.0)):
        monkeypatch.setattr(remote, name, seconds)
    host = RemoteHost("b", "127.0.0.1", "", SilentLink)
    host.renew()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(host.settle).result(20)
    assert host.is_lost


def test_a_disk_that_is_full_is_said_with_the_name_of_its_host(host, tmp_path):
    there = tmp_path / "there" / "full"
    there.symlink_to("/dev/full")
    (tmp_path / "file").write_text("text")
    with pytest.raises(KvstudyError, match="^host a: no space left on device"):
        host.send(tmp_path / "file", there)


def test_open_files_are_raised_or_refused_where_the_load_will_be(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    programs = Artifacts(tmp_path, tmp_path / "loadgen", {}, {})
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))  # an agent has what its worker has
        with host_at(tmp_path / "there") as host:
            host.renew()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            member = Member(host, host.stationed(Station, programs, None))
            crew, files = Crew(member, (member,)), host.stationed(OpenFiles)
            assert crew.check(0, False, None, Needs(100, memory_groups=False), [], 1) == [f"host a: {SHARED}"]
            assert files.of_what_is_started() == 100 + FILES_BESIDE_CONNECTIONS
            if hard != resource.RLIM_INFINITY:
                with pytest.raises(KvstudyError, match="^host a: not enough open files: needed=") as refused:
                    crew.check(0, False, None, Needs(hard, memory_groups=False), [], 1)
                assert "limits.conf" in refused.value.hint
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_word_arrives_while_a_method_runs(host):
    keeper = host.stationed(Keeper, 0)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(keeper.wait_for, "over")
        host.tell("over")
        assert waiting.result()


@pytest.mark.parametrize("end", ["pipe closed", "agent killed"])
def test_nothing_that_was_started_outlives_the_agent(tmp_path, end):
    with host_at(tmp_path / "there") as host:
        host.renew()
        child = host.stationed(Keeper, 0).start()
        # Before that it is not tied to its agent yet: one that is killed then leaves it to the next agent.
        assert wait_until(lambda: psutil.Process(child).name() == "sleep", 10)
        if end == "agent killed":
            os.kill(host._link.pid, signal.SIGKILL)
        else:
            host.end()
        assert wait_until(lambda: is_gone(child), 10)


@pytest.mark.parametrize(
    "program",
    [
        "trap '' TERM; echo $$ >{pid}; while :; do sleep 0.2; done",
        "setsid sh -c 'echo $$ >{pid}; exec sleep 100' & exec sleep 100",
    ],
    ids=["heeds no signal", "left its session"],
)
def test_what_is_slow_to_end_or_left_its_session_ends_with_the_agent_too(tmp_path, program):
    pid = tmp_path / "pid"
    with host_at(tmp_path / "there") as host:
        host.renew()
        host.stationed(Keeper, 0).start("sh", "-c", program.format(pid=pid))
        assert wait_until(lambda: pid.is_file() and pid.read_text().strip(), 10)
        host.end()
    assert wait_until(lambda: is_gone(int(pid.read_text())), 10)
    assert not (tmp_path / "there" / "session.json").exists()


def test_a_host_whose_agent_was_killed_is_lost_and_can_be_had_again(host):
    keeper = host.stationed(Keeper, 0)
    os.kill(host._link.pid, signal.SIGKILL)
    with pytest.raises(HostLost, match="host a is lost: agent has ended: it was killed"):
        keeper.wait_for("never")
    host.renew()
    assert host.stationed(Keeper, 1).add(1) == 2


def test_who_hears_nothing_ends_all_that_runs_there(tmp_path, monkeypatch):
    """The pipe stays open and nobody writes to it: as when the network is gone."""
    code = (
        "import kvstudy.hosts.agent as agent; import sys, json; sys.path.insert(0, "
        f"{str(Path(__file__).parent)!r}); agent.main(json.loads(sys.argv[1]))"
    )
    real = subprocess.Popen

    def quick(argv, **options):
        return real([sys.executable, "-c", code, argv[-1]], **options)

    monkeypatch.setattr("kvstudy.hosts.agent_process.subprocess.Popen", quick)
    with host_at(tmp_path / "there") as host:
        monkeypatch.setattr("kvstudy.hosts.remote.BEAT_S", 60.0)
        host.renew()
        keeper = host.stationed(Keeper, 0)
        child = keeper.start()
        keeper.bear_silence(1.0)
        assert wait_until(lambda: is_gone(child), 15)
        assert wait_until(lambda: lease.holder() is None, 5)


def test_a_host_is_measured_by_one_at_a_time_and_says_by_whom(host, tmp_path):
    assert "test@here" in lease.holder()
    with (
        host_at(tmp_path / "other") as second,
        pytest.raises(KvstudyError, match="host is in use: by test@here"),
    ):
        second.renew()


def test_its_own_lease_is_waited_for_and_that_of_others_is_not(tmp_path):
    """A worker that is killed leaves an agent, which first ends what it has started."""
    left = AgentProcess(asked_of(tmp_path / "there", "mine"))
    left.exchange(remote.asked("make", 1, Keeper, (0,)))
    ended = tmp_path / "ended"
    left.exchange(remote.asked("call", 1, "end_when_there_is", (str(ended),), {}))
    left._process.stdin.close()
    with (
        host_at(tmp_path / "there", "other") as other,
        pytest.raises(KvstudyError, match="host is in use: by test@here"),
    ):
        other.renew()
    threading.Timer(1.0, ended.touch).start()
    with host_at(tmp_path / "there", "mine") as again:
        again.renew()
        assert again.stationed(Keeper, 1).add(1) == 2
    left._process.wait(60)


def test_an_agent_that_fails_to_end_what_it_started_ends_all_the_same(tmp_path):
    with host_at(tmp_path / "there") as host:
        host.renew()
        host.stationed(Keeper, 0).fail_to_end()
        begun = time.monotonic()
    assert time.monotonic() - begun < END_TIMEOUT_S and lease.holder() is None


def test_a_host_that_was_given_up_cannot_be_had_again(tmp_path):
    with host_at(tmp_path / "there") as host:
        host.renew()
        host.give_up("interrupted")
        with pytest.raises(HostLost, match="host a is lost: interrupted"):
            host.renew()
        assert lease.holder() is None


def test_a_host_that_is_given_up_while_its_agent_starts_is_not_had_either(tmp_path):
    starting, given_up = threading.Event(), threading.Event()

    def opened():
        starting.set()
        given_up.wait(10)
        return AgentProcess(asked_of(tmp_path / "there"))

    host = RemoteHost("a", "127.0.0.1", str(tmp_path / "there"), opened)

    def give_up():
        starting.wait(10)
        host.give_up("interrupted")
        given_up.set()

    giving_up = threading.Thread(target=give_up)
    giving_up.start()
    with pytest.raises(HostLost, match="host a is lost: interrupted"):
        host.renew()
    giving_up.join()
    assert lease.holder() is None
    host.end()


def test_a_host_that_neither_ends_nor_begins_an_agent_is_given_back_in_time(tmp_path, monkeypatch):
    assert remote.RENEW_TIMEOUT_S <= 10  # and five until kvstudy has ended
    monkeypatch.setattr(remote, "RENEW_TIMEOUT_S", 1.0)
    monkeypatch.setattr(remote, "RETIRE_TIMEOUT_S", 0.4)
    awake, opened = threading.Event(), []

    class Hangs:
        versions = version.versions()

        def exchange(self, _frame):
            awake.wait(60)

        def end(self):
            awake.wait(60)

    def open_at_first():
        opened.append(Hangs())
        if len(opened) > 1:
            awake.wait(60)
        return opened[-1]

    host = RemoteHost("a", "127.0.0.1", str(tmp_path), open_at_first)
    host.renew()
    begun = time.monotonic()
    with pytest.raises(HostLost, match="host a does not answer within 1 s"):
        host.renew()
    took_s = time.monotonic() - begun
    awake.set()
    host.end()
    assert 1.0 <= took_s < 30


HANGS = """
import threading
from kvstudy.errors import HostLost
from kvstudy.hosts import remote
remote.RENEW_TIMEOUT_S = 0.2
host = remote.RemoteHost("a", "127.0.0.1", "there", threading.Event().wait)
try:
    host.renew()
except HostLost as lost:
    print(lost.message)
host.end()
"""


def test_a_call_that_never_returns_does_not_keep_kvstudy_from_ending():
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "host a does not answer within 0.2 s\n"), done.stderr


def test_a_thread_that_made_a_call_stays_until_the_end():
    """What it has started would end with it: process.py."""
    threads = remote._Threads("host a")
    first = threads.submit(threading.current_thread).result(5)
    assert first.is_alive()
    threads.end()
    first.join(5)
    assert not first.is_alive()
    with pytest.raises(RuntimeError):
        threads.submit(print)


def test_an_agent_that_stands_still_before_its_first_word_is_ended(tmp_path, monkeypatch):
    program = tmp_path / "stands-still"
    program.write_text("#!/bin/sh\nkill -STOP $$\n")
    program.chmod(0o755)
    monkeypatch.setattr(agent_process, "START_TIMEOUT_S", 0.5)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(HostLost, match="agent did not start: it was killed"):
        AgentProcess(asked_of(tmp_path / "there"))


def test_an_agent_that_stands_still_while_it_is_sent_a_file_is_ended_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(agent_process, "END_TIMEOUT_S", 0.5)
    one = AgentProcess(asked_of(tmp_path / "there"))
    os.kill(one.pid, signal.SIGSTOP)
    more_than_a_pipe_holds = remote.asked("write", tmp_path / "file", bytes(1 << 20), True)
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(one.exchange, more_than_a_pipe_holds)
        assert not wait_until(sending.done, 0.5)
        one.end()
        with pytest.raises(HostLost, match="agent has ended: it was killed"):
            sending.result(10)
    assert one.has_ended and lease.holder() is None


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"kvstudy": "0123456789ab"}, f"kvstudy 0123456789ab instead of {version.code_digest()}"),
        ({"Python": "3.9"}, "Python 3.9 instead of"),
        ({"Dask": None}, "Dask none instead of"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_agent_of_another_version_is_refused_in_one_line_before_anything_starts(
    tmp_path, monkeypatch, other, said
):
    real = AgentProcess(asked_of(tmp_path / "there"))
    real.versions = real.versions | other
    host = RemoteHost("a", "127.0.0.1", str(tmp_path / "there"), lambda: real)
    with pytest.raises(KvstudyError) as refused:
        host.renew()
    assert refused.value.message.startswith(f"host a: other versions there: {said}")
    assert "\n" not in refused.value.message and "commit" in refused.value.hint
    assert host.is_lost and wait_until(lambda: real.has_ended, 5)
    host.end()


def test_what_an_agent_of_another_kvstudy_cannot_even_answer_is_said_in_one_line(tmp_path):
    def opened():
        raise AttributeError("module 'kvstudy.hosts.dask_host' has no attribute '_open'")

    host = RemoteHost("a", "127.0.0.1", str(tmp_path), opened)
    with pytest.raises(KvstudyError, match="host a: agent cannot be had: module 'kvstudy.hosts.dask_host'"):
        host.renew()
    host.end()


def test_a_folder_that_holds_something_of_somebody_elses_is_refused_and_nothing_in_it_is_touched(tmp_path):
    """By who starts an agent, and by an agent itself."""
    there = tmp_path / "perf"
    theirs = ("agent.log", "runs/result.csv", "tree/oak.txt", "work/stores/1", "thesis.tex")
    for name in theirs:
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text(name)
    with host_at(there) as host, pytest.raises(KvstudyError) as refused:
        host.renew()
    said = f"folder holds something else: folder={there} found=thesis.tex"
    assert refused.value.message == f"host a: {said}"
    assert refused.value.hint == "name an empty one under folder"
    asked = json.dumps({"folder": str(there), "name": "a", "address": "127.0.0.1", "who": "test@here"})
    done = subprocess.run([sys.executable, "-m", agent.__name__, asked], input=b"", capture_output=True)
    _, is_well, answer = wire.unpack(wire.read_frame(io.BytesIO(done.stdout)))
    assert not is_well and wire.unpack(answer).message == said
    found = {str(path.relative_to(there)): path.read_text() for path in there.rglob("*") if path.is_file()}
    assert found == dict(zip(theirs, theirs, strict=True))


@pytest.mark.parametrize("cores", [[9_999], [0, 9_999]], ids=["none of them", "one of them"])
def test_cores_that_are_not_there_are_refused_instead_of_left_out(tmp_path, cores):
    asked = asked_of(tmp_path / "there") | {"cores": cores}
    host = RemoteHost("a", "127.0.0.1", str(tmp_path / "there"), lambda: AgentProcess(asked))
    with pytest.raises(KvstudyError) as refused:
        host.renew()
    host.end()
    assert refused.value.message == "host a: host has no such cores, or may not use them: 9999"
    assert refused.value.hint == f"it has {os.cpu_count()}: mend cores in the file of hosts"


def test_a_host_loads_no_library_of_tables_or_statistics_for_a_run():
    """They take longer than all that it needs, on cores that are to be measured."""
    code = "import sys, kvstudy.measure.on_hosts; print({'pandas', 'pyarrow', 'scipy'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout == "set()\n"


def test_files_go_to_a_host_once_by_their_bytes(host, tmp_path, monkeypatch):
    root = tmp_path / "project"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "tool").write_bytes(b"x" * 100_000)
    (root / "bin" / "tool").chmod(0o755)
    monkeypatch.setattr("kvstudy.hosts.remote.PIECE_BYTES", 30_000)
    host.ship(root, ship.manifest(root, [root / "bin" / "tool"]))
    there = tmp_path / "there"
    shipped = there / ship.TREE / "bin" / "tool"
    assert shipped.read_bytes() == b"x" * 100_000 and os.access(shipped, os.X_OK)
    asked = []
    ask = host._ask
    monkeypatch.setattr(host, "_ask", lambda kind, *rest: asked.append(kind) or ask(kind, *rest))
    (root / "bin" / "again").write_bytes(b"x" * 100_000)
    host.ship(root, ship.manifest(root, [root / "bin" / "again"]))
    assert "keep" not in asked and not shipped.exists()
    assert (there / ship.TREE / "bin" / "again").is_file()


def test_a_file_that_was_changed_since_it_was_listed_is_not_sent_in_its_place(host, tmp_path):
    (tmp_path / "script.lua").write_text("before")
    items = ship.manifest(tmp_path, [tmp_path / "script.lua"])
    host.ship(tmp_path, items)
    (tmp_path / "script.lua").write_text("after")
    host.ship(tmp_path, items)  # it is there already
    shipped = tmp_path / "there" / ship.TREE / "script.lua"
    assert shipped.read_text() == "before"
    (tmp_path / "there" / ship.ARTEFACTS / items[0].digest).unlink()
    with pytest.raises(KvstudyError, match="file was changed while it was measured: .*script.lua"):
        host.ship(tmp_path, items)


def test_what_nobody_has_asked_for_in_a_month_goes_from_a_host(host, tmp_path):
    root, kept = tmp_path / "project", tmp_path / "there" / "artefacts"
    root.mkdir()
    for name in ("used", "old", "of a while ago"):
        (root / name).write_text(name)
    host.ship(root, ship.manifest(root, sorted(root.iterdir())))
    old, recent = (kept / hashlib.sha256(name.encode()).hexdigest() for name in ("old", "of a while ago"))
    for artefact, days in ((old, 31), (recent, 29)):
        os.utime(artefact, (time.time() - days * 86_400,) * 2)
    host.ship(root, ship.manifest(root, [root / "used"]))
    assert not old.exists() and recent.exists() and len(list(kept.iterdir())) == 2


def test_a_file_that_comes_damaged_is_not_kept(tmp_path):
    digest = "0" * 64
    with pytest.raises(KvstudyError, match="came damaged"):
        ship.keep(tmp_path, digest, b"something else", True)
    assert ship.missing(tmp_path, [digest]) == [digest]


def test_a_file_that_a_power_cut_left_empty_under_its_digest_is_asked_for_again(tmp_path):
    data = b"program"
    digest = hashlib.sha256(data).hexdigest()
    ship.keep(tmp_path, digest, data, True)
    assert ship.missing(tmp_path, [digest]) == []
    (tmp_path / ship.ARTEFACTS / digest).write_bytes(b"")
    assert ship.missing(tmp_path, [digest]) == [digest]
    ship.keep(tmp_path, digest, data, True)
    assert (tmp_path / ship.ARTEFACTS / digest).read_bytes() == data


def test_a_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    data, done = b"program", []
    digest = hashlib.sha256(data).hexdigest()
    fsync, rename = os.fsync, Path.rename
    monkeypatch.setattr(os, "fsync", lambda one: done.append("on the disk") or fsync(one))
    monkeypatch.setattr(Path, "rename", lambda one, to: done.append("named") or rename(one, to))
    ship.keep(tmp_path, digest, data, True)
    assert done == ["on the disk", "named", "on the disk"]


def test_scratch_of_a_run_goes_with_the_agent_and_programs_stay(host, tmp_path):
    there = tmp_path / "there"
    host.run_folder(Path("run.partial"))
    (there / ship.ARTEFACTS).mkdir(exist_ok=True)
    (there / ship.ARTEFACTS / "program").write_text("1")
    host.end()
    assert wait_until(lambda: not (there / "runs").exists(), 5)
    assert (there / ship.ARTEFACTS / "program").exists()
    assert agent.SILENCE_S < 15  # what nobody can reach must have ended by then


def test_one_machine_under_two_names_is_said_at_once(tmp_path):
    """Its own lease a measurement would wait for."""
    other = asked_of(tmp_path / "b", "one measurement") | {"name": "b"}
    with host_at(tmp_path / "a", "one measurement") as host:
        host.renew()
        with pytest.raises(KvstudyError) as refused:
            RemoteHost("b", "127.0.0.1", str(tmp_path / "b"), lambda: AgentProcess(other)).renew()
    assert refused.value.message == "host b: host is the same machine as host a"
    assert "leave one of them out" in refused.value.hint


def test_a_folder_that_two_hosts_share_is_said_to_be_that(tmp_path, monkeypatch):
    """As a home on a server of files: nobody else measures. Another lease stands for another machine."""
    with host_at(tmp_path / "home") as host:
        host.renew()
        monkeypatch.setenv("KVSTUDY_LEASE", f" of another machine of test {os.getpid()}")
        other = asked_of(tmp_path / "home") | {"name": "b"}
        with pytest.raises(KvstudyError) as refused:
            RemoteHost("b", "127.0.0.1", str(tmp_path / "home"), lambda: AgentProcess(other)).renew()
    assert refused.value.message == f"host b: folder is in use by another host: folder={tmp_path / 'home'}"
    assert refused.value.hint.startswith("name one on a disk of each host's own under folder")
