"""What each option does: every value against the default, experiment by experiment."""

from dataclasses import replace

import pandas as pd
import pytest
from sample import empty_tables, sample_tables

from kvstudy.present import answers
from kvstudy.present.figures.ratios import options as drawn
from kvstudy.present.options import compared_options, sides_in, told_apart


def varied(experiment, variants, column="variant", repeats=5, slower=1.0, dearer=1.0):
    parts = [sample_tables(rates=(1000.0,), connections=(4,), workloads=("mixed",), repeats=repeats, profiled=False) for _ in variants]
    runs, percentiles = [], []
    for number, (value, part) in enumerate(zip(variants, parts, strict=True)):
        ids = {run_id: f"{experiment}-{number}-{run_id}" for run_id in part.runs["run_id"]}
        runs.append(part.runs.assign(run_id=part.runs["run_id"].map(ids), experiment=experiment, **{column: value},
                                     service_cpu_us_per_answer=part.runs["service_cpu_us_per_answer"] * (dearer if number else 1.0)))
        points = part.percentiles.assign(run_id=part.percentiles["run_id"].map(ids))
        percentiles.append(points.assign(latency_us=points["latency_us"] * (slower if number else 1.0)))
    return replace(parts[0], runs=pd.concat(runs, ignore_index=True), percentiles=pd.concat(percentiles, ignore_index=True), validity=empty_tables().validity)


@pytest.mark.parametrize(("variants", "default"), [
    (["wal=always", "wal=interval", "wal=none"], "wal=interval"), (["handler=workers", "handler=selector"], "handler=selector"),
    (["cache_entries=5500", "cache_entries=0", "cache_entries=4500"], "cache_entries=0"), (["gc=Z heap=128m", "gc=G1 heap=1g", "gc=G1 heap=128m"], "gc=G1 heap=128m")])
def test_the_first_side_is_what_the_service_does_untold(variants, default):
    assert sides_in(varied("x", variants)).before == default


def test_sizes_of_the_workload_are_compared_with_the_smallest_where_no_option_varies():
    sizes = varied("value-size", ['{"value_bytes": 10000}', '{"value_bytes": 100}'], column="workload_args")
    assert sides_in(sizes).before == '{"value_bytes": 100}'
    assert set(compared_options(sizes)["after_name"]) == {"value_bytes=10000"}


def test_an_experiment_that_varies_nothing_has_no_sides():
    assert sides_in(varied("reproduce", [""])) is None
    assert compared_options(varied("reproduce", [""])).empty


def test_a_slower_value_is_found_and_the_same_thing_spelled_twice_is_not_asked():
    found = compared_options(varied("wal", ["wal=interval", "wal=always"], slower=3.0))
    latencies = found[found["measure"] != "CPU per request"]
    assert set(latencies["measure"]) == {"p50", "p99"} and set(latencies["word"]) == {"slower"}
    assert latencies["ratio"].between(2.9, 3.1).all()
    assert compared_options(varied("noise", ["heap=128m", "heap=131072k"])).empty


def test_a_value_that_takes_more_cpu_is_dearer_even_where_no_latency_tells():
    found = compared_options(varied("handler", ["handler=selector", "handler=workers"], dearer=1.4)).set_index("measure")
    assert (found.loc["CPU per request", "word"], found.loc["p99", "word"]) == ("dearer", "cannot tell")
    assert found.loc["CPU per request", ["before", "after"]].tolist() == pytest.approx([700.0, 980.0])


def test_names_say_only_what_differs():
    assert told_apart("gc=G1 heap=128m", "gc=Z heap=128m") == ("gc=G1", "gc=Z")
    assert told_apart('{"key_bytes": 16, "value_bytes": 100}', '{"key_bytes": 16, "value_bytes": 9}') == ("value_bytes=100", "value_bytes=9")


def test_every_comparison_is_a_mark_and_what_is_undecided_is_hollow():
    found = compared_options(varied("wal", ["wal=interval", "wal=always"], slower=3.0))
    undecided = compared_options(varied("gc", ["gc=G1", "gc=Z"], repeats=2))
    figure = drawn(pd.concat([found, undecided], ignore_index=True))
    symbols = [symbol for trace in figure.data for symbol in trace.marker.symbol]
    assert sorted(symbols) == ["circle-open"] * 4 + ["triangle-right"] * 2
    assert "2 slower and 4 cannot tell" in figure.layout.meta["finding"]
    assert len({trace.offsetgroup for trace in figure.data}) == len(figure.data) and figure.layout.scattermode == "group", "marks of a row hide each other"
    assert "Nothing to draw" in drawn(compared_options(empty_tables())).layout.title.text


def test_a_finding_says_when_only_the_number_of_runs_kept_it_from_deciding():
    told = answers.options_told(varied("wal", ["wal=interval", "wal=always"], slower=3.0, repeats=2)).data
    assert "(cannot tell: 2 and 2 runs)" in told
    assert "runs)" not in answers.options_told(varied("wal", ["wal=interval", "wal=always"], slower=3.0)).data.split("*(")[0]
