"""What of a run happens on one host: the service, a generator, or, on one machine, both.

A run (run.py) says what is to be done; a station does it where it stands, in a folder and a store of its
host. One run at a time. RunFailed says in one line what went wrong.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGSTOP

from kvstudy.errors import RunFailed
from kvstudy.hosts.host import Here
from kvstudy.hosts.process import command_text
from kvstudy.measure import machine
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.base_station import BaseStation
from kvstudy.measure.data_check import DataCheck, check_data
from kvstudy.measure.fill import Fills
from kvstudy.measure.generator import GeneratorCommand, generator_commands
from kvstudy.measure.head_start import head_start
from kvstudy.measure.outcome import Answers
from kvstudy.measure.progress import Second
from kvstudy.measure.supervision import SupervisedLoad, Supervision, Timing
from kvstudy.plan.run_plan import PlannedRun
from kvstudy.project import workloads_root
from kvstudy.subject.evidence.profiler import AttachedProfiler, Seen
from kvstudy.subject.protocol import Evidence, LiveSubject, Place

# Attaching takes a third of a second, and longer on a busy machine; begun so much before the window, the
# profiler runs when the window begins. What it sees before is left out.
PROFILER_LEAD_S = 1.0
# The window ends as much behind its planned time as the generator needed to start; with its exit the profiler
# is stopped in any case.
PROFILER_LAG_S = 1.0
PROFILE = "profile.jfr"


@dataclass(frozen=True)
class Parts:
    """Which part of the load a generator makes, and when all of them begin; None: the whole, at once."""

    part: str | None = None
    start_at: str | None = None


class Station(BaseStation):
    def __init__(self, here: Here, artifacts: Artifacts, fills: Fills):
        super().__init__(here, artifacts, fills)
        self._subject: LiveSubject | None = None
        self._profiler: AttachedProfiler | None = None
        self._profiled: list[float] = []  # when it began, and when it ended: seconds since the epoch
        self._supervision: Supervision | None = None

    def begin(self, planned: PlannedRun, folder: Path, run_id: str) -> dict:
        """Facts of the machine."""
        self._planned, self._configuration = planned, planned.configuration
        self._subject = self._profiler = self._supervision = None
        self._profiled = []
        return self.enter(folder, run_id)

    # ---- the service's ---------------------------------------------------------------------------------

    def restore(self) -> None:
        self._fills.restore(self._configuration, self._store)

    def facts_before(self) -> dict:
        return machine.disk_facts(self._store) | {"load_before": machine.load_now()}

    def launch(self, port: int, cores: list[int] | None) -> str:
        """Its address."""
        place = Place(
            self._store,
            self._folder,
            port=port,
            cores=cores,
            registered=self._here.registered,
            profiled=self._planned.profile is not None,
            address=self._here.address,
        )
        self._subject = self._artifacts.subject(self._configuration).launch(place)
        return self._subject.url

    def write_fill(self) -> None:
        """Into a subject that runs, of one whose store is not restored."""
        self._fills.write(self._configuration, self._subject, self._folder / "fill.log")

    def come_to_rest(self) -> None:
        if not self._subject.come_to_rest():
            raise RunFailed("restored store did not come to rest: flush or compaction still runs after 60 s")

    def head_start(self) -> int:
        return head_start(
            self._planned,
            self._subject,
            self._artifacts.loadgen,
            workloads_root(self._here.root),
            self._folder / "head-start.log",
            self._here.registered,
        )

    def attend(self, timing: Timing) -> SupervisedLoad:
        """The service, while generators on other hosts load it, until ``timing.is_over`` is told."""
        self._supervision = Supervision(timing, self._subject, self._here.messages, _ignored, _ignored)
        self._profiler, self._profiled = None, []  # of a load that was started too late for its time
        return self._supervision.watch_service(self._agenda, self._folder / "process.csv")

    def check_alive(self, doing: str) -> None:
        self._subject.check_alive(doing)

    def check(self, answers: Answers) -> DataCheck | None:
        return check_data(self._subject, self._configuration, answers, self._planned.seed)

    def stop(self) -> str | None:
        """What was not in order."""
        return self._subject.stop() if self._subject else None

    def evidence(self) -> Evidence:
        return self._subject.evidence()

    def convert(self, clock_offset_s: float, window: tuple[float, float]) -> None:
        """The profile, where this run has one. ``clock_offset_s``: what has to be added to this host's time
        to get the latency log's; ``window``: begin and end of the measured one, by that log's clock."""
        if self._profiler and len(self._profiled) == 2:
            begin_s, end_s = (at_s + clock_offset_s for at_s in self._profiled)
            seen = Seen(clock_offset_s, window, (begin_s, end_s))
            self._profiler.convert(self._folder / PROFILE, self._planned.profile, self._folder, seen)

    def profiled(self) -> list[float]:
        """When the profiler began and when it was ended, as far as it came: seconds since the epoch, by this
        host's clock. Attaching takes longer on a busy machine: the first seconds may be missing."""
        return self._profiled

    # ---- a generator's ---------------------------------------------------------------------------------

    def commands(
        self, url: str, cores: list[int] | None, parts: Parts | None = None
    ) -> list[GeneratorCommand]:
        """What to run one after the other, as noted in generator.cmd; the last one is the measurement."""
        commands = generator_commands(
            self._artifacts.generators[self._configuration.generator],
            self._configuration,
            url,
            workloads_root(self._here.root),
            self._planned.seed,
            json=self._folder / "generator.json",
            hlog=self._folder / "latency.hlog",
            slowest=self._folder / "slowest.csv",
            cores=cores,
            part=parts.part if parts else None,
            start_at=parts.start_at if parts else None,
        )
        (self._folder / "generator.cmd").write_text(
            "\n".join(command_text(command.argv, command.environment) for command in commands),
            encoding="utf-8",
        )
        return commands

    def generate(
        self,
        command: GeneratorCommand,
        measured: bool,
        cores: list[int] | None,
        starts_at_s: float | None = None,
        is_over: str = "",
        entered: Callable[[str], None] | None = None,
        tick: Callable[[], None] | None = None,
        second: Callable[[Second], None] | None = None,
    ) -> SupervisedLoad:
        """Runs a generator to its end, with the sampler when it is the measured one, and with the service
        where that is here too. ``second``: is called with every second of it."""
        timing = Timing(
            command.measures_from_s, command.length_s, self._configuration.timeout_s, starts_at_s, is_over
        )
        self._supervision = Supervision(
            timing, self._subject, self._here.messages, entered or _ignored, tick or _ignored
        )
        self._profiler, self._profiled = None, []
        if measured and self._subject and self._planned.profile and command.measures_from_s < PROFILER_LEAD_S:
            self._start_profiler()  # wrk and wrk2 measure from their start
        return self._supervision.run_generator(
            self._configuration.generator,
            command,
            cores,
            self._here.registered,
            self._folder / "generator.txt",
            self._folder / "generator.log",
            self._agenda if measured and self._subject else None,
            self._folder / "process.csv" if measured else None,
            second,
        )

    def sampled(self) -> list[dict]:
        """Rows of the last load, also when it failed."""
        return self._supervision.load.rows if self._supervision else []

    # ---- both ------------------------------------------------------------------------------------------

    def are_alike(self, runs: list[dict]) -> list[bool]:
        """Of each run.json whether that run was measured with the programs, the JDK and the script of
        here."""
        return [self._artifacts.are_those_of(facts) for facts in runs]

    def check_unchanged(self) -> None:
        """RunFailed where a program is another one by now."""
        self._artifacts.check_unchanged()

    def tools(self) -> dict:
        """What run.json says of the programs here."""
        return {
            "tool_versions": self._artifacts.versions,
            "tool_digests": self._artifacts.digests_of(self._configuration),
        }

    def end(self) -> None:
        if self._subject:  # of a run that ended before it heard that this was launched
            self._subject.stop()
        super().end()
        for name in self._artifacts.subject(self._configuration).scratch if self._artifacts.subjects else ():
            (self._folder / name).unlink(missing_ok=True)

    def _agenda(self, window: float, end: float) -> list[tuple[float, Callable[[], None]]]:
        """What has to be done to the subject while it is measured, by time."""
        subject, agenda = self._subject, []
        if self._planned.profile:
            if not self._profiler:
                agenda.append((window - PROFILER_LEAD_S, self._start_profiler))
            agenda.append((end + PROFILER_LAG_S, self._stop_profiler))
        if pause := self._configuration.pause:
            agenda.append((window + pause["at"], lambda: subject.send(SIGSTOP)))
            agenda.append((window + pause["at"] + pause["length"], lambda: subject.send(SIGCONT)))
        return sorted(agenda, key=lambda entry: entry[0])

    def _start_profiler(self) -> None:
        self._profiler = self._subject.profiler
        if self._profiler is None:
            raise RunFailed("no profiler can be attached: the process of the service is not known")
        self._profiler.start(self._planned.profile, (self._folder / PROFILE).resolve())
        self._profiled.append(time.time())

    def _stop_profiler(self) -> None:
        self._profiled.append(time.time())
        self._profiler.stop()


def _ignored(*_what: object) -> None:
    pass
