"""``kvstudy hosts check``: one line a host, and below it what has to be done there."""

import json
import platform
import select
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kvstudy.errors import KvstudyError, ToolMissing
from kvstudy.hosts import folder as host_folder
from kvstudy.hosts.clock import Clock, Offset, bandwidth_bytes_per_s, offset_to
from kvstudy.hosts.cluster import INSTALL, Hosts
from kvstudy.hosts.host import Here
from kvstudy.hosts.hosts_file import HostEntry, HostsFile
from kvstudy.hosts.ssh import Remote, Unreachable, remotes
from kvstudy.hosts.version import REMEDY, code_digest
from kvstudy.measure.host_facts import host_facts
from kvstudy.units import format_bytes

DISK_NEEDED_BYTES = 1 << 30
LOAD_PER_CORE_MAX = 0.2
CLOCK_TIMEOUT_S = 15.0  # to begin
CLOCK_END_TIMEOUT_S = 3.0


@dataclass
class Checked:
    """``wrong``: what has to be done before a run."""

    name: str
    words: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        return "  ".join([f"{'not ready' if self.wrong else 'ok':9} {self.name}", *self.words])


def examine(file: HostsFile) -> list[Checked]:
    """All hosts at once, in the order of the file. ToolMissing where there is no Dask here."""
    dask = _dask_here()
    with ThreadPoolExecutor(16) as threads, ExitStack() as until_end:
        if file.ssh:
            asked = {one.name: partial(_over_ssh, one) for one in remotes(file)}
        else:
            hosts = until_end.enter_context(Hosts(file, Path(), lambda *_: None))
            asked = {name: partial(_over_dask, host) for name, host in hosts.hosts.items()}
        return list(threads.map(lambda name: _checked(name, file.hosts[name], asked[name], dask), file.hosts))


def _dask_here() -> str:
    """Its version."""
    try:
        return version("distributed")
    except PackageNotFoundError:
        raise ToolMissing("measuring on several hosts needs Dask, and there is none here", INSTALL) from None


def _checked(name: str, entry: HostEntry, asked, dask: str) -> Checked:
    found = Checked(name, [entry.address, "+".join(entry.roles)])
    try:
        with asked() as (facts, port):
            _judge(found, entry, facts, dask)
            _look_at_network(found, entry.address, port)
    except KvstudyError as error:
        found.wrong.append(f"{error.message}" + (f"; {error.hint}" if error.hint else ""))
    return found


def _judge(found: Checked, entry: HostEntry, facts: dict, dask: str) -> None:
    found.words += [
        f"kvstudy {facts.get('kvstudy') or 'older'}",
        f"python {facts['python']}",
        f"Dask {facts['dask'] or 'none'}",
        f"JDK {facts['jdk'] or 'none'}",
        f"{facts['cores']} cores",
        f"disk {format_bytes(facts['disk_free_bytes'])}",
    ]
    minor = platform.python_version_tuple()[:2]
    if tuple(facts["python"].split(".")[:2]) != minor:
        found.wrong.append(f"python must be {'.'.join(minor)}, as here: name another one under ssh: python")
    if facts.get("kvstudy") != code_digest():
        found.wrong.append(
            f"kvstudy must be {code_digest()}, as here, and is {facts.get('kvstudy') or 'older'}: {REMEDY}"
        )
    if facts["dask"] != dask:
        found.wrong.append(f"Dask must be {dask}, as here: pip install distributed=={dask}")
    if "service" in entry.roles and not facts["jdk"]:
        found.wrong.append(f"{facts['no_jdk']}: a service's host needs a JDK 25")
    if missing := [core for core in entry.core_numbers or () if core >= facts["cores"]]:
        found.wrong.append(f"no such cores: {', '.join(map(str, missing))}: it has {facts['cores']}")
    if not facts["is_writable"]:
        found.wrong.append("its folder cannot be written: name another one under folder")
    if facts["disk_free_bytes"] < DISK_NEEDED_BYTES:
        found.wrong.append(f"disk is nearly full: {format_bytes(DISK_NEEDED_BYTES)} are needed")
    if facts["holder"]:
        found.wrong.append(f"in use by {facts['holder']}: wait until that measurement ends")
    elif facts["load_average"] > LOAD_PER_CORE_MAX * facts["cores"]:
        found.words.append(f"used by others: load average {facts['load_average']:g}")
    else:
        found.words.append("free")


def _look_at_network(found: Checked, address: str, port: int) -> None:
    try:
        offset, bandwidth = offset_to(address, port), bandwidth_bytes_per_s(address, port)
    except OSError as error:
        found.wrong.append(
            f"{address}:{port} cannot be reached: {(error.strerror or str(error)).lower()}: "
            "hosts must reach each other on all ports"
        )
        return
    found.words.append(_in_words(offset) + f"  {bandwidth / 1e6:.0f} MB/s")


def _in_words(offset: Offset) -> str:
    return (
        f"clock {offset.offset_ns / 1e6:+.3f} ms ± {offset.bound_ns / 1e6:.3f} ms  "
        f"round trip {offset.round_trip_ns / 1e3:.0f} us"
    )


@contextmanager
def _over_ssh(remote: Remote) -> Iterator[tuple[dict, int]]:
    done = remote.asked(
        f"{remote.python} -m {host_folder.__name__} check {remote.folder} && "
        f"{remote.python} -m kvstudy.measure.host_facts {remote.folder}"
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        if done.returncode == host_folder.REFUSED and said:
            raise KvstudyError(said[-1], host_folder.HINT)
        raise Unreachable(
            f"its python cannot be used: {remote.file.ssh.python}: {said[-1] if said else done.returncode}",
            "ssh: python names one of an environment there that has this kvstudy: .venv/bin/python of a "
            "checkout, after make setup",
        )
    # The clock there ends with this connection's standard input.
    words = f"{remote.python} -m kvstudy.hosts.clock {shlex.quote(remote.address)}"
    clock = subprocess.Popen(
        remote.command(words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        port = _first_line(clock)
        if not port.isdigit():
            raise Unreachable(f"it cannot serve on its own address: {remote.address}", "mend its address")
        yield json.loads(_last_line(done.stdout)), int(port)
    finally:
        clock.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            clock.wait(CLOCK_END_TIMEOUT_S)
        clock.kill()
        clock.wait()
        clock.stdout.close()


def _last_line(said: str) -> str:
    """What stands before it a shell there says to everybody who comes in."""
    return (said.strip().splitlines() or [""])[-1]


def _first_line(process: subprocess.Popen) -> bytes:
    """Nothing where it says none in time."""
    said, _, _ = select.select([process.stdout], [], [], CLOCK_TIMEOUT_S)
    return process.stdout.readline().strip() if said else b""


@contextmanager
def _over_dask(host) -> Iterator[tuple[dict, int]]:
    host.renew()
    there = host.stationed(_There)
    yield there.facts(host.folder), there.clock()


class _There:
    def __init__(self, here: Here):
        self._here = here

    def facts(self, folder: str) -> dict:
        """The lease is ours."""
        return host_facts(folder) | {"holder": None}

    def clock(self) -> int:
        self._clock = Clock(self._here.address)
        return self._clock.port
