"""What this machine lacks for measuring, each with the command that mends it. Starts nothing but version
queries."""

import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from kvstudy.errors import ToolMissing
from kvstudy.hosts import memory_group
from kvstudy.measure import awake, limits, steadiness
from kvstudy.measure.build import CARGO_HINT, CARGO_MIN, find_cargo
from kvstudy.measure.pinning import CORES_MIN, CORES_MIN_APART
from kvstudy.project import (
    empty_server_jar,
    jfr_converter_jar,
    loadgen_binary,
    profiler_library,
    service_jar,
    work_root,
)
from kvstudy.subject.builds import MAVEN_HINT, git_refuses
from kvstudy.subject.jdk import feature_of, find_jdk, version_of
from kvstudy.units import format_bytes, percent

OK, WARN, MISSING = "ok", "warn", "missing"
PEERS = ("nginx", "webdis", "redis-server")  # of experiments/peers.yaml
FREE_DISK_MIN_BYTES = 5 << 30
FREE_MEMORY_MIN_BYTES = 2 << 30
CONNECTIONS_MAX = 10_000  # of experiments/connections.yaml
FOREIGN_CPU_MAX_SHARE = 0.10
STEADINESS_S = 2.0
SLOW_MAX_SHARE = 0.01  # else p99 is the machine's, not the service's


@dataclass(frozen=True)
class Check:
    """``verdict``: ok, warn (measuring works, with a limit that is said) or missing (something does not
    work); ``hint``: what to do."""

    name: str
    verdict: str
    observed: str
    hint: str | None = None


def examine(root: Path) -> list[Check]:
    """All checks, in the order in which a person would mend them. Takes about three seconds:
    other load and a core's speed are sampled."""
    return [
        _python(),
        _jdk(),
        _maven(),
        _cargo(),
        _c_compiler(),
        _git(root),
        *_built(root),
        _optional("wrk2", os.environ.get("WRK2", "wrk2"), "only for generator: wrk2; set WRK2 to its path"),
        _optional("wrk", "wrk", "only for generator: wrk; apt-get install wrk"),
        _optional(
            "chromium",
            "chromium",
            "only for the tests of the pages; apt-get install chromium chromium-driver",
        ),
        _peers(),
        *_perf_settings(),
        _cores(),
        _governor(),
        _idle_states(),
        _memory(),
        _memory_groups(),
        _disk(root),
        *_reading(root),
        _open_files(),
        _port(),
        _load(),
        _steadiness(),
    ]


def _python() -> Check:
    version = platform.python_version()
    return Check(
        "python",
        OK if sys.version_info >= (3, 11) else MISSING,
        version,
        "python 3.11 or newer: apt-get install python3",
    )


def _jdk() -> Check:
    try:
        jdk = find_jdk()
    except ToolMissing as missing:
        return Check("jdk", MISSING, missing.message, missing.hint)
    asked = os.environ.get("JAVA_HOME")
    if asked and Path(asked) != jdk.home:
        what, verdict = (
            ("another Java", OK) if (Path(asked) / "bin" / "java").is_file() else ("no Java at all", WARN)
        )
        return Check(
            "jdk",
            verdict,
            f"{jdk.version} at {jdk.home}; JAVA_HOME={asked} is {what} and not used here",
            f"export JAVA_HOME={jdk.home}",
        )
    on_path = shutil.which("java")
    other = version_of(Path(on_path).resolve().parent.parent) if on_path else None
    if other and feature_of(other) != feature_of(jdk.version):
        by_hand = f"; `java` on PATH is {other}: by hand use {jdk.tool('java')}"
        return Check("jdk", OK, f"{jdk.version} at {jdk.home}{by_hand}")
    return Check("jdk", OK, f"{jdk.version} at {jdk.home}")


def _maven() -> Check:
    """As the build calls it: with the JDK that was found, whatever JAVA_HOME is."""
    try:
        return _program("maven", "mvn", MAVEN_HINT, find_jdk().environment())
    except ToolMissing:
        return _program("maven", "mvn", MAVEN_HINT)


def _cargo() -> Check:
    """As the build finds it, and as new as the load generator needs it."""
    check = _program("cargo", find_cargo() or "cargo", CARGO_HINT)
    version = re.match(r"cargo (\d+)\.(\d+)", check.observed)
    if version and (int(version[1]), int(version[2])) < CARGO_MIN:
        return Check("cargo", MISSING, f"{check.observed} is too old", CARGO_HINT)
    return check


def _program(name: str, command: str, hint: str, environment: dict[str, str] | None = None) -> Check:
    """There, and able to say its version: a rustup without a toolchain is no cargo."""
    path = shutil.which(command)
    if path is None:
        return Check(name, MISSING, "not on PATH", hint)
    version, problem = _asked(path, environment)
    return (
        Check(name, OK, version)
        if problem is None
        else Check(name, MISSING, f"{path} does not run: {problem}", hint)
    )


def _optional(name: str, command: str, hint: str) -> Check:
    path = shutil.which(command)
    return Check(name, OK, path) if path else Check(name, OK, f"not here ({hint})")


def _peers() -> Check:
    missing = [name for name in PEERS if shutil.which(name) is None]
    packages = ["nginx-light" if name == "nginx" else name for name in missing]
    return Check(
        "peers",
        OK,
        f"not here: {', '.join(missing)} (only for make peers; apt-get install {' '.join(packages)})"
        if missing
        else ", ".join(PEERS),
    )


def _asked(path: str, environment: dict[str, str] | None = None) -> tuple[str, str | None]:
    """The first line of ``--version``, and why there is none: the last line of what was said instead."""
    try:
        asked = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=30, env=environment
        )
    except subprocess.TimeoutExpired:
        return path, "no version within 30 s"
    except OSError as error:
        return path, (error.strerror or str(error)).lower()
    if asked.returncode != 0:
        said = (asked.stderr.strip() or asked.stdout.strip() or "it said nothing").split("\n")[-1]
        return path, f"exit {asked.returncode}: {said}"
    return asked.stdout.strip().split("\n")[0].replace("\x1b[1m", "").replace("\x1b[m", "") or path, None


def _c_compiler() -> Check:
    path = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    hint = "loadgen compiles LuaJIT: apt-get install gcc libc6-dev make"
    if not path:
        return Check("c compiler", MISSING, "no cc, gcc or clang on PATH", hint)
    if not shutil.which("make"):
        return Check("c compiler", MISSING, f"{path}, but no make", hint)
    return Check("c compiler", OK, path)


def _git(root: Path) -> Check:
    """There, and willing to tell of the project."""
    path, hint = shutil.which("git"), "apt-get install git"
    version, problem = ("", "not on PATH") if path is None else _asked(path)
    if problem is None and (refused := git_refuses(root)):
        problem, hint = refused
    return (
        Check("git", OK, version)
        if problem is None
        else Check("git", WARN, f"{problem}: runs cannot record the revision they measured", hint)
    )


def _built(root: Path) -> list[Check]:
    return [
        Check(name, OK, str(path.relative_to(root)))
        if path.is_file()
        else Check(name, MISSING, f"not built: {path.relative_to(root)}", "kvstudy build")
        for name, path in (
            ("service", service_jar(root)),
            ("empty server", empty_server_jar(root)),
            ("loadgen", loadgen_binary(root)),
            ("async-profiler", profiler_library(root)),
            ("jfr converter", jfr_converter_jar(root)),
        )
    ]


def _perf_settings() -> list[Check]:
    checks = []
    for name, wanted, consequence in (
        ("perf_event_paranoid", 1, "profiles are sampled by timers and have no kernel frames"),
        ("kptr_restrict", 0, "kernel frames in profiles have no names"),
    ):
        value = _read_int(f"/proc/sys/kernel/{name}")
        if value is None:
            checks.append(Check(name, WARN, f"not on this system: {consequence}"))
        elif value > wanted:
            checks.append(Check(name, WARN, f"{value}: {consequence}", f"sudo sysctl kernel.{name}={wanted}"))
        else:
            checks.append(Check(name, OK, str(value)))
    rate = _read_int("/proc/sys/kernel/perf_event_max_sample_rate")
    if rate is not None and rate < 1000:
        checks.append(
            Check(
                "perf sample rate",
                WARN,
                f"{rate}/s: too low to profile (pyperf system tune does that)",
                "sudo sysctl kernel.perf_event_max_sample_rate=100000",
            )
        )
    return checks


def _cores() -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores >= CORES_MIN:
        return Check("cores", OK, f"{cores}: service and generator get cores of their own")
    apart = ", but in duets and where an experiment says cores: apart" if cores >= CORES_MIN_APART else ""
    return Check(
        "cores",
        WARN,
        f"{cores}: service and generator take time from each other{apart}",
        f"{CORES_MIN} or more cores; numbers from here compare with each other only",
    )


def _governor() -> Check:
    path = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if not path.is_file():
        return Check("cpu governor", OK, "not set by this system (usual in a virtual machine)")
    governor = path.read_text().strip()
    return (
        Check("cpu governor", OK, governor)
        if governor == "performance"
        else Check(
            "cpu governor",
            WARN,
            f"{governor}: the clock changes while measuring",
            "sudo cpupower frequency-set -g performance",
        )
    )


def _idle_states() -> Check:
    why = awake.problem()
    return (
        Check("idle states", OK, "processors are kept awake while measuring")
        if why is None
        else Check(
            "idle states",
            WARN,
            f"processors sleep between requests, and a virtual machine loses them while they do: {why}",
            awake.HINT,
        )
    )


def _memory() -> Check:
    memory = psutil.virtual_memory()
    observed = f"{format_bytes(memory.available)} free of {format_bytes(memory.total)}"
    if memory.available < FREE_MEMORY_MIN_BYTES:
        return Check(
            "memory",
            WARN,
            observed,
            f"close other programs: {format_bytes(FREE_MEMORY_MIN_BYTES)} should be free",
        )
    if psutil.swap_memory().used > 256 << 20:
        return Check(
            "memory",
            WARN,
            f"{observed}; {format_bytes(psutil.swap_memory().used)} swapped out",
            "sudo swapoff -a",
        )
    return Check("memory", OK, observed)


def _disk(root: Path) -> Check:
    free = shutil.disk_usage(root).free
    return (
        Check("disk", OK, f"{format_bytes(free)} free at {work_root(root).parent}")
        if free >= FREE_DISK_MIN_BYTES
        else Check(
            "disk",
            WARN,
            f"{format_bytes(free)} free at {root}",
            f"free some: {format_bytes(FREE_DISK_MIN_BYTES)} suffice for all but scale and "
            "larger-than-memory in full",
        )
    )


def _memory_groups() -> Check:
    try:
        memory_group.try_out()
    except memory_group.NoMemoryGroup as missing:
        return Check(
            "memory groups",
            WARN,
            f"{missing.message}: nothing can be measured with service: {{memory: …}}",
            missing.hint,
        )
    return Check("memory groups", OK, f"cgroup version {memory_group.controller().version}")


def _reading(root: Path) -> list[Check]:
    """How a store that is larger than memory can be read on the disk that stores lie on."""
    checks = []
    try:
        problems = limits.direct_io_problem(work_root(root)), limits.mincore_problem(work_root(root))
    except OSError as error:
        what = f"{work_root(root)} cannot be written: {(error.strerror or str(error)).lower()}"
        return [Check("stores", MISSING, what, "make it writable, or measure in a copy of the project")]
    for name, why, consequence in (
        ("direct I/O", problems[0], limits.READ_PAST_CACHE),
        ("mincore", problems[1], limits.FAULTS_STOP),
    ):
        checks.append(
            Check(name, OK, "where stores are written")
            if why is None
            else Check(
                name, WARN, f"{why}: {consequence}", "put data/work on another file system, as ext4 or XFS"
            )
        )
    return checks


def _open_files() -> Check:
    """The soft limit is raised as far as needed by who measures."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS_MAX + limits.FILES_BESIDE_CONNECTIONS
    if hard == resource.RLIM_INFINITY or hard >= needed:
        return Check("open files", OK, "no limit" if hard == resource.RLIM_INFINITY else f"up to {hard}")
    return Check(
        "open files",
        WARN,
        f"at most {hard}: 10 000 connections need {needed}",
        f"as root: prlimit --pid $$ --nofile={needed}; for good: /etc/security/limits.conf",
    )


def _port() -> Check:
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            return Check("loopback", OK, f"127.0.0.1 gives ports ({server.getsockname()[1]})")
    except OSError as error:
        return Check(
            "loopback",
            MISSING,
            f"no port on 127.0.0.1: {error}",
            "allow local connections for this user or container",
        )


def _load() -> Check:
    # a process's first count is always 0: what it used is told from the second on
    list(psutil.process_iter(["cpu_percent"]))
    busy = psutil.cpu_times_percent(interval=1.0)
    share = 1 - busy.idle / 100
    steal = getattr(busy, "steal", 0.0) / 100
    said = f"{percent(share, 0, FOREIGN_CPU_MAX_SHARE)} of the cores busy"
    if share <= FOREIGN_CPU_MAX_SHARE:
        return Check("other load", OK, said)
    users = sorted(
        (
            process.info
            for process in psutil.process_iter(["name", "cpu_percent"])
            if process.info["cpu_percent"]
        ),
        key=lambda info: -info["cpu_percent"],
    )[:3]
    names = ", ".join(info["name"] for info in users) or "unknown"
    return Check(
        "other load",
        WARN,
        f"{said}, steal {percent(steal)}: {names}",
        "stop other programs before measuring",
    )


def _steadiness() -> Check:
    share = steadiness.slow_share(STEADINESS_S)
    of_time = f"{percent(share, 1, SLOW_MAX_SHARE)} of {STEADINESS_S:.0f} s"
    said = f"a core worked at less than half its speed for {of_time}"
    if share <= SLOW_MAX_SHARE:
        return Check("steady speed", OK, said)
    return Check(
        "steady speed",
        WARN,
        f"{said}: many runs will be invalid, and p99 is the machine's",
        "measure on a machine whose host is not busy, and whose processors are not throttled",
    )


def _read_int(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None
