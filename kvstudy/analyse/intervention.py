"""Does the tail move when one thing is held off? The only evidence from which the study says *caused by*.

    interventions(tables)        one row per kind held off: p99 as usual and without it, ratio, interval, word
                                 and why

An experiment measures the same load as usual and with an option changed that holds one kind of event off
(HOLDS_OFF), in turn: one run of each side per repeat. A pair is the two runs of a repeat. What moves the tail
by less than the experiment's ``same`` is of no interest, and no cause. If the option made the tail shorter by
just so much, the sides of every pair could be exchanged after a correction for it: p is the share of all
exchanges whose mean log ratio is as low (a permutation test, exact up to 2^14 of them, the observed one
included), corrected by Holm's method over all kinds.

That the kind was held off is checked in the events, not taken from the option; so is what went away with
it (``also``: without flushes there is nothing to compact), since *caused by* is then said of both together.
Where the service made a larger share of the runs without it invalid, those that are left are its better ones,
and nothing is said (comparison/outcomes.py).
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from kvstudy.analyse import percentile_grid, validity
from kvstudy.analyse.comparison import binomial
from kvstudy.analyse.comparison.families import holm
from kvstudy.analyse.configuration import comparison_key, configured, lost_runs
from kvstudy.analyse.linked import CANNOT_TELL, SIGNIFICANCE
from kvstudy.analyse.tables import Tables

EXPERIMENT = "tail-intervention"
CAUSED = "caused by"
LEFT_MOST = 0.1  # of a kind that is held off; the log is synced now and then whatever its mode
PAIRS_MIN = 7  # with six, p cannot fall below 1/64, which is too much for three questions
KINDS = ("compaction", "flush", "wal_sync")
_EXACT_PAIRS, _DRAWS = 14, 9999
COLUMNS = [
    "cause",
    "held_off",
    "workload",
    "connections",
    "offered_rate_rps",
    "pairs",
    "usual_us",
    "without_us",
    "ratio",
    "low",
    "high",
    "p_value",
    "word",
    "why",
    "ratios",
    "also",
]


@dataclass(frozen=True)
class Moved:
    """``ratio``: median over the pairs of without / usual, with the interval of a sign test; ``p_value``: of
    this question alone, that it is not below the least effect of interest."""

    ratio: float
    low: float
    high: float
    p_value: float


def interventions(tables: Tables, percentile: float = 99.0) -> pd.DataFrame:
    """COLUMNS, of all runs in ``tables`` that were made with something held off and have a partner that was
    not."""
    believed = tables.believed()
    measured = configured(tables.runs[~tables.runs["profiled"]])
    counted = measured[measured["excluded"] != validity.OUTSIDE]
    key = comparison_key(measured, "variant")
    measured_as = {of: dict(list(mine.groupby("variant")["excluded"])) for of, mine in measured.groupby(key)}
    points = believed.percentiles
    points = points[
        (points["latency_kind"] == "response")
        & percentile_grid.at(points["percentile"], percentile)
        & points["latency_us"].notna()
    ]
    runs = configured(believed.runs)
    runs = runs.assign(
        key=comparison_key(runs, "variant"),
        sweep=runs["run_id"].map(_sweeps(counted)),
        latency_us=runs["run_id"].map(points.set_index("run_id")["latency_us"]),
        options=[json.loads(options or "{}") for options in runs["service_options"]],
    )
    runs = runs[runs["latency_us"].notna()]
    rows = [
        row
        for key, group in runs.groupby("key", sort=True)
        for row in _of_group(tables, group, measured_as[key])
    ]
    tested = [row for row in rows if not row["why"]]
    if tested:
        for row, p_value in zip(tested, holm([row["p_value"] for row in tested]), strict=True):
            row |= {"p_value": float(p_value)} | dict(
                zip(
                    ("word", "why"),
                    word(row["ratio"], float(p_value), row.pop("least"), tables.part),
                    strict=True,
                )
            )
    return pd.DataFrame(rows, columns=COLUMNS)


def word(ratio: float, p_value: float, least: float = 0.0, part: float = 1.0) -> tuple[str, str]:
    """CAUSED, or CANNOT_TELL and why. ``p_value``: corrected; ``least``: effect of interest, 0.05 is 5 %;
    ``part``: of SIGNIFICANCE, as ``Tables`` has it."""
    if p_value <= SIGNIFICANCE * part:
        return CAUSED, ""
    if ratio > 1:
        return CANNOT_TELL, "the tail is longer without it"
    beyond = f"{100 * least:g} %, and by " if least else ""
    return CANNOT_TELL, f"the tail is not shorter without it by {beyond}more than repeats differ"


def moved(ratios: Sequence[float], least: float = 0.0, seed: int = 1) -> Moved:
    """Of one positive ratio, without / usual, for each pair. ``least``: effect of interest, 0.05 is 5 %."""
    logs = np.log(np.asarray(ratios, dtype=float))
    pairs = len(logs)
    if pairs <= _EXACT_PAIRS:
        signs = 1 - 2 * ((np.arange(2**pairs)[:, None] >> np.arange(pairs)) & 1)
    else:
        signs = np.vstack([np.ones(pairs), np.random.default_rng(seed).choice([-1, 1], (_DRAWS, pairs))])
    beyond = logs + math.log1p(least)
    means = signs @ beyond
    low, high = _sign_interval(np.sort(logs))
    return Moved(
        float(np.exp(np.median(logs))),
        low,
        high,
        float(np.mean(~(means > means[0] + 1e-9 * np.abs(logs).sum()))),  # nothing is shown of NaN
    )


def held_off(usual: dict, other: dict) -> str:
    """The kind of event that these service options hold off, compared with the usual ones; "" when they
    differ in something else, or in more."""
    names = [name for name in {**usual, **other} if usual.get(name) != other.get(name)]
    if len(names) != 1:
        return ""
    (name,) = names
    if name == "compaction" and other.get(name) == "none":
        return "compaction"
    if name == "wal" and other.get(name) in ("none", "os"):
        return "wal_sync"
    return "flush" if name == "memtable_bytes" and other.get(name, 0) > usual.get(name, np.inf) else ""


def _of_group(tables: Tables, group: pd.DataFrame, measured_as: dict[str, pd.Series]) -> list[dict]:
    """A row per variant that holds one thing off of another variant of the group. ``measured_as``: of each
    variant, ``excluded`` of all its runs."""
    variants = {variant: mine for variant, mine in group.groupby("variant", sort=True)}
    rows = []
    for name, usual in variants.items():
        for other_name, other in variants.items():
            cause = held_off(usual["options"].iloc[0], other["options"].iloc[0])
            if cause:
                row = _row(tables, cause, usual, other)
                lost = lost_runs(measured_as[name], measured_as[other_name])
                rows.append(row | {"why": row["why"] or _flattered(*lost.values())})
    return rows


def _flattered(invalid_usual: int, of_usual: int, invalid_without: int, of_without: int) -> str:
    """Why the runs that are left without the kind may not be compared; "" where they may."""
    if invalid_without * of_usual <= invalid_usual * of_without:
        return ""
    return (
        f"{invalid_without} of {of_without} runs without it are invalid, usually "
        f"{invalid_usual} of {of_usual}"
    )


def _row(tables: Tables, cause: str, usual: pd.DataFrame, other: pd.DataFrame) -> dict:
    pairs = usual.drop_duplicates(["sweep", "repeat"], keep="last").merge(
        other.drop_duplicates(["sweep", "repeat"], keep="last"),
        on=["sweep", "repeat"],
        suffixes=("", "_without"),
    )
    first, second = usual.iloc[0], other.iloc[0]
    changed = next(
        name
        for name in {**first["options"], **second["options"]}
        if first["options"].get(name) != second["options"].get(name)
    )
    ratios = (pairs["latency_us_without"] / pairs["latency_us"]).tolist()
    least = float(usual["same_within"].min())
    found = (
        moved(ratios, least)
        if len(ratios) >= _pairs_min(tables)
        else Moved(float(np.median(ratios)) if ratios else np.nan, np.nan, np.nan, np.nan)
    )
    return {
        "cause": cause,
        "held_off": f"{changed}={second['options'].get(changed)}",
        "workload": first["workload"],
        "connections": first["connections"],
        "offered_rate_rps": first["offered_rate_rps"],
        "pairs": len(ratios),
        "usual_us": float(usual["latency_us"].median()),
        "without_us": float(other["latency_us"].median()),
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
        "p_value": found.p_value,
        "least": least,
        "word": CANNOT_TELL,
        "why": _unanswerable(tables, cause, set(pairs["run_id"]), set(pairs["run_id_without"])),
        "ratios": ratios,
        "also": _also_gone(tables, cause, set(pairs["run_id"]), set(pairs["run_id_without"])),
    }


def _sweeps(counted: pd.DataFrame) -> pd.Series:
    """By run id how often the repeat of its variant had been measured before. Two runs of one repeat of
    different sweeps are hours apart, and no pair. Runs that something from outside made invalid are measured
    again, and are not among these."""
    ordered = counted.sort_values(["start_utc", "run_id"], kind="stable")
    return (
        ordered.groupby([comparison_key(ordered, "variant"), ordered["variant"], ordered["repeat"]])
        .cumcount()
        .set_axis(ordered["run_id"])
    )


def _also_gone(tables: Tables, cause: str, usual: set[str], other: set[str]) -> tuple[str, ...]:
    """The kinds that came usually, and no longer where ``cause`` was held off."""
    counts = {kind: _windows(tables, kind, usual, other) for kind in KINDS if kind != cause}
    return tuple(kind for kind, (before, left) in counts.items() if before and left <= LEFT_MOST * before)


def _windows(tables: Tables, kind: str, usual: set[str], other: set[str]) -> tuple[int, int]:
    """How often a kind came within the measured windows of either side."""
    events = tables.events[(tables.events["kind"] == kind) & (tables.events["start_s"] >= 0)]
    before, left = (int(events["run_id"].isin(side).sum()) for side in (usual, other))
    return before, left


def _pairs_min(tables: Tables) -> int:
    """With half as much error to spend, one pair more."""
    return PAIRS_MIN + math.ceil(-math.log2(tables.part))


def _unanswerable(tables: Tables, cause: str, usual: set[str], other: set[str]) -> str:
    """Why these runs cannot answer; "" where they can."""
    if len(usual) < (needed := _pairs_min(tables)):
        return f"{len(usual)} pairs of valid runs, {needed} are needed"
    before, left = _windows(tables, cause, usual, other)
    if not before:
        return "it did not happen in the usual runs either"
    return (
        f"it was not held off: {left} in {len(other)} windows, usually {before}"
        if left > LEFT_MOST * before
        else ""
    )


def _sign_interval(ordered: np.ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """Of the median, as a ratio: the inmost pair of order statistics that covers it at least so often; NaN
    with under six."""
    pairs = len(ordered)
    cut = int(binomial.ppf((1 - confidence) / 2, pairs, 0.5))
    while cut > 0 and 2 * binomial.cdf(cut - 1, pairs, 0.5) > 1 - confidence:
        cut -= 1
    return (float(np.exp(ordered[cut - 1])), float(np.exp(ordered[pairs - cut]))) if cut else (np.nan, np.nan)
