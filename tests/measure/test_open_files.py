"""The service where no file can be opened any more: it refuses writes, and goes on by itself when files can
be opened again. From its jar, as users run it: it is open, and classes can still be read from it."""

import http.client
import os
import resource
import subprocess
from pathlib import Path

import pytest

from kvstudy.hosts.process import wait_until
from kvstudy.project import service_jar
from kvstudy.subject.jdk import find_jdk

pytestmark = pytest.mark.machine
PROJECT = Path(__file__).parents[2]
STALL_OFTEN = [
    "--memtable-bytes",
    "16k",
    "--table-bytes",
    "16k",
    "--compaction",
    "none",
    "--stall-limit-ms",
    "100",
]


@pytest.fixture
def service(tmp_path):
    command = [
        find_jdk().tool("java"),
        "-Xmx64m",
        "--sun-misc-unsafe-memory-access=allow",
        "-jar",
        service_jar(PROJECT),
        *("--dir", tmp_path / "store", "--port", "0", "--wal", "os", *STALL_OFTEN),
    ]
    log = tmp_path / "log"
    with log.open("w") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    try:
        yield process, log
    finally:
        process.kill()
        process.wait()


def test_without_a_file_to_open_writes_are_refused_and_taken_again_by_itself(service):
    process, log = service
    ready = process.stdout.readline()
    assert ready.startswith("ready: http://127.0.0.1:"), log.read_text()
    connection = http.client.HTTPConnection("127.0.0.1", int(ready.rsplit(":", 1)[1]), timeout=30)

    def status_of_put(number: int) -> int:
        connection.request("PUT", f"/v0/entity?id=key{number}", body=b"v" * 300)
        answer = connection.getresponse()
        answer.read()
        return answer.status

    assert status_of_put(0) == 201
    usual = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    now_open = len(os.listdir(f"/proc/{process.pid}/fd"))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (now_open + 1, usual[1]))
    statuses = []
    while len(statuses) < 500 and 503 not in statuses[-3:-2]:
        statuses.append(status_of_put(len(statuses) + 1))
    assert set(statuses) == {201, 503}, log.read_text()
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, usual)
    assert wait_until(lambda: status_of_put(501) == 201, 60), log.read_text()
    written = [number for number, status in enumerate(statuses, start=1) if status == 201]
    for number in written:
        connection.request("GET", f"/v0/entity?id=key{number}")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"v" * 300)
    lines = [line for line in log.read_text().splitlines() if "tried again" in line]
    assert lines and all("Too many open files" in line for line in lines)
