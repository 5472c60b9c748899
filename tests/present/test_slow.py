"""The charts of the tail: what is linked to slow answers, and on which second."""

import zlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sample import empty_tables, keep, sample_tables

from kvstudy.analyse import intervention, schema, tail
from kvstudy.errors import KvstudyError
from kvstudy.present import answers, tails, theme, words
from kvstudy.present.figures.tail import causes_by_workload, slow_time_line
from kvstudy.present.figures.tail_intervention import interventions
from kvstudy.present.summary import causes as causes_as_text
from kvstudy.present.summary import interventions as interventions_as_text
from kvstudy.present.summary import slowest_seconds


@pytest.fixture(scope="module")
def planted():
    """Twenty seconds a run. Five of them are slow, others in every run, and the collector stops the service
    in each of those."""
    tables = keep(
        sample_tables(rates=(4000.0,), connections=(4,), repeats=6, seconds=20, profiled=False),
        lambda run: True,
    )
    return replace(
        tables,
        **{
            name: pd.concat(
                [out_of_step(run_id, getattr(tables, name)) for run_id in tables.runs["run_id"]],
                ignore_index=True,
            )
            for name in ("intervals", "events")
        },
    )


def out_of_step(run_id: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Second 3 and four of the run's own as second 3 was, all others as second 4 was."""
    rows = rows[rows["run_id"] == run_id]
    slow = {3, *np.random.default_rng(zlib.crc32(run_id.encode())).choice(np.arange(4, 20), 4, replace=False)}
    if "kind" in rows:
        pause = rows[rows["kind"] == "gc_pause"].iloc[:1]
        return pd.concat(
            [pause.assign(start_s=second + 0.2, duration_ms=60.0) for second in sorted(slow)],
            ignore_index=True,
        )
    of = {second: group for second, group in rows.groupby("second")}
    return pd.concat(
        [of[3 if second in slow else 4].assign(second=second, start_s=float(second)) for second in range(20)],
        ignore_index=True,
    )


def test_a_planted_cause_is_named_in_the_title_and_coloured(planted):
    figure = causes_by_workload(tail.page_causes(planted).groups)
    assert "linked to GC pause" in figure.layout.meta["finding"]
    bars = figure.data[0]
    assert dict(zip(bars.y, bars.marker.color, strict=True))["GC pause"] == theme.VERMILION


def test_chance_is_marked_beside_every_cause(planted):
    for group in tail.page_causes(planted).groups:
        chance = next(trace for trace in causes_by_workload([group]).data if trace.name == "by chance")
        assert list(chance.y) == ["GC pause"]
        assert chance.x[0] == pytest.approx((1 + 4 * 4 / 16) / 5, abs=0.15)


def test_the_caption_says_what_chance_is_of_a_run_without_repeats(planted):
    alone = keep(planted, lambda run: run.repeat == 1)
    drawn = causes_by_workload(tail.page_causes(alone).groups).layout.meta["drawn"]
    assert "of a run without repeats with its own at other times" in drawn


def test_slow_seconds_and_events_stand_on_one_clock(planted):
    limit_us = tail.threshold_us(planted, 99)
    figure = slow_time_line(planted, limit_us)
    dots = next(trace for trace in figure.data if trace.name == "slow answers, known by their second")
    bars = next(trace for trace in figure.data if trace.name == "GC pause")
    assert 3.5 in dots.x and 3.2 in bars.x
    assert "FAIL" not in "".join(dots.text)


def test_one_of_a_thing_is_told_in_the_singular(planted):
    one = [
        replace(group, found=group.found.assign(slow_requests=1, events=1))
        for group in tail.page_causes(planted).groups
    ]
    told = "".join(str(text) for trace in causes_by_workload(one).data for text in trace.text or ())
    assert "<br>1 slow answer, " in told and "<br>1 event, " in told


def test_a_run_known_by_the_second_alone_has_hollow_dots_and_no_line(planted):
    limit_us = tail.threshold_us(planted, 99)
    figure = slow_time_line(planted, limit_us)
    dots = next(trace for trace in figure.data if trace.name == "slow answers, known by their second")
    assert dots.marker.symbol == "circle-open" and len(dots.x) >= 5
    assert len(next(trace for trace in figure.data if trace.name == "their wait").x) == 0
    assert figure.layout.meta["drawn"].startswith("Hollow dots") and "line" not in figure.layout.meta["drawn"]


def test_a_run_known_answer_by_answer_has_a_line_as_long_as_they_waited(planted):
    limit_us, run_id = tail.threshold_us(planted, 99), planted.runs["run_id"].iloc[0]
    kept = pd.DataFrame(
        {
            "run_id": run_id,
            "due_s": [3.0, 5.0],
            "response_us": [250_000, 1],
            "service_us": [250_000, 1],
            "connection": 0,
        }
    )
    figure = slow_time_line(replace(planted, slowest=schema.conform("slowest", kept)), limit_us)
    line = next(trace for trace in figure.data if trace.name == "their wait")
    assert [edge for edge in line.x if edge is not None] == pytest.approx([3.0, 3.26])
    assert "in the 10 runs that did not keep them one by one" in figure.layout.meta["drawn"]


@pytest.mark.parametrize("percentile", [100, 150.0, -3.0, "99"])
def test_a_percentile_that_no_answer_can_be_above_is_refused(planted, percentile):
    with pytest.raises(KvstudyError, match="no (percentile|answer)"):
        tail.page_causes(planted, percentile)


def test_each_workload_is_told_its_own_causes(planted):
    groups = tail.page_causes(planted).groups
    assert {group.workload for group in groups} == {"unique_put", "repeated_get"} and groups[
        0
    ].limit_us != groups[1].limit_us
    figure = causes_by_workload(groups)
    assert len([trace for trace in figure.data if trace.name == "by chance"]) == 2
    assert (
        figure.layout.meta["finding"].startswith("unique_put, 4\u202f000 r/s")
        and "GC pause" in figure.layout.meta["finding"]
    )
    assert groups[figure.layout.meta["opens"]].workload == "unique_put"  # that the page's answer is about
    assert all(
        heading.text == f"{group.workload}, 4\u202f000 r/s"
        for heading, group in zip(figure.layout.annotations, groups, strict=True)
    )
    assert len(tails.table(groups)) == sum(len(group.found) for group in groups)
    assert "Expected: flush and WAL sync; neither can be called linked." in tails.summarize(groups).data


def test_the_number_in_the_index_stands_on_the_page_too(planted):
    measured = replace(planted, runs=planted.runs.assign(experiment="reproduce"))
    rule = next(rule for rule in answers.SERVICE if getattr(rule, "title", "") == "The slowest percent")
    limit, *_, untouched = rule(measured).rows
    put = next(
        group for group in tail.page_causes(measured.believed()).groups if group.workload == "unique_put"
    )
    shown = causes_by_workload([put]).layout.meta["finding"]
    assert words.latency(put.limit_us) == limit.number and words.latency(put.limit_us) in shown
    share, chance = put.found[["share", "chance"]].iloc[0]
    told = {row.number: row.answer for row in rule(measured).rows}
    assert told[words.share(share)].endswith(f", by chance {words.share(chance)}")
    assert untouched.answer == "waited while no recorded event was felt"
    assert (
        f"({words.share(share)}, by chance {words.share(chance)})" in shown
        and words.share(share) in tails.summarize([put]).data
    )


def test_the_seconds_told_are_those_with_answers(planted):
    limit_us = tail.threshold_us(planted, 99)
    rows = planted.intervals
    counted = replace(
        planted, intervals=rows.assign(count=rows["count"].mask(rows["second"] == rows["second"].max(), 0))
    )
    assert (
        f" of {19 * len(planted.runs)} seconds with answers; "
        in slow_time_line(counted, limit_us).layout.meta["finding"]
    )


def test_the_tables_name_what_ran_in_the_slowest_seconds(planted):
    limit_us = tail.threshold_us(planted, 99)
    first = slowest_seconds(planted, limit_us).iloc[0]
    assert first["second"] >= 3 and "GC pause 60.0 ms" in first["in that second"]
    assert causes_as_text(tail.causes(planted, limit_us))["event"].iloc[-1] == tail.NO_EVENT


def test_the_longest_that_ran_in_a_second_is_named_whatever_else_did(planted):
    limit_us = tail.threshold_us(planted, 99)
    events = planted.events
    pause = events[events["duration_ms"] == 60.0].iloc[[0]]
    others = [pause.assign(kind="wal_sync", duration_ms=2.0 + number / 10) for number in range(8)]
    more = replace(
        planted, events=pd.concat([events, *others, pause.assign(kind="compaction", duration_ms=90.0)])
    )
    texts = slowest_seconds(more, limit_us)["in that second"]
    crowded = texts[texts.str.contains("more")].iloc[0]
    assert crowded.startswith("compaction 90.0 ms; GC pause 60.0 ms") and crowded.endswith("; and 4 more")


def test_without_slow_answers_the_charts_say_so():
    empty = empty_tables()
    assert "Nothing to draw" in slow_time_line(empty, np.inf).layout.title.text
    assert "Nothing to draw" in causes_by_workload(tail.page_causes(empty).groups).layout.title.text
    for figure in (slow_time_line(empty, np.inf), causes_by_workload(tail.page_causes(empty).groups)):
        assert "no valid run" in figure.layout.meta["finding"]
        assert "Lower the percentile" not in figure.layout.meta["drawn"]
    assert tails.table([]).empty and "No workload" in tails.summarize([]).data
    assert isinstance(slowest_seconds(empty, np.inf), pd.DataFrame)


def test_what_is_held_off_is_drawn_pair_by_pair_and_a_cause_is_named_in_the_title():
    row = {
        "cause": "flush",
        "held_off": "memtable_bytes=268435456",
        "workload": "unique_put",
        "connections": 4,
        "offered_rate_rps": 2e4,
        "pairs": 6,
        "usual_us": 4000.0,
        "without_us": 1000.0,
        "ratio": 0.25,
        "low": 0.2,
        "high": 0.4,
        "p_value": 0.03,
        "word": intervention.CAUSED,
        "why": "",
        "also": ("compaction",),
        "ratios": [0.2, 0.25, 0.4, 0.22, 0.3, 0.25],
    }
    other = row | {
        "cause": "compaction",
        "held_off": "compaction=none",
        "pairs": 6,
        "low": np.nan,
        "high": np.nan,
        "p_value": np.nan,
        "word": tail.CANNOT_TELL,
        "why": "6 pairs of valid runs, 7 are needed",
        "ratios": [1.0] * 5,
    }
    found = pd.DataFrame([row, other])
    figure = interventions(found)
    assert (
        figure.layout.meta["finding"]
        == "The slow tail is caused by flush, or compaction that went away with it (p99 without it 0.250 ×)"
    )
    assert len(next(trace for trace in figure.data if trace.name == "a pair of runs").x) == 11
    assert "none can be called a cause" in interventions(found.iloc[1:]).layout.meta["finding"]
    assert interventions_as_text(found)["median ratio of pairs"].tolist() == ["0.250 ×", "0.250 ×"]
    assert interventions_as_text(found)["why"].tolist() == ["", "6 pairs of valid runs, 7 are needed"]
    assert (
        "Nothing to draw" in interventions(found.head(0)).layout.title.text
        and interventions_as_text(found.head(0)).empty
    )
