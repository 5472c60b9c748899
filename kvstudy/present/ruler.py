"""What the instrument page says about certainty and about the profiler, as tables for people; each is one call.

    notebook.show(ruler.certainty(tables.select(experiment="noise")))
    notebook.show(ruler.profiling_cost(tables.select(experiment="profile-cost")))
"""

import pandas as pd

from kvstudy.analyse import noise
from kvstudy.analyse.profiling_cost import cost
from kvstudy.analyse.statistics import MIN_RUNS
from kvstudy.analyse.tables import Tables
from kvstudy.present import words


def certainty(tables: Tables, repeats: int = MIN_RUNS, ratio: float = 1.05) -> pd.DataFrame:
    """One row per percentile of response time: what ``repeats`` runs a side can tell at the noise of these runs (``analyse.noise.certainty``)."""
    change = f"{100 * (ratio - 1):.3g} %"
    columns = ["measure", "noise of", "repeats spread by", f"false alarms, {repeats} runs a side", f"finds a change of {change}",
               "runs a side to find it in 4 of 5"]  # fmt: skip
    rows = [
        [row.measure, f"{row.runs} runs of {row.configurations} configurations", f"± {row.spread_percent:.1f} %", words.share(row.false_positive_share),
         words.share(row.power_share), "over 30" if pd.isna(row.repeats_needed) else str(row.repeats_needed)]
        for row in noise.certainty(tables, repeats=repeats, ratio=ratio).itertuples()
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def profiling_cost(tables: Tables) -> pd.DataFrame:
    """One row per configuration and measure: without and with the profiler, the ratio with its interval (``analyse.profiling_cost.cost``)."""
    columns = ["word", "workload", "connections", "measure", "without", "with the profiler", "ratio", "runs"]
    rows = [
        [row.word, row.workload, row.connections, row.measure, _told(row.measure, row.without), _told(row.measure, row.with_profiler),
         words.times(row.ratio) + words.interval(row.low, row.high, words.times), f"{row.runs_without} and {row.runs_with}"]
        for row in cost(tables).itertuples()
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _told(measure: str, value: float) -> str:
    return words.rate(value) if measure == "achieved rate" else words.latency(value)
