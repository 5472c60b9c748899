"""Why are the slow requests slow? Each slow answer set beside what happened while it waited, and against chance.

    limit_us = threshold_us(tables, 99)            what counts as slow: here the slowest percent of all answers
    slow_seconds(tables, limit_us)                 how many answers of each second were slower
    causes(tables, limit_us)                       per kind of event: share of the slow answers it overlaps, chance, verdict
    alignment(tables, limit_us)                    every slow second with the events in it
    by_workload(tables, 99)                        causes again, workload by workload, each against a threshold of its own

How a link is judged: an event is felt from its start until as long again after its end, while what had queued up is worked off. Time
is cut into bins of 10 ms (of a second where no single answers are known: slow_answers). The statistic is the sum, over the bins, of
the milliseconds of the event felt in it, each weighted by the root of the number of slow answers that waited in it, so that one terrible
moment does not outvote all others. By chance it is what it would be had the events come at another time of the same run: each run's
bins are shifted around a circle, at random, which keeps bursts and rhythms of both sides as they are. p is the share of shifts that align as well;
over all kinds it is corrected by Holm's method. A link is not yet a cause: kinds that come together (a compaction after a flush) are linked together, and
``share_alone`` says how much is left where no other linked kind is near.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from kvstudy.analyse import slow_answers
from kvstudy.analyse.slow_answers import SlowAnswers
from kvstudy.analyse.tables import Tables
from kvstudy.record import hdr

LINKED, CANNOT_TELL = "linked", "cannot tell"
NO_EVENT = "no recorded event"
SIGNIFICANCE = 0.05
DRAWS = 4000
# An event shorter than this share of the threshold cannot have made a request that slow.
SHORTEST_SHARE = 0.1
# What is felt nearly always is no explanation of a slow answer by its presence; only if it is linked, by how long it takes.
_ALWAYS_SHARE = 0.95
CAUSE_COLUMNS = ["cause", "events", "longest_ms", "time_share", "slow_requests", "share", "chance", "lift", "p_value", "share_alone", "word"]


@dataclass(frozen=True)
class OfWorkload:
    """The slow answers of one workload in its ``runs`` runs at ``offered_rate_rps``: those over ``limit_us``; ``found``: their ``causes``."""

    workload: str
    method: str
    offered_rate_rps: float
    limit_us: float
    runs: int
    found: pd.DataFrame


def threshold_us(tables: Tables, percentile: float = 99.0, latency_kind: str = "response") -> float:
    """The latency at ``percentile`` of all answers of all runs together. ValueError without answers."""
    rows = tables.intervals[tables.intervals["latency_kind"] == latency_kind]
    if rows.empty:
        raise ValueError(f"no answers per second to look at: latency_kind={latency_kind}, runs={len(tables.runs)}")
    return hdr.merge(map(_decoded, rows["histogram"])).percentile_us(percentile)


def slow_seconds(tables: Tables, threshold_us: float, latency_kind: str = "response") -> pd.DataFrame:
    """One row per run and second: ``run_id, second, count, slow`` (answers, and those slower than the threshold)."""
    return tables.once(_slow_seconds, threshold_us, latency_kind)


def logged_seconds(tables: Tables, latency_kind: str = "response") -> pd.DataFrame:
    """The rows of intervals of this kind, up to each run's last answer: a generator may end its log with a second that holds none. One
    without an answer before that is a second in which the service stood still, and stays."""
    rows = tables.intervals[tables.intervals["latency_kind"] == latency_kind]
    last = rows[rows["count"] > 0].groupby("run_id")["second"].max()
    return rows[rows["second"].to_numpy() <= last.reindex(rows["run_id"]).to_numpy()]


def _slow_seconds(tables: Tables, threshold_us: float, latency_kind: str) -> pd.DataFrame:
    rows = logged_seconds(tables, latency_kind)
    known = zip(rows["histogram"].tolist(), rows["max_us"].tolist(), strict=True)
    slow = [_decoded(histogram).count_above(threshold_us) if max_us > threshold_us else 0 for histogram, max_us in known]
    return rows[["run_id", "second", "count"]].assign(slow=np.asarray(slow, dtype=np.int64)).reset_index(drop=True)


@lru_cache(maxsize=20_000)
def _decoded(histogram: str) -> hdr.Histogram:
    """A page asks for the same seconds of the same runs several times; decoding them is most of its work."""
    return hdr.decode(histogram)


def alignment(tables: Tables, threshold_us: float) -> pd.DataFrame:
    """One row per slow second and event that overlaps it: ``run_id, second, slow, kind, start_s, duration_ms, attributes``; a slow
    second without an event has one row of kind NO_EVENT."""
    slow = slow_seconds(tables, threshold_us)
    slow = slow[slow["slow"] > 0]
    pairs = slow.merge(tables.once(_considered, threshold_us), on="run_id", how="left")
    begin, end = slow_answers.felt_s(pairs)
    touching = pairs[(begin < pairs["second"] + 1) & (end > pairs["second"])]
    bare = slow.merge(touching[["run_id", "second"]].drop_duplicates(), on=["run_id", "second"], how="left", indicator=True)
    bare = bare.loc[bare["_merge"] == "left_only", ["run_id", "second", "slow"]].assign(kind=NO_EVENT, start_s=np.nan, duration_ms=np.nan, attributes="{}")
    columns = ["run_id", "second", "slow", "kind", "start_s", "duration_ms", "attributes"]
    parts = [part[columns] for part in (touching, bare) if len(part)]
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return found.sort_values(["run_id", "second", "start_s"], ignore_index=True)


def slow_by_run(tables: Tables, threshold_us: float) -> list[SlowAnswers]:
    """Of every run when its slow answers waited and when events were felt."""
    return tables.once(_by_run, threshold_us)


def causes(tables: Tables, threshold_us: float, draws: int = DRAWS, seed: int = 1) -> pd.DataFrame:
    """One row per kind of event, first the linked ones, those that hold most alone before the others; and last NO_EVENT: the slow
    answers that no event touches, but for kinds that are felt nearly always.

    ``time_share``: of the time in which the kind is felt; ``share``: of the slow answers that waited while it was; ``chance``: the same
    had it come at other times; ``lift``: their ratio; ``share_alone``: of the slow answers that it touches and no other linked kind does;
    ``word``: LINKED or CANNOT_TELL.
    """
    events = tables.once(_considered, threshold_us)
    runs = slow_by_run(tables, threshold_us)
    slow_total = sum(run.total for run in runs)
    generator = np.random.default_rng(seed)
    kinds = sorted({kind for run in runs for kind in run.felt_ms})
    p_values = {kind: p_value([run.waiting for run in runs], [run.felt_ms.get(kind, np.zeros(run.bins)) for run in runs], draws, generator)
                for kind in kinds if slow_total}
    corrected = dict.fromkeys(kinds, 1.0) | _holm(p_values)
    linked = {kind for kind, p in corrected.items() if p <= SIGNIFICANCE}
    rows = []
    for kind in kinds:
        of_kind = events[events["kind"] == kind]
        share, chance = _share(runs, {kind}), sum(run.touched_by_chance(kind) for run in runs) / slow_total if slow_total else 0.0
        rows.append({
            "cause": kind, "events": len(of_kind), "longest_ms": float(of_kind["duration_ms"].max()), "time_share": _time_share(runs, {kind}),
            "slow_requests": round(share * slow_total), "share": share, "chance": chance, "lift": share / chance if chance else np.nan,
            "p_value": corrected[kind], "share_alone": share - _share(runs, {kind}, also=linked - {kind}),
            "word": LINKED if kind in linked else CANNOT_TELL,
        })
    rows.sort(key=lambda row: (row["word"] != LINKED, -row["share_alone"] if row["word"] == LINKED else row["p_value"], -np.nan_to_num(row["lift"]), row["cause"]))
    telling = {kind for kind in kinds if kind in linked or _time_share(runs, {kind}) < _ALWAYS_SHARE}
    untouched = 1.0 - _share(runs, telling) if slow_total else 0.0
    rows.append({"cause": NO_EVENT, "events": 0, "longest_ms": np.nan, "time_share": 1 - _time_share(runs, telling),
                 "slow_requests": round(untouched * slow_total), "share": untouched, "chance": np.nan, "lift": np.nan, "p_value": np.nan,
                 "share_alone": untouched, "word": ""})
    return pd.DataFrame(rows, columns=CAUSE_COLUMNS)


def by_workload(tables: Tables, percentile: float = 99.0, most: int = 6) -> list[OfWorkload]:
    """The causes of each workload's own slow answers, at the highest rate of its runs; pooled, the slowest workload alone would set what is
    slow. First the workload with most answers over the common threshold; ``most``: so many workloads."""
    logged = set(logged_seconds(tables)["run_id"])
    runs = tables.runs[tables.runs["run_id"].isin(logged) & ~tables.runs["closed_loop"]]
    if runs.empty:
        return []
    slow = slow_seconds(tables, threshold_us(tables, percentile)).groupby("run_id")["slow"].sum()
    totals = runs["run_id"].map(slow).groupby(runs["workload"]).sum().sort_values(ascending=False, kind="stable")
    groups = []
    for workload in totals.index[:most]:
        mine = runs[runs["workload"] == workload]
        mine = mine[mine["offered_rate_rps"] == mine["offered_rate_rps"].max()]
        own = tables.only(mine["run_id"])
        limit_us = threshold_us(own, percentile)
        first = mine.iloc[0]
        groups.append(OfWorkload(workload, first["method"], float(first["offered_rate_rps"]), limit_us, len(mine), causes(own, limit_us)))
    return groups


def p_value(slow: list[np.ndarray], weights: list[np.ndarray], draws: int, generator: np.random.Generator) -> float:
    """Share of random shifts, one per run, that align slow answers and events at least as well as they are; never 0. ``slow``,
    ``weights``: of each run, bin by bin."""
    observed, shifted = 0.0, np.zeros(draws)
    for counts, weight in zip(slow, weights, strict=True):
        if not counts.any() or not weight.any():
            continue
        # Every circular shift of the weights against the counts at once: their correlation, by Fourier's transform.
        aligned = np.fft.irfft(np.fft.rfft(np.sqrt(counts)) * np.conj(np.fft.rfft(weight)), len(counts))
        observed += aligned[0]
        shifted += generator.choice(aligned, draws)
    return float((1 + np.sum(shifted >= observed * (1 - 1e-9))) / (1 + draws))


def _by_run(tables: Tables, threshold_us: float) -> list[SlowAnswers]:
    events = tables.once(_considered, threshold_us)
    # Numbers alone where there are many rows: taking their run's name along costs more than all that is worked out of them.
    answered = tables.slowest[["due_s", "response_us"]]
    answers, happened = dict(iter(answered.groupby(tables.slowest["run_id"]))), dict(iter(events.groupby("run_id")))
    return [slow_answers.of_run(run_id, seconds, answers.get(run_id, answered.head(0)), happened.get(run_id, events.head(0)), threshold_us)
            for run_id, seconds in slow_seconds(tables, threshold_us).groupby("run_id", sort=True)]


def _considered(tables: Tables, threshold_us: float) -> pd.DataFrame:
    """Events in the window that could have made a request slow. A safepoint that holds a GC pause is that pause, not a second cause."""
    events = tables.events[tables.events["duration_ms"] >= SHORTEST_SHARE * threshold_us / 1e3]
    events = events[slow_answers.felt_s(events)[1] >= 0]
    pauses = events[events["kind"] == "gc_pause"]
    same = pd.Series(False, index=events.index)
    for run_id, own in events[events["kind"] == "safepoint"].groupby("run_id"):
        of_run = pauses[pauses["run_id"] == run_id]
        begin, end = own["start_s"].to_numpy()[:, None], (own["start_s"] + own["duration_ms"] / 1e3).to_numpy()[:, None]
        other_begin, other_end = of_run["start_s"].to_numpy(), (of_run["start_s"] + of_run["duration_ms"] / 1e3).to_numpy()
        same.loc[own.index] = ((other_begin < end) & (other_end > begin)).any(axis=1)
    return events[~same]


def _share(runs: list[SlowAnswers], kinds: set[str], also: set[str] | None = None) -> float:
    """Share of slow answers touched by ``kinds`` and, when given, by ``also`` too."""
    total = sum(run.total for run in runs)
    hit = sum(run.count[run.touched(kinds) & (True if also is None else run.touched(also))].sum() for run in runs)
    return float(hit / total) if total else 0.0


def _time_share(runs: list[SlowAnswers], kinds: set[str]) -> float:
    bins = sum(run.bins * run.step_s for run in runs)
    return float(sum(run.felt(kinds).sum() * run.step_s for run in runs) / bins) if bins else 0.0


def _holm(p_values: dict[str, float]) -> dict[str, float]:
    """Holm's step-down correction: p values that hold for all kinds together."""
    corrected, least = {}, 0.0
    for place, kind in enumerate(sorted(p_values, key=lambda kind: p_values[kind])):
        least = max(least, min(1.0, p_values[kind] * (len(p_values) - place)))
        corrected[kind] = least
    return corrected
