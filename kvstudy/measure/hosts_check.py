"""``kvstudy hosts check``: one line a host, and below it what has to be done there."""

import json
import platform
import select
import shlex
import subprocess
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kvstudy.errors import KvstudyError, ToolMissing
from kvstudy.hosts import folder as host_folder
from kvstudy.hosts.clock import Clock, Offset, bandwidth_bytes_per_s, offset_to
from kvstudy.hosts.cluster import INSTALL, Hosts, own_address
from kvstudy.hosts.host import WHERE_YOU_TYPE, Here
from kvstudy.hosts.hosts_file import HostEntry, HostsFile
from kvstudy.hosts.reach import unreached
from kvstudy.hosts.ssh import Remote, Unreachable, remotes
from kvstudy.hosts.version import REMEDY, code_digest
from kvstudy.measure.host_facts import host_facts, platform_here
from kvstudy.units import format_bytes

DISK_NEEDED_BYTES = 1 << 30
LOAD_PER_CORE_MAX = 0.2
CLOCK_TIMEOUT_S = 15.0  # to begin
CLOCK_END_TIMEOUT_S = 3.0
ALL_PORTS = "hosts must reach each other, and the machine where you type, on all ports"
Unreached = Callable[[Collection[str]], dict[str, str]]


@dataclass
class Checked:
    """``wrong``: what has to be done before a run."""

    name: str
    words: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        return "  ".join([f"{'not ready' if self.wrong else 'ok':9} {self.name}", *self.words])


@dataclass(frozen=True)
class There:
    """A host that answers. ``port``: of a clock that is open there; ``unreached``: of places, why they cannot
    be reached from there."""

    facts: dict
    port: int
    unreached: Unreached


def examine(file: HostsFile) -> list[Checked]:
    """All hosts at once, in the order of the file. ToolMissing where there is no Dask here."""
    dask = _dask_here()
    with ThreadPoolExecutor(16) as threads, ExitStack() as until_end:
        if file.ssh:
            asked = {one.name: partial(_over_ssh, one) for one in remotes(file)}
        else:
            hosts = until_end.enter_context(Hosts(file, Path(), lambda *_: None))
            asked = {name: partial(_over_dask, host) for name, host in hosts.hosts.items()}

        def looked_at(name: str) -> tuple[Checked, There | None]:
            return _checked(name, file.hosts[name], lambda: until_end.enter_context(asked[name]()), dask)

        found = list(threads.map(looked_at, file.hosts))
        there = {one.name: host for one, host in found if host}
        places = {f"{file.hosts[name].address}:{host.port}": f"host {name}" for name, host in there.items()}
        if file.ssh:  # else its scheduler has them all already
            with suppress(KvstudyError):  # no way to the first host, as its line says
                address = own_address(next(iter(file.hosts.values())).address)
                here = Clock(address)
                until_end.callback(here.close)
                places[f"{address}:{here.port}"] = WHERE_YOU_TYPE
        list(threads.map(lambda one: _look_around(*one, places), [one for one in found if one[1]]))
        return [one for one, _ in found]


def _dask_here() -> str:
    """Its version."""
    try:
        return version("distributed")
    except PackageNotFoundError:
        raise ToolMissing("measuring on several hosts needs Dask, and there is none here", INSTALL) from None


def _checked(
    name: str, entry: HostEntry, asked: Callable[[], There], dask: str
) -> tuple[Checked, There | None]:
    """None where the host does not answer, or cannot be reached by others."""
    found = Checked(name, [entry.address, "+".join(entry.roles)])
    try:
        there = asked()
        _judge(found, entry, there.facts, dask)
        return found, there if _look_at_network(found, entry.address, there.port) else None
    except KvstudyError as error:
        found.wrong.append(f"{error.message}" + (f"; {error.hint}" if error.hint else ""))
    return found, None


def _judge(found: Checked, entry: HostEntry, facts: dict, dask: str) -> None:
    found.words += [
        f"kvstudy {facts.get('kvstudy') or 'older'}",
        f"python {facts['python']}",
        f"Dask {facts['dask'] or 'none'}",
        f"JDK {facts['jdk'] or 'none'}",
        f"{facts['cores']} cores",
        f"disk {format_bytes(facts['disk_free_bytes'])}",
    ]
    kind, ours = facts.get("platform", platform_here()), platform_here()
    if kind != ours:
        found.wrong.append(f"it is {kind}, and the load generator is built here, for {ours}")
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
    elif facts["disk_free_bytes"] < DISK_NEEDED_BYTES:
        found.wrong.append(f"disk is nearly full: {format_bytes(DISK_NEEDED_BYTES)} are needed")
    if facts["holder"]:
        found.wrong.append(f"in use by {facts['holder']}: wait until that measurement ends")
    elif facts["load_average"] > LOAD_PER_CORE_MAX * facts["cores"]:
        found.words.append(f"used by others: load average {facts['load_average']:g}")
    else:
        found.words.append("free")


def _look_at_network(found: Checked, address: str, port: int) -> bool:
    """Whether it can be reached."""
    try:
        offset, bandwidth = offset_to(address, port), bandwidth_bytes_per_s(address, port)
    except OSError as error:
        found.wrong.append(
            f"{address}:{port} cannot be reached: {(error.strerror or str(error)).lower()}: {ALL_PORTS}"
        )
        return False
    found.words.append(_in_words(offset) + f"  {bandwidth / 1e6:.0f} MB/s")
    return True


def _look_around(found: Checked, there: There, places: dict[str, str]) -> None:
    """From a host to the others: a service to its generators' clock, a generator to the service, both to the
    scheduler. ``places``: whose they are."""
    try:
        why = there.unreached([place for place, whose in places.items() if whose != f"host {found.name}"])
    except KvstudyError as error:
        found.wrong.append(error.message)
        return
    found.wrong += [
        f"{places[place]} cannot be reached from it: {place}: {said}: {ALL_PORTS}"
        for place, said in why.items()
    ]


def _in_words(offset: Offset) -> str:
    return (
        f"clock {offset.offset_ns / 1e6:+.3f} ms ± {offset.bound_ns / 1e6:.3f} ms  "
        f"round trip {offset.round_trip_ns / 1e3:.0f} us"
    )


@contextmanager
def _over_ssh(remote: Remote) -> Iterator[There]:
    done = remote.asked(
        f"{remote.python} -m {host_folder.__name__} check {remote.folder} && "
        f"{remote.python} -m kvstudy.measure.host_facts {remote.folder}"
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        if done.returncode == host_folder.REFUSED and said:
            raise KvstudyError(said[-1], host_folder.HINT)
        raise _no_python(remote, said[-1] if said else done.returncode)
    try:
        facts = json.loads(_last_line(done.stdout))
    except ValueError:
        raise _no_python(remote, _last_line(done.stdout) or "it says nothing") from None
    # The clock there ends with this connection's standard input.
    words = f"{remote.python} -m kvstudy.hosts.clock {shlex.quote(remote.address)}"
    clock = subprocess.Popen(
        remote.command(words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        port = _first_line(clock)
        if not port.isdigit():
            raise Unreachable(f"it cannot serve on its own address: {remote.address}", "mend its address")
        yield There(facts, int(port), partial(_unreached_over_ssh, remote))
    finally:
        clock.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            clock.wait(CLOCK_END_TIMEOUT_S)
        clock.kill()
        clock.wait()
        clock.stdout.close()


def _no_python(remote: Remote, why: object) -> Unreachable:
    return Unreachable(
        f"its python cannot be used: {remote.file.ssh.python}: {why}",
        "ssh: python names one of an environment there that has this kvstudy: .venv/bin/python of a "
        "checkout, after make setup",
    )


def _unreached_over_ssh(remote: Remote, places: Collection[str]) -> dict[str, str]:
    done = remote.asked(f"{remote.python} -m kvstudy.hosts.reach {shlex.join(places)}")
    if done.returncode != 0:
        said = _last_line(done.stderr) or done.returncode
        raise KvstudyError(f"it cannot be asked whom it reaches: {said}")
    return json.loads(_last_line(done.stdout))


def _last_line(said: str) -> str:
    """What stands before it a shell there says to everybody who comes in."""
    return (said.strip().splitlines() or [""])[-1]


def _first_line(process: subprocess.Popen) -> bytes:
    """Nothing where it says none in time."""
    said, _, _ = select.select([process.stdout], [], [], CLOCK_TIMEOUT_S)
    return process.stdout.readline().strip() if said else b""


@contextmanager
def _over_dask(host) -> Iterator[There]:
    host.renew()
    there = host.stationed(_There)
    yield There(there.facts(host.folder), there.clock(), there.unreached)


class _There:
    def __init__(self, here: Here):
        self._here = here

    def facts(self, folder: str) -> dict:
        """The lease is ours."""
        return host_facts(folder) | {"holder": None}

    def clock(self) -> int:
        self._clock = Clock(self._here.address)
        return self._clock.port

    def unreached(self, places: list[str]) -> dict[str, str]:
        return unreached(places)
