"""The service as a process: its command line, and every way in which it can fail to become or to stay ready."""

import sys
from pathlib import Path

import pytest

from kvstudy.errors import RunFailed
from kvstudy.hosts.process import wait_until
from kvstudy.measure.metrics import parse
from kvstudy.measure.service import Service, service_command
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.run_plan import configurations_of
from kvstudy.subject.jdk import Jdk

JDK = Jdk(Path("/jdk"), "25")


def configuration(**change):
    values = {"name": "trial", "question": "?", "expectation": "1 ms", "workload": "put", "connections": 1, "threads": 1, "rate": 10,
              "duration": "2s", "warm_up": "1s", "repeats": 1}
    return configurations_of(Experiment.from_parameters(values | change))[0]


def script(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_options_are_passed_under_the_names_of_the_command_line():
    asked = configuration(service={"cache_entries": 5000, "wal": "os", "memtable_bytes": "4m"}, jvm={"heap": "128m", "gc": "Z", "options": ["-Xss1m"]})
    command = service_command(JDK, Path("kv.jar"), asked, Path("/store"), 0, Path("/gc.log"), Path("/r.jfr"), profiled=False)
    assert command[0] == "/jdk/bin/java"
    assert command[command.index("-jar"):] == [
        "-jar", "kv.jar", "--port", "0", "--dir", "/store", "--wal", "os", "--memtable-bytes", str(4 << 20), "--cache-entries", "5000"]
    assert {"-Xmx128m", "-XX:+UseZGC", "-Xss1m"} <= set(command)
    assert any(flag.startswith("-Xlog:gc*,safepoint:file=/gc.log") for flag in command)
    assert any(flag.startswith("-XX:StartFlightRecording:filename=/r.jfr,settings=") for flag in command)
    assert "-XX:+DebugNonSafepoints" not in command


def test_profiled_service_names_frames_between_safepoints():
    command = service_command(JDK, Path("kv.jar"), configuration(), Path("/store"), 0, None, None, profiled=True)
    assert "-XX:+DebugNonSafepoints" in command


def test_empty_server_takes_only_a_port():
    command = service_command(JDK, Path("empty.jar"), configuration(server="empty"), Path("/store"), 8080, None, None, profiled=False)
    assert command[command.index("-jar"):] == ["-jar", "empty.jar", "--port", "8080"]


def test_ready_line_is_found_among_others_and_gives_the_address(tmp_path):
    service = Service(script("print('[0.5s] jfr started'); print('ready: http://127.0.0.1:1234', flush=True); import time; time.sleep(60)"),
                      tmp_path / "log")
    assert service.url == "http://127.0.0.1:1234"
    service.stop()


def test_service_that_ends_before_it_is_ready_says_why(tmp_path):
    with pytest.raises(RunFailed, match=r"service ended before it was ready: exit=1: port is taken: port=8080$"):
        Service(script("import sys; sys.exit('port is taken: port=8080')"), tmp_path / "log")


@pytest.mark.parametrize(("stream", "lines", "words"), [
    ("stderr", ["Unrecognized VM option 'UseG1GGC'", "Did you mean '(+/-)UseG1GC'?", "Error: Could not create the Java Virtual Machine.",
                "Error: A fatal exception has occurred. Program will exit."], "Unrecognized VM option 'UseG1GGC' Did you mean '(+/-)UseG1GC'?"),
    ("stdout", ["Error occurred during initialization of VM", "Too small maximum heap"], "Too small maximum heap"),
])
def test_a_jvm_that_refuses_to_start_is_told_with_its_reason_which_is_kept(tmp_path, stream, lines, words):
    code = f"import sys; print(*{lines!r}, sep='\\n', file=sys.{stream}); sys.exit(1)"
    with pytest.raises(RunFailed) as failed:
        Service(script(code), tmp_path / "log")
    assert failed.value.message == f"service ended before it was ready: exit=1: {words}"
    assert (tmp_path / "log").read_text().splitlines() == lines


def test_service_that_never_becomes_ready_is_ended(tmp_path):
    with pytest.raises(RunFailed, match="service was not ready in time: timeout=0.3s: still recovering"):
        Service(script("import sys, time; print('still recovering', file=sys.stderr, flush=True); time.sleep(60)"), tmp_path / "log", ready_timeout_s=0.3)


def test_death_is_noticed_with_its_signal_and_last_words(tmp_path):
    service = Service(script("import os, sys; print('ready: http://127.0.0.1:1', flush=True); print('out of memory', file=sys.stderr, flush=True); "
                             "os.kill(os.getpid(), 9)"), tmp_path / "log")
    assert wait_until(lambda: service.exit_code is not None, 10)
    with pytest.raises(RunFailed, match="^service died during measure: signal 9: out of memory$"):
        service.check_alive("measure")
    service.stop()


def test_metrics_are_flattened_and_only_ours_are_kept():
    text = ('# HELP kv_store_stalls_total x\n# TYPE kv_store_stalls_total counter\nkv_store_stalls_total{cause="memtable",level="0"} 3.0\n'
            '# TYPE jvm_threads gauge\njvm_threads 4\n# TYPE kv_http_connections gauge\nkv_http_connections 7\n')
    assert parse(text) == {"kv_store_stalls_total{cause=memtable,level=0}": 3.0, "kv_http_connections": 7.0}
