"""One part of a launch: one loadgen that sends to both sides in turn, in slices of known times, and what each
slice found and cost.

loadgen starts at a given time, and says before how it has drawn the gaps between slices, so all borders are
known (slice_times.py); the sides' counters are read at each (border_counters.py). Which side is its ``A`` is
drawn for each launch, and whose slice is the first of a pair by loadgen, for each pair.

    run_part                        services and generator on one machine
    generate_part, attend_part      each on its host: several_hosts_duet.py"""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kvstudy.errors import RunFailed
from kvstudy.hosts.interrupt import shielded
from kvstudy.hosts.process import OwnedProcess, command_text, wait_until
from kvstudy.measure.border_counters import Border, BorderReader, Taken, taken
from kvstudy.measure.generator import (
    check_slices,
    expected_statuses,
    sample_size,
    script_arguments,
    script_path,
)
from kvstudy.measure.slice_times import SliceTimes, planned_times
from kvstudy.measure.start_in_time import started_in_time
from kvstudy.plan.comparison import SIDES, Load, Slices
from kvstudy.record.duet import READ_LATE_MAX
from kvstudy.units import write_duration, write_rate

POLL_S = 0.02
# How long loadgen has to open its connections before the first slice; on a busy machine it may need the
# second or third.
LEADS_S = (1.0, 3.0, 8.0)
GRACE_S = 10.0  # how long after its planned end it may wait for answers, beside its timeout
LAST_BORDER_S = 0.2
# With gaps that are drawn, too, slices are in step with nothing that comes back in time.
SLICE_ORDER = "random"
_COUNTED = ("cpu_ns", "compiler_ns", "written_bytes")


@dataclass(frozen=True)
class Part:
    """What one loadgen found. ``clock_step_ns``: by how much the wall clock was set meanwhile. ``rows``: one
    per slice, by the columns of slices.csv. ``samples``: some of the answered requests of each side.
    ``unexpected``: answers of another status, by status; ``unexpected_of``: the side that alone gave such in
    measured slices, or None. ``taken``: what the host and other programs took, of each counted part whose
    borders were read, late or not."""

    rows: list[dict]
    samples: dict[str, tuple[dict, ...]]
    unexpected: dict[str, int]
    unexpected_of: str | None
    clock_step_ns: int = 0
    taken: tuple[Taken, ...] = ()


@dataclass(frozen=True)
class Turn:
    """Whom a part is sent to. ``urls``: by side; ``first``: whose slice is the first; ``cores``: the
    generator's; ``share``: which of several generators it is, as ``1/2``."""

    urls: Mapping[str, str]
    first: str
    seed: int
    cores: list[int] | None = None
    share: str | None = None

    @property
    def order(self) -> tuple[str, str]:
        return SIDES if self.first == "a" else (SIDES[1], SIDES[0])


@dataclass(frozen=True)
class PlannedPart:
    """On the generator's host. ``times``: of one that starts at 0; ``folder`` and ``stem``: of its files."""

    program: str
    workloads: Path
    load: Load
    slices: Slices
    turn: Turn
    folder: Path
    stem: str
    times: SliceTimes

    def file(self, suffix: str) -> Path:
        """``json``: loadgen's result; also ``txt``, ``cmd`` and ``log``."""
        return self.folder / f"{self.stem}.{suffix}"

    def command(self, start_ns: int) -> list[str]:
        one = self.program, self.workloads, self.load, self.slices, self.turn, start_ns
        return part_command(*one, self.file("json"))


@dataclass(frozen=True)
class Attended:
    """What was read at the borders; ``clock_step_ns``: by how much the wall clock was set meanwhile."""

    borders: Mapping[int, Border]
    clock_step_ns: int


def part_command(
    program: str, workloads: Path, load: Load, slices: Slices, turn: Turn, start_ns: int | None, result: Path
) -> list[str]:
    """loadgen's argv; without a time of the start only good for asking when its slices would be."""
    one = load.of(turn.first)
    first, second = (turn.urls[side] for side in turn.order)
    rate_rps = load.rate_rps(slices)
    # Who has no due times waits for none busily; loadgen refuses that.
    rate = ["-R", write_rate(rate_rps), "--spin", one.spin] if rate_rps is not None else ["--closed"]
    sample = ["--sample", str(sampled)] if (sampled := sample_size(one)) else []
    start = ["--start-at", _utc_ns(start_ns)] if start_ns is not None else []
    share = ["--part", turn.share] if turn.share else []
    pinned = ["--pin", ",".join(map(str, turn.cores))] if turn.cores else []
    return [
        program,
        "-c",
        str(one.connections),
        "-t",
        str(one.threads),
        "-d",
        write_duration(slices.duration_s),
        *rate,
        "--warmup",
        write_duration(slices.warm_up_s),
        "--alternate",
        first,
        second,
        "--slice",
        write_duration(slices.slice_s),
        "--settle",
        write_duration(slices.not_counted_s),
        "--gap",
        gap_argument(*slices.gap_s),
        "--order",
        SLICE_ORDER,
        *start,
        *share,
        "--json",
        str(result),
        "--seed",
        str(turn.seed),
        "--expect",
        expected_statuses(one),
        "--timeout",
        write_duration(one.timeout_s),
        *sample,
        *pinned,
        "-s",
        str(script_path(one, workloads)),
        "--",
        *script_arguments(one, turn.seed, load.rates_until(slices)),
    ]


def planned_part(
    program: str, workloads: Path, load: Load, slices: Slices, turn: Turn, folder: Path, stem: str
) -> PlannedPart:
    """Asks loadgen when its slices will be."""
    asked = part_command(program, workloads, load, slices, turn, None, folder / f"{stem}.json")
    times = planned_times(asked, _environment(load, workloads), 2 * slices.pairs)
    return PlannedPart(program, workloads, load, slices, turn, folder, stem, times)


def run_part(
    planned: PlannedPart,
    pids: Mapping[str, tuple[int, ...]],
    registered: Callable[[int, bool], None],
    check_alive: Callable[[], None],
    tick: Callable[[], None],
) -> Part:
    """Runs it to its end. ``pids``: of the sides; ``check_alive`` raises when one has died. RunFailed in one
    line."""

    def step() -> None:
        check_alive()
        tick()

    def tried(lead_s: float) -> Part:
        start_ns = time.time_ns() + round(lead_s * 1e9)
        with BorderReader(pids, planned.times.after(start_ns).borders, {os.getpid()}) as reader:
            result = generate_part(planned, start_ns, registered, step, reader.ours.add)
        return part_of(planned, result, start_ns, Attended(reader.at, reader.clock_step_ns))

    return started_in_time(tried, LEADS_S)


def part_of(planned: PlannedPart, result: dict, start_ns: int, attended: Attended, bound_ns: int = 0) -> Part:
    """``bound_ns``: how far the times of the borders may be off those of the slices."""
    load, slices, turn = planned.load, planned.slices, planned.turn
    times = planned.times.after(start_ns)
    return Part(
        slice_rows(result, load, slices, turn, times, attended.borders, bound_ns),
        _samples(result, load, turn),
        _unexpected(result, load),
        _only_side(result, turn),
        attended.clock_step_ns,
        tuple(
            taken(attended.borders[begin_ns], attended.borders[end_ns])
            for begin_ns, end_ns in times.counted
            if attended.borders.keys() >= {begin_ns, end_ns}
        ),
    )


def attend_part(
    pids: Mapping[str, tuple[int, ...]],
    borders_ns: list[int],
    is_over: Callable[[], bool],
    check_alive: Callable[[], None],
    at_most_s: float,
) -> Attended:
    """Reads both sides at each border until the load is over. RunFailed when one dies."""
    end = time.monotonic() + at_most_s
    with BorderReader(pids, borders_ns, {os.getpid()}) as reader:
        while not is_over() and time.monotonic() < end:
            time.sleep(POLL_S)
            check_alive()
        check_alive()  # a load that found nobody may be over before it was looked at here
        # The generator's host may have been told of its end before the last border has been read here.
        wait_until(lambda: max(borders_ns) in reader.at, LAST_BORDER_S)
    return Attended(reader.at, reader.clock_step_ns)


def generate_part(
    planned: PlannedPart,
    start_ns: int,
    registered: Callable[[int, bool], None],
    step: Callable[[], None],
    started: Callable[[int], None] = lambda _pid: None,
) -> dict:
    """Runs loadgen to its end; what it found. ``step`` is called all the time, and may raise; ``started`` is
    told its number."""
    environment, command = _environment(planned.load, planned.workloads), planned.command(start_ns)
    log = planned.file("log")
    planned.file("cmd").write_text(command_text(command, environment), encoding="utf-8")
    log.write_bytes(b"")
    end_s = start_ns / 1e9 + planned.slices.duration_s + planned.load.a.timeout_s + GRACE_S
    with planned.file("txt").open("wb") as text:
        generator = OwnedProcess(
            command,
            stdout=text.fileno(),
            stderr_path=log,
            environment=os.environ | environment,
            registered=registered,
        )
    started(generator.pid)
    try:
        while generator.exit_code is None:
            time.sleep(POLL_S)
            step()
            if time.time() > end_s:
                raise RunFailed(f"generator did not end: planned={planned.slices.duration_s:g}s")
    finally:
        with shielded():
            code = generator.stop(timeout_s=1.0)
    step()
    # The launch fails by itself for unexpected answers.
    check_slices(code, log, at_rate=planned.slices.loop == "rate", urls=planned.turn.urls)
    return _result(planned.file("json"))


def _environment(load: Load, workloads: Path) -> dict[str, str]:
    if not load.a.script:
        return {}
    return {"LUA_PATH": f"{script_path(load.a, workloads).parent}/?.lua;{workloads}/?.lua;;"}


def slice_rows(
    result: dict,
    load: Load,
    slices: Slices,
    turn: Turn,
    times: SliceTimes,
    borders: Mapping[int, Border],
    bound_ns: int = 0,
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
                    if _in_time(begin, begin_ns, slices, bound_ns) and _in_time(end, end_ns, slices, bound_ns)
                    else {}
                ),
                **(_used_since(before, end) if before and end else {}),
                **(
                    {"read_late_ns": max(0, begin.done_at_ns - begin_ns, end.done_at_ns - end_ns)}
                    if begin and end
                    else {}
                ),
            }
        )
        before = end
    return rows


def _in_time(border: Border | None, planned_ns: int, slices: Slices, bound_ns: int) -> bool:
    """Begun and done: a reader that is kept from going on between the two has counted what came after. One
    that goes by the clock of another host may also be early."""
    allowed_ns = READ_LATE_MAX * slices.counted_s * 1e9 - bound_ns
    return border is not None and all(
        abs(at_ns - planned_ns) <= allowed_ns for at_ns in (border.read_at_ns, border.done_at_ns)
    )


def _used_in(begin: Border, end: Border, side: str) -> dict:
    other = SIDES[1 - SIDES.index(side)]
    used, idle = (
        {name: getattr(end.sides[one], name) - getattr(begin.sides[one], name) for name in _COUNTED}
        if one in end.sides
        else {}
        for one in (side, other)
    )
    others = taken(begin, end)
    return (
        used
        | ({"idle_cpu_ns": idle["cpu_ns"]} if idle else {})
        | {"steal_ns": others.steal_ns}
        | ({"foreign_ns": others.foreign_ns} if others.foreign_ns is not None else {})
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


def _only_side(result: dict, turn: Turn) -> str | None:
    """The servers' own counts leave the warm-up out."""
    sides = [
        turn.order["AB".index(one["server"])] for one in result["alternate"]["servers"] if one["unexpected"]
    ]
    return sides[0] if len(sides) == 1 else None


def _result(path: Path) -> dict:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        if result["counts"]["completed"] == 0:
            raise RunFailed("generator got no answer at all")
        result["alternate"]["slices"]
        return result
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFailed(f"generator wrote no result: {path.name}: {error!r}") from error


def gap_argument(least_s: float, most_s: float) -> str:
    """``20ms``, or ``20ms..350ms``: drawn between these."""
    least, most = write_duration(least_s), write_duration(most_s)
    return least if least == most else f"{least}..{most}"


def _utc_ns(moment_ns: int) -> str:
    seconds, rest = divmod(moment_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
