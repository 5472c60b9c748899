"""Durations, rates and sizes as people write them."""

import pytest

from kvstudy.units import (
    duration_argument,
    format_bytes,
    format_duration,
    parse_duration_s,
    parse_rate_rps,
    parse_size_bytes,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("500ms", 0.5), ("1.5m", 90), ("2h", 7200), (" 3 s ", 3), ("50us", 5e-5)],
)
def test_duration_carries_its_unit(text, seconds):
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["10", 10, "ten s", "", "-1s", "1 day", None])
def test_duration_without_a_unit_is_refused(text):
    with pytest.raises(ValueError, match="write a number and its unit"):
        parse_duration_s(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(8, "8s"), (2.5, "2.5s"), (90, "1m 30s"), (600, "10m"), (3725, "1h 2m")]
)
def test_duration_is_shown_short(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(8, "8s"), (2.5, "2500ms"), (0.25, "250ms")])
def test_duration_argument_keeps_milliseconds(seconds, text):
    assert duration_argument(seconds) == text


@pytest.mark.parametrize(("value", "rate_rps"), [(2000, 2000), ("2k", 2000), ("1.5M", 1_500_000), (0.5, 0.5)])
def test_rate_takes_suffixes_and_fractions(value, rate_rps):
    assert parse_rate_rps(value) == rate_rps


@pytest.mark.parametrize("value", ["fast", 0, -1, "2 kk", True, None])
def test_rate_that_is_no_rate_is_refused(value):
    with pytest.raises(ValueError, match="not a rate"):
        parse_rate_rps(value)


@pytest.mark.parametrize(("value", "size_bytes"), [(4096, 4096), ("128m", 128 << 20), ("1G", 1 << 30)])
def test_size_is_in_powers_of_1024(value, size_bytes):
    assert parse_size_bytes(value) == size_bytes


def test_bytes_are_shown_in_the_unit_that_fits():
    assert [format_bytes(count) for count in (512, 1536, 5 << 20, 3 << 40)] == [
        "512 B",
        "1.5 KiB",
        "5.0 MiB",
        "3072.0 GiB",
    ]
