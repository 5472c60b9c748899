"""What was found, as sentences: each with its number, its interval, the runs it rests on, and the page that shows it.

``told(tables)`` writes them all. All numbers are computed from the tables on the spot: a study of other runs says other things in the
same words. No finding rests on an invalid run; where a question was measured and every run of it is invalid, the answer is *cannot
tell*, with the checks that failed. A question that was not measured has no line.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from IPython.display import Markdown

from kvstudy.analyse import rates
from kvstudy.analyse.comparison import families
from kvstudy.analyse.configuration import SERIES, comparisons, configured
from kvstudy.analyse.comparison.words import CANNOT_TELL, DIFFERENT, MIN_RUNS, SAME
from kvstudy.analyse.tables import Tables
from kvstudy.present import words
from kvstudy.present.figures.rate import saturation_points
from kvstudy.present.spreads import spread

# Experiments about the ruler, not about the service.
RULER = ("instrument", "generators", "wrk2", "stall", "noise", "profile-cost", "workloads")
_GROUP = [*SERIES, "connections", "threads"]


@dataclass(frozen=True)
class Finding:
    """``sentence`` in Markdown; ``page``: the notebook that shows it; ``runs``: how many it rests on."""

    sentence: str
    page: str
    runs: int

    def line(self) -> str:
        return f"- {self.sentence} *({words.counted(self.runs, 'run')}; [{self.page}]({self.page}.ipynb))*"


Rule = Callable[[Tables], Finding | None]


def told(tables: Tables, rules: tuple[Rule, ...] | None = None) -> Markdown:
    """Every finding that the runs support, as a list; a sentence when there is none."""
    found = [finding for rule in (RULES if rules is None else rules) if (finding := rule(tables)) is not None]
    return listed(found, "No valid run supports a finding yet. Measure with `make reproduce`.")


def listed(found: list[Finding], otherwise: str) -> Markdown:
    """``found`` as a list, or the sentence ``otherwise``."""
    return Markdown("\n".join(finding.line() for finding in found) or otherwise)


def of_the_service(tables: Tables) -> Tables:
    """Without the experiments about the ruler."""
    return tables.only(tables.runs.loc[~tables.runs["experiment"].isin(RULER), "run_id"])


def cannot_tell(title: str, page: str, tables: Tables) -> Finding | None:
    """The finding of a question whose runs are all invalid; None when nothing was measured."""
    runs = tables.runs[~tables.runs["profiled"]]
    if runs.empty:
        return None
    failed = tables.validity[(tables.validity["verdict"] == "FAIL") & tables.validity["run_id"].isin(runs["run_id"])]["check"].value_counts()
    if len(tables.believed().runs):
        return Finding(f"**{title}:** {CANNOT_TELL}: the runs that count are not of both sides, or have too few samples.", page, len(runs))
    why = words.several([f"{check} ({count})" for check, count in failed.head(3).items()])
    return Finding(f"**{title}:** {CANNOT_TELL}: none of its runs counts; checks failed: {why}.", page, len(runs))


def held_rates(tables: Tables) -> pd.DataFrame:
    """One row per series and number of connections: the highest offered rate that was held, and the one that was not.

    Only of runs that speak about their rate (analyse.rates).
    """
    runs = configured(rates.about_rate(tables).runs)
    if runs.empty:
        return pd.DataFrame(columns=[*_GROUP, "highest_held_rps", "saturation_rps"])
    return saturation_points(runs, _GROUP)


def _fastest_and_slowest(tables: Tables) -> Finding | None:
    """p99 of each workload at the rate and connections that most workloads share."""
    tables = of_the_service(tables)
    points = at(tables, 99)
    if points.empty:
        return cannot_tell("p99 response time", "03-percentiles", tables.select(closed_loop=False))
    place = ["experiment", "connections", "threads", "offered_rate_rps"]
    shared = points.groupby(place)["workload"].nunique()
    best = shared[shared == shared.max()].index[-1]
    here = points.set_index(place).sort_index().loc[[best]]
    medians = here.groupby("workload")["latency_us"].median().sort_values()
    parts = [f"{workload} {spread(here.loc[here['workload'] == workload, 'latency_us'], words.latency)}" for workload in medians.index]
    where = f"{words.rate(best[3])} on {words.value('connections', best[1])}"
    return Finding(f"**p99 response time at {where}:** {'; '.join(parts)}.", "03-percentiles", len(here))


def _highest_held(tables: Tables) -> Finding | None:
    """Of the runs at rates that were chosen beforehand; searches have a finding of their own."""
    tables = of_the_service(tables).select(search="")
    held, runs = held_rates(tables), rates.about_rate(tables).runs
    if held.empty:
        return cannot_tell("Rates chosen beforehand", "04-capacity", tables.select(closed_loop=False))
    title = f"**Rates chosen beforehand,** at most {words.rate(runs['offered_rate_rps'].max())}:"
    combinations = f"{words.counted(len(held), 'combination')} of workload, connections and options"
    lost = held.dropna(subset=["saturation_rps"])
    if lost.empty:
        return Finding(f"{title} {len(held)} of {combinations} held every rate that they were offered; what saturates them lies above.", "04-capacity", len(runs))
    first, highest = lost.loc[lost["saturation_rps"].idxmin()], held["highest_held_rps"].max()
    best = "none was held" if np.isnan(highest) else f"the highest that was held is {words.rate(highest)}"
    variant = f" ({first['variant']})" if first["variant"] else ""
    sentence = (
        f"{title} {best}. {len(lost)} of {combinations} met a rate that they did not hold, the lowest {words.rate(first['saturation_rps'])} by "
        f"{first['workload']}{variant} on {words.value('connections', first['connections'])}."
    )
    return Finding(sentence, "04-capacity", len(runs))


def _repeated_against_unique(tables: Tables) -> Finding | None:
    rows = pd.concat([comparisons(of_the_service(tables), "workload", f"unique_{method}", f"repeated_{method}", (99.0,), share=families.SMALL / 2) for method in ("put", "get")])
    rows = rows[rows["measure"] == "p99"]
    if rows.empty:
        return None
    shown = [rows[rows["workload"] == workload].iloc[-1] for workload in rows["workload"].unique()]
    parts = [
        f"repeated_{row.workload.removeprefix('unique_')} has {words.times(row.ratio)}{words.interval(row.low, row.high, words.times)} the p99 of "
        f"{row.workload} at {words.rate(row.offered_rate_rps)} on {words.value('connections', row.connections)} ({words.word(row)})"
        for row in shown
    ]
    return Finding(f"**Repeated against unique keys:** {'; '.join(parts)}.", "03-percentiles", int(sum(row.runs_before + row.runs_after for row in shown)))


def _more_connections(tables: Tables) -> Finding | None:
    tables = tables.select(experiment="reproduce")
    sizes = sorted(tables.runs.loc[~tables.runs["profiled"], "connections"].unique())
    rows = comparisons(tables, "connections", sizes[0], sizes[-1], (99.0,), share=families.SMALL) if len(sizes) > 1 else pd.DataFrame({"measure": []})
    rows = rows[rows["measure"] == "p99"]
    if rows.empty:
        return None
    certain = rows[rows["word"].isin(DIFFERENT)]
    row = certain.loc[(certain["ratio"] - 1).abs().idxmax()] if len(certain) else rows.iloc[-1]
    sentence = (
        f"**{sizes[-1]} connections against {sizes[0]} at the same rate:** {(rows['word'] == 'faster').sum()} faster, {(rows['word'] == 'slower').sum()} slower, "
        f"{_others(rows)}of {words.counted(len(rows), 'comparison')} of p99; for example {row['workload']} at {words.rate(row['offered_rate_rps'])}: "
        f"{words.times(row['ratio'])}{words.interval(row['low'], row['high'], words.times)} ({words.word(row)})."
    )
    return Finding(sentence, "06-before-after", int(rows[["runs_before", "runs_after"]].sum().sum()))


def _others(rows: pd.DataFrame) -> str:
    """Of the words that decide no direction those that were said: "2 the same, 3 cannot tell, "."""
    return "".join(f"{count} {word}, " for word in (SAME, CANNOT_TELL) if (count := int((rows["word"] == word).sum())))


def _waiting(tables: Tables) -> Finding | None:
    """Where response time exceeds service time the most, of valid runs: that gap is what a closed loop would hide."""
    tables = of_the_service(tables)
    response, service = at(tables, 99), at(tables, 99, "service")
    pairs = response.merge(service[["run_id", "latency_us"]], on="run_id", suffixes=("", "_service"))
    if pairs.empty:
        return cannot_tell("Waiting that service time hides", "03-percentiles", tables.select(closed_loop=False))
    gap = pairs.groupby("configuration").agg(response=("latency_us", "median"), service=("latency_us_service", "median"), runs=("run_id", "size"),
                                              workload=("workload", "first"), rate=("offered_rate_rps", "first"), connections=("connections", "first"))  # fmt: skip
    gap = gap[gap["runs"] >= min(MIN_RUNS, gap["runs"].max())]  # one run more or less is no median
    worst = gap.loc[(gap["response"] / gap["service"]).idxmax()]
    if worst["response"] < 1.1 * worst["service"]:
        return None
    sentence = (
        f"**Waiting that service time hides:** {worst['workload']} at {words.rate(worst['rate'])} on {words.value('connections', worst['connections'])}, a rate that "
        f"was held, has p99 {words.latency(worst['service'])} from the send and {words.latency(worst['response'])} from the intended start, "
        f"{words.times(worst['response'] / worst['service'])} as much."
    )
    return Finding(sentence, "03-percentiles", int(worst["runs"]))


def at(tables: Tables, percentile: float, latency_kind: str = "response") -> pd.DataFrame:
    """Believed runs at a rate with their latency at ``percentile``; one row per run."""
    chosen = tables.believed()
    points = chosen.percentiles
    points = points[(points["latency_kind"] == latency_kind) & np.isclose(points["percentile"], percentile) & points["latency_us"].notna()]
    runs = configured(chosen.runs)
    return runs[~runs["closed_loop"]].merge(points[["run_id", "latency_us"]], on="run_id")


RULES: tuple[Rule, ...] = (_fastest_and_slowest, _highest_held, _repeated_against_unique, _more_connections, _waiting)
