"""What one trial says about a rate: held, missed, or nothing at all."""

import pytest

from kvstudy.plan.objective import Answer, Objective

RESULT = {
    "achieved_rate_rps": 1999.0,
    "offered_rate_rps": 2000.0,
    "counts": {"unexpected": 0, "measured": 6000},
    "errors": {"timeout": 0, "read": 0},
    "response_time": {"mean_us": 800.0, "percentiles": {"50": 700, "99": 1900, "99.9": 9000}},
    "verdict": {"generator_saturated": False, "reason": None},
}
QUIET = {"foreign_cpu_share_mean": 0.02, "steal_share_mean": 0.0}


def answer(objective, outcome="completed", result=None, load=QUIET, **change):
    return objective.answer(outcome, RESULT | change if result is None else result, load)


def test_rate_is_held_when_every_limit_is_kept():
    held, note = answer(Objective(mean="1ms", p99="2ms"))
    assert held is Answer.HELD and note == "mean 0.800 ms of 1 ms, p99 1.900 ms of 2 ms"


@pytest.mark.parametrize(
    ("objective", "change", "words"),
    [
        (Objective(mean="500us"), {}, "mean 0.800 ms of 0.5 ms"),
        (Objective(mean="1ms", p999="5ms"), {}, "p99.9 9.000 ms of 5 ms"),
        (Objective(mean="1ms"), {"achieved_rate_rps": 880.5}, "achieved 44.0 % of the rate, 99 % asked for"),
        (Objective(mean="1ms"), {"errors": {"timeout": 24, "read": 0}}, "24 errors or unexpected answers"),
        (Objective(mean="1ms"), {"counts": {"unexpected": 3}}, "3 errors or unexpected answers"),
        (
            Objective(p99="20s", achieved_share=0.5),
            {"achieved_rate_rps": 1200.0, "counts": {"unexpected": 0, "measured": 0}},
            "no request that was due after the warm-up was answered",
        ),
    ],
)
def test_rate_is_missed_with_what_was_observed_and_asked_for(objective, change, words):
    missed, note = answer(objective, **change)
    assert missed is Answer.MISSED and words in note


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {
                "verdict": {"generator_saturated": True, "reason": "a thread used 99 % of a core"},
                "achieved_rate_rps": 100.0,
            },
            "generator saturated: a thread",
        ),
        ({"load": {"foreign_cpu_share_mean": 0.6}}, "other programs used 60 % of the CPU time, over 20 %"),
        ({"load": {"steal_share_mean": 0.2}}, "the machine's host took 20 % of the CPU time, over 5 %"),
        ({"outcome": "failed: profiler refused: start"}, "profiler refused"),
        ({"outcome": "failed: service cannot have its port: port 80: in use"}, "cannot have its port"),
        ({"outcome": "failed: service is not there: nothing answers"}, "not there"),
        ({"outcome": "failed: service was not ready in time: timeout=60s: "}, "not ready in time"),
        ({"outcome": "failed: service ended before it was ready: exit=1: "}, "before it was ready"),
        ({"outcome": "failed: service was killed before it was ready: its memory"}, "before it was ready"),
        ({"outcome": "failed: service died during fill: signal 9"}, "died during fill"),
        ({"outcome": "failed: service died during POST /v0/admin/idle"}, "died during POST"),
        ({"outcome": "failed: records cannot be counted: 503"}, "cannot be counted"),
        ({"outcome": "failed: restored store did not come to rest: flush or"}, "did not come to rest"),
        (
            {"outcome": "failed: service died during measure", "load": {"steal_share_mean": 0.2}},
            "service died",
        ),
    ],
)
def test_trial_that_failed_by_itself_says_nothing_even_where_the_rate_was_missed(arguments, words):
    unknown, note = answer(Objective(mean="1ms"), **arguments)
    assert unknown is Answer.UNKNOWN and words in note


@pytest.mark.parametrize(
    "outcome",
    [
        "failed: service died during measure: signal 9",
        "failed: service was killed during warm-up: its memory group is too small",
        "failed: generator got no answer at all",
    ],
)
def test_a_rate_under_which_the_service_died_is_missed_so_that_it_is_not_held_by_survivors(outcome):
    missed, note = Objective(mean="1ms").answer(outcome, None, QUIET)
    assert missed is Answer.MISSED and note == outcome.removeprefix("failed: ")


def test_a_rate_at_which_acknowledged_writes_are_lost_is_missed():
    objective, kept = Objective(mean="1ms"), {"sampled": 200, "missing": 0, "wrong": 0}
    assert objective.answer("completed", RESULT, QUIET, kept)[0] is Answer.HELD
    missed, note = objective.answer("completed", RESULT, QUIET, kept | {"missing": 39, "wrong": 1})
    assert missed is Answer.MISSED and note == "40 of 200 keys read back missing or wrong"
    disturbed = {"steal_share_mean": 0.2}
    assert objective.answer("completed", RESULT, disturbed, kept | {"wrong": 1})[0] is Answer.UNKNOWN


def test_what_was_due_and_got_no_answer_counts_with_how_long_it_was_waited_for():
    """Else a service that stands still to the end of a trial would hold its rate."""
    waited = {"mean_us": 900.0, "percentiles": {"50": 700, "99": 1900, "99.9": 35_000}, "unanswered": 784}
    held, _ = answer(Objective(p999="10ms"))
    missed, note = answer(Objective(p999="10ms"), response_time_at_least=waited)
    assert (held, missed, note) == (Answer.HELD, Answer.MISSED, "p99.9 35.000 ms of 10 ms")
