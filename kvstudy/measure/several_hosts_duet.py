"""A part of a duet's launch over hosts: both sides on one, the generators that send to them in turn on
others.

    clocks compared → start time → slices, and counters read at their borders → clocks compared again

Slices are named by the clock of the first generator's host. Each other host is told the start, or the
borders, by its own, and when the service's host has read them is moved back, along the line through both
comparisons. Several generators have the same slices, drawn from one seed; what they found is merged slice by
slice.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from kvstudy.errors import RunFailed
from kvstudy.measure.crew import Crew, Member
from kvstudy.measure.duet_part import GRACE_S, LEADS_S, Attended, Part, PlannedPart, Turn, part_of
from kvstudy.measure.several_hosts import Clocks, Watches, all_at_once, by_run_clock, compare_clocks, merge
from kvstudy.measure.start_in_time import started_in_time
from kvstudy.plan.comparison import Load, Slices


@dataclass
class SeveralHostsDuet:
    """``folder``: of the launch, on this machine. ``clocks``: from the first part's begin to the last one's
    end."""

    crew: Crew
    folder: Path
    run_id: str
    loadgen: Path
    tick: Callable[[], None]
    clocks: Clocks = field(init=False)
    _watches: Watches | None = None
    _parts: int = 0

    def __post_init__(self) -> None:
        self.clocks = Clocks(self.crew.generators[0].host.name)

    def run_part(self, doing: str, load: Load, slices: Slices, turn: Turn) -> Part:
        """RunFailed in one line; all of it has ended then."""
        return started_in_time(lambda lead_s: self._tried(doing, load, slices, turn, lead_s), LEADS_S)

    def _tried(self, doing: str, load: Load, slices: Slices, turn: Turn, lead_s: float) -> Part:
        service, generator = self.crew.service, self.crew.generators[0]
        there, clocks = service.host.name, Clocks(generator.host.name)
        self._parts += 1
        over = f"{self.run_id} part {self._parts}"
        plans = self._planned(load, slices, turn)
        planned = plans[generator]
        port = generator.station.open_clock()
        watches = Watches(self.crew)
        self._watches = self._watches or watches
        compare_clocks(self.crew, clocks.before, port)
        self.clocks.before = self.clocks.before or clocks.before
        start_ns = round((generator.station.now_s() + lead_s) * 1e9)
        borders = planned.times.after(start_ns).borders
        borders_there = {at_ns - clocks.moved_ns(there, at_ns): at_ns for at_ns in borders}
        at_most_s = lead_s + slices.duration_s + load.a.timeout_s + 2 * GRACE_S
        generated, attended = all_at_once(
            self.crew,
            {
                member: partial(
                    member.station.generate_part,
                    plans[member],
                    start_ns - clocks.moved_ns(member.host.name, start_ns),
                    over,
                )
                for member in self.crew.generators
            },
            lambda: service.station.attend_part(doing, list(borders_there), over, at_most_s),
            over,
            self.tick,
        )
        compare_clocks(self.crew, clocks.after, port)
        generator.station.close_clock()
        self.clocks.after = clocks.after
        clocks.courses, self.clocks.courses = watches.courses(), self._watches.courses()
        clocks.check()
        self.clocks.check()
        moved = {
            borders_there[at_ns]: replace(
                border,
                read_at_ns=border.read_at_ns + clocks.moved_ns(there, border.read_at_ns),
                done_at_ns=border.done_at_ns + clocks.moved_ns(there, border.done_at_ns),
            )
            for at_ns, border in attended.borders.items()
        }
        bound_ns = round(clocks.bound_s(there) * 1e9)
        by_reference = Attended(moved, attended.clock_step_ns)
        found = self._together(planned, generated, clocks)
        return part_of(planned, found, start_ns, by_reference, bound_ns)

    def _planned(self, load: Load, slices: Slices, turn: Turn) -> dict[Member, PlannedPart]:
        """Of each generator; all have the slices of the first."""
        of = len(self.crew.generators)
        plans = {
            member: member.station.plan_part(
                load, slices, replace(turn, share=f"{number}/{of}" if of > 1 else None)
            )
            for number, member in enumerate(self.crew.generators, start=1)
        }
        first = plans[self.crew.generators[0]]
        for member, plan in plans.items():
            if plan.times != first.times:
                raise RunFailed(f"host {member.host.name}: its generator plans other slices than the first")
        return plans

    def _together(self, planned: PlannedPart, generated: dict[Member, dict], clocks: Clocks) -> dict:
        """The result of the only generator, or of all; that one is written, too, beside those of each, which
        come at the end of the launch."""
        if len(generated) == 1:
            return generated[self.crew.generators[0]]
        found = [
            by_run_clock(generated[member], partial(clocks.moved_ns, member.host.name))
            for member in self.crew.generators
        ]
        whole = self.folder / planned.file("json").name
        merge(self.loadgen, found, "--json", whole)
        return json.loads(whole.read_text(encoding="utf-8"))

    def clock_of_service(self, at_s: float) -> float:
        """A time of the service's host by the generator's clock."""
        return at_s + self.clocks.moved_s(self.crew.service.host.name, at_s)
