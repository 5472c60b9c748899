"""A search for the stable rate with real runs, interrupted by its budget and resumed."""

from types import SimpleNamespace
from typing import ClassVar

import pytest
from trial import trial

from kvstudy.measure.search_runs import _Trials, asked_for_by, search_facts
from kvstudy.plan.objective import Answer
from kvstudy.plan.run_plan import plan
from kvstudy.plan.search import Trial, found_in
from kvstudy.record.run_folder import sealed_runs

pytestmark = pytest.mark.machine
# The tests share the machine with whoever runs them: other load must not make a trial say nothing here, nor
# miss (hence achieved_share).
ON_A_BUSY_MACHINE = "from kvstudy.plan.objective import Objective; Objective._unfit = lambda *_: None"


def test_search_seals_every_trial_and_finds_the_same_again_when_resumed(project):
    search = {
        "method": "bisect",
        "objective": {"mean": "30s", "achieved_share": 0.01},
        "lowest_rate": 100,
        "highest_rate": 300,
        "precision": 0.3,
    }
    experiment = project.experiment(rate=None, search=search, duration="800ms", warm_up="200ms")
    out, err = project.kvstudy("run", experiment, code=ON_A_BUSY_MACHINE).communicate(timeout=300)
    runs = sealed_runs(project.raw)
    trials = [
        Trial(run.facts["offered_rate_rps"], Answer.HELD, run.facts["search"]["purpose"]) for run in runs
    ]
    found = found_in(trials, 100, 300, 0.3).interval()
    assert (
        out == f"trial: {len(runs)} trials: {len(runs)} sealed\n  put c=2 t=1: {found}, {len(runs)} trials\n"
    ), err
    assert found.endswith("/s held, no rate missed] (95 %)")
    purposes = [run.facts["search"]["purpose"] for run in runs]
    assert purposes == ["search"] + ["sweep"] * (len(runs) - 1) and 4 <= len(runs) <= 15
    assert max(run.facts["offered_rate_rps"] for run in runs) == 300.0
    again, _ = project.kvstudy("run", experiment, "--resume", code=ON_A_BUSY_MACHINE).communicate(timeout=300)
    assert again == out.replace(f"{len(runs)} sealed", f"0 sealed, {len(runs)} kept")
    assert len(sealed_runs(project.raw)) == len(runs)


DISTURBED_TWICE = """
import kvstudy.measure.search_runs as search_runs
from kvstudy.plan.objective import Objective
reasons = iter(["steal", "steal"])
Objective._unfit = lambda *_: next(reasons, None)
search_runs.disturbance = lambda _: "steal"
"""


def test_a_disturbed_trial_is_made_again_before_the_search_hears_of_it(project):
    search = {
        "method": "bisect",
        "objective": {"mean": "30s", "achieved_share": 0.01},
        "lowest_rate": 100,
        "highest_rate": 300,
        "trials_max": 2,
    }
    experiment = project.experiment(rate=None, search=search, duration="800ms", warm_up="200ms")
    out, err = project.kvstudy("run", experiment, "--retries", "2", code=DISTURBED_TWICE).communicate(
        timeout=300
    )
    assert out.startswith("trial: 4 trials: 4 sealed, 2 of them again\n  put c=2 t=1: ") and out.endswith(
        "out of trials, 2 trials\n"
    ), err
    assert [run.facts["search"]["purpose"] for run in sealed_runs(project.raw)] == ["search"] * 3 + ["sweep"]


class Sealed:
    """A sealed trial that failed like this."""

    machine: ClassVar = {}

    def __init__(self, outcome: str):
        self.facts = {"outcome": outcome}

    def has(self, _file: str) -> bool:
        return False


class Made:
    """A sealed trial as ``asked`` made it at this rate."""

    def __init__(self, asked, rate_rps: float, purpose: str = "sweep", attempt: int = 2):
        (line,) = plan(asked).runs
        trials = _Trials(line, asked.search, None, SimpleNamespace(kept=[]), {}, 0)
        self.facts = {
            "offered_rate_rps": rate_rps,
            "repeat": attempt,
            "identity": trials._planned(rate_rps, attempt, purpose).identity(),
            "search": {"purpose": purpose, **search_facts(asked)},
        }


def test_a_trial_is_published_of_the_same_load_objective_and_bounds_however_long_its_search_went_on():
    search = {"method": "bisect", "objective": {"mean": "1ms"}, "lowest_rate": 100, "highest_rate": 300}
    whole = trial(rate=None, search=search, connections=4)
    is_asked_for = asked_for_by(plan(whole))
    assert is_asked_for(Made(whole, 217.0)) and is_asked_for(Made(whole, 300.0, "search", 1))
    for other in ({"precision": 0.02}, {"trials_max": 60, "sweeps": 5}):
        assert is_asked_for(Made(trial(rate=None, search=search | other, connections=4), 217.0)), other
    for other in ({"connections": 2}, {"duration": "3s"}, {"workload": "delete"}):
        assert not is_asked_for(
            Made(trial(**{"rate": None, "search": search, "connections": 4} | other), 217.0)
        )
    foreign = Made(whole, 217.0)
    del foreign.facts["search"]["purpose"]
    assert not is_asked_for(foreign)
    for other in ({"objective": {"mean": "2ms"}}, {"highest_rate": 400}):
        assert not is_asked_for(Made(trial(rate=None, search=search | other, connections=4), 217.0)), other


@pytest.mark.parametrize("first", ["sealed", "not kept"])
def test_a_resumed_search_is_told_what_it_was_told_before_where_it_has_asked_again_since(first):
    """Another answer now would send it another way, and the trials behind would be lost."""
    search = {"method": "bisect", "objective": {"mean": "1ms"}, "lowest_rate": 100, "highest_rate": 300}
    experiment = trial(rate=None, search=search)
    (line,) = plan(experiment).runs
    sealed: dict = {}
    trials = _Trials(line, experiment.search, None, SimpleNamespace(kept=[]), sealed, 0)
    if first == "sealed":
        sealed[trials._planned(300.0, 1, "search").identity()] = Sealed("failed: profiler refused: start")
    sealed[trials._planned(300.0, 2, "search").identity()] = Sealed("failed: service died during measure: 9")
    assert [trials.measure(300.0, "search")[0] for _ in range(2)] == [Answer.UNKNOWN, Answer.MISSED]
