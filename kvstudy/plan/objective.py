"""What a search for the highest stable rate wants: the objective that a rate has to keep, and the bounds of
the search.

``Objective.answer`` says of one trial whether it held its rate, missed it, or says nothing about the service
at all.
"""

from enum import Enum
from typing import Annotated, Literal

from pydantic import Field, PlainValidator, model_validator

from kvstudy.disturbance import disturbance
from kvstudy.plan.factors import Part, Rounds, TimeLimitS
from kvstudy.service_failure import is_under_load
from kvstudy.units import parse_rate_rps, percent

PlainRateRps = Annotated[float, PlainValidator(parse_rate_rps)]
Share = Annotated[float, Field(gt=0, le=1)]
PRECISION_LEAST = 0.01  # that the grid of knees can tell


class Answer(Enum):
    HELD = "held"
    MISSED = "missed"
    UNKNOWN = "unknown"


class Objective(Part):
    """A rate is held when every limit that is set is kept and the achieved rate is at least
    ``achieved_share`` of the offered one."""

    mean: TimeLimitS | None = None
    p50: TimeLimitS | None = None
    p99: TimeLimitS | None = None
    p999: TimeLimitS | None = None
    achieved_share: Share = 0.99

    @model_validator(mode="after")
    def _has_a_limit(self) -> "Objective":
        if not self.limits_us():
            raise ValueError("an objective needs a limit: mean, p50, p99 or p999, as mean: 1ms")
        return self

    @classmethod
    def recorded(cls, facts: dict) -> "Objective":
        """As run.json of a trial holds it: checked before the run, durations in seconds."""
        return cls.model_construct(**facts)

    def limits_us(self) -> dict[str, float]:
        """``{"mean": 1000.0}``: response time in microseconds; the keys are "mean" or a percentile as
        loadgen's JSON names it."""
        named = {"mean": self.mean, "50": self.p50, "99": self.p99, "99.9": self.p999}
        return {name: seconds * 1e6 for name, seconds in named.items() if seconds is not None}

    def answer(
        self,
        outcome: str,
        result: dict | None,
        load_during: dict | None,
        data_check: dict | None = None,
    ) -> tuple[Answer, str]:
        """Of one trial, with what decided it. ``outcome`` and ``data_check`` are run.json's, ``result``
        loadgen's JSON, ``load_during`` machine.json's.

        The trial's own failures come first: a generator that is the limit can neither hold nor miss a rate. A
        service that died missed it: repeated until one survives, its rate would be held by survivors.
        """
        if is_under_load(outcome) and not disturbance(load_during):
            return Answer.MISSED, outcome.removeprefix("failed: ")
        if outcome != "completed" or result is None:
            return Answer.UNKNOWN, outcome
        unfit = self._unfit(result, load_during)
        if unfit:
            return Answer.UNKNOWN, unfit
        if lost := sum((data_check or {}).get(name, 0) for name in ("missing", "wrong")):
            return Answer.MISSED, f"{lost} of {data_check['sampled']} keys read back missing or wrong"
        share = result["achieved_rate_rps"] / result["offered_rate_rps"]
        if share < self.achieved_share:
            asked = self.achieved_share
            return (
                Answer.MISSED,
                f"achieved {percent(share, 1, asked)} of the rate, {100 * asked:g} % asked for",
            )
        bad = result["counts"]["unexpected"] + sum(result["errors"].values())
        if bad:
            return Answer.MISSED, f"{bad} errors or unexpected answers"
        if not result["counts"]["measured"]:
            return Answer.MISSED, "no request that was due after the warm-up was answered"
        notes = []
        # What was due and got no answer in time counts with how long it was waited for.
        response = result.get("response_time_at_least") or result["response_time"]
        for name, limit_us in self.limits_us().items():
            observed_us = response["mean_us"] if name == "mean" else response["percentiles"][name]
            label = "mean" if name == "mean" else f"p{name}"
            notes.append(f"{label} {observed_us / 1000:.3f} ms of {limit_us / 1000:g} ms")
            if observed_us > limit_us:
                return Answer.MISSED, notes[-1]
        return Answer.HELD, ", ".join(notes)

    def _unfit(self, result: dict, load_during: dict | None) -> str | None:
        if result["verdict"]["generator_saturated"]:
            return f"generator saturated: {result['verdict']['reason']}"
        return disturbance(load_during)


class Search(Part):
    """``method``: how the search comes near the knee: ``bisect`` halves the interval as report 1 does,
    ``mlr`` is MLRsearch. Then at least ``sweeps`` sweeps measure it, until it is known to ``precision``
    (0.05: its interval is 5 % wide) or ``trials_max`` trials were made."""

    method: Literal["bisect", "mlr"]
    objective: Objective
    lowest_rate: PlainRateRps
    highest_rate: PlainRateRps
    precision: Annotated[float, Field(ge=PRECISION_LEAST, lt=1)] = 0.05
    sweeps: Rounds = 3
    trials_max: Rounds = 40

    @model_validator(mode="after")
    def _has_an_interval(self) -> "Search":
        if self.lowest_rate >= self.highest_rate:
            raise ValueError(
                f"lowest_rate must be below highest_rate: lowest_rate={self.lowest_rate:g} "
                f"highest_rate={self.highest_rate:g}"
            )
        if self.highest_rate <= self.lowest_rate * (1 + self.precision):
            raise ValueError(
                f"nothing is left to find: lowest_rate={self.lowest_rate:g} and "
                f"highest_rate={self.highest_rate:g} are nearer than precision={self.precision:g}\n"
                "lower lowest_rate, or raise highest_rate"
            )
        return self
