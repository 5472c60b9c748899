"""How much load is too much, as data: which combinations there are, which rates each held, whether latency
warned. No sentence is read here."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sample import empty_tables, sample_tables

from kvstudy.analyse import capacity, neighbours, rates
from kvstudy.analyse.configuration import COMBINATION, configured
from kvstudy.analyse.script_limit import script_limit
from kvstudy.present import series
from kvstudy.present.figures.rate import latency_against_rate
from kvstudy.present.summary import held


def measured(**changes):
    defaults = {"profiled": False, "repeats": 5, "connections": (1,), "workloads": ("unique_put",)}
    return sample_tables(**(defaults | changes))


def lost_by_the_service(tables, rate_rps, runs=3):
    """Of the runs at ``rate_rps`` so many died of themselves, though they had achieved their rate."""
    lost = tables.runs.index[tables.runs["offered_rate_rps"] == rate_rps][:runs]
    marked = tables.runs.assign(
        verdict=tables.runs["verdict"].mask(tables.runs.index.isin(lost), "FAIL"),
        excluded=tables.runs["excluded"].mask(tables.runs.index.isin(lost), "service"),
    )
    checks = pd.concat([tables.validity.head(1)] * runs).assign(
        run_id=tables.runs.loc[lost, "run_id"].tolist(), check="no_errors", verdict="FAIL"
    )
    return replace(tables, runs=marked, validity=pd.concat([tables.validity, checks], ignore_index=True))


def test_every_part_of_the_study_has_the_same_combinations():
    tables = measured(connections=(1, 4), workloads=("unique_put", "repeated_get"), repeats=2)
    # An option, and a fact that some runs did not note, make others.
    option = ["" if repeat == 1 else "handler=workers" for repeat in tables.runs["repeat"]]
    noted = [None if connections == 1 else "G1" for connections in tables.runs["connections"]]
    tables = replace(tables, runs=tables.runs.assign(variant=option, pinning=noted))
    runs = configured(tables.runs)
    combinations = runs[COMBINATION].nunique()
    assert combinations == 8
    assert len(rates.held_rates(tables)) == len(held(tables)) == combinations
    assert len(capacity.rates_chosen(tables).points) == combinations
    assert len(capacity.warnings_of_rates(tables, 99.0)) == combinations
    assert series.names(runs).groupby(runs[COMBINATION]).nunique().eq(1).all()
    assert series.names(runs).nunique() == combinations


def test_a_rate_that_most_runs_did_not_survive_is_held_nowhere():
    """Of five runs three died; the two others achieved the rate."""
    tables = lost_by_the_service(measured(rates=(1000.0, 2000.0), capacity_rps=1e6), 2000.0)
    (row,) = rates.held_rates(tables).itertuples()
    chosen = capacity.rates_chosen(tables)
    assert (row.highest_held_rps, row.saturation_rps) == (1000.0, 2000.0)
    assert chosen.lost["saturation_rps"].tolist() == [2000.0] and chosen.highest_held_rps == 1000.0
    assert "2\u202f000 r/s saturates it" in latency_against_rate(tables).layout.meta["finding"]


def test_a_run_that_the_service_lost_counts_as_nothing_achieved_and_is_drawn_where_it_was():
    tables = lost_by_the_service(measured(rates=(1000.0,), capacity_rps=1e6), 1000.0, runs=1)
    runs = rates.with_rate_outcome(tables, tables.runs)
    lost = runs["excluded"] == "service"
    assert runs.loc[lost, "is_informative"].all() and (runs.loc[lost, "counted_rate_rps"] == 0).all()
    assert (runs["achieved_rate_rps"] > 900).all()


@pytest.mark.parametrize(
    ("warnings", "said"),
    [
        ([], "cannot tell"),
        ([capacity.NEITHER, capacity.ALONE, capacity.UNSURE], "cannot tell"),
        ([capacity.WARNED, capacity.NEITHER], capacity.HELD),
        ([capacity.WARNED, capacity.LATE], capacity.HELD_IN_PART),
        ([capacity.LATE], capacity.NOT_HELD),
    ],
)
def test_the_expectation_holds_where_latency_always_warned(warnings, said):
    assert capacity.expectation(Counter(warnings)) == said


def test_neighbouring_rates_are_close_apart_or_neither():
    tables = measured(rates=(1000.0, 2000.0), capacity_rps=1e6)
    rate = tables.percentiles["run_id"].map(tables.runs.set_index("run_id")["offered_rate_rps"])
    for factor, verdict in ((1.0, capacity.HELD), (20.0, capacity.NOT_HELD), (2.0, "cannot tell")):
        latency = tables.percentiles["latency_us"] * np.where(rate == 2000.0, factor, 1.0)
        found = neighbours.neighbouring_rates(
            replace(tables, percentiles=tables.percentiles.assign(latency_us=latency))
        )
        assert (found.verdict, len(found.pairs)) == (verdict, 1)
    assert neighbours.neighbouring_rates(empty_tables()).verdict == "cannot tell"


def test_a_script_is_compared_by_what_it_sends_least_in_any_configuration():
    alone = measured(rates=(1000.0,))
    alone = replace(
        alone,
        runs=alone.runs.assign(
            closed_loop=True, offered_rate_rps=np.nan, achieved_rate_rps=50_000.0, server="empty", threads=1
        ),
    )
    other = alone.runs.assign(
        run_id="other-" + alone.runs["run_id"], achieved_rate_rps=40_000.0, connections=4
    )
    scripts = replace(alone, runs=pd.concat([alone.runs, other], ignore_index=True))
    store = alone.runs.assign(
        run_id="store-" + alone.runs["run_id"],
        server="kv-service",
        closed_loop=False,
        offered_rate_rps=36_000.0,
    )
    found = script_limit(scripts, replace(alone, runs=store))
    assert found.sent_rps.to_dict() == {"unique_put": 40_000.0}
    assert found.at_rates.loc["unique_put", "share"] == pytest.approx(0.9)
    assert found.near == ["unique_put"] and found.in_loops.empty and found.without == ()
