"""Why are the slow requests slow? Each slow answer set beside what happened while it waited, and against
chance.

    limit_us = threshold_us(tables, 99)            what counts as slow: here the slowest percent of all
                                                   answers
    slow_seconds(tables, limit_us)                 how many answers of each second were slower
    causes(tables, limit_us)                       per kind of event: share of the slow answers it overlaps,
                                                   chance, word, why
    alignment(tables, limit_us)                    every slow second with the events in it
    page_causes(tables, 99)                        causes of each workload, judged together

An event is felt from its start until as long again after its end, while what had queued up is worked off.
Time is cut into bins of 10 ms (of a second where no single answers are known: slow_answers). *By chance* is
what the events of the other repeats of the same configuration would touch, at the same moment of their runs;
of a run without repeats what its own would, at other times. The word is by permutation (linked, permutation),
and a linked kind overlaps noticeably more slow answers than by chance. It is said of one workload at a time:
of all together it would be that of a few answers, while most may show the opposite. A link is not a cause:
kinds that come together (a compaction after a flush) are linked together, and ``share_alone`` says how much
is left where no other linked kind is near. What causes the tail is said by an experiment that holds it off:
intervention.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pandas as pd

from kvstudy.analyse import percentile_grid, slow_answers
from kvstudy.analyse.by_second import SECOND_S
from kvstudy.analyse.configuration import configured
from kvstudy.analyse.linked import CANNOT_TELL as CANNOT_TELL  # a word of this module's frames
from kvstudy.analyse.linked import DRAWS, LINKED, Judgement, Question, judge
from kvstudy.analyse.permutation import Repeats
from kvstudy.analyse.slow_answers import SlowAnswers
from kvstudy.analyse.tables import Tables
from kvstudy.record import hdr

NO_EVENT = "no recorded event"
# An event shorter than this share of the threshold cannot have made a request that slow.
SHORTEST_SHARE = 0.1
# What is felt nearly always is no explanation of a slow answer by its presence; only if it is linked, by how
# long it takes.
_ALWAYS_SHARE = 0.95
# What is linked overlaps more slow answers than chance: by so much of what chance gives, or leaves.
EXCESS_MIN = 0.1
NO_MORE_THAN_CHANCE = "it overlaps hardly more slow answers than chance"
# Where the repeats cannot answer all questions of a page these are asked first, in this order: of (workload,
# kind) those that the committed runs link, or that the page's answer is about. Whoever measures again asks it
# of other runs than those that it was learned from, which have repeats enough to be asked everything at once.
ASKED_FIRST = (
    ("repeated_put", "flush"),
    ("repeated_put", "wal_sync"),
    ("unique_put", "flush"),
    ("unique_put", "wal_sync"),
)
CAUSE_COLUMNS = [
    "cause",
    "events",
    "longest_ms",
    "time_share",
    "slow_requests",
    "share",
    "chance",
    "lift",
    "p_value",
    "share_alone",
    "word",
    "why",
]


@dataclass(frozen=True)
class WorkloadCauses:
    """The slow answers of one workload in its ``runs`` runs at ``offered_rate_rps``: those over ``limit_us``;
    ``found``: their ``causes``."""

    workload: str
    method: str
    offered_rate_rps: float
    limit_us: float
    runs: int
    found: pd.DataFrame


@dataclass(frozen=True)
class PageCauses:
    """``limit_us``: what is slow among the answers of all runs together; ``groups``: workload by workload,
    each with a limit of its own. The words of all hold together."""

    limit_us: float
    groups: list[WorkloadCauses]


def _with_answers(tables: Tables, latency_kind: str) -> pd.DataFrame:
    """The intervals in which something was answered."""
    intervals = tables.intervals
    return intervals[(intervals["latency_kind"] == latency_kind) & (intervals["count"] > 0)]


def threshold_us(tables: Tables, percentile: float = 99.0, latency_kind: str = "response") -> float:
    """The latency at ``percentile`` of all answers of all runs together. ValueError without answers."""
    rows = _with_answers(tables, latency_kind)
    if rows.empty:
        raise ValueError(
            f"no answers per second to look at: latency_kind={latency_kind}, runs={len(tables.runs)}"
        )
    return hdr.merge(map(_decoded, rows["histogram"])).percentile_us(percentile)


def slow_seconds(tables: Tables, threshold_us: float, latency_kind: str = "response") -> pd.DataFrame:
    """One row per run and second, however long its intervals are: ``run_id, second, count, slow`` (answers,
    and those slower than the threshold)."""
    return tables.cached(_slow_seconds, threshold_us, latency_kind)


def logged_intervals(tables: Tables, latency_kind: str = "response") -> pd.DataFrame:
    """The rows of intervals of this kind, up to each run's last answer: a generator may end its log with one
    that holds none. One without an answer before that is a time in which the service stood still, and
    stays."""
    rows = tables.intervals[tables.intervals["latency_kind"] == latency_kind]
    last = rows[rows["count"] > 0].groupby("run_id")["start_s"].max()
    return rows[rows["start_s"].to_numpy() <= last.reindex(rows["run_id"]).to_numpy()]


def _slow_seconds(tables: Tables, threshold_us: float, latency_kind: str) -> pd.DataFrame:
    rows = logged_intervals(tables, latency_kind)
    known = zip(rows["histogram"].tolist(), rows["max_us"].tolist(), strict=True)
    slow = [
        _decoded(histogram).count_above(threshold_us) if max_us > threshold_us else 0
        for histogram, max_us in known
    ]
    found = (
        rows[["run_id", "second", "count"]]
        .assign(slow=np.asarray(slow, dtype=np.int64))
        .reset_index(drop=True)
    )
    if (rows["length_s"] < SECOND_S).any():
        found = found.groupby(["run_id", "second"], as_index=False, sort=False).sum()
    return found


@lru_cache(maxsize=80_000)
def _decoded(histogram: str) -> hdr.Histogram:
    """A page asks for the same intervals of the same runs several times; decoding them is most of its
    work."""
    return hdr.decode(histogram)


def alignment(tables: Tables, threshold_us: float) -> pd.DataFrame:
    """One row per slow second and event that overlaps it: ``run_id, second, slow, kind, start_s, duration_ms,
    attributes``; a slow second without an event has one row of kind NO_EVENT."""
    slow = slow_seconds(tables, threshold_us)
    slow = slow[slow["slow"] > 0]
    pairs = slow.merge(tables.cached(_considered, threshold_us), on="run_id", how="left")
    begin, end = slow_answers.felt_s(pairs)
    touching = pairs[(begin < pairs["second"] + 1) & (end > pairs["second"])]
    bare = slow.merge(
        touching[["run_id", "second"]].drop_duplicates(), on=["run_id", "second"], how="left", indicator=True
    )
    bare = bare.loc[bare["_merge"] == "left_only", ["run_id", "second", "slow"]].assign(
        kind=NO_EVENT, start_s=np.nan, duration_ms=np.nan, attributes="{}"
    )
    columns = ["run_id", "second", "slow", "kind", "start_s", "duration_ms", "attributes"]
    parts = [part[columns] for part in (touching, bare) if len(part)]
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return found.sort_values(["run_id", "second", "start_s"], ignore_index=True)


def slow_by_run(tables: Tables, threshold_us: float) -> list[SlowAnswers]:
    """Of every run when its slow answers waited and when events were felt."""
    return tables.cached(_by_run, threshold_us)


def causes(tables: Tables, threshold_us: float, draws: int = DRAWS, seed: int = 1) -> pd.DataFrame:
    """One row per kind of event, first the linked ones, those that hold most alone before the others; and
    last NO_EVENT: the slow answers that no event touches, but for kinds that are felt nearly always.

    ``time_share``: of the time in which the kind is felt; ``share``: of the slow answers that waited while it
    was; ``chance``: the same with the events of the other repeats; ``lift``: their ratio; ``share_alone``: of
    the slow answers that it touches and no other linked kind does; ``word``: LINKED, or CANNOT_TELL for the
    reason in ``why``.
    """
    return _rows(tables, threshold_us, judge(_questions(tables, threshold_us), draws, seed, tables.part))


def page_causes(
    tables: Tables, percentile: float = 99.0, most: int = 6, draws: int = DRAWS, seed: int = 1
) -> PageCauses:
    """The causes of each workload's own slow answers at the highest rate of its runs; pooled, the slowest
    workload alone would set what is slow. Without answers the limit is infinite.
    First the workload with most answers over the common threshold; ``most``: so many workloads.
    KvstudyError for a percentile that no answer can be above."""
    percentile_grid.check(percentile, maximum=False)
    limit_us = math.inf if _with_answers(tables, "response").empty else threshold_us(tables, percentile)
    parts = [(own, threshold_us(own, percentile)) for own in _workloads(tables, limit_us)[:most]]
    questions = {
        (place, kind): question
        for place, part in enumerate(parts)
        for kind, question in _questions(*part).items()
    }
    words = judge(questions, draws, seed, tables.part)
    found = [
        _rows(*part, {kind: word for (at, kind), word in words.items() if at == place})
        for place, part in enumerate(parts)
    ]
    groups = [
        WorkloadCauses(
            own.runs["workload"].iloc[0],
            own.runs["method"].iloc[0],
            float(own.runs["offered_rate_rps"].iloc[0]),
            limit,
            len(own.runs),
            rows,
        )
        for (own, limit), rows in zip(parts, found, strict=True)
    ]
    return PageCauses(limit_us, groups)


def _workloads(tables: Tables, limit_us: float) -> list[Tables]:
    """The runs of each workload at its highest rate."""
    logged = set(logged_intervals(tables)["run_id"])
    runs = tables.runs[tables.runs["run_id"].isin(logged) & ~tables.runs["closed_loop"]]
    if runs.empty:
        return []
    slow = slow_seconds(tables, limit_us).groupby("run_id")["slow"].sum()
    totals = (
        runs["run_id"].map(slow).groupby(runs["workload"]).sum().sort_values(ascending=False, kind="stable")
    )
    mine = [runs[runs["workload"] == workload] for workload in totals.index]
    return [
        tables.only(own.loc[own["offered_rate_rps"] == own["offered_rate_rps"].max(), "run_id"])
        for own in mine
    ]


def _questions(tables: Tables, threshold_us: float) -> dict[str, Question]:
    """For each kind of event that could have made an answer slow: is it linked?"""
    repeats = tables.cached(_repeats, threshold_us)
    events = tables.cached(_considered, threshold_us)
    found = {}
    for kind in sorted({kind for group in repeats for run in group for kind in run.felt_ms}):
        groups = tuple(
            Repeats(
                tuple(run.waiting for run in group),
                tuple(run.felt_ms.get(kind, np.zeros(run.bins)) for run in group),
                group[0].step_s,
            )
            for group in repeats
        )
        informative = {
            run.run_id
            for group, own in zip(repeats, groups, strict=True)
            if own.is_informative
            for run in group
        }
        found[kind] = Question(
            groups,
            int(((events["kind"] == kind) & events["run_id"].isin(informative)).sum()),
            _turn(tables, kind),
        )
    return found


def _turn(tables: Tables, kind: str) -> int:
    asked = (*set(tables.runs["workload"]), kind)  # of several workloads together it is no such pair
    return ASKED_FIRST.index(asked) if asked in ASKED_FIRST else len(ASKED_FIRST)


def _repeats(tables: Tables, threshold_us: float) -> list[list[SlowAnswers]]:
    """The runs of each configuration whose slow answers are known as finely."""
    of = (
        dict(zip(tables.runs["run_id"], configured(tables.runs)["configuration"], strict=True))
        if len(tables.runs)
        else {}
    )
    groups: dict[tuple, list[SlowAnswers]] = {}
    for run in slow_by_run(tables, threshold_us):
        groups.setdefault((of.get(run.run_id, ""), run.step_s), []).append(run)
    return list(groups.values())


def _rows(tables: Tables, threshold_us: float, words: dict[str, Judgement]) -> pd.DataFrame:
    events = tables.cached(_considered, threshold_us)
    runs = slow_by_run(tables, threshold_us)
    slow_total = sum(run.total for run in runs)
    shares = {
        kind: (_share(runs, {kind}), _chance(tables.cached(_repeats, threshold_us), kind)) for kind in words
    }
    words = {
        kind: replace(judgement, word=CANNOT_TELL, why=NO_MORE_THAN_CHANCE)
        if judgement.word == LINKED and not _is_beyond_chance(*shares[kind])
        else judgement
        for kind, judgement in words.items()
    }
    linked = {kind for kind, judgement in words.items() if judgement.word == LINKED}
    rows = []
    for kind, judgement in words.items():
        of_kind = events[events["kind"] == kind]
        share, chance = shares[kind]
        rows.append(
            {
                "cause": kind,
                "events": len(of_kind),
                "longest_ms": float(of_kind["duration_ms"].max()),
                "time_share": _time_share(runs, {kind}),
                "slow_requests": round(share * slow_total),
                "share": share,
                "chance": chance,
                "lift": share / chance if chance else np.nan,
                "p_value": judgement.p_value,
                "share_alone": share - _share(runs, {kind}, also=linked - {kind}),
                "word": judgement.word,
                "why": judgement.why,
            }
        )
    rows.sort(
        key=lambda row: (
            row["word"] != LINKED,
            -row["share_alone"] if row["word"] == LINKED else -row["share"],
            -np.nan_to_num(row["lift"]),
            row["cause"],
        )
    )
    informative = {kind for kind in words if kind in linked or _time_share(runs, {kind}) < _ALWAYS_SHARE}
    untouched = 1.0 - _share(runs, informative) if slow_total else 0.0
    rows.append(
        {
            "cause": NO_EVENT,
            "events": 0,
            "longest_ms": np.nan,
            "time_share": 1 - _time_share(runs, informative),
            "slow_requests": round(untouched * slow_total),
            "share": untouched,
            "chance": np.nan,
            "lift": np.nan,
            "p_value": np.nan,
            "share_alone": untouched,
            "word": "",
            "why": "",
        }
    )
    return pd.DataFrame(rows, columns=CAUSE_COLUMNS)


def _is_beyond_chance(share: float, chance: float) -> bool:
    """Noticeably; of what is felt nearly always it is the length that counts."""
    return chance >= _ALWAYS_SHARE or share - chance >= EXCESS_MIN * min(chance, 1 - chance)


def _chance(repeats: list[list[SlowAnswers]], kind: str) -> float:
    """Share of the slow answers that the events of the other repeats touch, at the same moment; of a run
    without repeats, its own at other times."""
    touched = 0.0
    for group in repeats:
        felt = [run.felt({kind}) for run in group]
        for place, run in enumerate(group):
            others = felt[:place] + felt[place + 1 :]
            touched += (
                float(np.mean([run.count[run.touched_by(other)].sum() for other in others]))
                if others
                else run.touched_by_chance(kind)
            )
    total = sum(run.total for group in repeats for run in group)
    return touched / total if total else 0.0


def _by_run(tables: Tables, threshold_us: float) -> list[SlowAnswers]:
    events = tables.cached(_considered, threshold_us)
    # Numbers alone where there are many rows: taking their run's name along costs more than all that is
    # worked out of them.
    answered = tables.slowest[["due_s", "response_us"]]
    answers, happened = (
        dict(iter(answered.groupby(tables.slowest["run_id"]))),
        dict(iter(events.groupby("run_id"))),
    )
    return [
        slow_answers.slow_answers_of_run(
            run_id,
            seconds,
            answers.get(run_id, answered.head(0)),
            happened.get(run_id, events.head(0)),
            threshold_us,
        )
        for run_id, seconds in slow_seconds(tables, threshold_us).groupby("run_id", sort=True)
    ]


def _considered(tables: Tables, threshold_us: float) -> pd.DataFrame:
    """Events in the window that could have made a request slow. A safepoint that holds a GC pause is that
    pause, not a second cause."""
    events = tables.events[tables.events["duration_ms"] >= SHORTEST_SHARE * threshold_us / 1e3]
    events = events[slow_answers.felt_s(events)[1] >= 0]
    pauses = events[events["kind"] == "gc_pause"]
    same = pd.Series(False, index=events.index)
    for run_id, own in events[events["kind"] == "safepoint"].groupby("run_id"):
        of_run = pauses[pauses["run_id"] == run_id]
        begin, end = (
            own["start_s"].to_numpy()[:, None],
            (own["start_s"] + own["duration_ms"] / 1e3).to_numpy()[:, None],
        )
        other_begin, other_end = (
            of_run["start_s"].to_numpy(),
            (of_run["start_s"] + of_run["duration_ms"] / 1e3).to_numpy(),
        )
        same.loc[own.index] = ((other_begin < end) & (other_end > begin)).any(axis=1)
    return events[~same]


def _share(runs: list[SlowAnswers], kinds: set[str], also: set[str] | None = None) -> float:
    """Share of slow answers touched by ``kinds`` and, when given, by ``also`` too."""
    total = sum(run.total for run in runs)
    hit = sum(
        run.count[run.touched(kinds) & (True if also is None else run.touched(also))].sum() for run in runs
    )
    return float(hit / total) if total else 0.0


def _time_share(runs: list[SlowAnswers], kinds: set[str]) -> float:
    bins = sum(run.bins * run.step_s for run in runs)
    return float(sum(run.felt(kinds).sum() * run.step_s for run in runs) / bins) if bins else 0.0
