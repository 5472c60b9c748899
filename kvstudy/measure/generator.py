"""The load generators' command lines: loadgen, a real wrk2 and wrk, and how each one's end is to be read.

loadgen keeps a warm-up apart by itself. wrk and wrk2 do not: they get a process of their own to warm up with,
and what is measured is the second one. They take whole seconds, which the plan has seen to.
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvstudy.errors import RunFailed, ToolMissing
from kvstudy.measure.start_in_time import generator_failed
from kvstudy.plan.run_plan import Configuration
from kvstudy.plan.subject import SubjectSpec
from kvstudy.plan.unique_keys import WALKS, keys_skipped
from kvstudy.units import write_duration, write_rate

MIXED = ("GET", "PUT")
# loadgen's exit codes that still mean a whole measurement: 3, there were unexpected answers; 4, it was late.
# Validity judges both.
_MEASURED_EXITS = {"loadgen": (0, 3, 4), "wrk2": (0,), "wrk": (0,)}
# What was due in the warm-up kept the service busy to the end: the rate that it achieved is known, and no
# latency.
_NO_LATENCY = 5
# As loadgen says it of a service that was sent something: who could not even connect may have no port left.
_NO_ANSWER = re.compile(r"no request was answered: (?:.*: )?(sent [1-9]\d*, .*)")
_ONE_SIDE_SILENT = re.compile(r"no measured request was answered by (\S+): (\d+ were due)")
# Of the measured answers so many are kept one by one: twice the slowest percent, for the runs whose tail is
# the longer one.
_SLOWEST_SHARE = 0.02
_SLOWEST_MIN, _SLOWEST_MAX, _SLOWEST_CLOSED_LOOP = 1_000, 10_000, 5_000
# How long an interval of the log of latencies is, and so a column of the pages that show what ran while a
# part of a run was slow. The same with a profiler and without, or their comparison would be of two things.
INTERVAL_S = 0.25
# So many writes are read back after a run; of a mix as many more requests are sampled as it reads, but for
# what would swell its result.
_WRITES_SAMPLED, _SAMPLE_MAX = 200, 1_000


@dataclass(frozen=True)
class GeneratorCommand:
    """``argv`` and the environment variables set for it. ``measures_from_s``: when, after its start, the
    measured window begins."""

    argv: list[str]
    environment: dict[str, str]
    measures_from_s: float
    length_s: float


class SideSilent(RunFailed):
    """A side of a duet answered nothing while the other did. ``fault``: what that is of the side."""

    def __init__(self, side: str, said: str):
        super().__init__(f"side {side} answered no request in its slices: {said}")
        self.side, self.fault = side, f"service answered no request in its slices: {said}"


def generator_path(name: str, loadgen: Path) -> str:
    """The program; ToolMissing says how to get it. WRK2 names a wrk2 that is not on PATH."""
    if name == "loadgen":
        if not loadgen.is_file():
            raise ToolMissing(f"loadgen is not built: {loadgen}", "kvstudy build")
        return str(loadgen)
    asked = os.environ.get("WRK2", "wrk2") if name == "wrk2" else "wrk"
    path = shutil.which(asked)
    if path is None:
        raise ToolMissing(
            f"no {name}: {asked} is not on PATH",
            "set WRK2 to the path of your wrk2" if name == "wrk2" else "apt-get install wrk",
        )
    return path


def generator_commands(
    program: str,
    configuration: Configuration,
    url: str,
    workloads: Path,
    seed: int,
    *,
    json: Path,
    hlog: Path,
    slowest: Path,
    cores: list[int] | None,
    part: str | None = None,
    start_at: str | None = None,
) -> list[GeneratorCommand]:
    """What to run one after the other; the last one is the measurement. ``part``, ``start_at``: of a load
    that several make together, loadgen's alone."""
    script = script_path(configuration, workloads)
    target = ["-s", str(script), "--timeout", write_duration(configuration.timeout_s), url, "--"]
    size = ["-c", str(configuration.connections), "-t", str(configuration.threads)]
    rate = [] if configuration.closed_loop else ["-R", write_rate(configuration.offered_rate_rps)]
    environment = (
        {"LUA_PATH": f"{script.parent}/?.lua;{workloads}/?.lua;;"}
        if configuration.script
        else {"LUA_PATH": f"{script.parent}/?.lua;;"}
    )
    if configuration.generator == "loadgen":
        own = [
            "--warmup",
            write_duration(configuration.warm_up_s),
            "--json",
            str(json),
            "--hlog",
            str(hlog),
            "--interval",
            write_duration(INTERVAL_S),
            "--slowest",
            str(slowest),
            "--slowest-count",
            str(slowest_count(configuration)),
            "--seed",
            str(seed),
            "--expect",
            expected_statuses(configuration),
        ]
        # Who has no due times waits for none busily; loadgen refuses that.
        paced = ["--spin", configuration.spin, "--arrivals", configuration.arrivals]
        own += ["--closed"] if configuration.closed_loop else paced
        own += ["--sample", str(sampled)] if (sampled := sample_size(configuration)) else []
        own += ["--pin", ",".join(map(str, cores))] if cores else []
        own += ["--part", part] if part else []
        own += ["--start-at", start_at] if start_at else []
        argv = [program, *size, "-d", write_duration(configuration.duration_s), *rate, "-L", *own, *target]
        argv += script_arguments(configuration, seed)
        return [
            GeneratorCommand(
                argv,
                environment if configuration.script else {},
                configuration.warm_up_s,
                configuration.duration_s,
            )
        ]
    latency = ["-U"] if configuration.generator == "wrk2" else ["--latency"]
    rate_rps = configuration.offered_rate_rps
    lengths_s = [length_s for length_s in (configuration.warm_up_s, configuration.measured_s) if length_s]
    return [
        GeneratorCommand(
            [
                *(program, *size, "-d", write_duration(length_s), *rate, *latency, *target),
                *script_arguments(configuration, seed, [(rate_rps, one_s) for one_s in lengths_s[: n + 1]]),
            ],
            environment,
            0.0,
            length_s,
        )
        for n, length_s in enumerate(lengths_s)
    ]


def script_path(configuration: Configuration, workloads: Path) -> Path:
    """``workloads``: the folder of the project's own. Another script's path is taken from the project's
    folder."""
    return (
        workloads.parents[1] / configuration.script
        if configuration.script
        else workloads / f"{configuration.workload}.lua"
    )


def slowest_count(configuration: Configuration) -> int:
    """How many of a run's answers loadgen keeps one by one."""
    if configuration.closed_loop:
        return _SLOWEST_CLOSED_LOOP
    return min(
        _SLOWEST_MAX,
        max(_SLOWEST_MIN, round(_SLOWEST_SHARE * configuration.offered_rate_rps * configuration.measured_s)),
    )


def sample_size(configuration: Configuration) -> int:
    """How many of a run's requests loadgen keeps, to be read back: none where nothing is written, or kept,
    and of a script of one's own only where that is asked for: nobody else knows whether GET of the same
    target gives it back."""
    asked = configuration.read_back
    if (
        configuration.method == "GET"
        or not configuration.spec.keeps_data
        or asked == 0
        or (configuration.script and asked is None)
    ):
        return 0
    written = (
        1 - configuration.workload_args.get("read_share", 0.5) if configuration.method == "MIXED" else 1.0
    )
    asked = asked or _WRITES_SAMPLED
    return round(asked / max(written, asked / max(asked, _SAMPLE_MAX)))


def expected_statuses(configuration: Configuration) -> str:
    """What --expect is given: the statuses that the subject has for this workload, or the workload its
    own."""
    spec = configuration.spec
    if configuration.statuses:
        expected = configuration.statuses
    elif configuration.workload == "missing_get" and spec.keeps_data:
        expected = [404]
    else:
        methods = MIXED if configuration.method == "MIXED" else (configuration.method,)
        expected = list(dict.fromkeys(status for method in methods for status in spec.statuses_of(method)))
        expected += (
            [404]
            if configuration.method == "MIXED" and configuration.fill is None and spec.keeps_data
            else []
        )
    return ",".join(map(str, expected))


def script_arguments(
    configuration: Configuration, seed: int, loads: Sequence[tuple[float | None, float]] = ()
) -> list[str]:
    """The ``key=value`` words behind ``--``. ``loads``: rate and seconds of those that other processes sent
    before this one, and at last of its own."""
    walks_on = len(loads) > 1 and configuration.workload in WALKS and not configuration.script
    arguments = {
        **configuration.workload_args,
        **({"skip": keys_skipped(configuration.workload_args["key_count"], loads)} if walks_on else {}),
        "threads": configuration.threads,
        "seed": seed,
        **path_arguments(configuration.spec),
    }
    return [f"{name}={value}" for name, value in arguments.items()]


def path_arguments(spec: SubjectSpec) -> dict[str, str]:
    """Of experiments/workloads/keyspace.lua: where a subject keeps its records, if elsewhere than our
    service."""
    return {f"{method.lower()}_path": path for method, path in (spec.paths or {}).items()}


def check_exit(generator: str, code: int, stderr: Path) -> None:
    """RunFailed when the generator's exit code means that it did not measure; MissedStart when it came too
    late."""
    if code not in _MEASURED_EXITS[generator]:
        raise generator_failed(code, _last_line(stderr))


def check_load(generator: str, code: int, stderr: Path) -> None:
    """As ``check_exit``, of the load of a run: its rate alone may have been measured, and a service that
    answered nothing is told from a generator that failed."""
    if generator == "loadgen" and code == _NO_LATENCY:
        return
    if generator == "loadgen" and code == 1 and (said := _NO_ANSWER.fullmatch(_last_line(stderr))):
        raise RunFailed(f"generator got no answer at all: {said[1]}")
    check_exit(generator, code, stderr)


def check_slices(code: int, stderr: Path, at_rate: bool, urls: Mapping[str, str]) -> None:
    """As ``check_exit``, of the slices of a duet: there a load without an answer compares nothing. SideSilent
    where one side alone gave none. ``urls``: by side."""
    if code == _NO_LATENCY:
        why = "the rate may be too high for both sides" if at_rate else "both sides stood still"
        raise RunFailed(f"no request due in a slice was answered: {why}: {_last_line(stderr)}")
    if code == 1:
        said = _last_line(stderr)
        if found := _NO_ANSWER.fullmatch(said):
            raise RunFailed(f"neither side answered a request: {found[1]}")
        if (found := _ONE_SIDE_SILENT.fullmatch(said)) and (side := _side_of(found[1], urls)):
            raise SideSilent(side, found[2])
    check_exit("loadgen", code, stderr)


def _side_of(asked: str, urls: Mapping[str, str]) -> str | None:
    return next((side for side, url in urls.items() if url == asked), None)


def _last_line(stderr: Path) -> str:
    """Of what a generator said, its first 300 letters; "" where it said nothing."""
    lines = [
        line for line in stderr.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()
    ]
    return lines[-1].strip()[:300] if lines else ""
