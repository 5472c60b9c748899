"""Numbers as people read them."""

import math

import pytest

from kvstudy.present import words


@pytest.mark.parametrize(
    ("latency_us", "text"),
    [
        (0.5, "0.500 µs"),
        (649.0, "649 µs"),
        (999.9, "1.00 ms"),
        (1240, "1.24 ms"),
        (61790, "61.8 ms"),
        (3.7e6, "3.70 s"),
        (math.nan, "–"),
        (None, "–"),
    ],
)
def test_a_latency_is_told_in_the_unit_that_fits(latency_us, text):
    assert words.latency(latency_us) == text


def test_thousands_are_parted_by_a_thin_space():
    assert words.rate(12500.4) == "12\u202f500 r/s"


def test_one_connection_is_singular():
    assert (words.value("connections", 1), words.value("connections", 16)) == (
        "1 connection",
        "16 connections",
    )


def test_a_closed_loop_has_no_offered_rate():
    assert words.value("offered_rate_rps", math.nan) == "closed loop"


def test_one_thing_is_singular():
    assert (words.counted(1, "run"), words.counted(0, "run"), words.counted(1200, "run")) == (
        "1 run",
        "0 runs",
        "1\u202f200 runs",
    )


def test_a_columns_or_events_name_is_written_as_people_write_it():
    assert [words.factor(name) for name in ("offered_rate_rps", "wal_sync", "gc_pause", "write_stall")] == [
        "offered rate",
        "WAL sync",
        "GC pause",
        "write stall",
    ]


def test_things_are_listed_as_in_a_sentence():
    assert words.several(["a", "b", "c"]) == "a, b and c"
    assert words.several(["a"]) == "a"
    assert words.several([]) == "nothing"


@pytest.mark.parametrize(
    ("low", "high", "told", "text"),
    [
        (1.22, 1.45, words.times, " [1.22, 1.45 ×]"),
        (5320, 27600, words.latency, " [5.32, 27.6 ms]"),
        (650, 2400, words.latency, " [650 µs, 2.40 ms]"),
        (19989, 20000, words.rate, " [19\u202f989, 20\u202f000 r/s]"),
        (3, 3, words.times, ""),
        (1.002, 1.06, words.times, " [1.002, 1.06 ×]"),
        (0.91, 0.9996, words.times, " [0.910, 0.9996 ×]"),
        (1.001, 1.0034, words.times, " [1.001, 1.003 ×]"),
        (0.95, 1.0, words.times, " [0.950, 1.00 ×]"),
        (1.0984, 1.1012, words.times, " [1.098, 1.101 ×]"),
        (math.nan, 4, words.times, ""),
    ],
)
def test_an_interval_says_a_unit_once_where_both_ends_have_it(low, high, told, text):
    assert words.interval(low, high, told) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(100, "100 B"), (100_000, "100 kB"), (64_000, "64 kB"), (65_536, "64 KiB"), (2_000_000, "2 MB")]
    + [(64 << 20, "64 MiB"), (16_385, "16\u202f385 B"), (0, "0 B")],
)
def test_a_chosen_size_reads_as_it_was_written_and_no_two_of_them_alike(size_bytes, text):
    assert words.chosen_size(size_bytes) == words.value("value_bytes", size_bytes) == text


@pytest.mark.parametrize(
    ("counted", "of", "text"),
    [(0, 1, "0 of 1 run counts"), (1, 2, "1 of 2 runs counts"), (0, 2, "0 of 2 runs count")]
    + [(1200, 1200, "1\u202f200 of 1\u202f200 runs count")],
)
def test_the_verb_of_how_many_count_goes_with_the_number_that_does_or_of_one_with_that_one(counted, of, text):
    assert words.of_which_count(counted, of, "run") == text


@pytest.mark.parametrize(
    ("ratio", "low", "high", "text"),
    [
        (1.004, 1.003, 1.005, "1.004 × [1.003, 1.005 ×]"),
        (1.004, 0.9, 1.2, "1.00 × [0.900, 1.20 ×]"),
        (1.004, math.nan, math.nan, "1.00 ×"),
    ],
)
def test_a_ratio_lies_within_its_interval_as_both_are_read(ratio, low, high, text):
    assert words.ratio(ratio, low, high) == text
    assert words.estimate_of_ratio(ratio, low, high) == text.partition(" [")[0]


def test_two_latencies_that_read_alike_are_one():
    assert words.from_to(870, 1240) == "870 µs to 1.24 ms"
    assert words.from_to(300.0, 300.4) == "300 µs"
    assert words.from_to(math.nan, math.nan) == words.MISSING


def test_one_run_has_no_interval():
    assert words.interval(0.9920634920634921, 0.9920634920634922, words.times) == ""


def test_the_extent_of_few_runs_stands_in_parentheses():
    assert words.extent(44, 46, words.latency) == " (44.0 … 46.0 µs)"


def test_a_schedule_and_a_closed_loop_have_names():
    assert (words.value("closed_loop", False), words.value("closed_loop", True)) == (
        "on a schedule",
        "closed loop",
    )


def test_lateness_is_no_time_but_the_sends():
    assert (words.kind("lateness"), words.kind("response")) == ("send lateness", "response time")
    assert words.kind("own_lateness") == "send lateness on a free connection"
