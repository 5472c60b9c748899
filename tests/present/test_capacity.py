"""How much load is too much: sentences that are true of searches, of sweeps, and of nothing at all."""

import json
import re
from dataclasses import replace

import pandas as pd
import pytest
from sample import empty_tables, failed, sample_tables

from kvstudy.analyse.tables import Tables
from kvstudy.errors import KvstudyError
from kvstudy.present import capacity
from kvstudy.present.figures.rate import latency_against_rate

NOTHING = empty_tables()


def searched(*trials, experiment="report-1", objective=None, top=28000.0) -> Tables:
    """One search: (rate, purpose, answer, share of the rate achieved) of each trial."""
    first = sample_tables(
        rates=(1000.0,), connections=(1,), workloads=("put",), repeats=1, profiled=False
    ).runs
    search = {
        "precision": 0.05,
        "lowest_rate_rps": 1000.0,
        "objective": {"achieved_share": 0.99, **(objective or {"mean": 0.001})},
        "highest_rate_rps": top,
    }
    rows = [
        first.assign(
            run_id=f"{experiment}-{number}",
            experiment=experiment,
            plan_index=number,
            offered_rate_rps=float(rate),
            achieved_rate_rps=rate * share,
            answer=answer,
            search=json.dumps(search | {"purpose": purpose}),
            verdict="PASS",
        )
        for number, (rate, purpose, answer, share) in enumerate(trials)
    ]
    return replace(NOTHING, runs=pd.concat(rows, ignore_index=True))


def together(*parts: Tables) -> Tables:
    return replace(
        NOTHING,
        **{
            name: pd.concat([getattr(part, name) for part in parts], ignore_index=True)
            for name in ("runs", "percentiles", "validity")
        },
    )


def steady(repeats=6, latencies=None, **changes) -> Tables:
    """Runs that held every rate; ``latencies``: p99 in us by rate."""
    found = sample_tables(
        rates=(1000.0, 2000.0),
        connections=(1,),
        workloads=("unique_put",),
        repeats=repeats,
        profiled=False,
        capacity_rps=1e6,
        **changes,
    )
    if latencies is None:
        return found
    rates = found.percentiles["run_id"].map(found.runs.set_index("run_id")["offered_rate_rps"])
    return replace(found, percentiles=found.percentiles.assign(latency_us=rates.map(latencies)))


HELD = [(20000, "sweep", "held", 1.0)] * 6
BETWEEN = searched(*HELD, *[(24000, "sweep", "missed", 1.0), *HELD[:2]] * 3)
TO_THE_TOP = searched(*[(28000, "sweep", "held", 1.0)] * 6, experiment="report-4")
REFUSED = searched(
    *[(1000, "sweep", "missed", 0.5)] * 6,
    (28000, "search", "missed", 0.1),
    experiment="own",
    objective={"p99": 0.005},
)
UNDECIDED = searched((1000, "search", "unknown", 1.0), (2000, "search", "unknown", 1.0), experiment="lost")


def answer_text(*arguments) -> str:
    return capacity.answer(*arguments).data.replace("\u202f", " ")


def expected(*arguments) -> str:
    return capacity.expectation(*arguments).data.replace("\u202f", " ")


@pytest.mark.parametrize(
    "trials, sentence",
    [
        (
            BETWEEN,
            (
                r"- report-1, put, 1 connection: (20|21) \d{3} r/s is held more often than not, 2\d \d{3} "
                r"r/s is missed more often than not \(a mean of at most 1 ms; 15 runs\)\."
            ),
        ),
        (
            TO_THE_TOP,
            (
                r"2[0-7] \d{3} r/s is held more often than not \(a mean of at most 1 ms; 6 runs\), since "
                r"28 000 r/s, the highest that was tried, was held in 6 of 6 trials; no rate that it "
                r"tried is surely too much\."
            ),
        ),
        (
            REFUSED,
            (
                r"1 \d{3} r/s is missed more often than not \(p99 of at most 5 ms; 7 runs\); no rate that "
                r"it tried is surely held\."
            ),
        ),
        (UNDECIDED, r"cannot tell: 2 trials are too few to say of any rate that it is held or missed\."),
    ],
    ids=["between", "to-the-top", "refused", "undecided"],
)
def test_a_search_says_between_which_rates_its_knee_lies(trials, sentence):
    assert re.search(sentence, answer_text(NOTHING, trials)), answer_text(NOTHING, trials)


def test_several_searches_are_counted_by_how_they_ended():
    trials = together(BETWEEN, TO_THE_TOP, REFUSED, UNDECIDED)
    assert answer_text(NOTHING, trials).startswith(
        "**Found:** of 4 searches for the highest rate that keeps an objective 1 found the knee "
        "between two rates, "
        "1 met no rate that is surely too much, 1 found every rate too much, 1 decided nothing."
    )
    assert answer_text(NOTHING, trials).count("\n- ") == 4


def test_where_every_rate_was_held_none_is_called_too_much():
    assert answer_text(steady(), NOTHING) == (
        "**Found:** of the rates chosen beforehand in `sample`, at most 2 000 r/s, none was too much: "
        "the only combination of workload, connections and options "
        "held what it was offered, and what saturates it lies above."
    )


def test_a_rate_that_was_not_held_is_too_much_and_the_highest_held_is_named():
    sentence = answer_text(sample_tables(profiled=False, repeats=5), NOTHING)
    assert (
        "the highest that was held is 4 000 r/s; 4 of 4 combinations" in sentence
        and "met one that is too much, the lowest 16 000 r/s by " in sentence
    )


def test_of_single_runs_no_rate_is_called_held_or_too_much():
    """As the table below the answer, and the findings: one run at a rate decides nothing."""
    few = sample_tables(profiled=False, repeats=1)
    assert answer_text(few, NOTHING) == (
        "**Found:** of the rates chosen beforehand in `sample` cannot tell which are held: "
        "fewer than 5 runs at a rate in each of 4 combinations of workload, connections and options."
    )
    tables = sample_tables(profiled=False, repeats=5)
    runs = tables.runs
    enough = (runs["connections"] == 4) & (runs["offered_rate_rps"] == 1000)
    single = (runs["connections"] == 1) & (runs["repeat"] == 1)
    sentence = answer_text(tables.only(runs.loc[enough | single, "run_id"]), NOTHING)
    assert "at most 1 000 r/s, none was too much: each of 2 combinations" in sentence
    assert "fewer than 5 runs at a rate, too few to be sure, are in 2 of 4" in sentence
    enough &= runs["workload"] == runs["workload"].iloc[0]
    sentence = answer_text(tables.only(runs.loc[enough | single, "run_id"]), NOTHING)
    assert "none was too much: one combination of workload" in sentence and "are in 2 of 3" in sentence


def test_trials_of_a_search_are_no_rates_chosen_beforehand():
    assert "chosen beforehand" not in answer_text(BETWEEN, BETWEEN)


def test_without_an_informative_run_nothing_can_be_told():
    found = steady()
    disturbed = pd.DataFrame(
        {
            "run_id": found.runs["run_id"],
            "check": "no_foreign_load",
            "verdict": "FAIL",
            "observed": "80 %",
            "required": "≤ 2 %",
        }
    )
    silent = replace(found, validity=disturbed, runs=found.runs.assign(verdict="FAIL"))
    assert (
        "nothing can be told: no run shows whether its rate was held; checks failed: no_foreign_load (12)"
        in answer_text(silent, NOTHING)
    )
    one = silent.runs["offered_rate_rps"] == 2000
    partly = replace(
        silent,
        validity=disturbed[one.to_numpy()],
        runs=silent.runs.assign(verdict=one.map({True: "FAIL", False: "PASS"})),
    )
    assert "at most 1 000 r/s, none was too much (1 of 2 cannot be judged" in answer_text(partly, NOTHING)
    assert "cannot tell" in expected(partly, NOTHING)


def test_of_nothing_it_says_so():
    assert (
        answer_text(NOTHING, NOTHING)
        == "**Found:** cannot tell: there is no search for a stable rate and no run at an offered rate."
    )
    assert expected(NOTHING, NOTHING) == "**Against the Expectation:** cannot tell."


def test_a_missed_rate_that_was_achieved_is_latency_that_warned_first():
    assert expected(NOTHING, BETWEEN) == (
        "**Against the Expectation:** it held, as far as it was tested. The only search missed a rate "
        "that was achieved: latency broke the objective first."
    )
    both = expected(NOTHING, together(BETWEEN, REFUSED, TO_THE_TOP))
    assert (
        "it held in part" in both
        and "1 missed a rate that was not achieved either; 1 met no rate that was too much" in both
    )


def test_a_percentile_that_doubles_at_a_rate_that_was_held_warned_first():
    assert "it held, as far as it was tested" in expected(
        steady(latencies={1000.0: 200.0, 2000.0: 900.0}), NOTHING
    )
    flat = expected(steady(latencies={1000.0: 200.0, 2000.0: 210.0}), NOTHING)
    assert (
        "cannot tell" in flat
        and "options held every rate, with no p99 over 2 times that at the lowest rate" in flat
    )


def test_too_few_runs_tell_nothing_of_the_expectation():
    assert "options had too few valid runs" in expected(
        steady(repeats=1, latencies={1000.0: 200.0, 2000.0: 900.0}), NOTHING
    )


def test_saturation_without_a_warning_before_it_is_against_the_expectation():
    found = sample_tables(
        rates=(1000.0, 2000.0, 16000.0),
        connections=(1,),
        workloads=("unique_put",),
        repeats=6,
        profiled=False,
    )
    rates = found.percentiles["run_id"].map(found.runs.set_index("run_id")["offered_rate_rps"])
    found = replace(
        found,
        percentiles=found.percentiles.assign(
            latency_us=rates.map({1000.0: 200.0, 2000.0: 210.0, 16000.0: 9e5})
        ),
    )
    assert expected(found, NOTHING).startswith(
        "**Against the Expectation:** it did not hold. The only combination of workload, connections "
        "and options met a rate that was not held, with no p99 "
    )


def test_one_run_that_missed_a_rate_is_no_saturation_without_a_warning():
    found = steady(latencies={1000.0: 200.0, 2000.0: 210.0})
    few = sample_tables(
        rates=(16000.0,), connections=(1,), workloads=("unique_put",), repeats=4, profiled=False
    )
    text = expected(together(found, few), NOTHING)
    assert "cannot tell" in text and "had too few valid runs" in text


@pytest.mark.parametrize("excluded", ["service", "outside"])
def test_a_rate_at_which_runs_were_lost_has_no_bend_ruled_out_by_those_that_are_left(excluded):
    """Also by others, where it befell this rate more often than chance does."""
    found = steady(repeats=12, latencies={1000.0: 200.0, 2000.0: 210.0})
    assert "options held every rate" in expected(found, NOTHING)
    lost = found.runs["run_id"][found.runs["offered_rate_rps"] == 2000].head(6)
    disturbed = failed(found, lost, "no_foreign_load" if excluded == "outside" else "no_errors", "", excluded)
    assert "options held every rate" not in expected(disturbed, NOTHING)


@pytest.mark.parametrize(
    ("percentile", "why"),
    [
        (97, "had no p97. Tables keep only some: 0, 10, 25, 50"),
        (99.99, "had no p99.99. It needs 10 samples beyond the percentile."),
    ],
)
def test_runs_that_lack_the_percentile_are_not_said_to_be_too_few(percentile, why):
    text = expected(steady(), NOTHING, percentile)
    assert why in text and "too few valid runs" not in text and "cannot tell" in text
    assert "had no" not in expected(steady(), NOTHING, 99.0)


@pytest.mark.parametrize("percentile", [200, "99", -1, None])
def test_what_is_no_percentile_is_refused(percentile):
    with pytest.raises(KvstudyError, match="no percentile"):
        capacity.expectation(steady(), NOTHING, percentile)
    with pytest.raises(KvstudyError, match="no percentile"):
        latency_against_rate(steady(), percentile)


def test_where_every_rate_has_too_few_runs_cannot_tell_comes_first():
    assert answer_text(steady(repeats=3), NOTHING) == (
        "**Found:** of the rates chosen beforehand in `sample` cannot tell which are held: fewer than 5 "
        "runs at a rate in the only combination of workload, connections and options."
    )
