"""Our own two programs: the command line that each is started with."""

import socket
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from serving import serving
from trial import configuration

from kvstudy.errors import RunFailed
from kvstudy.subject.jdk import Jdk
from kvstudy.subject.kv_service import EmptyServer, KvService, LiveKvService
from kvstudy.subject.protocol import Place

JDK = Jdk(Path("/jdk"), "25")
PLACE = Place(Path("/store"), Path("/run"))


def service(**change) -> KvService:
    asked = configuration(**change)
    return KvService(JDK, Path("kv.jar"), asked.service, asked.jvm, Path("/root"))


def test_options_are_passed_under_the_names_of_the_command_line():
    command = service(
        service={"cache_entries": 5000, "wal": "os", "memtable_bytes": "4m"},
        jvm={"heap": "128m", "gc": "Z", "options": ["-Xss1m"]},
    ).command(PLACE)
    assert command[0] == "/jdk/bin/java"
    assert command[command.index("-jar") :] == [
        "-jar",
        "kv.jar",
        "--port",
        "0",
        "--dir",
        "/store",
        "--wal",
        "os",
        "--memtable-bytes",
        str(4 << 20),
        "--cache-entries",
        "5000",
        "--admin",
    ]
    assert {"-Xmx128m", "-XX:+UseZGC", "-Xss1m"} <= set(command)
    assert any(flag.startswith('-Xlog:gc*,safepoint:file="/run/gc.log":') for flag in command)
    assert any(
        flag.startswith('-XX:StartFlightRecording:filename="/run/service.jfr",settings=') for flag in command
    )
    assert "-XX:+DebugNonSafepoints" not in command


def test_a_jvm_that_is_left_one_core_of_several_takes_the_collector_that_it_takes_without_us(monkeypatch):
    def processors(usable: int, cores: list[int] | None) -> list[str]:
        monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(usable)))
        command = service(jvm={"options": ["-XX:ActiveProcessorCount=1"]}).command(
            replace(PLACE, cores=cores)
        )
        return [flag for flag in command if "ActiveProcessorCount" in flag]

    theirs = ["-XX:ActiveProcessorCount=1"]  # of two the JVM takes the last one
    assert processors(2, [0]) == ["-XX:ActiveProcessorCount=2", *theirs]
    assert processors(4, [0, 1, 2]) == processors(2, None) == processors(1, [0]) == theirs


def test_the_size_of_its_memory_group_is_none_of_its_options():
    limited = service(service={"memory": "256m", "wal": "os"})
    command = limited.command(PLACE)
    assert limited.memory_bytes == 256 << 20 and "--memory" not in command
    assert command[command.index("--dir") + 2 : -1] == ["--wal", "os"]
    assert service().memory_bytes is None


def test_profiled_service_names_frames_between_safepoints():
    assert "-XX:+DebugNonSafepoints" in service().command(replace(PLACE, profiled=True))


def test_a_service_that_is_only_filled_writes_no_recording_and_takes_the_heap_of_a_fill():
    command = service(jvm={"heap": "32m"}).command(replace(PLACE, filling=True))
    assert "-Xmx512m" in command and "-Xmx32m" not in command
    assert not [word for word in command if "StartFlightRecording" in word or word.startswith("-Xlog")]


def test_two_services_of_one_run_write_files_of_their_own():
    places = [replace(PLACE, store=Path(f"/{side}"), named=f"{side}.{{}}".format) for side in "ab"]
    recordings = [
        word for place in places for word in service().command(place) if "StartFlightRecording" in word
    ]
    assert [
        'filename="/run/a.service.jfr",' in recordings[0],
        'filename="/run/b.service.jfr",' in recordings[1],
    ] == [True, True]


def test_a_port_that_another_program_has_is_said_before_it_is_started():
    with socket.create_server((PLACE.address, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RunFailed, match=f"^service cannot have its port: port {port}: address already"):
            service().launch(replace(PLACE, port=port))


def test_empty_server_takes_only_a_port():
    command = EmptyServer(JDK, Path("empty.jar"), [], Path("/root")).command(replace(PLACE, port=8080))
    assert command[command.index("-jar") :] == ["-jar", "empty.jar", "--port", "8080"]


@pytest.fixture
def admin():
    """A service that answers admin requests with ``statuses``, or 200; ``asked``: what came."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self):
            request = self.path.removeprefix("/v0/admin/").partition("?")[0]
            server.asked.append(request)
            self.send_response(server.statuses.get(request, 200))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.asked, server.statuses = [], {}
    with serving(server):
        yield server


def live(admin, **change) -> LiveKvService:
    launched = SimpleNamespace(
        url=f"http://127.0.0.1:{admin.server_port}",
        check_alive=lambda doing: None,
        send=None,
        last_words=lambda: "",
    )
    return LiveKvService(service(), launched, replace(PLACE, **change))


def test_a_service_that_was_filled_is_flushed_and_idle_when_it_rests(admin):
    assert live(admin, filling=True).come_to_rest(1)
    assert admin.asked == ["idle", "flush", "idle"]


def test_a_service_that_is_measured_rests_without_a_flush(admin):
    assert live(admin).come_to_rest(1)
    assert admin.asked == ["idle"]


def test_a_build_that_knows_no_flush_rests_when_it_is_idle(admin):
    admin.statuses["flush"] = 404
    assert live(admin, filling=True).come_to_rest(1)
    assert admin.asked == ["idle", "flush", "idle"]


def test_a_flush_that_has_to_wait_is_no_rest_and_one_that_fails_is_told(admin):
    admin.statuses["flush"] = 503
    assert not live(admin, filling=True).come_to_rest(1)
    admin.statuses["flush"] = 500
    with pytest.raises(RunFailed, match="flush answered 500"):
        live(admin, filling=True).come_to_rest(1)
