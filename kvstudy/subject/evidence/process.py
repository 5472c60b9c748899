"""What the kernel tells of a subject's processes: which they are, and whether they have anything left to
do."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from socket import AF_INET, AF_INET6

import psutil

REST_STEP_S = 0.1
REST_CPU_MAX_SHARE = 0.2
REST_STEPS = 2
# They hold a port and hand on what arrives there; by the kernel's names, which end after 15 letters. The
# first of all processes does so too, for services that are started by a connection.
FORWARDERS = frozenset(
    {
        "docker-proxy",
        "rootlessport",
        "rootlesskit",
        "slirp4netns",
        "pasta",
        "pasta.avx2",
        "passt",
        "passt.avx2",
        "gvproxy",
        "com.docker.backend",
        "com.docker.back",
        "kubectl",
        "ssh",
        "sshd",
        "sshd-session",
        "socat",
        "systemd",
    }
)


def members(session_pid: int) -> tuple[int, ...]:
    """The process that was started in a session of its own, and all that it started and that stayed in it."""
    found = []
    for pid in psutil.pids():
        with suppress(OSError):
            if pid != session_pid and os.getsid(pid) == session_pid:
                found.append(pid)
    return (session_pid, *sorted(found))


def listeners(port: int, ip: str) -> tuple[int, ...]:
    """The processes that take connections to a local address; none where that cannot be seen. One that takes
    those of this address goes before one that takes those of all."""
    asked = plain_ip(ip)
    found: dict[bool, set[int]] = {
        True: set(),
        False: set(),
    }  # by whether it takes those of this address alone
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections(kind="tcp"):
            if connection.status != psutil.CONN_LISTEN or connection.laddr.port != port or not connection.pid:
                continue
            held = plain_ip(connection.laddr.ip)
            if held == asked or _takes_all_of(held, asked):
                found[held == asked].add(connection.pid)
    return tuple(sorted(found[True] or found[False]))


def plain_ip(text: str) -> IPv4Address | IPv6Address:
    """Without its zone; an IPv4 address that is written as one of IPv6 is one of IPv4."""
    ip = ip_address(text.partition("%")[0])
    return getattr(ip, "ipv4_mapped", None) or ip


def is_own(ip: str) -> bool:
    """Whether an address is one of this machine."""
    asked = plain_ip(ip)
    if asked.is_loopback:
        return True
    own = (address for addresses in psutil.net_if_addrs().values() for address in addresses)
    return asked in {plain_ip(address.address) for address in own if address.family in (AF_INET, AF_INET6)}


def only_passes_on(pid: int) -> bool:
    """Whether it stands before the process that answers, which is then not seen: what it uses is not what the
    service does."""
    if pid == 1:
        return True
    with suppress(psutil.Error):
        return psutil.Process(pid).name() in FORWARDERS
    return False


def _takes_all_of(held: IPv4Address | IPv6Address, asked: IPv4Address | IPv6Address) -> bool:
    return held.is_unspecified and (held.version == 6 or asked.version == 4)


def is_jvm(pid: int) -> bool:
    with suppress(OSError):
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "java"
    return False


def family(pid: int) -> tuple[int, ...]:
    """A process and all below it."""
    with suppress(psutil.Error):
        return (pid, *(child.pid for child in psutil.Process(pid).children(recursive=True)))
    return ()


def cpu_is_quiet(pids: tuple[int, ...], check_alive: Callable[[str], None], timeout_s: float) -> bool:
    """True once the processes have used hardly any CPU for two steps; False at the end of the time. Where no
    process is known: at once."""
    end, still, used_s = time.monotonic() + timeout_s, 0, cpu_s(pids)
    while pids and time.monotonic() < end:
        check_alive("waiting for rest")
        at = time.monotonic()
        time.sleep(REST_STEP_S)
        now_s = cpu_s(pids)
        still = still + 1 if (now_s - used_s) / (time.monotonic() - at) <= REST_CPU_MAX_SHARE else 0
        if still >= REST_STEPS:
            return True
        used_s = now_s
    return not pids


def cpu_s(pids: tuple[int, ...]) -> float:
    total = 0.0
    for pid in pids:
        with suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            total += times.user + times.system
    return total
