"""A whole comparison: both builds, launch after launch until every measure is decided or the time is over,
and where it stands after each.

Launches are sealed one by one; what is sealed stays. With ``resume`` the newest duet of the same comparison
(its ``asked``) goes on; without, a new one begins, whose launches are not pooled with those of before: a duet
that is begun again until its answer pleases would be none."""

import hashlib
import json
import math
import shutil
import statistics
import time
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from kvstudy.analyse.comparison.launches import MEASURES, ROUNDS_MIN
from kvstudy.analyse.comparison.looks import FIRST_LOOK
from kvstudy.analyse.conditions import in_whole_gib
from kvstudy.analyse.duets import Duet as FoundDuet
from kvstudy.analyse.duets import duet_of
from kvstudy.analyse.validity import OUTSIDE
from kvstudy.errors import ExperimentError, KvstudyError
from kvstudy.hosts.interrupt import interruptible
from kvstudy.hosts.session import Session
from kvstudy.measure import awake, machine
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.duet import DuetBench, DuetLaunch
from kvstudy.measure.duet_progress import DuetProgress
from kvstudy.measure.duet_sides import check_memory, chosen_ports, side_facts, store_of
from kvstudy.measure.execute import clear_up
from kvstudy.measure.fill import Fills
from kvstudy.measure.generator import script_path
from kvstudy.measure.quiet import Patience
from kvstudy.measure.standing import MEASURE_NAMES, nothing_to_come, outcome_of, progress_lines, undecided
from kvstudy.plan.comparison import SIDES, Comparison
from kvstudy.plan.run_plan import Plan as RunPlan
from kvstudy.plan.run_plan import PlannedRun
from kvstudy.project import raw_root, work_root, workloads_root
from kvstudy.record.duet import is_duet
from kvstudy.record.run_folder import DUET, SCHEMA_VERSION, SealedRun, sealed_runs
from kvstudy.subject.jdk import find_jdk
from kvstudy.units import format_bytes, format_duration

# When so many launches fail one after the other, the next ones will too.
FAILURES_IN_A_ROW_MAX = 3


@dataclass
class Duet:
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
) -> Duet:
    """Measures; KvstudyError before anything is started when something is missing. Ctrl-C seals the launch
    that goes on as failed."""
    within_s = comparison.comparing.within
    check_time(comparison, within_s)
    primary_of(comparison)
    chosen_ports(comparison.experiment.port)
    check_memory(comparison)
    check_disk(comparison, root)
    progress = DuetProgress(within_s)
    for told in (awake.note(comparison.experiment.awake), *without_value(comparison)):
        if told:
            progress.say(told)
    # A build would be in the way of another measurement, so the session comes first.
    with interruptible(), Session(work_root(root)) as session:
        artifacts = artifacts_of(comparison, root)
        clear_up(session, root, comparison.experiment.name)
        digests = digests_of(comparison, artifacts)
        check_difference(comparison, digests)
        asked = comparison.asked(digests | conditions_of(comparison, root))
        if resume:
            check_digests(comparison, digests)
        duet = _resumed(comparison, asked, root, label) if resume else None
        if duet:
            progress.say(f"{len(duet.launches)} launches are sealed already and kept")
        duet = duet or Duet(comparison, _new_identity(asked))
        fills = Fills(work_root(root), workloads_root(root), artifacts, session.registered, progress.doing)
        bench = DuetBench(
            root,
            comparison,
            artifacts,
            fills,
            session,
            patience or Patience(0),
            duet_facts(duet, artifacts, asked, label),
            progress.doing,
            progress.tick,
        )
        for side in SIDES:
            fills.make(store_of(comparison, side))
        try:
            _launches(duet, bench, within_s, progress)
        except KeyboardInterrupt:
            progress.say(
                f"{len(duet.launches)} launches are sealed; the same command with --resume goes on from here "
                "in the time that is left; interrupted and disturbed ones are none of `launches`"
            )
            raise
    return duet


def _launches(duet: Duet, bench: DuetBench, within_s: float, progress: DuetProgress) -> None:
    kept_s = [lasted_s(run) for run in duet.launches]
    begun, failures_in_a_row = time.monotonic() - sum(kept_s), 0
    took_s, unprofiled_s = duet.comparison.launch_s, []
    most = duet.comparison.comparing.launches
    while not (over := nothing_to_come(duet.found, duet.comparison.comparing.until)):
        left = undecided(duet.found)
        are_undecided = f", and {left} measures are undecided" if left else ""
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
        sampled = any(run.facts["sampled_after"] or run.facts.get("profile_note") for run in duet.launches)
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
        failures_in_a_row = failures_in_a_row + 1 if failed else 0
        progress.say(
            f"launch {number}: {outcome_of(duet.found, run)}; "
            f"{format_duration(round(time.monotonic() - begun))} of {format_duration(within_s)} gone"
        )
        for line in [] if failed else progress_lines(duet.found, took_s):
            progress.say(line)
        if failures_in_a_row == FAILURES_IN_A_ROW_MAX:
            raise KvstudyError(
                f"{failures_in_a_row} launches in a row failed, the last one: "
                f"{run.facts['outcome'].removeprefix('failed: ')}",
                f"see {run.path}; mend it and run the same command with --resume",
            )
    duet.over = over


def lasted_s(run: SealedRun) -> float:
    """A sealed launch, from its first phase to its last; without waiting for a quiet machine."""
    times = [datetime.fromisoformat(at) for phase in run.facts["phases"].values() for at in phase.values()]
    return (max(times) - min(times)).total_seconds() if times else 0.0


def check_time(comparison: Comparison, within_s: float) -> None:
    """ExperimentError when not even one launch fits in."""
    if within_s < comparison.launch_s:
        raise ExperimentError(
            f"--within {format_duration(within_s)} is shorter than one launch of both sides, about "
            f"{format_duration(round(comparison.launch_s))}",
            f"words need {FIRST_LOOK} launches or more: --within "
            f"{format_duration(math.ceil(FIRST_LOOK * comparison.launch_s / 60) * 60)}, "
            "or fewer and shorter slices: compare: {pairs, closed_pairs, warm_up}",
        )


def without_value(comparison: Comparison) -> list[str]:
    """Of slices that are so few that no launch gives a value of what is measured in them, one line each."""
    short = {
        (loop.loop, loop.pairs)
        for load in comparison.loads
        for loop in load.loops
        if loop.pairs <= ROUNDS_MIN
    }
    closed = any(load.a.closed_loop for load in comparison.loads)
    return [
        f"no launch gives a value {'of the closed loop' if loop == 'closed' else 'at the rate'}: "
        f"{'closed_pairs' if loop == 'closed' and not closed else 'pairs'}: {pairs}: the first does "
        f"not count, and {ROUNDS_MIN} others must"
        for loop, pairs in sorted(short)
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


def check_disk(comparison: Comparison, root: Path) -> None:
    free = shutil.disk_usage(root).free
    if free < comparison.disk_bytes:
        raise KvstudyError(
            f"not enough disk for both sides: needed={format_bytes(comparison.disk_bytes)} "
            f"free={format_bytes(free)} at {root}",
            "free some space, or choose fewer records, a lower rate or fewer slices",
        )


def artifacts_of(comparison: Comparison, root: Path) -> Artifacts:
    """Both sides' programs, built where that was not done yet; KvstudyError names what is not there."""
    profile = tuple(comparison.comparing.profile) or None
    runs = [
        PlannedRun(load.of(side), 1, 1, comparison.experiment.seed, profile)
        for load in comparison.loads
        for side in SIDES
    ]
    return Artifacts.needed_by(RunPlan(comparison.experiment, runs), root)


def digests_of(comparison: Comparison, artifacts: Artifacts) -> dict[str, str | None]:
    return {
        **{side: artifacts.subject_digest(comparison.loads[0].of(side)) for side in SIDES},
        **artifacts.generator_digests,
    }


def conditions_of(comparison: Comparison, root: Path) -> dict[str, str]:
    """What launches have in common beside programs and options: the scripts as they are written, the JDK, the
    machine."""
    workloads = workloads_root(root)
    scripts = {
        path
        for load in comparison.loads
        for path in [*script_path(load.a, workloads).parent.glob("*.lua"), *workloads.glob("*.lua")]
    }
    text = hashlib.sha256()
    for path in sorted(scripts):
        text.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    facts = in_whole_gib(machine.fixed_facts())
    needs_jdk = any(
        load.of(side).spec.has_our_jvm or load.of(side).spec.jvm
        for load in comparison.loads
        for side in SIDES
    )
    return {
        "scripts": text.hexdigest()[:16],
        "jdk": find_jdk().version if needs_jdk else "",
        "machine": json.dumps(
            {name: facts[name] for name in ("cpu_model", "cores", "cores_usable", "memory_bytes", "kernel")}
        ),
    }


def check_digests(comparison: Comparison, digests: dict[str, str | None]) -> None:
    """Launches of a program that may be another one now are not pooled."""
    for side, name in zip(SIDES, comparison.names, strict=True):
        if digests[side] is None:
            raise ExperimentError(
                f"--resume cannot know whether side {name} is the same program as before: it has no digest",
                "leave --resume out: a new duet begins",
            )


def duet_facts(duet: Duet, artifacts: Artifacts, asked: str, label: str) -> dict:
    """Of run.json, what is the same in all launches."""
    comparison = duet.comparison
    experiment, comparing = comparison.experiment, comparison.comparing
    revision, dirty = artifacts.revision
    digests = digests_of(comparison, artifacts)
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
        "profile_name": experiment.profile_name,
        "comparison": duet.identity,
        "asked": asked,
        "launch": None,
        "sides": sides,
        "parts": parts,
        "primary": primary_of(comparison),
        "same_within_percent": experiment.same,
        "own_fills": comparing.own_fills,
        "awake": experiment.awake,
        "revision": revision,
        "dirty": dirty,
        "tool_versions": artifacts.versions,
        "tool_digests": digests,
    }


def primary_of(comparison: Comparison) -> dict[str, str]:
    """The rate is measured in the closed loop only, latencies at the rate only."""
    first = comparison.loads[0]
    loops, measure = [loop.loop for loop in first.loops], MEASURE_NAMES[comparison.comparing.primary]
    measured_in = [loop for loop in loops if measure in MEASURES[loop]]
    if not measured_in:
        raise ExperimentError(
            f"primary measure is not measured: {comparison.comparing.primary}: slices are "
            f"{' and '.join(loops)}",
            "latencies need a rate; the rate needs closed_pairs",
        )
    return {"workload": first.workload, "loop": measured_in[0], "measure": measure}


def _resumed(comparison: Comparison, asked: str, root: Path, label: str) -> Duet | None:
    """The newest duet that asked for the same with the same programs, under the same label."""
    before = [
        run
        for run in sealed_runs(raw_root(root) / comparison.experiment.name)
        if is_duet(run) and run.facts.get("asked") == asked and run.facts["label"] == label
    ]
    if not before:
        return None
    identity = before[-1].facts["comparison"]
    return Duet(comparison, identity, [run for run in before if run.facts["comparison"] == identity])


def _new_identity(asked: str) -> str:
    """Of what was asked for, and of when it was begun: launches of two duets are never pooled."""
    return hashlib.sha256(f"{asked} {datetime.now(UTC).isoformat()}".encode()).hexdigest()[:16]
