"""Where a duet stands: the words, when they are said, what holds them back, and how long the rest will
take."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from kvstudy.analyse.comparison import looks, stopping
from kvstudy.analyse.comparison.location import typical_launch
from kvstudy.analyse.comparison.lost import NOTHING_LOST, Lost
from kvstudy.analyse.comparison.words import CANNOT_TELL, CHEAPER, DEARER, FASTER, SAME, SLOWER

PRIMARY = {"workload": "put", "loop": "rate", "measure": "p50"}


def values(**logs) -> pd.DataFrame:
    """Log ratios by measure ("p50", "cpu", "rate"), one per launch."""
    names = {
        "p50": ("rate", "p50"),
        "p90": ("rate", "p90"),
        "p99": ("rate", "p99"),
        "mean": ("rate", "mean"),
        "cpu": ("rate", "CPU per request"),
        "rate": ("closed", "rate"),
    }
    return pd.DataFrame(
        [
            {
                "workload": "put",
                "loop": names[name][0],
                "measure": names[name][1],
                "a": 1.0,
                "b": float(np.exp(one)),
                "log_ratio": one,
                "rounds": 11,
                "launch": launch,
            }
            for name, of in logs.items()
            for launch, one in enumerate(of, start=1)
        ]
    )


def noisy(center: float, launches: int, noise=0.01) -> list[float]:
    """Of this mean at every even count, and of about this standard deviation."""
    sizes = (0.2, 1.5, 0.8)
    return [center + noise * sizes[number // 2 % 3] * (-1) ** number for number in range(launches)]


def words(*arguments, **keywords) -> dict[str, str]:
    return {
        one.measure: one.word
        for one in stopping.measure_results(values(**keywords), PRIMARY, 0.05, *arguments)
    }


def test_each_kind_of_measure_has_its_words():
    up, down = noisy(0.08, 8), noisy(-0.08, 8)
    assert words(p50=down, cpu=down, rate=down) == {"p50": FASTER, "CPU per request": CHEAPER, "rate": SLOWER}
    assert words(p50=up, cpu=up, rate=up) == {"p50": SLOWER, "CPU per request": DEARER, "rate": FASTER}
    assert words(p50=noisy(0.001, 8))["p50"] == SAME


def test_nothing_is_said_before_the_first_look():
    found = stopping.measure_results(values(p50=noisy(0.5, looks.FIRST_LOOK - 1)), PRIMARY, 0.05)[0]
    assert found.word == CANNOT_TELL and np.isnan(found.low) and found.to_come == 1 and np.isinf(found.found)


def test_the_interval_excludes_one_exactly_where_an_uncorrected_look_does():
    print("seed=11")
    generator = np.random.default_rng(11)
    for _ in range(300):
        found = stopping.looked_at(
            generator.normal(0.01, 0.02, generator.integers(looks.FIRST_LOOK, 25)), 0.05
        )
        assert (found["p"] <= 0.05) == (not found["low"] <= 1 <= found["high"])


def test_the_same_is_not_said_beside_an_interval_that_an_odd_launch_takes_beyond_the_margin():
    said = {}
    for count in range(looks.FIRST_LOOK, 18):
        (found,) = stopping.measure_results(values(p50=[-0.28, *noisy(0, count - 1, 0.002)]), PRIMARY, 0.05)
        assert (found.word == SAME) == (found.low > 1 / 1.05 and found.high < 1.05), count
        said[count] = found.word
    assert set(said.values()) == {SAME, CANNOT_TELL}


def test_the_primary_measure_is_not_corrected_for_the_others_and_these_are_for_one_another():
    logs = noisy(0.011, 12, 0.011)
    alone, beside = words(p50=logs), words(p50=logs, p90=logs, cpu=logs, rate=logs)
    assert alone["p50"] == beside["p50"] == SLOWER
    assert beside["p90"] == SAME and words(p50=logs, p90=logs)["p90"] == SLOWER


def test_launches_after_a_word_do_not_unsay_it_and_going_on_costs_nothing():
    logs = noisy(0.08, 8)
    assert words(p50=logs)["p50"] == words(p50=logs + noisy(0.08, 30))["p50"] == SLOWER


def test_the_order_of_the_rows_does_not_matter_only_that_of_the_launches():
    frame = values(p50=[0.05, 0.06, 0.04, 0.05, 0.3, -0.2, 0.06])
    assert stopping.measure_results(frame, PRIMARY, 0.05) == stopping.measure_results(
        frame.sample(frac=1, random_state=3), PRIMARY, 0.05
    )


def test_launches_that_agree_better_than_a_histogram_resolves_are_no_certainty():
    assert words(p50=[0.0004] * 6)["p50"] == SAME


@pytest.mark.parametrize(
    ("lost", "up", "down"),
    [
        (
            Lost(a=0, b=30, of=100),
            SLOWER,
            CANNOT_TELL,
        ),  # b's bad rounds are gone: that it is slower holds all the more
        (Lost(a=30, b=0, of=100), CANNOT_TELL, FASTER),
        (Lost(a=30, b=28, of=100), SLOWER, FASTER),
    ],
)
def test_of_a_side_that_lost_more_rounds_by_its_own_doing_nothing_good_is_said(lost, up, down):
    by_part = {("put", "rate", "latency"): lost}
    assert (words(by_part, p50=noisy(0.08, 8))["p50"], words(by_part, p50=noisy(-0.08, 8))["p50"]) == (
        up,
        down,
    )
    assert words(by_part, cpu=noisy(0.08, 8))["CPU per request"] == DEARER, (
        "of the cost no round was left out"
    )


@pytest.mark.parametrize(
    ("center", "least", "most", "said"),
    [
        (0.5, 0.3, 0.5, SLOWER),  # also if a had been as bad as can be in what it lost
        (0.08, -0.1, 0.08, CANNOT_TELL),
        (0.08, -np.inf, 0.08, CANNOT_TELL),
        (-0.5, -0.5, -0.3, FASTER),
        (0.0, -0.02, 0.0, SAME),
        (0.0, -0.2, 0.0, CANNOT_TELL),
    ],
)
def test_a_word_that_holds_however_bad_the_lost_rounds_were_is_said(center, least, most, said):
    frame = values(p50=noisy(center, 8)).assign(log_least=noisy(least, 8), log_most=noisy(most, 8))
    loser = Lost(a=30, b=0, of=100) if center >= 0 else Lost(a=0, b=30, of=100)
    by_part = {("put", "rate", "latency"): loser}
    (found,) = stopping.measure_results(frame, PRIMARY, 0.05, by_part)
    assert found.word == said
    assert found.held_back == ("" if said != CANNOT_TELL else SLOWER if center else SAME)
    (plain,) = stopping.measure_results(frame, PRIMARY, 0.05)
    assert (found.ratio, found.low, found.high) == (plain.ratio, plain.low, plain.high), (
        "the interval is its own"
    )


def standing(logs, lost, at="p99", launches_lost=NOTHING_LOST) -> stopping.MeasureResult:
    """What launches say of which those at the places ``lost`` lost rounds of side a."""
    least = np.where(np.isin(np.arange(len(logs)), list(lost)), -np.inf, logs)
    (found,) = stopping.measure_results(
        values(**{at: logs}).assign(log_least=least, log_most=logs),
        {**PRIMARY, "measure": at},
        0.05,
        {("put", "rate", "latency"): Lost(a=len(lost), b=0, of=10)},
        launches_lost,
    )
    return found


@pytest.mark.parametrize(
    ("lost", "at", "said"),
    [
        ({3}, "p99", SLOWER),  # one of twelve is outvoted wherever it lay
        ({1, 4, 7, 9}, "p99", CANNOT_TELL),  # so many may be what is typical
        ({3}, "p50", SLOWER),
    ],
)
def test_a_word_about_a_tail_holds_wherever_the_launches_that_lost_rounds_may_have_lain(lost, at, said):
    found = standing(noisy(0.5, 12, 0.05), lost, at)
    assert (found.word, found.held_back) == (said, "" if said == SLOWER else SLOWER)


def test_a_tail_whose_launches_with_lost_rounds_may_be_outvoted_is_worth_further_launches():
    six = noisy(1.0, 6, 0.05)
    early, late, many = standing(six, {0}), standing(noisy(1.0, 16, 0.05), {0}), standing(six, {0, 1})
    assert (early.word, early.held_back, early.is_over) == (CANNOT_TELL, SLOWER, False)
    assert stopping.undecided([early]) and early.to_come > 0
    assert (late.word, late.to_come) == (SLOWER, 0), "one of sixteen is outvoted"
    assert many.held_back == SLOWER and many.is_over, "a third may be what is typical"
    died = standing(six, {0}, launches_lost=Lost(a=1, b=0, of=7))
    assert died.held_back == SLOWER and died.is_over


def test_a_launch_that_may_have_lain_anywhere_is_tried_where_it_does_most_harm():
    """Far away it is odd, outvoted, and counts for nothing; close by it moves the estimate."""
    print("seed=21")
    generator, harmed = np.random.default_rng(21), 0
    for _ in range(60):
        logs = generator.normal(0.06, 0.05, 12)
        found = standing(logs, {3})
        if found.word == SLOWER:
            for value in generator.uniform(-1.0, logs[3], 20):
                completed = np.where(np.arange(12) == 3, min(value, logs[3]), logs)
                assert standing(completed, {}).word == SLOWER, value
        harmed += found.word != SLOWER and found.held_back == SLOWER
    assert harmed > 0


def test_launches_that_a_side_emptied_forbid_what_is_good_of_it_though_the_others_lost_nothing():
    """They have no row: what they would say is not known."""
    frame = values(p50=noisy(-0.08, 8)).assign(log_least=noisy(-0.08, 8), log_most=noisy(-0.08, 8))
    emptied = {("put", "rate", "latency"): Lost(a=0, b=40, of=120, emptied=4)}
    (found,) = stopping.measure_results(frame, PRIMARY, 0.05, emptied)
    assert (found.word, found.held_back) == (CANNOT_TELL, FASTER)
    by_a = {("put", "rate", "latency"): Lost(a=40, b=0, of=120, emptied=4)}
    (found,) = stopping.measure_results(frame, PRIMARY, 0.05, by_a)
    assert found.word == FASTER, "a would have been worse still"


def test_one_round_with_lost_requests_more_forbids_what_is_good_of_that_sides_tail():
    by_part = {
        ("put", "rate", "errors"): Lost(a=0, b=1, of=100),
        ("put", "rate", "latency"): Lost(a=0, b=1, of=100),
    }
    found = words(by_part, p50=noisy(-0.08, 8), p99=noisy(-0.08, 8), mean=noisy(0.08, 8))
    assert found == {"p50": FASTER, "p99": CANNOT_TELL, "mean": SLOWER}


def test_a_launch_in_which_a_side_died_forbids_what_is_good_of_it_and_the_same():
    died = Lost(a=0, b=1, of=9)
    assert (
        words({}, died, p50=noisy(-0.08, 8))["p50"]
        == words({}, died, p50=noisy(0.0, 8))["p50"]
        == CANNOT_TELL
    )
    found = stopping.measure_results(values(p50=noisy(0.0, 8)), PRIMARY, 0.05, {}, died)
    assert found[0].held_back == SAME and not stopping.undecided(found), "more launches would not decide it"


def test_the_launches_to_come_are_about_those_that_it_takes():
    print("seed=5")
    logs = np.random.default_rng(5).normal(0.03, 0.03, (40, 60))
    told = [stopping.measure_results(values(p50=one[:6]), PRIMARY, 0.02)[0].to_come for one in logs]
    counts = range(7, 61, 3)
    decided = np.array([np.minimum(*stopping.sequential(logs[:, :n], 0.02)) <= 0.05 for n in counts])
    took = np.where(decided.any(axis=0), 1 + 3 * decided.argmax(axis=0), 60)
    assert 0.3 < np.median([one for one in told if one is not None]) / np.median(took) < 3


def with_odd(center: float, launches: int, odd: dict[int, float]) -> list[float]:
    return [odd.get(place, log) for place, log in enumerate(noisy(center, launches))]


def test_odd_launches_hide_no_effect_and_are_counted():
    logs = with_odd(0.08, 14, {3: 0.5, 8: -0.4})
    (found,) = stopping.measure_results(values(p50=logs), PRIMARY, 0.05)
    assert (found.word, found.odd, found.against, found.is_typical) == (SLOWER, 2, 1, True)
    assert found.ratio == pytest.approx(np.exp(0.08), rel=0.01) and 1 < found.low < found.high < 1.2
    assert words(p50=with_odd(0.0, 16, {3: 0.5, 8: 0.4}))["p50"] == SAME


def test_an_odd_launch_against_a_word_outvotes_few_others():
    logs = with_odd(0.08, 12, {3: -0.4})
    assert [words(p50=logs[:count])["p50"] for count in (8, 11)] == [CANNOT_TELL] * 2
    assert words(p50=logs)["p50"] == SLOWER
    (found,) = stopping.measure_results(values(p50=logs[:8]), PRIMARY, 0.05)
    assert found.low < np.exp(-0.4) and found.to_come == 7, "of 15, two may be against it"


IN_TWO_GROUPS = [0.53, 0.12, 0.50, 0.13, 0.14, 0.41, 0.13, 0.10, 0.15, 0.20, 0.14]


def test_launches_in_two_groups_that_all_agree_get_their_word_when_the_signs_suffice():
    nine, ten = (
        stopping.measure_results(values(p50=IN_TWO_GROUPS[:count]), PRIMARY, 0.05)[0] for count in (9, 10)
    )
    assert (nine.word, nine.is_typical, nine.in_groups, nine.apart) == (CANNOT_TELL, False, True, None)
    assert (ten.word, ten.is_typical, ten.in_groups) == (SLOWER, False, False) and ten.low > 1
    assert ten.apart == pytest.approx((np.exp(0.10), np.exp(0.53)))
    for more in range(1, 8):
        assert words(p50=IN_TWO_GROUPS + [0.5] * more)["p50"] == SLOWER, "who agrees takes nothing back"


def test_launches_in_two_groups_that_agree_say_how_many_more_decide():
    tight = [0.5, 0.12, 0.51, 0.13, 0.12, 0.5, 0.13]
    (found,) = stopping.measure_results(values(p50=tight), PRIMARY, 0.05)
    assert (found.word, found.in_groups, found.to_come) == (CANNOT_TELL, True, 2)
    assert words(p50=[*tight, 0.51])["p50"] == CANNOT_TELL and words(p50=[*tight, 0.51, 0.5])["p50"] == SLOWER


def test_launches_in_two_groups_take_a_word_back_and_none_is_the_answer():
    logs = noisy(0.3, 7, 0.01) + noisy(0.0, 5, 0.01)
    assert words(p50=logs[:7])["p50"] == SLOWER
    (found,) = stopping.measure_results(values(p50=logs), PRIMARY, 0.05)
    assert (found.word, found.is_typical, found.in_groups, found.to_come) == (CANNOT_TELL, False, True, None)
    assert found.low < 1 < np.exp(0.3) < found.high
    together = noisy(0.3, 7, 0.01) + noisy(0.5, 5, 0.01)
    assert words(p50=together)["p50"] == SLOWER, "that holds of both groups"


def test_a_launch_that_lost_rounds_is_not_set_aside_at_its_worst():
    frame = values(p50=noisy(-0.08, 14))
    most = frame["log_ratio"].copy()
    most[2] = 0.5  # as bad as can be of b: odd, and for a typical launch of no weight
    frame = frame.assign(log_least=frame["log_ratio"], log_most=most)
    lost = {("put", "rate", "latency"): Lost(a=0, b=30, of=100)}
    (found,) = stopping.measure_results(frame, PRIMARY, 0.05, lost)
    assert (found.word, found.held_back) == (CANNOT_TELL, FASTER)
    assert stopping.looked_at(most, 0.05)["p"] <= 0.05, "which setting it aside would have hidden"


def test_ratio_and_interval_are_of_the_same_launches_beyond_the_last_look():
    logs = noisy(0.0, looks.LAST_LOOK) + [1.0] * 20
    found = stopping.looked_at(logs, 0.05)
    assert found["launches"] == looks.LAST_LOOK and found == stopping.looked_at(logs[: looks.LAST_LOOK], 0.05)
    assert found["low"] <= found["ratio"] <= found["high"] < 1.05


def test_what_could_have_been_found_is_found_in_four_of_five():
    print("seed=6")
    generator = np.random.default_rng(6)
    named = stopping.could_find(typical_launch(generator.normal(0.0, 0.03, (3000, 12))))
    logs = generator.normal(0.0, 0.03, (3000, 12)) + np.log(np.median(named))
    assert 0.75 <= (stopping.sequential(logs, 0.05)[0] <= 0.05).mean() <= 0.88


def test_an_odd_launch_more_in_the_next_duet_is_reckoned_with():
    """Of 12 launches one may be against a word; where one is, another duet has two in more than one of
    five."""
    calm, odd = ([noisy(0.0, 12, 0.01)], [with_odd(0.0, 12, {3: 0.4})])
    assert stopping.could_find(typical_launch(np.array(calm)))[0] < 1.05
    now = typical_launch(np.array(odd))
    assert now.interval(looks.nominal_p(0.05, 12))[1][0] < 0.1 < 0.35 < np.log(stopping.could_find(now))[0]


def test_of_launches_of_which_none_is_odd_a_t_test_says_what_could_have_been_found():
    (found,) = stopping.measure_results(values(p50=noisy(0.0, 12, 0.05)), PRIMARY, 0.01)
    reach = stats.t.isf(looks.nominal_p(0.05, 12) / 2, 11) + stats.t.ppf(0.8, 11)
    assert found.word == CANNOT_TELL and found.odd == 0
    assert found.found == pytest.approx(np.exp(reach * found.noise / np.sqrt(12)))


def test_what_could_have_been_found_is_no_less_than_the_interval_reaches():
    """An odd launch that votes moves the interval's end to where it lies itself."""
    print("seed=8")
    generator, undecided = np.random.default_rng(8), 0
    for _ in range(150):
        count = int(generator.integers(looks.FIRST_LOOK, 16))
        odd = generator.random((3, count)) < 0.2
        logs = generator.normal(0.0, 0.02, (3, count)) + odd * generator.choice((-0.4, 0.4), (3, count))
        for one in stopping.measure_results(values(p50=logs[0], p90=logs[1], cpu=logs[2]), PRIMARY, 0.01):
            if not one.decided:
                undecided += 1
                assert one.found >= max(one.high / one.ratio, one.ratio / one.low), one
    assert undecided > 100


def test_launches_that_fall_into_groups_name_no_difference_that_they_find():
    (found,) = stopping.measure_results(values(p50=noisy(0.3, 7, 0.01) + noisy(0.0, 5, 0.01)), PRIMARY, 0.05)
    assert found.in_groups and np.isinf(found.found)


def test_what_could_have_been_found_holds_of_the_lost_rounds_at_worst():
    logs = noisy(0.0, 12, 0.05)
    frame = values(p50=logs).assign(log_least=logs, log_most=noisy(0.3, 12, 0.05))
    (usual,) = stopping.measure_results(frame, PRIMARY, 0.01)
    lost = {("put", "rate", "latency"): Lost(a=0, b=30, of=100)}
    (found,) = stopping.measure_results(frame, PRIMARY, 0.01, lost)
    assert (found.word, usual.word) == (CANNOT_TELL, CANNOT_TELL)
    assert found.found == pytest.approx(usual.found * np.exp(0.3)), "b may be slower by that already"
    (unknown,) = stopping.measure_results(values(p50=logs), PRIMARY, 0.01, lost)
    (infinite,) = stopping.measure_results(frame.assign(log_most=np.inf), PRIMARY, 0.01, lost)
    (died,) = stopping.measure_results(frame, PRIMARY, 0.01, {}, Lost(a=0, b=1, of=13))
    assert all(np.isinf(one.found) for one in (unknown, infinite, died))


def test_one_busy_round_more_forbids_what_is_good_of_that_sides_tail():
    """p99 lives in a hundredth of the answers: of the rounds that a compaction takes all of them may be."""
    busy = {("put", "rate", "latency"): Lost(a=1, b=4, of=100)}
    good, bad = noisy(-0.08, 8), noisy(0.08, 8)
    assert words(busy, p50=good, p99=good, mean=good) == {
        "p50": FASTER,
        "p99": CANNOT_TELL,
        "mean": CANNOT_TELL,
    }
    assert words(busy, p50=bad, p99=bad, mean=bad) == {"p50": SLOWER, "p99": SLOWER, "mean": SLOWER}
    assert words(busy, p99=noisy(0.0, 8))["p99"] == CANNOT_TELL
    frame = values(mean=good).assign(log_least=good, log_most=good)
    (mean,) = stopping.measure_results(frame, PRIMARY, 0.05, busy)
    assert mean.word == FASTER, "that holds however bad these rounds were"


def test_the_same_is_taken_back_where_the_ratio_contradicts_it_by_now():
    early = [0.008, 0.018, 0.001, 0.02, 0.017, -0.004]
    late = [0.178, 0.164, 0.308, 0.114, -0.28, 0.13]
    assert words(p50=early) == {"p50": SAME}
    (one,) = stopping.measure_results(values(p50=[*early, *late]), PRIMARY, 0.05)
    assert one.is_typical and one.ratio > 1.05 and one.word == CANNOT_TELL
