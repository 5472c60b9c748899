"""One run second by second."""

from dataclasses import replace

import numpy as np
import pytest
from sample import empty_tables, finer

from kvstudy.errors import KvstudyError
from kvstudy.present.figures.seconds import latency_heat_map, slowest_run, time_line


def test_each_second_of_the_heat_map_sums_to_all_its_requests(tables):
    figure = latency_heat_map(tables)
    shares = 10 ** np.array(figure.data[0].z, dtype=float)
    assert np.allclose(np.nansum(shares, axis=0), 1)


def test_the_slow_second_is_named_in_the_title(tables):
    assert "in second 3" in latency_heat_map(tables).layout.meta["finding"]


def test_a_named_run_is_drawn_rather_than_the_slowest(tables):
    run_id = tables.runs["run_id"].iloc[0]
    assert run_id in latency_heat_map(tables, run_id).layout.meta["drawn"]


def test_a_run_is_named_with_its_variant_and_label(tables):
    named = replace(tables, runs=tables.runs.assign(variant="subject=nginx", label="after"))
    for draw in (latency_heat_map, time_line):
        assert "subject=nginx, after, " in draw(named).layout.meta["drawn"]


def test_a_run_that_failed_its_checks_is_called_invalid(tables):
    run_id = tables.runs.loc[tables.runs["verdict"] == "FAIL", "run_id"].iloc[0]
    told = latency_heat_map(tables, run_id).layout.meta["drawn"]
    assert "INVALID: rate_held: " in told
    assert "WARN" not in told and "required" not in told, "a caption is no list of checks"


def test_of_invalid_runs_alone_a_completed_one_is_drawn_and_an_interrupted_one_only_without_it(tables):
    runs = tables.runs.assign(verdict="FAIL", outcome="failed: interrupted")
    slowest = slowest_run(replace(tables, runs=runs))
    other = next(run_id for run_id in runs["run_id"] if run_id != slowest)
    runs.loc[runs["run_id"] == other, "outcome"] = "completed"
    assert slowest and slowest_run(replace(tables, runs=runs)) == other


def test_events_lie_on_the_clock_of_the_latencies(tables):
    figure = time_line(tables)
    bars = {trace.y[0]: trace for trace in figure.data if trace.type == "bar"}
    assert bars["GC pause"].base[0] == 3.2
    assert np.isclose(bars["flush"].x[0], 0.18)
    assert figure.layout.xaxis2.matches == "x"


def test_the_time_line_names_what_ran_in_the_slowest_second(tables):
    assert (
        time_line(tables).layout.meta["finding"].endswith("in it ran flush (180 ms) and GC pause (35.0 ms)")
    )


def test_both_charts_put_a_second_between_its_begin_and_its_end(tables):
    run_id = tables.runs["run_id"].iloc[0]
    middles = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert list(latency_heat_map(tables, run_id).data[0].x) == middles
    line = next(trace for trace in time_line(tables, run_id).data if trace.name == "p99")
    assert list(line.x) == middles and line.text[3].startswith("second 3: p99 ")


def test_a_second_without_an_answer_at_the_end_of_the_log_is_no_column(tables):
    run_id = tables.runs["run_id"].iloc[0]
    empty = tables.intervals["second"].isin([2, 5])
    counted = replace(
        tables, intervals=tables.intervals.assign(count=tables.intervals["count"].mask(empty, 0))
    )
    assert list(latency_heat_map(counted, run_id).data[0].x) == [0.5, 1.5, 2.5, 3.5, 4.5]


def test_intervals_of_250_ms_are_four_columns_a_second_with_all_of_their_requests(tables):
    run_id = tables.runs["run_id"].iloc[0]
    one = tables.only([run_id])
    quarters, seconds = latency_heat_map(finer(one), run_id).data[0], latency_heat_map(one, run_id).data[0]
    assert list(quarters.x) == [0.125 + 0.25 * column for column in range(24)]
    assert np.allclose(np.nansum(10 ** np.array(quarters.z, dtype=float), axis=0), 1)
    assert np.allclose(quarters.y, seconds.y, rtol=0.02)
    texts = {text.split(": ")[0] for row in quarters.text for text in row if text}
    assert {"0 – 0.25 s", "3.25 – 3.5 s", "5.75 – 6 s"} <= texts and len(texts) == 24
    meta = latency_heat_map(finer(one), run_id).layout.meta
    assert "Each column is 250 ms." in meta["drawn"] and "column's requests" in meta["drawn"]
    assert meta["title"] == "Response time, column by column", "no number"


def test_the_time_line_is_the_same_by_second_however_short_the_intervals(tables):
    run_id = tables.runs["run_id"].iloc[0]
    one = tables.only([run_id])
    fine, usual = (
        {trace.name: trace for trace in time_line(of, run_id).data if trace.type == "scatter"}
        for of in (finer(one), one)
    )
    for name, trace in usual.items():
        assert list(fine[name].x) == list(trace.x)
        assert np.allclose(np.array(fine[name].y, float), np.array(trace.y, float), rtol=0.05), name


def test_no_rows_give_charts_that_say_so():
    assert "Nothing to draw" in latency_heat_map(empty_tables()).layout.title.text
    assert "Nothing to draw" in time_line(empty_tables()).layout.title.text
    assert "No run is left" in time_line(empty_tables()).layout.meta["drawn"], "and not that wrk made it"


def test_a_run_that_is_not_there_is_an_error_and_not_one_without_a_log(tables):
    with pytest.raises(KvstudyError, match="no such run on this page: nope"):
        latency_heat_map(tables, "nope")
