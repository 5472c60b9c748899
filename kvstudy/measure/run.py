"""One run, from an empty folder to a sealed one: launch, warm up, measure, check, stop, convert, seal.

Whatever happens (a service that dies, a generator that fails, Ctrl-C in any phase), the processes are ended
first, then the folder is sealed with the outcome ``failed: why``; only a disk that is full leaves a
``.partial`` behind.
"""

import os
import shutil
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from signal import SIGCONT, SIGSTOP

from kvstudy.errors import KvstudyError, RunFailed
from kvstudy.hosts.interrupt import shielded
from kvstudy.hosts.process import OwnedProcess, command_text
from kvstudy.measure import machine
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.awake import kept_awake
from kvstudy.measure.data_check import check_data
from kvstudy.measure.facts import run_facts
from kvstudy.measure.fill import Fills
from kvstudy.measure.generator import GeneratorCommand, check_exit, generator_commands
from kvstudy.measure.head_start import head_start
from kvstudy.measure.outcome import Answers, answers_of
from kvstudy.measure.pinning import Pinning, pinning
from kvstudy.measure.progress import Progress
from kvstudy.measure.quiet import Patience
from kvstudy.measure.sampler import Sampler, write_series
from kvstudy.measure.session import Session
from kvstudy.plan.run_plan import PlannedRun
from kvstudy.project import raw_root, work_root, workloads_root
from kvstudy.record.run_folder import RunWriter, SealedRun
from kvstudy.subject.evidence.recording import counters_by_second
from kvstudy.subject.protocol import Evidence, LiveSubject, Place

POLL_S = 0.02
# Attaching takes about this long; begun so much before the window, the profiler runs when the window begins.
PROFILER_LEAD_S = 0.5
# How long after its planned end a generator may take: it waits for answers in flight up to its timeout.
GENERATOR_GRACE_S = 10.0


@dataclass(frozen=True)
class Bench:
    """What all runs of a measurement share."""

    root: Path
    label: str
    artifacts: Artifacts
    fills: Fills
    session: Session
    progress: Progress
    patience: Patience
    port: int = 0
    search_facts: dict = field(default_factory=dict)
    profile_name: str | None = None
    same_percent: float = 5.0


class Run:
    """``Run(planned, bench).sealed()`` measures and seals; raises KeyboardInterrupt after sealing when
    interrupted."""

    def __init__(self, planned: PlannedRun, bench: Bench):
        self._planned = planned
        self._configuration = planned.configuration
        self._bench = bench
        self._phases: dict[str, dict[str, str]] = {}
        self._phase = "launch"
        self._machine = dict(machine.fixed_facts())
        self._data_check: dict | None = None
        self._pinning: Pinning = pinning(self._configuration.threads)

    def sealed(self) -> SealedRun:
        self._bench.patience.wait(self._bench.progress.doing)
        folder = self._new_folder()
        store = work_root(self._bench.root) / "stores" / folder.run_id
        outcome, interrupted, bug = "completed", False, None
        try:
            with kept_awake(self._configuration.awake) as facts:
                self._machine |= facts
                self._measured(folder, store)
        except KeyboardInterrupt:
            outcome, interrupted = f"failed: interrupted during {self._phase}", True
        except KvstudyError as error:
            outcome = f"failed: {error.message}"
        except Exception as error:
            outcome, bug = f"failed: {type(error).__name__}: {error}", error
        with shielded():
            self._bench.session.end_children()
            shutil.rmtree(
                store, ignore_errors=True
            )  # first: sealing needs space, and may fail for want of it
            self._drop_what_is_not_kept(folder)
            self._bench.progress.doing("seal")
            folder.write_json("machine.json", self._machine)
            bench = self._bench
            folder.write_json(
                "run.json",
                run_facts(
                    self._planned,
                    folder.run_id,
                    bench.label,
                    outcome,
                    bench.artifacts,
                    self._phases,
                    self._data_check,
                    bench.search_facts,
                    bench.profile_name,
                    bench.same_percent,
                ),
            )
            run = folder.seal()
        if interrupted:
            raise KeyboardInterrupt
        if bug is not None:
            raise bug
        return run

    def _new_folder(self) -> RunWriter:
        """Run ids count seconds; a run that failed within one leaves its second to it."""
        root = raw_root(self._bench.root)
        while True:
            run_id = self._planned.name(datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"))
            taken = [root / self._configuration.experiment / (run_id + suffix) for suffix in ("", ".partial")]
            if not any(path.exists() for path in taken):
                return RunWriter.create(root, self._configuration.experiment, run_id)
            time.sleep(0.1)

    def _measured(self, folder: RunWriter, store: Path) -> None:
        configuration, bench = self._configuration, self._bench
        with self._in_phase("fill" if configuration.fill else "launch"):
            bench.fills.restore(configuration, store)
        self._machine |= machine.disk_facts(store) | {
            "load_before": machine.load_now(),
            "pinning": self._pinning.reason,
        }
        with self._in_phase("launch"):
            subject = self._launch(folder, store)
        try:
            self._rest(folder, subject)
            profiler = subject.profiler if self._planned.profile else None
            answers = self._load(folder, subject, self._head_start(folder, subject))
            with self._in_phase("check"):
                subject.check_alive("check")
                self._check(subject, answers)
        finally:
            with shielded(), self._in_phase("stop", changes_outcome=False):
                fault = subject.stop()
        if fault:
            raise RunFailed(fault)
        self._write_evidence(folder, subject.evidence())
        if profiler:
            profiler.convert(folder.path("profile.jfr"), self._planned.profile, folder.path("x").parent)

    def _write_evidence(self, folder: RunWriter, evidence: Evidence) -> None:
        configuration = self._configuration
        if evidence.events is not None:
            folder.write_json("events.json", evidence.events)
        window = datetime.fromisoformat(self._phases["measure"]["start_utc"])
        rows = counters_by_second(
            evidence.counters or {}, window, -configuration.warm_up_s, configuration.measured_s
        )
        if rows:
            write_series(folder.path("store.csv"), tuple(rows[0]), rows)

    def _launch(self, folder: RunWriter, store: Path) -> LiveSubject:
        bench = self._bench
        place = Place(
            store,
            folder.path("x").parent,
            port=bench.port,
            cores=self._pinning.service,
            registered=bench.session.registered,
            profiled=self._planned.profile is not None,
        )
        return bench.artifacts.subject(self._configuration).launch(place)

    def _rest(self, folder: RunWriter, subject: LiveSubject) -> None:
        """With what it is filled with: restored before its start, or written now."""
        configuration = self._configuration
        if not configuration.fill:
            return
        if not configuration.spec.is_restored:
            with self._in_phase("fill"):
                self._bench.fills.write(configuration, subject, folder.path("fill.log"))
        if not subject.come_to_rest():
            raise RunFailed("restored store did not come to rest: flush or compaction still runs after 60 s")

    def _head_start(self, folder: RunWriter, subject: LiveSubject) -> int:
        bench = self._bench
        if not self._planned.head_start_writes:
            return 0
        with self._in_phase("head_start"):
            return head_start(
                self._planned,
                subject,
                bench.artifacts.loadgen,
                workloads_root(bench.root),
                folder.path("head-start.log"),
                bench.session.registered,
            )

    def _load(self, folder: RunWriter, subject: LiveSubject, before: int) -> Answers:
        """``before``: records that were written ahead of it."""
        configuration, bench = self._configuration, self._bench
        commands = generator_commands(
            bench.artifacts.generators[configuration.generator],
            configuration,
            subject.url,
            workloads_root(bench.root),
            self._planned.seed,
            json=folder.path("generator.json"),
            hlog=folder.path("latency.hlog"),
            slowest=folder.path("slowest.csv"),
            cores=self._pinning.generator,
        )
        folder.write_text(
            "generator.cmd",
            "\n".join(command_text(command.argv, command.environment) for command in commands),
        )
        results = (folder.path("generator.json"), folder.path("generator.txt"))
        for command in commands[:-1]:
            with self._in_phase("warm_up"):
                self._generate(folder, subject, command, measured=False)
            before += answers_of(configuration, *results).acknowledged
        self._generate(folder, subject, commands[-1], measured=True)
        answers = replace(answers_of(configuration, *results), before=before)
        if answers.window_start_utc:
            begin = datetime.fromisoformat(answers.window_start_utc)
            self._phases["warm_up"]["stop_utc"] = _utc(begin)
            self._phases["measure"] = _phase(begin, begin + timedelta(seconds=configuration.measured_s))
        return answers

    def _generate(
        self, folder: RunWriter, subject: LiveSubject, command: GeneratorCommand, measured: bool
    ) -> None:
        """Runs a generator to its end, with the sampler, and with profiler and pause at their times when it
        is the measured one."""
        environment = os.environ | command.environment
        stderr = folder.path("generator.log")
        with folder.path("generator.txt").open("wb") as text:
            start, start_utc = time.monotonic(), datetime.now(UTC)
            generator = OwnedProcess(
                command.argv,
                stdout=text.fileno(),
                stderr_path=stderr,
                cores=self._pinning.generator,
                environment=environment,
                registered=self._bench.session.registered,
            )
        window = start + command.measures_from_s
        sampler = (
            Sampler(subject.pids, generator.pid, window, folder.path("process.csv")) if measured else None
        )
        agenda = self._agenda(folder, subject, window, start + command.length_s) if measured else []
        if sampler:
            sampler.start()
        self._phase = "warm_up" if start < window or not measured else "measure"
        self._bench.progress.doing(self._phase)
        try:
            while generator.exit_code is None:
                time.sleep(
                    POLL_S
                )  # not wait(POLL_S), which wakes up five times as often on the cores that are measured
                now = time.monotonic()
                if measured and self._phase == "warm_up" and now >= window:
                    self._phase = "measure"
                    self._bench.progress.doing("measure")
                while agenda and now >= agenda[0][0]:
                    agenda.pop(0)[1]()
                subject.check_alive(self._phase)
                if now > start + command.length_s + self._configuration.timeout_s + GENERATOR_GRACE_S:
                    raise RunFailed(
                        f"generator did not end: planned={command.length_s:g}s waited={now - start:.0f}s"
                    )
                self._bench.progress.tick()
            for _, action in agenda:
                action()
        finally:
            with shielded():
                code = generator.stop(timeout_s=1.0)
                if sampler:
                    self._machine["load_during"] = machine.load_during(sampler.stop())
        subject.check_alive(self._phase)
        check_exit(self._configuration.generator, code, stderr)
        if (lasted := time.monotonic() - start) < command.length_s * 0.95:
            raise RunFailed(f"generator ended too early: planned={command.length_s:g}s lasted={lasted:.1f}s")
        if measured:
            begin = start_utc + timedelta(seconds=command.measures_from_s)
            if command.measures_from_s > 0:
                self._phases["warm_up"] = _phase(start_utc, begin)
            self._phases["measure"] = _phase(begin, start_utc + timedelta(seconds=command.length_s))

    def _agenda(
        self, folder: RunWriter, subject: LiveSubject, window: float, end: float
    ) -> list[tuple[float, object]]:
        """What has to be done to the subject while it is measured, by time."""
        agenda = []
        if self._planned.profile:
            profiler, events, recording = (
                subject.profiler,
                self._planned.profile,
                folder.path("profile.jfr").resolve(),
            )
            agenda.append((window - PROFILER_LEAD_S, lambda: profiler.start(events, recording)))
            agenda.append((end, lambda: profiler.stop(recording)))
        pause = self._configuration.pause
        if pause:
            agenda.append((window + pause["at"], lambda: subject.send(SIGSTOP)))
            agenda.append((window + pause["at"] + pause["length"], lambda: subject.send(SIGCONT)))
        return sorted(agenda, key=lambda entry: entry[0])

    def _check(self, subject: LiveSubject, answers: Answers) -> None:
        if not self._configuration.spec.keeps_data:
            return
        check = check_data(subject, self._configuration, answers, self._planned.seed)
        self._data_check = asdict(check) if check else None

    def _drop_what_is_not_kept(self, folder: RunWriter) -> None:
        """What has become evidence; a generator's log that says nothing says nothing."""
        for name in self._bench.artifacts.subject(self._configuration).scratch:
            folder.remove(name)
        for name in ("generator.log", "head-start.log", "fill.log"):
            log = folder.path(name)
            if log.is_file() and log.stat().st_size == 0:
                folder.remove(name)

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
