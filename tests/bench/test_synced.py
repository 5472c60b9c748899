"""That the GETs of `make bench-synced` are measured beside writers."""

import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import bench_programs
import pytest
from serving import serving

from kvstudy.errors import RunFailed

OPTIONS = SimpleNamespace(records=1, seconds=0.1, rate=1)


class LoadedForAMoment:
    def loaded(self, *_load, **_how) -> dict:
        time.sleep(0.3)
        return {"response_time": {"percentiles": {"50": 1000}}}


@pytest.fixture
def answering():
    """Starts a server of one status, and gives what stands for the service."""
    servers = ExitStack()

    def start(status: int) -> SimpleNamespace:
        class Answers(BaseHTTPRequestHandler):
            def do_PUT(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_words):
                pass

        server = servers.enter_context(serving(ThreadingHTTPServer(("127.0.0.1", 0), Answers)))
        return SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}")

    with servers:
        yield start


def measured(service, writers: int) -> dict:
    program = bench_programs.program("service/bench/bench_synced.py")
    return program.measured(LoadedForAMoment(), OPTIONS, service, writers)


def test_writers_write_while_the_gets_are_measured(answering):
    found = measured(answering(201), writers=2)
    assert found["puts"] > 0 and found["50"] == 1.0
    assert measured(answering(201), writers=0)["puts"] == 0


def test_writers_that_are_refused_are_told_of_and_nothing_is_said_of_the_gets(answering):
    with pytest.raises(RunFailed, match="writers did not write"):
        measured(answering(503), writers=2)
