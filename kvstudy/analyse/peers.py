"""The service beside other programs that keep a value under a key: response times and the rates that were
held, by the size of the values.

    peers(tables)            what answered, the baseline first
    sized(tables)            the latency runs at a rate with ``value_bytes``
    compared(tables)         every other against the baseline: a word for each measure at each place
    held(tables)             the highest rate that each held, and the lowest that it did not
    expected(tables)         did each of them do at one place what page 10 expected of it?
"""

import json

import numpy as np
import pandas as pd

from kvstudy.analyse import percentile_grid, rates
from kvstudy.analyse.capacity import HELD, NOT_HELD
from kvstudy.analyse.comparison import families
from kvstudy.analyse.comparison.words import CANNOT_TELL, MIN_RUNS
from kvstudy.analyse.configuration import (
    COMPARISON_COLUMNS,
    comparisons,
    configured,
    each_configuration,
    with_words,
)
from kvstudy.analyse.tables import Tables
from kvstudy.plan.subject import EMPTY, KV_SERVICE

EXPERIMENT = "peers"
COLUMNS = ["server", "value_bytes", *COMPARISON_COLUMNS]
HELD_COLUMNS = [
    "server",
    "workload",
    "value_bytes",
    "connections",
    "differs",
    "highest_held_rps",
    "saturation_rps",
    "runs",
    "fewest",
]


def peers(tables: Tables) -> list[str]:
    """Ours first, then by name; last the empty server, which keeps nothing and so is nobody's peer."""
    return sorted(set(tables.runs["server"]), key=lambda name: (name == EMPTY, name != KV_SERVICE, name))


def sized(tables: Tables) -> pd.DataFrame:
    runs = configured(tables.runs[~tables.runs["profiled"] & ~tables.runs["closed_loop"]])
    return runs.assign(value_bytes=value_bytes(runs))


def value_bytes(runs: pd.DataFrame) -> pd.Series:
    """0 where the size is not known."""
    sizes = [json.loads(text or "{}").get("value_bytes") or 0 for text in runs["workload_args"]]
    return pd.Series(sizes, index=runs.index, dtype="int64")


def compared(tables: Tables, percentiles: tuple[float, ...] = (50.0, 99.0)) -> pd.DataFrame:
    """COLUMNS: ratios of each ``server`` to the baseline, in the words of all others; one family."""
    baseline, *others = peers(tables) or [""]
    runs, parts = sized(tables), []
    for size, of_size in runs.groupby("value_bytes"):
        mine = tables.only(of_size["run_id"])
        for other in others:
            rows = comparisons(mine, "server", baseline, other, percentiles, cpu=True, share=None)
            parts.append(rows.assign(server=other, value_bytes=size))
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    return with_words(pd.concat(parts, ignore_index=True), families.OWN_PAGE * tables.part)[COLUMNS]


def held(tables: Tables) -> pd.DataFrame:
    """HELD_COLUMNS, of the runs that say whether their rate was held: a row for each configuration, with what
    tells it from others of its place (``differs``), which share no median with it."""
    found = rates.runs_with_rate_outcome(tables)
    found = found.assign(value_bytes=value_bytes(found))
    parts = [
        rates.saturation_points(part.assign(differs=differs), HELD_COLUMNS[:5])
        for _, of_place in found.groupby(HELD_COLUMNS[:4])
        for differs, part in each_configuration(of_place, along=["offered_rate_rps"])
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=HELD_COLUMNS)


def expected(tables: Tables, rate_rps: float, size: int, p50_us: float = np.inf) -> dict[str, str]:
    """HELD, NOT_HELD or *cannot tell* of each program with runs at ``rate_rps`` and values of ``size`` bytes:
    that it holds the rate, and the median of each valid run is under ``p50_us``."""
    runs = tables.runs[tables.runs["offered_rate_rps"] == rate_rps]
    there = tables.only(runs.loc[value_bytes(runs) == size, "run_id"])
    rows = held(there)
    at = there.believed().percentiles
    at = at[(at["latency_kind"] == "response") & percentile_grid.at(at["percentile"], 50.0)]
    medians = at.merge(there.runs[["run_id", "server"]], on="run_id").groupby("server")["latency_us"]
    lowest, highest = medians.min(), medians.max()
    verdicts = {}
    for server, of in rows.groupby("server"):
        if of["fewest"].min() < MIN_RUNS:
            verdicts[server] = CANNOT_TELL
        elif of["saturation_rps"].notna().any() or lowest.get(server, 0) >= p50_us:
            verdicts[server] = NOT_HELD
        else:
            verdicts[server] = HELD if highest.get(server, np.inf) < p50_us else CANNOT_TELL
    return verdicts
