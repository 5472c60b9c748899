"""loadgen's JSON of both schema versions: what each says, and what the older one does not."""

import json

import pytest
from hdrh.histogram import HdrHistogram

from kvstudy.errors import FormatError
from kvstudy.record import generator_result


def latency(*values_us: int) -> dict:
    histogram = HdrHistogram(1, 86_400_000_000, 3)
    for value_us in values_us:
        histogram.record_value(value_us)
    return {"count": len(values_us), "histogram_v2_base64": histogram.encode().decode()}


def first_version(**changes) -> dict:
    return {
        "schema_version": 1,
        "achieved_rate_rps": 3.0,
        "measured_s": 1.0,
        "measure_start_utc": "2026-11-20T20:42:25.000000000Z",
        "counts": {"sent": 3, "measured": 3, "unexpected": 0, "unsent": 2},
        "errors": {"connect": 0, "read": 0, "write": 0, "timeout": 0},
        "response_time": latency(5, 6, 7),
        "service_time": latency(4, 5, 6),
        "send_lateness": latency(1, 1, 1),
        "own_lateness": latency(1),
        "verdict": {"generator_saturated": False, "reason": None},
        **changes,
    }


def second_version(**changes) -> dict:
    at_least = latency(5, 6, 7, 2_000_000, 2_000_000) | {"unanswered": 2, "lower_bounds": ["99"]}
    verdict = {"generator_saturated": False, "reason": None, "distorted_percentiles": ["99.9"]}
    return first_version(schema_version=2, response_time_at_least=at_least, verdict=verdict) | changes


def read(facts: dict) -> generator_result.GeneratorResult:
    return generator_result.read_json(json.dumps(facts), "generator.json")


def test_a_result_of_the_first_version_says_nothing_of_what_the_second_added():
    result = read(first_version())
    assert (result.saturated, result.distorted_percentiles, result.unanswered) == (False, (), None)
    assert result.lower_bounds == ()
    assert (result.latencies["response"].total, result.own_lateness.total) == (3, 1)


def test_a_result_of_the_second_version_says_it():
    result = read(second_version())
    assert (result.distorted_percentiles, result.unanswered) == (("99.9",), 2)
    assert result.lower_bounds == ("99",)
    assert result.latencies["response"].total == 3


def test_answers_are_counted_by_status_in_both_versions():
    for result in (first_version(), second_version()):
        assert read(result | {"answers": {"200": 1, "404": 2}}).answers == {"200": 1, "404": 2}


def test_a_closed_loop_that_nobody_can_judge_is_not_taken_for_one_that_was_not_saturated():
    assert read(second_version(verdict={"generator_saturated": None, "reason": None})).saturated is None


def test_a_verdict_that_is_none_of_the_three_is_refused():
    with pytest.raises(FormatError, match="neither true, false nor null: 'no'"):
        read(first_version(verdict={"generator_saturated": "no", "reason": None}))
