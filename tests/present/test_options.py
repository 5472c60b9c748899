"""What each option does: every value against the default, experiment by experiment."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sample import empty_tables, sample_tables

from kvstudy.analyse.options import (
    at_highest_rate,
    compared_options,
    count_runs,
    differing_parts,
    tally,
    varied_factor,
)
from kvstudy.present import answers, headlines, theme
from kvstudy.present.figures.ratios import MEASURE_COLOURS
from kvstudy.present.figures.ratios import decided as decided_figure
from kvstudy.present.figures.ratios import options as drawn
from kvstudy.present.options import instead


def varied(experiment, variants, column="variant", repeats=5, slower=1.0, dearer=1.0):
    parts = [
        sample_tables(
            rates=(1000.0,), connections=(4,), workloads=("mixed",), repeats=repeats, profiled=False
        )
        for _ in variants
    ]
    runs, percentiles = [], []
    for number, (value, part) in enumerate(zip(variants, parts, strict=True)):
        ids = {run_id: f"{experiment}-{number}-{run_id}" for run_id in part.runs["run_id"]}
        runs.append(
            part.runs.assign(
                run_id=part.runs["run_id"].map(ids),
                experiment=experiment,
                **{column: value},
                service_cpu_us_per_answer=part.runs["service_cpu_us_per_answer"]
                * (dearer if number else 1.0),
            )
        )
        points = part.percentiles.assign(run_id=part.percentiles["run_id"].map(ids))
        percentiles.append(points.assign(latency_us=points["latency_us"] * (slower if number else 1.0)))
    return replace(
        parts[0],
        runs=pd.concat(runs, ignore_index=True),
        percentiles=pd.concat(percentiles, ignore_index=True),
        validity=empty_tables().validity,
    )


@pytest.mark.parametrize(
    ("variants", "default"),
    [
        (["wal=always", "wal=interval", "wal=none"], "wal=interval"),
        (["handler=workers", "handler=selector"], "handler=selector"),
        (["cache_entries=5500", "cache_entries=0", "cache_entries=4500"], "cache_entries=0"),
        (["gc=Z heap=128m", "gc=G1 heap=1g", "gc=G1 heap=128m"], "gc=G1 heap=128m"),
    ],
)
def test_the_first_side_is_what_the_service_does_untold(variants, default):
    assert varied_factor(varied("x", variants)).before == default


def test_sizes_of_the_workload_are_compared_with_the_smallest_where_no_option_varies():
    sizes = varied("value-size", ['{"value_bytes": 10000}', '{"value_bytes": 100}'], column="workload_args")
    assert varied_factor(sizes).before == '{"value_bytes": 100}'
    assert set(compared_options(sizes)["after_name"]) == {"value_bytes=10000"}


def test_an_experiment_that_varies_nothing_has_no_sides():
    assert varied_factor(varied("reproduce", [""])) is None
    assert compared_options(varied("reproduce", [""])).empty


def test_a_slower_value_is_found_and_the_same_thing_spelled_twice_is_not_asked():
    found = compared_options(varied("wal", ["wal=interval", "wal=always"], slower=3.0))
    latencies = found[found["measure"] != "CPU per request"]
    assert set(latencies["measure"]) == {"p50", "p99"} and set(latencies["word"]) == {"slower"}
    assert latencies["ratio"].between(2.9, 3.1).all()
    assert compared_options(varied("noise", ["heap=128m", "heap=131072k"])).empty


def test_a_value_that_takes_more_cpu_is_dearer_even_where_no_latency_tells():
    found = compared_options(
        varied("handler", ["handler=selector", "handler=workers"], dearer=1.4)
    ).set_index("measure")
    assert (found.loc["CPU per request", "word"], found.loc["p99", "word"]) == ("dearer", "cannot tell")
    assert found.loc["CPU per request", ["before", "after"]].tolist() == pytest.approx([700.0, 980.0])


def test_names_say_only_what_differs():
    assert differing_parts("gc=G1 heap=128m", "gc=Z heap=128m") == ("gc=G1", "gc=Z")
    assert differing_parts(
        '{"key_bytes": 16, "value_bytes": 100}', '{"key_bytes": 16, "value_bytes": 9}'
    ) == (
        "value_bytes=100",
        "value_bytes=9",
    )


def test_every_comparison_is_a_mark_and_what_is_undecided_is_hollow():
    found = compared_options(varied("wal", ["wal=interval", "wal=always"], slower=3.0))
    undecided = compared_options(varied("gc", ["gc=G1", "gc=Z"], repeats=2))
    figure = drawn(pd.concat([found, undecided], ignore_index=True))
    symbols = [symbol for trace in figure.data for symbol in trace.marker.symbol]
    assert sorted(symbols) == ["circle-open"] * 3 + ["diamond"] + ["triangle-right"] * 2
    assert "2 slower, 1 the same and 3 cannot tell" in figure.layout.meta["finding"]
    assert (
        len({trace.offsetgroup for trace in figure.data}) == len(figure.data)
        and figure.layout.scattermode == "group"
    ), "marks of a row hide each other"
    assert "Nothing to draw" in drawn(compared_options(empty_tables())).layout.title.text


def _under_red_green_blindness(colour):
    """L*a*b* of a colour as somebody without green cones sees it (Machado and others, 2009)."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(
        np.array(
            [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
        )
        @ linear,
        0,
        1,
    )
    xyz = (
        np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        @ seen
        / [0.9505, 1, 1.089]
    )
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("of_page", [lambda colour: colour, theme.TWINS.get], ids=["light", "dark"])
def test_the_measures_that_stand_in_one_row_are_told_apart_by_every_eye(of_page):
    seen = {
        measure: _under_red_green_blindness(of_page(MEASURE_COLOURS[measure]))
        for measure in ("p50", "p99", "CPU per request")
    }
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 25, f"{one} and {other}"


def test_a_finding_says_when_only_the_number_of_runs_kept_it_from_deciding():
    told = answers.summarize_options(
        varied("wal", ["wal=interval", "wal=always"], slower=3.0, repeats=2)
    ).data
    few = "| fewer than 5 runs a side, too few for a word | "
    assert f"{few}2 |" in told or f"{few}3 |" in told
    whole = answers.summarize_options(varied("wal", ["wal=interval", "wal=always"], slower=3.0)).data
    assert few not in whole


def test_a_number_stands_beside_the_runs_of_its_own_two_sides():
    three = varied("handler", ["handler=selector", "handler=workers", "handler=virtual"], slower=3.0)
    _, _, *rows = answers.summarize_options(three).data.splitlines()
    assert all("| 10 runs |" in row for row in rows if " × |" in row)
    assert any("is the same within 5 %: CPU per request |" in row for row in rows)


def test_the_runs_of_the_default_count_once_however_many_values_stand_against_them():
    three = varied("handler", ["handler=selector", "handler=workers", "handler=virtual"], slower=3.0)
    found = compared_options(three)
    assert (
        count_runs(three, found) == 15
        and count_runs(three, found[found["after_name"] == "handler=virtual"]) == 10
    )


def test_runs_at_a_place_that_is_not_told_do_not_count():
    one, two = (
        varied("cache", ["cache_entries=0", "cache_entries=5500"], slower=3.0),
        varied("cache", ["cache_entries=0", "cache_entries=5500"]),
    )
    fewer = two.runs.assign(connections=1, run_id=two.runs["run_id"] + "-c1")
    both = replace(
        one,
        runs=pd.concat([one.runs, fewer], ignore_index=True),
        percentiles=pd.concat(
            [one.percentiles, two.percentiles.assign(run_id=two.percentiles["run_id"] + "-c1")],
            ignore_index=True,
        ),
    )
    found = compared_options(both)
    assert set(found["connections"]) == {1, 4} and set(at_highest_rate(found)["connections"]) == {4}
    assert {row.split(" | ")[-2] for row in answers.summarize_options(both).data.splitlines()[2:]} == {
        "10 runs"
    }
    assert (
        "3 comparisons at lower ones stand in the table of 06-before-after alone"
        in drawn(found).layout.meta["drawn"]
    )


def test_what_is_decided_is_a_row_and_all_that_is_not_is_counted():
    found = varied("handler", ["handler=selector", "handler=workers"], slower=3.0, dearer=1.4)
    other = varied("gc", ["gc=G1", "gc=Z"])
    both = replace(
        found,
        runs=pd.concat([found.runs, other.runs], ignore_index=True),
        percentiles=pd.concat([found.percentiles, other.percentiles], ignore_index=True),
    )
    head, _, same, *decided = answers.summarize_options(both).data.splitlines()
    assert head == "| question | answer | number | interval | runs | page |"
    assert same.startswith("| gc: ") and "the same within 5 %: CPU per request | 1.00 × |  |" in same
    begins = "| handler: mixed at 1\u202f000 r/s on 4 connections | handler=workers instead of selector is "
    assert all(row.startswith(begins) and "cannot tell" not in row for row in decided[:3])
    assert f"{begins}dearer: CPU per request | 1.40 × |" in "".join(decided[:3])
    assert f"{begins}slower: p50 | 3.00 × | [" in "".join(decided[:3])
    assert [row.rpartition(" | 10 runs")[0] for row in decided[3:]] == [
        "| Cannot tell | comparisons of an option with its default | 2 of 6 | ",
        "| Cannot tell | those of gc | 2 of 3 | ",
    ]


def test_card_chart_and_list_count_the_same_comparisons_and_sizes_apart():
    parts = [
        varied("wal", ["wal=interval", "wal=always"], slower=3.0),
        varied("value-size", ['{"value_bytes": 100}', '{"value_bytes": 9}'], "workload_args", repeats=2),
    ]
    both = replace(
        parts[0],
        runs=pd.concat([part.runs for part in parts], ignore_index=True),
        percentiles=pd.concat([part.percentiles for part in parts], ignore_index=True),
    )
    card = next(card for card in headlines.index(both).cards if card.page == "06-before-after")
    top = at_highest_rate(compared_options(both))
    assert (tally(top).of, tally(top).sizes) == (3, 3)
    decided, sizes = tally(top).decided, tally(top).sizes_decided
    assert f"{decided} of 3 decided" in card.sure
    assert (
        f"{decided} of 3 comparisons of options are decided, and {sizes} of 3 of sizes of the workload"
        in decided_figure(compared_options(both)).layout.meta["finding"]
    )
    text = answers.summarize_options(both).data
    assert (decided, sizes) == (3, 0) and "| comparisons of sizes of the workload | 3 of 3 |" in text
    assert (
        "2 experiments varied an option or a size of the workload"
        in (drawn(compared_options(both)).layout.meta["finding"])
    )


def test_of_an_option_with_several_parts_the_default_is_named_whole():
    assert instead("cache_entries=0", "cache_entries=5500") == "cache_entries=5500 instead of 0"
    assert (
        instead("key_bytes=8 value_bytes=12", "key_bytes=16 value_bytes=24")
        == "key_bytes=16 value_bytes=24 instead of key_bytes=8 value_bytes=12"
    )


def test_what_is_decided_is_a_chart_of_its_own_with_the_largest_difference_on_top():
    found = compared_options(varied("wal", ["wal=interval", "wal=always"], slower=3.0, dearer=1.5))
    figure = decided_figure(found)
    rows = [name for trace in figure.data for name in trace.y]
    top = at_highest_rate(found)
    assert len(rows) == len(set(rows)) == int((top["word"] != "cannot tell").sum()) > 1
    assert "p" in figure.layout.yaxis.categoryarray[-1] and "CPU" in figure.layout.yaxis.categoryarray[0]
    assert "; the largest decided: wal=always, " in figure.layout.meta["finding"], "of which option"
    undecided = compared_options(varied("gc", ["gc=G1", "gc=Z"], repeats=2))
    assert "Nothing to draw" in decided_figure(undecided).layout.title.text


def test_of_two_builds_at_the_highest_rate_each_is_told_with_what_tells_it_apart():
    slower = varied("wal", ["wal=interval", "wal=always"], slower=3.0)
    rebuilt = varied("wal", ["wal=interval", "wal=always"])
    both = replace(
        slower,
        runs=pd.concat(
            [
                slower.runs,
                rebuilt.runs.assign(run_id=rebuilt.runs["run_id"] + "-b", service_program='{"digest": "b"}'),
            ],
            ignore_index=True,
        ),
        percentiles=pd.concat(
            [
                slower.percentiles,
                rebuilt.percentiles.assign(run_id=rebuilt.percentiles["run_id"] + "-b"),
            ],
            ignore_index=True,
        ),
    )
    top = at_highest_rate(compared_options(both))
    assert (top["measure"] == "p50").sum() == 2 and top["differs"].str.contains("digest=").all()
    text = answers.summarize_options(both).data
    assert "wal=always (service_program digest=a) instead of wal=interval is the same" in text
    assert "wal=always (service_program digest=b) instead of wal=interval is the same" in text


def test_what_has_a_page_of_its_own_is_no_option_of_the_service():
    of_tail = varied("tail-intervention", ["compaction=leveled", "compaction=none"], slower=3.0)
    assert compared_options(of_tail).empty
    assert "tail-intervention" not in answers.summarize_options(of_tail).data
