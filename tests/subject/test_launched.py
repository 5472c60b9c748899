"""A process that is to become ready: every way in which it can fail to become or to stay so."""

import os
import re
import sys
from pathlib import Path

import pytest
from memory_groups import can_make_groups, groups_of

from kvstudy.errors import RunFailed
from kvstudy.hosts import memory_group
from kvstudy.hosts.process import wait_until
from kvstudy.subject.kv_service import READY_LINE
from kvstudy.subject.launched import Launched


def script(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def launched(code: str, log: Path, **named) -> Launched:
    return Launched(script(code), log, lambda process: process.announced, ready_line=READY_LINE, **named)


def test_ready_line_is_found_among_others_and_gives_the_address(tmp_path):
    service = launched(
        "print('[0.5s] jfr started'); print('ready: http://127.0.0.1:1234', flush=True); import time; "
        "time.sleep(60)",
        tmp_path / "log",
    )
    assert service.url == "http://127.0.0.1:1234"
    service.stop()


def test_a_log_of_any_length_is_looked_through_once_and_its_last_words_are_read_alone(tmp_path, monkeypatch):
    """A service that logs each request, or goes mad, writes more than there is memory."""
    log = tmp_path / "log"
    monkeypatch.setattr("kvstudy.subject.launched.SEARCHED_BYTES", 10)
    monkeypatch.setattr("kvstudy.subject.launched.LAST_BYTES", 40)
    log.write_text("serving on, said the one before\n")
    service = launched(
        "import sys, time; print('ready: http://127.0.0.1:1', flush=True); "
        "sys.stderr.write('x' * 95 + 'serving on 1\\n' + 'y' * 50 + '\\nlast words\\n'); sys.stderr.flush(); "
        "time.sleep(60)",
        log,
    )
    try:
        assert wait_until(lambda: log.read_text().endswith("last words\n"), 20)
        assert sum(not service.has_said("serving on") for _ in range(100)) in range(9, 100)
        assert service.has_said("serving on") and not any(service.has_said("none") for _ in range(100))
        assert service.last_words() == "last words"
    finally:
        service.stop()


def test_a_log_without_end_keeps_its_beginning_and_its_end_and_says_what_is_cut_out(tmp_path, monkeypatch):
    monkeypatch.setattr("kvstudy.subject.launched.LOG_MAX_BYTES", 100_000)
    monkeypatch.setattr("kvstudy.subject.launched.LOG_BEGIN_BYTES", 1_000)
    monkeypatch.setattr("kvstudy.subject.launched.LAST_BYTES", 1_000)
    log = tmp_path / "log"
    log.write_text("of the one before\n")
    service = launched(
        "import sys; print('ready: http://127.0.0.1:1', flush=True)\n"
        "for number in range(20_000): sys.stderr.write(f'{number:99}\\n')\n"
        "sys.stderr.flush(); sys.stdin.read(); import time; time.sleep(60)",
        log,
    )

    def is_whole() -> bool:
        service.check_alive("test")
        return service.last_words() == "19999"

    try:
        assert wait_until(is_whole, 60, step_s=0.001)
        text = log.read_text()
        assert text.startswith("of the one before\n" + " " * 98 + "0\n") and len(text) < 200_000
        assert re.findall("^kvstudy: log too long: bytes cut out here: [0-9]+$", text, re.MULTILINE)
    finally:
        service.stop()


def test_service_that_ends_before_it_is_ready_says_why(tmp_path):
    with pytest.raises(
        RunFailed, match=r"service ended before it was ready: exit=1: port is taken: port=8080$"
    ):
        launched("import sys; sys.exit('port is taken: port=8080')", tmp_path / "log")


@pytest.mark.parametrize(
    ("stream", "lines", "words"),
    [
        (
            "stderr",
            [
                "Unrecognized VM option 'UseG1GGC'",
                "Did you mean '(+/-)UseG1GC'?",
                "Error: Could not create the Java Virtual Machine.",
                "Error: A fatal exception has occurred. Program will exit.",
            ],
            "Unrecognized VM option 'UseG1GGC' Did you mean '(+/-)UseG1GC'?",
        ),
        (
            "stdout",
            ["Error occurred during initialization of VM", "Too small maximum heap"],
            "Too small maximum heap",
        ),
    ],
)
def test_a_jvm_that_refuses_to_start_is_told_with_its_reason_which_is_kept(tmp_path, stream, lines, words):
    code = f"import sys; print(*{lines!r}, sep='\\n', file=sys.{stream}); sys.exit(1)"
    with pytest.raises(RunFailed) as failed:
        launched(code, tmp_path / "log")
    assert failed.value.message == f"service ended before it was ready: exit=1: {words}"
    assert (tmp_path / "log").read_text().splitlines() == lines


def test_service_that_never_becomes_ready_is_ended(tmp_path):
    with pytest.raises(RunFailed, match="service was not ready in time: timeout=2s: still recovering"):
        Launched(
            ["sh", "-c", "echo still recovering >&2; exec sleep 60"],
            tmp_path / "log",
            lambda process: process.announced,
            ready_line=READY_LINE,
            ready_timeout_s=2,
        )


def test_death_is_noticed_with_its_signal_and_last_words(tmp_path):
    service = launched(
        "import os, sys; print('ready: http://127.0.0.1:1', flush=True); print('out of memory', "
        "file=sys.stderr, flush=True); "
        "os.kill(os.getpid(), 9)",
        tmp_path / "log",
    )
    assert wait_until(lambda: service.exit_code is not None, 60)
    with pytest.raises(RunFailed, match="^service died during measure: signal 9: out of memory$"):
        service.check_alive("measure")
    service.stop()


GROWS = "x = [bytearray(b'x') * (1 << 20) for _ in range(400)]"
READY = "print('ready: http://127.0.0.1:1', flush=True)"


@can_make_groups
@pytest.mark.parametrize(
    ("code", "when"),
    [(f"{GROWS}; {READY}", "before it was ready"), (f"{READY}; {GROWS}", "during measure")],
    ids=["too small to start in", "too small to serve in"],
)
def test_a_memory_group_that_is_too_small_is_told_with_its_size_and_removed(tmp_path, code, when):
    with pytest.raises(RunFailed) as failed:
        service = launched(code, tmp_path / "log", memory_bytes=48 << 20)
        assert wait_until(lambda: service.exit_code is not None, 60)
        try:
            service.check_alive("measure")
        finally:
            service.stop()
            assert service.memory_group["killed"]
    assert failed.value.message == (
        f"service was killed {when}: its memory group is too small: memory=48.0 MiB: "
        "give it more memory, or a smaller heap"
    )
    assert groups_of(os.getpid()) == []


def test_without_the_right_to_make_a_group_nothing_is_started(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_group, "CGROUPS", tmp_path / "none")
    monkeypatch.setattr(memory_group, "MEMBERSHIP", tmp_path / "none")
    with pytest.raises(
        RunFailed, match="^service cannot be limited to its memory: this system has no memory"
    ):
        launched("raise SystemExit", tmp_path / "log", memory_bytes=48 << 20)
    assert not (tmp_path / "log").exists()
