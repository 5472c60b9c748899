"""Rows of ``intervals`` put together to whole seconds, for all that is worked out by the second: a run's
intervals may be shorter (docs/run-folder.md).

    by_second(rows)        the same columns, one row per run, latency kind and second
    step_s(rows)           how long the intervals of one run are
    figures(histogram)     count, p50_us, p99_us, max_us: what a row says of its histogram

Percentiles are those of the histograms added up, never means. Rows of runs with intervals of a second come
back as they were.
"""

import math

import pandas as pd

from kvstudy.analyse import validity
from kvstudy.record import hdr

SECOND_S = 1.0
P99_SAMPLES_MIN = 100 * validity.SAMPLES_BEYOND_PRINTED


def figures(histogram: hdr.Histogram) -> dict[str, float]:
    p50, p99 = histogram.percentiles_us((50.0, 99.0))
    return {
        "count": histogram.total,
        "p50_us": p50,
        "p99_us": p99 if histogram.total >= P99_SAMPLES_MIN else math.nan,
        "max_us": histogram.max_us,
    }


def step_s(rows: pd.DataFrame) -> float:
    """``rows``: of one run; a second where there are none."""
    return float(rows["length_s"].iloc[0]) if len(rows) else SECOND_S


def by_second(rows: pd.DataFrame) -> pd.DataFrame:
    """``rows``: with all columns of ``intervals``, of any runs and kinds. In the order of runs and seconds
    where anything was put together."""
    shorter = rows["length_s"] < SECOND_S if len(rows) else pd.Series(dtype=bool)
    if not shorter.any():
        return rows
    keys = ["run_id", "latency_kind", "second"]
    joined = [
        dict(zip(keys, key, strict=True)) | _joined(parts["histogram"])
        for key, parts in rows[shorter].groupby(keys, sort=False)
    ]
    whole = pd.DataFrame(joined).assign(start_s=lambda made: made["second"] * SECOND_S, length_s=SECOND_S)
    whole = whole[list(rows)].astype(rows.dtypes.to_dict())
    found = whole if shorter.all() else pd.concat([rows[~shorter], whole])
    return found.sort_values(["run_id", "second"], kind="stable", ignore_index=True)


def _joined(texts: pd.Series) -> dict:
    histogram = hdr.merge(map(hdr.decode, texts))
    return figures(histogram) | {"histogram": hdr.encode(histogram)}
