"""What repeats of one configuration differ by, and which difference they could therefore find.

    by_configuration(tables)      one row per configuration of the service and measure: noise, runs, what
                                  these runs can find
    certainty(tables)             one row per measure over all configurations

Each configuration has its own noise: a store under PUT spreads more than an empty server, and a mean of both
describes neither. So power is computed for each, from its own repeats, and runs of a server that does nothing
do not count.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from kvstudy.analyse import percentile_grid
from kvstudy.analyse.comparison import pairs, power
from kvstudy.analyse.comparison.words import MIN_RUNS
from kvstudy.analyse.configuration import CPU, RESOLUTION_US, configured
from kvstudy.analyse.tables import Tables

REPEATS = 6  # a side, as most comparisons of options have
COLUMNS = [
    "measure",
    "configurations",
    "runs",
    "noise_percent",
    "noise_least_percent",
    "noise_most_percent",
    "share_found",
    "share_found_least",
    "share_found_most",
    "found_percent",
    "runs_needed",
]


def by_configuration(
    tables: Tables,
    percentiles: Sequence[float] = (50.0, 99.0, 99.9),
    repeats: int = REPEATS,
    ratio: float = 1.05,
) -> pd.DataFrame:
    """Columns: configuration, workload, connections, offered_rate_rps, measure, runs, noise (standard
    deviation of the logarithm), share_found (how often ``repeats`` runs a side find a true ``ratio``), found
    (the ratio that they find in four of five), runs_needed (a side, to find ``ratio`` so; infinite: over
    100), slack (of the logarithm of a ratio, which whole microseconds hide). Believed runs of the service, of
    configurations with at least MIN_RUNS of them."""
    believed = tables.select(server="kv-service").believed()
    runs = configured(believed.runs)
    points = believed.percentiles[
        (believed.percentiles["latency_kind"] == "response") & (believed.percentiles["latency_us"] > 0)
    ]
    values = {
        f"p{percentile:g}": points.loc[
            percentile_grid.at(points["percentile"], percentile), ["run_id", "latency_us"]
        ]
        for percentile in percentiles
    }
    values[CPU] = runs.loc[runs["service_cpu_us_per_answer"] > 0, ["run_id", "service_cpu_us_per_answer"]]
    rows = []
    for measure, value in values.items():
        measured = runs.merge(value.set_axis(["run_id", "value"], axis=1), on="run_id")
        for configuration, group in measured.groupby("configuration", sort=True):
            if len(group) >= MIN_RUNS:
                noise, middle = float(np.log(group["value"]).std(ddof=1)), float(group["value"].median())
                slack = pairs.slack(middle, middle, 0.0 if measure == CPU else RESOLUTION_US)
                known = {"slack": slack, "freedom": len(group) - 1}
                rows.append(
                    [
                        configuration,
                        *group[["workload", "connections", "offered_rate_rps"]].iloc[0],
                        measure,
                        len(group),
                        noise,
                        power.share_found(noise, repeats, repeats, ratio, **known),
                        power.detectable(noise, repeats, repeats, **known),
                        power.runs_needed(noise, ratio, **known) or np.inf,
                        slack,
                    ]
                )
    return pd.DataFrame(
        rows,
        columns=[
            "configuration",
            "workload",
            "connections",
            "offered_rate_rps",
            "measure",
            "runs",
            "noise",
            "share_found",
            "found",
            "runs_needed",
            "slack",
        ],
    )


def certainty(
    tables: Tables,
    percentiles: Sequence[float] = (50.0, 99.0, 99.9),
    repeats: int = REPEATS,
    ratio: float = 1.05,
) -> pd.DataFrame:
    """COLUMNS: medians over configurations, with the least and the most; ``found_percent``: the change that
    ``repeats`` runs a side find in four of five; ``runs_needed``: a side, to find ``ratio`` so (NA: over 100
    in half of the configurations)."""
    rows = []
    for measure, group in by_configuration(tables, percentiles, repeats, ratio).groupby(
        "measure", sort=False
    ):
        needed = float(np.median(group["runs_needed"]))
        rows.append(
            [
                measure,
                len(group),
                int(group["runs"].sum()),
                *(100 * group["noise"].agg(["median", "min", "max"])),
                *group["share_found"].agg(["median", "min", "max"]),
                100 * (float(group["found"].median()) - 1),
                math.ceil(needed) if math.isfinite(needed) else None,
            ]
        )
    return pd.DataFrame(rows, columns=COLUMNS).astype({"runs_needed": "Int64"})
