"""The search for the stable rate, against a simulated service with a known knee, noise and hysteresis."""

import random
import statistics

import pytest

from kvstudy.errors import KvstudyError
from kvstudy.plan.objective import Objective, Search
from kvstudy.plan.search import Answer, search_stable_rate

KNEE_RPS = 11_250.0


class SimulatedService:
    """Holds rates below its knee. The knee of each trial is drawn from a normal distribution of relative width ``noise``; after a
    missed trial it is lower by ``hysteresis`` for the next one; a trial says nothing with probability ``unknown``."""

    def __init__(self, seed: int, noise=0.0, hysteresis=0.0, unknown=0.0, knee_rps=KNEE_RPS):
        self._draw = random.Random(seed)
        self._noise, self._hysteresis, self._unknown, self._knee_rps = noise, hysteresis, unknown, knee_rps
        self._overloaded = False
        self.trials = 0

    def measure(self, rate_rps: float, purpose: str) -> tuple[Answer, str]:
        self.trials += 1
        if self._draw.random() < self._unknown:
            return Answer.UNKNOWN, "generator saturated"
        knee = self._knee_rps * self._draw.gauss(1, self._noise) * (1 - self._hysteresis * self._overloaded)
        self._overloaded = rate_rps > knee
        return (Answer.MISSED if self._overloaded else Answer.HELD), ""


def search(method: str, **change) -> Search:
    values = {"method": method, "objective": Objective(mean="1ms"), "lowest_rate": 500, "highest_rate": 100_000} | change
    return Search(**values)


METHODS = pytest.mark.parametrize("method", ["bisect", "mlr"])


@METHODS
def test_known_knee_is_enclosed_within_the_precision(method):
    found = search_stable_rate(search(method), SimulatedService(1).measure)
    assert found.complete
    assert found.highest_confirmed_rps <= KNEE_RPS < found.lowest_refused_rps
    assert found.lowest_refused_rps / found.highest_confirmed_rps < 1.06


def test_bisection_tries_the_rates_of_report_1():
    rates = []

    def measure(rate_rps, purpose):
        rates.append(rate_rps)
        return (Answer.HELD if rate_rps <= KNEE_RPS else Answer.MISSED), ""
    search_stable_rate(search("bisect", lowest_rate=10, highest_rate=20_000, precision=0.1), measure)
    assert rates[0] == 20_000
    assert [round(rate, -1) for rate in rates[2:6]] == [10_000, 15_000, 12_500, 11_250]


@METHODS
def test_service_that_holds_the_highest_rate_has_no_refused_one(method):
    found = search_stable_rate(search(method), SimulatedService(1, knee_rps=1e9).measure)
    assert (found.highest_confirmed_rps, found.lowest_refused_rps) == (pytest.approx(100_000), None)
    assert found.interval() == "[100000/s confirmed, no rate refused]"


@METHODS
def test_service_that_does_not_hold_the_lowest_rate_is_confirmed_nowhere(method):
    found = search_stable_rate(search(method), SimulatedService(1, knee_rps=100).measure)
    assert found.highest_confirmed_rps is None and found.lowest_refused_rps == pytest.approx(500, rel=0.06)


@METHODS
def test_noise_and_hysteresis_do_not_confirm_a_rate_that_is_not_held(method, capsys):
    """100 searches; the knee moves by 3 % from trial to trial and is 10 % lower after an overload."""
    seeds = range(100)
    services = [SimulatedService(seed, noise=0.03, hysteresis=0.10) for seed in seeds]
    results = [search_stable_rate(search(method, trials_max=60), service.measure) for service in services]
    confirmed = [result.highest_confirmed_rps for result in results if result.highest_confirmed_rps]
    right = sum(0.85 * KNEE_RPS <= rate <= 1.03 * KNEE_RPS for rate in confirmed)
    with capsys.disabled():
        print(f"\n  {method}: {right} of 100 confirmed rates within [0.85, 1.03] of the knee, median "
              f"{statistics.median(confirmed) / KNEE_RPS:.3f} of it, median of {statistics.median(s.trials for s in services):.0f} trials, "
              f"worst {max(s.trials for s in services)} (seeds 0–99)")
    assert right >= 90
    assert max(confirmed) < 1.06 * KNEE_RPS


@METHODS
def test_unknown_trials_are_repeated_and_never_count_as_missed(method):
    for seed in range(20):
        service = SimulatedService(seed, unknown=0.10)
        found = search_stable_rate(search(method, trials_max=80), service.measure)
        assert found.highest_confirmed_rps <= KNEE_RPS < found.lowest_refused_rps, f"seed {seed}"
        assert found.lowest_refused_rps / found.highest_confirmed_rps < 1.06, f"seed {seed}"
        assert len(found.trials) == service.trials


@METHODS
def test_machine_on_which_every_trial_says_nothing_stops_the_search(method):
    with pytest.raises(KvstudyError, match="3 trials in a row say nothing: rate=.*generator saturated"):
        search_stable_rate(search(method), SimulatedService(1, unknown=1.0).measure)


@METHODS
def test_budget_ends_the_search_and_the_result_says_so(method):
    service = SimulatedService(1)
    found = search_stable_rate(search(method, trials_max=4), service.measure)
    assert not found.complete and service.trials == 4
    assert "out of trials" in found.interval()


def test_candidate_that_is_not_confirmed_is_refused_and_the_next_lower_is_tried():
    def measure(rate_rps, purpose):
        limit = KNEE_RPS if purpose == "search" else 0.9 * KNEE_RPS
        return (Answer.HELD if rate_rps <= limit else Answer.MISSED), ""
    found = search_stable_rate(search("bisect"), measure)
    assert 0.84 * KNEE_RPS < found.highest_confirmed_rps <= 0.9 * KNEE_RPS < found.lowest_refused_rps < 0.96 * KNEE_RPS
