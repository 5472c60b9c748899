"""What the kernel tells of a subject's processes: which they are, and whether they have anything left to do."""

import os
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

REST_STEP_S = 0.1
REST_CPU_MAX_SHARE = 0.2
REST_STEPS = 2


def members(session_pid: int) -> tuple[int, ...]:
    """The process that was started in a session of its own, and all that it started and that stayed in it."""
    found = []
    for pid in psutil.pids():
        with suppress(OSError):
            if pid != session_pid and os.getsid(pid) == session_pid:
                found.append(pid)
    return (session_pid, *sorted(found))


def listener(port: int) -> int | None:
    """The process that takes connections on a local port; None where that cannot be seen."""
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
                return connection.pid
    return None


def family(pid: int) -> tuple[int, ...]:
    """A process and all below it."""
    with suppress(psutil.Error):
        return (pid, *(child.pid for child in psutil.Process(pid).children(recursive=True)))
    return ()


def cpu_is_quiet(pids: tuple[int, ...], check_alive: Callable[[str], None], timeout_s: float) -> bool:
    """True once the processes have used hardly any CPU for two steps; False at the end of the time. Where no process is known: at once."""
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
