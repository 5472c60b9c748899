"""A search for the stable rate with real runs, interrupted by its budget and resumed."""

import pytest

from kvstudy.plan.objective import Answer
from kvstudy.plan.search import Trial, found_in
from kvstudy.record.run_folder import sealed_runs

pytestmark = pytest.mark.machine
# The tests share the machine with whoever runs them: other load must not make a trial say nothing here, nor miss (hence achieved_share).
ON_A_BUSY_MACHINE = "from kvstudy.plan.objective import Objective; Objective._unfit = lambda *_: None"


def test_search_seals_every_trial_and_finds_the_same_again_when_resumed(project):
    search = {"method": "bisect", "objective": {"mean": "500ms", "achieved_share": 0.5}, "lowest_rate": 100, "highest_rate": 300, "confirmations": 2}
    experiment = project.experiment(rate=None, search=search, duration="800ms", warm_up="200ms")
    out, err = project.kvstudy("run", experiment, code=ON_A_BUSY_MACHINE).communicate(timeout=60)
    assert out == "trial: 3 trials: 3 sealed\n  put c=2 t=1: [300/s confirmed, no rate refused], 3 trials\n", err
    runs = sealed_runs(project.raw)
    assert [run.facts["search"]["purpose"] for run in runs] == ["search", "confirm", "confirm"]
    assert {run.facts["offered_rate_rps"] for run in runs} == {300.0}
    trials = [Trial(run.facts["offered_rate_rps"], Answer.HELD, run.facts["search"]["purpose"]) for run in runs]
    assert found_in(trials, confirmations=2).interval() == "[300/s confirmed, no rate refused]"
    again, _ = project.kvstudy("run", experiment, "--resume", code=ON_A_BUSY_MACHINE).communicate(timeout=60)
    assert again == out.replace("3 sealed", "0 sealed, 3 kept")
    assert len(sealed_runs(project.raw)) == 3


DISTURBED_TWICE = """
import kvstudy.measure.search_runs as search_runs
from kvstudy.plan.objective import Objective
reasons = iter(["steal", "steal"])
Objective._unfit = lambda *_: next(reasons, None)
search_runs.disturbance = lambda _: "steal"
"""


def test_a_disturbed_trial_is_made_again_before_the_search_hears_of_it(project):
    search = {"method": "bisect", "objective": {"mean": "500ms", "achieved_share": 0.5}, "lowest_rate": 100, "highest_rate": 300, "confirmations": 1, "trials_max": 2}
    experiment = project.experiment(rate=None, search=search, duration="800ms", warm_up="200ms")
    out, err = project.kvstudy("run", experiment, "--retries", "2", code=DISTURBED_TWICE).communicate(timeout=60)
    assert out == "trial: 4 trials: 4 sealed, 2 of them again\n  put c=2 t=1: [300/s confirmed, no rate refused], 2 trials\n", err


def test_interval_read_back_from_trials_is_the_one_that_the_search_gave():
    trials = [Trial(1000, Answer.MISSED), Trial(500, Answer.HELD), Trial(750, Answer.HELD), Trial(750, Answer.UNKNOWN, "confirm"),
              Trial(750, Answer.MISSED, "confirm"), Trial(700, Answer.HELD, "confirm"), Trial(700, Answer.HELD, "confirm")]
    assert found_in(trials, confirmations=2).interval() == "[700/s confirmed, 750/s refused]"
    assert found_in(trials[:5], confirmations=2).interval() == "[nothing confirmed, 750/s refused], not narrowed down: out of trials"
