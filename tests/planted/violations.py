"""Does each validity check notice what it is there for? Real runs, each made to break one rule: `make
violations`, about a minute.

The checks that need no machine to be broken (wrk2's dropped connections, few samples, cut files) are tested
in tests/analyse.
"""

import os
import shutil
import sys

import pytest
from hooks import WHEN_MEASURING

HOG = """
import atexit, subprocess, sys
for core in {cores}:
    hog = subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"])
    atexit.register(hog.kill)
"""
PINNED = """
import os
import kvstudy.measure.base_station as base_station
from kvstudy.measure.pinning import Pinning
cores = sorted(os.sched_getaffinity(0))
base_station.pinning = lambda threads, wanted: Pinning(cores[:1], cores[-1:], "planted")
"""
ALWAYS_500 = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Broken(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Broken).serve_forever()
"""
CORES = sorted(os.sched_getaffinity(0))


def verdicts(tables) -> dict[str, str]:
    print("\n" + tables.validity[["check", "verdict", "observed", "required"]].to_string(index=False))
    assert tables.validity["run_id"].nunique() == 1
    return dict(zip(tables.validity["check"], tables.validity["verdict"], strict=True))


def test_a_run_with_nothing_planted_passes_what_the_others_break(measured):
    found = verdicts(measured(duration="4s", warm_up="2s", rate=500))
    for check in (
        "rate_held",
        "answers_expected",
        "no_errors",
        "generator_not_saturated",
        "every_request_sent",
    ):
        assert found[check] == "PASS", check


def test_a_server_that_answers_500(measured):
    found = verdicts(
        measured(
            subject={"command": [sys.executable, "-c", ALWAYS_500, "{port}"]},
            duration="3s",
            warm_up="1s",
            rate=100,
        )
    )
    assert found["answers_expected"] == "FAIL"


def test_a_rate_that_nobody_can_hold(measured):
    assert verdicts(measured(duration="3s", warm_up="1s", connections=1, rate=400_000))["rate_held"] == "FAIL"


@pytest.mark.skipif(shutil.which("taskset") is None, reason="apt-get install util-linux")
def test_a_program_that_takes_a_core(measured):
    assert (
        verdicts(measured(code=HOG.format(cores=CORES), duration="3s", warm_up="1s"))["no_foreign_load"]
        == "FAIL"
    )


@pytest.mark.skipif(shutil.which("taskset") is None, reason="apt-get install util-linux")
def test_a_generator_that_is_starved(measured):
    """Its one core is shared with ten other programs that never rest, and that the scheduler prefers: without
    that, it gets the little it needs."""
    found = verdicts(
        measured(
            code=PINNED + HOG.format(cores=CORES[-1:] * 10) + "import os\nos.nice(19)\n",
            duration="4s",
            warm_up="1s",
            rate=20_000,
            connections=16,
        )
    )
    assert "FAIL" in (found["generator_not_saturated"], found["send_lateness"])


def test_a_warm_up_that_is_too_short(measured):
    """A JVM that has just started cannot hold this rate for its first second, and can later."""
    tables = measured(
        subject="kv-service",
        workload="put",
        connections=4,
        rate=20_000,
        duration="4s",
        warm_up="1ms",
        jvm={"heap": "64m"},
    )
    assert verdicts(tables)["warm_up_long_enough"] in ("WARN", "FAIL")
    assert tables.validity.set_index("check").loc["warm_up_long_enough", "observed"].startswith("p50 ")


def test_a_service_that_dies(measured):
    code = WHEN_MEASURING + "import os, signal\nwhen_measuring(lambda pid: os.kill(pid, signal.SIGKILL))\n"
    assert verdicts(measured(code=code))["completed"] == "FAIL"
