"""Hosts for tests: network namespaces of this machine on a bridge, an sshd in each, every process below one
that can be ended at once. Nothing leaves the machine.

    with Namespaces(folder, ["a", "b"]) as hosts:
        hosts.yaml(a=["service"], b=["generator"])    a hosts.yaml for them
        hosts.pids("b")                               who runs there, sshd apart
        hosts.cut("b"); hosts.heal("b")               its link
        hosts.fill("b")                               its disk
        hosts.begin("b", clock=WrongClock(…))         after end: with a wall clock of its own (wrong_clock.c)
"""

import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from kvstudy.hosts.process import wait_until

PROJECT = Path(__file__).parents[2]  # hosts run the kvstudy that is tested
LOCAL = "127.0.0.1"
SPACES, PREFIX = Path("/run/netns"), "kvstudy-test-"
NEEDED = {
    "ip": "iproute2",
    "/usr/sbin/sshd": "openssh-server",
    "ssh": "openssh-client",
    "unshare": "util-linux",
    "cc": "gcc",
}
SSH_PORT = 22
BRIDGE_ADDRESS = "02:00:00:00:00:01"
SSHD = """
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
UseDNS no
MaxStartups 100
SetEnv "PYTHONPATH={project}" "JDK_JAVA_OPTIONS={java_options}" {environment}
"""
# Its own mounts, processes and name, as a machine too; what is called folder/there is the host's own disk.
# Its process ids begin somewhere, as on a machine that has run for a while: hosts here share /tmp, where two
# JVMs with one pid, started within one second, record into one folder, and the first to end deletes it. Where
# the kernel cannot set it, they begin with 1.
BEGIN = """
mount --make-rprivate / && mount -t tmpfs -o size={disk} none {folder}/there && hostname {name} &&
{{ echo {last_pid} >/proc/sys/kernel/ns_last_pid || true; }} 2>/dev/null &&
echo {name}0000 >{folder}/{name}.id &&
if [ -e /etc/machine-id ]; then mount --bind {folder}/{name}.id /etc/machine-id; fi &&
mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -f {folder}/{name}.conf
"""


@dataclass(frozen=True)
class WrongClock:
    """The wall clock of a host: so far ahead of the others' and faster by so much. ``jump``: a file, by which
    it is set while it goes."""

    ahead_ns: int
    gained_ppm: int
    jump: Path | None = None
    since_ns: int = field(default_factory=time.time_ns)

    def ahead_at(self, right_ns: int) -> float:
        """In ns, by when it is."""
        return self.ahead_ns + (right_ns - self.since_ns) * self.gained_ppm / 1e6

    def jumps(self, by_ns: int) -> None:
        """From now on."""
        with self.jump.open("r+b") as file:
            file.write(by_ns.to_bytes(8, sys.byteorder, signed=True))

    def environment(self, library: Path) -> str:
        wrong = f"{self.ahead_ns},{1000 * self.gained_ppm},{self.since_ns}"
        if not self.jump:
            return f"LD_PRELOAD={library} WRONG_CLOCK={wrong}"
        self.jump.write_bytes(bytes(8))
        return f'LD_PRELOAD={library} WRONG_CLOCK={wrong} "WRONG_CLOCK_JUMP={self.jump}"'


def _sshd_config(folder: Path, address: str, port: int, environment: str = "") -> str:
    """``environment``: that of what is started there, beside what `make test` gives to JVMs."""
    return SSHD.format(
        address=address,
        port=port,
        folder=folder,
        environment=environment,
        project=PROJECT,
        java_options=os.environ.get("JDK_JAVA_OPTIONS", ""),
    )


def missing() -> list[str]:
    """What this machine lacks for namespaces; empty where they can be made."""
    found = [
        f"{name} (apt-get install {package})" for name, package in NEEDED.items() if not shutil.which(name)
    ]
    if os.getuid() != 0:
        return ["the rights of root", *found]
    if not found:
        space = f"kvstudy-try-{os.getpid()}"
        tried = subprocess.run(["ip", "netns", "add", space], capture_output=True, text=True)
        subprocess.run(["ip", "netns", "delete", space], capture_output=True)
        if tried.returncode:
            found.append(f"network namespaces: {tried.stderr.strip()}")
    return found


class Namespaces:
    def __init__(self, folder: Path, names: list[str], disk: str = "2g"):
        self.folder, self.names, self._disk = folder, names, disk
        self.begun: dict[str, subprocess.Popen] = {}
        # Several test sessions may go on at once, each with namespaces and a network of its own.
        self._owner = os.getpid()
        self._network = f"10.77.{self._owner % 250 + 1}"
        self.address = {name: f"{self._network}.{11 + place}" for place, name in enumerate(names)}

    def __enter__(self) -> "Namespaces":
        _remove_abandoned()
        (self.folder / "there").mkdir(parents=True)
        for name in ("host_key", "key"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name))
        bridge = _bridge(self._owner)
        # An address of its own: by itself it takes that of a link, which then still brings what it is sent
        # when it was taken from the bridge.
        _run("ip", "link", "add", bridge, "address", BRIDGE_ADDRESS, "type", "bridge")
        _run("ip", "address", "add", f"{self._network}.1/24", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        for name in self.names:
            self._add(name)
        return self

    def __exit__(self, *_error: object) -> None:
        for name in self.names:
            self.end(name)
        _remove(self._owner)

    def _add(self, name: str) -> None:
        space, outer, inner = self._space(name), self._veth(name), f"kvi-{name}"
        _run("ip", "netns", "add", space)
        _run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
        _run("ip", "link", "set", outer, "master", _bridge(self._owner), "up")
        _run("ip", "-n", space, "address", "add", f"{self.address[name]}/24", "dev", inner)
        for link in (inner, "lo"):
            _run("ip", "-n", space, "link", "set", link, "up")
        self.begin(name)

    def begin(self, name: str, disk: str | None = None, clock: WrongClock | None = None) -> None:
        """A host that was ended comes back, with an empty disk."""
        environment = clock.environment(self._wrong_clock()) if clock else ""
        (self.folder / f"{name}.conf").write_text(
            _sshd_config(self.folder, self.address[name], SSH_PORT, environment)
        )
        script = BEGIN.format(
            folder=self.folder,
            name=name,
            disk=disk or self._disk,
            last_pid=random.SystemRandom().randrange(1000, 30000),
        )
        log = self.folder / f"{name}.log"

        def answers() -> bool:
            """Starts it again where the port is still somebody's: a process that was killed leaves the
            namespace a moment before its sockets are closed."""
            if name not in self.begun or self.begun[name].poll() is not None:
                self.begun[name] = self._started(name, script, log)
            return self._answers(name)

        assert wait_until(answers, 10), log.read_text()

    def _started(self, name: str, script: str, log: Path) -> subprocess.Popen:
        with log.open("ab") as said:
            return subprocess.Popen(
                ["ip", "netns", "exec", self._space(name), "unshare", "--mount", "--uts", "--pid", "--fork"]
                + ["--kill-child", "--mount-proc", "sh", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                env={key: value for key, value in os.environ.items() if not key.startswith("KVSTUDY")},
            )

    def end(self, name: str) -> None:
        """All of it at once, as by a power cut."""
        process = self.begun.pop(name, None)
        if process:
            process.kill()
            process.wait()
            assert wait_until(lambda: not self._all_pids(name), 10)

    def cut(self, name: str) -> None:
        _run("ip", "link", "set", self._veth(name), "nomaster")

    def heal(self, name: str) -> None:
        _run("ip", "link", "set", self._veth(name), "master", _bridge(self._owner))

    @contextmanager
    def no_way(self, name: str, other: str) -> Iterator[None]:
        """From one host to the other, nor back: what comes is not answered."""
        route = ("-n", self._space(name), "route")
        _run("ip", *route, "add", "unreachable", self.address[other])
        try:
            yield
        finally:
            _run("ip", *route, "delete", "unreachable", self.address[other])

    def fill(self, name: str) -> None:
        """Its disk, to the last byte; returns when nothing can be written there."""
        words = (
            "for attempt in $(seq 100); do "  # what is deleted there meanwhile leaves room again
            f"cat /dev/zero >>{self.folder}/there/filler 2>/dev/null; "
            # more than a page: a few bytes may have room in the page of the attempt before
            f"head -c 8192 /dev/zero >>{self.folder}/there/more || exit 0; done; exit 1"
        )
        subprocess.run([*self._ssh(name), words], check=True, capture_output=True)

    def yaml(self, *, cores: dict[str, str] | None = None, **roles: list[str]) -> Path:
        path = self.folder / "hosts.yaml"
        hosts = {
            name: {"address": self.address[name], "roles": of_host}
            | ({"cores": cores[name]} if cores and name in cores else {})
            for name, of_host in roles.items()
        }
        ssh = _ssh_yaml(self.folder)
        there = self.folder / "there" / "of-kvstudy"
        path.write_text(json.dumps({"ssh": ssh, "folder": str(there), "hosts": hosts}, indent=1))
        return path

    @property
    def own_address(self) -> str:
        """Under which hosts reach this machine."""
        return f"{self._network}.1"

    def start(self, name: str, command: list[str]) -> None:
        """A command on a host, over ssh; it goes on when ssh has ended."""
        words = f"cd {self.folder}/there; nohup setsid {shlex.join(command)} </dev/null >log 2>&1 &"
        subprocess.run([*self._ssh(name), words], check=True, capture_output=True)

    def asked(self, name: str, words: str) -> str:
        """What a host says to a command."""
        done = subprocess.run([*self._ssh(name), words], check=True, capture_output=True, text=True)
        return done.stdout

    def pids(self, name: str) -> dict[int, str]:
        """Whoever runs there, by its command line; sshd and what holds the namespace apart."""
        found = {}
        for pid in self._all_pids(name):
            with suppress(psutil.Error, OSError):
                words = psutil.Process(pid).cmdline()
                if words and not words[0].startswith(("sshd", "/usr/sbin/sshd", "unshare", "ip")):
                    found[pid] = " ".join(words)
        return found

    def pid_of(self, name: str, word: str) -> int:
        """The one there whose command line has this word; of both sides of a duet, the first."""
        return min(pid for pid, words in self.pids(name).items() if word in words)

    def _wrong_clock(self) -> Path:
        library = self.folder / "wrong_clock.so"
        if not library.exists():
            source = Path(__file__).with_name("wrong_clock.c")
            _run("cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source))
        return library

    def _all_pids(self, name: str) -> list[int]:
        return _pids_in(self._space(name))

    def _answers(self, name: str) -> bool:
        return subprocess.run([*self._ssh(name, within_s=1), "true"]).returncode == 0

    def _ssh(self, name: str, within_s: int = 30) -> list[str]:
        return [*_ssh_to(self.folder, within_s), f"root@{self.address[name]}"]

    def _space(self, name: str) -> str:
        return f"{PREFIX}{self._owner}-{name}"

    def _veth(self, name: str) -> str:
        return f"kv{self._owner}-{name}"


@contextmanager
def this_machine(folder: Path) -> Iterator[Path]:
    """A hosts.yaml of this machine alone, with both roles, by an sshd of its own on 127.0.0.1: a network, a
    disk and processes that it shares with who measures without hosts."""
    folder.mkdir()
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host_key", "key"):
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
    port, conf = _free_port(), folder / "sshd.conf"
    conf.write_text(_sshd_config(folder, LOCAL, port))
    ssh = _ssh_yaml(folder) | {"port": port}
    hosts = {"here": {"address": LOCAL, "roles": ["service", "generator"]}}
    file = folder / "hosts.yaml"
    file.write_text(json.dumps({"ssh": ssh, "folder": str(folder / "of-kvstudy"), "hosts": hosts}, indent=1))
    with (folder / "sshd.log").open("wb") as said:
        sshd = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-e", "-f", str(conf)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={key: value for key, value in os.environ.items() if not key.startswith("KVSTUDY")},
        )
    try:
        asked = [*_ssh_to(folder, 1), "-p", str(port), f"root@{LOCAL}", "true"]
        assert wait_until(lambda: subprocess.run(asked).returncode == 0, 10), (
            folder / "sshd.log"
        ).read_text()
        yield file
    finally:
        sshd.terminate()
        sshd.wait()


def _free_port() -> int:
    with socket.create_server((LOCAL, 0)) as server:
        return server.getsockname()[1]


def _ssh_yaml(folder: Path) -> dict:
    return {
        "user": "root",
        "key": str(folder / "key"),
        "python": sys.executable,
        "options": ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-q"],
    }


def _ssh_to(folder: Path, within_s: int) -> list[str]:
    """``within_s``: handshake and keys included."""
    asked = [
        "ssh",
        "-q",
        "-i",
        str(folder / "key"),
        "-o",
        "BatchMode=yes",
        "-o",
        f"ConnectTimeout={within_s}",
    ]
    return [*asked, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]


def _remove_abandoned() -> None:
    """What a session that was killed left behind."""
    for space in SPACES.glob(f"{PREFIX}*-*"):
        owner = int(space.name.removeprefix(PREFIX).partition("-")[0])
        if not psutil.pid_exists(owner):
            _remove(owner)


def _remove(owner: int) -> None:
    for space in SPACES.glob(f"{PREFIX}{owner}-*"):
        for pid in _pids_in(space.name):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        subprocess.run(["ip", "netns", "delete", space.name], capture_output=True)
    subprocess.run(["ip", "link", "delete", _bridge(owner)], capture_output=True)


def _bridge(owner: int) -> str:
    return f"kvb{owner}"


def _pids_in(space: str) -> list[int]:
    number = (SPACES / space).stat().st_ino
    found = []
    for pid in psutil.pids():
        with suppress(OSError):
            if os.stat(f"/proc/{pid}/ns/net").st_ino == number:
                found.append(pid)
    return found


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
