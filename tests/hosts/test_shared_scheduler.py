"""Two measurements, which know nothing of one another, on the workers of one Dask scheduler."""

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime

import pytest
from cryptography import x509
from dask_scheduler import address_in
from test_agent import Keeper

from kvstudy.errors import KvstudyError
from kvstudy.hosts import cluster, dask_host
from kvstudy.hosts.hosts_file import HostsFile
from kvstudy.hosts.process import wait_until
from kvstudy.hosts.remote import RemoteHost


@pytest.fixture
def scheduler(tmp_path, monkeypatch):
    """Its address, with a worker ``a``: without certificates, as somebody else's."""
    monkeypatch.setenv("KVSTUDY_LEASE", f" of test {os.getpid()}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path or os.getcwd() for path in sys.path))
    noted, dask = tmp_path / "scheduler.json", [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    common = ["--host", "127.0.0.1", "--no-dashboard"]
    processes = [
        subprocess.Popen(
            [*dask, "scheduler", *common, "--port", "0", "--no-show", "--scheduler-file", noted], **quiet
        )
    ]
    try:
        address = address_in(noted)
        processes.append(
            subprocess.Popen([*dask, "worker", address, *common, "--name", "a", "--no-nanny"], **quiet)
        )
        watching = dask_host.Cluster(address)
        assert wait_until(watching.workers, 30)
        watching.close()
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(20)


@pytest.fixture
def measurement(scheduler, tmp_path):
    """``measurement()``: another one, with the host ``a`` of its own cluster's."""
    hosts = {
        "a": {"address": "127.0.0.1", "roles": ["service"]},
        "b": {"address": "127.0.0.2", "roles": ["generator"]},
    }
    given = {"scheduler": scheduler, "folder": str(tmp_path / "there"), "hosts": hosts}
    file, begun = HostsFile.model_validate(given), []

    def begin() -> RemoteHost:
        begun.append(cluster.Hosts(file, tmp_path / "work", lambda *_: None).__enter__())
        return begun[-1].hosts["a"]

    yield begin
    for one in begun:
        one.__exit__()


def test_the_second_of_two_clients_is_refused_and_the_first_goes_on(measurement):
    first, second = measurement(), measurement()
    first.renew()
    keeper = first.stationed(Keeper, 40)
    with pytest.raises(KvstudyError, match="host is in use: by .*@"):
        second.renew()
    assert keeper.add(2) == 42
    first.renew()  # again, after it was lost: by who has it
    assert first.stationed(Keeper, 1).add(1) == 2
    first.end()
    begun = time.monotonic()
    second.renew()
    assert second.stationed(Keeper, 1).add(2) == 3 and time.monotonic() - begun < 10


def test_who_looks_at_a_host_that_somebody_measures_on_is_told_so_and_disturbs_nobody(measurement):
    from kvstudy.hosts.hosts_file import HostEntry
    from kvstudy.measure import hosts_check

    first = measurement()
    first.renew()
    keeper = first.stationed(Keeper, 40)
    entry, second = HostEntry(address="127.0.0.1", roles=["service"]), measurement()
    with ExitStack() as until_end:

        def asked():
            return until_end.enter_context(hosts_check._over_dask(second))

        found, there = hosts_check._checked("a", entry, asked, "")
    assert there is None
    assert len(found.wrong) == 1 and "host is in use: by " in found.wrong[0]
    assert keeper.add(2) == 42


@pytest.mark.parametrize(
    "said, told",
    [
        (
            "in <TLS (closed) Scheduler Broadcast local=tls://10.0.0.1:43212 remote=tls://10.0.0.2:3954>: "
            "Stream is closed",
            "its worker is gone: Stream is closed",
        ),
        ("Timed out after 5 s\ndue to this", "its worker is gone: Timed out after 5 s"),
        ("", "its worker is gone"),
    ],
)
def test_of_a_worker_that_is_gone_it_is_told_why_and_not_by_which_socket(said, told):
    assert dask_host._gone(OSError(said)) == told


@pytest.mark.parametrize(
    "answer", [None, b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["nothing", "its end", "HTTP"]
)
def test_who_answers_as_no_scheduler_does_is_not_waited_for_without_end(monkeypatch, answer):
    """One that stands still takes connections; at another port may be its dashboard."""
    monkeypatch.setattr(dask_host, "CONNECT_TIMEOUT_S", 1.0)
    refused = queue.SimpleQueue()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        def connected() -> None:
            with pytest.raises(KvstudyError) as error:
                dask_host.Cluster(address)
            refused.put(error.value)

        def answering() -> None:
            with suppress(OSError):
                while True:
                    asking.append(server.accept()[0])
                    if answer is not None:
                        asking[-1].sendall(answer)
                        asking[-1].close()

        asking: list[socket.socket] = []
        for work in (answering, connected):
            threading.Thread(target=work, daemon=True).start()
        error = refused.get(timeout=60)
        server.shutdown(socket.SHUT_RDWR)
    for one in asking:
        one.close()
    assert error.message.startswith(f"no Dask scheduler answers: {address}: ")
    assert "is that its port?" in error.hint


def test_certificates_are_valid_by_any_clock(tmp_path):
    """A host whose clock is behind would refuse those that begin now."""
    dask_host.write_certificates(tmp_path)
    dask_host.security(tmp_path).get_connection_args("worker")
    certificate = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    assert certificate.not_valid_before_utc <= datetime(1970, 1, 1, tzinfo=UTC)
    assert certificate.not_valid_after_utc >= datetime(2100, 1, 1, tzinfo=UTC)
    assert (tmp_path / "key.pem").stat().st_mode & 0o077 == 0
