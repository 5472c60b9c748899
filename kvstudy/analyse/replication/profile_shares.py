"""The shares that reports read off their profiles, beside those of our profiles."""

from dataclasses import dataclass

import pandas as pd

from kvstudy.analyse import frames
from kvstudy.analyse.comparison.words import CANNOT_TELL
from kvstudy.analyse.published import Published
from kvstudy.analyse.replication.measures import comparable_profiled_runs
from kvstudy.analyse.replication.verdicts import share_verdict
from kvstudy.analyse.tables import Tables

_PROFILE = ["report", "method", "offered_rate_rps", "stage", "event", "subsystem"]


@dataclass(frozen=True)
class ProfileShare:
    """``parts``: those of the report's parts that are of this subsystem; ``theirs_percent``: their sum.
    ``ours``: the subsystem's share, 0 to 1, in each of our profiled runs that count; ``at_rates_rps``: of
    these runs; ``lost``: so many more the service lost there by its own doing, beside which nothing is
    decided."""

    report: int
    method: str
    offered_rate_rps: float
    event: str
    subsystem: str
    parts: pd.DataFrame
    theirs_percent: float
    ours: pd.Series
    at_rates_rps: tuple[float, ...]
    lost: int
    verdict: str


def compare(published: Published, tables: Tables) -> list[ProfileShare]:
    """One for each report, profile and subsystem of ours, beside our valid profiled runs of the same method,
    handler and rate.

    Of a report that has no profiled experiment of its own (measures.PROFILED_BY) ours are at the rates around
    its own; where they lie on one side of it, nothing is decided.
    """
    found = []
    groups = published.profile_shares.groupby(_PROFILE, sort=False)
    for (report, method, rate, stage, event, subsystem), parts in groups:
        profiled, lost = comparable_profiled_runs(tables, report, method, stage, rate)
        ours = _of_each_run(profiled, event, subsystem)
        theirs = float(parts["share_percent"].sum())
        at = tuple(sorted(profiled.select(run_id=list(ours.index)).runs["offered_rate_rps"].unique()))
        verdict = share_verdict(theirs, 100 * ours)
        if len(ours) and (lost or not at[0] <= rate <= at[-1]):
            verdict = CANNOT_TELL
        found.append(
            ProfileShare(report, method, rate, event, subsystem, parts, theirs, ours, at, lost, verdict)
        )
    return found


def _of_each_run(profiled: Tables, event: str, subsystem: str) -> pd.Series:
    """The share in every run that has a profile of ``event``: 0 where the subsystem has no sample."""
    shares = frames.shares(profiled.stacks)
    mine = shares[(shares["event"] == event) & (shares["subsystem"] == subsystem)]
    runs = profiled.stacks.loc[profiled.stacks["event"] == event, "run_id"].unique()
    return mine.set_index("run_id")["share"].reindex(runs, fill_value=0.0)
