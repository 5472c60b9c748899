"""Child processes that cannot outlive their run, interrupts that arrive at any moment, and what a killed
kvstudy leaves behind."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from kvstudy.errors import KvstudyError
from kvstudy.hosts import session as session_module
from kvstudy.hosts.interrupt import interruptible, shielded
from kvstudy.hosts.process import OwnedProcess, _until_creator_dies, command_text, wait_until
from kvstudy.hosts.session import Session

# Ignores SIGTERM and has a child of its own in its group.
STUBBORN = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); time.sleep(60)"
)


def ended(pid: int) -> bool:
    return wait_until(
        lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, 10
    )


def test_orderly_process_ends_by_sigterm_and_gives_its_exit_code(tmp_path):
    code = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print(1, "
        "flush=True); time.sleep(60)"
    )
    process = OwnedProcess([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr_path=tmp_path / "log")
    process.stdout.readline()
    assert process.exit_code is None
    assert process.stop() == 7
    assert process.stop() == 7


def test_stubborn_process_and_its_own_children_are_killed(tmp_path):
    process = OwnedProcess(
        [sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, stderr_path=tmp_path / "log"
    )
    grandchild = int(process.stdout.readline())
    assert process.stop(timeout_s=0.2) == -signal.SIGKILL
    assert ended(grandchild)


@pytest.mark.parametrize("own_group", [False, True], ids=["in the shell's group", "in a group of its own"])
def test_what_a_shell_started_has_the_time_to_end_by_itself_after_the_shell(tmp_path, own_group):
    finishing = tmp_path / "finished"
    start = tmp_path / "start.sh"
    start.write_text(f"""{"set -m" if own_group else ""}
sh -c 'trap "sleep 0.7; echo whole >{finishing}; exit 0" TERM; echo up; while :; do sleep 0.05; done'
echo "the shell goes on"
""")
    process = OwnedProcess(["sh", str(start)], stdout=subprocess.PIPE, stderr_path=tmp_path / "log")
    assert process.stdout.readline() == b"up\n"
    assert process.stop(timeout_s=20) in (0, -signal.SIGTERM)
    assert finishing.read_text() == "whole\n" and process.outlived_by == []


def test_what_a_shell_started_and_does_not_end_in_time_is_killed_and_told(tmp_path):
    start = tmp_path / "start.sh"
    start.write_text(
        "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done'\necho 'the shell goes on'\n"
    )
    process = OwnedProcess(["sh", str(start)], stdout=subprocess.PIPE, stderr_path=tmp_path / "log")
    program = int(process.stdout.readline())
    assert process.stop(timeout_s=0.5) == -signal.SIGTERM
    assert program in process.outlived_by and process.pid not in process.outlived_by
    assert ended(program)


def test_stopped_process_can_still_be_ended(tmp_path):
    process = OwnedProcess(["sleep", "60"], stderr_path=tmp_path / "log")
    process.send(signal.SIGSTOP)
    assert process.stop() == -signal.SIGTERM


def test_child_has_a_group_of_its_own_so_that_ctrl_c_does_not_reach_it(tmp_path):
    process = OwnedProcess(["sleep", "60"], stderr_path=tmp_path / "log")
    try:
        assert os.getpgid(process.pid) == process.pid != os.getpgid(0)
    finally:
        process.stop()


@pytest.mark.skipif(
    not _until_creator_dies(),
    reason="no setpriv --pdeathsig on this system: the next measurement ends what is left",
)
def test_child_ends_with_a_creator_that_is_killed_without_a_word(tmp_path):
    code = f"""
import os, signal, time
from pathlib import Path
from kvstudy.hosts.process import OwnedProcess
child = OwnedProcess(["sleep", "60"], stderr_path=Path({str(tmp_path / "log")!r}))
print(child.pid, flush=True)
while open(f"/proc/{{child.pid}}/comm").read() != "sleep\\n":
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL
    assert ended(int(killed.stdout))


def test_process_starts_on_its_cores_and_its_creator_keeps_his(tmp_path):
    before = os.sched_getaffinity(0)
    process = OwnedProcess(["sleep", "60"], stderr_path=tmp_path / "log", cores=[min(before)])
    try:
        assert psutil.Process(process.pid).cpu_affinity() == [min(before)]
        assert os.sched_getaffinity(0) == before
    finally:
        process.stop()


ENDLESS_THREADS = """
import threading, time
def follow(left=10_000):
    if left:
        threading.Thread(target=follow, args=(left - 1,), daemon=True).start()
    time.sleep(0.05)
for _ in range(4):
    follow()
print("begun", flush=True)
time.sleep(60)
"""


def test_a_confined_process_has_no_thread_elsewhere_though_threads_go_on_starting_threads(tmp_path):
    cores = sorted(os.sched_getaffinity(0))
    process = OwnedProcess(
        [sys.executable, "-c", ENDLESS_THREADS], stderr_path=tmp_path / "log", stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"begun\n"
        process.confine(cores[-1:])
        seen = set()
        for _ in range(20):
            for thread in psutil.Process(process.pid).threads():
                with suppress(ProcessLookupError):
                    assert os.sched_getaffinity(thread.id) == {cores[-1]}
                    seen.add(thread.id)
            time.sleep(0.01)
        assert len(seen) > 10, "threads that began after it was confined"
    finally:
        process.stop()


def test_a_process_that_has_ended_is_not_confined_and_that_is_no_error(tmp_path):
    process = OwnedProcess(["true"], stderr_path=tmp_path / "log")
    assert process.wait(5)
    process.confine([0])
    assert process.stop() == 0


def test_command_is_written_one_argument_per_line_with_what_was_set():
    assert command_text(["loadgen", "-c", "4"], {"LUA_PATH": "x"}) == "loadgen\n-c\n4\n\nLUA_PATH=x\n"
    assert command_text(["java"], {}) == "java\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_waits_until_the_shielded_block_is_done(number):
    done = []
    before = signal.signal(number, signal.default_int_handler)  # whoever started the tests may ignore it
    try:
        with pytest.raises(KeyboardInterrupt), interruptible(), shielded():
            os.kill(os.getpid(), number)
            time.sleep(0.05)
            done.append("all of it")
    finally:
        signal.signal(number, before)
    assert done == ["all of it"]


def test_signal_outside_a_shield_interrupts_and_handlers_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), interruptible():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_sighup_that_was_ignored_before_goes_on_being_ignored():
    """As ``nohup`` has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible(), shielded():
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.05)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_error_in_a_shielded_block_is_not_hidden_by_an_interrupt():
    with pytest.raises(ValueError), interruptible(), shielded():
        os.kill(os.getpid(), signal.SIGINT)
        raise ValueError("what happened")


def test_session_ends_children_that_are_still_registered(tmp_path):
    with Session(tmp_path) as session:
        process = OwnedProcess(["sleep", "60"], stderr_path=tmp_path / "log", registered=session.registered)
        assert json.loads((tmp_path / "session.json").read_text())["children"][0]["pid"] == process.pid
    assert process.wait(5)
    assert not (tmp_path / "session.json").exists()


def test_second_measurement_is_refused_while_the_first_lives(tmp_path):
    with Session(tmp_path):
        with (
            pytest.raises(
                KvstudyError, match=f"another kvstudy measures or builds in this folder: pid={os.getpid()}"
            ),
            Session(tmp_path),
        ):
            pass
        assert (tmp_path / "session.json").exists()


def test_of_two_that_begin_while_a_thirds_orphans_are_being_ended_one_measures(tmp_path, monkeypatch):
    stale = {"pid": 4_000_000, "started": 1.0, "children": [{"pid": 4_000_001, "started": 1.0}]}
    (tmp_path / "session.json").write_text(json.dumps(stale))
    is_ending, may_end = threading.Event(), threading.Event()

    def end_slowly(*_orphan, **_how) -> bool:
        is_ending.set()
        return may_end.wait(20)

    monkeypatch.setattr(session_module, "_end", end_slowly)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(Session(tmp_path).__enter__)
        try:
            assert is_ending.wait(20)
            with (
                pytest.raises(
                    KvstudyError,
                    match=f"another kvstudy measures or builds in this folder: pid={os.getpid()}",
                ),
                Session(tmp_path),
            ):
                pass
        finally:
            may_end.set()
        assert first.result().ended_orphans == [4_000_001]
    first.result().__exit__()
    with Session(tmp_path):
        pass


def test_a_measurement_that_could_not_begin_is_in_nobodys_way(tmp_path, monkeypatch):
    def refused(_session):
        raise KvstudyError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Session, "_write", refused)
        with pytest.raises(KvstudyError, match="no space left on device") as told, Session(tmp_path):
            pass
    with Session(tmp_path):
        assert told.tb  # who keeps the error keeps the session that it tells of


def test_what_a_killed_measurement_left_behind_is_ended_by_the_next(tmp_path):
    code = f"""
import os, signal, subprocess
from pathlib import Path
from kvstudy.hosts.session import Session
with Session(Path({str(tmp_path)!r})) as session:
    orphan = subprocess.Popen(["sleep", "60"], start_new_session=True, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    session.registered(orphan.pid, True)
    print(orphan.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    orphan = int(killed.stdout)
    assert killed.returncode == -signal.SIGKILL and psutil.pid_exists(orphan)
    with Session(tmp_path) as session:
        assert session.ended_orphans == [orphan]
    assert ended(orphan)


def orphan_without_its_leader() -> tuple[int, int, float]:
    """A process whose shell has ended: its pid, and the shell's with its start."""
    shell = subprocess.Popen(
        ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!; read _"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    orphan, started = int(shell.stdout.readline()), psutil.Process(shell.pid).create_time()
    shell.communicate(b"\n", timeout=10)
    return orphan, shell.pid, started


def test_what_a_wrapper_of_a_killed_measurement_started_is_ended_though_the_wrapper_is_gone(tmp_path):
    code = f"""
import os, signal, subprocess
from pathlib import Path
from kvstudy.hosts.session import Session
with Session(Path({str(tmp_path)!r})) as session:
    wrapper = subprocess.Popen(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!; read _"],
                               start_new_session=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    session.registered(wrapper.pid, True)
    print(wrapper.pid, int(wrapper.stdout.readline()), flush=True)
    wrapper.communicate(b"\\n")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    wrapper, orphan = map(int, killed.stdout.split())
    assert (
        killed.returncode == -signal.SIGKILL and psutil.pid_exists(orphan) and not psutil.pid_exists(wrapper)
    )
    with Session(tmp_path) as session:
        assert session.ended_orphans == [wrapper]
    assert ended(orphan)


@pytest.mark.parametrize("stranger", ["begun before", "of another start of the machine"])
def test_who_has_the_session_of_a_gone_wrapper_and_was_not_started_by_it_is_left_alone(tmp_path, stranger):
    orphan, shell, started = orphan_without_its_leader()
    try:
        with Session(tmp_path / "other"):
            boot = json.loads((tmp_path / "other" / "session.json").read_text())["boot"]
        before = stranger == "begun before"
        noted = {"pid": shell, "started": started + (60 if before else 0)}
        stale = {"pid": 4_000_000, "started": 1.0, "boot": boot if before else "another", "children": [noted]}
        (tmp_path / "session.json").write_text(json.dumps(stale))
        with Session(tmp_path) as session:
            assert session.ended_orphans == []
        assert psutil.pid_exists(orphan) and psutil.Process(orphan).status() != psutil.STATUS_ZOMBIE
    finally:
        os.kill(orphan, signal.SIGKILL)


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.ENOSPC, "free some space"), (errno.EROFS, "make it writable")]
)
def test_a_place_that_cannot_be_written_is_told_with_what_helps(tmp_path, monkeypatch, number, hint):
    def refused(*_arguments, **_named):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_text", refused)
    with pytest.raises(KvstudyError, match="cannot note who measures: ") as told, Session(tmp_path):
        pass
    assert hint in told.value.hint
    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(KvstudyError, match="cannot note who measures: "), Session(tmp_path / "work"):
        pass


def test_stranger_with_a_pid_of_a_stale_session_is_left_alone(tmp_path):
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        stale = {"pid": 4_000_000, "started": 1.0, "children": [{"pid": stranger.pid, "started": 1.0}]}
        (tmp_path / "session.json").write_text(json.dumps(stale))
        with Session(tmp_path) as session:
            assert session.ended_orphans == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
