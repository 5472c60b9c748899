"""One launch of a duet, from an empty folder to a sealed one: both sides at once, a generator, or several,
that sends to them in turn.

    restore two copies of one store → start both, in the order drawn → for each load: warm-up, slices at
    the rate, slices in a closed loop
    → profiles of both in slices of their own → read back from both → stop both → seal

Both sides are on one host; the generator is there too, or on another one, or several on others.

Whatever happens (a side that dies, a generator that fails, Ctrl-C in any phase), all processes are ended
first, then the folder is sealed with the outcome ``failed: why``; the slices that were measured until then
stay in it."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from kvstudy.errors import HostLost, RunFailed
from kvstudy.hosts.interrupt import shielded
from kvstudy.hosts.session import Session
from kvstudy.measure import machine
from kvstudy.measure.border_counters import Taken
from kvstudy.measure.crew import Crew
from kvstudy.measure.duet_part import Part, Turn
from kvstudy.measure.duet_sides import End
from kvstudy.measure.ending import ending_of
from kvstudy.measure.generator import SideSilent
from kvstudy.measure.pinning import OF_A_DUET, Pinning
from kvstudy.measure.quiet import Patience
from kvstudy.measure.sampler import write_series
from kvstudy.measure.several_hosts import moved, on_one_host
from kvstudy.measure.several_hosts_duet import SeveralHostsDuet
from kvstudy.plan.comparison import SIDES, Comparison, Launch, Load, Slices, profile_loop
from kvstudy.project import loadgen_binary, raw_root
from kvstudy.record.duet import SLICES_FILE, side_file, write_slices
from kvstudy.record.run_folder import RunWriter, SealedRun
from kvstudy.subject.evidence.recording import counters_by_second

CLOCK_STEP_MAX_NS = 1_000_000


@dataclass(frozen=True)
class DuetBench:
    """What all launches of a duet share. ``crew``: with stations of duets; ``facts``: of run.json, what is
    the same in all launches. ``doing`` is told what goes on, ``tick`` that time goes by."""

    root: Path
    comparison: Comparison
    crew: Crew
    session: Session
    patience: Patience
    facts: dict
    doing: Callable[[str], None]
    tick: Callable[[], None]


class DuetLaunch:
    """``DuetLaunch(number, bench).sealed()`` measures and seals; raises KeyboardInterrupt after sealing when
    interrupted. KvstudyError when a host that was lost is not there again."""

    def __init__(self, launch: Launch, bench: DuetBench, profile: tuple[str, ...] = ()):
        bench.crew.ready()
        self._launch, self._bench, self._profile = launch, bench, profile
        self._phases: dict[str, dict[str, str]] = {}
        self._phase = "launch"
        self._machine: dict = {}
        self._crew, self._service = bench.crew, bench.crew.service.station
        self._run_id = ""
        self._several: SeveralHostsDuet | None = None
        self._urls: dict[str, str] = {}
        self._ends: dict[str, End] = {}
        self._rows: list[dict] = []
        self._taken: list[Taken] = []  # by the host and other programs, in all parts but that of the profile
        self._firsts: dict[str, str] = {}  # whose slice is the first, by part
        self._clock_steps_ms: dict[str, float] = {}  # parts in which the wall clock was set
        self._is_profiled, self._cpu_engine = False, ""
        self._profile_note: str | None = None  # why there is no profile, or not all of it
        self.waited_s = 0.0  # for a quiet machine, before it began
        self._pinning: Pinning | None = None

    def sealed(self) -> SealedRun:
        bench = self._bench
        self.waited_s = bench.patience.wait(bench.doing, self._crew.disturbed_now)
        folder = self._new_folder()
        here = folder.path("x").parent

        def measure() -> None:
            self._begin(folder)
            self._measured(folder)

        ending = ending_of(measure, lambda: self._phase, lambda error: self._crew.reason(error, here))
        with shielded():
            self._stopped()  # what an interrupt kept from it
            if self._crew.is_here:
                bench.session.end_children()
            ending.evidence_lost(self._crew.end(here))
            bench.doing("seal")
            self._drop_empty_logs(folder)
            self._machine["load_during"] = load_during(self._taken, self._machine.get("cores"))
            folder.write_json("machine.json", self._machine)
            folder.write_text(SLICES_FILE, write_slices(pd.DataFrame(self._rows)))
            folder.write_json("run.json", self._facts(folder.run_id, ending.outcome))
            run = folder.seal()
        ending.raise_again()
        return run

    def _begin(self, folder: RunWriter) -> None:
        """On all hosts of the launch."""
        self._run_id, experiment = folder.run_id, self._bench.comparison.experiment
        self._machine = self._crew.begin(
            self._launch, folder.path("x").parent, folder.run_id, experiment.awake
        )
        threads = max(load.a.threads for load in self._bench.comparison.loads)
        self._pinning = self._crew.pinning(
            threads, experiment.cores or OF_A_DUET, "services and generator on hosts of their own"
        )
        if not self._crew.is_one_host:
            self._several = SeveralHostsDuet(
                self._crew,
                folder.path("x").parent,
                folder.run_id,
                loadgen_binary(self._bench.root),
                self._bench.tick,
            )

    def _new_folder(self) -> RunWriter:
        """Run ids count seconds; a launch that failed within one leaves its second to it."""
        root, experiment = raw_root(self._bench.root), self._bench.comparison.experiment.name
        while True:
            run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-duet-launch{self._launch.number:02d}"
            if not any((root / experiment / (run_id + suffix)).exists() for suffix in ("", ".partial")):
                return RunWriter.create(root, experiment, run_id)
            time.sleep(0.1)

    def _measured(self, folder: RunWriter) -> None:
        bench, service = self._bench, self._service
        self._machine |= self._crew.facts_before() | {"pinning": self._pinning.reason}
        try:
            with self._crew.as_one():
                with self._in_phase("launch"):
                    self._urls = service.launch(self._pinning.service)
                samples: dict[str, list[dict]] = {side: [] for side in SIDES}
                for load in bench.comparison.loads:
                    for slices in load.loops:
                        with self._blaming_who_is_silent():
                            part = self._part(load, slices)
                        for side in SIDES:
                            samples[side] += part.samples[side]
                if self._profile:
                    self._profile_both()
                with self._in_phase("check"):
                    service.check(samples)
        finally:
            if self._several:
                self._machine["clocks"] = self._several.clocks.facts()
            with shielded(), self._in_phase("stop", changes_outcome=False):
                faults = self._stopped()
        if faults:
            raise RunFailed(faults[0])
        with self._in_phase("convert"):
            self._write_evidence(folder)

    @contextmanager
    def _blaming_who_is_silent(self) -> Iterator[None]:
        """The generator found it, and may be on another host; it is the side's doing all the same."""
        try:
            yield
        except SideSilent as silent:
            self._service.blame(silent.side, silent.fault)
            name = self._bench.comparison.names[SIDES.index(silent.side)]
            raise RunFailed(f"side {name}: {silent.fault}") from silent

    def _part(self, load: Load, slices: Slices) -> Part:
        """Its slices count when all of it was measured, and every answer had a status that was expected."""
        bench = self._bench
        what = (
            f"{load.workload} "
            f"{ {'profile': 'profile', 'closed': 'closed loop'}.get(slices.loop, 'at the rate') }"
        )
        with self._in_phase(f"{load.workload}_{slices.loop}", label=what):
            first = self._firsts[f"{load.workload} {slices.loop}"] = bench.comparison.first(
                self._launch.number, load.workload, slices.loop
            )
            turn = Turn(self._urls, first, self._launch.seed, self._pinning.generator)
            part = (
                self._several.run_part(what, load, slices, turn)
                if self._several
                else self._part_on_one_host(what, load, slices, turn)
            )
        if abs(part.clock_step_ns) > CLOCK_STEP_MAX_NS:
            self._clock_steps_ms[f"{load.workload} {slices.loop}"] = round(part.clock_step_ns / 1e6, 3)
        if slices.loop != "profile":
            self._taken += part.taken
        if part.unexpected:
            statuses = ", ".join(f"{status}: {count}" for status, count in sorted(part.unexpected.items()))
            side = part.unexpected_of
            whose = f"; in measured slices {bench.comparison.names[SIDES.index(side)]} alone" if side else ""
            raise RunFailed(f"unexpected answers: {load.workload}: {statuses}{whose}")
        self._rows += part.rows
        return part

    def _part_on_one_host(self, what: str, load: Load, slices: Slices, turn: Turn) -> Part:
        tick, crew = self._bench.tick, self._crew
        if crew.is_here:
            return self._service.run_part(what, load, slices, turn, tick)
        over = f"{self._run_id} {what}"
        return on_one_host(
            crew, lambda: self._service.run_part(what, load, slices, turn, is_over=over), over, tick
        )

    def _profile_both(self) -> None:
        """Both are sampled all the time; while it is not its turn a side does next to nothing. What was
        measured before counts whether a profiler works or not: its failure is a note."""
        bench, load = self._bench, self._bench.comparison.loads[0]
        some, self._profile_note = self._service.start_profilers(self._profile)
        if some and not self._profile_note:
            try:
                self._part(load, profile_loop(bench.comparison.comparing))
            except HostLost:
                raise
            except RunFailed as error:
                self._profile_note = error.message
                self._service.excuse_profiled()
        stopped = self._service.stop_profilers()
        self._profile_note = self._profile_note or stopped
        if not some and not self._profile_note:
            self._profile_note = "neither side has a JVM that a profiler could be attached to"
        self._is_profiled, self._cpu_engine = not self._profile_note, self._service.cpu_engine()

    def _stopped(self) -> list[str]:
        """Ends both; of those that did not end in order, why. Of a host that is lost nobody knows; what runs
        there ends by itself."""
        self._crew.service.host.settle()
        try:
            faults = self._service.stop()
            self._ends = self._service.ends()
            return faults
        except HostLost as lost:
            return [lost.message]

    def _write_evidence(self, folder: RunWriter) -> None:
        """Of each side as of a run; of the profiles too, but for what needs a log of its seconds."""
        groups = {}
        for side, evidence in self._service.evidence().items():
            if self._several:
                evidence = moved(evidence, self._several.clock_of_service)
            if evidence.memory_group:
                groups[side] = evidence.memory_group
            if evidence.events is not None:
                folder.write_json(side_file("events.json", side), evidence.events)
            self._write_counters(folder.path(side_file("store.csv", side)), evidence.counters or {})
        if groups:
            self._machine["memory_groups"] = groups
        if self._is_profiled:
            self._profile_note = self._service.convert(self._profile)

    def _write_counters(self, file: Path, counters: Mapping[str, Mapping[str, float]]) -> None:
        """Those of its warm-up until its last slice; seconds count from the first slice that counts."""
        begin_ns = min(row["begin_utc_ns"] for row in self._rows)
        end_ns = max(row["end_utc_ns"] for row in self._rows)
        warm_up_s = self._bench.comparison.loads[0].loops[0].warm_up_s
        rows = counters_by_second(
            counters, datetime.fromtimestamp(begin_ns / 1e9, UTC), -warm_up_s, (end_ns - begin_ns) / 1e9
        )
        if rows:
            write_series(file, tuple(rows[0]), rows)

    def _drop_empty_logs(self, folder: RunWriter) -> None:
        """A generator's log that says nothing says nothing."""
        for log in folder.path("x").parent.glob("*.log"):
            if log.name.startswith(("generator-", "fill-")) and log.stat().st_size == 0:
                folder.remove(log.name)

    def _facts(self, run_id: str, outcome: str) -> dict:
        launch = self._launch
        facts = self._bench.facts | {
            "run_id": run_id,
            "launch": launch.number,
            "seed": launch.seed,
            "first_started": launch.starts[0],
            "first_port": launch.ports[0],
            "first_place": launch.places[0],
            "first_slices": self._firsts,
            "ends": {side: asdict(self._ends[side]) if side in self._ends else None for side in SIDES},
            "profile": None,
            "sampled_after": list(self._profile) if self._is_profiled else None,
            "profile_note": self._profile_note,
            "clock_steps_ms": self._clock_steps_ms,
            "phases": self._phases,
            "outcome": outcome,
        }
        if not self._crew.is_here:
            generators = [one.host.name for one in self._crew.generators]
            facts["hosts"] = {"service": self._crew.service.host.name, "generators": generators}
        return facts | ({"profiler": {"cpu_engine": self._cpu_engine}} if self._is_profiled else {})

    @contextmanager
    def _in_phase(self, name: str, changes_outcome: bool = True, label: str | None = None):
        """Notes start and stop; ``changes_outcome``: a failure from here on is reported as one of this
        phase."""
        if changes_outcome:
            self._phase = label or name
        self._bench.doing(label or name)
        start = datetime.now(UTC)
        try:
            yield
        finally:
            self._phases[name] = {"start_utc": _utc(start), "stop_utc": _utc(datetime.now(UTC))}


def load_during(taken: Sequence[Taken], cores: int | None = None) -> dict | None:
    """As machine.json has it of a run: what the host and other programs took of all cores, in the counted
    parts of the slices together, by the times at which they were read: on a busy machine that may be too late
    for a slice, and says most of the launch. ``cores``: of the host of both sides."""
    cores = cores or machine.fixed_facts()["cores"] or 1
    found = {}
    for kept, one_of in (
        ("steal_share", lambda one: one.steal_ns),
        ("foreign_cpu_share", lambda one: one.foreign_ns),
    ):
        shares = [(used, one.time_ns * cores) for one in taken if (used := one_of(one)) is not None]
        if time_ns := sum(of_ns for _, of_ns in shares):
            found[f"{kept}_mean"] = round(sum(used for used, _ in shares) / time_ns, 4)
            found[f"{kept}_max"] = round(max(used / of_ns for used, of_ns in shares if of_ns), 4)
    return found or None


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
