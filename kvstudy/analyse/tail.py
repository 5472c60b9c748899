"""Why are the slow requests slow? Slow seconds set beside what happened in them, and against chance.

    limit_us = threshold_us(tables, 99)            what counts as slow: here the slowest percent of all answers
    slow_seconds(tables, limit_us)                 how many answers of each second were slower
    causes(tables, limit_us)                       per kind of event: share of the slow answers it overlaps, chance, verdict
    alignment(tables, limit_us)                    every slow second with the events in it, for a time line

How a link is judged: an event is felt from its start until as long again after its end, while what had queued up is worked off; its
milliseconds fall on the seconds in which it is felt. The statistic is their sum over the seconds, each weighted by the root of its slow
answers, so that one terrible second does not outvote all others. By chance it is what it would be had the events come at another time of the same run: each run's seconds are shifted around a circle, at
random, which keeps bursts and rhythms of both sides as they are. p is the share of shifts that align as well; over all kinds it is
corrected by Holm's method. A link is not yet a cause: kinds that come together (a compaction after a flush) are linked together, and
``share_alone`` says how much is left where no other linked kind is near.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from kvstudy.analyse.tables import Tables
from kvstudy.record import hdr

LINKED, CANNOT_TELL = "linked", "cannot tell"
NO_EVENT = "no recorded event"
SIGNIFICANCE = 0.05
DRAWS = 4000
# An event shorter than this share of the threshold cannot have made a request that slow.
SHORTEST_SHARE = 0.1
# What is there in nearly every second is no explanation of a slow one by its presence; only if it is linked, by how long it takes.
_ALWAYS_SHARE = 0.95
_FELT = 2.0  # lengths of an event in which it is felt
CAUSE_COLUMNS = ["cause", "events", "longest_ms", "seconds_share", "slow_requests", "share", "chance", "lift", "p_value", "share_alone", "word"]


@dataclass(frozen=True)
class _Run:
    """One run, second by second: ``slow`` answers; ``weights``: kind → milliseconds of its events in each second."""

    slow: np.ndarray
    weights: dict[str, np.ndarray]


def threshold_us(tables: Tables, percentile: float = 99.0, latency_kind: str = "response") -> float:
    """The latency at ``percentile`` of all answers of all runs together. ValueError without answers."""
    rows = tables.intervals[tables.intervals["latency_kind"] == latency_kind]
    if rows.empty:
        raise ValueError(f"no answers per second to look at: latency_kind={latency_kind}, runs={len(tables.runs)}")
    return hdr.merge(hdr.decode(text) for text in rows["histogram"]).percentile_us(percentile)


def slow_seconds(tables: Tables, threshold_us: float, latency_kind: str = "response") -> pd.DataFrame:
    """One row per run and second: ``run_id, second, count, slow`` (answers, and those slower than the threshold)."""
    rows = tables.intervals[tables.intervals["latency_kind"] == latency_kind]
    slow = [hdr.decode(row.histogram).count_above(threshold_us) if row.max_us > threshold_us else 0 for row in rows.itertuples()]
    return rows[["run_id", "second", "count"]].assign(slow=np.asarray(slow, dtype=np.int64)).reset_index(drop=True)


def alignment(tables: Tables, threshold_us: float) -> pd.DataFrame:
    """One row per slow second and event that overlaps it: ``run_id, second, slow, kind, start_s, duration_ms, attributes``; a slow
    second without an event has one row of kind NO_EVENT."""
    slow = slow_seconds(tables, threshold_us)
    slow = slow[slow["slow"] > 0]
    pairs = slow.merge(_considered(tables, threshold_us), on="run_id", how="left")
    touching = pairs[(pairs["start_s"] < pairs["second"] + 1) & (pairs["start_s"] + _FELT * pairs["duration_ms"] / 1e3 >= pairs["second"])]
    bare = slow.merge(touching[["run_id", "second"]].drop_duplicates(), on=["run_id", "second"], how="left", indicator=True)
    bare = bare.loc[bare["_merge"] == "left_only", ["run_id", "second", "slow"]].assign(kind=NO_EVENT, start_s=np.nan, duration_ms=np.nan, attributes="{}")
    columns = ["run_id", "second", "slow", "kind", "start_s", "duration_ms", "attributes"]
    parts = [part[columns] for part in (touching, bare) if len(part)]
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return found.sort_values(["run_id", "second", "start_s"], ignore_index=True)


def causes(tables: Tables, threshold_us: float, draws: int = DRAWS, seed: int = 1) -> pd.DataFrame:
    """One row per kind of event, the surest link first, and last NO_EVENT: the slow answers of seconds that no event touches, but for
    kinds that are there nearly always.

    ``share``: of the slow answers in seconds that the kind touches; ``chance``: the same had it come at other times; ``lift``: their
    ratio; ``share_alone``: of the slow answers in seconds that it touches and no other linked kind does; ``word``: LINKED or CANNOT_TELL.
    """
    runs, events = _runs(tables, threshold_us)
    slow_total = int(sum(run.slow.sum() for run in runs))
    generator = np.random.default_rng(seed)
    kinds = sorted({kind for run in runs for kind in run.weights})
    p_values = {kind: p_value([run.slow for run in runs], [run.weights.get(kind, np.zeros(len(run.slow))) for run in runs], draws, generator)
                for kind in kinds if slow_total}
    corrected = dict.fromkeys(kinds, 1.0) | _holm(p_values)
    linked = {kind for kind, p in corrected.items() if p <= SIGNIFICANCE}
    rows = []
    for kind in kinds:
        of_kind = events[events["kind"] == kind]
        share, chance = _share(runs, {kind}), _chance(runs, kind)
        rows.append({
            "cause": kind, "events": len(of_kind), "longest_ms": float(of_kind["duration_ms"].max()), "seconds_share": _seconds_share(runs, kind),
            "slow_requests": round(share * slow_total), "share": share, "chance": chance, "lift": share / chance if chance else np.nan,
            "p_value": corrected[kind], "share_alone": share - _share(runs, {kind}, also=linked - {kind}),
            "word": LINKED if kind in linked else CANNOT_TELL,
        })
    rows.sort(key=lambda row: (row["p_value"], -np.nan_to_num(row["lift"]), row["cause"]))
    telling = {kind for kind in kinds if kind in linked or _seconds_share(runs, kind) < _ALWAYS_SHARE}
    untouched = 1.0 - _share(runs, telling) if slow_total else 0.0
    rows.append({"cause": NO_EVENT, "events": 0, "longest_ms": np.nan, "seconds_share": 1 - _seconds_share(runs, *telling),
                 "slow_requests": round(untouched * slow_total), "share": untouched, "chance": np.nan, "lift": np.nan, "p_value": np.nan,
                 "share_alone": untouched, "word": ""})
    return pd.DataFrame(rows, columns=CAUSE_COLUMNS)


def p_value(slow: list[np.ndarray], weights: list[np.ndarray], draws: int, generator: np.random.Generator) -> float:
    """Share of random shifts, one per run, that align slow answers and events at least as well as they are; never 0."""
    observed, shifted = 0.0, np.zeros(draws)
    for counts, weight in zip(slow, weights, strict=True):
        if not counts.any() or not weight.any():
            continue
        # Every circular shift of the weights against the counts at once.
        aligned = np.array([np.sqrt(counts) @ np.roll(weight, shift) for shift in range(len(counts))])
        observed += aligned[0]
        shifted += generator.choice(aligned, draws)
    return float((1 + np.sum(shifted >= observed * (1 - 1e-12))) / (1 + draws))


def _runs(tables: Tables, threshold_us: float) -> tuple[list[_Run], pd.DataFrame]:
    events = _considered(tables, threshold_us)
    runs = []
    for run_id, seconds in slow_seconds(tables, threshold_us).groupby("run_id", sort=True):
        length = int(seconds["second"].max()) + 1
        slow = np.zeros(length)
        np.add.at(slow, seconds["second"].to_numpy(), seconds["slow"].to_numpy())
        own = events[events["run_id"] == run_id]
        runs.append(_Run(slow, {kind: _milliseconds(group, length) for kind, group in own.groupby("kind")}))
    return runs, events


def _considered(tables: Tables, threshold_us: float) -> pd.DataFrame:
    """Events in the window that could have made a request slow. A safepoint that holds a GC pause is that pause, not a second cause."""
    events = tables.events
    events = events[(events["duration_ms"] >= SHORTEST_SHARE * threshold_us / 1e3) & (events["start_s"] + _FELT * events["duration_ms"] / 1e3 >= 0)]
    pauses = events[events["kind"] == "gc_pause"]
    same = pd.Series(False, index=events.index)
    for run_id, own in events[events["kind"] == "safepoint"].groupby("run_id"):
        of_run = pauses[pauses["run_id"] == run_id]
        begin, end = own["start_s"].to_numpy()[:, None], (own["start_s"] + own["duration_ms"] / 1e3).to_numpy()[:, None]
        other_begin, other_end = of_run["start_s"].to_numpy(), (of_run["start_s"] + of_run["duration_ms"] / 1e3).to_numpy()
        same.loc[own.index] = ((other_begin < end) & (other_end > begin)).any(axis=1)
    return events[~same]


def _milliseconds(events: pd.DataFrame, length: int) -> np.ndarray:
    """How long events of one kind were felt in each second; overlapping ones (two compactions at once) add up."""
    begin = events["start_s"].to_numpy()[:, None]
    end = begin + _FELT * events["duration_ms"].to_numpy()[:, None] / 1e3
    second = np.arange(length)[None, :]
    return 1e3 * np.clip(np.minimum(end, second + 1) - np.maximum(begin, second), 0, 1).sum(axis=0)


def _touched(run: _Run, kinds: set[str]) -> np.ndarray:
    touched = np.zeros(len(run.slow), dtype=bool)
    for kind in kinds & set(run.weights):
        touched |= run.weights[kind] > 0
    return touched


def _share(runs: list[_Run], kinds: set[str], also: set[str] | None = None) -> float:
    """Share of slow answers in seconds touched by ``kinds`` and, when given, by ``also`` too."""
    total = sum(run.slow.sum() for run in runs)
    hit = sum((run.slow * (_touched(run, kinds) & (True if also is None else _touched(run, also)))).sum() for run in runs)
    return float(hit / total) if total else 0.0


def _chance(runs: list[_Run], kind: str) -> float:
    """Mean of ``_share`` over all shifts: each run's touched part of its seconds, weighted by its slow answers."""
    total = sum(run.slow.sum() for run in runs)
    return float(sum(run.slow.sum() * _touched(run, {kind}).mean() for run in runs) / total) if total else 0.0


def _seconds_share(runs: list[_Run], *kinds: str) -> float:
    seconds = sum(len(run.slow) for run in runs)
    return float(sum(_touched(run, set(kinds)).sum() for run in runs) / seconds) if seconds else 0.0


def _holm(p_values: dict[str, float]) -> dict[str, float]:
    """Holm's step-down correction: p values that hold for all kinds together."""
    corrected, least = {}, 0.0
    for place, kind in enumerate(sorted(p_values, key=lambda kind: p_values[kind])):
        least = max(least, min(1.0, p_values[kind] * (len(p_values) - place)))
        corrected[kind] = least
    return corrected
