"""Can a run be believed? Every check gives PASS, WARN or FAIL with what was observed and what is required.

    rows = check(evidence)          one Check per question that the evidence can answer
    worst(rows)                     the run's verdict

    excluded(rows)                  why it is in no median: OUTSIDE, SERVICE, or "" for a run that is

A check that does not apply (the rate of a closed loop, the data of a GET run) gives no row; one that applies
but was not recorded gives WARN, since not looking is not passing. FAILed runs are kept, shown greyed and in
no median. What came from outside (the host, other programs, the generator, the harness) excludes a run
without more words. What the service did (a rate not held, timeouts, an error, lost data) is an outcome: such
runs are counted on each side of a comparison (analyse/comparison/outcomes.py). A run that drifts is marked
and stays in: what drifts may be what was changed. The limits are the constants below, each with its reason;
nothing else in the study decides what is valid.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kvstudy.analyse.schema import VERDICTS
from kvstudy.disturbance import FOREIGN_CPU_MAX_SHARE, STEAL_MAX_SHARE
from kvstudy.record import hdr
from kvstudy.service_failure import is_of_service
from kvstudy.units import percent

PASS, WARN, FAIL = VERDICTS

ACHIEVED_SHARE_MIN = 0.99  # of the offered rate: the definition of "held"
SAMPLES_BEYOND_PRINTED = 10  # fewer: the estimate is one odd request, not a percentile
SAMPLES_BEYOND_FIRM = 100  # fewer: its standard error is over 10 % of the tail
# of the response time at the same percentile: how much of it the ruler made
LATENESS_SHARE_PASS, LATENESS_SHARE_WARN = 0.10, 0.50
# what loadgen promises of its p99 without spinning: within it a run is marked at most, however fast the
# service
LATENESS_TIMER_US = 100.0
LATENESS_NEGLIGIBLE_US = 20.0  # a timer of the kernel cannot do better; never held against a run
STEAL_SHARE_PASS, STEAL_SHARE_WARN = 0.01, STEAL_MAX_SHARE  # of the machine's CPU time, taken by its host
# of the machine's CPU time, used by neither service nor generator
FOREIGN_SHARE_PASS, FOREIGN_SHARE_WARN = 0.05, FOREIGN_CPU_MAX_SHARE
DRIFT_SHARE = 1.10  # ratio of the medians of the window's first and last third, either way up
# The same of CPU per answer and of p99, which a third of five seconds does not have more exactly: three of
# four reference runs, warm or not, differ by less than 1.25 and 4.3.
DRIFT_CPU_SHARE, DRIFT_P99_SHARE = 1.5, 10.0
# of a median that is counted in whole microseconds: two this close agree, whatever their ratio
RESOLUTION_US = 2.0
# two ticks of the kernel's count in a third, over its answers: so far its CPU per answer is not known
CPU_TICKS_US = 20_000.0
# Of the measured seconds. A busy machine keeps the sampler waiting too: the seconds that it did not see are
# not the quiet ones.
SAMPLED_SHARE_PASS, SAMPLED_SHARE_WARN = 0.95, 0.5
# of the measured time: so much the first seconds, or the last, may weigh in any other way than it is said
PROFILED_SHARE_MIN = 0.95
ANSWERS_EXPECTED = "0 answers with an unexpected status: `statuses` in the experiment names the expected ones"
LAST_PRINTED = 99.9  # the last percentile that tables and findings have
# of the requests that were due; one per connection may be waiting for its connection when the run ends
UNSENT_SHARE_WARN = 0.01
WRK_GENERATORS = ("wrk", "wrk2")  # open connections // threads connections per thread and drop the rest


@dataclass(frozen=True)
class Check:
    """``check``: the name in the validity table; ``observed`` and ``required`` for people, with units. What
    is required reads the same for every run: a page says it once, beside how many runs passed. Where a check
    marks runs first, it also says from where it fails them."""

    check: str
    verdict: str
    observed: str
    required: str


@dataclass(frozen=True)
class Evidence:
    """What is known of one run; None: not recorded. Latencies in microseconds, shares 0 – 1.

    ``answers``: all of them, by status. ``samples``: answers in the response (or service) distribution.
    ``percentile_pairs``: (percentile, lateness, response); ``lateness_is_own``: it leaves out the waiting for
    a connection that the service kept busy. ``third_medians_us``, ``third_p99s_us``, ``third_cpus_us``: of
    the window's first and last third response median, p99, and CPU per answer, the last with
    ``third_answers``, the fewer of both.
    ``sampled_share``: of the measured time, of which the machine's load is known; ``profiled_share``: that a
    profiler ran. ``records_events``: its JVM makes a recording, and whether ``events_recorded``.
    ``unreadable``: why a file could not be read.
    """

    generator: str
    closed_loop: bool
    connections: int | None
    threads: int | None
    method: str = "GET"
    outcome: str = "completed"
    offered_rate_rps: float | None = None
    achieved_rate_rps: float | None = None
    unexpected_answers: int | None = None
    answers: Mapping[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    requests_due: int | None = None
    unsent: int | None = None
    samples: int | None = None
    saturated: bool | None = None
    saturated_reason: str = ""
    distorted_percentiles: tuple[str, ...] = ()
    unanswered: int | None = None
    lower_bounds: tuple[str, ...] = ()
    percentile_pairs: tuple[tuple[float, float, float], ...] = ()
    lateness_is_own: bool = True
    third_medians_us: tuple[float, float] | None = None
    third_p99s_us: tuple[float, float] | None = None
    third_cpus_us: tuple[float, float] | None = None
    third_answers: int | None = None
    steal_share: float | None = None
    throttled_share: float | None = None
    foreign_share: float | None = None
    sampled_share: float | None = None
    log_errors: tuple[str, ...] | None = None
    data_check: dict | None = None
    records_events: bool = False
    events_recorded: bool = False
    profiled: bool = False
    profiled_share: float | None = None
    logged_samples: int | None = None
    unreadable: tuple[str, ...] = ()


def check(evidence: Evidence) -> list[Check]:
    """Every check that applies, always in the order of CHECKS."""
    return [result for rule in CHECKS if (result := rule(evidence)) is not None]


def worst(checks: Iterable[Check]) -> str:
    """The verdict of the run; PASS when there is no check."""
    return max((result.verdict for result in checks), key=VERDICTS.index, default=PASS)


OUTSIDE, SERVICE = "outside", "service"
# What the service can make fail; all other checks are about the machine, the generator and the harness. A
# quota of CPU stops whoever uses it up, and a service that a change made dearer uses it up sooner: so
# throttling is its outcome too.
OF_THE_SERVICE = frozenset(
    {
        "rate_held",
        "every_request_sent",
        "answers_expected",
        "no_errors",
        "service_healthy",
        "data_kept",
        "no_throttling",
    }
)
# Too few samples at a rate follow from a short plan, or from a service that answered too few: alone they are
# the plan's. A closed loop has as many as the service answers: there they are its outcome.
_FOLLOWS = frozenset({"samples"})
# What a service that cannot keep up makes fail: requests pile up, time out, are sent late or never, and wait
# longer every second, so that few or none of those due after the warm-up are answered; a profiler waits to be
# attached to a service whose cores are full.
FOLLOWS_FROM_OVERLOAD = frozenset(
    {
        "rate_held",
        "every_request_sent",
        "send_lateness",
        "samples",
        "warm_up_long_enough",
        "no_errors",
        "profile_whole",
    }
)
# What is not known of the rest of the window where the service was gone: who samples and profiles it ends
# with it.
FOLLOWS_FROM_DEATH = frozenset({"machine_sampled", "profile_whole"})


def excluded(checks: Iterable[Check], closed_loop: bool = False) -> str:
    """OUTSIDE, where anything from outside failed it, since that may be why the rest failed too; SERVICE,
    where nothing else did; else "". Beside a rate that was not held, late sends follow from that: who shares
    the cores with an overloaded service sends late."""
    of_the_service = OF_THE_SERVICE | (_FOLLOWS if closed_loop else frozenset())
    failed = [result for result in checks if result.verdict == FAIL]
    ends = [result for result in failed if result.check == "completed" and is_of_service(result.observed)]
    by_service = ends + [result for result in failed if result.check in of_the_service]
    overloaded = any(result.check == "rate_held" for result in failed)
    follows = (
        (_FOLLOWS if by_service else frozenset())
        | (FOLLOWS_FROM_OVERLOAD if overloaded else frozenset())
        | (FOLLOWS_FROM_DEATH if ends else frozenset())
    )
    others = [result for result in failed if result not in by_service and result.check not in follows]
    return "" if not failed else OUTSIDE if others else SERVICE


def completed(run: Evidence) -> Check:
    return _verdict("completed", run.outcome == "completed", run.outcome, "completed")


def readable(run: Evidence) -> Check:
    return _verdict(
        "readable",
        not run.unreadable,
        "; ".join(run.unreadable) or "every file",
        "every file of the run is as it was sealed, and can be read",
    )


def rate_held(run: Evidence) -> Check | None:
    if run.closed_loop or run.offered_rate_rps is None:
        return None
    required = f"achieved ≥ {percent(ACHIEVED_SHARE_MIN)} of the offered rate"
    if run.achieved_rate_rps is None:
        return _unknown("rate_held", required)
    share = run.achieved_rate_rps / run.offered_rate_rps
    held = share >= ACHIEVED_SHARE_MIN
    achieved = percent(share, 1, ACHIEVED_SHARE_MIN)
    observed = f"rate {'held' if held else 'not held'}: {run.achieved_rate_rps:.2f}/s = {achieved}"
    return _verdict("rate_held", held, observed, required)


def every_request_sent(run: Evidence) -> Check | None:
    if run.closed_loop or run.unsent is None:
        return None
    required = (
        "at most one request per connection due and never sent; FAIL above "
        f"{percent(UNSENT_SHARE_WARN)} of those that were due"
    )
    if run.unsent <= (run.connections or 0):
        return Check("every_request_sent", PASS, str(run.unsent), required)
    share = run.unsent / max(1, run.requests_due or run.unsent)
    return Check(
        "every_request_sent",
        WARN if share <= UNSENT_SHARE_WARN else FAIL,
        f"{run.unsent} = {percent(share, 2, UNSENT_SHARE_WARN)}",
        required,
    )


def tail_answered(run: Evidence) -> Check | None:
    """Marks: of what got no answer nobody knows how long it would have taken; what is printed is of answers
    alone. The largest percentiles always rest on the last request."""
    if run.closed_loop or run.unanswered is None:
        return None
    low = [one for one in run.lower_bounds if float(one) <= LAST_PRINTED]
    may = f"{', '.join(f'p{one}' for one in low)} may be larger: " if low else ""
    return Check(
        "tail_answered",
        WARN if low else PASS,
        f"{may}{run.unanswered} got no answer",
        f"no percentile up to p{LAST_PRINTED:g} rests on requests that were due and got no answer",
    )


def answers_expected(run: Evidence) -> Check:
    bad = run.unexpected_answers
    if bad is None:
        return _unknown("answers_expected", ANSWERS_EXPECTED)
    by_status = ", ".join(f"{status}: {count}" for status, count in run.answers.items())
    seen = f"{bad} of {sum(run.answers.values())} ({by_status})" if bad and run.answers else str(bad)
    return _verdict("answers_expected", bad == 0, seen, ANSWERS_EXPECTED)


def no_errors(run: Evidence) -> Check:
    required = "0 connect, read and write errors and timeouts"
    if not run.errors:
        return _unknown("no_errors", required)
    seen = ", ".join(f"{kind} {count}" for kind, count in run.errors.items() if count)
    return _verdict("no_errors", not seen, seen or "0", required)


def connections_opened(run: Evidence) -> Check | None:
    if run.generator not in WRK_GENERATORS or not run.connections or not run.threads:
        return None
    opened = run.connections // run.threads * run.threads
    return _verdict(
        "connections_opened",
        opened == run.connections,
        f"{opened} of {run.connections} on {run.threads} threads",
        "connections a multiple of threads: wrk and wrk2 drop the rest",
    )


def generator_not_saturated(run: Evidence) -> Check:
    required = "the generator was not the limit"
    if run.saturated is None:
        return _unknown("generator_not_saturated", required)
    if run.saturated:
        return Check("generator_not_saturated", FAIL, run.saturated_reason or "saturated", required)
    # "connections: …": they were all taken, by too few of them or by an overloaded service;
    # "reconnecting: …": they were lost, and the pauses before they were tried again were long
    if run.saturated_reason:
        return Check("generator_not_saturated", WARN, run.saturated_reason, required)
    if run.distorted_percentiles:
        names = ", ".join(f"p{percentile}" for percentile in run.distorted_percentiles)
        return Check("generator_not_saturated", WARN, f"the generator made over a tenth of {names}", required)
    return Check("generator_not_saturated", PASS, "not saturated", required)


def send_lateness(run: Evidence) -> Check | None:
    if run.closed_loop:
        return None
    required = (
        f"lateness ≤ {percent(LATENESS_SHARE_PASS)} of the response time at p50 and p99, or ≤ "
        f"{LATENESS_NEGLIGIBLE_US:.0f} µs; FAIL above {percent(LATENESS_SHARE_WARN)} and "
        f"{LATENESS_TIMER_US:.0f} µs"
    )
    pairs = [pair for pair in run.percentile_pairs if not math.isnan(pair[1]) and not math.isnan(pair[2])]
    if not pairs:
        return _unknown("send_lateness", required)
    shares = [
        0.0 if late <= LATENESS_NEGLIGIBLE_US else late / max(response, 1.0) for _, late, response in pairs
    ]
    observed = ", ".join(
        f"p{percentile:g}: {late:.0f} of {response:.0f} µs" for percentile, late, response in pairs
    )
    verdict = max(
        (
            _graded(share, LATENESS_SHARE_PASS, LATENESS_SHARE_WARN if late > LATENESS_TIMER_US else math.inf)
            for share, (_, late, _) in zip(shares, pairs, strict=True)
        ),
        key=VERDICTS.index,
    )
    if not run.lateness_is_own and verdict != PASS:
        return Check("send_lateness", WARN, f"{observed}, waiting for the service not told apart", required)
    return Check("send_lateness", verdict, observed, required)


def samples(run: Evidence) -> Check:
    required = f"≥ {SAMPLES_BEYOND_FIRM} samples beyond p99; FAIL under {SAMPLES_BEYOND_PRINTED}"
    if run.samples is None:
        return _unknown("samples", required)
    beyond = run.samples - min(run.samples, int(hdr.ranks(run.samples, (99.0,))[0]))
    verdict = FAIL if beyond < SAMPLES_BEYOND_PRINTED else WARN if beyond < SAMPLES_BEYOND_FIRM else PASS
    return Check("samples", verdict, f"{beyond} of {run.samples} beyond p99", required)


def log_complete(run: Evidence) -> Check | None:
    if run.logged_samples is None or run.samples is None:
        return None
    return _verdict(
        "log_complete",
        run.logged_samples == run.samples,
        f"{run.logged_samples} of {run.samples} answers",
        "the interval log holds every measured answer",
    )


def no_steal(run: Evidence) -> Check:
    return _quiet(
        "no_steal",
        run.steal_share,
        STEAL_SHARE_PASS,
        STEAL_SHARE_WARN,
        "of the CPU time taken by the machine's host",
    )


def no_throttling(run: Evidence) -> Check | None:
    if run.throttled_share is None:
        return None
    return _quiet(
        "no_throttling", run.throttled_share, 0.0, STEAL_SHARE_WARN, "of the time throttled by a CPU quota"
    )


def no_foreign_load(run: Evidence) -> Check:
    return _quiet(
        "no_foreign_load",
        run.foreign_share,
        FOREIGN_SHARE_PASS,
        FOREIGN_SHARE_WARN,
        "of the CPU time used by other processes",
    )


def machine_sampled(run: Evidence) -> Check | None:
    """None where there is no row at all: then other checks say that nothing was recorded."""
    if run.sampled_share is None:
        return None
    verdict = _graded(-run.sampled_share, -SAMPLED_SHARE_PASS, -SAMPLED_SHARE_WARN)
    required = (
        f"the machine's load is known of ≥ {percent(SAMPLED_SHARE_PASS)} of the measured seconds; FAIL under "
        f"{percent(SAMPLED_SHARE_WARN)}"
    )
    observed = percent(run.sampled_share, 0, SAMPLED_SHARE_PASS, SAMPLED_SHARE_WARN)
    return Check("machine_sampled", verdict, observed, required)


def warm_up_long_enough(run: Evidence) -> Check:
    """Marks at most. A remedy is a longer warm-up, as long as `kvstudy doctor --warm-up` measures that this
    service needs."""
    required = (
        f"first and last third agree: p50 within {percent(DRIFT_SHARE - 1)} or {RESOLUTION_US:.0f} µs, "
        f"CPU per answer within {percent(DRIFT_CPU_SHARE - 1)} or two ticks, "
        f"p99 within a factor of {DRIFT_P99_SHARE:.0f}"
    )
    if not _known(run.third_medians_us):
        return _unknown("warm_up_long_enough", required)
    ticks_us = CPU_TICKS_US / max(1, run.third_answers or 1)
    limits = [
        ("p50", run.third_medians_us, DRIFT_SHARE, RESOLUTION_US),
        ("p99", run.third_p99s_us, DRIFT_P99_SHARE, RESOLUTION_US),
        ("CPU", run.third_cpus_us, DRIFT_CPU_SHARE, ticks_us),
    ]
    known = [limit for limit in limits if _known(limit[1])]
    drifts = any(_drifts(*thirds, share, negligible_us) for _, thirds, share, negligible_us in known)
    observed = "; ".join(f"{name} {first:.0f} µs, then {last:.0f} µs" for name, (first, last), _, _ in known)
    return Check("warm_up_long_enough", WARN if drifts else PASS, observed, required)


def _known(thirds: tuple[float, float] | None) -> bool:
    return thirds is not None and not any(math.isnan(value) for value in thirds)


def _drifts(first: float, last: float, share: float, negligible_us: float) -> bool:
    return abs(first - last) > negligible_us and max(first, last) > share * min(first, last)


def service_healthy(run: Evidence) -> Check:
    required = "no error in the service's log"
    if run.log_errors is None:
        return _unknown("service_healthy", required)
    return _verdict(
        "service_healthy", not run.log_errors, run.log_errors[0][:200] if run.log_errors else "0", required
    )


def data_kept(run: Evidence) -> Check | None:
    required = "every sampled key reads back as it was acknowledged"
    if run.data_check is None:
        return None if run.method == "GET" else _unknown("data_kept", required)
    bad = run.data_check["missing"] + run.data_check["wrong"]
    observed = (
        f"{run.data_check['sampled']} sampled, {run.data_check['missing']} missing, "
        f"{run.data_check['wrong']} wrong"
    )
    if not bad and run.method != "GET" and run.data_check.get("written") == 0:
        return Check("data_kept", WARN, f"{observed}; of the fill alone, none of its own writes", required)
    return _verdict("data_kept", bad == 0, observed, required)


def events_recorded(run: Evidence) -> Check | None:
    """Without a recording no pause and no stall is known, which is not the same as none."""
    if not run.records_events:
        return None
    required = "the JVM's flight recording was read"
    return (
        Check("events_recorded", PASS, "read", required)
        if run.events_recorded
        else _unknown("events_recorded", required)
    )


def profile_whole(run: Evidence) -> Check | None:
    """Attaching a profiler takes longer on a busy machine, and what it then samples is not the run's."""
    if not run.profiled:
        return None
    required = f"the profiler ran for ≥ {percent(PROFILED_SHARE_MIN)} of the measured time"
    if run.profiled_share is None:
        return _unknown("profile_whole", required)
    observed = percent(run.profiled_share, 1, PROFILED_SHARE_MIN)
    return _verdict("profile_whole", run.profiled_share >= PROFILED_SHARE_MIN, observed, required)


CHECKS: tuple[Callable[[Evidence], Check | None], ...] = (
    completed,
    readable,
    rate_held,
    every_request_sent,
    tail_answered,
    answers_expected,
    no_errors,
    connections_opened,
    generator_not_saturated,
    send_lateness,
    samples,
    log_complete,
    no_steal,
    no_throttling,
    no_foreign_load,
    machine_sampled,
    warm_up_long_enough,
    service_healthy,
    data_kept,
    events_recorded,
    profile_whole,
)


def _verdict(name: str, passed: bool, observed: str, required: str) -> Check:
    return Check(name, PASS if passed else FAIL, observed, required)


def _unknown(name: str, required: str) -> Check:
    return Check(name, WARN, "not recorded", required)


def _graded(value: float, passes: float, warns: float) -> str:
    return PASS if value <= passes else WARN if value <= warns else FAIL


def _quiet(name: str, share: float | None, passes: float, warns: float, of_what: str) -> Check:
    required = f"≤ {percent(passes)} {of_what}; FAIL above {percent(warns)}"
    if share is None:
        return _unknown(name, required)
    return Check(name, _graded(share, passes, warns), percent(share, 2, passes, warns), required)
