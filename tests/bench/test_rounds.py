"""Intervals of the benchmarks' ratios: as those of a paired t test where no round is odd, and as often right
as they say. A step that the machine's host disturbed is made again."""

import math
import random

import bench_programs
import pytest
from scipy import stats


@pytest.fixture(scope="module")
def bench():
    return bench_programs.program("service/bench/rounds.py")


def test_the_interval_is_that_of_a_paired_t_test_of_logarithms(bench):
    ours, theirs = [110.0, 121.0, 99.0, 130.0], [100.0, 100.0, 101.0, 120.0]
    low, high = stats.ttest_rel(
        [math.log(x) for x in ours], [math.log(x) for x in theirs]
    ).confidence_interval(0.95)
    found = bench.ratio_of_rounds(ours, theirs)
    assert (found.low, found.high) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-4)
    other = bench.ratio_of_rounds(theirs, ours)
    assert (1 / other.high, 1 / other.typical, 1 / other.low) == pytest.approx(
        (found.low, found.typical, found.high)
    )


def test_95_of_100_intervals_hold_the_true_ratio_whatever_both_sides_share(bench):
    seed = random.randrange(2**32)
    source = random.Random(seed)
    held = 0
    for _ in range(2000):
        rounds = [(source.gauss(0, 0.3), source.gauss(math.log(1.05), 0.02)) for _ in range(6)]
        found = bench.ratio_of_rounds(
            [math.exp(shared + own) for shared, own in rounds], [math.exp(shared) for shared, _ in rounds]
        )
        held += found.low <= 1.05 <= found.high
    assert 0.93 <= held / 2000 <= 0.98, f"seed {seed}"  # over four standard deviations to either side


def test_one_round_has_no_interval_and_says_so(bench):
    assert bench.ratio_of_rounds([2.0], [1.0]).text() == "2.000 [one round: no interval] (2.000–2.000)"
    assert bench.ratio_of_rounds([2.0] * 6, [1.0] * 6).text(2) == "2.00 [2.00, 2.00] (2.00–2.00)"


def test_a_step_that_the_host_disturbed_is_made_again_and_a_round_that_stayed_so_is_left_out(
    bench, monkeypatch
):
    stolen_s, clock_s, made = [0.0], [0.0], []

    def step(share: float) -> dict:
        made.append(share)
        clock_s[0] += 10
        stolen_s[0] += share * 10 * bench.psutil.cpu_count()
        return {"rate_rps": 1.0}

    monkeypatch.setattr(bench, "_steal_s", lambda: stolen_s[0])
    monkeypatch.setattr(bench.time, "monotonic", lambda: clock_s[0])
    shares = iter([0.5, 0.5, 0.01])
    quiet = bench.undisturbed(lambda: step(next(shares)))
    assert quiet["undisturbed"] and made == [0.5, 0.5, 0.01]
    loud = bench.undisturbed(lambda: step(0.5))
    assert not loud["undisturbed"] and len(made) == 3 + bench.ATTEMPTS_MAX
    kept = {"ours": quiet, "theirs": quiet}
    assert bench.left_alone([kept, {"ours": quiet, "theirs": loud}]) == [kept]
