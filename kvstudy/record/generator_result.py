"""What a load generator counted in one run, from loadgen's JSON or from the text of wrk2, wrk and loadgen.

The JSON holds whole histograms, errors by kind and the generator's verdict on itself; the text holds printed
percentiles, so its figures are known to the digits printed only. wrk's text is of a closed loop and gives
service time alone.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kvstudy.errors import FormatError
from kvstudy.record import hdr, wrk2_text
from kvstudy.record.jfr import epoch_s

ERROR_KINDS = ("connect", "read", "write", "timeout")
_KIND = {wrk2_text.CORRECTED: "response", wrk2_text.UNCORRECTED: "service", wrk2_text.CLOSED_LOOP: "service"}
_JSON_KEYS = {"response": "response_time", "service": "service_time", "lateness": "send_lateness"}
_OWN_LATENESS = "own_lateness"
# The beginning of loadgen's verdict on a generator that had time to spare and yet sent late.
_LATE_BY_ITSELF = "starved: requests left late by the generator's own fault"


@dataclass(frozen=True)
class Latency:
    """One distribution, microseconds. ``histogram``: None when only percentiles were printed, those in
    ``printed_us``."""

    total: int
    mean_us: float
    stdev_us: float
    max_us: float
    histogram: hdr.Histogram | None = None
    printed_us: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GeneratorResult:
    """``latencies``: by kind (response, service, lateness), only those measured. ``start_epoch_s``: start of
    the measured window.

    ``own_lateness``: the generator's own part of the lateness; results of schema version 1 hold only the
    sends whose connection was free when they were due. ``achieved_rate_rps``: of the measured window; in
    version 1 all answers by the time of sending. ``answers``: all of them, by status. ``unanswered``:
    measured requests that were due and got no answer; ``lower_bounds``: percentiles of the response time that
    may be larger for these.
    ``distorted_percentiles``: those of the response time of which the generator made too much.
    ``saturated_reason`` may name the connections without the generator being the limit. None: the generator
    does not say.
    """

    achieved_rate_rps: float
    requests_sent: int
    requests_measured: int
    unexpected_answers: int
    errors: dict[str, int]
    latencies: dict[str, Latency]
    own_lateness: Latency | None = None
    start_epoch_s: float | None = None
    measured_s: float | None = None
    unsent: int | None = None
    saturated: bool | None = None
    saturated_reason: str = ""
    distorted_percentiles: tuple[str, ...] = ()
    unanswered: int | None = None
    lower_bounds: tuple[str, ...] = ()
    answers: Mapping[str, int] = field(default_factory=dict)

    @property
    def late_by_itself(self) -> bool:
        """It had time to spare, and was late now and then all the same: it waited for a CPU."""
        return bool(self.saturated) and self.saturated_reason.startswith(_LATE_BY_ITSELF)

    @property
    def errors_total(self) -> int:
        return sum(self.errors.values())


def read_text(text: str, file: str) -> GeneratorResult:
    """From a text with exactly one result."""
    result = wrk2_text.parse_one(text, file)
    latencies = {
        _KIND[kind]: _printed(result, distribution) for kind, distribution in result.distributions.items()
    }
    measured = max((latency.total for latency in latencies.values()), default=result.requests)
    return GeneratorResult(
        achieved_rate_rps=result.achieved_rate_rps,
        requests_sent=result.requests,
        requests_measured=measured,
        unexpected_answers=result.non_2xx_3xx,
        errors=dict(result.socket_errors),
        latencies=latencies,
        measured_s=result.duration_s,
    )


def _printed(result: wrk2_text.Wrk2Text, distribution: wrk2_text.Distribution) -> Latency:
    """The spectrum where there is one, and of the distribution what the spectrum lacks."""
    printed = {row.percentile: row.value_us for row in distribution.spectrum}
    printed = dict(sorted({**distribution.percentiles_us, **printed}.items()))
    total = result.requests if distribution.total_count is None else distribution.total_count
    if distribution.kind == wrk2_text.UNCORRECTED:
        mean_us, stdev_us, max_us = distribution.mean_us, distribution.stdev_us, distribution.max_us
    else:
        mean_us, stdev_us, max_us = result.latency_us.mean, result.latency_us.stdev, result.latency_us.max
    missing = math.nan
    return Latency(
        total,
        missing if mean_us is None else mean_us,
        missing if stdev_us is None else stdev_us,
        missing if max_us is None else max_us,
        printed_us=printed,
    )


def read_json(text: str, file: str) -> GeneratorResult:
    """From the content of loadgen's ``--json`` file. FormatError names the key that is missing or wrong."""
    try:
        facts = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(file, error.lineno, f"not JSON: {error.msg}") from None
    try:
        counts, verdict = facts["counts"], facts["verdict"]
        return GeneratorResult(
            achieved_rate_rps=float(facts["achieved_rate_rps"]),
            requests_sent=int(counts["sent"]),
            requests_measured=int(counts["measured"]),
            unexpected_answers=int(counts["unexpected"]),
            errors={kind: int(facts["errors"][kind]) for kind in ERROR_KINDS},
            latencies={
                kind: latency
                for kind, key in _JSON_KEYS.items()
                if (latency := _recorded(facts[key], key)) is not None
            },
            own_lateness=_recorded(facts.get(_OWN_LATENESS), _OWN_LATENESS),
            start_epoch_s=epoch_s(facts["measure_start_utc"]),
            measured_s=float(facts["measured_s"]),
            unsent=int(counts["unsent"]),
            saturated=_true_false_or_none(verdict["generator_saturated"]),
            saturated_reason=verdict.get("reason") or "",
            distorted_percentiles=tuple(map(str, verdict.get("distorted_percentiles", ()))),
            unanswered=_unanswered(facts.get("response_time_at_least")),
            lower_bounds=tuple(map(str, (facts.get("response_time_at_least") or {}).get("lower_bounds", ()))),
            answers={status: int(count) for status, count in facts.get("answers", {}).items()},
        )
    except KeyError as missing:
        raise FormatError(file, None, f"key is missing: {missing.args[0]}") from None
    except (TypeError, ValueError, AttributeError) as reason:
        raise FormatError(file, None, f"not what loadgen writes: {reason}") from None


def _true_false_or_none(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f"generator_saturated is neither true, false nor null: {value!r}")


def _unanswered(at_least: dict | None) -> int | None:
    """None in results of schema version 1, which do not say."""
    return None if at_least is None else int(at_least["unanswered"])


def _recorded(facts: dict | None, key: str) -> Latency | None:
    if facts is None:
        return None
    try:
        histogram = hdr.decode(facts["histogram_v2_base64"])
    except ValueError as reason:
        raise ValueError(f"{key}: {reason}") from None
    if histogram.total != facts["count"]:
        raise ValueError(
            f"{key}: histogram and count disagree: histogram={histogram.total}, count={facts['count']}"
        )
    return Latency(histogram.total, histogram.mean_us, histogram.stdev_us, histogram.max_us, histogram)
