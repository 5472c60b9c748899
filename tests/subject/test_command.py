"""Commands and addresses as subjects: each way in which one can misbehave is one line, and leaves nothing running."""

import http.client
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kvstudy.errors import KvstudyError, RunFailed, ToolMissing
from kvstudy.hosts.process import wait_until
from kvstudy.plan.subject import SubjectSpec
from kvstudy.subject.command import Command, free_port
from kvstudy.subject.protocol import Place
from kvstudy.subject.running import Address

FOREIGN = Path(__file__).with_name("foreign.py")


def spec(*faults: str, **change) -> SubjectSpec:
    values = {"command": [sys.executable, str(FOREIGN), "{port}", "{dir}", *faults]} | change
    return SubjectSpec.model_validate({key: value for key, value in values.items() if value is not None})


@pytest.fixture
def place(tmp_path) -> Place:
    (tmp_path / "my store").mkdir()
    (tmp_path / "run").mkdir()
    return Place(tmp_path / "my store", tmp_path / "run")


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    yield
    left = [process.info["cmdline"] for process in psutil.process_iter(["cmdline", "status"])
            if str(tmp_path) in " ".join(process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE]
    assert left == []


def command(place: Place, *faults: str, **change) -> Command:
    return Command(spec(*faults, **change), place.folder, None)


def asked(url: str, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


@pytest.mark.parametrize("ready", ["tcp", {"line": "serving on"}, {"http": "/health"}], ids=["tcp", "line", "http"])
def test_a_command_is_started_with_its_port_and_directory_answers_and_is_stopped(place, ready):
    live = command(place, ready=ready).launch(place)
    try:
        assert asked(live.url, "PUT", "/k1", b"value") == (201, b"")
        assert asked(live.url, "GET", "/k1") == (200, b"value")
        assert (place.store / "records" / "k1").read_bytes() == b"value"
        assert live.pids and live.profiler is None and live.count_records() is None and live.come_to_rest(20)
    finally:
        assert live.stop() is None
    assert live.stop() is None and live.evidence().events is None
    assert str(place.store) in (place.folder / "service.cmd").read_text()


def test_two_commands_are_alive_at_once_with_directories_ports_and_files_of_their_own(place, tmp_path):
    (tmp_path / "other").mkdir()
    places = [Place(place.store, place.folder, named="a.{}".format), Place(tmp_path / "other", place.folder, named="b.{}".format)]
    subjects = [command(one).launch(one) for one in places]
    try:
        assert subjects[0].url != subjects[1].url and not set(subjects[0].pids) & set(subjects[1].pids)
        asked(subjects[0].url, "PUT", "/k1", b"one")
        assert asked(subjects[1].url, "GET", "/k1")[0] == 404
        assert {path.name for path in place.folder.iterdir()} == {"a.service.cmd", "a.service.log", "b.service.cmd", "b.service.log"}
    finally:
        assert [subject.stop() for subject in subjects] == [None, None]


def test_a_file_is_written_for_it_with_port_and_directory_in_their_places(place):
    (place.folder / "own.conf").write_text("listen {port};\nroot {dir}; { braces }\n")
    live = command(place, files={"etc/own.conf": "own.conf"}).launch(place)
    assert live.stop() is None
    port = live.url.rpartition(":")[2]
    assert (place.store / "etc" / "own.conf").read_text() == f"listen {port};\nroot {place.store}; {{ braces }}\n"


def test_a_command_that_is_not_there_is_said_before_anything_is_started(place):
    with pytest.raises(ToolMissing, match="^no such program: nosuchd: needed by subject nosuchd\n  install it"):
        command(place, command=["nosuchd", "{port}"]).check(profiled=False)
    with pytest.raises(RunFailed, match="nosuchd"):
        command(place, command=["nosuchd", "{port}"]).launch(place)


def test_a_command_that_ends_at_once_is_told_with_its_last_words(place):
    failing = command(place, command=[sys.executable, "-c", "import sys; sys.exit('no licence')", "{port}"])
    with pytest.raises(RunFailed, match="^service ended before it was ready: exit=1: no licence$"):
        failing.launch(place)


def test_a_command_that_never_gets_ready_is_ended(place):
    with pytest.raises(RunFailed, match="^service was not ready in time: timeout=3s: still recovering$"):
        command(place, "never-ready", ready={"timeout": "3s"}).launch(place)


def test_a_command_that_ignores_its_signal_is_killed_and_that_is_said(place):
    live = command(place, "ignores-term", stop={"time": "500ms"}).launch(place)
    assert live.stop() == "service ignored SIGTERM for 0.5 s and was killed"


def test_another_signal_and_other_exit_codes_may_be_orderly(place):
    code = "import signal, socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); " \
           "signal.signal(signal.SIGQUIT, lambda *_: sys.exit(7)); time.sleep(600)"
    for exits, fault in (([7], None), (None, "service did not stop in order: exit=7: it said nothing")):
        live = command(place, command=[sys.executable, "-c", code, "{port}"], stop={"signal": "QUIT", "exit": exits} if exits else "QUIT").launch(place)
        assert wait_until(lambda: live.come_to_rest(5), 10)  # Python has set its handler by then
        assert live.stop() == fault


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans back")
@pytest.mark.parametrize("ready", ["tcp", {"line": "serving on"}], ids=["tcp", "line"])
def test_a_command_that_goes_on_in_the_background_is_refused_and_ended(place, ready):
    with pytest.raises(RunFailed, match=r"^service (went on in the background: its process \d+ left|ended before it was ready: exit=0: ).* keeps it in the foreground$"):
        command(place, "daemonise", ready=ready).launch(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system that cannot be written to needs root; another user is refused by the same call")
def test_a_directory_that_cannot_be_written_to_is_said_by_the_command_itself(place):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(place.store)], check=True)
    try:
        with pytest.raises(RunFailed, match="^service ended before it was ready: exit=1: OSError: .*Read-only file system"):
            command(place).launch(place)
        with pytest.raises(RunFailed, match="^service cannot be given its file: own.conf: read-only file system$"):
            command(place, files={"own.conf": str(FOREIGN)}).launch(place)
    finally:
        subprocess.run(["umount", str(place.store)], check=True)


def test_a_port_that_is_taken_is_said_before_the_command_is_started(place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RunFailed, match=f"^service cannot have its port: port {port}: address already in use$"):
            command(place).launch(Place(place.store, place.folder, port=port))
    assert not (place.folder / "service.log").exists()


def test_a_command_that_serves_on_another_port_than_it_is_given_is_never_ready(place):
    other = command(place, command=[sys.executable, str(FOREIGN), str(free_port()), "{dir}"], environment={"PORT": "{port}"}, ready={"timeout": "2s"})
    with pytest.raises(RunFailed, match="^service was not ready in time: timeout=2s: serving on port"):
        other.launch(place)


def test_an_address_is_used_as_it_is_and_left_running(place):
    live = command(place).launch(place)
    try:
        address = Address(SubjectSpec(url=live.url + "/"), place.folder, None)
        address.check(profiled=False)
        beside = address.launch(Place(place.store, place.folder, named="b.{}".format))
        assert beside.url == live.url and set(beside.pids) == set(live.pids)
        beside.check_alive("measure")
        assert beside.stop() is None
        assert asked(live.url, "GET", "/health")[0] == 200
    finally:
        live.stop()
    with pytest.raises(RunFailed, match="^service died during measure: its process"):
        beside.check_alive("measure")


def test_an_address_that_refuses_is_said_before_anything_is_started(place):
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(KvstudyError, match=f"^nothing answers at {url}: connection refused\n  start it first"):
        Address(SubjectSpec(url=url), place.folder, None).check(profiled=False)


def test_the_digest_follows_the_words_and_the_files_that_they_name(place):
    script = place.folder / "own.py"
    script.write_text("1")
    one = command(place, command=[sys.executable, "{root}/own.py", "{port}"]).digest
    assert command(place, command=[sys.executable, "{root}/own.py", "{port}"]).digest == one
    assert command(place, command=[sys.executable, "{root}/own.py", "{port}", "-v"]).digest != one
    script.write_text("2")
    assert command(place, command=[sys.executable, "{root}/own.py", "{port}"]).digest != one
