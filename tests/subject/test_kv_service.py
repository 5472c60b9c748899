"""Our own two programs: the command line that each is started with."""

from dataclasses import replace
from pathlib import Path

from trial import configuration

from kvstudy.subject.jdk import Jdk
from kvstudy.subject.kv_service import EmptyServer, KvService
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
    assert any(flag.startswith("-Xlog:gc*,safepoint:file=/run/gc.log") for flag in command)
    assert any(
        flag.startswith("-XX:StartFlightRecording:filename=/run/service.jfr,settings=") for flag in command
    )
    assert "-XX:+DebugNonSafepoints" not in command


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
        "filename=/run/a.service.jfr," in recordings[0],
        "filename=/run/b.service.jfr," in recordings[1],
    ] == [True, True]


def test_empty_server_takes_only_a_port():
    command = EmptyServer(JDK, Path("empty.jar"), [], Path("/root")).command(replace(PLACE, port=8080))
    assert command[command.index("-jar") :] == ["-jar", "empty.jar", "--port", "8080"]
