"""A search for the stable rate with real runs: each trial is a run of its own, on a fresh service, sealed
like any other.

A resumed search asks for the same trials in the same order (a rate's first, second, … one), finds them sealed
and goes on behind them. A trial that said nothing is run again, unless the search has asked that rate once
more since: another answer now would send it another way, and the trials behind would be lost.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from kvstudy.disturbance import disturbance
from kvstudy.measure.giving_up import check_script
from kvstudy.measure.run import Bench, Run
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.objective import Answer, Search
from kvstudy.plan.run_plan import Configuration, Plan, PlannedRun
from kvstudy.plan.search import expected_trials, search_stable_rate
from kvstudy.record.run_folder import SealedRun

if TYPE_CHECKING:
    from kvstudy.measure.execute import Result

# Of search_facts what neither makes a trial another one nor its answer.
_WHEN_IT_IS_OVER = ("method", "precision", "sweeps", "trials_max")


def search_facts(experiment: Experiment) -> dict:
    """What run.json of every trial says about the search that it belongs to."""
    search = experiment.search
    if search is None:
        return {}
    return {
        "method": search.method,
        "objective": search.objective.model_dump(exclude_none=True),
        "precision": search.precision,
        "lowest_rate_rps": search.lowest_rate,
        "highest_rate_rps": search.highest_rate,
        "sweeps": search.sweeps,
        "trials_max": search.trials_max,
    }


def asked_for_by(plan: Plan) -> Callable[[SealedRun], bool]:
    """Whether a sealed run is one that ``plan`` asks for: by its identity, a trial by that of a trial of its
    rate, with the objective and the bounds of the search. A search that goes on with another precision or
    more trials keeps those of before."""
    if plan.experiment.search is None:
        identities = {run.identity() for run in plan.runs}
        return lambda run: run.facts.get("identity") in identities
    asked = {
        key: value for key, value in search_facts(plan.experiment).items() if key not in _WHEN_IT_IS_OVER
    }

    def is_asked_for(run: SealedRun) -> bool:
        facts, search = run.facts, run.facts.get("search") or {}
        return {key: search.get(key) for key in asked} == asked and any(
            _trial(line, facts["offered_rate_rps"], facts["repeat"], search.get("purpose", "")).identity()
            == facts.get("identity")
            for line in plan.runs
        )

    return is_asked_for


def _trial(line: PlannedRun, rate_rps: float, attempt: int, purpose: str) -> PlannedRun:
    """``attempt``: the how-manieth of this rate and purpose."""
    configuration: Configuration = replace(line.configuration, offered_rate_rps=rate_rps)
    return PlannedRun(configuration, attempt, attempt, line.seed + attempt - 1, purpose=purpose)


def expected_runs(plan: Plan) -> list[PlannedRun]:
    """About the trials that the searches will take, for the progress bar."""
    return [run for run in plan.runs for _ in range(expected_trials(plan.experiment.search))]


def search_all(
    plan: Plan, bench: Bench, result: "Result", sealed_before: dict[str, SealedRun], retries: int = 0
) -> None:
    """One search per configuration; what each found goes to ``result.found``. A trial that was disturbed from
    outside is made again at once, up to ``retries`` times, before the search hears of it."""
    for run in plan.runs:
        found = search_stable_rate(
            plan.experiment.search,
            _Trials(run, plan.experiment.search, bench, result, sealed_before, retries).measure,
        )
        line = run.configuration.summary().replace(f" {run.configuration.offered_rate_rps:g}/s", "")
        result.found.append(f"  {line}: {found.interval()}, {len(found.trials)} trials")


class _Trials:
    """Runs the trials of one configuration and judges them by the objective."""

    def __init__(
        self,
        line: PlannedRun,
        search: Search,
        bench: Bench,
        result: "Result",
        sealed_before: dict[str, SealedRun],
        retries: int,
    ):
        self._line, self._search, self._bench, self._result, self._sealed_before = (
            line,
            search,
            bench,
            result,
            sealed_before,
        )
        self._retries = retries
        self._asked: Counter[tuple[float, str]] = Counter()

    def measure(self, rate_rps: float, purpose: str) -> tuple[Answer, str]:
        rate_rps = round(rate_rps, 3)
        self._asked[rate_rps, purpose] += 1
        attempt = self._asked[rate_rps, purpose]
        planned = self._planned(rate_rps, attempt, purpose)
        run = self._sealed_before.get(planned.identity())
        was_repeated = self._planned(rate_rps, attempt + 1, purpose).identity() in self._sealed_before
        if run is not None and (was_repeated or self._answer(run)[0] is not Answer.UNKNOWN):
            self._result.kept.append(run)
            return self._answer(run)
        if run is None and was_repeated:
            return Answer.UNKNOWN, "failed, and was repeated"
        for left in range(self._retries, -1, -1):
            self._bench.progress.begin(planned)
            self._bench.crew.ready()
            run = self._result.measured(Run(planned, self._bench))
            answer, note = self._answer(run)
            (self._result.sealed if run.facts["outcome"] == "completed" else self._result.failed).append(run)
            self._bench.progress.end(
                planned,
                f"{answer.value}: {note}" if run.facts["outcome"] == "completed" else run.facts["outcome"],
            )
            check_script(run)
            if answer is not Answer.UNKNOWN or left == 0 or not disturbance(run.machine.get("load_during")):
                break
            self._result.again += 1
        return answer, note

    def _planned(self, rate_rps: float, attempt: int, purpose: str) -> PlannedRun:
        return replace(
            _trial(self._line, rate_rps, attempt, purpose),
            plan_index=sum(self._asked.values()) - 1,
            plan_size=self._search.trials_max,
        )

    def _answer(self, run: SealedRun) -> tuple[Answer, str]:
        result = json.loads(run.text("generator.json")) if run.has("generator.json") else None
        return self._search.objective.answer(
            run.facts["outcome"], result, run.machine.get("load_during"), run.facts.get("data_check")
        )
