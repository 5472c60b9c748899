"""What was found, as sentences: each with its number, its interval, the runs it rests on, and the page that shows it.

``told(tables)`` writes them all; a finding whose runs were not measured, or not validly, is left out, never guessed. All numbers are
computed from the tables on the spot: a study of other runs says other things in the same words.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from IPython.display import Markdown

from kvstudy.analyse.configuration import comparisons, configured
from kvstudy.analyse.statistics import CANNOT_TELL
from kvstudy.analyse.tables import Tables
from kvstudy.present import words
from kvstudy.present.figures.rate import saturation_points
from kvstudy.present.summary import spread


@dataclass(frozen=True)
class Finding:
    """``sentence`` in Markdown; ``page``: the notebook that shows it; ``runs``: how many it rests on."""

    sentence: str
    page: str
    runs: int

    def line(self) -> str:
        return f"- {self.sentence} *({self.runs} runs; [{self.page}]({self.page}.ipynb))*"


def told(tables: Tables) -> Markdown:
    """Every finding that the runs support, as a list; a sentence when there is none."""
    found = [finding for rule in RULES if (finding := rule(tables)) is not None]
    if not found:
        return Markdown("No valid run supports a finding yet. Measure with `make reproduce`.")
    return Markdown("\n".join(finding.line() for finding in found))


def held_rates(tables: Tables) -> pd.DataFrame:
    """One row per series and number of connections: the highest offered rate that was held, and the one that was not."""
    runs = configured(tables.runs[~tables.runs["profiled"]])
    if runs[~runs["closed_loop"]].empty:
        return pd.DataFrame(columns=["experiment", "label", "variant", "workload", "connections", "threads", "highest_held_rps", "saturation_rps"])
    return saturation_points(runs, ["experiment", "label", "variant", "workload", "connections", "threads"])


def _fastest_and_slowest(tables: Tables) -> Finding | None:
    """p99 of each workload at the rate and connections that most workloads share."""
    points = _at(tables, 99)
    if points.empty:
        return None
    shared = points.groupby(["experiment", "connections", "threads", "offered_rate_rps"])["workload"].nunique()
    best = shared[shared == shared.max()].index[-1]
    here = points.set_index(["experiment", "connections", "threads", "offered_rate_rps"]).sort_index().loc[[best]]
    medians = here.groupby("workload")["latency_us"].median().sort_values()
    parts = [f"{workload} {spread(here.loc[here['workload'] == workload, 'latency_us'], words.latency)}" for workload in medians.index]
    place = f"{words.rate(best[3])} on {words.value('connections', best[1])}"
    return Finding(f"**p99 response time at {place}:** {'; '.join(parts)}.", "03-percentiles", len(here))


def _highest_held(tables: Tables) -> Finding | None:
    held = held_rates(tables).dropna(subset=["highest_held_rps"])
    if held.empty:
        return None
    best = held.loc[held["highest_held_rps"].idxmax()]
    lost = held["saturation_rps"].notna().sum()
    above = "no offered rate saturated it" if np.isnan(best["saturation_rps"]) else f"at {words.rate(best['saturation_rps'])} it did not keep up"
    sentence = (
        f"**Highest rate held:** {words.rate(best['highest_held_rps'])} by {best['workload']} on {words.value('connections', best['connections'])}; {above}. "
        f"{lost} of {len(held)} combinations of workload and connections met a rate that they could not hold."
    )
    return Finding(sentence, "03-percentiles", int((~tables.runs["profiled"]).sum()))


def _repeated_against_unique(tables: Tables) -> Finding | None:
    rows = pd.concat([comparisons(tables, "workload", f"unique_{method}", f"repeated_{method}", (99.0,)) for method in ("put", "get")])
    if rows.empty:
        return None
    words_of = [
        f"repeated_{row.workload.removeprefix('unique_')} p99 is {words.times(row.ratio)}{words.interval(row.low, row.high, words.times)} that of "
        f"{row.workload} at {words.rate(row.offered_rate_rps)}, {words.value('connections', row.connections)} ({row.word})"
        for row in (rows[rows["workload"] == workload].iloc[-1] for workload in rows["workload"].unique())
    ]
    counted = int(rows[["runs_before", "runs_after"]].sum().sum())
    return Finding(f"**Repeated against unique keys:** {'; '.join(words_of)}.", "06-before-after", counted)


def _more_connections(tables: Tables) -> Finding | None:
    sizes = sorted(tables.runs.loc[~tables.runs["profiled"], "connections"].unique())
    if len(sizes) < 2:
        return None
    rows = comparisons(tables, "connections", sizes[0], sizes[-1], (99.0,))
    rows = rows[rows["measure"] == "p99"]
    if rows.empty:
        return None
    certain = rows[rows["word"] != CANNOT_TELL]
    row = certain.loc[(certain["ratio"] - 1).abs().idxmax()] if len(certain) else rows.iloc[-1]
    sentence = (
        f"**{sizes[-1]} connections against {sizes[0]} at the same rate:** {(rows['word'] == 'faster').sum()} faster, {(rows['word'] == 'slower').sum()} slower, "
        f"{(rows['word'] == CANNOT_TELL).sum()} cannot tell, of {len(rows)} comparisons of p99; for example {row['workload']} at {words.rate(row['offered_rate_rps'])}: "
        f"{words.times(row['ratio'])}{words.interval(row['low'], row['high'], words.times)} ({row['word']})."
    )
    return Finding(sentence, "06-before-after", int(rows[["runs_before", "runs_after"]].sum().sum()))


def _waiting(tables: Tables) -> Finding | None:
    """Where response time exceeds service time the most, valid or not: that gap is what a closed loop would hide."""
    response, service = _at(tables, 99, believed=False), _at(tables, 99, "service", believed=False)
    pairs = response.merge(service[["run_id", "latency_us"]], on="run_id", suffixes=("", "_service"))
    if pairs.empty:
        return None
    gap = pairs.groupby("configuration").agg(response=("latency_us", "median"), service=("latency_us_service", "median"), runs=("run_id", "size"),
                                              workload=("workload", "first"), rate=("offered_rate_rps", "first"), connections=("connections", "first"))  # fmt: skip
    worst = gap.loc[(gap["response"] / gap["service"]).idxmax()]
    if worst["response"] < 1.1 * worst["service"]:
        return None
    sentence = (
        f"**Waiting that service time hides:** {worst['workload']} at {words.rate(worst['rate'])} on {words.value('connections', worst['connections'])} has p99 "
        f"{words.latency(worst['service'])} from the send and {words.latency(worst['response'])} from the intended start, {words.times(worst['response'] / worst['service'])} as much."
    )
    return Finding(sentence, "03-percentiles", int(worst["runs"]))


def _at(tables: Tables, percentile: float, latency_kind: str = "response", believed: bool = True) -> pd.DataFrame:
    """Open-loop latency runs with their latency at ``percentile``."""
    chosen = tables.believed() if believed else tables.select(profiled=False)
    points = chosen.percentiles
    points = points[(points["latency_kind"] == latency_kind) & np.isclose(points["percentile"], percentile) & points["latency_us"].notna()]
    runs = configured(chosen.runs)
    return runs[~runs["closed_loop"]].merge(points[["run_id", "latency_us"]], on="run_id")


RULES: tuple[Callable[[Tables], Finding | None], ...] = (
    _fastest_and_slowest, _highest_held, _repeated_against_unique, _more_connections, _waiting,
)  # fmt: skip
