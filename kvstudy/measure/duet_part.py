"""One part of a launch: one loadgen that sends to both sides in turn, in slices of known times, and what each
slice found and cost.

loadgen starts at a given time, and says before how it has drawn the gaps between slices, so all borders are
known (slice_times.py); the sides' counters are read at each (border_counters.py). Which side is its ``A`` is
drawn for each launch, and whose slice is the first of a pair by loadgen, for each pair."""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kvstudy.errors import RunFailed
from kvstudy.hosts.interrupt import shielded
from kvstudy.hosts.process import OwnedProcess, command_text
from kvstudy.measure.border_counters import Border, BorderReader, foreign_ns
from kvstudy.measure.generator import expected_statuses, sample_size, script_arguments, script_path
from kvstudy.measure.slice_times import SliceTimes, planned_times
from kvstudy.plan.comparison import SIDES, Load, Slices
from kvstudy.units import duration_argument

POLL_S = 0.02
# How long loadgen has to open its connections before the first slice; on a busy machine it may need the
# second or third.
LEADS_S = (1.0, 3.0, 8.0)
GRACE_S = 10.0  # how long after its planned end it may wait for answers, beside its timeout
# With gaps that are drawn, too, slices are in step with nothing that comes back in time.
SLICE_ORDER = "random"
MISSED_START = ("the time is past", "too late to start")  # as loadgen says it
# of the counted part: when counters were read later than that, what they say of the slice is not kept
READ_LATE_MAX = 0.02
_COUNTED = ("cpu_ns", "compiler_ns", "written_bytes")
_MEASURED_EXITS = (
    0,
    3,
    4,
)  # 3: unexpected answers, which the launch is failed for; 4: it was late, which validity judges


@dataclass(frozen=True)
class Part:
    """What one loadgen found. ``clock_step_ns``: by how much the wall clock was set meanwhile. ``rows``: one
    per slice, by the columns of slices.csv. ``borders``: what was read at each. ``samples``: some of the
    answered requests of each side. ``unexpected``: answers of another status, by status."""

    rows: list[dict]
    borders: dict[int, Border]
    samples: dict[str, tuple[dict, ...]]
    unexpected: dict[str, int]
    start_ns: int
    clock_step_ns: int = 0


@dataclass(frozen=True)
class Turn:
    """Whom a part is sent to. ``urls`` and ``pids``: by side; ``first``: whose slice is the first; ``cores``:
    the generator's."""

    urls: Mapping[str, str]
    pids: Mapping[str, tuple[int, ...]]
    first: str
    seed: int
    cores: list[int] | None = None

    @property
    def order(self) -> tuple[str, str]:
        return SIDES if self.first == "a" else (SIDES[1], SIDES[0])


def part_command(
    program: str, workloads: Path, load: Load, slices: Slices, turn: Turn, start_ns: int | None, result: Path
) -> list[str]:
    """loadgen's argv; without a time of the start only good for asking when its slices would be."""
    one = load.of(turn.first)
    first, second = (turn.urls[side] for side in turn.order)
    rate = ["--closed"] if slices.loop == "closed" or one.closed_loop else ["-R", f"{one.offered_rate_rps:g}"]
    sample = ["--sample", str(sampled)] if (sampled := sample_size(one)) else []
    start = ["--start-at", _utc_ns(start_ns)] if start_ns is not None else []
    pinned = ["--pin", ",".join(map(str, turn.cores))] if turn.cores else []
    return [
        program,
        "-c",
        str(one.connections),
        "-t",
        str(one.threads),
        "-d",
        duration_argument(slices.duration_s),
        *rate,
        "--warmup",
        duration_argument(slices.warm_up_s),
        "--alternate",
        first,
        second,
        "--slice",
        duration_argument(slices.slice_s),
        "--settle",
        duration_argument(slices.not_counted_s),
        "--gap",
        gap_argument(*slices.gap_s),
        "--order",
        SLICE_ORDER,
        *start,
        "--json",
        str(result),
        "--seed",
        str(turn.seed),
        "--expect",
        expected_statuses(one),
        "--spin",
        one.spin,
        "--timeout",
        duration_argument(one.timeout_s),
        *sample,
        *pinned,
        "-s",
        str(script_path(one, workloads)),
        "--",
        *script_arguments(one, turn.seed),
    ]


def run_part(
    program: str,
    workloads: Path,
    load: Load,
    slices: Slices,
    turn: Turn,
    name: Callable[[str], Path],
    registered: Callable[[int, bool], None],
    check_alive: Callable[[], None],
    tick: Callable[[], None],
    started: Callable[[int], None] = lambda _start_ns: None,
) -> Part:
    """Runs it to its end. ``name``: ``json`` → where loadgen's result goes, also ``txt``, ``cmd`` and
    ``log``. ``check_alive`` raises when a side has died; ``started`` is told the time of the first slice.
    RunFailed in one line."""
    environment = (
        {"LUA_PATH": f"{script_path(load.a, workloads).parent}/?.lua;{workloads}/?.lua;;"}
        if load.a.script
        else {}
    )
    asked = part_command(program, workloads, load, slices, turn, None, name("json"))
    planned = planned_times(asked, environment, 2 * slices.pairs)
    for lead_s in LEADS_S:
        start_ns = time.time_ns() + round(lead_s * 1e9)
        command = part_command(program, workloads, load, slices, turn, start_ns, name("json"))
        name("cmd").write_text(command_text(command, environment), encoding="utf-8")
        times = planned.after(start_ns)
        reader = BorderReader(turn.pids, times.borders, {os.getpid()})
        with reader:
            code = _generated(
                command,
                environment,
                name,
                slices,
                load,
                start_ns,
                reader,
                registered,
                check_alive,
                tick,
                started,
            )
        said = _last_line(name("log"))
        if code != 1 or not any(words in said for words in MISSED_START):
            break
    if code not in _MEASURED_EXITS:
        raise RunFailed(
            f"generator failed: {f'signal {-code}' if code < 0 else f'exit {code}'}: "
            f"{said or 'it said nothing'}"
        )
    result = _result(name("json"))
    return Part(
        slice_rows(result, load, slices, turn, times, reader.at),
        reader.at,
        _samples(result, load, turn),
        _unexpected(result, load),
        start_ns,
        reader.clock_step_ns,
    )


def _generated(
    command: list[str],
    environment: dict[str, str],
    name: Callable[[str], Path],
    slices: Slices,
    load: Load,
    start_ns: int,
    reader: BorderReader,
    registered: Callable[[int, bool], None],
    check_alive: Callable[[], None],
    tick: Callable[[], None],
    started: Callable[[int], None],
) -> int:
    name("log").write_bytes(b"")
    end_s = start_ns / 1e9 + slices.duration_s + load.a.timeout_s + GRACE_S
    with name("txt").open("wb") as text:
        generator = OwnedProcess(
            command,
            stdout=text.fileno(),
            stderr_path=name("log"),
            environment=os.environ | environment,
            registered=registered,
        )
    reader.ours.add(generator.pid)
    try:
        told = False
        while generator.exit_code is None:
            time.sleep(POLL_S)
            if not told and time.time_ns() >= start_ns:
                told = True
                started(start_ns)
            check_alive()
            if time.time() > end_s:
                raise RunFailed(f"generator did not end: planned={slices.duration_s:g}s")
            tick()
    finally:
        with shielded():
            code = generator.stop(timeout_s=1.0)
    check_alive()
    return code


def slice_rows(
    result: dict, load: Load, slices: Slices, turn: Turn, times: SliceTimes, borders: Mapping[int, Border]
) -> list[dict]:
    """One row per measured slice. RunFailed when loadgen's slices are not where they were expected."""
    found = result["alternate"]["slices"]
    if len(found) != len(times.counted):
        raise RunFailed(
            f"generator measured other slices than planned: planned={len(times.counted)} found={len(found)}"
        )
    rows, before = [], borders.get(times.measured_from)
    for place, (one, (begin_ns, end_ns)) in enumerate(zip(found, times.counted, strict=True)):
        if (one["counted_from_unix_ns"], one["counted_until_unix_ns"]) != (begin_ns, end_ns):
            raise RunFailed(
                f"generator's slice {one['slice']} is not where it was planned: planned={begin_ns} "
                f"counted_from={one['counted_from_unix_ns']}"
            )
        side = turn.order["AB".index(one["server"])]
        latency = one["response_time_ns"]
        percentiles = latency["percentiles"] if latency["count"] else {}
        begin, end = borders.get(begin_ns), borders.get(end_ns)
        rows.append(
            {
                "workload": load.workload,
                "loop": slices.loop,
                "round": place // 2 + 1,
                "slice": one["slice"],
                "side": side,
                "begin_utc_ns": begin_ns,
                "end_utc_ns": end_ns,
                "due": one["sent"] if slices.loop == "closed" else one["completed"] + one["unanswered"],
                "answered": one["completed"],
                "errors": one["unanswered"] + one["unexpected"],
                "late": one["late"],
                "answered_settling": one.get("answered_settling"),
                "rate_rps": one["achieved_rate_rps"],
                "mean_ns": latency["mean"],
                **{f"p{percent}_ns": percentiles.get(str(percent)) for percent in (50, 90, 99)},
                **(
                    _used_in(begin, end, side)
                    if _in_time(begin, begin_ns, slices) and _in_time(end, end_ns, slices)
                    else {}
                ),
                **(_used_since(before, end) if before and end else {}),
            }
        )
        before = end
    return rows


def _in_time(border: Border | None, planned_ns: int, slices: Slices) -> bool:
    """Begun and done: a reader that is kept from going on between the two has counted what came after."""
    late_ns = READ_LATE_MAX * slices.counted_s * 1e9
    return border is not None and max(border.read_at_ns, border.done_at_ns) - planned_ns <= late_ns


def _used_in(begin: Border, end: Border, side: str) -> dict:
    """A side whose processes are not known is not counted as foreign either: nobody knows which of the others
    it is."""
    other = SIDES[1 - SIDES.index(side)]
    used, idle = (
        {name: getattr(end.sides[one], name) - getattr(begin.sides[one], name) for name in _COUNTED}
        if one in end.sides
        else {}
        for one in (side, other)
    )
    foreign = {"foreign_ns": foreign_ns(begin, end)} if used and idle else {}
    return (
        used
        | ({"idle_cpu_ns": idle["cpu_ns"]} if idle else {})
        | {"steal_ns": end.steal_ns - begin.steal_ns}
        | foreign
    )


def _used_since(before: Border, end: Border) -> dict:
    return {
        f"{side}_{name}": getattr(end.sides[side], name) - getattr(before.sides[side], name)
        for side in SIDES
        if side in end.sides
        for name in _COUNTED
    }


def _samples(result: dict, load: Load, turn: Turn) -> dict[str, tuple[dict, ...]]:
    """loadgen numbers the connections to its B behind those to its A."""
    found: dict[str, list[dict]] = {side: [] for side in SIDES}
    for one in result.get("sample", ()):
        found[turn.order[one["connection"] >= load.a.connections]].append(one)
    return {side: tuple(ones) for side, ones in found.items()}


def _unexpected(result: dict, load: Load) -> dict[str, int]:
    expected = expected_statuses(load.a).split(",")
    return {status: count for status, count in result["answers"].items() if status not in expected and count}


def _result(path: Path) -> dict:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        if result["counts"]["completed"] == 0:
            raise RunFailed("generator got no answer at all")
        result["alternate"]["slices"]
        return result
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFailed(f"generator wrote no result: {path.name}: {error!r}") from error


def _last_line(log: Path) -> str:
    lines = [
        line.strip()
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
        if line.strip()
    ]
    return lines[-1][:300] if lines else ""


def gap_argument(least_s: float, most_s: float) -> str:
    """``20ms``, or ``20ms..350ms``: drawn between these."""
    least, most = duration_argument(least_s), duration_argument(most_s)
    return least if least == most else f"{least}..{most}"


def _utc_ns(moment_ns: int) -> str:
    seconds, rest = divmod(moment_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
