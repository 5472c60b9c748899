"""A whole experiment: its plan, run after run, resumed where it was interrupted.

Runs are sealed one by one; what is sealed stays. With ``resume`` a sealed run is kept when everything that
was asked for is the same (its identity), under the same label, with the same programs, script and JDK
(measure/artifacts.py), and it was completed. A search runs its trials through the same door: see
search_runs.py.
"""

import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from kvstudy.disturbance import disturbance
from kvstudy.errors import ExperimentError
from kvstudy.hosts.hosts_file import HostsFile
from kvstudy.hosts.interrupt import interruptible
from kvstudy.hosts.local import LocalHost
from kvstudy.hosts.session import Session
from kvstudy.measure import awake, limits, resumed, verdict_line
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.crew import Crew, local_crew, local_member
from kvstudy.measure.fill import Fills, disk_needed
from kvstudy.measure.giving_up import FailuresInARow
from kvstudy.measure.on_hosts import crews_on, over_a_network
from kvstudy.measure.pinning import pinning
from kvstudy.measure.preconditions import check_disk, check_port
from kvstudy.measure.progress import Progress
from kvstudy.measure.quiet import Patience
from kvstudy.measure.run import Bench, Run
from kvstudy.measure.search_runs import expected_runs, search_all, search_facts
from kvstudy.measure.side_by_side import (
    is_of,
    measured_alike,
    measured_here,
    of_these_crews,
    side_by_side,
)
from kvstudy.plan.experiment import Experiment, workload_scripts
from kvstudy.plan.run_plan import (
    FILL_OVERHEAD_S,
    FILL_RATE_RPS,
    Plan,
    PlannedRun,
    plan,
)
from kvstudy.plan.selection import selected
from kvstudy.project import raw_root, work_root, workloads_root
from kvstudy.record.duet import is_duet
from kvstudy.record.run_folder import SealedRun, partial_runs
from kvstudy.service_failure import is_under_load
from kvstudy.units import counted


@dataclass
class Result:
    """``sealed``: completed runs, measured now; ``kept``: those a resumed measurement found; ``failed``:
    sealed as failed; ``interrupted``: those under way at Ctrl-C, sealed as failed too; ``found``: of a
    search, one line per configuration; ``again``: how many were measured once more because the machine was
    disturbed; ``invalid``: by run id of the completed ones, the checks that it failed (not of a search, whose
    trials answer for themselves); ``disturbed``: runs whose newest try others disturbed."""

    experiment: str
    planned: int
    sealed: list[SealedRun] = field(default_factory=list)
    kept: list[SealedRun] = field(default_factory=list)
    failed: list[SealedRun] = field(default_factory=list)
    interrupted: list[SealedRun] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    again: int = 0
    invalid: dict[str, dict[str, str]] = field(default_factory=dict)
    disturbed: int = 0

    def measured(self, run: Run) -> SealedRun:
        """Sealed. One that is interrupted is noted; its KeyboardInterrupt goes on."""
        try:
            return run.sealed()
        except KeyboardInterrupt:
            if run.result is not None:
                completed = run.result.facts["outcome"] == "completed"
                (self.sealed if completed else self.interrupted).append(run.result)
            raise

    def judge(self, run: SealedRun) -> str:
        """The outcome of a completed run in words, ``completed`` or also why it is invalid; an invalid one is
        noted."""
        failed = verdict_line.failed_checks(run)
        if failed:
            self.invalid[run.run_id] = failed
        return verdict_line.format_verdict(failed)

    def summary(self) -> str:
        words = [f"{len(self.sealed)} sealed"] + ([f"{len(self.kept)} kept"] if self.kept else [])
        words += (
            [f"{len(self.invalid)} invalid ({verdict_line.count_failures(self.invalid.values())})"]
            if self.invalid
            else []
        )
        words += [f"{len(self.failed)} failed"] if self.failed else []
        words += [f"{len(self.interrupted)} interrupted, kept as failed"] if self.interrupted else []
        words += [f"{self.again} of them again"] if self.again else []
        count = sum(map(len, (self.sealed, self.kept, self.failed, self.interrupted)))
        what = counted(count, "trial" if self.found else "run")
        return "\n".join([f"{self.experiment}: {what}: {', '.join(words)}", *self.found])


def execute(
    experiment: Experiment,
    root: Path,
    *,
    label: str = "",
    resume: bool = False,
    only: tuple[str, ...] = (),
    retries: int = 0,
    patience: Patience | None = None,
    hosts: HostsFile | None = None,
    generators: int = 1,
    progress_of: Callable[[list[PlannedRun], float], Progress] = Progress,
    goes_on_by: str = "the same command with --resume",
) -> Result:
    """Measures; KvstudyError before anything is started when something is missing. Ctrl-C seals the current
    run as failed.

    At the end, up to ``retries`` times, the runs whose newest try was disturbed from outside are measured
    again, in the plan's order; the disturbed ones stay. A search makes its disturbed trials again at once.
    Every run waits before it begins for a quiet machine, as long as ``patience`` has time left.
    ``progress_of``: who shows how far it is, made of the runs to come and the seconds that filling takes.

    With ``hosts`` runs take place there, each with so many ``generators``; as many at once as there are hosts
    for. What is compared with one another stays on the same hosts (plan/shares.py), also when a measurement
    is resumed.
    """
    whole = selected(plan(experiment), only)
    if hosts:
        whole = over_a_network(whole, generators)
    _check_workloads(whole, root)
    needs = limits.needs(run.configuration for run in whole.runs)
    if not hosts:
        for warning in limits.notes(needs, work_root(root)):
            print(warning, file=sys.stderr)
        if warning := awake.note(experiment.awake):
            print(warning, file=sys.stderr)
        pinning(1, experiment.cores)
    # A build would be in the way of another measurement, so the session comes first.
    with interruptible(), Session(work_root(root)) as session, ExitStack() as until_end:
        artifacts = Artifacts.needed_by(whole, root, on_hosts=hosts is not None)

        def fills_here(doing: Callable[[str], None]) -> Fills:
            return Fills(work_root(root), workloads_root(root), artifacts, session.registered, doing)

        clear_up(session, root, experiment.name)
        if not hosts:
            check_port(experiment.port)
        local = LocalHost(root, work_root(root), session.registered)
        crews: list[Crew] = []
        if hosts:
            nobody = local_member(local, artifacts, fills_here(lambda _doing: None))
            crews = until_end.enter_context(
                crews_on(
                    *(hosts, work_root(root), session.registered, whole, artifacts, root, generators, nobody),
                    at_most=1 if experiment.search else None,
                )
            )
        sealed = _sealed(root, experiment.name, label) if resume else []
        before, kept = _known(whole, sealed, artifacts, crews if hosts else None)
        result = Result(experiment.name, len(whole.runs), kept=list(kept.values()))
        missing = [run for run in whole.runs if run.identity() not in kept]
        to_come = [run.configuration for run in missing]
        stores_bytes = replace(whole, runs=missing).stores_bytes
        if not hosts:
            fills = fills_here(lambda _doing: None)
            check_disk(work_root(root), disk_needed(to_come, fills, stores_bytes))
        if kept:
            print(f"{len(kept)} of {len(whole.runs)} runs are sealed already and kept", file=sys.stderr)
        for run in [] if experiment.search else result.kept:
            result.judge(run)
        asked = (experiment.port, experiment.awake, experiment.cores, needs, to_come, stores_bytes)
        for told in dict.fromkeys(told for crew in crews for told in crew.check(*asked)):
            print(told, file=sys.stderr)

        def bench_of(runs: list[PlannedRun]) -> Bench:
            fill_s = sum(
                fill["records"] / FILL_RATE_RPS + FILL_OVERHEAD_S for fill in Plan(experiment, runs).fills
            )
            progress = progress_of(runs if not experiment.search else expected_runs(whole), fill_s)
            return Bench(
                root,
                label,
                artifacts,
                crews[0] if crews else local_crew(local, artifacts, fills_here(progress.doing)),
                session,
                progress,
                patience or Patience(0),
                experiment.port,
                search_facts(experiment),
                experiment.preset,
                experiment.same,
            )

        def measure(runs: list[PlannedRun]) -> None:
            with (bench := bench_of(runs)).progress:
                _run_all(whole, runs, bench, result, crews)

        try:
            if experiment.search:
                with (bench := bench_of(missing)).progress:
                    of_crew = {name: run for name, run in before.items() if is_of(run, bench.crew)}
                    search_all(whole, bench, result, of_crew, retries)
            else:
                measure(missing)
                _measure_again(whole, result, retries, measure)
        except KeyboardInterrupt:
            print(f"{result.summary()}; {goes_on_by} goes on from here", file=sys.stderr)
            raise
    result.disturbed = 0 if experiment.search else len(_disturbed(whole, result))
    return result


def _known(
    whole: Plan, sealed: list[SealedRun], artifacts: Artifacts, crews: list[Crew] | None
) -> tuple[dict[str, SealedRun], dict[str, SealedRun]]:
    """By identity: those of ``sealed`` that today's programs made, and of these the ones that are asked for
    and were measured on this machine, or on hosts of ``crews``. How many others are measured anew is told."""
    is_alike = (
        measured_alike(sealed, crews) if crews else [artifacts.are_those_of(run.facts) for run in sealed]
    )
    before = _whole([run for run, alike in zip(sealed, is_alike, strict=True) if alike])
    asked_for = {run.identity() for run in whole.runs}
    kept = {identity: run for identity, run in before.items() if identity in asked_for}
    if crews:
        _, of_these = of_these_crews(whole.runs, kept.values(), [crew.names for crew in crews])
        elsewhere = asked_for & {
            run.facts["identity"] for run in sealed if not any(is_of(run, crew) for crew in crews)
        }
        before_these, where = elsewhere | kept.keys(), "other hosts"
        kept = {run.facts["identity"]: run for run in of_these}
    else:
        before_these, where = kept.keys(), "another machine"
        kept = measured_here(kept)
    if others := before_these - kept.keys():
        are = "is" if len(others) == 1 else "are"
        _tell(f"{counted(len(others), 'sealed run')} of {where} {are} measured anew")
    return before, kept


def _measure_again(
    whole: Plan, result: Result, retries: int, measure: Callable[[list[PlannedRun]], None]
) -> None:
    """What was disturbed, in the plan's order, until nothing is or ``retries`` are used up."""
    for attempt in range(1, 1 + retries):
        if not (disturbed := _disturbed(whole, result)):
            return
        result.again += len(disturbed)
        _tell(
            f"measured again, since disturbed: {len(disturbed)} of {counted(len(whole.runs), 'run')} "
            f"(time {attempt} of at most {retries}); the first: {next(iter(disturbed.values()))}"
        )
        measure([run for run in whole.runs if run.identity() in disturbed])


def _disturbed(whole: Plan, result: Result) -> dict[str, str]:
    """Of the runs asked for, by identity: what disturbed the newest try, where something did."""
    newest = {run.facts["identity"]: run for run in [*result.kept, *result.sealed]}
    asked = {run.identity() for run in whole.runs}
    return {
        identity: reason
        for identity, run in newest.items()
        if identity in asked and (reason := disturbance(run.machine.get("load_during")))
    }


def clear_up(session: Session, root: Path, experiment: str) -> None:
    """Says what a killed measurement left behind. Its stores are scratch and go; its unsealed runs may still
    tell their owner something."""
    for pid in session.ended_orphans:
        print(f"ended a process that an interrupted measurement had left behind: pid={pid}", file=sys.stderr)
    shutil.rmtree(work_root(root) / "stores", ignore_errors=True)
    for partial in partial_runs(raw_root(root) / experiment):
        print(f"never sealed, so not data; delete it when it tells you nothing: {partial}", file=sys.stderr)


def _run_all(whole: Plan, runs: list[PlannedRun], bench: Bench, result: Result, crews: list[Crew]) -> None:
    """One after the other; on several crews share by share, side by side."""
    if len(crews) <= 1:
        _run_each(runs, bench, result)
        return
    before = {id(run) for run in (*result.sealed, *result.failed)}  # a run may be measured once more
    wanted = {run.identity() for run in runs}

    def unmeasured(share: list[PlannedRun]) -> list[PlannedRun]:
        sealed = {run.facts["identity"] for run in (*result.sealed, *result.failed) if id(run) not in before}
        return [run for run in share if run.identity() not in sealed]

    counted = [one for one in (*result.kept, *result.sealed) if one.facts["identity"] not in wanted]
    todo, _ = of_these_crews(whole.runs, counted, [crew.names for crew in crews])
    todo = [
        replace(share, missing=[run for run in share.missing if run.identity() in wanted]) for share in todo
    ]
    side_by_side(
        todo, crews, lambda share, crew: _run_each(share, replace(bench, crew=crew), result), unmeasured
    )


def _run_each(runs: list[PlannedRun], bench: Bench, result: Result) -> None:
    failures = FailuresInARow("run")
    for planned in runs:
        bench.crew.ready()
        bench.progress.begin(planned)
        run = result.measured(Run(planned, bench))
        outcome = run.facts["outcome"]
        (result.sealed if outcome == "completed" else result.failed).append(run)
        bench.progress.end(planned, result.judge(run) if outcome == "completed" else outcome)
        failures.note(run)


def _sealed(root: Path, experiment: str, label: str) -> list[SealedRun]:
    """Completed runs of this experiment and label, by age. Of a search also the trials that their service did
    not survive: asked again until it does, they would be answered by survivors. One of which nothing can be
    told is told and left out."""
    found = []
    for run in resumed.known(raw_root(root) / experiment, _tell):
        if is_duet(run):  # a launch of both sides, sealed beside the runs of the same experiment
            continue
        facts = run.facts
        says_something = facts["outcome"] == "completed" or (
            facts.get("search") and is_under_load(facts["outcome"])
        )
        if facts["label"] == label and says_something and "identity" in facts:
            found.append(run)
    return found


def _whole(runs: list[SealedRun]) -> dict[str, SealedRun]:
    """By identity, the newest where there are several. One that is not as it was sealed is told and not
    kept."""
    return {run.facts["identity"]: run for run in runs if resumed.is_whole(run, _tell)}


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def _check_workloads(whole: Plan, root: Path) -> None:
    for name in sorted({run.configuration.workload for run in whole.runs if not run.configuration.script}):
        script = workloads_root(root) / f"{name}.lua"
        if not script.is_file():
            raise ExperimentError(
                f"no such workload: {name}: {script}", f"workloads: {', '.join(workload_scripts())}"
            )
