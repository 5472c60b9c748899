"""One run, from an empty folder to a sealed one: launch, warm up, measure, check, stop, convert, seal.

Whatever happens (a service that dies, a generator that fails, Ctrl-C in any phase), the processes are ended
first, then the folder is sealed with the outcome ``failed: why``; only a disk that is full leaves a
``.partial`` behind.
"""

import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kvstudy.errors import HostLost, RunFailed
from kvstudy.hosts.interrupt import shielded
from kvstudy.hosts.session import Session
from kvstudy.measure import machine
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.crew import Crew
from kvstudy.measure.ending import ending_of
from kvstudy.measure.facts import run_facts
from kvstudy.measure.generator import GeneratorCommand
from kvstudy.measure.outcome import Answers, answers_of
from kvstudy.measure.pinning import Pinning
from kvstudy.measure.progress import Progress
from kvstudy.measure.quiet import Patience
from kvstudy.measure.sampler import write_series
from kvstudy.measure.several_hosts import SeveralHostsLoad, moved, on_one_host, phases_by_time
from kvstudy.measure.supervision import SupervisedLoad
from kvstudy.plan.run_plan import PlannedRun
from kvstudy.project import raw_root
from kvstudy.record.run_folder import RunWriter, SealedRun
from kvstudy.subject.evidence.recording import counters_by_second
from kvstudy.subject.protocol import Evidence


@dataclass(frozen=True)
class Bench:
    """What all runs of a measurement share."""

    root: Path
    label: str
    artifacts: Artifacts
    crew: Crew
    session: Session
    progress: Progress
    patience: Patience
    port: int = 0
    search_facts: dict = field(default_factory=dict)
    preset: str | None = None
    same_percent: float = 5.0


class Run:
    """``Run(planned, bench).sealed()`` measures and seals; raises KeyboardInterrupt after sealing when
    interrupted."""

    def __init__(self, planned: PlannedRun, bench: Bench):
        self._planned = planned
        self.result: SealedRun | None = None  # also of one that is interrupted
        self._configuration = planned.configuration
        self._bench = bench
        self._crew = bench.crew
        self._service = bench.crew.service.station
        self._several_hosts: SeveralHostsLoad | None = None
        self._tools: dict | None = None  # of the service's host, where that is another one
        self._phases: dict[str, dict[str, str]] = {}
        self._phase = "launch"
        self._machine: dict = {}
        self._digests: dict[str, str] = {}
        self._data_check: dict | None = None
        self._profiled: dict = {}  # from when to when a profiler ran
        self._pinning: Pinning | None = None

    def sealed(self) -> SealedRun:
        self._bench.patience.wait(self._bench.progress.doing, self._crew.disturbed_now)
        folder = self._new_folder()
        here = folder.path("x").parent

        def measure() -> None:
            self._begin(folder)
            self._measured(folder)
            if self._crew.sees_service:
                self._service.check_unchanged()

        ending = ending_of(measure, lambda: self._phase, lambda error: self._crew.reason(error, here))
        with shielded():
            if self._crew.is_here:
                self._bench.session.end_children()
            ending.evidence_lost(self._crew.end(here))
            self._drop_empty_logs(folder)
            self._bench.progress.doing("seal")
            folder.write_json("machine.json", self._machine)
            bench = self._bench
            facts = run_facts(
                self._planned,
                folder.run_id,
                bench.label,
                ending.outcome,
                bench.artifacts,
                self._phases,
                self._data_check,
                bench.search_facts,
                bench.preset,
                bench.same_percent,
                self._profiled,
                self._digests,
            )
            folder.write_json("run.json", facts | self._where())
            self.result = folder.seal()
        ending.raise_again()
        return self.result

    def _begin(self, folder: RunWriter) -> None:
        """On all hosts of the run."""
        # Now: a script may be saved while the run goes on.
        self._digests = self._bench.artifacts.digests_of(self._configuration)
        self._machine = self._crew.begin(
            self._planned, folder.path("x").parent, folder.run_id, self._configuration.awake
        )
        self._pinning = (
            Pinning(None, None, "not pinned: what runs at an address is not ours to give cores to")
            if self._configuration.spec.url
            else self._crew.pinning(
                self._configuration.threads,
                self._configuration.cores,
                "service and generators on hosts of their own",
            )
        )
        # Now: one whose fill fails is a run of its configuration all the same, and lost by its service.
        disk = self._service.disk_facts() if self._crew.sees_service else {}
        self._machine |= disk | {"pinning": self._pinning.reason}
        if not self._crew.is_here:
            self._tools = self._service.tools()

    def _where(self) -> dict:
        """What run.json says of a run that was not here: on which hosts, and with whose programs."""
        if self._crew.is_here:
            return {}
        named = {
            "service": self._crew.service.host.name,
            "generators": [one.host.name for one in self._crew.generators],
        }
        return (self._tools or {}) | {"hosts": named}

    def _new_folder(self) -> RunWriter:
        """Run ids count seconds; a run that failed within one leaves its second to it."""
        root = raw_root(self._bench.root)
        while True:
            run_id = self._planned.name(datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"))
            taken = [root / self._configuration.experiment / (run_id + suffix) for suffix in ("", ".partial")]
            if not any(path.exists() for path in taken):
                return RunWriter.create(root, self._configuration.experiment, run_id)
            time.sleep(0.1)

    def _measured(self, folder: RunWriter) -> None:
        configuration, service = self._configuration, self._service
        with self._crew.as_one():
            with self._in_phase("fill" if configuration.fill else "launch"):
                service.restore()
            self._machine |= self._crew.facts_before()
            with self._in_phase("launch"):
                url = service.launch(self._bench.port, self._pinning.service)
        try:
            with self._crew.as_one():
                self._rest()
                answers = self._load(folder, url, self._head_start())
                with self._in_phase("check"):
                    service.check_alive("check")
                    self._check(answers)
        finally:
            with shielded(), self._in_phase("stop", changes_outcome=False):
                fault = self._stopped()
        if fault:
            raise RunFailed(fault)
        self._write_evidence(folder, service.evidence())
        if self._planned.profile:
            if self._several_hosts:  # by it the slow seconds are known
                self._crew.service.send(folder.path("latency.hlog"))
            begin_s = self._window_begin_s()
            service.convert(self._clock_offset_s(), (begin_s, begin_s + configuration.measured_s))

    def _window_begin_s(self) -> float:
        return datetime.fromisoformat(self._phases["measure"]["start_utc"]).timestamp()

    def _clock_offset_s(self) -> float:
        """What has to be added to the time of the service's host to get that of the latency log."""
        if not self._several_hosts or "measure" not in self._phases:
            return 0.0
        window_s = self._window_begin_s()
        return self._several_hosts.clock_of_service(window_s) - window_s

    def _note_profiled(self) -> None:
        """From when to when, as far as it came."""
        for name, at_s in zip(("start_utc", "stop_utc"), self._service.profiled(), strict=False):
            self._profiled[name] = _utc(datetime.fromtimestamp(at_s + self._clock_offset_s(), UTC))

    def _stopped(self) -> str | None:
        """What was not in order. Of a host that is lost nobody knows; what runs there ends by itself."""
        self._crew.service.host.settle()
        try:
            if self._planned.profile:
                self._note_profiled()
            return self._service.stop()
        except HostLost as lost:
            return lost.message

    def _write_evidence(self, folder: RunWriter, evidence: Evidence) -> None:
        configuration = self._configuration
        if self._several_hosts:
            evidence = moved(evidence, self._several_hosts.clock_of_service)
        if evidence.memory_group:
            self._machine["memory_group"] = evidence.memory_group
        if evidence.events is not None:
            folder.write_json("events.json", evidence.events)
        window = datetime.fromisoformat(self._phases["measure"]["start_utc"])
        rows = counters_by_second(
            evidence.counters or {}, window, -configuration.warm_up_s, configuration.measured_s
        )
        if rows:
            write_series(folder.path("store.csv"), tuple(rows[0]), rows)

    def _rest(self) -> None:
        """With what it is filled with: restored before its start, or written now."""
        configuration = self._configuration
        if not configuration.fill:
            return
        if not configuration.spec.is_restored:
            with self._in_phase("fill"):
                self._service.write_fill()
        self._service.come_to_rest()

    def _head_start(self) -> int:
        if not self._planned.head_start_writes:
            return 0
        with self._in_phase("head_start"):
            return self._service.head_start()

    def _load(self, folder: RunWriter, url: str, before: int) -> Answers:
        """``before``: records that were written ahead of it."""
        configuration, station = self._configuration, self._service
        if not self._crew.is_one_host:
            return self._load_on_several_hosts(folder, url, before)
        commands = station.commands(url, self._pinning.generator)
        results = (folder.path("generator.json"), folder.path("generator.txt"))
        for command in commands[:-1]:
            with self._in_phase("warm_up"):
                self._generate(folder, command, measured=False)
            before += answers_of(configuration, *results).acknowledged
        self._generate(folder, commands[-1], measured=True)
        self._crew.service.fetch(folder.path("x").parent, only=[path.name for path in results])
        answers = replace(answers_of(configuration, *results), before=before)
        if answers.window_start_utc:
            begin = datetime.fromisoformat(answers.window_start_utc)
            self._phases["warm_up"]["stop_utc"] = _utc(begin)
            self._phases["measure"] = _phase(begin, begin + timedelta(seconds=configuration.measured_s))
        return answers

    def _load_on_several_hosts(self, folder: RunWriter, url: str, before: int) -> Answers:
        configuration = self._configuration
        self._several_hosts = together = SeveralHostsLoad(
            self._crew,
            configuration,
            folder.path("x").parent,
            self._bench.artifacts.loadgen,
            self._enter,
            self._bench.progress.tick,
        )
        try:
            begin = together.run(url, over=folder.run_id)
        finally:
            self._machine["load_during"] = together.load_during()
            self._machine["clocks"] = together.clocks.facts()
        window = begin + timedelta(seconds=configuration.warm_up_s)
        self._phases["warm_up"] = _phase(begin, window)
        self._phases["measure"] = _phase(window, window + timedelta(seconds=configuration.measured_s))
        results = (folder.path("generator.json"), folder.path("generator.txt"))
        return replace(answers_of(configuration, *results), before=before)

    def _generate(self, folder: RunWriter, command: GeneratorCommand, measured: bool) -> None:
        """Runs a generator to its end, watched together with the service."""
        try:
            start_utc = self._generated(folder, command, measured).start_utc
        finally:
            if measured:
                with suppress(HostLost):  # which is said already
                    self._machine["load_during"] = machine.load_during(self._service.sampled())
        if measured:
            begin = start_utc + timedelta(seconds=command.measures_from_s)
            self._phases.setdefault("warm_up", _phase(start_utc, begin))  # unless it had a process of its own
            self._phases["measure"] = _phase(begin, start_utc + timedelta(seconds=command.length_s))

    def _generated(self, folder: RunWriter, command: GeneratorCommand, measured: bool) -> SupervisedLoad:
        progress, cores = self._bench.progress, self._pinning.generator
        if self._crew.is_here:
            return self._service.generate(
                command,
                measured,
                cores,
                entered=self._enter,
                tick=progress.tick,
                second=progress.second if progress.wants_seconds else None,
            )
        over = f"{folder.run_id} load"
        self._enter("warm_up")
        return on_one_host(
            self._crew,
            lambda: self._service.generate(command, measured, cores, is_over=over),
            over,
            phases_by_time(time.monotonic(), command.measures_from_s, self._enter, progress.tick),
        )

    def _check(self, answers: Answers) -> None:
        if not self._configuration.spec.keeps_data:
            return
        check = self._service.check(answers)
        self._data_check = asdict(check) if check else None

    def _drop_empty_logs(self, folder: RunWriter) -> None:
        """A log that says nothing says nothing."""
        of_run = folder.path("x").parent
        for log in [*of_run.glob("generator*.log"), of_run / "head-start.log", of_run / "fill.log"]:
            if log.is_file() and log.stat().st_size == 0:
                folder.remove(log.name)

    def _enter(self, phase: str) -> None:
        self._phase = phase
        self._bench.progress.doing(phase)

    @contextmanager
    def _in_phase(self, name: str, changes_outcome: bool = True):
        """Notes start and stop; ``changes_outcome``: a failure from here on is reported as one of this
        phase."""
        if changes_outcome:
            self._phase = name
        self._bench.progress.doing(name)
        start = datetime.now(UTC)
        try:
            yield
        finally:
            self._phases[name] = _phase(start, datetime.now(UTC))


def _phase(start: datetime, stop: datetime) -> dict[str, str]:
    return {"start_utc": _utc(start), "stop_utc": _utc(stop)}


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
