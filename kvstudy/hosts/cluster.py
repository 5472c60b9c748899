"""A cluster by SSH: a scheduler here, a worker on each host, certificates of their own; put up, found again,
and taken down.

    <work>/cluster/cluster.json    its hosts, scheduler's address and pid, each worker's pid: as soon as it
                                   runs
    <work>/cluster/*.pem           certificates, for this user's eyes alone
    <folder>/cluster/NAME-HOST/    the same on each host, with worker.log: a folder for each cluster, since
                                   somebody else's may be there, under the same user

``kvstudy hosts up`` leaves it running for many measurements. A measurement that finds none puts up one of its
own and takes it down at its end; its scheduler ends with it in any case, and workers end with their
scheduler.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from getpass import getuser
from pathlib import Path
from uuid import uuid4

import psutil

from kvstudy.errors import KvstudyError, ToolMissing
from kvstudy.hosts import folder as host_folder
from kvstudy.hosts.hosts_file import HostsFile
from kvstudy.hosts.interrupt import interruptible, shielded
from kvstudy.hosts.process import OwnedProcess, wait_until
from kvstudy.hosts.remote import RemoteHost
from kvstudy.hosts.ssh import Remote, remotes

MODULE = "kvstudy.hosts.dask_host"
START_TIMEOUT_S = 30.0
STANDS_STILL = "it stands still"
SAYS_IT_IS_THERE = "kvstudy worker is there"
NOTED = "cluster.json"
PEM = ("ca.pem", "cert.pem", "key.pem")
SCHEDULER_HINT = "does it stand still? kvstudy hosts down ends one that kvstudy hosts up has put up"
INSTALL = "make setup installs it: in the checkout here, and in one on each host"


def up(file: HostsFile, work: Path, registered: Callable[[int, bool], None] | None = None) -> dict:
    """What cluster.json says. With ``registered`` the scheduler is a process of this one and ends with it;
    else it stays. KvstudyError, and nothing left running, when a worker does not come up; what is left of one
    that was killed meanwhile ``down`` finds."""
    folder = work / "cluster"
    if (found := _noted(work)) and _lives(found):
        where = found["scheduler"] or f"not whole yet: pid={found['pid']}"
        raise KvstudyError(f"cluster is up already: {where}", "kvstudy hosts down takes it down")
    if found:  # who had put it up was killed
        _take_down(file, found)
    shutil.rmtree(folder, ignore_errors=True)
    _dask().write_certificates(folder)
    facts = {
        "name": uuid4().hex[:12],
        "hosts": {name: entry.address for name, entry in file.hosts.items()},
        "scheduler": None,
        "pid": None,
        "started": None,
        "workers": {},
    }

    def begin(remote: Remote) -> None:
        facts["workers"][remote.name] = _worker(remote, folder, facts)

    with interruptible():
        try:
            _start_scheduler(file, folder, registered, facts)
            with ThreadPoolExecutor(16) as threads:
                list(threads.map(begin, remotes(file)))
                _note(facts, folder)
                list(threads.map(lambda one: _wait_for_worker(one, facts), remotes(file)))
        except BaseException:
            _take_down(file, facts)
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return facts


def running(work: Path) -> dict | None:
    """cluster.json of one whose scheduler lives and can be reached."""
    facts = _noted(work)
    return facts if facts and facts["scheduler"] and _lives(facts) else None


def down(file: HostsFile, work: Path) -> list[str]:
    """Ends it; names of hosts that could not be reached, whose workers end by themselves with their
    scheduler."""
    facts = _noted(work)
    if facts is None:
        return []
    left = _take_down(file, facts)
    shutil.rmtree(work / "cluster", ignore_errors=True)
    return left


class Hosts:
    """``with Hosts(file, work, registered) as hosts``: the cluster that the file names, the one that is up,
    or one for this block. ``hosts.hosts``: by name; none has an agent before its ``renew``, which also starts
    its worker again, or the whole cluster, when that has ended."""

    def __init__(self, file: HostsFile, work: Path, registered: Callable[[int, bool], None]):
        self._file, self._work, self._registered = file, work, registered
        self._who, self._token = f"{getuser()}@{socket.gethostname()}", uuid4().hex
        self._lock = threading.Lock()
        self._is_over = False
        self._cluster = None
        self._own: dict | None = None
        self.hosts = {
            name: RemoteHost(name, entry.address, file.folder, partial(self._link, name))
            for name, entry in file.hosts.items()
        }

    def __enter__(self) -> "Hosts":
        self._connect()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over = True
        try:
            with ThreadPoolExecutor(16) as threads:
                list(threads.map(RemoteHost.end, self.hosts.values()))
        finally:  # also for who is interrupted once more
            self._disconnect()

    def _connect(self) -> None:
        if self._file.scheduler:
            self._cluster = _dask().Cluster(self._file.scheduler)
            return
        facts = running(self._work)
        if facts is None:
            facts = self._own = up(self._file, self._work, self._registered)
        _check_is_of(self._file, facts)
        try:
            self._cluster = _dask().Cluster(facts["scheduler"], self._work / "cluster")
        except BaseException:
            self._disconnect()  # nobody else takes down what was put up here
            raise

    def _disconnect(self) -> None:
        if self._cluster:
            self._cluster.close()
        if self._own:
            _take_down(self._file, self._own)
            shutil.rmtree(self._work / "cluster", ignore_errors=True)
            self._own = None

    def _link(self, name: str):
        entry = self._file.hosts[name]
        asked = {
            "folder": self._file.folder,
            "name": name,
            "address": entry.address,
            "cores": entry.core_numbers,
            "who": self._who,
            "token": self._token,
        }
        with self._lock:
            self._check_scheduler()
            if not self._workers_of(name):
                self._start_worker(name)
            if not (found := self._workers_of(name)):
                raise KvstudyError(
                    f"cluster has no worker for host {name}: address={entry.address}",
                    "start one there, or take the host out of the file",
                )
            cluster = self._cluster
        return cluster.link(found[0], asked)

    def _check_scheduler(self) -> None:
        """One of ours that has ended, or stands still, is replaced."""
        if self._cluster.is_alive and self._cluster.answers():
            return
        if self._cluster.is_alive and not self._own:
            raise KvstudyError("the cluster's scheduler does not answer", SCHEDULER_HINT)
        if self._own:
            _end_scheduler(self._own)  # first: a connection to one that stands still is not closed in time
        self._disconnect()
        if self._is_over:  # who asked has given up meanwhile
            raise KvstudyError("the measurement is over")
        self._connect()
        if self._is_over:
            self._disconnect()

    def _workers_of(self, name: str) -> list[str]:
        addresses = _numbers_of(self._file.hosts[name].address)
        known = self._cluster.workers().items()
        return [at for at, (called, host) in known if called == name or host in addresses]

    def _start_worker(self, name: str) -> None:
        """Again, after its end; of a cluster of somebody else's, its owner does."""
        facts = self._own or running(self._work)
        if not self._file.ssh or not facts:
            return
        remote = next(one for one in remotes(self._file) if one.name == name)
        facts["workers"][name] = _worker(remote, self._work / "cluster", facts)
        _wait_for_worker(remote, facts)
        _note(facts, self._work / "cluster")
        wait_until(lambda: self._workers_of(name), 5.0)


def _check_is_of(file: HostsFile, facts: dict) -> None:
    """A worker is known by its host's name: of another file's cluster it may be on another machine."""
    known = facts.get("hosts", {})
    others = {name: known.get(name) for name, entry in file.hosts.items() if known.get(name) != entry.address}
    if others:
        where = ", ".join(f"{name} {f'is at {at}' if at else 'is not in it'}" for name, at in others.items())
        raise KvstudyError(
            f"the cluster that is up is of another file of hosts: {where}",
            "kvstudy hosts down takes it down; then each measurement puts up its own",
        )


def _dask():
    try:
        from kvstudy.hosts import dask_host
    except ImportError as error:
        raise ToolMissing(f"measuring on several hosts needs Dask: {error}", INSTALL) from error
    return dask_host


def _start_scheduler(
    file: HostsFile, folder: Path, registered: Callable[[int, bool], None] | None, facts: dict
) -> None:
    """Noted, and known in ``facts``, as soon as it runs. Returns when it can be reached."""
    reached, log = folder / "scheduler.json", folder / "scheduler.log"
    address = own_address(next(iter(file.hosts.values())).address)
    argv = [
        sys.executable, "-P", "-m", MODULE, "scheduler",
        "--address", address, "--file", str(reached), "--tls", str(folder),
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    with shielded():  # who is interrupted has to know whom to end
        if registered:
            process = OwnedProcess(argv, stderr_path=log, registered=registered, environment=environment)
        else:
            with log.open("wb") as out:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                    env=environment,
                )
        one = psutil.Process(process.pid)
        facts.update(pid=one.pid, started=one.create_time())
        _note(facts, folder)
    wait_until(lambda: reached.is_file() or not _is_running(one), START_TIMEOUT_S)
    if not reached.is_file():
        if _stands_still(one):
            raise KvstudyError(f"scheduler did not start: {STANDS_STILL}: pid={one.pid}")
        lines = log.read_text(errors="replace").strip().splitlines()
        raise KvstudyError(f"scheduler did not start: {lines[-1][:200] if lines else 'it says nothing'}")
    facts["scheduler"] = json.loads(reached.read_text())["address"]
    _note(facts, folder)


def _worker(remote: Remote, folder: Path, facts: dict) -> int:
    """Its pid there. First the folder is claimed. The certificates go through ssh's own pipe, never on a
    command line; where there is no room for them nothing of them stays."""
    entry, there = remote.file.hosts[remote.name], _folder_of(remote, facts)
    pems = "".join(f"==== {name}\n{(folder / name).read_text()}" for name in PEM)
    words = (
        f"{remote.python} -m {host_folder.__name__} claim {remote.folder} || exit $?; "
        # A program that is no Python may end with 0.
        f"test -e {remote.folder}/{host_folder.MARKER} || "
        f"{{ echo no python: {remote.python} >&2; exit 1; }}; "
        f'umask 077; mkdir -p {there} && cd {there} && awk \'/^==== /{{file=$2; printf "" > file; '
        f"next}} {{print > file}}' || {{ {_removal(remote, there)}; exit 1; }}; "
        f"{{ nohup setsid {remote.python} -m {MODULE} worker {facts['scheduler']} --name {remote.name} "
        f"--address {entry.address} "
        f"--roles {','.join(entry.roles)} --folder {remote.folder} --tls {there} </dev/null "
        ">worker.log 2>&1 & echo $!; }"
    )
    done = remote.asked(words, pems)
    pid = (done.stdout.strip().splitlines() or [""])[-1]  # a shell there may greet everybody
    if done.returncode != 0 or not pid.isdigit():
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        if done.returncode == host_folder.REFUSED and said:
            raise KvstudyError(f"host {remote.name}: {said[-1]}", host_folder.HINT)
        raise KvstudyError(
            f"worker cannot be started: host {remote.name}: {said[-1][:200] if said else done.returncode}",
            "kvstudy hosts check says what is missing",
        )
    return int(pid)


def _removal(remote: Remote, there: str) -> str:
    """Words; the last cluster takes the folder of all with it."""
    return f"rm -rf {there}; rmdir {remote.folder}/cluster 2>/dev/null"


def _folder_of(remote: Remote, facts: dict) -> str:
    """Its own also where two hosts have one home, as the agent then says. Of one that an older kvstudy has
    put up, ``cluster`` itself."""
    name = f"{facts['name']}-{remote.name}" if "name" in facts else ""
    return f"{remote.folder}/cluster/{name}"


def _wait_for_worker(remote: Remote, facts: dict) -> None:
    """Until it has said that it is there. KvstudyError with the reason of one that ended."""
    pid = facts["workers"][remote.name]
    done = remote.asked(
        f"cd {_folder_of(remote, facts)}; for i in $(seq {int(START_TIMEOUT_S * 10)}); do "
        f"grep -qs {SAYS_IT_IS_THERE!r} worker.log && exit 0; kill -0 {pid} 2>/dev/null || break; "
        f"grep -qs '^State:.T' /proc/{pid}/status && echo {STANDS_STILL} && exit 1; "
        "sleep 0.1; done; "
        "tail -n 1 worker.log; exit 1",
        timeout_s=START_TIMEOUT_S + 10,
    )
    if done.returncode != 0:
        raise KvstudyError(
            f"worker did not start: host {remote.name}: {done.stdout.strip()[:300] or 'it says nothing'}",
            "kvstudy hosts check says what is missing",
        )


def _note(facts: dict, folder: Path) -> None:
    new = folder / "cluster.new"
    new.write_text(json.dumps(facts, indent=1))
    new.rename(folder / NOTED)


def _noted(work: Path) -> dict | None:
    with suppress(OSError, ValueError):
        return json.loads((work / "cluster" / NOTED).read_text())
    return None


def _take_down(file: HostsFile, facts: dict) -> list[str]:
    """The scheduler, then each worker, by its pid and only if it is one. Who stands still has to go on to end
    in order."""
    _end_scheduler(facts)
    if not file.ssh:
        return []

    def ended(remote: Remote) -> str | None:
        pid = facts["workers"].get(remote.name)
        if pid is None:
            return None
        is_ours = f"grep -qs {MODULE} /proc/{pid}/cmdline"
        with suppress(KvstudyError):
            remote.asked(
                f"{is_ours} && kill {pid} && kill -CONT {pid}; "
                f"for i in $(seq 100); do {is_ours} || break; sleep 0.1; done; "
                f"{is_ours} && kill -9 {pid}; "
                f"test -e {remote.folder}/{host_folder.MARKER} && "
                f"{{ {_removal(remote, _folder_of(remote, facts))}; }}; true"
            )
            return None
        return remote.name

    # Where its workers are; the file may say something else by now.
    known = facts.get("hosts", {})  # an older kvstudy noted none
    of_it = [Remote(name, address, file) for name, address in known.items()] or remotes(file)
    with ThreadPoolExecutor(16) as threads:
        return [name for name in threads.map(ended, of_it) if name]


def _end_scheduler(facts: dict) -> None:
    if facts["pid"] and _lives(facts):
        with suppress(psutil.Error):
            process = psutil.Process(facts["pid"])
            process.terminate()
            process.resume()
            with suppress(psutil.TimeoutExpired):
                process.wait(5)
            process.kill()


def own_address(other: str) -> str:
    """Under which this machine is reached from there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect((other, 9))
        except OSError as error:
            raise KvstudyError(
                f"no way to the address of a host: {other}: {(error.strerror or str(error)).lower()}"
            ) from error
        return asking.getsockname()[0]


def _numbers_of(address: str) -> set[str]:
    """With those that the name of a host stands for: by them Dask knows its workers."""
    with suppress(OSError):
        return {address, *(to[0] for *_, to in socket.getaddrinfo(address, None, socket.AF_INET))}
    return {address}


def _lives(facts: dict) -> bool:
    with suppress(psutil.Error):
        return abs(psutil.Process(facts["pid"]).create_time() - facts["started"]) < 1.0
    return False


def _is_running(process: psutil.Process) -> bool:
    return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED)


def _stands_still(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() == psutil.STATUS_STOPPED
    return False
