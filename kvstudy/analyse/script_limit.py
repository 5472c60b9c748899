"""Is a workload's script what limits any run against the store? What a thread could send alone, in closed
loops on a server that does nothing, against what it was asked for.

    found = script_limit(scripts, every)      ``scripts``: runs of the scripts alone; ``every``: all runs
    found.near                                the workloads whose script may be what limits a run
"""

from dataclasses import dataclass

import pandas as pd

from kvstudy.analyse.configuration import each_configuration
from kvstudy.analyse.medians import median
from kvstudy.analyse.tables import Tables

NEAR = 0.8  # a script that is asked for more of what it can send may be what limits a run


@dataclass(frozen=True)
class ScriptLimit:
    """Requests per second and thread. ``sent_rps``: alone, by workload, the slowest first. ``at_rates`` and
    ``in_loops``: one row per workload, the largest ``share`` first, with what is ``sent_rps``, and the most
    that a run at a constant rate asked of a thread, or that a closed loop against the store sent
    (``asked_rps``). ``without``: workloads of such runs whose script was not measured alone."""

    sent_rps: pd.Series
    at_rates: pd.DataFrame
    in_loops: pd.DataFrame
    without: tuple[str, ...]

    @property
    def near(self) -> list[str]:
        return sorted({name for part in (self.at_rates, self.in_loops) for name in near(part)})

    @property
    def is_compared(self) -> bool:
        return len(self.at_rates) + len(self.in_loops) > 0


def script_limit(scripts: Tables, every: Tables) -> ScriptLimit:
    sent = _sent(scripts.believed().runs)
    runs = every.runs[
        (every.runs["server"] == "kv-service")
        & (every.runs["generator"] == "loadgen")
        & ~every.runs["profiled"]
        & (every.runs["outcome"] == "completed")
    ]
    closed = runs["closed_loop"]
    return ScriptLimit(
        sent.sort_values(),
        _beside(sent, runs[~closed], "offered_rate_rps"),
        _beside(sent, runs[closed], "achieved_rate_rps"),
        tuple(sorted(set(runs["workload"]) - set(sent.index))),
    )


def near(part: pd.DataFrame) -> list[str]:
    """The workloads of ``at_rates`` or ``in_loops`` of which over NEAR of what a thread can send was
    asked."""
    return list(part.index[part["share"] > NEAR])


def _sent(runs: pd.DataFrame) -> pd.Series:
    """Only repeats share a median; of several configurations the one that sends least is what a script can be
    relied on for."""
    found: dict[str, float] = {}
    for _, part in each_configuration(runs):
        workload = part["workload"].iloc[0]
        rate = median(part["achieved_rate_rps"] / part["threads"])
        found[workload] = min(rate, found.get(workload, rate))
    return pd.Series(found, dtype=float)


def _beside(sent: pd.Series, runs: pd.DataFrame, column: str) -> pd.DataFrame:
    asked = (runs[column] / runs["threads"]).groupby(runs["workload"]).max()
    both = pd.DataFrame({"sent_rps": sent, "asked_rps": asked}, dtype=float).dropna()
    return both.assign(share=both["asked_rps"] / both["sent_rps"]).sort_values("share", ascending=False)
