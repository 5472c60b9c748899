"""machine.json: what a number depends on and no parameter says: processor, memory, disk, kernel,
virtualisation, limits, other load."""

import os
import platform
import re
import resource
import subprocess
import time
from functools import cache
from hashlib import sha256
from pathlib import Path

import psutil

from kvstudy.measure.sampler import machine_times


@cache
def fixed_facts() -> dict:
    """What does not change while this process lives. Sizes in bytes."""
    memory = psutil.virtual_memory()
    return {
        "cpu_model": _cpu_model(),
        "cores": psutil.cpu_count(),
        "cores_usable": _cores_usable(),
        "threads_per_core": _threads_per_core(),
        "governor": _line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory_bytes": memory.total,
        "swap_bytes": psutil.swap_memory().total,
        "kernel": platform.release(),
        "system": _os_name(),
        "virtualisation": _virtualisation(),
        "transparent_hugepage": _line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "perf_event_paranoid": _line("/proc/sys/kernel/perf_event_paranoid"),
        "kptr_restrict": _line("/proc/sys/kernel/kptr_restrict"),
        "clock_source": _line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "cgroup_cpu_max": _line("/sys/fs/cgroup/cpu.max"),
        "machine_id": _machine_id(),
    }


def disk_facts(folder: Path) -> dict:
    """Device, file system and free bytes of the disk that the store lies on."""
    folder = folder.resolve()
    mounts = [mount for mount in psutil.disk_partitions(all=True) if folder.is_relative_to(mount.mountpoint)]
    mount = max(mounts, key=lambda mount: len(mount.mountpoint), default=None)
    facts = {"disk_free_bytes": psutil.disk_usage(str(folder)).free}
    return facts | (
        {"disk_device": mount.device, "file_system": mount.fstype, "mount_options": mount.opts}
        if mount
        else {}
    )


def load_now(sample_s: float = 0.2) -> dict:
    """How busy the machine is without us: shares of all cores over a short sample, and the load average."""
    busy_before, steal_before = machine_times()
    start = time.monotonic()
    time.sleep(sample_s)
    busy, steal = machine_times()
    capacity_s = (time.monotonic() - start) * (psutil.cpu_count() or 1)
    return {
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "busy_share": round((busy - busy_before) / capacity_s, 4),
        "steal_share": round((steal - steal_before) / capacity_s, 4),
    }


def load_during(rows: list[dict]) -> dict | None:
    """Means and maxima of the measured seconds of process.csv, of what it has; None when there are none. A
    row that was read late is one of more than a second, and counts for as much of it as was measured."""
    measured = [row for row in rows if row["ended_s"] > 0]
    if not measured:
        return None
    within_s = [min(row["interval_s"], row["ended_s"]) for row in measured]
    return {
        f"{name}_{kind}": round(value, 4)
        for name in ("steal_share", "foreign_cpu_share", "busy_share")
        if name in measured[0]
        for kind, value in (
            (
                "mean",
                sum(row[name] * part_s for row, part_s in zip(measured, within_s, strict=True))
                / sum(within_s),
            ),
            ("max", max(row[name] for row in measured)),
        )
    }


def _cpu_model() -> str:
    text = _text("/proc/cpuinfo")
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1] if match else platform.processor() or platform.machine()


def _machine_id() -> str | None:
    """Of this installation, and of no other unless one was copied from it. A digest: what the system calls
    itself is for nobody else (machine-id(5))."""
    known = _line("/etc/machine-id")
    return sha256(b"kvstudy " + known.encode()).hexdigest()[:16] if known else None


def _cores_usable() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count()


def _threads_per_core() -> int | None:
    physical = psutil.cpu_count(logical=False)
    return (psutil.cpu_count() or 1) // physical if physical else None


def _os_name() -> str:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', _text("/etc/os-release"), re.MULTILINE)
    return match[1] if match else platform.platform()


def _virtualisation() -> str:
    """As systemd-detect-virt names it; else whether the processor says that it is a guest."""
    try:
        asked = subprocess.run(["systemd-detect-virt"], capture_output=True, text=True, timeout=5)
        if asked.stdout.strip():
            return asked.stdout.strip()
    except OSError:
        pass
    return "guest of an unknown hypervisor" if " hypervisor" in _text("/proc/cpuinfo") else "none seen"


def _line(path: str) -> str | None:
    return _text(path).strip() or None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
