"""How an experiment is measured as a duet: its key ``compare``.

``compare`` holds keys of Comparing, and keys of the experiment that are others in a duet than in its
independent runs: usually fewer values of a factor, and one rate."""

from typing import Annotated, Literal

from pydantic import Field, PlainValidator

from kvstudy.plan.factors import ROUNDS_MAX, DurationS, Part, Rounds, TimeLimitS
from kvstudy.units import parse_duration_s

# Of an experiment's keys those that `compare` may have too.
COMPARABLE = frozenset(
    {
        "subject",
        "service",
        "jvm",
        "timeout",
        "workload",
        "method",
        "connections",
        "threads",
        "cores",
        "rate",
        "fill",
        "same",
    }
)
MEASURES = ("p50", "p90", "p99", "p99-slice", "p99.9", "mean", "cpu", "written", "rate")
# Of these the ones that a closed loop has; at a rate there are all but rate.
IN_A_CLOSED_LOOP = ("cpu", "rate")
ProfilerEvent = Literal["cpu", "alloc", "lock", "wall"]


def _slice_part(value: object) -> float:
    seconds = parse_duration_s(value)
    if round(seconds * 1e9) % 1_000_000 or seconds == 0:
        raise ValueError(f"whole milliseconds, and at least one: {value!r}")
    return seconds


SlicePart = Annotated[float, PlainValidator(_slice_part)]


def _gap(value: object) -> tuple[float, float]:
    least, between, most = str(value).partition("..")
    try:
        gap = _slice_part(least), _slice_part(most if between else least)
    except ValueError as error:
        raise ValueError(f"{error}, or two of them: 20ms..350ms") from None
    if gap[0] > gap[1]:
        raise ValueError(f"the shorter one first, as 20ms..350ms: {value!r}")
    return gap


Gap = Annotated[tuple[float, float], PlainValidator(_gap)]


def _of_a_side(value: object) -> str | int | float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"not a value of a factor: {value!r}")
    return value


ValueOfSide = Annotated[str | int | float, PlainValidator(_of_a_side)]


# Of the preset smoke, which proves that a file can be measured, where it says nothing of its duets itself.
SMOKE_DUET = {
    "warm_up": "200ms",
    "pairs": 2,
    "closed_pairs": 2,
    "not_counted": "50ms",
    "counted": "100ms",
    "profile": [],
    "launches": 1,
    "within": "2m",
}
DEFAULT = "default"  # name of the side of which no option is given


class Comparing(Part):
    """``baseline``: the value of each factor that all others are compared with; needed where there are more
    than two; ``{}``: the side of which no option is given. ``within``: how long a duet may go on;
    ``launches``: how many it may have, not counting those that were interrupted or disturbed; ``until``: it
    is over when all measures are decided, or when the primary one is. ``primary``: the measure that is
    decided first; ``p99-slice`` and ``p99.9`` are measured only where they are that one. ``pairs``,
    ``closed_pairs``: slice pairs of each launch at the rate and in a closed loop; ``closed_pairs: 0`` leaves
    the closed loop out. ``gap``: each one between two slices is drawn between these, so that slices are not
    in step with what comes back in time. ``own_fills``: each side's store is filled by its own build, where
    the builds lay data out in another way; otherwise two builds, or two sides of one command, get copies of
    one.
    ``profile``: what async-profiler samples, in slices of their own of the first launch."""

    baseline: dict[str, ValueOfSide] | None = None
    within: TimeLimitS = 600.0
    launches: Rounds | None = None
    until: Literal["all", "primary"] = "all"
    primary: Literal[MEASURES] = "p50"
    warm_up: DurationS = 10.0
    pairs: Rounds = 12
    closed_pairs: Annotated[int, Field(ge=0, le=ROUNDS_MAX)] = 8
    not_counted: SlicePart = 0.15
    counted: SlicePart = 0.5
    gap: Gap = (0.02, 0.35)
    own_fills: bool = False
    profile: list[ProfilerEvent] = ["cpu"]
    profile_pairs: Rounds = 6
