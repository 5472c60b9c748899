from dataclasses import replace

import pandas as pd
from sample import empty_tables, sample_tables

from kvstudy.present import ruler


def test_certainty_says_in_a_row_per_measure_what_the_services_own_runs_can_tell():
    measured = sample_tables(rates=(1000.0,), connections=(4,), repeats=5, profiled=False)
    found = ruler.certainty(measured)
    assert found["measure"].tolist() == ["p50", "p99", "CPU per request"]
    assert found["configurations"].tolist() == ["2, 10 runs"] * 3
    assert (
        "6 runs a side find 5 % in" in found.columns and "runs a side to find 5 % in 4 of 5" in found.columns
    )
    assert ruler.certainty(replace(measured, runs=measured.runs.assign(server="empty"))).empty


def test_without_repeats_the_table_is_empty_and_whole():
    assert ruler.certainty(empty_tables()).empty and "measure" in ruler.certainty(empty_tables())


def in_closed_loops(rate_rps, server="empty", closed=True, workload="unique_put"):
    found = sample_tables(rates=(1000.0,), connections=(4,), workloads=(workload,), repeats=2, profiled=False)
    offered = float("nan") if closed else rate_rps
    return replace(
        found,
        runs=found.runs.assign(
            run_id=server + str(closed) + found.runs["run_id"],
            achieved_rate_rps=rate_rps,
            offered_rate_rps=offered,
            closed_loop=closed,
            server=server,
        ),
    )


def together(*parts):
    return replace(parts[0], runs=pd.concat([part.runs for part in parts], ignore_index=True))


def test_whether_a_script_is_the_bottleneck_is_answered_from_what_the_runs_against_the_store_asked_of_it():
    scripts = in_closed_loops(100_000.0)
    easy = ruler.script_limit(
        scripts, together(scripts, in_closed_loops(20_000.0, "kv-service", closed=False))
    ).data
    assert (
        easy.startswith("**Found:** none is.")
        and "at most 20.0 % of that (unique_put, 20\u202f000 r/s)" in easy
    )
    hard = ruler.script_limit(
        scripts, together(scripts, in_closed_loops(90_000.0, "kv-service", closed=False))
    ).data
    assert (
        hard.startswith("**Found:** unique_put may be.")
        and "the script may be what limits these runs" in hard
    )
    loop = ruler.script_limit(scripts, together(scripts, in_closed_loops(90_000.0, "kv-service"))).data
    assert (
        "In closed loops against the store a thread sends at most 90.0 % of that" in loop
        and "constant rates" not in loop
    )


def test_a_script_that_nothing_is_known_of_is_called_neither():
    scripts = in_closed_loops(100_000.0)
    assert "nothing to compare with" in ruler.script_limit(scripts, scripts).data
    other = ruler.script_limit(
        scripts, together(scripts, in_closed_loops(9.0, "kv-service", workload="mixed"))
    ).data
    assert "nothing to compare with" in other and "Without a valid run here: mixed." in other
    assert "no valid run says" in ruler.script_limit(empty_tables(), empty_tables()).data
