"""Runs side by side on crews that share no host.

What is handed out is a share (plan/shares.py): all runs that are compared with one another. One of which runs
are sealed already stays on the hosts that measured them. A crew that cannot go on leaves its shares to the
others, which measure them from the beginning: a part on each would be enough for no word.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kvstudy.errors import KvstudyError
from kvstudy.hosts.process import wait_until
from kvstudy.hosts.remote import give_up
from kvstudy.measure import machine
from kvstudy.measure.crew import Crew, crew_name
from kvstudy.plan.run_plan import PlannedRun
from kvstudy.plan.shares import shares
from kvstudy.record.run_folder import SealedRun


@dataclass(frozen=True)
class Share:
    """``missing``: what of ``whole`` is to be measured; ``home``: the crew that has measured the rest, None
    where nothing is sealed."""

    whole: list[PlannedRun]
    missing: list[PlannedRun]
    home: str | None = None

    def anew(self) -> "Share":
        return Share(self.whole, self.whole)


def measured_by(run: SealedRun) -> str | None:
    """The name of the crew; None: one machine."""
    hosts = run.facts.get("hosts")
    return crew_name(hosts["service"], hosts["generators"]) if hosts else None


def measured_here(runs: Mapping[str, SealedRun]) -> dict[str, SealedRun]:
    """Those of this machine alone. A folder of runs may lie on a disk of two machines, and a virtual one be
    copied or given more cores. What was not noted, as before it was, tells none apart."""
    now = machine.fixed_facts()
    return {
        identity: run
        for identity, run in runs.items()
        if measured_by(run) is None
        and all(run.machine.get(name) in (None, now[name]) for name in ("machine_id", "cpu_model", "cores"))
    }


def is_of(run: SealedRun, crew: Crew) -> bool:
    """Whether it was measured there: on hosts of these names, which are the same machines still."""
    if crew.is_here:
        return bool(measured_here({"": run}))
    noted = run.machine.get("hosts") or {}
    return measured_by(run) == crew.names and all(
        noted.get(name, {}).get("machine_id") == known["machine_id"] for name, known in crew.machines.items()
    )


def measured_alike(runs: list[SealedRun], crews: list[Crew]) -> list[bool]:
    """Of each whether it was measured on the hosts of one of these crews, with the programs that the
    service's host has now: what a command names may be another one here."""
    found = [False] * len(runs)
    for crew in crews:
        there = [number for number, run in enumerate(runs) if is_of(run, crew)]
        alike = crew.service.station.are_alike([runs[number].facts for number in there])
        for number, is_alike in zip(there, alike, strict=True):
            found[number] = is_alike
    return found


def of_these_crews(
    whole: list[PlannedRun], sealed: Iterable[SealedRun], crews: list[str]
) -> tuple[list[Share], list[SealedRun]]:
    """What is left to be measured, and the sealed runs that count: of each share those of one crew that is
    there."""
    by_identity = {run.facts["identity"]: run for run in sealed}
    found, kept = [], []
    for share in shares(whole, len(crews)):
        there = {
            run.identity(): one
            for run in share
            if (one := by_identity.get(run.identity())) and measured_by(one) in crews
        }
        homes = [measured_by(one) for one in there.values()]
        home = max(dict.fromkeys(homes), key=homes.count, default=None)
        mine = {identity: one for identity, one in there.items() if measured_by(one) == home}
        kept += mine.values()
        missing = [run for run in share if run.identity() not in mine]
        found.append(Share(share, missing, home))
    return found, kept


def side_by_side(
    todo: list[Share],
    crews: list[Crew],
    measure: Callable[[list[PlannedRun], Crew], None],
    unmeasured: Callable[[list[PlannedRun]], list[PlannedRun]],
) -> None:
    """``measure(runs, crew)`` of every share; ``unmeasured``: what of its runs is left when that failed. The
    first error of a crew when all is over. KeyboardInterrupt, here or in the thread of a crew, after what is
    under way on all crews has been sealed: nothing more is begun."""
    left, errors, changed = [share for share in todo if share.missing], [], threading.Condition()
    stops: list[BaseException] = []
    busy: set[str] = set()
    there = {crew.names for crew in crews}
    is_over = threading.Event()

    def chosen(crew: Crew) -> Share | None:
        """One that it has begun, else one that nobody has."""
        for homes in ({crew.names}, {None}):
            for share in left:
                if share.home in homes:
                    return share
        return next((share for share in left if share.home not in there), None)

    def next_share(crew: Crew) -> Share | None:
        """Waits while another crew may still leave something."""
        with changed:
            while not (found := chosen(crew)) and (busy or left) and not is_over.is_set():
                changed.wait(1.0)
            if found is None or is_over.is_set():
                return None
            left.remove(found)
            busy.add(crew.names)
            return found if found.home in (None, crew.names) else found.anew()

    def done(crew: Crew, rest: Share | None, goes_on: bool) -> None:
        with changed:
            busy.discard(crew.names)
            if not goes_on:
                there.discard(crew.names)
            if rest:
                left.insert(0, rest)
            changed.notify_all()

    def work(crew: Crew) -> None:
        while (share := next_share(crew)) is not None:
            rest, goes_on = None, False
            try:
                measure(share.missing, crew)
                goes_on = True
            except Exception as error:
                errors.append(error)
                if isinstance(error, KvstudyError):
                    rest = share.anew() if unmeasured(share.missing) else None
                    if not is_over.is_set():
                        print(f"hosts {crew.names} measure no more: {error.message}", file=sys.stderr)
                return
            except BaseException as stop:
                stops.append(stop)
                is_over.set()
                return
            finally:
                done(crew, rest, goes_on)

    threads = [threading.Thread(target=work, args=(crew,), name=crew.names) for crew in crews]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads) and not stops:
            wait_until(lambda: stops or not any(thread.is_alive() for thread in threads), 1.0)
        if stops:
            raise stops[0]
    except BaseException:
        is_over.set()
        give_up((member.host for crew in crews for member in crew.members), "interrupted")
        for thread in threads:
            thread.join()
        raise
    bugs = [error for error in errors if not isinstance(error, KvstudyError)]
    if bugs or errors:
        raise (bugs or errors)[0]
