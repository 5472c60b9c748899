"""Percentile spectra: the axis, the medians, the runs that do not count."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sample import empty_tables, keep, sample_tables

from kvstudy.analyse.answers.factors import differences
from kvstudy.analyse.configuration import comparisons, configured
from kvstudy.present import claim_text, theme, words
from kvstudy.present.figures.rate import latency_against_rate
from kvstudy.present.figures.spectrum import percentile_spectrum, response_against_service, send_lateness

STRONG, INVALID_NAME = 2.6, "invalid run"


def strong(figure):
    return [trace for trace in figure.data if trace.line.width == STRONG and not np.isnan(trace.x).all()]


@pytest.fixture(scope="module")
def varied():
    """Two workloads at two rates and two numbers of connections, under two handlers."""
    parts = [sample_tables(rates=(1000.0, 4000.0), repeats=1, seconds=2, profiled=False) for _ in range(2)]
    named = []
    for part, handler in zip(parts, ("selector", "workers"), strict=True):
        frames = {name: getattr(part, name) for name in ("runs", "percentiles", "validity")}
        frames = {name: frame.assign(run_id=handler + frame["run_id"]) for name, frame in frames.items()}
        named.append(frames | {"runs": frames["runs"].assign(variant=f"handler={handler}")})
    return replace(
        empty_tables(),
        **{name: pd.concat([part[name] for part in named], ignore_index=True) for name in named[0]},
    )


def test_the_axis_is_one_over_one_minus_p(tables):
    axis = percentile_spectrum(tables).layout.xaxis
    assert axis.type == "log"
    assert dict(zip(axis.ticktext, axis.tickvals, strict=True))["99 %"] == pytest.approx(100)
    assert dict(zip(axis.ticktext, axis.tickvals, strict=True))["99.9 %"] == pytest.approx(1000)


def test_the_median_line_is_the_median_over_the_valid_repeats(tables):
    one = keep(
        tables,
        lambda run: run.connections == 4 and run.workload == "unique_put" and run.offered_rate_rps == 1000,
    )
    line = next(trace for trace in percentile_spectrum(one).data if trace.line.width == 2.6)
    points = one.percentiles.query("latency_kind == 'response' and percentile == 99")
    at_99 = [y for x, y in zip(line.x, line.y, strict=True) if x is not None and np.isclose(x, 100)]
    assert at_99 == [pytest.approx(points["latency_us"].median() / 1e6, rel=1e-3)]


def test_runs_that_differ_in_more_than_the_colour_share_no_median(tables):
    both = keep(tables, lambda run: run.workload == "unique_put" and run.offered_rate_rps == 1000)
    assert len(strong(percentile_spectrum(both))) == 2  # 1 and 4 connections


@pytest.mark.parametrize("panel_by", [None, "workload", ("workload", "connections")])
@pytest.mark.parametrize("colour_by", ["offered_rate_rps", "workload", "variant"])
@pytest.mark.parametrize("draw", [percentile_spectrum, response_against_service])
def test_every_strong_line_has_a_panel_colour_and_dash_of_its_own(varied, draw, colour_by, panel_by):
    """Two strong lines of a colour in one panel, and nobody knows which is which."""
    lines = strong(draw(varied, panel_by=panel_by, colour_by=colour_by))
    believed = configured(keep(varied, lambda run: run.verdict != "FAIL").runs)
    assert len(lines) == believed["configuration"].nunique() * (1 if draw is percentile_spectrum else 2)
    assert len({(line.xaxis, line.line.color, line.line.dash) for line in lines}) == len(lines)


def test_a_legend_names_every_dash(varied):
    figure = percentile_spectrum(
        keep(varied, lambda run: run.workload == "unique_put" and run.connections == 4)
    )
    assert {
        (trace.name, trace.line.dash)
        for trace in figure.data
        if (trace.legendgroup or "").startswith("dash ")
    } == {("handler=selector", "solid"), ("handler=workers", "dash")}
    assert "dashed as the legend says" in figure.layout.meta["drawn"]


def test_the_panels_of_two_factors_stand_in_rows_of_the_first(tables):
    headings = [
        heading.text
        for heading in percentile_spectrum(tables, panel_by=("workload", "connections")).layout.annotations
    ]
    assert headings == [
        f"{workload}, {connections}"
        for workload, connections in product(
            ["repeated_get", "unique_put"], ["1 connection", "4 connections"]
        )
    ]


def test_sizes_are_named_in_the_order_of_their_numbers(tables):
    one = keep(
        tables,
        lambda run: run.workload == "unique_put" and run.offered_rate_rps == 1000 and run.connections == 4,
    )
    sizes = [f'{{"key_count": 7, "value_bytes": {size}}}' for size in (9000, 100, 9000)]
    figure = percentile_spectrum(replace(one, runs=one.runs.assign(workload="put", workload_args=sizes)))
    assert [trace.name for trace in figure.data if (trace.legendgroup or "").startswith("dash ")] == [
        "value_bytes=100",
        "value_bytes=9000",
    ]


def test_the_title_asserts_nothing_that_the_table_calls_cannot_tell():
    few = sample_tables(
        rates=(1000.0, 4000.0), connections=(4,), workloads=("unique_put",), repeats=2, profiled=False
    )
    assert set(comparisons(few, "offered_rate_rps", 1000.0, 4000.0, (99.0,))["word"]) == {"cannot tell"}
    finding = percentile_spectrum(few).layout.meta["finding"]
    assert "has medians" in finding and "cannot tell from 2 and 2 runs" in finding
    assert "rises" not in finding and "falls" not in finding


def test_a_difference_that_is_none_beside_the_pages_other_comparisons_says_so():
    """Its interval does not hold 1, and a reader would take *cannot tell* for a mistake."""
    near = before_and_after(repeats=5)
    seen = iter([1000.0, 1020.0, 980.0, 1010.0, 990.0]), iter([1030.0, 1050.0, 1009.0, 1040.0, 1020.0])
    latency = {run.run_id: next(seen[run.label == "after"]) for run in near.runs.itertuples()}
    found = replace(
        near, percentiles=near.percentiles.assign(latency_us=near.percentiles["run_id"].map(latency))
    )
    finding = percentile_spectrum(found, "label", order=("before", "after")).layout.meta["finding"]
    assert finding.endswith("cannot tell at 5 % for the whole page"), finding


def test_of_several_pairs_the_title_tells_the_largest_that_is_decided():
    both = sample_tables(rates=(1000.0, 4000.0), connections=(4,), repeats=5, profiled=False)
    slow, wild = (
        (both.runs["workload"] == workload) & (both.runs["offered_rate_rps"] == 4000)
        for workload in ("repeated_get", "unique_put")
    )
    # Repeats of one pair lie five apart all over; those of the other pair lie further apart, but not all of
    # them.
    factors = (
        pd.Series(1.0, index=both.runs.index)
        .mask(slow, 5.0)
        .mask(wild, [0.01, 900.0, 900.0, 900.0, 0.01] * (len(both.runs) // 5))
    )
    scale = both.percentiles["run_id"].map(dict(zip(both.runs["run_id"], factors, strict=True)))
    finding = percentile_spectrum(
        replace(both, percentiles=both.percentiles.assign(latency_us=both.percentiles["latency_us"] * scale))
    ).layout.meta["finding"]
    assert finding.startswith(
        "repeated_get, 4 connections: p99 response time rises from"
    ) and finding.endswith("the largest decided of 2 such pairs")


def test_every_panel_has_a_finding_of_its_own_and_no_other_panels_place(tables):
    for draw in (percentile_spectrum, response_against_service):
        figure = draw(tables, colour_by="offered_rate_rps", panel_by=("workload", "connections"))
        headings = [figure.layout.annotations[heading].text for *_, heading in figure.layout.meta["panels"]]
        for heading, finding in zip(headings, figure.layout.meta["findings"], strict=True):
            told = all(part in finding for part in heading.split(", "))
            assert told or finding.startswith("Response and service time differ"), (heading, finding)


def before_and_after(repeats: int):
    return sample_tables(
        labels=("before", "after"),
        rates=(1000.0,),
        connections=(4,),
        workloads=("unique_put",),
        repeats=repeats,
        profiled=False,
    )


def test_sides_without_an_order_neither_rise_nor_fall():
    both = before_and_after(repeats=5)
    scale = both.percentiles["run_id"].map(
        dict(zip(both.runs["run_id"], np.where(both.runs["label"] == "before", 4.0, 1.0), strict=True))
    )
    finding = percentile_spectrum(
        replace(both, percentiles=both.percentiles.assign(latency_us=both.percentiles["latency_us"] * scale)),
        "label",
    ).layout.meta["finding"]
    assert "(after) against" in finding and "(before)" in finding and "rises" not in finding


@pytest.mark.parametrize(
    "excluded, told", [("", True), ("service", False), ("outside", False)], ids=["none", "died", "disturbed"]
)
def test_the_title_says_nothing_good_of_a_side_that_lost_runs_although_these_have_no_percentiles(
    excluded, told
):
    """A run that died has no line in the chart, and was not counted: its side was the faster one. So was one
    whose runs others disturbed more often than chance does."""
    both = before_and_after(repeats=12)
    after = both.runs["label"] == "after"
    died = set(both.runs.loc[after, "run_id"].head(6)) if excluded else set()
    factors = dict(zip(both.runs["run_id"], np.where(after, 1.0, 4.0), strict=True))
    factor = both.percentiles["run_id"].map(factors)
    runs, percentiles = both.runs, both.percentiles.assign(latency_us=both.percentiles["latency_us"] * factor)
    is_lost = runs["run_id"].isin(died)
    runs = runs.assign(
        verdict=runs["verdict"].mask(is_lost, "FAIL"), excluded=runs["excluded"].mask(is_lost, excluded)
    )
    percentiles = percentiles[~percentiles["run_id"].isin(died)]
    found = replace(both, runs=runs, percentiles=percentiles)
    (word,) = comparisons(found, "label", "before", "after", (99.0,)).query("measure == 'p99'")["word"]
    meta = percentile_spectrum(found, "label", order=("before", "after")).layout.meta
    assert (word == "faster") == ("against" in meta["finding"]) == told, (word, meta["finding"])
    assert ("cannot tell, since a side lost a larger share of its runs" in meta["finding"]) == (not told)
    assert ("6 of 24 runs are invalid" in meta["drawn"]) == (not told)


P99_US = {  # repeated_get's outlier leaves open what unique_get shows for certain
    (1, "repeated_get"): [30, 31, 36, 38, 830],
    (1, "repeated_put"): [83, 354, 559, 679, 2353],
    (1, "unique_get"): [37, 39, 43, 48, 62],
    (1, "unique_put"): [1566, 11839, 11847, 12183, 15063],
    (4, "repeated_get"): [65, 66, 84, 86, 116],
    (4, "repeated_put"): [120, 191, 291, 338, 577],
    (4, "unique_get"): [89, 93, 111, 275, 561],
    (4, "unique_put"): [374, 525, 719, 722, 1150],
}


def test_the_title_tells_the_difference_that_the_sentence_of_the_page_does():
    """The title of page 03 called decided what the sentence below it could not tell."""
    names = tuple(sorted({workload for _, workload in P99_US}))
    found = sample_tables(
        rates=(2000.0, 20000.0), workloads=names, repeats=5, capacity_rps=1e9, profiled=False
    )
    runs = found.runs.assign(method="GET")
    p99 = {
        run.run_id: P99_US[run.connections, run.workload][run.repeat - 1]
        if run.offered_rate_rps == 20000
        else 100 + run.repeat
        for run in runs.itertuples()
    }
    found = replace(
        found,
        runs=runs,
        percentiles=found.percentiles.assign(latency_us=found.percentiles["run_id"].map(p99)),
    )
    first = differences(found, "workload").claims[0]
    title = percentile_spectrum(found, "workload", ("offered_rate_rps", "connections")).layout.meta["finding"]
    assert first.differs and (first.baseline, first.variant) == ("unique_get", "unique_put")
    assert f"43.0 µs (unique_get) against 11.8 ms (unique_put), {claim_text.estimate(first)}" in title, title
    assert title.endswith("the largest decided of 24 such pairs"), title


@pytest.mark.parametrize("same_within", [0.05, 0.03])
def test_the_same_says_within_how_much_of_what_the_experiment_asks_for(same_within):
    both = before_and_after(repeats=5)
    alike = both.percentiles.assign(latency_us=both.percentiles["latency_us"].mask(lambda us: us > 0, 9e3))
    found = replace(both, percentiles=alike, runs=both.runs.assign(same_within=same_within))
    finding = percentile_spectrum(found, "label").layout.meta["finding"]
    assert finding.endswith(f"1.00 × [0.9999, 1.0001 ×]: the same within {100 * same_within:g} %"), finding


@pytest.mark.parametrize(("factor", "first", "second"), [("label", "x", "a"), ("connections", 4, 1)])
def test_two_sides_are_told_in_the_order_that_is_given(factor, first, second):
    both = sample_tables(
        labels=("x", "a"), rates=(1000.0,), workloads=("unique_put",), repeats=5, profiled=False
    )
    for slower in (1.0, 4.0):  # whichever is the slower one
        scale = both.percentiles["run_id"].map(
            dict(zip(both.runs["run_id"], np.where(both.runs[factor] == first, slower, 2.0), strict=True))
        )
        scaled = replace(
            both, percentiles=both.percentiles.assign(latency_us=both.percentiles["latency_us"] * scale)
        )
        panels = [name for name in ("label", "connections") if name != factor]
        finding = percentile_spectrum(scaled, factor, panels, order=(first, second)).layout.meta["finding"]
        places = [finding.rindex(f"({words.value(factor, side)})") for side in (first, second)]
        assert places == sorted(places), finding


def test_an_invalid_run_is_grey_dotted_says_why_and_is_in_no_median(tables):
    figure = percentile_spectrum(keep(tables, lambda run: run.offered_rate_rps == 16000))
    thin = [trace for trace in figure.data if trace.legendgroup == "invalid" and trace.text is not None]
    assert {(trace.line.color, trace.line.dash) for trace in thin} == {(theme.INVALID, "dot")}
    assert all(trace.line.width >= 1.4 and trace.opacity >= 0.9 for trace in thin), "hardly to be seen"
    assert all("FAIL rate_held" in trace.hovertemplate for trace in thin)
    assert all(np.isnan(trace.x).all() for trace in figure.data if trace.line.width == 2.6)
    assert figure.layout.meta["finding"].startswith("No valid run")


def test_the_legend_shows_an_invalid_run_as_the_chart_draws_it(tables):
    """A dotted line among lines, a cross among points."""

    def entry(figure):
        return next(trace for trace in figure.data if (trace.name or "").startswith(INVALID_NAME))

    assert (entry(percentile_spectrum(tables)).mode, entry(percentile_spectrum(tables)).line.dash) == (
        "lines",
        "dot",
    )
    assert (entry(latency_against_rate(tables)).mode, entry(latency_against_rate(tables)).marker.symbol) == (
        "markers",
        "x-thin",
    )


def test_a_percentile_that_may_not_be_printed_is_not_drawn(tables):
    figure = percentile_spectrum(keep(tables, lambda run: run.offered_rate_rps == 1000))
    assert max(x for trace in figure.data for x in trace.x if x is not None) < 10000


def test_points_with_few_samples_beyond_are_open_circles(tables):
    figure = percentile_spectrum(keep(tables, lambda run: run.offered_rate_rps == 1000))
    sizes = set(figure.data[0].marker.size)
    assert sizes == {0, 5}
    assert figure.data[0].marker.symbol == "circle-open"


def test_the_title_is_computed_from_the_rows(tables):
    faster = tables.percentiles.assign(latency_us=tables.percentiles["latency_us"] / 10)
    changed = replace(tables, percentiles=faster)
    assert (
        percentile_spectrum(tables).layout.meta["finding"]
        != percentile_spectrum(changed).layout.meta["finding"]
    )


def test_response_and_service_time_stand_in_one_chart(tables):
    figure = response_against_service(tables)
    assert {"response", "service"} <= {trace.name for trace in figure.data}


def test_a_response_time_that_is_shorter_than_its_service_time_is_called_impossible(tables):
    """It said that the two differ by at most -3 %."""
    response = tables.percentiles["latency_kind"] == "response"
    mine = tables.percentiles["run_id"].str.contains("unique_put-c4-r01000")
    shorter = tables.percentiles["latency_us"].mask(response & mine, tables.percentiles["latency_us"] * 0.5)
    found = replace(tables, percentiles=tables.percentiles.assign(latency_us=shorter))
    finding = response_against_service(found).layout.meta["finding"]
    assert finding.startswith("Cannot be: p99 is ") and finding.endswith("unique_put, 4 connections"), finding


def test_a_panel_of_invalid_runs_says_so_and_not_that_samples_are_few(tables):
    failed = tables.runs["verdict"].mask(tables.runs["offered_rate_rps"] == 1000, "FAIL")
    figure = response_against_service(replace(tables, runs=tables.runs.assign(verdict=failed)))
    of_panels = figure.layout.meta["findings"]
    assert {text.startswith("No valid run") for text in of_panels[:4]} == {True}, "at 1 000/s"
    assert {text.startswith("No valid run") for text in of_panels[4:8]} == {False}, "at 4 000/s"


def test_no_rows_give_a_chart_that_says_so():
    nothing = percentile_spectrum(empty_tables()).layout
    assert "Nothing to draw" in nothing.title.text and "02-sweep" in nothing.meta["drawn"]
    measured = sample_tables(repeats=1, profiled=False)
    silent = percentile_spectrum(replace(measured, percentiles=measured.percentiles.head(0))).layout
    assert f"None of {len(measured.runs)} runs has any: too few answers" in silent.meta["drawn"]
    assert "Nothing to draw" in response_against_service(empty_tables()).layout.title.text


def test_drawing_changes_no_table(tables):
    before = tables.runs.copy()
    percentile_spectrum(tables, panel_by="workload")
    assert tables.runs.equals(before)


def test_a_schedule_and_a_closed_loop_stand_in_panels_that_are_named(tables):
    one = keep(
        tables,
        lambda run: run.workload == "unique_put" and run.connections == 4 and run.offered_rate_rps == 1000,
    )
    closed = [index % 2 == 0 for index in range(len(one.runs))]
    runs = one.runs.assign(closed_loop=closed, offered_rate_rps=one.runs["offered_rate_rps"].mask(closed))
    figure = response_against_service(replace(one, runs=runs), panel_by="closed_loop")
    assert [heading.text for heading in figure.layout.annotations[:2]] == ["on a schedule", "closed loop"]


def test_closed_loops_are_drawn_behind_the_highest_rate(tables):
    """A missing rate is equal to nothing, not even to itself: such runs had no line, and took a colour of the
    ramp for each of their points."""
    closed = replace(
        tables,
        runs=tables.runs.assign(
            offered_rate_rps=tables.runs["offered_rate_rps"].where(tables.runs["offered_rate_rps"] < 4000)
        ),
    )
    assert closed.runs["offered_rate_rps"].isna().any()
    figure = percentile_spectrum(closed)
    named = [
        trace
        for trace in figure.data
        if trace.showlegend and trace.mode == "lines" and trace.line.width == STRONG
    ]
    assert [trace.name for trace in named][-1] == "closed loop" and len(named) == closed.runs[
        "offered_rate_rps"
    ].nunique() + 1
    assert any(value is not None for value in named[-1].x)
    assert named[-1].line.color == theme.RAMP[-1]


def own(tables, share=1.0):
    """``tables`` with ``own_lateness`` of that share of their runs: a hundredth of their lateness."""
    told = tables.runs["run_id"].head(round(share * len(tables.runs)))
    points = tables.percentiles[
        (tables.percentiles["latency_kind"] == "lateness") & tables.percentiles["run_id"].isin(told)
    ]
    points = points.assign(latency_kind="own_lateness", latency_us=points["latency_us"] / 100)
    return replace(tables, percentiles=pd.concat([tables.percentiles, points], ignore_index=True))


def test_the_lateness_drawn_is_the_generators_own(tables):
    """All of the lateness has the wait for a connection that the service kept busy in it: on a fast empty
    server 8 ms instead of 0.05 ms."""
    one = keep(
        tables,
        lambda run: run.connections == 4 and run.workload == "unique_put" and run.offered_rate_rps == 1000,
    )
    figure = send_lateness(own(one))
    points = own(one).percentiles.query("latency_kind == 'own_lateness' and percentile == 99")["latency_us"]
    assert (
        "send lateness on a free connection" in figure.layout.meta["finding"]
        and "not tell" not in figure.layout.meta["drawn"]
    )
    (line,) = strong(figure)
    assert [y for x, y in zip(line.x, line.y, strict=True) if np.isclose(x, 100)] == [
        pytest.approx(max(1.0, points.median()) / 1e6, rel=1e-3)
    ]


def test_a_lateness_of_no_microsecond_is_drawn_at_the_recorders_step(tables):
    none = own(tables)
    none = replace(
        none,
        percentiles=none.percentiles.assign(
            latency_us=none.percentiles["latency_us"].where(
                none.percentiles["latency_kind"] != "own_lateness", 0.0
            )
        ),
    )
    figure = send_lateness(none)
    assert {round(float(y), 9) for line in strong(figure) for y in line.y} == {1e-6}
    assert figure.layout.meta["finding"]


def test_runs_that_do_not_tell_the_generators_own_lateness_are_drawn_with_all_of_it_and_the_chart_says_so(
    tables,
):
    figure = send_lateness(tables)
    assert strong(figure) and "do not tell the generator's own part apart" in figure.layout.meta["drawn"]
    half = send_lateness(own(tables, 0.5)).layout.meta["drawn"]
    assert f"{len(tables.runs) // 2} more runs do not tell it apart and are not drawn" in half
    assert "Nothing to draw" in send_lateness(empty_tables()).layout.title.text


def test_answers_too_few_for_any_percentile_and_far_slower_are_told(tables):
    slowest = tables.percentiles["percentile"] == 100
    stopped = replace(
        tables,
        percentiles=tables.percentiles.assign(
            latency_us=tables.percentiles["latency_us"].mask(slowest, 1.5e6)
        ),
    )
    valid = keep(stopped, lambda run: run.offered_rate_rps == 1000 and run.connections == 4)
    assert (
        "fewer than 10 answers of a run lie beyond the last percentile of its line: slower ones, up to 1.50 s"
        in response_against_service(valid).layout.meta["drawn"]
    )
    assert "Not drawn" not in response_against_service(tables).layout.meta["drawn"]
