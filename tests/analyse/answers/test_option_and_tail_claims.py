"""What the study says of options and of the tail, as data."""

from dataclasses import replace

import numpy as np
import pandas as pd
from sample import empty_tables, sample_tables
from test_intervention import study

from kvstudy.analyse.answers import options, tail
from kvstudy.analyse.claim import INTERVENTION, Claim, Place
from kvstudy.analyse.comparison.words import NEITHER, TOO_FEW
from kvstudy.analyse.intervention import CAUSED, EXPERIMENT


def varied(experiment, factor, repeats=5):
    """Runs of selector and of workers, whose latencies are ``factor`` times as long."""
    parts = []
    for value, times in (("handler=selector", 1.0), ("handler=workers", factor)):
        tables = sample_tables(
            rates=(1000.0,), connections=(4,), workloads=("mixed",), repeats=repeats, profiled=False
        )
        runs = tables.runs.assign(
            run_id=f"{experiment} {value}" + tables.runs["run_id"], experiment=experiment, variant=value
        )
        points = tables.percentiles.assign(
            run_id=f"{experiment} {value}" + tables.percentiles["run_id"],
            latency_us=times * tables.percentiles["latency_us"],
        )
        parts.append((runs, points))
    runs, points = (pd.concat(frames, ignore_index=True) for frames in zip(*parts, strict=True))
    return replace(empty_tables(), runs=runs, percentiles=points)


def test_what_is_decided_of_an_option_is_told_against_its_default():
    answer = options.decided(options.standing(varied("handler", 3.0)))["handler"]
    slower = [claim for claim in answer.claims if claim.word == "slower"]
    assert {(claim.measure, claim.baseline, claim.variant) for claim in slower} == {
        (measure, "handler=selector", "handler=workers") for measure in ("p50", "p99")
    }
    assert {claim.subject for claim in slower} == {Place("mixed", 4, 1000.0, "handler")} and answer.runs == 10


def test_too_few_runs_decide_nothing_and_it_is_known_that_they_are_too_few():
    tables = varied("handler", 3.0, repeats=2)
    assert options.decided(options.standing(tables)) == {}
    answer, of = options.undecided(options.standing(tables))
    assert of == {"handler": len(answer.claims)}
    assert all(claim.why == TOO_FEW and claim.interval is None for claim in answer.claims)
    assert {claim.measure for claim in answer.claims} >= {"p50", "p99"}


def test_what_keeps_a_word_back_is_known_and_fewer_runs_are_not_blamed_for_what_they_did_not_forbid():
    undecided, _ = options.undecided(options.standing(varied("handler", 1.02)))
    assert {claim.why for claim in undecided.claims} == {NEITHER}


def test_what_was_held_off_is_a_claim_with_its_pairs_and_what_went_away_with_it():
    tables = study(flush=0.3)
    gone = tables.events["run_id"].str.startswith("flush-") & (tables.events["kind"] == "compaction")
    answer = tail.caused(
        replace(tables, runs=tables.runs.assign(experiment=EXPERIMENT), events=tables.events[~gone])
    )
    claims = {claim.variant: claim for claim in answer.claims}
    assert (claims["flush"].word, claims["flush"].also, claims["flush"].sides, claims["flush"].rule) == (
        CAUSED,
        ("compaction",),
        (8, 8),
        INTERVENTION,
    )
    assert claims["flush"].estimate < 0.5 and not claims["wal_sync"].decided and claims["wal_sync"].why


def test_without_single_answers_nothing_is_said_of_slow_ones():
    assert tail.linked(empty_tables()) is None and np.isnan(
        Claim(Place(), "p99", "us", float("nan")).estimate
    )
