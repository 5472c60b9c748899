"""Caused by is said only where holding a thing off moves the tail, and only if it was held off."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kvstudy.analyse import intervention, schema, validity
from kvstudy.analyse.linked import CANNOT_TELL
from kvstudy.analyse.tables import Tables

USUAL = {"compaction": "leveled", "memtable_bytes": 1 << 20, "wal": "interval"}
WITHOUT = {
    "compaction": USUAL | {"compaction": "none"},
    "flush": USUAL | {"memtable_bytes": 256 << 20},
    "wal_sync": USUAL | {"wal": "os"},
}


def study(repeats: int = 8, still_there: str = "", same_within: float = 0.05, **effects: float) -> Tables:
    """p99 of 4 ms as usual, times ``effects`` of the kind that is held off; repeats differ by 10 %.
    ``still_there``: a kind that comes all the same."""
    draw = np.random.default_rng(5)
    runs, points, events = [], [], []
    for repeat in range(1, repeats + 1):
        slow_machine = draw.lognormal(0, 0.3)
        for cause, options in {"": USUAL, **WITHOUT}.items():
            run_id = f"{cause or 'usual'}-{repeat}"
            runs.append(
                {
                    "run_id": run_id,
                    "repeat": repeat,
                    "variant": f"variant {cause}",
                    "service_options": json.dumps(options),
                    "workload": "unique_put",
                    "verdict": "PASS",
                    "same_within": same_within,
                }
            )
            points.append(
                {
                    "run_id": run_id,
                    "latency_kind": "response",
                    "percentile": 99.0,
                    "latency_us": 4000 * slow_machine * effects.get(cause, 1.0) * draw.lognormal(0, 0.1),
                    "sample_count": 1000,
                }
            )
            events += [
                {"run_id": run_id, "kind": kind, "start_s": 1.0, "duration_ms": 50.0, "attributes": "{}"}
                for kind in WITHOUT
                if kind in (still_there,) or kind != cause
            ]
    frames = {name: schema.empty(name) for name in schema.TABLES}
    for name, rows in (("runs", runs), ("percentiles", points), ("events", events)):
        frames[name] = schema.conform(name, pd.DataFrame([_blank(name) | row for row in rows]))
    return Tables(**frames)


def _blank(table: str) -> dict:
    return {
        column.name: {"str": "", "float64": 1.0, "bool": False}.get(column.dtype, 0)
        for column in schema.TABLES[table]
    }


def words(tables: Tables) -> dict[str, str]:
    return intervention.interventions(tables).set_index("cause")["word"].to_dict()


def test_what_shortens_the_tail_when_it_is_held_off_is_its_cause_and_nothing_else_is():
    found = intervention.interventions(study(flush=0.3)).set_index("cause")
    assert found["word"].to_dict() == {
        "flush": intervention.CAUSED,
        "compaction": CANNOT_TELL,
        "wal_sync": CANNOT_TELL,
    }
    assert (
        found.loc["flush", "low"] < 0.3 * 1.1
        and found.loc["flush", "high"] < 0.5
        and found.loc["flush", "pairs"] == 8
    )
    assert "by more than repeats differ" in found.loc["compaction", "why"]


def test_what_moves_the_tail_by_less_than_is_of_interest_is_no_cause():
    assert words(study(repeats=20, flush=0.8))["flush"] == intervention.CAUSED
    found = intervention.interventions(study(repeats=20, same_within=0.3, flush=0.8)).set_index("cause")
    assert found.loc["flush", "word"] == CANNOT_TELL
    assert "by 30 %, and by more than repeats differ" in found.loc["flush", "why"]


def test_what_lengthens_the_tail_when_it_is_held_off_is_no_cause():
    found = intervention.interventions(study(compaction=3.0)).set_index("cause")
    assert (found.loc["compaction", "word"], found.loc["compaction", "why"]) == (
        CANNOT_TELL,
        "the tail is longer without it",
    )


def test_what_came_all_the_same_was_not_held_off():
    found = intervention.interventions(study(flush=0.3, still_there="flush")).set_index("cause")
    assert (found.loc["flush", "word"], found.loc["flush", "why"]) == (
        CANNOT_TELL,
        "it was not held off: 8 in 8 windows, usually 8",
    )


def test_what_never_happens_as_usual_cannot_be_a_cause():
    tables = study(flush=0.3)
    found = intervention.interventions(
        replace(tables, events=tables.events[tables.events["kind"] != "flush"])
    ).set_index("cause")
    assert found.loc["flush", "why"] == "it did not happen in the usual runs either"


def test_what_went_away_with_the_kind_that_was_held_off_is_named_beside_it():
    tables = study(flush=0.3)
    gone = tables.events["run_id"].str.startswith("flush-") & (tables.events["kind"] == "compaction")
    found = intervention.interventions(replace(tables, events=tables.events[~gone])).set_index("cause")
    assert found["also"].to_dict() == {"flush": ("compaction",), "compaction": (), "wal_sync": ()}
    assert intervention.interventions(tables)["also"].tolist() == [()] * 3


def failed(tables: Tables, kind: str, repeats: range, by: str) -> Tables:
    chosen = tables.runs["run_id"].isin([f"{kind}-{repeat}" for repeat in repeats])
    return replace(
        tables,
        runs=tables.runs.assign(
            verdict=tables.runs["verdict"].mask(chosen, "FAIL"),
            excluded=tables.runs["excluded"].mask(chosen, by),
        ),
    )


def test_of_a_side_whose_bad_runs_the_service_made_invalid_the_rest_proves_nothing():
    tables = study(repeats=12, flush=0.1)
    lost = intervention.interventions(failed(tables, "flush", range(1, 5), validity.SERVICE)).set_index(
        "cause"
    )
    assert (lost.loc["flush", "word"], lost.loc["flush", "why"]) == (
        CANNOT_TELL,
        "4 of 12 runs without it are invalid, usually 0 of 12",
    )
    assert words(failed(tables, "flush", range(1, 4), validity.OUTSIDE))["flush"] == intervention.CAUSED
    lost_to_others = failed(tables, "flush", range(1, 5), validity.OUTSIDE)
    assert words(lost_to_others)["flush"] == CANNOT_TELL, "more than chance explains"
    assert words(failed(tables, "usual", range(1, 5), validity.SERVICE))["flush"] == intervention.CAUSED


def test_six_pairs_are_too_few_and_a_run_without_its_partner_is_no_pair():
    assert set(words(study(repeats=6, flush=0.1)).values()) == {CANNOT_TELL}
    tables = study(repeats=8, flush=0.1)
    failed = tables.runs["run_id"].isin([f"flush-{repeat}" for repeat in range(1, 3)])
    found = intervention.interventions(
        replace(tables, runs=tables.runs.assign(verdict=tables.runs["verdict"].mask(failed, "FAIL")))
    ).set_index("cause")
    assert (found.loc["flush", "pairs"], found.loc["flush", "why"]) == (
        6,
        "6 pairs of valid runs, 7 are needed",
    )
    assert found.loc["compaction", "pairs"] == 8


def test_p_is_the_share_of_all_exchanges_within_pairs():
    assert intervention.moved([0.5] * 8).p_value == pytest.approx(1 / 256)
    assert intervention.moved([2.0] * 8).p_value == 1 and intervention.moved([0.5, 2.0] * 4).p_value > 0.5
    assert 0 < intervention.moved([0.5] * 30).p_value < 0.001
    assert intervention.moved([0.96] * 8).p_value == pytest.approx(1 / 256)
    assert intervention.moved([0.96] * 8, least=0.05).p_value == 1


def test_the_interval_covers_the_median_as_often_as_it_says():
    draw = np.random.default_rng(3)
    covered = sum(
        (move := intervention.moved(np.exp(draw.standard_t(3, 8)))).low <= 1 <= move.high for _ in range(1000)
    )
    assert covered >= 950
    assert np.isnan(intervention.moved([0.5] * 5).low)


def test_a_variant_that_differs_in_more_than_one_option_holds_nothing_off():
    assert (
        intervention.held_off(USUAL, WITHOUT["flush"]) == "flush"
        and intervention.held_off(WITHOUT["flush"], USUAL) == ""
    )
    assert intervention.held_off(WITHOUT["compaction"], WITHOUT["flush"]) == ""
    assert (
        intervention.held_off(USUAL, USUAL | {"wal": "always"}) == ""
        and intervention.held_off(USUAL, USUAL) == ""
    )


def test_without_runs_there_is_nothing_to_tell():
    assert intervention.interventions(study().only([])).empty


def test_an_experiment_measured_twice_has_a_pair_for_each_repeat_of_each_sweep():
    once, again = study(repeats=4, flush=0.3), study(repeats=4, flush=0.3)
    later = {
        name: getattr(again, name).assign(run_id="again-" + getattr(again, name)["run_id"])
        for name in ("runs", "percentiles", "events")
    }
    later["runs"] = later["runs"].assign(start_utc="2026-11-22T00:00:00.000Z")
    both = replace(
        once,
        **{
            name: pd.concat(
                [
                    getattr(once, name).assign(
                        **({"start_utc": "2026-11-21T00:00:00.000Z"} if name == "runs" else {})
                    ),
                    frame,
                ],
                ignore_index=True,
            )
            for name, frame in later.items()
        },
    )
    found = intervention.interventions(both).set_index("cause")
    assert found.loc["flush", "pairs"] == 8 and found.loc["flush", "word"] == intervention.CAUSED


def test_just_the_least_effect_or_one_that_is_not_known_is_no_cause():
    assert intervention.moved([1 / 1.05] * 8, 0.05).p_value == 1.0
    assert intervention.moved([0.5] * 8, float("nan")).p_value == 1.0
