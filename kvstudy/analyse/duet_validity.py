"""Can a launch of a duet be believed? As validity.py of a run: PASS, WARN or FAIL with what was observed and
what is required.

    checks = check(run, counted, generators, problems)
    excluded(checks)          "outside", or whose doing it was: "a", "b", "ab"; "" for a launch that counts

What came from outside leaves a launch out without more words. What a side did (it died, an error in its log,
lost data) is an outcome: such launches are counted against that side (comparison/stopping.py). Whether a side
was slow, or did not hold its rate, leaves nothing out. For a launch that was interrupted no side is to blame,
and of one that did not complete no error in a log says who is.
"""

import math

import pandas as pd

from kvstudy.analyse.comparison.launches import FIRST, MEAN, MEASURES, PART, PERCENTILES, measures
from kvstudy.analyse.schema import VERDICTS
from kvstudy.analyse.validity import (
    ANSWERS_EXPECTED,
    LATENESS_SHARE_PASS,
    LATENESS_TIMER_US,
    OUTSIDE,
    Check,
)
from kvstudy.disturbance import disturbance
from kvstudy.record.duet import SIDES
from kvstudy.record.generator_result import GeneratorResult
from kvstudy.record.run_folder import SealedRun
from kvstudy.service_failure import is_interrupted
from kvstudy.units import percent

PASS, WARN, FAIL = VERDICTS
LATE_MAX_SHARE = 0.01  # of the requests that were due at a rate
ROUNDS_KEPT_MIN = 0.5  # of the rounds of a part after the first: of fewer the rest may be what was left out
GROWN_APART_MAX = 0.02  # by so much more may one side have been written to at one rate
# of the machine's, by both sides together: above it the kernel begins to take the files from its cache
MEMORY_MAX_SHARE = 0.8
COMPILERS_MAX_SHARE = 0.1  # of a side's CPU: above it code is compared that is still interpreted in part
COMPILERS, QUIET = "compilers_done", "machine_quiet"
ALIVE, ORDERLY, LOG, DATA, ANSWERS, RATE = (
    "alive",
    "orderly",
    "log_clean",
    "data_kept",
    "answers_expected",
    "rate_held",
)
_EVERY_MEASURE = tuple(dict.fromkeys(measure for of_loop in MEASURES.values() for measure in of_loop))
_OF_A_SIDE = (ALIVE, ORDERLY, LOG, DATA, ANSWERS)


def check(
    run: SealedRun,
    counted: pd.DataFrame,
    generators: dict[str, GeneratorResult],
    unexpected: dict[str, int],
    problems: list[str],
) -> list[Check]:
    """Every check that applies; those of one side are named with it: ``alive_a``. ``unexpected``: answers of
    another status, by side."""
    ends = run.facts.get("ends") or {}
    counted = counted[counted["loop"] != "profile"]
    found = [
        _verdict("completed", run.facts["outcome"] == "completed", run.facts["outcome"], "completed"),
        _verdict(
            "readable",
            not problems,
            "; ".join(problems) or "every file",
            "every file of the launch is as it was sealed, and can be read",
        ),
    ]
    for side in SIDES:
        found += _of_side(side, ends.get(side) or {}, counted)
        if side in unexpected:
            found.append(
                _verdict(
                    f"{ANSWERS}_{side}",
                    unexpected[side] == 0,
                    str(unexpected[side]),
                    ANSWERS_EXPECTED,
                )
            )
    found += [
        _rounds(counted),
        _order(counted),
        _memory(ends, run.machine),
        *_grown_apart(counted),
        _generator(generators, run.facts["primary"]["measure"]),
        _compilers(counted),
        _undisturbed(run),
        _clock(run),
    ]
    return [one for one in found if one is not None]


def excluded(checks: list[Check]) -> str:
    failed = {one.check: one.observed for one in checks if one.verdict == FAIL}
    if is_interrupted(failed.get("completed", "")):
        return OUTSIDE
    # Where a launch is cut off, a side that is in order logs the answers that it can no longer give.
    judged = [name for name in _OF_A_SIDE if name != LOG or "completed" not in failed]
    sides = "".join(side for side in SIDES if any(f"{name}_{side}" in failed for name in judged))
    # A launch that a side ended did not complete, and its last rounds are missing: that follows.
    follows = {"completed", "rounds_kept", "turns_balanced"} if sides else set()
    others = [name for name in failed if name[:-2] not in _OF_A_SIDE and name not in follows]
    return OUTSIDE if others else sides


def _of_side(side: str, end: dict, counted: pd.DataFrame) -> list[Check]:
    own = counted[counted["side"] == side]
    found = [
        _known(
            f"{ALIVE}_{side}",
            end.get("died"),
            lambda died: (not died, "died" if died else "alive"),
            "alive from the first slice to the last",
        )
    ]
    if "fault" in end:
        found.append(
            _verdict(
                f"{ORDERLY}_{side}",
                not end["fault"],
                str(end["fault"] or "in order")[:200],
                "it starts, comes to rest and stops in order",
            )
        )
    found.append(
        _known(
            f"{LOG}_{side}",
            end.get("log_errors"),
            lambda errors: (not errors, str(errors[0])[:200] if errors else "0"),
            "no error in the service's log",
        )
    )
    data = end.get("data_check")
    if data:
        bad = data["missing"] + data["wrong"]
        found.append(
            _verdict(
                f"{DATA}_{side}",
                bad == 0,
                f"{data['sampled']} sampled, {data['missing']} missing, {data['wrong']} wrong",
                "every sampled key reads back as it was acknowledged",
            )
        )
    at_rate = own[own["loop"] == "rate"]
    if len(at_rate) and at_rate["due"].sum() > 0:
        late = (at_rate["late"].sum() + at_rate["errors"].sum()) / at_rate["due"].sum()
        found.append(
            Check(
                f"{RATE}_{side}",
                PASS if late <= LATE_MAX_SHARE else WARN,
                f"{percent(1 - late, 1, 1 - LATE_MAX_SHARE)} answered within their slices",
                f"{percent(1 - LATE_MAX_SHARE)} answered within their slices",
            )
        )
    return found


def _rounds(counted: pd.DataFrame) -> Check:
    required = f"at least {percent(ROUNDS_KEPT_MIN)} of the rounds after the first count in each part"
    rounds = counted[counted["left_out"] != FIRST].drop_duplicates([*PART, "round"])
    if rounds.empty:
        return Check("rounds_kept", FAIL, "no round", required)
    kept = (rounds["left_out"] == "").groupby([rounds[name] for name in PART]).mean()
    why = rounds.loc[rounds["left_out"] != "", "left_out"].value_counts()
    reasons = "".join(f", {reason} {count}" for reason, count in why.items())
    observed = percent(kept.min(), 0, ROUNDS_KEPT_MIN) + reasons
    # Marked, not left out: a launch with many busy rounds is what it is, and whose they are is counted.
    return Check("rounds_kept", PASS if kept.min() >= ROUNDS_KEPT_MIN else WARN, observed, required)


def _order(counted: pd.DataFrame) -> Check:
    """Marks at most: the order is drawn, and with seven rounds one part in 64 begins all of them with the
    same side. To leave such launches out would be to choose among draws."""
    required = "each side goes first in half of the rounds"
    firsts = counted.sort_values("begin_utc_ns").drop_duplicates([*PART, "round"])
    if firsts.empty:
        return Check("turns_balanced", FAIL, "no round", required)
    by_part = [(int((part["side"] == "a").sum()), len(part)) for _, part in firsts.groupby(PART)]
    observed = ", ".join(f"a first in {of_a} of {count}" for of_a, count in by_part)
    # Drawn orders vary: hardly ever by more than three standard deviations.
    fine = all(
        (abs(2 * of_a - count) <= max(1.0, 3 * math.sqrt(count)) and 0 < of_a < count) or count == 1
        for of_a, count in by_part
    )
    return Check("turns_balanced", PASS if fine else WARN, observed, required)


def _compilers(counted: pd.DataFrame) -> Check | None:
    """Marks: how a service starts may be what is asked. What compilers take is in no CPU per request, but
    latency and rate are those of code that waits to be compiled. None where no side has compilers."""
    known = counted[(counted["left_out"] != FIRST) & counted["compiler_ns"].notna() & (counted["cpu_ns"] > 0)]
    if known.empty:
        return None
    sums = known.groupby([*PART, "side"])[["compiler_ns", "cpu_ns"]].sum()
    shares = (sums["compiler_ns"] / sums["cpu_ns"]).groupby("side").max()
    return Check(
        COMPILERS,
        PASS if shares.max() <= COMPILERS_MAX_SHARE else WARN,
        ", ".join(f"{side} {percent(share, 0, COMPILERS_MAX_SHARE)}" for side, share in shares.items()),
        f"the JVM's compilers took ≤ {percent(COMPILERS_MAX_SHARE)} of a side's CPU in its slices: else "
        "`warm_up` was short",
    )


def _memory(ends: dict, machine: dict) -> Check:
    required = f"both sides together hold ≤ {percent(MEMORY_MAX_SHARE)} of the machine's memory"
    sizes, memory = (
        [(ends.get(side) or {}).get("rss_max_bytes") for side in SIDES],
        machine.get("memory_bytes"),
    )
    if not memory or None in sizes:
        return Check("memory", WARN, "not recorded", required)
    share = sum(sizes) / memory
    observed = percent(share, 0, MEMORY_MAX_SHARE)
    return Check("memory", PASS if share <= MEMORY_MAX_SHARE else FAIL, observed, required)


def _grown_apart(counted: pd.DataFrame) -> list[Check]:
    """At a rate both sides are written to alike. In a closed loop the faster one grows more: that is marked,
    where it is much."""
    required = f"both sides answered as many requests, within {percent(GROWN_APART_MAX)}"
    answered = counted.groupby("side")["answered"].sum().reindex(SIDES, fill_value=0)
    apart = abs(answered["a"] - answered["b"]) / max(1, answered.max())
    return [
        Check(
            "stores_alike",
            PASS if apart <= GROWN_APART_MAX else WARN,
            f"{answered['a']} and {answered['b']}",
            required,
        )
    ]


def without_meaning(result: GeneratorResult) -> frozenset[str]:
    """Measures of a part that its generator spoiled, for both sides alike.

    A generator without time to spare spoils all of them. One that was now and then late by itself spoils
    those of which its lateness is too large a part, by the limits of ``validity.send_lateness``: often the
    p99 and the mean, seldom the p50. What a request costs is not read off its latency."""
    if not result.saturated:
        return frozenset()
    response, own = result.latencies.get("response"), result.own_lateness
    if not result.late_by_itself or response is None or own is None:
        return frozenset(_EVERY_MEASURE)
    if response.histogram is None or own.histogram is None:
        return frozenset(_EVERY_MEASURE)
    late_us = {name: own.histogram.percentile_us(at) for name, at in PERCENTILES.items()}
    response_us = {name: response.histogram.percentile_us(at) for name, at in PERCENTILES.items()}
    late_us[MEAN], response_us[MEAN] = own.mean_us, response.mean_us
    return frozenset(
        name
        for name, late in late_us.items()
        if late > max(LATENESS_TIMER_US, LATENESS_SHARE_PASS * response_us[name])
    )


def _generator(generators: dict[str, GeneratorResult], primary: str) -> Check:
    """Marks at most: only the measures that it spoiled have no value (duet_observation.py)."""
    required = "the generator was not the limit; what it was a large part of has no value"
    known = {name: one for name, one in generators.items() if one.saturated is not None}
    bad = [
        f"{name}: {_spoiled(without_meaning(one), primary)} without value, "
        f"{one.saturated_reason or 'saturated'}"
        for name, one in known.items()
        if one.saturated
    ]
    if not known:
        return Check("generator_not_saturated", WARN, "not recorded", required)
    return Check(
        "generator_not_saturated", WARN if bad else PASS, "; ".join(bad) or "not saturated", required
    )


def _spoiled(spoiled: frozenset[str], primary: str) -> str:
    if spoiled == frozenset(_EVERY_MEASURE):
        return "everything"
    return ", ".join(one for one in measures("rate", primary) if one in spoiled) or "nothing"


def _undisturbed(run: SealedRun) -> Check:
    required = "host and other programs left the CPU alone"
    load = run.machine.get("load_during")
    if not load:
        return Check(QUIET, WARN, "not recorded", required)
    seen = disturbance(load)
    if not seen and "foreign_cpu_share_mean" not in load:
        return Check(QUIET, WARN, "host quiet; other programs not recorded", required)
    return _verdict(QUIET, seen is None, seen or "quiet", required)


def _clock(run: SealedRun) -> Check | None:
    """Marks: loadgen and the reader of counters go by the monotonic clock, but borders are named by the wall
    clock."""
    steps = run.facts.get("clock_steps_ms")
    if steps is None:
        return None
    text = ", ".join(f"{part}: {step_ms:g} ms" for part, step_ms in steps.items())
    return Check(
        "clock_steady",
        WARN if steps else PASS,
        text or "not set",
        "the wall clock was not set by more than 1 ms while a part went on",
    )


def _known(name: str, value, judged, required: str) -> Check:
    if value is None:
        return Check(name, WARN, "not recorded", required)
    passed, observed = judged(value)
    return _verdict(name, passed, observed, required)


def _verdict(name: str, passed: bool, observed: str, required: str) -> Check:
    return Check(name, PASS if passed else FAIL, observed, required)
