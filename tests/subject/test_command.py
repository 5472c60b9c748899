"""Commands and addresses as subjects: each way in which one can misbehave is one line, and leaves nothing
running."""

import http.client
import os
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from kvstudy.errors import KvstudyError, RunFailed, ToolMissing
from kvstudy.hosts.process import wait_until
from kvstudy.plan.subject import SubjectSpec
from kvstudy.subject import command as command_module
from kvstudy.subject.command import Command, free_port
from kvstudy.subject.evidence.process import is_own, listeners
from kvstudy.subject.jdk import Jdk
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
    left = [
        process.info["cmdline"]
        for process in psutil.process_iter(["cmdline", "status"])
        if str(tmp_path) in " ".join(process.info["cmdline"] or [])
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]
    assert left == []


def command(place: Place, *faults: str, **change) -> Command:
    return Command(spec(*faults, **change), place.folder, None)


def asked(url: str, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


@pytest.mark.parametrize(
    "ready", ["tcp", {"line": "serving on"}, {"http": "/health"}], ids=["tcp", "line", "http"]
)
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


def test_a_command_that_says_that_it_is_ready_before_it_takes_connections_is_waited_for_and_seen(place):
    live = command(place, "says-it-early", ready={"line": "serving on"}).launch(place)
    try:
        assert asked(live.url, "PUT", "/k1", b"value") == (201, b"")
        assert live.pids
    finally:
        assert live.stop() is None


def test_what_the_one_before_it_said_makes_no_command_ready(place):
    """Benchmarks start one after the other with the same log."""
    for _ in range(2):
        live = command(place, "says-it-early", ready={"line": "serving on"}).launch(place)
        assert live.pids
        assert live.stop() is None
    failing = command(
        place, command=[sys.executable, "-c", "", "{port}"], ready={"line": "serving on", "timeout": "20s"}
    )
    with pytest.raises(RunFailed, match="^service ended before it was ready: exit=0: it said nothing"):
        failing.launch(place)


def test_two_commands_are_alive_at_once_with_directories_ports_and_files_of_their_own(place, tmp_path):
    (tmp_path / "other").mkdir()
    places = [
        Place(place.store, place.folder, named="a.{}".format),
        Place(tmp_path / "other", place.folder, named="b.{}".format),
    ]
    subjects = [command(one).launch(one) for one in places]
    try:
        assert subjects[0].url != subjects[1].url and not set(subjects[0].pids) & set(subjects[1].pids)
        asked(subjects[0].url, "PUT", "/k1", b"one")
        assert asked(subjects[1].url, "GET", "/k1")[0] == 404
        assert {path.name for path in place.folder.iterdir()} == {
            "a.service.cmd",
            "a.service.log",
            "b.service.cmd",
            "b.service.log",
        }
    finally:
        assert [subject.stop() for subject in subjects] == [None, None]


def test_who_took_a_session_of_its_own_is_one_of_its_processes_all_the_same(place):
    live = command(place, "keeps-a-helper").launch(place)
    try:
        assert int((place.store / "helper").read_text()) in live.pids[1:]
    finally:
        assert live.stop() is None


def test_who_left_the_session_of_one_side_is_not_ended_with_the_other(place, tmp_path):
    """Each side ends with 3 where its helper is gone; whose an escaped process is nobody can tell."""
    (tmp_path / "other").mkdir()
    places = [
        Place(place.store, place.folder, named="a.{}".format),
        Place(tmp_path / "other", place.folder, named="b.{}".format),
    ]
    subjects = [command(one, "keeps-a-helper").launch(one) for one in places]
    helpers = [int((one.store / "helper").read_text()) for one in places]
    assert [subject.stop() for subject in subjects] == [None, None]
    assert wait_until(lambda: not any(map(psutil.pid_exists, helpers)), 10), "and both end in the end"


def test_the_jvm_that_serves_is_recorded_and_not_the_one_that_launched_it(place, monkeypatch):
    monkeypatch.setattr(command_module, "is_jvm", lambda _pid: True)
    launcher = ["sh", "-c", f"{sys.executable} {FOREIGN} $0 '{place.store}' & wait", "{port}"]
    live = command(place, command=launcher).launch(place)
    try:
        assert live._jvm_pid() in listeners(int(live.url.rpartition(":")[2]), "127.0.0.1")
    finally:
        live.stop()


def test_a_file_is_written_for_it_with_port_and_directory_in_their_places(place):
    (place.folder / "own.conf").write_text("listen {port};\nroot {dir}; { braces }\n")
    live = command(place, files={"etc/own.conf": "own.conf"}).launch(place)
    assert live.stop() is None
    port = live.url.rpartition(":")[2]
    assert (
        place.store / "etc" / "own.conf"
    ).read_text() == f"listen {port};\nroot {place.store}; {{ braces }}\n"


@pytest.mark.parametrize("given", ["by the subject", "by the shell", "by nobody"])
def test_a_jvm_behind_a_command_is_told_of_two_cores_where_it_is_left_one_of_several(
    place, monkeypatch, given
):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    environment, theirs = None, "" if given == "by nobody" else " -Xss1m"
    if given == "by the subject":
        environment = {"JAVA_TOOL_OPTIONS": "-Xss1m"}
    elif given == "by the shell":
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xss1m")
    jvm = Command(spec(jvm=True, environment=environment), place.folder, Jdk(Path("/jdk"), "25"))
    _, confined = jvm._prepared(replace(place, cores=[0]), 8080)
    assert confined == {"JAVA_TOOL_OPTIONS": f"-XX:ActiveProcessorCount=2{theirs}"}
    assert jvm._prepared(place, 8080)[1] == (environment or {})
    no_jvm = Command(spec(environment=environment), place.folder, None)
    assert no_jvm._prepared(replace(place, cores=[0]), 8080)[1] == (environment or {})


def test_a_command_that_is_not_there_is_said_before_anything_is_started(place):
    with pytest.raises(
        ToolMissing, match="^no such program: nosuchd: needed by subject nosuchd\n  install it"
    ):
        command(place, command=["nosuchd", "{port}"]).check(profiled=False)
    with pytest.raises(RunFailed, match="nosuchd"):
        command(place, command=["nosuchd", "{port}"]).launch(place)


def test_a_program_that_is_there_and_cannot_be_executed_is_said_so(place):
    (place.folder / "serve.sh").write_text("#!/bin/sh\n")
    one = command(place, command=[str(place.folder / "serve.sh"), "{port}"])
    with pytest.raises(
        ToolMissing, match=r"^program cannot be executed: \S+/serve.sh: needed .*\n  chmod \+x"
    ):
        one.check(profiled=False)


def test_a_command_that_ends_at_once_is_told_with_its_last_words(place):
    failing = command(place, command=[sys.executable, "-c", "import sys; sys.exit('no licence')", "{port}"])
    with pytest.raises(
        RunFailed, match="^service ended before it was ready: exit=1: no licence; it ran in /"
    ):
        failing.launch(place)


def test_a_command_that_never_gets_ready_is_ended(place):
    never = command(
        place,
        command=["sh", "-c", "echo still recovering >&2; exec sleep 60", "{port}", "{dir}"],
        ready={"timeout": "2s"},
    )
    with pytest.raises(RunFailed, match="^service was not ready in time: timeout=2s: ") as failed:
        never.launch(place)
    assert re.search(
        r"s: no connection to 127\.0\.0\.1:\d+; it last wrote: still recovering$", failed.value.message
    )


@pytest.mark.parametrize(
    ("ready", "missing"),
    [
        ({"line": "UP"}, "no line with 'UP' and a connection to "),
        ({"http": "/health"}, "no answer with a status under 500 to GET /health of "),
    ],
)
def test_what_a_command_that_never_gets_ready_lacks_is_told(place, ready, missing):
    words = ["sh", "-c", "echo up >&2; exec sleep 60", "{port}"]
    never = command(place, command=words, ready=ready | {"timeout": "500ms"})
    with pytest.raises(RunFailed) as failed:
        never.launch(place)
    assert f"timeout=0.5s: {missing}" in failed.value.message
    assert failed.value.message.endswith("; it last wrote: up")


def test_a_line_that_a_command_keeps_back_is_told_from_a_port_that_it_does_not_serve(place):
    never = command(place, ready={"line": "UP", "timeout": "2s"})
    with pytest.raises(
        RunFailed, match=r"no line with 'UP', though 127\.0\.0\.1:\d+ takes connections \(what"
    ):
        never.launch(place)


def test_a_command_that_serves_on_this_machine_alone_is_told_where_it_has_to_listen(place):
    never = command(place, ready={"timeout": "2s"})
    with pytest.raises(
        RunFailed, match=r"127\.0\.0\.2:\d+, though 127\.0\.0\.1:\d+ takes them: it has to listen on \{host\}"
    ):
        never.launch(replace(place, address="127.0.0.2"))


def test_a_command_that_ignores_its_signal_is_killed_and_that_is_said(place):
    live = command(place, "ignores-term", stop={"time": "500ms"}).launch(place)
    assert live.stop() == (
        "service ignored SIGTERM for 0.5 s and was killed: give another signal, or more time, in stop"
    )


def test_a_command_that_ends_by_force_alone_stops_in_order_where_that_is_said(place):
    live = command(place, "ignores-term", stop="KILL").launch(place)
    assert live.stop() is None


def test_another_signal_and_other_exit_codes_may_be_orderly(place):
    code = (
        "import signal, socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); "
        "signal.signal(signal.SIGQUIT, lambda *_: sys.exit(7)); time.sleep(600)"
    )
    for exits, fault in (([7], None), (None, "service did not stop in order: exit=7: it said nothing")):
        live = command(
            place,
            command=[sys.executable, "-c", code, "{port}"],
            stop={"signal": "QUIT", "exit": exits} if exits else "QUIT",
        ).launch(place)
        assert wait_until(lambda live=live: live.come_to_rest(5), 60)  # Python has set its handler by then
        assert live.stop() == fault


def wrapped(place, ends: str, **change) -> Command:
    """A start script that runs the service without becoming it. ``ends``: what the service does on
    SIGTERM."""
    service = place.folder / "service.sh"
    service.write_text(
        f"trap '{ends}' TERM\n{sys.executable} {FOREIGN} $1 \"$2\" ignores-term &\nkeeper=$!\n"
        "echo serving >&2; while :; do sleep 0.05; done\n"
    )
    start = place.folder / "start.sh"
    start.write_text(f"sh {service} $1 '{place.store}'\necho 'the shell goes on'\n")
    return command(place, command=["sh", str(start), "{port}", "{dir}"], **change)


def test_a_service_behind_a_start_script_ends_by_itself_after_the_script(place):
    done = place.folder / "done"
    live = wrapped(place, f"sleep 0.7; kill -KILL $keeper; echo whole >{done}; exit 0").launch(place)
    assert live.stop() is None
    assert done.read_text() == "whole\n"


def test_a_service_behind_a_start_script_that_ignores_its_signal_is_killed_and_that_is_said(place):
    live = wrapped(place, "", stop={"time": "500ms"}).launch(place)
    assert (fault := live.stop()).startswith(
        "service ignored SIGTERM for 0.5 s and was killed: its process "
    ), fault


# Speaks another protocol first, then leads to where nothing is, then answers.
SLOW_TO_SPEAK = """
import socket, sys
server, asked = socket.create_server(("127.0.0.1", int(sys.argv[1]))), 0
while True:
    connection, _ = server.accept()
    connection.recv(65536)
    asked += 1
    connection.sendall([b"hello", b"HTTP/1.1 abc\\r\\n\\r\\n", b"",
                        b"HTTP/1.1 503 Later\\r\\nContent-Length: 0\\r\\n\\r\\n",
                        b"HTTP/1.1 302 There\\r\\nLocation: http://127.0.0.1:1/\\r\\n"
                        b"Content-Length: 0\\r\\n\\r\\n"][min(asked, 5) - 1])
    print("asked", asked, flush=True)
    connection.close()
"""


def test_readiness_is_asked_of_the_port_itself_until_it_answers_in_http(place, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    live = command(
        place,
        command=[sys.executable, "-c", SLOW_TO_SPEAK, "{port}"],
        ready={"http": "/health", "timeout": "20s"},
    ).launch(place)
    assert live.stop() is None
    assert (place.folder / "service.log").read_text().split("\n")[-2] == "asked 5"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans back")
@pytest.mark.parametrize("ready", ["tcp", {"line": "serving on"}], ids=["tcp", "line"])
def test_a_command_that_goes_on_in_the_background_is_refused_and_ended(place, ready):
    with pytest.raises(
        RunFailed,
        match=r"^service (went on in the background: its process \d+ left|ended before it was ready: exit=0: "
        r").* keeps it in the foreground$",
    ):
        command(place, "daemonise", ready=ready).launch(place)


@pytest.mark.skipif(
    os.geteuid() != 0,
    reason="mounting a file system that cannot be written to needs root; another user is refused by the same "
    "call",
)
def test_a_directory_that_cannot_be_written_to_is_said_by_the_command_itself(place):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(place.store)], check=True)
    try:
        with pytest.raises(
            RunFailed, match="^service ended before it was ready: exit=1: OSError: .*Read-only file system"
        ):
            command(place).launch(place)
        with pytest.raises(
            RunFailed, match="^service cannot be given its file: own.conf: read-only file system$"
        ):
            command(place, files={"own.conf": str(FOREIGN)}).launch(place)
    finally:
        subprocess.run(["umount", str(place.store)], check=True)


def test_a_port_that_is_taken_is_said_before_the_command_is_started(place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            RunFailed, match=f"^service cannot have its port: port {port}: address already in use$"
        ):
            command(place).launch(Place(place.store, place.folder, port=port))
    assert not (place.folder / "service.log").exists()


def test_a_command_that_serves_on_another_port_than_it_is_given_is_never_ready(place):
    other = command(
        place,
        command=[sys.executable, str(FOREIGN), str(free_port()), "{dir}"],
        environment={"PORT": "{port}"},
        ready={"timeout": "4s"},
    )
    with pytest.raises(RunFailed, match="timeout=4s: no connection to .*; it last wrote: serving on port"):
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


@pytest.mark.parametrize("host", ["localhost", socket.gethostname(), "own address"])
def test_an_address_of_this_machine_is_known_by_each_of_its_names(place, host):
    if host == "own address":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            try:
                one.connect(("192.0.2.1", 9))  # sends nothing
            except OSError:
                pytest.skip("no network but the machine's own")
            host = one.getsockname()[0]
    with socket.create_server(("0.0.0.0", 0)) as server:
        url = f"http://{host}:{server.getsockname()[1]}"
        subject = Address(SubjectSpec(url=url), place.folder, None)
        if subject._reached()[1]:
            pytest.skip(f"{host} does not lead here")
        assert os.getpid() in subject.launch(place).pids


def test_of_two_that_hold_a_port_the_one_of_the_address_is_taken():
    code = (
        "import socket, sys, time; s = socket.create_server(('127.0.0.2', int(sys.argv[1]))); "
        "print(flush=True); time.sleep(60)"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        other = subprocess.Popen([sys.executable, "-c", code, str(port)], stdout=subprocess.PIPE)
        try:
            other.stdout.readline()
            assert listeners(port, "127.0.0.1") == listeners(port, "::ffff:127.0.0.1") == (os.getpid(),)
            assert listeners(port, "127.0.0.2") == (other.pid,)
            assert listeners(port, "127.0.0.3") == ()
        finally:
            other.kill()
            other.communicate()
    assert is_own("127.0.0.3") and is_own("::1") and not is_own("192.0.2.1")


def test_the_cpu_of_what_only_hands_on_is_not_the_service_s(place):
    """A container's port is held by the program that hands its connections on."""
    forwarder = place.folder / "docker-proxy"
    forwarder.symlink_to(os.path.realpath(sys.executable))
    port = free_port()
    code = (
        f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); print(flush=True); "
        "time.sleep(60)"
    )
    running = subprocess.Popen([forwarder, "-c", code], stdout=subprocess.PIPE)
    try:
        running.stdout.readline()
        assert listeners(port, "127.0.0.1") == (running.pid,)
        live = Address(SubjectSpec(url=f"http://127.0.0.1:{port}"), place.folder, None).launch(place)
        assert live.pids == () and live.profiler is None and live.come_to_rest(1)
        live.check_alive("measure")
    finally:
        running.kill()
        running.communicate()


def test_a_command_whose_port_is_held_by_one_that_cannot_be_seen_has_no_cpu(place, monkeypatch):
    """As an ordinary user sees a container's: the program that asked for it is not what serves."""
    live = command(place).launch(place)
    assert live.pids
    assert live.stop() is None
    monkeypatch.setattr("kvstudy.subject.command.listeners", lambda _port, _ip: ())
    live = command(place).launch(place)
    try:
        assert live.pids == () and asked(live.url, "GET", "/health")[0] == 200
    finally:
        assert live.stop() is None


def test_an_address_that_refuses_is_said_before_anything_is_started(place):
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(
        KvstudyError, match=f"^nothing answers at {url}: connection refused\n  start it first"
    ):
        Address(SubjectSpec(url=url), place.folder, None).check(profiled=False)


def test_the_digest_follows_the_words_and_the_files_that_they_name(place):
    script = place.folder / "own.py"
    script.write_text("1")
    one = command(place, command=[sys.executable, "{root}/own.py", "{port}"]).digest
    assert command(place, command=[sys.executable, "{root}/own.py", "{port}"]).digest == one
    assert command(place, command=[sys.executable, "{root}/own.py", "{port}", "-v"]).digest != one
    script.write_text("2")
    assert command(place, command=[sys.executable, "{root}/own.py", "{port}"]).digest != one


def test_the_digest_follows_what_a_command_names_within_its_words_and_what_it_needs(place):
    """Else an edited class or configuration would be pooled with what ran before."""
    folder = place.folder
    for name in ("classes/own/Main.class", "lib/other.jar", "own.conf", "start.py", "app/module.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1")

    def digest() -> str:
        words = [
            "java",
            "-cp",
            "classes:lib/*",
            "--config=own.conf",
            "sh",
            "-c",
            "exec python 'start.py' {port}",
        ]
        return command(place, command=words, needs=["./app"]).digest

    before = digest()
    assert digest() == before
    for name in ("classes/own/Main.class", "lib/other.jar", "own.conf", "start.py", "app/module.py"):
        (folder / name).write_text("2")
        now = digest()
        assert now != before, name
        before = now


NAMED = [
    (["sh", "start.sh", "app/app.jar", "{port}"], {}, "app/app.jar"),
    (["sh", "-c", "exec java -jar app/app.jar --port {port}"], {}, "app/app.jar"),
    (["sh", "start.sh", "{port}"], {"APP": "{root}/app/app.jar"}, "app/app.jar"),
    (["java", "Main", "{port}"], {"CLASSPATH": "lib/x.jar:{root}/classes"}, "classes/Main.class"),
    (["env", "CLASSPATH=classes", "java", "Main", "{port}"], {}, "classes/Main.class"),
    (["java", "--class-path=classes", "Main", "{port}"], {}, "classes/Main.class"),
    (["java", "--module-path=lib:mods", "-m", "own", "{port}"], {}, "mods/own/module-info.class"),
    (["node", "app", "{port}"], {}, "app/src/main.js"),
    (["sh", "-c", "exec java -Xmx32m -cp 'lib:classes' Main {port}"], {}, "classes/Main.class"),
    (["sh", "-c", "CLASSPATH=classes exec java Main {port}"], {}, "classes/Main.class"),
    (["sh", "-c", "cd app; exec java -p mods -m own {port}"], {}, "app/mods/own/module-info.class"),
    (["sh", "-c", "cd app && exec python3 own.py {port}"], {}, "app/own.py"),
]


@pytest.mark.parametrize(("words", "environment", "file"), NAMED)
def test_code_is_digested_and_watched_wherever_a_command_names_it(place, words, environment, file):
    """Else what is built anew would be pooled with what ran before."""
    (place.folder / "start.sh").write_text("exec java -jar $APP")
    path = place.folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("1")
    before = command(place, command=words, environment=environment)
    assert path in before.watched
    digest = before.digest
    path.write_text("2")
    assert command(place, command=words, environment=environment).digest != digest


def test_what_a_command_may_write_where_its_environment_says_is_none_of_its_code(place):
    def digest():
        return command(place, environment={"LOGFILE": "own.log", "CONFIG": "own.conf"}).digest

    before = digest()
    (place.folder / "own.log").write_text("GET /")
    assert digest() == before


def test_a_text_too_long_to_be_a_file_is_none(place):
    long = "-XX:+UseSerialGC" * 40
    words = ["sh", "-c", f"exec java {long} {{port}}", long]
    one = command(place, command=words, environment={"OPTIONS": long})
    assert one.digest and not [path for path in one.watched if long in str(path)]


def test_what_a_command_may_write_below_a_folder_that_it_names_is_none_of_its_code(place):
    (place.folder / "app").mkdir()
    before = command(place, command=["node", "app", "{port}"])
    digest = before.digest
    (place.folder / "app" / "access.log").write_text("GET /")
    after = command(place, command=["node", "app", "{port}"])
    assert after.digest == digest and not any(path.suffix == ".log" for path in after.watched)


@pytest.mark.parametrize(
    "words", [["serve", "-p", "kept"], ["sh", "-c", "mkdir -p kept && exec serve {port}"]]
)
def test_a_folder_behind_p_is_a_module_path_of_java_alone(place, words):
    """Others have a folder there that they write to."""
    (place.folder / "kept").mkdir()
    before = command(place, command=[*words, "{port}"])
    digest = before.digest
    (place.folder / "kept" / "access.log").write_text("GET /")
    after = command(place, command=[*words, "{port}"])
    assert after.digest == digest


@pytest.mark.parametrize("class_path", [".", "{root}", ".."])
def test_of_a_class_path_that_holds_the_project_its_classes_count_and_not_what_runs_write(place, class_path):
    root = place.folder / "project"
    root.mkdir()
    (root / "Main.class").write_text("1")
    (place.folder / "Other.class").write_text("1")

    def asked() -> Command:
        return Command(spec(command=["java", "-cp", class_path, "Main", "{port}"]), root, None)

    digest = asked().digest
    (root / "data").mkdir()
    (root / "data" / "session.json").write_text("1")
    assert asked().digest == digest and not [one for one in asked().watched if one.suffix == ".json"]
    for file in (root / "Main.class", place.folder / "Other.class"):
        file.write_text("2")
    assert asked().digest != digest


def test_a_needed_file_that_is_not_there_is_said_before_anything_is_started(place):
    with pytest.raises(ToolMissing, match="^no such file: ./app: needed by subject foreign\n  needs names"):
        command(place, name="foreign", needs=["./app"]).check(profiled=False)
    (place.folder / "app").mkdir()
    command(place, needs=["./app"]).check(profiled=False)


def test_a_file_that_is_no_text_is_given_to_it_as_it_is(place):
    (place.folder / "own.p12").write_bytes(b"\xff\xfe{port}\x00")
    live = command(place, files={"own.p12": "own.p12"}).launch(place)
    assert live.stop() is None
    assert (place.store / "own.p12").read_bytes() == b"\xff\xfe{port}\x00"


def test_a_profiler_that_is_not_built_is_said_before_a_jvm_is_started(place):
    jvm = Command(spec(jvm=True), place.folder, Jdk(Path("/jdk"), "25"))
    jvm.check(profiled=False)
    with pytest.raises(ToolMissing, match="^not built: .*libasyncProfiler.so\n  kvstudy build"):
        jvm.check(profiled=True)


def test_an_address_that_no_host_can_have_is_said_in_one_line(place):
    with pytest.raises(KvstudyError, match="^nothing answers at http://a..b:8080: "):
        Address(SubjectSpec(url="http://a..b:8080"), place.folder, None).check(profiled=False)
