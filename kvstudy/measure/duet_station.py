"""What of a duet's launch happens on one host: both services, the generator that sends to them in turn, or,
on one machine, all of it.

A launch (duet.py) says what is to be done; a station does it where it stands. One launch at a time. RunFailed
says in one line what went wrong, and ``ends`` whose doing it was.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TypeVar

from kvstudy.errors import RunFailed
from kvstudy.hosts.host import Here
from kvstudy.measure import machine
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.base_station import BaseStation
from kvstudy.measure.data_check import check_sample
from kvstudy.measure.duet_part import (
    Attended,
    Part,
    PlannedPart,
    Turn,
    attend_part,
    generate_part,
    planned_part,
    run_part,
)
from kvstudy.measure.duet_sides import (
    End,
    LiveSide,
    check_memory,
    chosen_ports,
    launch_sides,
    name_side,
    record_fault,
    store_of,
)
from kvstudy.measure.fill import Fills
from kvstudy.plan.comparison import SIDES, Comparison, Launch, Load, Slices
from kvstudy.project import workloads_root
from kvstudy.record.duet import generator_file, side_file
from kvstudy.subject.evidence.profiler import AttachedProfiler, cpu_engine
from kvstudy.subject.jdk import find_jdk
from kvstudy.subject.protocol import Evidence

T = TypeVar("T")


class DuetStation(BaseStation):
    def __init__(self, here: Here, artifacts: Artifacts, fills: Fills, comparison: Comparison):
        super().__init__(here, artifacts, fills)
        self._comparison = comparison
        self._live: dict[str, LiveSide] = {}
        self._ends: dict[str, End] = {}
        self._attached: dict[str, AttachedProfiler] = {}

    def begin(self, launch: Launch, folder: Path, run_id: str) -> dict:
        """Facts of the machine."""
        self._launch = launch
        return self.enter(folder, run_id)

    # ---- the services' ---------------------------------------------------------------------------------

    def check_room(self) -> None:
        """KvstudyError when there are no ports for both, or no memory."""
        chosen_ports(self._comparison.experiment.port, self._here.address)
        check_memory(self._comparison)

    def digests(self) -> dict[str, str | None]:
        """Of both sides' programs here."""
        return {side: self._artifacts.subject_digest(self._comparison.loads[0].of(side)) for side in SIDES}

    def jdk(self) -> str:
        """Its version; empty where no side needs one."""
        needs_jdk = any(
            load.of(side).spec.has_our_jvm or load.of(side).spec.jvm
            for load in self._comparison.loads
            for side in SIDES
        )
        return find_jdk().version if needs_jdk else ""

    def versions(self) -> dict[str, str]:
        return self._artifacts.versions

    def make_fills(self) -> None:
        for side in SIDES:
            self._fills.make(store_of(self._comparison, side))

    def facts_before(self) -> dict:
        self._store.mkdir(parents=True)
        return machine.disk_facts(self._store) | {"load_before": machine.load_now()}

    def launch(self, cores: list[int] | None) -> dict[str, str]:
        """Addresses of both, by side."""
        launch_sides(
            self._comparison,
            self._launch,
            self._artifacts,
            self._fills,
            self._store,
            self._folder,
            cores,
            self._here.registered,
            self._live,
            self._ends,
            self._here.address,
        )
        return {side: one.live.url for side, one in self._live.items()}

    def attend_part(self, doing: str, borders_ns: list[int], is_over: str, at_most_s: float) -> Attended:
        """Both, while a generator on another host sends to them, until ``is_over`` is told."""
        told = self._here.messages
        return attend_part(
            self._pids, borders_ns, lambda: is_over in told, partial(self.check_alive, doing), at_most_s
        )

    def check_alive(self, doing: str) -> None:
        _of_each(self._live.values(), lambda one: one.check_alive(doing))

    def blame(self, side: str, fault: str) -> None:
        """For what was found of a side where its generator is."""
        self._ends[side].fault = fault

    def start_profilers(self, events: tuple[str, ...]) -> tuple[bool, str | None]:
        """Of both sides. Whether one runs, and why not all that could be."""
        for one in self._live.values():
            one.begin_profile()
        try:
            for side, one in self._live.items():
                if profiler := one.live.profiler:
                    profiler.start(events, self._recording(side))
                    self._attached[side] = profiler
        except RunFailed as error:
            return bool(self._attached), error.message
        return bool(self._attached), None

    def excuse_profiled(self) -> None:
        """Their profiled slices failed: nobody is to blame for that."""
        for one in self._live.values():
            one.excuse_profile()

    def stop_profilers(self) -> str | None:
        """Why there is not all of it."""
        note = None
        for profiler in list(self._attached.values()):
            try:
                profiler.stop()
            except RunFailed as error:
                note = note or error.message
        return note

    def cpu_engine(self) -> str:
        return cpu_engine()

    def convert(self, events: tuple[str, ...]) -> str | None:
        """The profiles; why there is not all of it."""
        note = None
        for side, profiler in self._attached.items():
            for event in events:
                try:
                    profiler.convert_event(self._live[side].file("profile.jfr"), event, self._live[side].file)
                except RunFailed as error:
                    note = note or error.message
        return note

    def check(self, samples: Mapping[str, list[dict]]) -> None:
        """RunFailed when a side has lost what it acknowledged, or a program is another one by now."""
        self._artifacts.check_unchanged()
        _of_each(
            [(side, one) for side, one in self._live.items() if not one.is_gone],
            lambda live: self._check_data(*live, samples[live[0]]),
        )

    def _check_data(self, side: str, one: LiveSide, sample: list[dict]) -> None:
        if not one.configuration.spec.keeps_data:
            return
        loads = [load.of(side) for load in self._comparison.loads]
        one.check_alive("check")
        with name_side(one.name), record_fault(one.end):
            found = check_sample(one.live.url, loads, sample, self._launch.seed)
        one.end.data_check = asdict(found) if found else None
        if found and found.missing + found.wrong:
            raise RunFailed(
                f"side {one.name} lost data: sampled={found.sampled} missing={found.missing} "
                f"wrong={found.wrong}"
            )

    def stop(self) -> list[str]:
        """Ends both; of those that did not end in order, why."""
        return [fault for one in list(self._live.values()) if (fault := one.stop())]

    def ends(self) -> dict[str, End]:
        return self._ends

    def evidence(self) -> dict[str, Evidence]:
        """Of both at once: each waits for a JVM that prints its recording."""
        with ThreadPoolExecutor() as threads:
            found = {
                side: threads.submit(one.live.evidence) for side, one in self._live.items() if not one.is_gone
            }
        return {side: evidence.result() for side, evidence in found.items()}

    # ---- the generator's -------------------------------------------------------------------------------

    def generator_digests(self) -> dict[str, str]:
        return self._artifacts.generator_digests

    def plan_part(self, load: Load, slices: Slices, turn: Turn) -> PlannedPart:
        return planned_part(
            self._artifacts.generators["loadgen"],
            workloads_root(self._here.root),
            load,
            slices,
            turn,
            self._folder,
            Path(generator_file(load.workload, slices.loop)).stem,
        )

    def generate_part(self, planned: PlannedPart, start_ns: int, is_over: str) -> dict:
        """What it found. ``is_over``: told when the launch has failed elsewhere."""
        return generate_part(planned, start_ns, self._here.registered, partial(self._check_not_over, is_over))

    def _check_not_over(self, word: str) -> None:
        if word in self._here.messages:
            raise RunFailed("generator was ended: the launch failed elsewhere")

    # ---- both ------------------------------------------------------------------------------------------

    def run_part(
        self,
        doing: str,
        load: Load,
        slices: Slices,
        turn: Turn,
        tick: Callable[[], None] | None = None,
        is_over: str = "",
    ) -> Part:
        """Services and generator on one machine. ``is_over``: told when all of it has to end."""
        return run_part(
            self.plan_part(load, slices, turn),
            self._pids,
            self._here.registered,
            partial(self.check_alive, doing),
            tick or partial(self._check_not_over, is_over),
        )

    def end(self) -> None:
        """The recordings have become events."""
        super().end()
        self._live, self._ends, self._attached = {}, {}, {}
        if not self._artifacts.subjects:  # a generator's host
            return
        sides = [(side, load.of(side)) for side in SIDES for load in self._comparison.loads]
        for side, one in sides:
            for name in self._artifacts.subject(one).scratch:
                (self._folder / side_file(name, side)).unlink(missing_ok=True)

    @property
    def _pids(self) -> dict[str, tuple[int, ...]]:
        return {side: one.live.pids for side, one in self._live.items()}

    def _recording(self, side: str) -> Path:
        return self._live[side].file("profile.jfr").resolve()


def _of_each(sides: Iterable[T], work: Callable[[T], None]) -> None:
    """Also of the second where the first fails: both may have. Raises the first failure."""
    failed = []
    for one in sides:
        try:
            work(one)
        except RunFailed as error:
            failed.append(error)
    if failed:
        raise failed[0]
