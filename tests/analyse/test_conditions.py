"""How far apart the clocks of a run's hosts were."""

import json

import pytest

from kvstudy.analyse import conditions

SERVICE_ELSEWHERE = {"service": "a", "generators": ["b"]}


def looked(**offsets_us: float) -> dict:
    return {
        "reference": "b",
        "before": {},
        "after": {},
        **{when: {"a": {"offset_us": offset, "bound_us": 40.0}} for when, offset in offsets_us.items()},
    }


def offset_s(make_run, run_id: str, clocks: dict) -> float:
    more = {"machine.json": json.dumps({"clocks": clocks})}
    return conditions.clock_offset_s(make_run(run_id, hosts=SERVICE_ELSEWHERE, more=more))


def test_the_offset_of_the_services_clock_is_the_mean_of_before_and_after_the_load(make_run):
    assert offset_s(make_run, "both", looked(before=-2_000_000.0, after=-2_001_000.0)) == -2.0005
    assert offset_s(make_run, "one", looked(before=-2_000_000.0)) == -2.0


def test_how_far_either_clock_wandered_belongs_to_the_bound_of_what_was_moved(make_run):
    clocks = looked(before=0.0, after=0.0) | {"wandered_us": {"a": 300.0, "b": 20.0, "c": 5000.0}}
    more = {"machine.json": json.dumps({"clocks": clocks})}
    run = make_run("wandered", hosts=SERVICE_ELSEWHERE, more=more)
    assert conditions.clock_bound_s(run) == pytest.approx(360e-6)


def test_how_far_another_generators_clock_went_off_since_it_was_told_when_to_begin_belongs_to_the_bound(
    make_run,
):
    clocks = looked(before=0.0, after=0.0) | {"wandered_us": {"a": 300.0, "b": 20.0, "c": 5.0}}
    for when, offset in (("before", -1_000_000.0), ("after", -1_000_150.0)):
        clocks[when]["c"] = {"offset_us": offset, "bound_us": 60.0}
    hosts, more = (
        SERVICE_ELSEWHERE | {"generators": ["b", "c"]},
        {"machine.json": json.dumps({"clocks": clocks})},
    )
    run = make_run("two generators", hosts=hosts, more=more)
    assert conditions.clock_bound_s(run) == pytest.approx((360 + 60 + 150 + 5) / 1e6)


def test_the_host_whose_clock_is_the_runs_and_a_single_machine_are_not_off(make_run):
    assert offset_s(make_run, "reference", looked()) == 0
    assert conditions.clock_offset_s(make_run("alone")) == conditions.clock_bound_s(make_run("other")) == 0


def test_machines_of_one_kind_are_two_where_their_ids_were_noted(make_run):
    def machine(run_id: str, **facts: object) -> str:
        more = {"machine.json": json.dumps({"cpu_model": "x", "cores": 2} | facts)}
        return conditions.conditions_of_run(make_run(run_id, more=more))["machine"]

    one, other = machine("one", machine_id="a"), machine("other", machine_id="b")
    before_it_was_noted, without = machine("before"), machine("without", machine_id=None)
    assert len({one, other, before_it_was_noted}) == 3
    assert machine("again", machine_id="a") == one and without == before_it_was_noted
