"""Planted causes must be found, innocent bystanders must not be blamed."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from histograms import encoded

from kvstudy.analyse import schema, tail
from kvstudy.analyse.tables import Tables

SECONDS, RUNS = 40, 6
GENERATOR = np.random.default_rng(12)
QUIET = encoded(GENERATOR.lognormal(5, 0.3, 1000))  # around 150 us, none over 1 ms
_SLOW = {}


def slow_second(slow: int) -> str:
    """1000 answers, ``slow`` of them at 20 ms."""
    if slow not in _SLOW:
        _SLOW[slow] = encoded(np.concatenate([np.full(1000 - slow, 150), np.full(slow, 20_000)]))
    return _SLOW[slow]


def tables(events, slow, answers=()) -> Tables:
    """``events``: (run, kind, start_s, duration_ms); ``slow``: run → {second: slow answers}; ``answers``:
    (run, due_s, response_us) of those that the generator kept."""
    intervals = [
        {
            "run_id": f"r{run}",
            "start_s": float(second),
            "length_s": 1.0,
            "second": second,
            "latency_kind": "response",
            "count": 1000,
            "p50_us": 150.0,
            "p99_us": np.nan,
            "max_us": 20_000.0 if slow[run].get(second) else 400.0,
            "histogram": slow_second(slow[run][second]) if slow[run].get(second) else QUIET,
        }
        for run in slow
        for second in range(SECONDS)
    ]
    rows = [
        {
            "run_id": f"r{run}",
            "kind": kind,
            "start_s": start,
            "duration_ms": length,
            "attributes": json.dumps({}),
        }
        for run, kind, start, length in events
    ]
    frames = {name: schema.empty(name) for name in schema.TABLES}
    frames["intervals"] = schema.conform("intervals", pd.DataFrame(intervals))
    if rows:
        frames["events"] = schema.conform("events", pd.DataFrame(rows))
    if len(answers):
        kept = pd.DataFrame(answers, columns=["run_id", "due_s", "response_us"])
        frames["slowest"] = schema.conform(
            "slowest",
            kept.assign(
                run_id="r" + kept["run_id"].astype(str), service_us=kept["response_us"], connection=0
            ),
        )
    return Tables(**frames)


def planted(kind: str, decoys=("flush", "gc_pause", "compaction", "wal_sync")) -> Tables:
    """``kind`` makes the second it ends in slow; every decoy comes as often at other times."""
    generator = np.random.default_rng(99)
    events, slow = [], {}
    for run in range(RUNS):
        slow[run] = {}
        for start in np.sort(generator.uniform(0, SECONDS - 1, 7)):
            events.append((run, kind, start, 60.0))
            slow[run][int(start + 0.06)] = int(generator.integers(20, 60))
        for decoy in decoys:
            if decoy != kind:
                events += [(run, decoy, start, 60.0) for start in generator.uniform(0, SECONDS - 1, 7)]
    return tables(events, slow)


@pytest.mark.parametrize("kind", ["flush", "gc_pause", "compaction", "wal_sync"])
def test_a_planted_cause_is_named_and_the_bystanders_are_not(kind):
    found = tail.causes(planted(kind), 5000).set_index("cause")
    assert found["word"][kind] == tail.LINKED
    assert (found["word"].drop([kind, tail.NO_EVENT]) == tail.CANNOT_TELL).all()
    assert found["share"][kind] == 1.0 and found["lift"][kind] > 3
    assert found.index[0] == kind


def test_a_kind_that_is_there_all_the_time_explains_nothing():
    busy = planted("gc_pause", decoys=())
    syncs = pd.DataFrame(
        [
            {
                "run_id": f"r{run}",
                "kind": "wal_sync",
                "start_s": second + 0.1,
                "duration_ms": 20.0,
                "attributes": "{}",
            }
            for run in range(RUNS)
            for second in range(SECONDS)
        ]
    )
    both = Tables(
        **{name: getattr(busy, name) for name in schema.TABLES if name != "events"},
        events=schema.conform("events", pd.concat([busy.events, syncs])),
    )
    found = tail.causes(both, 5000).set_index("cause")
    assert (found["share"]["wal_sync"], found["chance"]["wal_sync"], found["word"]["wal_sync"]) == (
        1.0,
        1.0,
        tail.CANNOT_TELL,
    )
    assert found["share"][tail.NO_EVENT] == 0
    assert found["word"]["gc_pause"] == tail.LINKED


def test_longer_events_of_a_kind_that_is_always_there_are_found():
    """Flushes every second, but slow answers only where they take long: the weight is the time, not the mere
    presence."""
    generator = np.random.default_rng(5)
    events, slow = [], {}
    for run in range(RUNS):
        long = set(generator.choice(SECONDS, 6, replace=False).tolist())
        events += [
            (run, "flush", second + 0.2, 400.0 if second in long else 5.0) for second in range(SECONDS)
        ]
        slow[run] = dict.fromkeys(long, 30)
    assert tail.causes(tables(events, slow), 5000).set_index("cause")["word"]["flush"] == tail.LINKED


def test_a_kind_that_comes_at_the_same_moment_of_every_run_is_not_linked_whatever_it_overlaps():
    """The same slow seconds in every run, and in each of them an event: as it would be if both only begin
    with the run."""
    moments = np.random.default_rng(7).choice(SECONDS - 1, 7, replace=False)
    events = [(run, "compaction", second + 0.1, 60.0) for run in range(RUNS) for second in moments]
    found = tail.causes(
        tables(events, {run: dict.fromkeys(moments.tolist(), 30) for run in range(RUNS)}), 5000
    ).set_index("cause")
    assert found["word"]["compaction"] == tail.CANNOT_TELL and "in step" in found["why"]["compaction"]
    assert (found["share"]["compaction"], found["chance"]["compaction"]) == (1.0, 1.0)


def test_runs_of_other_configurations_do_not_lend_their_events():
    """Six workloads with one run each: nobody to exchange with, so nothing can be told."""
    study = planted("flush", decoys=())
    usual = of_workloads(*((f"w{run}_put", 2000.0, 0) for run in range(RUNS))).runs
    found = tail.causes(replace(study, runs=usual), 5000).set_index("cause")
    assert (found["word"]["flush"], found["why"]["flush"]) == (
        tail.CANNOT_TELL,
        "no repeats to exchange events between",
    )
    assert found["chance"]["flush"] < 0.5  # its own events at other times


def test_fewer_than_five_events_in_a_window_decide_nothing_and_say_so():
    events, slow = (
        [(run, "flush", 7.0 * run + 2.5, 60.0) for run in range(RUNS)],
        {run: {7 * run + 2: 40} for run in range(RUNS)},
    )
    found = tail.causes(tables(events, slow), 5000).set_index("cause")
    assert (found["word"]["flush"], found["why"]["flush"]) == (
        tail.CANNOT_TELL,
        "1.0 events a window, 5 are needed",
    )


def of_two_workloads(repeats: int) -> Tables:
    """Flushes make the slow seconds of unique and of repeated PUT, which are the same but for their name."""
    usual = of_workloads(*(("unique_put", 2000.0, 0) for _ in range(RUNS))).runs
    study = replace(planted("flush", decoys=()), runs=usual).only([f"r{run}" for run in range(repeats)])
    other = {
        name: getattr(study, name).assign(run_id=getattr(study, name)["run_id"] + "-other")
        for name in ("runs", "intervals", "events", "slowest")
    }
    other["runs"] = other["runs"].assign(workload="repeated_put")
    return replace(
        study,
        **{name: pd.concat([getattr(study, name), rows], ignore_index=True) for name, rows in other.items()},
    )


def test_the_words_of_a_page_hold_for_all_its_questions_together():
    both = of_two_workloads(RUNS)
    (alone,), of_two = (
        tail.page_causes(study).groups for study in (both.select(workload="unique_put"), both)
    )
    p_values = [group.found.set_index("cause")["p_value"]["flush"] for group in (alone, *of_two)]
    assert p_values[1:] == pytest.approx([2 * p_values[0]] * 2, rel=0.6)


def test_five_repeats_beside_the_reference_link_one_workload_after_the_other():
    """p of five repeats cannot fall below 1/120, which is too much for two questions at once."""
    groups = tail.page_causes(of_two_workloads(5).but(part=0.5)).groups
    words = {group.workload: group.found.set_index("cause")["word"]["flush"] for group in groups}
    assert words == {"unique_put": tail.LINKED, "repeated_put": tail.LINKED}


def test_what_the_committed_runs_link_is_asked_before_other_kinds():
    study = planted("flush")
    named = of_workloads(*(("repeated_put", 2000.0, 0) for _ in range(RUNS))).runs
    turns = {kind: one.turn for kind, one in tail._questions(replace(study, runs=named), 5000).items()}
    assert turns == {"flush": 0, "wal_sync": 1, "gc_pause": 4, "compaction": 4}
    assert {one.turn for one in tail._questions(study, 5000).values()} == {4}


@pytest.mark.parametrize(
    ("share", "chance", "linked"),
    [(0.352, 0.347, False), (0.62, 0.69, False), (0.15, 0.01, True), (0.99, 0.92, True), (1.0, 1.0, True)],
)
def test_a_kind_that_overlaps_hardly_more_than_chance_is_not_linked_whatever_its_p(
    monkeypatch, share, chance, linked
):
    """But for what is felt all the time, which is linked by how long it takes."""
    monkeypatch.setattr(tail, "_share", lambda *_, **__: share)
    monkeypatch.setattr(tail, "_chance", lambda *_: chance)
    found = tail.causes(planted("flush", decoys=()), 5000).set_index("cause").loc["flush"]
    assert (found["word"] == tail.LINKED) == linked and found["p_value"] <= 0.025
    assert found["why"] == ("" if linked else tail.NO_MORE_THAN_CHANCE)


def test_slow_answers_without_any_event_are_said_to_have_none():
    found = tail.causes(
        tables([(0, "flush", 3.0, 50.0)], {run: {20: 40} for run in range(RUNS)}), 5000
    ).set_index("cause")
    assert found["share"][tail.NO_EVENT] == 1.0 and found["slow_requests"][tail.NO_EVENT] == 40 * RUNS
    assert found["word"]["flush"] == tail.CANNOT_TELL


def test_a_safepoint_that_is_a_gc_pause_is_not_a_second_cause():
    events = [(0, "gc_pause", 3.001, 50.0), (0, "safepoint", 3.0, 52.0), (0, "safepoint", 9.0, 50.0)]
    found = tail.causes(tables(events, {0: {3: 10}}), 5000).set_index("cause")
    assert found["events"].to_dict() == {"gc_pause": 1, "safepoint": 1, tail.NO_EVENT: 0}


def test_an_event_too_short_to_matter_is_left_out():
    found = tail.causes(tables([(0, "safepoint", 3.0, 0.2)], {0: {3: 10}}), 5000)
    assert found["cause"].tolist() == [tail.NO_EVENT]


def test_one_short_run_cannot_show_a_link():
    one = planted("flush", decoys=()).only(["r0"])
    short = Tables(
        **{name: getattr(one, name) for name in schema.TABLES if name != "intervals"},
        intervals=one.intervals[one.intervals["second"] < 5].reset_index(drop=True),
    )
    words = tail.causes(short, 5000).set_index("cause")["word"]
    assert words.get("flush", tail.CANNOT_TELL) == tail.CANNOT_TELL


def test_a_run_without_slow_answers_or_events_gives_a_table_all_the_same():
    found = tail.causes(tables([], {0: {}}), 5000)
    assert found["cause"].tolist() == [tail.NO_EVENT] and found["slow_requests"].tolist() == [0]
    assert tail.alignment(tables([], {0: {}}), 5000).empty


def test_every_slow_second_is_aligned_with_the_events_that_overlap_it():
    found = tail.alignment(
        tables([(0, "flush", 2.9, 200.0), (0, "gc_pause", 7.5, 30.0)], {0: {3: 10, 20: 5}}), 5000
    )
    assert found[["second", "slow", "kind"]].to_numpy().tolist() == [[3, 10, "flush"], [20, 5, tail.NO_EVENT]]


def test_the_threshold_is_a_percentile_of_all_answers_together():
    study = tables([], {0: {3: 100}, 1: {}})
    assert tail.threshold_us(study, 99.95) > 19_000 and tail.threshold_us(study, 99.0) < 1000
    with pytest.raises(ValueError, match="no answers per second"):
        tail.threshold_us(study.only([]))


def test_slow_answers_are_counted_per_run_and_second():
    found = tail.slow_seconds(tables([], {0: {3: 100}, 1: {5: 7}}), 5000)
    assert found[found["slow"] > 0].to_numpy().tolist() == [["r0", 3, 1000, 100], ["r1", 5, 1000, 7]]


def test_slow_answers_of_shorter_intervals_are_those_of_their_second():
    """Two rows of one second are half a second each."""
    study = tables([], {0: {3: 100, 4: 40}, 1: {5: 7}})
    rows = study.intervals
    halves = rows.assign(start_s=rows["second"] / 2, length_s=0.5, second=rows["second"] // 2)
    found = tail.slow_seconds(replace(study, intervals=halves), 5000)
    assert found[found["slow"] > 0].to_numpy().tolist() == [
        ["r0", 1, 2000, 100],
        ["r0", 2, 2000, 40],
        ["r1", 2, 2000, 7],
    ]
    assert len(found) == 2 * SECONDS // 2


def test_an_empty_second_at_the_end_of_a_log_is_no_second_and_one_in_between_is():
    study = tables([], {0: {3: 100}, 1: {5: 7}})
    nothing = study.intervals["second"].isin([10, SECONDS - 1])
    counted = replace(
        study, intervals=study.intervals.assign(count=study.intervals["count"].mask(nothing, 0))
    )
    assert (
        tail.slow_seconds(counted, 5000).groupby("run_id")["second"].agg(["size", "max"]).to_numpy().tolist()
        == [[SECONDS - 1, SECONDS - 2]] * 2
    )
    assert {run.bins for run in tail.slow_by_run(counted, 5000)} == {SECONDS - 1}


def of_workloads(*rows) -> Tables:
    """A run for each of ``rows``: workload, offered rate, slow answers of 20 ms in each of its seconds."""
    study = tables([], {run: dict.fromkeys(range(SECONDS), slow) for run, (_, _, slow) in enumerate(rows)})
    usual = {
        column.name: {"str": "", "float64": np.nan, "bool": False}.get(column.dtype, 0)
        for column in schema.TABLES["runs"]
    }
    runs = pd.DataFrame(
        [
            usual
            | {
                "run_id": f"r{run}",
                "workload": workload,
                "method": workload[-3:].upper(),
                "offered_rate_rps": rate,
            }
            for run, (workload, rate, _) in enumerate(rows)
        ]
    )
    return replace(study, runs=schema.conform("runs", runs))


def test_each_workload_has_a_threshold_of_its_own_at_its_highest_rate():
    groups = tail.page_causes(
        of_workloads(
            ("unique_get", 2000.0, 1),
            ("unique_put", 2000.0, 1),
            ("unique_put", 9000.0, 12),
            ("unique_put", 9000.0, 12),
        )
    ).groups
    assert [(group.workload, group.method, group.offered_rate_rps, group.runs) for group in groups] == [
        ("unique_put", "PUT", 9000.0, 2),
        ("unique_get", "GET", 2000.0, 1),
    ]
    assert groups[0].limit_us > 19_000 and groups[1].limit_us < 1000
    assert groups[1].found["slow_requests"].sum() > 0


def test_no_more_workloads_than_can_be_read_and_none_of_a_closed_loop():
    study = of_workloads(*((f"w{number}_get", 2000.0, number + 1) for number in range(9)))
    assert [group.workload for group in tail.page_causes(study, most=3).groups] == [
        "w8_get",
        "w7_get",
        "w6_get",
    ]
    assert tail.page_causes(replace(study, runs=study.runs.assign(closed_loop=True))).groups == []


def test_a_kind_that_is_there_all_the_time_does_not_count_as_an_explanation():
    always = [(run, "cpu_foreign", float(second), 900.0) for run in range(2) for second in range(SECONDS)]
    found = tail.causes(tables(always, {0: {3: 10}, 1: {9: 10}}), 5000).set_index("cause")
    assert found["share"][tail.NO_EVENT] == 1.0 and found["word"]["cpu_foreign"] == tail.CANNOT_TELL


def every_second(kinds=("wal_sync", "gc_pause")) -> tuple[list, dict, list]:
    """Events of 60 ms, one of each kind in every second; slow answers wait in those of the first kind alone.
    Events, slow, answers."""
    generator = np.random.default_rng(4)
    events, answers = [], []
    for run in range(RUNS):
        for second in range(SECONDS):
            at = second + generator.permutation(np.arange(0.05, 0.95, 0.3))[: len(kinds)]
            events += [(run, kind, start, 60.0) for kind, start in zip(kinds, at, strict=True)]
            answers += [(run, at[0] + late / 1e3, 61_000 - 1000 * late) for late in range(0, 50, 10)]
            answers.append((run, second + generator.uniform(0, 0.95), 400))
    return events, {run: dict.fromkeys(range(SECONDS), 5) for run in range(RUNS)}, answers


def test_slow_answers_known_one_by_one_tell_events_of_the_same_second_apart():
    events, slow, answers = every_second()
    by_second = tail.causes(tables(events, slow), 5000).set_index("cause")
    assert (by_second["word"].drop(tail.NO_EVENT) == tail.CANNOT_TELL).all() and (
        by_second["share"].drop(tail.NO_EVENT) == 1
    ).all()
    found = tail.causes(tables(events, slow, answers), 5000).set_index("cause")
    assert found["word"].to_dict() == {
        "wal_sync": tail.LINKED,
        "gc_pause": tail.CANNOT_TELL,
        tail.NO_EVENT: "",
    }
    assert (found["share"]["wal_sync"], found["share"]["gc_pause"]) == (1.0, 0.0)
    assert found["chance"]["wal_sync"] == pytest.approx(
        1 / 3, abs=0.1
    )  # another repeat has it in the same third of a second
    assert found["time_share"]["wal_sync"] == pytest.approx(0.13, abs=0.01)


def test_an_answer_that_came_while_the_queue_was_worked_off_is_touched_by_the_event_before_it():
    answers = [(0, 3.10, 20_000), (0, 3.17, 20_000), (0, 9.0, 400)]
    found = tail.causes(tables([(0, "gc_pause", 3.0, 60.0)], {0: {3: 2}}, answers), 5000).set_index("cause")
    assert found["slow_requests"].to_dict() == {"gc_pause": 1, tail.NO_EVENT: 1}


def test_of_linked_kinds_the_one_that_holds_most_alone_comes_first():
    events, slow, answers = every_second()
    taken = [
        (run, second)
        for run in range(RUNS)
        for second in np.random.default_rng(run).choice(SECONDS, 13, replace=False)
    ]
    stolen = [(run, "cpu_steal", float(second), 300.0) for run, second in taken]
    more = [(run, second + 0.5, 61_000) for run, second in taken for _ in range(20)]
    found = tail.causes(tables(events + stolen, slow, answers + more), 5000)
    assert found[found["word"] == tail.LINKED]["cause"].tolist() == sorted(
        found[found["word"] == tail.LINKED]["cause"],
        key=lambda kind: -found.set_index("cause")["share_alone"][kind],
    )
    assert set(found[found["word"] == tail.LINKED]["cause"]) == {"wal_sync", "cpu_steal"}


def test_what_is_counted_by_the_second_touches_all_of_it():
    answers = [(0, 3.9, 20_000), (0, 4.1, 20_000), (0, 9.0, 400)]
    found = tail.causes(tables([(0, "cpu_steal", 3.0, 100.0)], {0: {3: 2}}, answers), 5000).set_index("cause")
    assert found["slow_requests"].to_dict() == {"cpu_steal": 1, tail.NO_EVENT: 1}


def test_a_run_that_kept_fewer_answers_than_were_slow_is_looked_at_by_the_second():
    answers = [(0, 3.5, 21_000)] * 4
    (run,) = tail.slow_by_run(tables([], {0: {3: 10}}, answers), 5000)
    assert not run.one_by_one and (run.total, run.spells()) == (10, [(3.0, 4.0, 10)])


def test_answers_that_waited_together_are_one_spell():
    answers = [
        (0, 3.001, 20_000),
        (0, 3.011, 20_000),
        (0, 3.201, 20_000),
        (0, 39.991, 30_000),
        (0, -0.1, 125_000),
        (0, 9.0, 400),
    ]
    (run,) = tail.slow_by_run(tables([], {0: {3: 3}}, answers), 5000)
    assert run.one_by_one
    assert [(round(begin, 2), round(end, 2), number) for begin, end, number in run.spells()] == [
        (0.0, 0.03, 1),
        (3.0, 3.04, 2),
        (3.2, 3.23, 1),
        (39.99, 40.0, 1),
    ]


def test_of_a_run_without_repeats_chance_is_the_share_that_shifted_events_touch():
    """Against the shifts themselves, one after the other."""
    generator = np.random.default_rng(6)
    events = [(0, "flush", start, 70.0) for start in generator.uniform(0, SECONDS - 1, 25)]
    answers = [
        (0, due, length)
        for due, length in zip(
            generator.uniform(0, SECONDS, 50), generator.integers(6_000, 900_000, 50), strict=True
        )
    ] + [(0, 1.0, 400)]
    (run,) = tail.slow_by_run(tables(events, {0: {3: 50}}, answers), 5000)
    shifted = []
    for shift in range(run.bins):
        felt = np.roll(run.felt({"flush"}), shift)
        shifted.append(
            sum(felt[first : last + 1].any() for first, last in zip(run.first, run.last, strict=True))
        )
    assert run.touched_by_chance("flush") == pytest.approx(np.mean(shifted))
