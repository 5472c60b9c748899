"""A whole comparison: both sides, launch after launch until what is asked for (every measure, or the primary
one) is decided or the time is over, and where it stands after each.

Launches are sealed one by one; what is sealed stays. With ``resume`` the newest duet of the same comparison
(its ``asked``) goes on; without, a new one begins, whose launches are not pooled with those of before: a duet
that is begun again until its answer pleases would be none."""

import hashlib
import json
import statistics
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from kvstudy.analyse.comparison.launches import ANSWERS_NEEDED, MEASURES, P99_SLICE, ROUNDS_MIN
from kvstudy.analyse.comparison.looks import FIRST_LOOK
from kvstudy.analyse.conditions import machine_identity, machine_ids
from kvstudy.analyse.duets import Duet as FoundDuet
from kvstudy.analyse.duets import duet_of
from kvstudy.analyse.validity import OUTSIDE
from kvstudy.errors import ExperimentError, KvstudyError
from kvstudy.hosts.hosts_file import HostsFile
from kvstudy.hosts.interrupt import interruptible
from kvstudy.hosts.local import LocalHost
from kvstudy.hosts.session import Session
from kvstudy.measure import awake, limits, resumed
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.crew import Crew, Member
from kvstudy.measure.duet import DuetBench, DuetLaunch
from kvstudy.measure.duet_progress import DuetProgress
from kvstudy.measure.duet_sides import check_memory, chosen_ports, side_facts, store_of
from kvstudy.measure.duet_station import DuetStation
from kvstudy.measure.duet_table import MEASURE_NAMES, nothing_to_come, outcome_of, progress_lines, undecided
from kvstudy.measure.execute import clear_up
from kvstudy.measure.fill import Fills, disk_needed
from kvstudy.measure.generator import expected_statuses, script_path
from kvstudy.measure.giving_up import FailuresInARow
from kvstudy.measure.on_hosts import crews_on, duet_station_there, over_a_network
from kvstudy.measure.pinning import pinning
from kvstudy.measure.preconditions import check_disk
from kvstudy.measure.quiet import Patience
from kvstudy.measure.script import script_digest
from kvstudy.plan.comparison import SIDES, Comparison
from kvstudy.plan.run_plan import Configuration, PlannedRun
from kvstudy.plan.run_plan import Plan as RunPlan
from kvstudy.project import raw_root, work_root, workloads_root
from kvstudy.record.duet import is_duet
from kvstudy.record.run_folder import DUET, SCHEMA_VERSION, SealedRun, known_runs
from kvstudy.units import format_duration

PROFILES_TRIED = 2  # a launch each: a machine that was busy for once refuses a profiler once
PAIRS_LEAST = 1 + ROUNDS_MIN  # of which a launch gives a value: the first does not count
FOR_BOTH = " for both sides"
LESS_DISK = "free some space, or choose fewer records, a lower rate or fewer slices"


@dataclass
class DuetInProgress:
    """What is sealed of one comparison. ``over``: why no further launch was begun."""

    comparison: Comparison
    identity: str
    launches: list[SealedRun] = field(default_factory=list)
    over: str = ""

    @property
    def found(self) -> "FoundDuet | None":
        """What its launches say until now."""
        return duet_of(self.launches, self.identity)

    @property
    def answering(self) -> int:
        """Launches that say something: not those that were interrupted or disturbed. One that a side ended
        does."""
        found = self.found
        return int((found.tables.duets["excluded"] != OUTSIDE).sum()) if found else 0


def compare(
    comparison: Comparison,
    root: Path,
    *,
    label: str = "",
    resume: bool = False,
    patience: Patience | None = None,
    hosts: HostsFile | None = None,
    generators: int = 1,
) -> DuetInProgress:
    """Measures; KvstudyError before anything is started when something is missing. Ctrl-C seals the launch
    that goes on as failed. With ``hosts`` both sides are on one of them, and so many generators on others,
    or, of a file of one host, there too: on the same in all launches."""
    if generators > 1:
        comparison = loaded_by_several(comparison, generators)
    within_s = comparison.comparing.within
    check_statuses(comparison)
    check_pairs(comparison)
    progress = DuetProgress(within_s)
    for warning in (
        *([] if hosts else check_here(comparison, root)),
        *without_word(comparison),
        *without_value(comparison),
    ):
        progress.say(warning)
    # A build would be in the way of another measurement, so the session comes first.
    with interruptible(), Session(work_root(root)) as session, ExitStack() as until_end:
        runs = runs_of(comparison)
        artifacts = Artifacts.needed_by(runs, root, on_hosts=hosts is not None)
        clear_up(session, root, comparison.experiment.name)
        if not hosts:
            chosen_ports(comparison.experiment.port)
        fills = Fills(work_root(root), workloads_root(root), artifacts, session.registered, progress.doing)
        if not hosts:
            needed = disk_needed(_stores(comparison), fills, comparison.stores_bytes)
            check_disk(work_root(root), needed, LESS_DISK, FOR_BOTH)
        local = LocalHost(root, work_root(root), session.registered)
        here = Member(local, local.stationed(DuetStation, artifacts, fills, comparison))
        crew = Crew(here, (here,))
        if hosts:
            make = partial(duet_station_there, comparison)
            (crew,) = until_end.enter_context(
                crews_on(
                    *(hosts, work_root(root), session.registered, runs, artifacts, root, generators, here),
                    make=make,
                    at_most=1,
                )
            )
            for told in check_there(comparison, crew):
                progress.say(told)
        digests = digests_of(crew)
        check_difference(comparison, digests)
        asked = comparison.asked(digests | conditions_of(comparison, root, crew))
        if resume:
            check_digests(comparison, digests)
        duet = _resumed(comparison, asked, root, label, progress.say) if resume else None
        if duet:
            progress.say(f"{_are_sealed(len(duet.launches))} already and kept")
        elif resume and (there := len(_sealed_duets(comparison, root))):
            progress.say(
                f"nothing to resume: of {there} launches under data/raw/{comparison.experiment.name} none is "
                "of this comparison with these programs, this label and this machine: a new duet begins"
            )
        duet = duet or DuetInProgress(comparison, _new_identity(asked))
        bench = DuetBench(
            root,
            comparison,
            crew,
            session,
            patience or Patience(0),
            duet_facts(duet, artifacts, crew, digests, asked, label),
            progress.doing,
            progress.tick,
        )
        with crew.as_one():
            crew.service.station.make_fills()
        try:
            _launches(duet, bench, within_s, progress)
        except KeyboardInterrupt:
            progress.say(
                f"{_are_sealed(_sealed_count(duet, root))}; the same command with --resume goes on from here "
                "in the time that is left; interrupted and disturbed ones are none of `launches`"
            )
            raise
    return duet


def _launches(duet: DuetInProgress, bench: DuetBench, within_s: float, progress: DuetProgress) -> None:
    kept_s = [launch_duration_s(run) for run in duet.launches]
    begun, failures = time.monotonic() - sum(kept_s), FailuresInARow("launch")
    took_s, unprofiled_s = duet.comparison.launch_s, []
    most = duet.comparison.comparing.launches
    while not (over := nothing_to_come(duet.found, duet.comparison.comparing.until)):
        left = undecided(duet.found)
        are_undecided = f", and {left} measure{' is' if left == 1 else 's are'} undecided" if left else ""
        if most and duet.answering >= most:
            duet.over = f"no more launches were asked for{are_undecided}"
            return
        if duet.launches and time.monotonic() - begun + took_s > within_s:
            duet.over = (
                f"the time is over ({format_duration(within_s)}; --resume with a longer --within goes "
                f"on){are_undecided}"
            )
            return
        number = 1 + max((run.facts["launch"] for run in duet.launches), default=0)
        refused = sum(bool(run.facts.get("profile_note")) for run in duet.launches)
        sampled = refused >= PROFILES_TRIED or any(run.facts["sampled_after"] for run in duet.launches)
        start = time.monotonic()
        progress.begin(number)
        profile = () if sampled else tuple(duet.comparison.comparing.profile)
        launch = DuetLaunch(duet.comparison.launch(number), bench, profile)
        run = launch.sealed()
        begun += launch.waited_s  # for a quiet machine, which is nobody's launch
        progress.waited(launch.waited_s)
        if not profile:
            unprofiled_s.append(time.monotonic() - start - launch.waited_s)
            took_s = statistics.median(unprofiled_s)
        duet.launches.append(run)
        failed = run.facts["outcome"] != "completed"
        progress.say(
            f"launch {number}: {outcome_of(duet.found, run)}; "
            f"{format_duration(round(time.monotonic() - begun))} of {format_duration(within_s)} gone"
        )
        for line in [] if failed else progress_lines(duet.found, took_s):
            progress.say(line)
        failures.note(run)
    duet.over = over


def launch_duration_s(run: SealedRun) -> float:
    """A sealed launch, from its first phase to its last; without waiting for a quiet machine."""
    times = [datetime.fromisoformat(at) for phase in run.facts["phases"].values() for at in phase.values()]
    return (max(times) - min(times)).total_seconds() if times else 0.0


def without_word(comparison: Comparison) -> list[str]:
    """Where launches are not limited and the time is over before as many as a word needs."""
    comparing = comparison.comparing
    fit = int(comparing.within / comparison.launch_s)
    if fit >= FIRST_LOOK or (comparing.launches or FIRST_LOOK) < FIRST_LOOK:
        return []
    return [
        f"no word will be said: within {format_duration(comparing.within)} there is time for {fit} launch"
        f"{'es' * (fit != 1)} of about {format_duration(round(comparison.launch_s))}, and a word needs "
        f"{FIRST_LOOK}: --within {format_duration(comparison.time_for_words_s)}"
    ]


def check_statuses(comparison: Comparison) -> None:
    """ExperimentError where one status cannot be expected of both sides: loadgen is told of it once."""
    for load in comparison.loads:
        of_a, of_b = (expected_statuses(load.of(side)) for side in SIDES)
        if of_a != of_b:
            raise ExperimentError(
                f"both sides of a duet get the same requests, and theirs differ: {load.workload} statuses: "
                f"{of_a}; {of_b}",
                "choose another workload, or measure independent runs: kvstudy run",
            )


def check_pairs(comparison: Comparison) -> None:
    """ExperimentError where a word is wanted and no loop has as many pairs as a value takes. Who asks for
    fewer launches than a word needs wants to see that all of it works."""
    if (comparison.comparing.launches or FIRST_LOOK) < FIRST_LOOK:
        return
    if all(loop.pairs < PAIRS_LEAST for load in comparison.loads for loop in load.loops):
        raise ExperimentError(
            f"no launch would give a value: {'; '.join(_too_few_pairs(comparison))}",
            f"write compare: {{pairs: {PAIRS_LEAST}}} or more",
        )


def without_value(comparison: Comparison) -> list[str]:
    """Of slices that are so few that no launch gives a value of what is measured in them, one line each."""
    return [*_without_tail(comparison), *_too_few_pairs(comparison)]


def _too_few_pairs(comparison: Comparison) -> list[str]:
    """One line for each loop that has fewer than a value takes."""
    short = {
        (loop.loop, loop.pairs)
        for load in comparison.loads
        for loop in load.loops
        if loop.pairs < PAIRS_LEAST
    }
    closed = any(load.a.closed_loop for load in comparison.loads)
    return [
        f"{'closed_pairs' if loop == 'closed' and not closed else 'pairs'}: {pairs} is too few for a value "
        f"{'of the closed loop' if loop == 'closed' else 'at the rate'}, which takes {PAIRS_LEAST}: "
        "the first does not count"
        for loop, pairs in sorted(short)
    ]


def _without_tail(comparison: Comparison) -> list[str]:
    """Of the part at a rate whose primary measure is a percentile, where it has too few answers for one."""
    primary = primary_of(comparison)
    needed = ANSWERS_NEEDED.get(primary["measure"])
    if needed is None or primary["loop"] != "rate":
        return []
    (load,) = (one for one in comparison.loads if one.workload == primary["workload"])
    (loop,) = (one for one in load.loops if one.loop == "rate")
    of_a_slice = load.a.offered_rate_rps * loop.counted_s
    by_slice = primary["measure"] == P99_SLICE
    answers = of_a_slice if by_slice else of_a_slice * (loop.pairs - 1)
    if answers >= needed:
        return []
    whose, more = ("slice", "") if by_slice else ("side", "more pairs, ")
    return [
        f"no launch gives a value of {primary['measure']}: {load.workload} has {answers:.0f} answers of a "
        f"{whose} that count, and it takes {needed}: a higher rate, {more}or a longer counted"
    ]


def check_difference(comparison: Comparison, digests: dict[str, str | None]) -> None:
    """Nobody shall wait ten minutes to learn that a build is like itself, unless that is what was asked
    for."""
    if digests["a"] is None or digests["a"] != digests["b"]:
        return
    same = all(
        replace(load.a, subject=None, variant={}) == replace(load.b, subject=None, variant={})
        for load in comparison.loads
    )
    if same and any(load.a.subject != load.b.subject for load in comparison.loads):
        a, b = comparison.names
        raise ExperimentError(
            f"nothing to compare: {a} and {b} are the same program with the same options: "
            f"digest={digests['a']}",
            f"change something first; to see what nothing looks like: --builds {b} {b}",
        )


def loaded_by_several(comparison: Comparison, generators: int) -> Comparison:
    """The same with so many generators on hosts of their own. ExperimentError where one would have no
    connection."""
    loads = []
    for load in comparison.loads:
        of_runs = over_a_network(runs_of(replace(comparison, loads=(load,))), generators).runs
        loads.append(replace(load, a=of_runs[0].configuration, b=of_runs[1].configuration))
    return replace(comparison, loads=tuple(loads))


def check_here(comparison: Comparison, root: Path) -> list[str]:
    """Notes. KvstudyError when both sides cannot be on this machine."""
    check_memory(comparison)
    pinning(1, comparison.experiment.cores)
    note = awake.note(comparison.experiment.awake)
    return [*([note] if note else []), *limits.notes(_needs(comparison), work_root(root))]


def check_there(comparison: Comparison, crew: Crew) -> list[str]:
    """The same of hosts."""
    crew.service.station.check_room()
    one = comparison.experiment
    to_come, stores_bytes = _stores(comparison), comparison.stores_bytes
    return crew.check(0, one.awake, one.cores, _needs(comparison), to_come, stores_bytes, LESS_DISK, FOR_BOTH)


def _stores(comparison: Comparison) -> list[Configuration]:
    """By whom those of both sides are filled."""
    return [store_of(comparison, side) for side in SIDES]


def _needs(comparison: Comparison) -> limits.Needs:
    """The generator has connections to both sides at once."""
    of_one = limits.needs(load.of(side) for load in comparison.loads for side in SIDES)
    return replace(of_one, connections=2 * of_one.connections)


def runs_of(comparison: Comparison) -> RunPlan:
    """Of both sides' programs, as if each were measured alone."""
    profile = tuple(comparison.comparing.profile) or None
    runs = [
        PlannedRun(load.of(side), 1, 1, comparison.experiment.seed, profile)
        for load in comparison.loads
        for side in SIDES
    ]
    return RunPlan(comparison.experiment, runs)


def digests_of(crew: Crew) -> dict[str, str | None]:
    """Of both sides' programs and of the generator, each where it is."""
    return crew.service.station.digests() | crew.generators[0].station.generator_digests()


def conditions_of(comparison: Comparison, root: Path, crew: Crew) -> dict[str, str]:
    """What launches have in common beside programs and options: the scripts as they are written, the JDK, the
    machine and whether its processors sleep; on several hosts which these are."""
    workloads, wanted = workloads_root(root), comparison.experiment.awake
    scripts = {
        load.workload: script_digest(script_path(load.a, workloads), workloads, load.a.fill is not None)
        for load in comparison.loads
    }
    service = crew.service.station
    known = service.machine_facts() | service.disk_facts() if crew.sees_service else {}
    conditions = {
        "scripts": json.dumps(scripts, sort_keys=True),
        "awake": json.dumps([_is_awake(member, wanted) for member in crew.members]),
        "jdk": service.jdk(),
        "machine": machine_identity(known),
    }
    if not crew.is_here:
        loaded_by = [
            fact
            for one in crew.generators
            for fact in (one.host.name, machine_identity(crew.machines[one.host.name]))
        ]
        which = machine_ids(crew.machines, crew.machines).values()
        conditions["hosts"] = json.dumps([crew.service.host.name, *loaded_by, *which], sort_keys=True)
    return conditions


def _is_awake(member: Member, wanted: awake.Wanted) -> bool:
    return wanted is not False and member.station.awake_note(wanted) is None


def check_digests(comparison: Comparison, digests: dict[str, str | None]) -> None:
    """Launches of a program that may be another one now are not pooled."""
    for side, name in zip(SIDES, comparison.names, strict=True):
        if digests[side] is None:
            raise ExperimentError(
                f"--resume cannot know whether side {name} is the same program as before: it has no digest",
                "leave --resume out: a new duet begins",
            )


def duet_facts(
    duet: DuetInProgress,
    artifacts: Artifacts,
    crew: Crew,
    digests: dict[str, str | None],
    asked: str,
    label: str,
) -> dict:
    """Of run.json, what is the same in all launches."""
    comparison = duet.comparison
    experiment, comparing = comparison.experiment, comparison.comparing
    revision, dirty = artifacts.revision
    sides = {}
    for side, name in zip(SIDES, comparison.names, strict=True):
        one = comparison.loads[0].of(side)
        build = artifacts.builds[one.spec.build] if one.spec.build else None
        ours = (build.revision, build.dirty) if build else artifacts.revision if one.spec.is_ours else None
        sides[side] = side_facts(one, name, digests[side], ours)
    parts = [
        {
            "workload": load.workload,
            "workload_args": load.a.workload_args,
            "method": load.a.method,
            "loop": loop.loop,
            "offered_rate_rps": load.a.offered_rate_rps if loop.loop == "rate" else None,
            "connections": load.a.connections,
            "threads": load.a.threads,
            **{name: value for name, value in asdict(loop).items() if name != "loop"},
        }
        for load in comparison.loads
        for loop in load.loops
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": DUET,
        "run_id": None,
        "experiment": experiment.name,
        "label": label,
        "question": experiment.question,
        "preset": experiment.preset,
        "comparison": duet.identity,
        "asked": asked,
        "launch": None,
        "sides": sides,
        "parts": parts,
        "primary": primary_of(comparison),
        "same_within_percent": experiment.same,
        "own_fills": comparing.own_fills,
        "awake": experiment.awake,
        "cores": experiment.cores,
        "revision": revision,
        "dirty": dirty,
        "tool_versions": artifacts.versions | crew.service.station.versions(),
        "tool_digests": digests,
    }


def primary_of(comparison: Comparison) -> dict[str, str]:
    """The rate is measured in the closed loop only, latencies at the rate only."""
    first = comparison.loads[0]
    loops, measure = [loop.loop for loop in first.loops], MEASURE_NAMES[comparison.comparing.primary]
    measured_in = next(loop for loop in loops if measure in MEASURES[loop])
    return {"workload": first.workload, "loop": measured_in, "measure": measure}


def _resumed(
    comparison: Comparison, asked: str, root: Path, label: str, tell: resumed.Tell
) -> DuetInProgress | None:
    """The newest duet that asked for the same with the same programs, under the same label; without launches
    that are not as they were sealed."""
    before = [
        run
        for run in resumed.known(_folder_of(comparison, root), tell)
        if is_duet(run)
        and run.facts.get("asked") == asked
        and run.facts["label"] == label
        and resumed.is_whole(run, tell)
    ]
    if not before:
        return None
    identity = before[-1].facts["comparison"]
    return DuetInProgress(comparison, identity, [run for run in before if _is_of(run, identity)])


def _sealed_duets(comparison: Comparison, root: Path) -> list[SealedRun]:
    return [run for run in known_runs(_folder_of(comparison, root)) if is_duet(run)]


def _folder_of(comparison: Comparison, root: Path) -> Path:
    return raw_root(root) / comparison.experiment.name


def _sealed_count(duet: DuetInProgress, root: Path) -> int:
    """With the interrupted launch, which was sealed before it could be told."""
    try:
        return sum(_is_of(run, duet.identity) for run in _sealed_duets(duet.comparison, root))
    except (KvstudyError, OSError):  # not now, when somebody wants to stop
        return len(duet.launches)


def _is_of(run: SealedRun, identity: str) -> bool:
    return run.facts["comparison"] == identity


def _are_sealed(count: int) -> str:
    return f"{count} launch{' is' if count == 1 else 'es are'} sealed"


def _new_identity(asked: str) -> str:
    """Of what was asked for, and of when it was begun: launches of two duets are never pooled."""
    return hashlib.sha256(f"{asked} {datetime.now(UTC).isoformat()}".encode()).hexdigest()[:16]
