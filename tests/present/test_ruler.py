from sample import empty_tables, keep, sample_tables

from kvstudy.present import ruler


def test_certainty_says_in_a_row_per_percentile_that_can_be_printed_what_the_runs_can_tell(tables):
    found = ruler.certainty(keep(tables, lambda run: run.offered_rate_rps == 1000 and run.connections == 4), repeats=5)
    assert found["measure"].tolist() == ["p50", "p99", "CPU per request"]
    assert found["noise of"].tolist() == ["6 runs of 2 configurations"] * 3
    assert all(text.startswith("± ") for text in found["repeats spread by"])
    assert "finds a change of 5 %" in found.columns and "false alarms, 5 runs a side" in found.columns


def test_without_repeats_or_profiles_the_tables_are_empty_and_whole():
    assert ruler.certainty(empty_tables()).empty and "measure" in ruler.certainty(empty_tables())
    assert ruler.profiling_cost(empty_tables()).empty and "ratio" in ruler.profiling_cost(empty_tables())


def test_the_cost_of_profiling_names_both_sides():
    both = sample_tables(rates=(4000.0,), connections=(4,), workloads=("unique_put",))
    assert both.runs["profiled"].any()
    both.runs.loc[:, ["closed_loop", "offered_rate_rps", "variant", "label", "service_options", "workload_args", "verdict"]] = (
        True, float("nan"), "", "", "{}", "{}", "PASS")
    found = ruler.profiling_cost(both)
    assert found["measure"].tolist() == ["achieved rate", "CPU per request"]
    assert (found["runs"] == "3 and 1").all() and found["without"].str.contains("r/s").iloc[0]
