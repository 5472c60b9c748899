"""A load that generators on hosts of their own make together against a service on another host.

    clocks compared → start time → all begin then → all have ended → clocks compared again → one result

The clock of the first generator's host is that of the run: latency is measured there, and what the service's
host noted is moved to it. Each host is told the start by its own clock.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from kvstudy.errors import HostLost, KvstudyError, RunFailed
from kvstudy.hosts.clock import SLEW_MAX, Course, Offset, moved_by
from kvstudy.hosts.host import WHERE_YOU_TYPE
from kvstudy.measure import machine
from kvstudy.measure.crew import Crew, Member, part_file_name
from kvstudy.measure.generator import slowest_count
from kvstudy.measure.sampler import OF_THE_GENERATOR, PROCESS_COLUMNS, write_series
from kvstudy.measure.start_in_time import started_in_time
from kvstudy.measure.station import Parts
from kvstudy.measure.supervision import SupervisedLoad, Timing
from kvstudy.plan.run_plan import Configuration
from kvstudy.record import slowest
from kvstudy.subject.protocol import Evidence

T, S = TypeVar("T"), TypeVar("S")
# From the moment when all are told until they begin: connections have to be open by then.
LEADS_S = (2.0, 4.0, 8.0)
STEP_S = 0.1
END_TIMEOUT_S = 4.0
STEP_MAX_NS = 1_000_000  # a clock that moves by more at once was set
TIMES_OF_A_RESULT = ("start_utc", "measure_start_utc", "stop_utc")


@dataclass
class Clocks:
    """Of each host its offset to the run's clock, before and after the load: (run's − its own). ``courses``:
    of each host, that of the run's clock too, how straight its own clock went in between."""

    reference: str
    before: dict[str, Offset] = field(default_factory=dict)
    after: dict[str, Offset] = field(default_factory=dict)
    courses: dict[str, Course] = field(default_factory=dict)

    def moved_s(self, host: str, at_s: float) -> float:
        """What has to be added to the host's time ``at_s`` to get the run's."""
        if host == self.reference:
            return 0.0
        before = self.before[host]
        return moved_by(before, self.after.get(host, before), round(at_s * 1e9)) / 1e9

    def moved_ns(self, host: str, at_ns: int) -> int:
        """The same, in whole nanoseconds."""
        if host == self.reference:
            return 0
        before = self.before[host]
        return round(moved_by(before, self.after.get(host, before), at_ns))

    def bound_s(self, host: str) -> float:
        """How far the moved time may be off: what is not known of both offsets, and how far either clock was
        off the line between them."""
        if host == self.reference:
            return 0.0
        known = [self.before[host], *([self.after[host]] if host in self.after else [])]
        wandered = [self.courses[one].wandered_ns for one in (host, self.reference) if one in self.courses]
        return (max(one.bound_ns for one in known) + sum(wandered)) / 1e9

    def check(self) -> None:
        """RunFailed when a clock was set meanwhile: at once, or by more than any drift in all."""
        for host, course in self.courses.items():
            if abs(course.step_ns) > STEP_MAX_NS:
                raise RunFailed(
                    f"clock of {_in_words(host)} was set while it was measured: it moved by "
                    f"{abs(course.step_ns) / 1e6:.1f} ms at once"
                )
        for host, after in self.after.items():
            before = self.before[host]
            step_ns = abs(after.offset_ns - before.offset_ns)
            allowed = SLEW_MAX * (after.at_ns - before.at_ns) + before.bound_ns + after.bound_ns
            if step_ns > allowed:
                raise RunFailed(
                    f"clock of {_in_words(host)} was set while it was measured: it moved by "
                    f"{step_ns / 1e6:.1f} ms against that of {self.reference}"
                )

    def facts(self) -> dict:
        def of(offsets: dict[str, Offset]) -> dict:
            return {
                host: {
                    "at_utc": _to_the_nanosecond(one.at_ns),
                    "offset_us": round(one.offset_ns / 1e3, 3),
                    "bound_us": round(one.bound_ns / 1e3, 3),
                    "round_trip_us": round(one.round_trip_ns / 1e3, 3),
                }
                for host, one in offsets.items()
            }

        wandered = {host: round(one.wandered_ns / 1e3, 3) for host, one in self.courses.items()}
        return {
            "reference": self.reference,
            "before": of(self.before),
            "after": of(self.after),
            "wandered_us": wandered,
        }


def _in_words(host: str) -> str:
    """``host``: its name, empty for this machine, which takes part where a service runs at an address."""
    return f"host {host}" if host else WHERE_YOU_TYPE


class SeveralHostsLoad:
    """``folder``: of the run, on this machine. ``entered``, ``tick``: as of a ``Supervision``."""

    def __init__(
        self,
        crew: Crew,
        configuration: Configuration,
        folder: Path,
        loadgen: Path,
        entered: Callable[[str], None],
        tick: Callable[[], None],
    ):
        self._crew, self._configuration, self._folder, self._loadgen = crew, configuration, folder, loadgen
        self._entered, self._tick = entered, tick
        self._reference = crew.generators[0]
        self.clocks = Clocks(self._reference.host.name)
        self.sampled: dict[str, list[dict]] = {}

    def run(self, url: str, over: str) -> datetime:
        """When the load began, by the run's clock. ``over``: a word that no other run has. RunFailed after
        all of it has ended."""
        tries = count(1)
        return started_in_time(lambda lead_s: self._tried(url, f"{over} try {next(tries)}", lead_s), LEADS_S)

    def _tried(self, url: str, over: str, lead_s: float) -> datetime:
        self._entered("warm_up")
        port = self._reference.station.open_clock()
        watches = Watches(self._crew)
        compare_clocks(self._crew, self.clocks.before, port)
        start_s = self._reference.station.now_s() + lead_s
        ours = time.monotonic() + lead_s
        parts_of = len(self._crew.generators)
        generating: dict[Member, Callable[[], SupervisedLoad]] = {}
        for number, member in enumerate(self._crew.generators, start=1):
            at_s = start_s - self.clocks.moved_s(member.host.name, start_s)
            parts = Parts(
                f"{number}/{parts_of}" if parts_of > 1 else None, _to_the_nanosecond(round(at_s * 1e9))
            )
            generating[member] = partial(self._generate, member, url, parts, at_s, over)
        service = self._crew.service
        timing = self._timing(start_s - self.clocks.moved_s(service.host.name, start_s), over)
        try:
            generated, attended = all_at_once(
                self._crew,
                generating,
                lambda: service.station.attend(timing),
                over,
                phases_by_time(ours, self._configuration.warm_up_s, self._entered, self._tick),
            )
        except HostLost:
            raise
        except RunFailed:
            # Whether the service failed by itself, or for what others did on its host, its seconds say.
            with suppress(HostLost):
                self.sampled[service.host.name] = service.station.sampled()
            raise
        for member, of_member in {service: attended, **generated}.items():
            self.sampled[member.host.name] = of_member.rows
        compare_clocks(self._crew, self.clocks.after, port)
        self.clocks.courses = watches.courses()
        self._reference.station.close_clock()
        self._collect()
        self.clocks.check()
        return datetime.fromtimestamp(start_s, UTC)

    def clock_of_service(self, at_s: float) -> float:
        """A time of the service's host by the run's clock."""
        return at_s + self.clocks.moved_s(self._crew.service.host.name, at_s)

    def load_during(self) -> dict | None:
        """The worst of all hosts; the machine where it was typed is none of them, where the service runs at
        an address."""
        away = {member.host.name for member in self._crew.members if member.host.is_remote}
        all_of = [
            one for name, rows in self.sampled.items() if name in away and (one := machine.load_during(rows))
        ]
        names = dict.fromkeys(name for one in all_of for name in one)
        return {name: max(one[name] for one in all_of if name in one) for name in names} or None

    def _timing(self, at_s: float, over: str) -> Timing:
        one = self._configuration
        return Timing(one.warm_up_s, one.duration_s, one.timeout_s, at_s, over)

    def _generate(self, member: Member, url: str, parts: Parts, at_s: float, over: str) -> SupervisedLoad:
        (command,) = member.station.commands(url, None, parts)
        return member.station.generate(command, True, None, at_s, over)

    # ---- one result of many ------------------------------------------------------------------------------

    def _collect(self) -> None:
        """The files of all generators, and what they are together."""
        count = len(self._crew.generators)
        for member in self._crew.generators:
            member.fetch(self._folder, partial(self._crew.named, member))
        if count > 1:
            self._merge(count)
        self._merge_process()

    def _merge(self, count: int) -> None:
        def parts(name: str) -> list[Path]:
            return [self._folder / part_file_name(name, number) for number in range(1, count + 1)]

        logs, slow = parts("latency.hlog"), parts("slowest.csv")
        results = [
            by_run_clock(
                json.loads(path.read_text(encoding="utf-8")), partial(self.clocks.moved_ns, member.host.name)
            )
            for member, path in zip(self._crew.generators, parts("generator.json"), strict=True)
        ]
        whole = ("--json", self._folder / "generator.json", "--hlog", self._folder / "latency.hlog")
        text = merge(self._loadgen, results, "--text", "-L", *whole, *logs)
        (self._folder / "generator.txt").write_text(text, encoding="utf-8")
        (self._folder / "slowest.csv").write_text(
            slowest.merged(
                [path.read_text() for path in slow],
                [path.name for path in slow],
                slowest_count(self._configuration),
            )
        )
        commands = [path.read_text() for path in parts("generator.cmd")]
        (self._folder / "generator.cmd").write_text("\n".join(commands))
        for path in [*logs, *slow, *parts("generator.cmd")]:
            path.unlink()

    def _merge_process(self) -> None:
        """The service's host's seconds of the load, with what all generators used in them; a second that a
        generator's host was too busy to be read in has no such cells."""
        rows = self.sampled[self._crew.service.host.name]
        of_each = [
            {row["second"]: row for row in self.sampled[member.host.name]} for member in self._crew.generators
        ]
        used = {
            second: {name: round(sum(own[second][name] for own in of_each), 6) for name in OF_THE_GENERATOR}
            for second in set.intersection(*map(set, of_each))
        }
        seconds = [second for own in of_each for second in own]
        loaded = range(min(seconds), max(seconds) + 1) if seconds else ()
        whole = [row | used.get(row["second"], {}) for row in rows if row["second"] in loaded]
        columns = tuple(name for name in PROCESS_COLUMNS if any(name in row for row in whole))
        write_series(self._folder / "process.csv", columns, whole)


def by_run_clock(result: dict, moved_ns: Callable[[int], int]) -> dict:
    """What a generator found, with its times by the run's clock. ``moved_ns``: what has to be added to a time
    of its host."""

    def at(utc: str) -> str:
        own_ns = round(datetime.fromisoformat(utc).timestamp() * 1e6) * 1000
        return _to_the_nanosecond(own_ns + moved_ns(own_ns))

    return result | {name: at(result[name]) for name in TIMES_OF_A_RESULT}


def merge(loadgen: Path, results: list[dict], *arguments: str | Path) -> str:
    """What ``loadgen merge`` prints of these results, whose times are by one clock: it sets them beside one
    another. RunFailed when they are not those of one load."""
    with tempfile.TemporaryDirectory() as aside:
        parts = [Path(aside) / part_file_name("generator.json", number + 1) for number in range(len(results))]
        for path, result in zip(parts, results, strict=True):
            path.write_text(json.dumps(result), encoding="utf-8")
        words = [str(loadgen), "merge", *map(str, (*arguments, *parts))]
        done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise RunFailed(f"results of the generators cannot be merged: {said[-1] if said else 'no reason'}")
    return done.stdout


def phases_by_time(
    start: float, warm_up_s: float, entered: Callable[[str], None], tick: Callable[[], None]
) -> Callable[[], None]:
    """Called all the time, tells when the measured window begins of a load that goes on elsewhere. ``start``:
    by ``time.monotonic()``, near enough to say in which phase something happened."""
    begun = False

    def step() -> None:
        nonlocal begun
        if not begun and time.monotonic() >= start + warm_up_s:
            begun = True
            entered("measure")
        tick()

    return step


class Watches:
    """The wall clocks of all hosts, each seen by itself, from now on."""

    def __init__(self, crew: Crew):
        self._since = {member: member.station.watch_clock() for member in crew.members}

    def courses(self) -> dict[str, Course]:
        return {member.host.name: member.station.clock_course(since) for member, since in self._since.items()}


def compare_clocks(crew: Crew, offsets: dict[str, Offset], port: int) -> None:
    """Of all hosts with that of the first generator's, where a clock is open at ``port``. HostLost also where
    one is gone of which the others only see that it does not answer."""
    reference = crew.generators[0]
    for member in crew.members:
        if member != reference:
            try:
                offsets[member.host.name] = member.station.clock_offset(reference.host.address, port)
            except RunFailed:
                reference.host.settle()
                if reference.host.is_remote:
                    reference.host.now_ns()
                raise


def all_at_once(
    crew: Crew,
    generating: Mapping[Member, Callable[[], T]],
    attending: Callable[[], S] | None,
    over: str,
    step: Callable[[], None],
) -> tuple[dict[Member, T], S | None]:
    """What each generator does, and the service meanwhile, which is told ``over`` when all generators have
    ended; None where its host's generator attends it too. RunFailed after all of it has ended: with the first
    cause. ``step`` is called all the time."""
    with ThreadPoolExecutor(1 + len(generating)) as threads:
        running = {threads.submit(work): member for member, work in generating.items()}
        service = threads.submit(attending) if attending else _nothing_to_attend()
        try:
            left = set(running)
            while left:
                done, _ = wait({*left, service}, STEP_S, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                left -= done
                step()
        except BaseException as error:
            _end_all(crew, [*running, service], over)
            raise _reason(error, running, service) from error
        crew.service.host.tell(over)
        return {member: future.result() for future, member in running.items()}, service.result()


def on_one_host(crew: Crew, work: Callable[[], T], over: str, step: Callable[[], None]) -> T:
    """What the crew's one host does, where service and generator are watched together; as ``all_at_once``."""
    done, _ = all_at_once(crew, {crew.service: work}, None, over, step)
    return done[crew.service]


def _nothing_to_attend() -> Future:
    nothing: Future = Future()
    nothing.set_result(None)
    return nothing


def _end_all(crew: Crew, futures: list[Future], over: str) -> None:
    for member in crew.members:
        member.host.tell(over)
    wait(futures, END_TIMEOUT_S)
    for member in crew.members:  # who still hangs there is not waited for
        if any(not future.done() for future in futures) and member.host.is_remote:
            member.host.abandon("it did not end what it was asked to end")


def _reason(error: BaseException, running: Collection[Future], service: Future) -> BaseException:
    """The first cause: a service that died, then a host that is lost; generators only saw it."""
    if not isinstance(error, KvstudyError):
        return error
    said = [one.exception() for one in (service, *running) if one.done() and one.exception()]
    of_service = service.exception() if service.done() else None
    lost = [one for one in said if isinstance(one, HostLost)]
    if of_service is not None and not isinstance(of_service, HostLost):
        return of_service
    return lost[0] if lost else error


def moved(evidence: Evidence, to: Callable[[float], float]) -> Evidence:
    """With the times of another clock."""

    def at(utc: str) -> str:
        moment = datetime.fromtimestamp(to(datetime.fromisoformat(utc).timestamp()), UTC)
        return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")

    events = evidence.events and {
        kind: [event | {"start_utc": at(event["start_utc"])} for event in of_kind]
        for kind, of_kind in evidence.events.items()
    }
    counters = evidence.counters and {at(utc): values for utc, values in evidence.counters.items()}
    return replace(evidence, events=events, counters=counters)


def _to_the_nanosecond(at_ns: int) -> str:
    whole = datetime.fromtimestamp(at_ns // 10**9, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{at_ns % 10**9:09d}Z"
