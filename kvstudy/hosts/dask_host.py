"""Hosts of a Dask cluster: the one module that imports distributed.

Dask places a worker on each host, connects everybody, and says at once when a connection ends. It schedules
nothing here: what is started on a host must never be started twice or elsewhere, so no task of its scheduler
is used. A worker holds the host's agent as its child and hands frames on (``_exchange``).

    python -m kvstudy.hosts.dask_host scheduler --address 10.0.0.1 --file cluster/scheduler.json --tls cluster
    python -m kvstudy.hosts.dask_host worker tls://10.0.0.1:8786 --name a --address 10.0.0.11 --tls …

Both are quiet: no nanny, dashboard, profiler or monitors, and little is said while nothing happens, since
they share the cores with what is measured.
"""

import asyncio
import json
import logging
import re
import signal
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click
import dask
from distributed import Client, Scheduler, Worker
from distributed.comm import connect
from distributed.security import Security

from kvstudy.errors import HostLost, KvstudyError
from kvstudy.hosts.agent_process import AgentProcess
from kvstudy.hosts.cluster import SAYS_IT_IS_THERE, SCHEDULER_HINT

CONNECT_TIMEOUT_S = 10
ANSWER_TIMEOUT_S = 3.0
HEARTBEAT_S = 5.0
SCHEDULER_IS_GONE = "the cluster's scheduler is gone"
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "5s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-ttl": "30s",
    "distributed.comm.timeouts.connect": "5s",
    "distributed.comm.timeouts.tcp": "12s",
    "distributed.comm.retry.count": 0,
}
TLS_FILES = ("ca", "cert", "key")
ALWAYS = datetime(1970, 1, 1), datetime(9999, 12, 31, 23, 59, 59)


# ---- who measures ------------------------------------------------------------------------------------------


class Cluster:
    """A connection to a scheduler. KvstudyError when none answers."""

    def __init__(self, address: str, tls: Path | None = None):
        for name in ("distributed", "distributed.client"):  # who lost what is said by who measures
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            with dask.config.set(QUIET):
                _shake_hands(address, security(tls) if tls else Security())
                self._client = Client(
                    address,
                    timeout=CONNECT_TIMEOUT_S,
                    security=security(tls) if tls else None,
                    set_as_default=False,
                    heartbeat_interval="5s",
                )
        except Exception as error:  # what answers there may be anything
            said = str(error).splitlines()
            raise KvstudyError(
                f"no Dask scheduler answers: {address}: {said[0][:200] if said else 'it says nothing'}",
                f"is that its port? {SCHEDULER_HINT}",
            ) from error

    @property
    def is_alive(self) -> bool:
        return self._client.status == "running"

    def workers(self) -> dict[str, tuple[str, str]]:
        """Of each worker its name and its host's address, by where it is reached."""
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        return {at: (str(one["name"]), one["host"]) for at, one in known.items()}

    def answers(self) -> bool:
        """The scheduler, within ANSWER_TIMEOUT_S: one that stands still keeps its connections."""
        return _answers(self._client, ANSWER_TIMEOUT_S)

    def beat_all(self) -> None:
        """A word to every worker and back."""
        self._client.run(_nothing)

    def link(self, worker: str, asked: dict) -> "WorkerLink":
        return WorkerLink(self._client, worker, asked)

    def close(self) -> None:
        with suppress(Exception):
            self._client.close(timeout=3)


class WorkerLink:
    """To the agent that a worker holds."""

    def __init__(self, client: Client, worker: str, asked: dict):
        self._client, self._worker, self._key = client, worker, (asked["name"], asked["token"])
        self._pid, self.versions = self._run(_open, asked)

    def exchange(self, frame: bytes) -> bytes:
        return self._run(_exchange, self._key, frame)

    def end(self) -> None:
        self._run(_close, self._key, self._pid)

    def _run(self, work: Callable, *arguments: object) -> object:
        if self._client.status != "running":
            raise HostLost(SCHEDULER_IS_GONE)
        try:
            return self._client.run(work, *arguments, workers=[self._worker])[self._worker]
        except KeyError:
            raise HostLost("its worker is gone") from None
        except OSError as error:
            raise HostLost(_gone(error) if self._scheduler_answers() else SCHEDULER_IS_GONE) from error

    def _scheduler_answers(self) -> bool:
        """Asked anew: what goes through a scheduler that ends fails before the client notices its end."""
        return _answers(self._client, CONNECT_TIMEOUT_S)


def _shake_hands(address: str, security: Security) -> None:
    """For that a client waits without end. In a thread of its own: this one may have a loop that runs."""

    async def shake() -> None:
        asked = connect(address, CONNECT_TIMEOUT_S, **security.get_connection_args("client"))
        (await asyncio.wait_for(asked, CONNECT_TIMEOUT_S)).abort()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, shake()).result()


def _gone(error: OSError) -> str:
    """What Dask says of its connection, without the connection."""
    said = re.sub(r"^in <.*?>: ", "", str(error).splitlines()[0] if str(error) else "")
    return f"its worker is gone: {said[:150]}" if said else "its worker is gone"


def _answers(client: Client, timeout_s: float) -> bool:
    if client.status != "running":
        return False
    try:
        client.sync(client.scheduler.identity, callback_timeout=timeout_s)
    except OSError:
        return False
    return True


# ---- on a worker -------------------------------------------------------------------------------------------

# By the name of the host and the token of the measurement: a worker may have clients that know nothing of one
# another, and each ends its own agent alone. Which of them has the host says the lease.
Key = tuple[str, str]
_agents: dict[Key, AgentProcess] = {}
# A new agent begins when the old one has ended, and so has left the lease.
_changing: defaultdict[Key, asyncio.Lock] = defaultdict(asyncio.Lock)


async def _open(asked: dict) -> tuple[int, dict]:
    key = asked["name"], asked["token"]
    for other in [other for other, agent in _agents.items() if other != key and agent.has_ended]:
        _agents.pop(other).end()
    async with _changing[key]:
        await _end_agent(key)
        agent = _agents[key] = await asyncio.to_thread(AgentProcess, asked)
        return agent.pid, agent.versions


async def _exchange(key: Key, frame: bytes) -> bytes:
    if key not in _agents:
        raise HostLost("its worker was started anew")
    return await asyncio.get_running_loop().run_in_executor(None, _agents[key].exchange, frame)


async def _nothing() -> None:
    pass


async def _close(key: Key, pid: int) -> None:
    """Of the agent ``pid``, and of none that came after it."""
    async with _changing[key]:
        if key in _agents and _agents[key].pid == pid:
            await _end_agent(key)


async def _end_agent(key: Key) -> None:
    agent = _agents.pop(key, None)
    if agent:
        await asyncio.to_thread(agent.end)


# ---- what kvstudy starts itself ----------------------------------------------------------------------------


def security(folder: Path) -> Security:
    """Certificates of a cluster of kvstudy's own, as ``write_certificates`` left them."""
    ca, cert, key = (str(folder / f"{name}.pem") for name in TLS_FILES)
    return Security(
        require_encryption=True,
        tls_ca_file=ca,
        **{
            f"tls_{role}_{kind}": path
            for role in ("client", "scheduler", "worker")
            for kind, path in (("cert", cert), ("key", key))
        },
    )


def write_certificates(folder: Path) -> None:
    """Made for this cluster alone: without them whoever reaches its port could run code there. Valid whatever
    the clocks of hosts say; those of Dask's own (``Security.temporary``) begin now, by the clock here."""
    # Here: only who puts up a cluster needs it.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import NameOID

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kvstudy")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(ALWAYS[0])
        .not_valid_after(ALWAYS[1])
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for file, pem in zip(TLS_FILES, (certificate, certificate, private), strict=True):
        path = folder / f"{file}.pem"
        path.touch(mode=0o600)
        path.write_bytes(pem)


@click.group()
def commands() -> None:
    """The two ends of a cluster that kvstudy starts by itself."""


class QuietScheduler(Scheduler):
    """Of a small cluster's workers Dask wants to hear twice a second, beside what is measured. Who is lost,
    the beats of a measurement say (remote.py)."""

    def heartbeat_worker(self, *arguments: object, **named: object) -> dict:
        answer = super().heartbeat_worker(*arguments, **named)
        if "heartbeat-interval" in answer:
            answer["heartbeat-interval"] = max(HEARTBEAT_S, answer["heartbeat-interval"])
        return answer


@commands.command()
@click.option("--address", required=True)
@click.option("--file", type=click.Path(path_type=Path), required=True)
@click.option("--tls", type=click.Path(path_type=Path), required=True)
def scheduler(address: str, file: Path, tls: Path) -> None:
    async def serve() -> None:
        one = await QuietScheduler(
            host=address, port=0, protocol="tls", security=security(tls), dashboard=False, jupyter=False
        )
        new = file.with_suffix(".new")
        new.write_text(json.dumps({"address": one.address}))
        new.rename(file)
        await _until_ended(one)

    with dask.config.set(QUIET):
        asyncio.run(serve())


@commands.command()
@click.argument("scheduler_address")
@click.option("--name", required=True)
@click.option("--address", required=True)
@click.option("--roles", required=True)
@click.option("--folder", type=click.Path(path_type=Path), required=True)
@click.option("--tls", type=click.Path(path_type=Path), required=True)
def worker(scheduler_address: str, name: str, address: str, roles: str, folder: Path, tls: Path) -> None:
    async def serve() -> None:
        one = await quiet_worker(scheduler_address, name, address, tls, roles, folder)
        print(SAYS_IT_IS_THERE, flush=True)
        try:
            await _until_ended(one)
        finally:
            for key in list(_agents):
                await _end_agent(key)

    folder = folder.expanduser()
    with dask.config.set(QUIET):
        asyncio.run(serve())


async def quiet_worker(
    scheduler_address: str, name: str, address: str, tls: Path, roles: str = "", folder: Path | None = None
) -> Worker:
    with dask.config.set(QUIET):
        return await Worker(
            scheduler_address,
            name=name,
            host=address,
            nthreads=1,
            memory_limit=0,
            resources=dict.fromkeys(filter(None, roles.split(",")), 1),
            security=security(tls),
            dashboard=False,
            local_directory=str(folder / "dask") if folder else None,
            death_timeout=30,
        )


async def _until_ended(server) -> None:
    """By a signal, or by itself: a worker ends with its scheduler."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    waiting = [asyncio.ensure_future(ended.wait()), asyncio.ensure_future(server.finished())]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    with suppress(Exception):
        await asyncio.wait_for(server.close(), 5)


if __name__ == "__main__":
    # Pickled functions name this module, not __main__: there must be one copy of it, with one set of agents.
    from kvstudy.hosts import dask_host

    dask_host.commands()
