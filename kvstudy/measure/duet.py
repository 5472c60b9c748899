"""One launch of a duet, from an empty folder to a sealed one: both sides at once, one generator that sends to
them in turn.

    restore two copies of one store → start both, in the order drawn → for each load: warm-up, slices at
    the rate, slices in a closed loop
    → profiles of both in slices of their own → read back from both → stop both → seal

Whatever happens (a side that dies, a generator that fails, Ctrl-C in any phase), all processes are ended
first, then the folder is sealed with the outcome ``failed: why``; the slices that were measured until then
stay in it."""

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from kvstudy.errors import KvstudyError, RunFailed, in_words
from kvstudy.hosts.interrupt import shielded
from kvstudy.hosts.session import Session
from kvstudy.measure import machine
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.awake import kept_awake
from kvstudy.measure.data_check import check_sample
from kvstudy.measure.duet_part import Part, Turn, run_part
from kvstudy.measure.duet_sides import End, LiveSide, launch_sides
from kvstudy.measure.fill import Fills
from kvstudy.measure.pinning import pinning
from kvstudy.measure.quiet import Patience
from kvstudy.plan.comparison import SIDES, Comparison, Launch, Load, Slices, profile_loop
from kvstudy.project import raw_root, work_root, workloads_root
from kvstudy.record.duet import SLICES_FILE, generator_file, side_file, write_slices
from kvstudy.record.run_folder import RunWriter, SealedRun
from kvstudy.subject.evidence.profiler import AttachedProfiler, cpu_engine

CLOCK_STEP_MAX_NS = 1_000_000


@dataclass(frozen=True)
class DuetBench:
    """What all launches of a duet share. ``facts``: of run.json, what is the same in all launches.
    ``doing`` is told what goes on, ``tick`` that time goes by."""

    root: Path
    comparison: Comparison
    artifacts: Artifacts
    fills: Fills
    session: Session
    patience: Patience
    facts: dict
    doing: Callable[[str], None]
    tick: Callable[[], None]


class DuetLaunch:
    """``DuetLaunch(number, bench).sealed()`` measures and seals; raises KeyboardInterrupt after sealing when
    interrupted."""

    def __init__(self, launch: Launch, bench: DuetBench, profile: tuple[str, ...] = ()):
        self._launch, self._bench, self._profile = launch, bench, profile
        self._phases: dict[str, dict[str, str]] = {}
        self._phase = "launch"
        self._machine = dict(machine.fixed_facts())
        self._live: dict[str, LiveSide] = {}
        self._ends: dict[str, End] = {}
        self._rows: list[dict] = []
        self._firsts: dict[str, str] = {}  # whose slice is the first, by part
        self._clock_steps_ms: dict[str, float] = {}  # parts in which the wall clock was set
        self._attached: dict[str, AttachedProfiler] = {}
        self._profile_note: str | None = None  # why there is no profile, or not all of it
        self.waited_s = 0.0  # for a quiet machine, before it began
        self._pinning = pinning(max(load.a.threads for load in bench.comparison.loads))

    def sealed(self) -> SealedRun:
        bench = self._bench
        self.waited_s = bench.patience.wait(bench.doing)
        folder = self._new_folder()
        stores = work_root(bench.root) / "stores" / folder.run_id
        outcome, interrupted, bug = "completed", False, None
        try:
            with kept_awake(bench.comparison.experiment.awake) as facts:
                self._machine |= facts
                self._measured(folder, stores)
        except KeyboardInterrupt:
            outcome, interrupted = f"failed: interrupted during {self._phase}", True
        except KvstudyError as error:
            outcome = f"failed: {error.message}"
        except OSError as error:
            outcome = f"failed: {in_words(error)}"
        except Exception as error:
            outcome, bug = f"failed: {type(error).__name__}: {error}", error
        with shielded():
            self._stop()  # what an interrupt kept from it
            bench.session.end_children()
            shutil.rmtree(
                stores, ignore_errors=True
            )  # first: sealing needs space, and may fail for want of it
            bench.doing("seal")
            self._drop_what_is_not_kept(folder)
            self._machine["load_during"] = load_during(
                [row for row in self._rows if row["loop"] != "profile"]
            )
            folder.write_json("machine.json", self._machine)
            folder.write_text(SLICES_FILE, write_slices(pd.DataFrame(self._rows)))
            folder.write_json("run.json", self._facts(folder.run_id, outcome))
            run = folder.seal()
        if interrupted:
            raise KeyboardInterrupt
        if bug is not None:
            raise bug
        return run

    def _new_folder(self) -> RunWriter:
        """Run ids count seconds; a launch that failed within one leaves its second to it."""
        root, experiment = raw_root(self._bench.root), self._bench.comparison.experiment.name
        while True:
            run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-duet-launch{self._launch.number:02d}"
            if not any((root / experiment / (run_id + suffix)).exists() for suffix in ("", ".partial")):
                return RunWriter.create(root, experiment, run_id)
            time.sleep(0.1)

    def _measured(self, folder: RunWriter, stores: Path) -> None:
        bench = self._bench
        stores.mkdir(parents=True)
        self._machine |= machine.disk_facts(stores) | {
            "load_before": machine.load_now(),
            "pinning": self._pinning.reason,
        }
        try:
            with self._in_phase("launch"):
                launch_sides(
                    bench.comparison,
                    self._launch,
                    bench.artifacts,
                    bench.fills,
                    stores,
                    folder.path("x").parent,
                    self._pinning.service,
                    bench.session.registered,
                    self._live,
                    self._ends,
                )
            samples: dict[str, list[dict]] = {side: [] for side in SIDES}
            for load in bench.comparison.loads:
                for slices in load.loops:
                    part = self._part(folder, load, slices)
                    for side in SIDES:
                        samples[side] += part.samples[side]
            if self._profile:
                self._profile_both(folder)
            with self._in_phase("check"):
                self._check(samples)
        finally:
            with shielded(), self._in_phase("stop", changes_outcome=False):
                faults = self._stop()
        if faults:
            raise RunFailed(faults[0])
        with self._in_phase("convert"):
            self._write_evidence(folder)

    def _part(self, folder: RunWriter, load: Load, slices: Slices) -> Part:
        """Its slices count when all of it was measured, and every answer had a status that was expected."""
        bench = self._bench
        stem = Path(generator_file(load.workload, slices.loop)).stem

        def file(suffix: str) -> Path:
            return folder.path(f"{stem}.{suffix}")

        what = (
            f"{load.workload} "
            f"{ {'profile': 'profile', 'closed': 'closed loop'}.get(slices.loop, 'at the rate') }"
        )
        with self._in_phase(f"{load.workload}_{slices.loop}", told=what):
            first = self._firsts[f"{load.workload} {slices.loop}"] = bench.comparison.first(
                self._launch.number, load.workload, slices.loop
            )
            turn = Turn(
                {side: one.live.url for side, one in self._live.items()},
                {side: one.live.pids for side, one in self._live.items()},
                first,
                self._launch.seed,
                self._pinning.generator,
            )
            part = run_part(
                bench.artifacts.generators["loadgen"],
                workloads_root(bench.root),
                load,
                slices,
                turn,
                file,
                bench.session.registered,
                self._check_alive,
                bench.tick,
            )
        if abs(part.clock_step_ns) > CLOCK_STEP_MAX_NS:
            self._clock_steps_ms[f"{load.workload} {slices.loop}"] = round(part.clock_step_ns / 1e6, 3)
        if part.unexpected:
            statuses = ", ".join(f"{status}: {count}" for status, count in sorted(part.unexpected.items()))
            raise RunFailed(f"unexpected answers: {load.workload}: {statuses}")
        self._rows += part.rows
        return part

    def _check_alive(self) -> None:
        for one in self._live.values():
            one.check_alive(self._phase)

    def _profile_both(self, folder: RunWriter) -> None:
        """Both are sampled all the time; while it is not its turn a side does next to nothing. What was
        measured before counts whether a profiler works or not: its failure is a note."""
        bench, load = self._bench, self._bench.comparison.loads[0]
        attached: dict[str, AttachedProfiler] = {}
        try:
            for side, one in self._live.items():
                if profiler := one.live.profiler:
                    profiler.start(self._profile, one.file("profile.jfr").resolve())
                    attached[side] = profiler
        except RunFailed as error:
            self._profile_note = error.message
        if attached and not self._profile_note:
            self._part(folder, load, profile_loop(bench.comparison.comparing))
        for side, profiler in list(attached.items()):
            try:
                profiler.stop(self._live[side].file("profile.jfr").resolve())
            except RunFailed as error:
                self._profile_note = self._profile_note or error.message
                del attached[side]
        if not attached:
            self._profile_note = (
                self._profile_note or "neither side has a JVM that a profiler could be attached to"
            )
        self._attached = {} if self._profile_note else attached

    def _check(self, samples: Mapping[str, list[dict]]) -> None:
        for side, one in self._live.items():
            if not one.configuration.spec.keeps_data:
                continue
            loads = [load.of(side) for load in self._bench.comparison.loads]
            one.check_alive("check")
            found = check_sample(one.live.url, loads, samples[side], self._launch.seed)
            one.end.data_check = asdict(found) if found else None
            if found and found.missing + found.wrong:
                raise RunFailed(
                    f"side {one.name} lost data: sampled={found.sampled} missing={found.missing} "
                    f"wrong={found.wrong}"
                )

    def _stop(self) -> list[str]:
        """Ends both; of those that did not end in order, why."""
        return [fault for one in list(self._live.values()) if (fault := one.stop())]

    def _write_evidence(self, folder: RunWriter) -> None:
        """Of the profiles as of a profiled run, but for what needs a log of its seconds."""
        for side, one in self._live.items():
            if (events := one.live.evidence().events) is not None:
                folder.write_json(side_file("events.json", side), events)
        for side, profiler in self._attached.items():
            for event in self._profile:
                try:
                    profiler.convert_event(self._live[side].file("profile.jfr"), event, self._live[side].file)
                except RunFailed as error:
                    self._profile_note = self._profile_note or error.message

    def _drop_what_is_not_kept(self, folder: RunWriter) -> None:
        """The recordings have become events; a generator's log that says nothing says nothing."""
        for side in SIDES:
            for name in {
                name
                for load in self._bench.comparison.loads
                for name in self._bench.artifacts.subject(load.of(side)).scratch
            }:
                folder.remove(side_file(name, side))
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
            "sampled_after": list(self._profile) if self._attached else None,
            "profile_note": self._profile_note,
            "clock_steps_ms": self._clock_steps_ms,
            "phases": self._phases,
            "outcome": outcome,
        }
        return facts | ({"profiler": {"cpu_engine": cpu_engine()}} if self._attached else {})

    @contextmanager
    def _in_phase(self, name: str, changes_outcome: bool = True, told: str | None = None):
        """Notes start and stop; ``changes_outcome``: a failure from here on is reported as one of this
        phase."""
        if changes_outcome:
            self._phase = told or name
        self._bench.doing(told or name)
        start = datetime.now(UTC)
        try:
            yield
        finally:
            self._phases[name] = {"start_utc": _utc(start), "stop_utc": _utc(datetime.now(UTC))}


def load_during(rows: list[dict]) -> dict | None:
    """As machine.json has it of a run: what the host and other programs took of all cores, in the counted
    parts of the slices together."""
    cores = machine.fixed_facts()["cores"] or 1
    found = {}
    for name, kept in (("steal_ns", "steal_share"), ("foreign_ns", "foreign_cpu_share")):
        shares = [
            (row[name], (row["end_utc_ns"] - row["begin_utc_ns"]) * cores)
            for row in rows
            if row.get(name) is not None
        ]
        if shares:
            found[f"{kept}_mean"] = round(
                sum(used for used, _ in shares) / sum(time_ns for _, time_ns in shares), 4
            )
            found[f"{kept}_max"] = round(max(used / time_ns for used, time_ns in shares), 4)
    return found or None


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
