"""Which runs may say whether a rate was held.

A run that did not keep up is invalid for latencies, by its own checks, and yet it is the only witness of a saturation point. A run
that another program disturbed, or whose generator was the limit, says nothing about the service at all. So:

    speaks = about_rate(tables)        the runs that failed nothing, or did not hold their rate and failed only what follows from that
    found = knee_of(trials)            what the trials of a search say about the knee, by the search's own rule
"""

import json

import pandas as pd

from kvstudy.analyse.tables import Tables
from kvstudy.plan.objective import Answer
from kvstudy.plan.search import Found, Trial, found_in

# What a service that cannot keep up makes fail: requests pile up, time out, are sent late or never, and wait longer every second.
FOLLOWS_FROM_OVERLOAD = frozenset({"rate_held", "every_request_sent", "send_lateness", "warm_up_long_enough", "no_errors"})


def about_rate(tables: Tables) -> Tables:
    """The completed latency runs, at a rate, whose achieved rate is the service's own."""
    runs = tables.runs[~tables.runs["profiled"] & ~tables.runs["closed_loop"] & (tables.runs["outcome"] == "completed")]
    return tables.only(set(runs["run_id"]) & speaking(tables))


def speaking(tables: Tables) -> set[str]:
    """Ids of the runs of ``tables`` that speak about their rate."""
    failed = tables.validity[tables.validity["verdict"] == "FAIL"].groupby("run_id")["check"].agg(set)
    verdicts = tables.runs.set_index("run_id")["verdict"]
    return {
        run_id for run_id, verdict in verdicts.items()
        if verdict != "FAIL" or ("rate_held" in failed.get(run_id, set()) and failed[run_id] <= FOLLOWS_FROM_OVERLOAD)
    }  # fmt: skip


def knee_of(runs: pd.DataFrame) -> Found:
    """``runs``: those rows of the table ``runs`` that are the trials of one search; none of them is left out for its checks."""
    runs = runs.sort_values("run_id")
    asked = [json.loads(text) for text in runs["search"]]
    trials = [Trial(rate, Answer(answer), search["purpose"])
              for rate, answer, search in zip(runs["offered_rate_rps"], runs["answer"], asked, strict=True)]  # fmt: skip
    rates = runs["offered_rate_rps"]
    lowest = min(search.get("lowest_rate_rps", rates.min()) for search in asked)
    highest = max(search.get("highest_rate_rps", rates.max()) for search in asked)
    return found_in(trials, lowest, highest, min(search.get("precision", 0.05) for search in asked))
