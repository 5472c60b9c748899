"""The answer to each question of the study as claims: pure functions of tables. ``present.findings`` and
``present.answers`` tell them.

    ruler.py       can the ruler be trusted?
    service.py     how fast is it, which rates does it hold, what does waiting add?
    options.py     what does each option do?
    profiles.py    where does the time go?
    tail.py        what makes slow answers slow?

A question that nobody measured has no answer (None). One whose runs all fail a check, or lack a side, has an
Answer without claims, which says how many runs there are and which checks failed.
"""

from dataclasses import dataclass

import pandas as pd

from kvstudy.analyse import percentile_grid
from kvstudy.analyse.claim import Claim, Place
from kvstudy.analyse.configuration import configured
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.validity import FAIL
from kvstudy.plan.subject import EMPTY, KV_SERVICE
from kvstudy.service_failure import what_ended

# Experiments about the ruler, not about the service.
RULER = ("instrument", "generators", "wrk2", "stall", "noise", "profile-cost", "workloads")


@dataclass(frozen=True)
class Answer:
    """``runs``: how many it rests on, each once; ``launches``: of duets. Without claims: ``failed`` has the
    checks that failed and how often; none where runs count, but not those of both sides, or ``why`` says what
    else forbids one."""

    claims: tuple[Claim, ...]
    runs: int
    failed: tuple[tuple[str, int], ...] = ()
    why: str = ""
    launches: int = 0

    @property
    def decides(self) -> int:
        """How many of its claims say something: a word, or of plain numbers one with an interval."""
        return sum(map(_says_something, self.claims))


def left_open(mine: Answer | None, theirs: Answer | None) -> tuple[Claim, ...]:
    """The claims of ``theirs`` that say something where ``mine`` says nothing of the same thing."""
    said = {_what(claim) for claim in (mine.claims if mine else ()) if _says_something(claim)}
    return tuple(
        claim
        for claim in (theirs.claims if theirs else ())
        if _says_something(claim) and _what(claim) not in said
    )


def _says_something(claim: Claim) -> bool:
    return claim.decided or (not claim.word and claim.interval is not None)


def _what(claim: Claim) -> tuple[Place, str, str, str]:
    return claim.subject, claim.measure, claim.baseline, claim.variant


def unanswered(tables: Tables) -> Answer | None:
    """Of a question none of whose runs can answer; None when nothing was measured."""
    runs = tables.runs[~tables.runs["profiled"]]
    if runs.empty:
        return None
    if len(tables.believed().runs):
        return Answer((), len(runs))
    return Answer((), len(runs), failed_checks(tables, runs))


def failed_checks(tables: Tables, runs: pd.DataFrame, most: int = 3) -> tuple[tuple[str, int], ...]:
    """The checks that ``runs`` failed most often; of runs that did not complete, what ended them."""
    failed = tables.validity[
        (tables.validity["verdict"] == FAIL) & tables.validity["run_id"].isin(runs["run_id"])
    ]
    ended = failed["check"] == "completed"
    names = failed["check"].mask(ended, failed["observed"].map(what_ended)).value_counts()
    return tuple((str(name), int(count)) for name, count in names.head(most).items())


def service_tables(tables: Tables) -> Tables:
    """Without the experiments about the ruler, the empty server, and the peers beside our service."""
    runs = tables.runs
    has_ours = runs["experiment"].isin(runs.loc[runs["server"] == KV_SERVICE, "experiment"])
    is_peer = has_ours & (runs["server"] != KV_SERVICE)
    others = runs["experiment"].isin(RULER) | is_peer | (runs["server"] == EMPTY)
    return tables.only(runs.loc[~others, "run_id"])


def latency_at(tables: Tables, percentile: float, latency_kind: str = "response") -> pd.DataFrame:
    """Believed runs at a rate with ``latency_us`` at ``percentile``; one row per run."""
    chosen = tables.believed()
    points = chosen.percentiles
    points = points[
        (points["latency_kind"] == latency_kind)
        & percentile_grid.at(points["percentile"], percentile)
        & points["latency_us"].notna()
    ]
    runs = configured(chosen.runs)
    return runs[~runs["closed_loop"]].merge(points[["run_id", "latency_us"]], on="run_id")
