"""How often a rate is held: the page and the search have one rule."""

from dataclasses import replace

import pytest
from sample import empty_tables
from test_capacity import BETWEEN, TO_THE_TOP, searched, together

from kvstudy.analyse import rates
from kvstudy.plan.objective import Answer
from kvstudy.plan.search import found_in
from kvstudy.present.capacity import searches
from kvstudy.present.figures.held import held_by_rate
from kvstudy.present.summary import held_shares


def test_what_the_page_draws_is_the_posterior_of_the_search():
    (one,) = searches(BETWEEN)
    shares = rates.held_by_rate(one.trials)
    tried = shares[shares["trials"] > 0].set_index("offered_rate_rps")
    assert tried["trials"].to_dict() == {20000.0: 12, 24000.0: 3} and tried["held"].to_dict() == {
        20000.0: 12,
        24000.0: 0,
    }
    assert tried.loc[20000.0, "low"] > 0.5 > tried.loc[24000.0, "high"]
    assert ((shares["low"] <= shares["share"]) & (shares["share"] <= shares["high"])).all()
    knee = found_in(one.knee.trials, 1000.0, 28000.0, 0.05).knee_rps
    below, above = (shares[shares["offered_rate_rps"] < knee], shares[shares["offered_rate_rps"] > knee])
    assert (below["share"].iloc[:-1] >= 0.5).all() and (above["share"].iloc[1:] <= 0.5).all(), (
        "half of the trials hold the knee"
    )


def test_the_share_falls_as_the_rate_rises():
    (one,) = searches(BETWEEN)
    assert rates.held_by_rate(one.trials)["share"].is_monotonic_decreasing


def test_a_panel_for_each_search_with_its_band_and_its_trials():
    figure = held_by_rate(together(BETWEEN, TO_THE_TOP))
    assert [trace.name for trace in figure.data] == ["95 % interval", "held in so many trials", "trials"] * 2
    assert "in half of its trials; 1 more below" in figure.layout.meta["finding"]
    assert figure.data[2].error_y.array is None and figure.data[5].error_y.arrayminus[0] > 0.1, (
        "one rate has a bar"
    )
    assert figure.layout.xaxis.tickvals is None and list(figure.layout.xaxis2.tickvals) == [28000.0]
    assert "Nothing to draw" in held_by_rate(empty_tables()).layout.title.text


def test_the_bar_of_a_single_rate_is_its_interval_wherever_the_dot_of_its_trials_is():
    one = searched(*[(28000, "sweep", answer, 1.0) for answer in ("held", "held", "missed", "missed")])
    (shares,) = (rates.held_by_rate(search.trials) for search in searches(one))
    (row,) = shares.itertuples()
    trials = held_by_rate(one).data[2]
    assert trials.y[0] + trials.error_y.array[0] == pytest.approx(row.high)
    assert trials.y[0] - trials.error_y.arrayminus[0] == pytest.approx(row.low)


@pytest.mark.parametrize("trials, held", [(BETWEEN, ["12 of 12", "0 of 3"]), (TO_THE_TOP, ["6 of 6"])])
def test_the_table_has_the_rates_that_were_tried(trials, held):
    assert held_shares(trials)["held"].tolist() == held and "%" in held_shares(trials)["P(held)"].iloc[0]
    assert (
        held_shares(empty_tables()).attrs["missing"].startswith("No search for a stable rate was measured.")
    )
    silent = replace(trials, runs=trials.runs.assign(answer=Answer.UNKNOWN.value))
    assert held_shares(silent).attrs["missing"] == "No trial of a search says whether its rate was held."
