"""Which runs may say whether a rate was held.

A run that did not keep up is invalid for latencies, by its own checks, and yet it is the only witness of a saturation point. A run
that another program disturbed, or whose generator was the limit, says nothing about the service at all. So:

    speaks = about_rate(tables)        the runs that failed nothing, or did not hold their rate and failed only what follows from that
"""

from kvstudy.analyse.tables import Tables

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
