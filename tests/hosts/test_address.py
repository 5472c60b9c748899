"""A service that runs at an address on a host, loaded from others: nothing of the study is there."""

import os
import shutil
import signal
import socket
import threading

import pytest
from test_failures import nothing_runs_on

from kvstudy.hosts.process import wait_until
from kvstudy.project import service_jar
from kvstudy.record.run_folder import sealed_runs
from kvstudy.subject.jdk import find_jdk

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts")]

PORT = 18080


def answers(address: str) -> bool:
    try:
        socket.create_connection((address, PORT), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def server(hosts, project):
    """Its pid, on host a."""
    folder = hosts.folder / "there" / "of-its-owner"
    java = str(find_jdk().home / "bin" / "java")
    hosts.asked("a", f"mkdir -p {folder}")
    where = ["--port", str(PORT), "--host", hosts.address["a"], "--dir", str(folder)]
    hosts.start("a", [java, "-Xmx128m", "-jar", str(service_jar(project.root)), *where])
    assert wait_until(lambda: answers(hosts.address["a"]), 60)
    pid = hosts.pid_of("a", "kv-service.jar")
    yield pid
    os.kill(pid, signal.SIGTERM)
    nothing_runs_on(hosts, "abc")


@pytest.mark.parametrize("is_in_the_file", [True, False])
def test_on_the_host_of_a_service_at_an_address_there_is_the_service_alone(
    hosts, project, server, is_in_the_file
):
    """Also where the file names its host."""
    file = hosts.yaml(**({"a": ["service"]} if is_in_the_file else {}), b=["generator"], c=["generator"])
    experiment = project.experiment(
        subject={"url": f"http://{hosts.address['a']}:{PORT}", "name": "theirs"}, connections=4, rate=300
    )
    listed = f"find {hosts.folder}/there/of-kvstudy 2>/dev/null | sort"  # what other tests have left
    before, seen, is_over = hosts.asked("a", listed), set(), threading.Event()

    def look() -> None:
        while not is_over.wait(0.05):
            seen.update(hosts.pids("a").items())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        measuring = project.kvstudy("run", experiment, "--hosts", file, "--generators", 2)
        code, out, err = project.finished(measuring)
    finally:
        is_over.set()
        looking.join()
    assert code == 0, out + err
    (run,) = sealed_runs(project.raw)
    assert run.facts["outcome"] == "completed" and run.facts["hosts"]["generators"] == ["b", "c"]
    assert {pid for pid, _ in seen} == {server}, seen
    # Of the machine of the service nothing is known, and nothing is said of the one where this was typed.
    assert "cores" not in run.machine and set(run.machine["hosts"]) == {"b", "c"}
    assert hosts.asked("a", listed) == before
    shutil.rmtree(project.raw)
    code, out, err = project.finished(
        project.kvstudy("run", experiment, "--hosts", file, "--generators", 3), 60
    )
    assert code == 2 and "not enough hosts: generators=3 are needed" in err, out + err
    assert not project.raw.exists()
