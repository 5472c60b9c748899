"""One launch of a duet: which of its slices count, and by how much the sides differ in it. One number per
measure: the unit is the launch.

    counted = counted_slices(slices, cores=2)             the slices with ``left_out`` and ``lost_by``
    values = launch_values(counted, histograms)           one row per workload, loop and measure: a, b,
                                                          log_ratio, rounds

A round is a slice of each side, one after the other, so what is slow in the machine meets both. Left out are,
always both slices of a round:

- the first round of a part, whose tail is that of a loop that begins,
- a round of which a slice is missing, or held requests without an answer,
- a round in which the side whose turn it was not was busy: its compaction or compiler was in the other's way,
- a round in which the machine's host or other programs took the CPU, or kept the counters from being read in
  time.

Leaving rounds out for what a side did may flatter it. ``lost_by`` says whose doing it was. Of a median over
rounds it is known how far that can matter: ``log_least`` and ``log_most`` are its value if the side had been
as bad as can be in each round that it lost (bounds in the sense of Manski 2003, "Partial Identification").
One lost round may hold all slow answers of a launch, so its tail may then have any worse value. What holds
for all these too is said; of the rest ``stopping`` forbids the words that may rest on it.

Of a launch the median of its rounds' log ratios stands for p50, p90, mean and rate, since a round that was
disturbed unseen shall not move it. CPU and bytes written are sums over the rounds, busy ones and the other's
turns included: a median does not see flush and compaction, and work that is put off until the other's turn is
paid all the same. In these sums the first rounds count less (``_weights``).

p99 and p99.9 are read off the merged histograms of a side's slices: there one pause of the host that nobody
sees may be all of the tail. So there is the p99 of a slice, too: a median over rounds, which does not see
what befalls fewer than half of them. That one and p99.9 are measured only of a duet that asks for them, since
each further measure costs the others some of the error that they share.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from kvstudy.disturbance import FOREIGN_CPU_MAX_SHARE, STEAL_MAX_SHARE
from kvstudy.record import duet, hdr

RISING_SHARE = 1 / 3  # of a part's rounds after the first: there the weight of a round in sums rises to 1
IDLE_MAX_SHARE = (
    0.03  # of a core, used by the side whose turn it is not: idle JVMs were seen to use 0.001 to 0.005
)
# Of less neither side writes for its requests: bytes in all rounds, and for each second of a side's slices.
# The kernel counts pages of 4 KiB, and a JVM whose service only read was seen to write up to four in 2.4 s.
WRITTEN_MIN, WRITTEN_MIN_PER_S = 64 * 1024, 16 * 1024
ROUNDS_MIN = 4  # of a part that count: fewer have no median worth the name
BEYOND_MIN = 10  # samples beyond the percentile of each side's merged histogram
FIRST, INCOMPLETE, ERRORS, BUSY, DISTURBED = (
    "first round",
    "slice missing",
    "errors",
    "other side busy",
    "machine disturbed",
)
P50, P90, P99, P99_SLICE, P999, MEAN, CPU, WRITTEN, RATE = (
    "p50",
    "p90",
    "p99",
    "p99 of a slice",
    "p99.9",
    "mean",
    "CPU per request",
    "bytes written per request",
    "rate",
)
# What a smaller ratio means: of a latency, of a cost, of a rate.
BETTER = {
    P50: "lower",
    P90: "lower",
    P99: "lower",
    P99_SLICE: "lower",
    P999: "lower",
    MEAN: "lower",
    CPU: "less",
    WRITTEN: "less",
    RATE: "higher",
}
COSTS = (CPU, WRITTEN)
TAILS = {P99: 99.0, P999: 99.9}
PERCENTILES = {P50: 50.0, P90: 90.0, P99_SLICE: 99.0, **TAILS}
# Answers of a side for a value of it: in the slices that count, or in each of them.
ANSWERS_NEEDED = {
    measure: round(BEYOND_MIN / (1 - PERCENTILES[measure] / 100)) for measure in (*TAILS, P99_SLICE)
}
WHERE_PRIMARY = (P99_SLICE, P999)  # measured only of a duet whose primary measure it is
MEASURES = {
    "rate": (P50, P90, P99, P99_SLICE, P999, MEAN, CPU, WRITTEN),
    "closed": (RATE, CPU),
    "profile": (),
}
PART = ["workload", "loop"]
COLUMNS = [*PART, "measure", "a", "b", "log_ratio", "rounds", "log_least", "log_most"]
_SUMMED = [  # of slices; also what tells how many answers a closed loop had in all
    *("answered", "answered_settling", "rate_rps", "cpu_ns", "idle_cpu_ns", "compiler_ns", "written_bytes"),
    *(f"{side}_{kind}" for side in duet.SIDES for kind in ("cpu_ns", "compiler_ns", "written_bytes")),
]
_OF_A_SLICE = {P50: "p50_ns", P90: "p90_ns", P99_SLICE: "p99_ns", MEAN: "mean_ns", RATE: "rate_rps"}


def counted_slices(slices: pd.DataFrame, cores: int) -> pd.DataFrame:
    """``slices`` (record.duet.SLICES) with ``left_out``: why the round does not count, or ""; and
    ``lost_by``: "a", "b" or "ab", whose doing that was, or "". Both are those of the whole round. ``cores``:
    of the machine, of which steal and foreign CPU are shares."""
    found = slices.copy()
    length_ns = (found["end_utc_ns"] - found["begin_utc_ns"]).clip(lower=1)
    other = found["side"].map({"a": "b", "b": "a"})
    unanswered = (
        (found["errors"] > 0)
        | (found["answered"] == 0)
        | (found["due"] > found["answered"] + found["errors"])
    )
    busy = found["idle_cpu_ns"] > IDLE_MAX_SHARE * length_ns
    disturbed = (
        _unread(found, length_ns)
        | (found["steal_ns"] > STEAL_MAX_SHARE * cores * length_ns)
        | (found["foreign_ns"] > FOREIGN_CPU_MAX_SHARE * cores * length_ns)
    )
    round_of = found.groupby([*PART, "round"], sort=False).ngroup().to_numpy()

    def in_round(are: pd.Series) -> np.ndarray:
        """Of each slice: whether any slice of its round is so."""
        return np.isin(round_of, round_of[are.to_numpy(dtype=bool)])

    def by(are: pd.Series, whose: pd.Series) -> np.ndarray:
        """Of each slice: whose doing it was in its round, "a", "b" or "ab"."""
        a, b = (np.where(in_round(are & (whose == side)), side, "") for side in duet.SIDES)
        return np.char.add(a, b)

    slices = [np.bincount(round_of[found["side"] == side], minlength=len(found)) for side in duet.SIDES]
    is_first = (found["round"] == found.groupby(PART)["round"].transform("min")).to_numpy()
    reasons = (
        (FIRST, is_first, ""),
        (INCOMPLETE, ((slices[0] != 1) | (slices[1] != 1))[round_of], ""),
        (ERRORS, in_round(unanswered), by(unanswered, found["side"])),
        (DISTURBED, in_round(disturbed), ""),
        (BUSY, in_round(busy), by(busy, other)),
    )
    whether = [are for _, are, _ in reasons]
    found["left_out"] = np.select(whether, [why for why, _, _ in reasons], "").astype(object)
    found["lost_by"] = np.select(whether, [whose for _, _, whose in reasons], "").astype(object)
    return found


def _unread(slices: pd.DataFrame, length_ns: pd.Series) -> pd.Series:
    """Slices whose counters were read too late, or not at all where others were: the machine was busy then.

    Of older folders nobody knows how late. There a slice is one if its idle side's counters are missing, and
    are not in another slice of that side."""
    late, is_missing = slices["read_late_ns"], slices["idle_cpu_ns"].isna()
    known = (~is_missing).groupby([slices[name] for name in (*PART, "side")]).transform("any")
    return (late > duet.READ_LATE_MAX * length_ns) | (late.isna() & is_missing & known)


def sent_per_counted(parts: Iterable[Mapping]) -> dict[tuple[str, str], float]:
    """Time in which a slice sends / its counted part, by workload and loop. ``parts``: run.json's, which hold
    the times of their slices."""
    return {
        (part["workload"], part["loop"]): 1 + part["not_counted_s"] / part["counted_s"]
        for part in parts
        if part.get("counted_s")
    }


def measures(loop: str, primary: str) -> tuple[str, ...]:
    """What is measured in a loop of a duet whose ``primary`` measure is this one."""
    return tuple(one for one in MEASURES[loop] if one == primary or one not in WHERE_PRIMARY)


def launch_values(
    counted: pd.DataFrame,
    histograms: Mapping[tuple[str, str, int], hdr.Histogram],
    sent: Mapping[tuple[str, str], float] | None = None,
    primary: str = P50,
    cold: bool = False,
) -> pd.DataFrame:
    """COLUMNS; ``a`` and ``b`` in ns, r/s, ns per request or bytes per request; ``log_ratio`` of b to a;
    ``rounds`` that it rests on; ``log_least`` and ``log_most``: what it would be if a, or b, had been as bad
    as can be in the rounds that it lost: infinite where it lost too many, of a tail any, and NaN for costs. A
    measure that the launch cannot give has no row. ``sent``: of ``sent_per_counted``; 1 where it is not
    known. ``primary``: the duet's primary measure. ``cold``: the duet has no warm-up, so how a service starts
    is what is asked, and its first rounds count as much as others in sums."""
    rows = []
    for (workload, loop), part in counted.groupby(PART, sort=True):
        of_rounds = _Rounds(part)
        for measure in measures(loop, primary):
            found = (
                _cost(part, measure, (sent or {}).get((workload, loop), 1.0), cold)
                if measure in COSTS
                else _tail(part, histograms, TAILS[measure], of_rounds.lost)
                if measure in TAILS
                else of_rounds.values(measure)
            )
            if found is not None:
                a, b, log_ratio, rounds, *bounds = found
                bounds = bounds or (math.nan, math.nan)
                rows.append((workload, loop, measure, a, b, log_ratio, rounds, *bounds))
    return pd.DataFrame(rows, columns=COLUMNS)


def lost_rounds(counted: pd.DataFrame) -> pd.DataFrame:
    """One row per part, of several launches (``run_id``) one of each: ``rounds`` after the first; of these
    ``busy_a`` and ``busy_b``, left out because that side was busy in the other's turn; ``errors_a`` and
    ``errors_b``, because requests to it had no answer. ``emptied``: 1 where the rounds that sides lost are
    what a median lacks, else 0."""
    by = [name for name in ("run_id", *PART) if name in counted]
    rounds = counted[counted["left_out"] != FIRST].drop_duplicates([*by, "round"])
    names = {
        f"{kind}_{side}": (rounds["left_out"] == why) & rounds["lost_by"].str.contains(side)
        for kind, why in (("busy", BUSY), ("errors", ERRORS))
        for side in duet.SIDES
    }
    kept, lost = rounds["left_out"] == "", rounds["left_out"].isin((BUSY, ERRORS))
    found = rounds.assign(rounds=1, kept=kept, lost=lost, **names)
    found = found.groupby(by, as_index=False)[["rounds", "kept", "lost", *names]].sum()
    with_lost = found["kept"] + found["lost"]
    found["emptied"] = ((found["kept"] < ROUNDS_MIN) & (with_lost >= ROUNDS_MIN)).astype(int)
    return found.drop(columns=["kept", "lost"])


class _Rounds:
    """Of one part: the rounds that count, each a slice of both sides, and how many either side lost."""

    def __init__(self, part: pd.DataFrame):
        kept = part[part["left_out"] == ""].sort_values("round")
        self._sides = [kept[kept["side"] == side] for side in duet.SIDES]
        lost = part[part["left_out"].isin((BUSY, ERRORS))].drop_duplicates("round")["lost_by"]
        self.lost = [int(lost.str.contains(side).sum()) for side in duet.SIDES]

    def values(self, measure: str) -> tuple | None:
        enough = ANSWERS_NEEDED.get(measure, 1)
        a, b = (
            side[_OF_A_SLICE[measure]].where(side["answered"] >= enough).to_numpy(dtype=float)
            for side in self._sides
        )
        with np.errstate(all="ignore"):
            ratios = np.log(b / a)
        ratios = ratios[np.isfinite(ratios)]
        if len(ratios) < ROUNDS_MIN:
            return None
        # A side that is as bad as can be has no latency that is long enough, or no rate.
        below, above = self.lost if BETTER[measure] == "lower" else self.lost[::-1]
        bounds = (
            float(np.median([*ratios, *[-math.inf] * below])),
            float(np.median([*ratios, *[math.inf] * above])),
        )
        medians = (float(np.nanmedian(side)) for side in (a, b))
        return *medians, float(np.median(ratios)), len(ratios), *bounds


def _tail(
    part: pd.DataFrame,
    histograms: Mapping[tuple[str, str, int], hdr.Histogram],
    percentile: float,
    lost: Iterable[int],
) -> tuple | None:
    """``lost``: how many rounds each side lost by its own doing."""
    kept = part[part["left_out"] == ""]
    values = []
    for side in duet.SIDES:
        keys = [(row.workload, row.loop, row.slice) for row in kept[kept["side"] == side].itertuples()]
        own = [histograms[key] for key in keys if key in histograms]
        if len(own) < max(ROUNDS_MIN, len(keys)):
            return None
        merged = hdr.merge(own)
        if merged.samples_beyond([percentile])[0] < BEYOND_MIN:
            return None
        values.append(duet.percentile_ns(merged, percentile))
    log_ratio = float(np.log(values[1] / values[0]))
    # The slowest of all answers may have been those of one lost round.
    a_lost, b_lost = lost
    bounds = (-math.inf if a_lost else log_ratio, math.inf if b_lost else log_ratio)
    return *values, log_ratio, len(keys), *bounds


def _cost(part: pd.DataFrame, measure: str, sent: float, cold: bool) -> tuple | None:
    """Sums over all rounds whose requests were answered and in which nobody else took the CPU.

    What slices and gaps cost holds the settle parts too. At a constant rate their requests are as dense as
    those of the counted parts, ``sent`` times in all. In a closed loop they are not: there the answers are
    counted, those that came in the settle part and those that came in the counted one."""
    kept = part[part["left_out"].isin(("", BUSY))]
    if len(kept) < 2 * ROUNDS_MIN:
        return None
    if measure == WRITTEN and max(_written(kept)[0]) < _least_written(kept):
        return None
    weighted = kept if cold else kept.assign(**kept[_SUMMED].mul(_weights(part)[kept.index], axis="index"))
    answered = [float(weighted.loc[kept["side"] == side, "answered"].sum()) for side in duet.SIDES]
    sums, is_whole = _cpu(weighted) if measure == CPU else _written(weighted)
    if min(*answered, *sums) <= 0 or not np.isfinite(sums).all():
        return None
    if is_whole:
        answered = _answered_in_all(weighted) or [count * sent for count in answered]
    a, b = (total / count for total, count in zip(sums, answered, strict=True))
    return a, b, float(np.log(b / a)), len(kept) // 2


def _weights(part: pd.DataFrame) -> pd.Series:
    """By slice: 0 for the first round, which never counts, and rising to 1 in a third of the others.

    What a side does now and then may fall into its last round that does not count, and into the first of the
    other side that does. A store's first compaction, whose code nothing has compiled yet, made most of a
    launch's ratio that way. With rising weights it is worth one step of them (a taper, as windows have in
    spectral analysis). They depend on nothing that was measured, and are the same for both sides."""
    after_first = part["round"] - part["round"].min()
    rising = round(RISING_SHARE * after_first.max())
    return (after_first / (rising + 1)).clip(upper=1.0)


def _least_written(kept: pd.DataFrame) -> float:
    seconds_of_a_side = float((kept["end_utc_ns"] - kept["begin_utc_ns"]).sum()) / 1e9 / len(duet.SIDES)
    return max(WRITTEN_MIN, WRITTEN_MIN_PER_S * seconds_of_a_side)


def _answered_in_all(kept: pd.DataFrame) -> list[float] | None:
    """Of each side from the beginning of its slices on; None at a constant rate, and where nobody counted."""
    if (kept["loop"] != "closed").any() or kept["answered_settling"].isna().any():
        return None
    seconds = (kept["end_utc_ns"] - kept["begin_utc_ns"]) / 1e9
    every = kept["answered_settling"] + kept["rate_rps"] * seconds
    return [float(every[kept["side"] == side].sum()) for side in duet.SIDES]


def _cpu(kept: pd.DataFrame) -> tuple[list[float], bool]:
    """Of each side's process without its compilers: in all slices and gaps where that was recorded (True),
    else in the counted parts."""
    if kept[["a_cpu_ns", "b_cpu_ns"]].notna().all(axis=None):
        compilers = [
            kept[f"{side}_compiler_ns"].sum()
            if kept[["a_compiler_ns", "b_compiler_ns"]].notna().all(axis=None)
            else 0.0
            for side in duet.SIDES
        ]
        return [
            float(kept[f"{side}_cpu_ns"].sum() - compiler)
            for side, compiler in zip(duet.SIDES, compilers, strict=True)
        ], True
    compiler = kept["compiler_ns"] if kept["compiler_ns"].notna().all() else 0.0
    own, other = kept["cpu_ns"] - compiler, kept["idle_cpu_ns"]
    return [
        float(own[kept["side"] == side].sum(skipna=False) + other[kept["side"] != side].sum(skipna=False))
        for side in duet.SIDES
    ], False


def _written(kept: pd.DataFrame) -> tuple[list[float], bool]:
    if kept[["a_written_bytes", "b_written_bytes"]].notna().all(axis=None):
        return [float(kept[f"{side}_written_bytes"].sum()) for side in duet.SIDES], True
    return [
        float(kept.loc[kept["side"] == side, "written_bytes"].sum(skipna=False)) for side in duet.SIDES
    ], False
