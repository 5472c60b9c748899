"""What tells the lines of a chart apart is in their names, and nothing else is."""

import pytest
from sample import sample_tables

from kvstudy.analyse.configuration import configured
from kvstudy.present import series


@pytest.fixture(scope="module")
def runs():
    return sample_tables(profiled=False).runs


def names(runs, **changes):
    along = (
        {"along": series.CONNECTIONS, "said": ("workload",)} if changes.pop("by_connections", False) else {}
    )
    return series.names(configured(runs.assign(**changes)), **along)


def test_a_name_says_what_differs_and_no_rate(runs):
    assert set(names(runs)) == {
        f"{workload}, {size}"
        for workload in ("unique_put", "repeated_get")
        for size in ("1 connection", "4 connections")
    }


def test_a_line_alone_is_named_by_its_connections_or_its_experiment(runs):
    one = runs[(runs["workload"] == "unique_put") & (runs["connections"] == 4)]
    assert set(names(one)) == {"4 connections"}
    assert set(names(one, by_connections=True)) == {"sample"}


def test_of_an_option_only_what_differs_is_said(runs):
    variants = [f"gc=G1 heap={128 if repeat == 1 else 256}m" for repeat in runs["repeat"]]
    assert set(names(runs, variant=variants, by_connections=True)) == {"heap=128m", "heap=256m"}


def test_a_thread_for_each_connection_is_no_difference_along_connections_and_another_number_is(runs):
    assert names(runs, threads=runs["connections"], by_connections=True).nunique() == 1
    assert set(names(runs, threads=runs["repeat"], by_connections=True)) == {
        "1 thread",
        "2 threads",
        "3 threads",
    }


def test_whatever_differs_makes_another_name(runs):
    for column, one, other in (
        ("server", "kv-service", "empty"),
        ("processors_awake", True, False),
        ("label", "", "after"),
        ("service_options", "{}", '{"memtable_bytes": 1048576}'),
    ):
        values = [one if repeat == 1 else other for repeat in runs["repeat"]]
        assert names(runs, **{column: values}).nunique() == 8


def test_no_runs_have_no_names(runs):
    assert names(runs.head(0)).empty
