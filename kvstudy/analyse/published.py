"""The numbers of the five published reports, as data/published holds them.

results.csv        one row per printed result: what was run, what wrk or wrk2 counted, where the text is
percentiles.csv    one row per result and percentile, from its distribution (8 or 4 rows) and, where printed,
                   its spectrum
trials.csv         one row per trial of report 1's bisection
profile_shares.csv one row per share that a report reads off a profile
claims.csv         one row per conclusion with a number, in our words
texts/             what the reports printed, word for word; results.csv and percentiles.csv follow from it (a
                   test checks)
"""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from kvstudy.analyse import evidence, validity
from kvstudy.analyse.tables import Tables
from kvstudy.errors import FormatError
from kvstudy.record import generator_result, wrk2_text

HANDLERS = {
    "synchronous": "handler=selector",
    "asynchronous": "handler=workers",
}  # stage of a report's server → the variant of ours that stands for it
FILES = ("results", "percentiles", "trials", "profile_shares", "claims")
COUNTED = ("requests", "achieved_rate_rps", "mean_us", "stdev_us", "max_us", "timeouts", "non_2xx_3xx")
_KIND = {wrk2_text.CORRECTED: "response", wrk2_text.UNCORRECTED: "service", wrk2_text.CLOSED_LOOP: "service"}


@dataclass(frozen=True, eq=False)
class Published:
    """One frame per file, columns as in its head line; equal to itself alone."""

    results: pd.DataFrame
    percentiles: pd.DataFrame
    trials: pd.DataFrame
    profile_shares: pd.DataFrame
    claims: pd.DataFrame


def load(folder: Path) -> Published:
    """``folder``: data/published. Raises FormatError when a file is missing."""
    for name in FILES:
        if not (folder / f"{name}.csv").is_file():
            raise FormatError(
                str(folder / f"{name}.csv"), None, "missing", "restore it: git checkout -- data/published"
            )
    return Published(
        **{name: pd.read_csv(folder / f"{name}.csv", keep_default_na=False, na_values=[""]) for name in FILES}
    )


def same_handler(tables: Tables, stage: str) -> Tables:
    """Of runs that vary the handler those with the one that stands for ``stage``; all others as they are."""
    variants = tables.runs["variant"]
    if not variants.str.contains("handler=", regex=False).any() or stage not in HANDLERS:
        return tables
    return tables.only(tables.runs.loc[variants.str.contains(HANDLERS[stage], regex=False), "run_id"])


def counted(text: Path) -> dict[str, float]:
    """The columns COUNTED of results.csv for one text."""
    result = wrk2_text.parse_one(text.read_text(encoding="utf-8"), text.name)
    return {
        "requests": result.requests,
        "achieved_rate_rps": result.achieved_rate_rps,
        "mean_us": round(result.latency_us.mean, 3),
        "stdev_us": round(result.latency_us.stdev, 3),
        "max_us": round(result.latency_us.max, 3),
        "timeouts": result.socket_errors["timeout"],
        "non_2xx_3xx": result.non_2xx_3xx,
    }


def percentile_rows(text: Path) -> list[dict]:
    """The rows of percentiles.csv for one text: latencies in microseconds, ``count`` = samples at or below,
    where printed."""
    result = wrk2_text.parse_one(text.read_text(encoding="utf-8"), text.name)
    rows = []
    for distribution in result.distributions.values():
        kind = {"text": text.stem, "latency_kind": _KIND[distribution.kind]}
        for percentile, latency_us in distribution.percentiles_us.items():
            rows.append(
                {
                    **kind,
                    "printed_in": "distribution",
                    "percentile": percentile,
                    "latency_us": round(latency_us, 3),
                    "count": None,
                }
            )
        for row in distribution.spectrum:
            rows.append(
                {
                    **kind,
                    "printed_in": "spectrum",
                    "percentile": row.percentile,
                    "latency_us": row.value_us,
                    "count": row.count,
                }
            )
    return rows


def checks(result: pd.Series, folder: Path) -> list[validity.Check]:
    """Our validity checks on one row of results.csv, as far as its text can answer them; the rest comes out
    as not recorded."""
    text = folder / "texts" / f"{result['text']}.txt"
    counted_there = generator_result.read_text(text.read_text(encoding="utf-8"), text.name)
    whole = {
        name: None if pd.isna(result[name]) else int(result[name]) for name in ("connections", "threads")
    }
    rate = None if pd.isna(result["offered_rate_rps"]) else float(result["offered_rate_rps"])
    return validity.check(
        evidence.text_evidence(
            counted_there,
            generator=result["generator"],
            closed_loop=bool(result["closed_loop"]),
            offered_rate_rps=rate,
            method=result["method"],
            **whole,
        )
    )
