"""Every check, passed by a good run and violated by one that is made bad in that way alone."""

import re
from dataclasses import replace

import pytest

from kvstudy.analyse.validity import CHECKS, OUTSIDE, SERVICE, Evidence, check, excluded, worst
from kvstudy.record import hdr

GOOD = Evidence(
    generator="loadgen",
    closed_loop=False,
    connections=16,
    threads=1,
    method="PUT",
    offered_rate_rps=2000,
    achieved_rate_rps=1999.5,
    unexpected_answers=0,
    errors={"connect": 0, "read": 0, "write": 0, "timeout": 0},
    requests_due=60_000,
    unsent=0,
    samples=60_000,
    saturated=False,
    percentile_pairs=((50, 2, 110), (99, 30, 400)),
    third_medians_us=(110, 112),
    steal_share=0.001,
    throttled_share=0.0,
    foreign_share=0.01,
    sampled_share=1.0,
    log_errors=(),
    data_check={"sampled": 1000, "missing": 0, "wrong": 0, "written": 900},
    records_events=True,
    events_recorded=True,
    profiled=True,
    profiled_share=0.99,
    logged_samples=60_000,
    unanswered=1,
    lower_bounds=("99.999", "100"),
)


def verdicts(evidence):
    return {result.check: result.verdict for result in check(evidence)}


def test_a_good_run_passes_every_check():
    assert set(verdicts(GOOD).values()) == {"PASS"}
    assert len(verdicts(GOOD)) == len(CHECKS) - 1  # connections are dropped by wrk and wrk2 only
    assert worst(check(GOOD)) == "PASS"


BAD = [
    ("completed", "FAIL", {"outcome": "failed: the service died"}),
    ("readable", "FAIL", {"unreadable": ("latency.hlog:4: cut",)}),
    ("rate_held", "FAIL", {"achieved_rate_rps": 1979.0}),
    ("rate_held", "WARN", {"achieved_rate_rps": None}),
    ("every_request_sent", "WARN", {"unsent": 17}),
    ("every_request_sent", "FAIL", {"unsent": 3000}),
    ("tail_answered", "WARN", {"unanswered": 784, "lower_bounds": ("99.9", "100")}),
    ("answers_expected", "FAIL", {"unexpected_answers": 1}),
    ("answers_expected", "WARN", {"unexpected_answers": None}),
    ("no_errors", "FAIL", {"errors": {"connect": 0, "timeout": 24}}),
    ("no_errors", "WARN", {"errors": {}}),
    ("connections_opened", "FAIL", {"generator": "wrk2", "connections": 10, "threads": 4}),
    (
        "generator_not_saturated",
        "FAIL",
        {"saturated": True, "saturated_reason": "its thread used 99 % of a core"},
    ),
    ("generator_not_saturated", "WARN", {"saturated": None}),
    (
        "generator_not_saturated",
        "WARN",
        {"saturated": False, "saturated_reason": "connections: 1 of them busy 100 %"},
    ),
    ("generator_not_saturated", "WARN", {"saturated": False, "distorted_percentiles": ("99.9",)}),
    ("send_lateness", "WARN", {"percentile_pairs": ((50, 2, 110), (99, 100, 400))}),
    ("send_lateness", "FAIL", {"percentile_pairs": ((50, 110, 130), (99, 120, 4000))}),
    ("send_lateness", "WARN", {"percentile_pairs": ()}),
    ("samples", "WARN", {"samples": 5000, "logged_samples": 5000}),
    ("samples", "FAIL", {"samples": 900, "logged_samples": 900}),
    ("samples", "WARN", {"samples": None}),
    ("log_complete", "FAIL", {"logged_samples": 59_999}),
    ("no_steal", "WARN", {"steal_share": 0.03}),
    ("no_steal", "FAIL", {"steal_share": 0.2}),
    ("no_steal", "WARN", {"steal_share": None}),
    ("no_throttling", "WARN", {"throttled_share": 0.01}),
    ("no_throttling", "FAIL", {"throttled_share": 0.2}),
    ("no_foreign_load", "WARN", {"foreign_share": 0.1}),
    ("no_foreign_load", "FAIL", {"foreign_share": 0.5}),
    ("warm_up_long_enough", "WARN", {"third_medians_us": (150.0, 120.0)}),
    ("warm_up_long_enough", "WARN", {"third_medians_us": (300.0, 120.0)}),
    ("warm_up_long_enough", "WARN", {"third_medians_us": (22.5, 19.0)}),
    ("warm_up_long_enough", "WARN", {"third_p99s_us": (9000.0, 250.0)}),
    ("warm_up_long_enough", "WARN", {"third_cpus_us": (40.0, 20.0), "third_answers": 10_000}),
    ("warm_up_long_enough", "WARN", {"third_medians_us": None}),
    ("service_healthy", "FAIL", {"log_errors": ("java.lang.OutOfMemoryError: Java heap space",)}),
    ("service_healthy", "WARN", {"log_errors": None}),
    ("data_kept", "FAIL", {"data_check": {"sampled": 1000, "missing": 1, "wrong": 0}}),
    ("data_kept", "FAIL", {"data_check": {"sampled": 1000, "missing": 0, "wrong": 2}}),
    ("data_kept", "WARN", {"data_check": None}),
    ("data_kept", "WARN", {"data_check": {"sampled": 200, "missing": 0, "wrong": 0, "written": 0}}),
    ("data_kept", "FAIL", {"data_check": {"sampled": 200, "missing": 0, "wrong": 1, "written": 0}}),
    ("machine_sampled", "WARN", {"sampled_share": 0.8}),
    ("machine_sampled", "FAIL", {"sampled_share": 0.4}),
    ("events_recorded", "WARN", {"events_recorded": False}),
    ("profile_whole", "FAIL", {"profiled_share": 0.4}),
    ("profile_whole", "WARN", {"profiled_share": None}),
]


@pytest.mark.parametrize(("name", "verdict", "change"), BAD)
def test_a_run_that_violates_one_check_fails_that_one_alone(name, verdict, change):
    found = verdicts(replace(GOOD, **change))
    assert found.pop(name) == verdict
    assert set(found.values()) == {"PASS"}
    assert worst(check(replace(GOOD, **change))) == verdict


def test_a_profile_that_began_late_beside_an_overload_leaves_the_run_to_the_service():
    late = replace(GOOD, profiled_share=0.5)
    assert excluded(check(late)) == OUTSIDE
    assert excluded(check(replace(late, achieved_rate_rps=900.0))) == SERVICE


@pytest.mark.parametrize("answers", [0, 4, 950, 951, 960, 999, 1000, 1049, 1050, 9951, 60_070])
def test_as_many_samples_lie_beyond_p99_as_where_it_is_printed(answers):
    """The table of percentiles said 10 of 960 and printed p99, the check said 9 and failed the run."""
    few = replace(GOOD, samples=answers, logged_samples=answers)
    (found,) = [one for one in check(few) if one.check == "samples"]
    beyond = answers - int(hdr.ranks(answers, (99.0,))[0]) if answers else 0
    assert found.observed == f"{beyond} of {answers} beyond p99"
    assert found.verdict == ("FAIL" if beyond < 10 else "WARN" if beyond < 100 else "PASS")


def test_of_unexpected_answers_it_says_which_statuses_came():
    bad = replace(GOOD, unexpected_answers=12, answers={"200": 988, "404": 12})
    seen = {one.check: one.observed for one in check(bad)}["answers_expected"]
    assert seen == "12 of 1000 (200: 988, 404: 12)"


def test_a_check_that_marks_some_runs_and_fails_others_says_from_where_it_fails_them():
    both = {name for name, verdict, _ in BAD if verdict == "WARN"} & {
        name for name, verdict, _ in BAD if verdict == "FAIL"
    }
    for one in check(GOOD):
        # Of the others a run is marked for what was not recorded, or cannot be known.
        others = {
            "rate_held",
            "answers_expected",
            "no_errors",
            "generator_not_saturated",
            "service_healthy",
            "data_kept",
            "profile_whole",
        }
        assert (one.check in both - others) == ("FAIL" in one.required), one


def test_every_check_has_a_run_that_fails_or_warns_it():
    assert {rule.__name__ for rule in CHECKS} == {name for name, _, _ in BAD}


def test_a_check_is_named_as_its_rule():
    for rule in CHECKS:
        found = rule(replace(GOOD, generator="wrk2") if rule.__name__ == "connections_opened" else GOOD)
        assert found.check == rule.__name__


def test_a_closed_loop_is_not_asked_for_a_rate():
    found = verdicts(replace(GOOD, closed_loop=True, offered_rate_rps=None))
    assert not {"rate_held", "every_request_sent", "send_lateness"} & set(found)


def test_lateness_that_may_be_the_services_is_not_a_failure():
    assert (
        verdicts(replace(GOOD, percentile_pairs=((50, 90, 110), (99, 390, 400)), lateness_is_own=False))[
            "send_lateness"
        ]
        == "WARN"
    )
    assert verdicts(replace(GOOD, lateness_is_own=False))["send_lateness"] == "PASS"


def test_a_timers_lateness_marks_the_run_of_a_fast_service_and_does_not_fail_it():
    assert verdicts(replace(GOOD, percentile_pairs=((50, 25, 40), (99, 90, 150))))["send_lateness"] == "WARN"


def test_lateness_that_no_timer_could_better_is_not_held_against_a_run():
    assert verdicts(replace(GOOD, percentile_pairs=((50, 15, 40), (99, 19, 60))))["send_lateness"] == "PASS"


def test_what_is_in_the_queue_when_the_run_ends_is_not_a_loss():
    assert verdicts(replace(GOOD, unsent=16))["every_request_sent"] == "PASS"


def test_a_get_run_needs_no_data_check():
    assert "data_kept" not in verdicts(replace(GOOD, method="GET", data_check=None))


def test_what_is_required_reads_the_same_for_every_run():
    other = replace(
        GOOD,
        generator="wrk2",
        connections=4,
        threads=2,
        offered_rate_rps=20_000,
        achieved_rate_rps=17_000.0,
        unsent=900,
        samples=900,
    )
    required = [
        {result.check: result.required for result in check(evidence)}
        for evidence in (replace(GOOD, generator="wrk"), other)
    ]
    assert required[0] == required[1]


@pytest.mark.parametrize(
    ("name", "change", "limit"),
    [
        ("rate_held", {"achieved_rate_rps": 1979.92}, 99),
        ("every_request_sent", {"unsent": 601, "requests_due": 60_099}, 1),
        ("no_steal", {"steal_share": 0.010004}, 1),
        ("no_foreign_load", {"foreign_share": 0.200001}, 20),
        ("machine_sampled", {"sampled_share": 0.9496}, 95),
        ("profile_whole", {"profiled_share": 0.94996}, 95),
    ],
)
def test_what_is_just_beyond_a_limit_does_not_read_as_if_it_were_on_it(name, change, limit):
    (found,) = (result for result in check(replace(GOOD, **change)) if result.check == name)
    assert found.verdict != "PASS" and f"{limit} %" in found.required
    assert float(re.search(r"([0-9.]+) %", found.observed)[1]) != limit


def test_microseconds_have_one_spelling():
    texts = [text for result in check(GOOD) for text in (result.observed, result.required)]
    assert any("µs" in text for text in texts) and not any(re.search(r"\bus\b", text) for text in texts)


def test_thirds_that_lie_within_what_can_be_measured_agree():
    near = replace(
        GOOD,
        third_medians_us=(19.0, 17.0),
        third_p99s_us=(400.0, 900.0),
        third_cpus_us=(40.0, 21.0),
        third_answers=1000,
    )
    assert verdicts(near)["warm_up_long_enough"] == "PASS"


LATE = ((50.0, 4000.0, 5000.0), (99.0, 9000.0, 10_000.0))  # its own: percentile, lateness, response
EXCLUDED = [
    (OUTSIDE, {"steal_share": 0.2}),
    (OUTSIDE, {"foreign_share": 0.5}),
    (OUTSIDE, {"saturated": True}),
    (OUTSIDE, {"outcome": "failed: interrupted during measure"}),
    (OUTSIDE, {"outcome": "failed: profiler refused: start"}),
    (OUTSIDE, {"unreadable": ("latency.hlog:4: cut",)}),
    (OUTSIDE, {"samples": 900, "logged_samples": 900}),
    (OUTSIDE, {"steal_share": 0.2, "errors": {"timeout": 5}}),
    (SERVICE, {"throttled_share": 0.2}),
    (OUTSIDE, {"throttled_share": 0.2, "foreign_share": 0.5}),
    (SERVICE, {"closed_loop": True, "samples": 900, "logged_samples": 900}),
    (OUTSIDE, {"closed_loop": True, "samples": 900, "logged_samples": 900, "saturated": True}),
    (SERVICE, {"achieved_rate_rps": 1500.0}),
    (SERVICE, {"achieved_rate_rps": 3.0, "samples": 90, "logged_samples": 90}),
    (SERVICE, {"errors": {"timeout": 5}}),
    (SERVICE, {"unexpected_answers": 1}),
    (SERVICE, {"data_check": {"sampled": 10, "missing": 1, "wrong": 0}}),
    (SERVICE, {"outcome": "failed: service died during measure: exit=137"}),
    (SERVICE, {"outcome": "failed: host a: service died during measure: exit=137"}),
    (OUTSIDE, {"outcome": "failed: host a is lost: service died during measure"}),
    (SERVICE, {"outcome": "failed: service died during measure: exit=137", "sampled_share": 0.2}),
    (
        SERVICE,
        {
            "outcome": "failed: service died during measure: exit=137",
            "profiled": True,
            "profiled_share": 0.2,
        },
    ),
    (OUTSIDE, {"outcome": "failed: interrupted during measure", "sampled_share": 0.2}),
    (OUTSIDE, {"outcome": "failed: service cannot have its port: port 8080: in use"}),
    (OUTSIDE, {"percentile_pairs": LATE}),
    (SERVICE, {"percentile_pairs": LATE, "achieved_rate_rps": 1500.0}),
    (SERVICE, {"percentile_pairs": LATE, "achieved_rate_rps": 1500.0, "errors": {"timeout": 5}}),
    (OUTSIDE, {"percentile_pairs": LATE, "achieved_rate_rps": 1500.0, "saturated": True}),
    (OUTSIDE, {"percentile_pairs": LATE, "errors": {"timeout": 5}}),
    ("", {"third_medians_us": (300.0, 120.0)}),
    ("", {}),
]


@pytest.mark.parametrize(("why", "change"), EXCLUDED)
def test_only_what_came_from_outside_excludes_a_run_without_more_words(why, change):
    run = replace(GOOD, **change)
    assert excluded(check(run), run.closed_loop) == why
