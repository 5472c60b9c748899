"""Durations, rates and sizes as people write them."""

import random
import re

import pytest

from kvstudy.units import (
    counted,
    format_bytes,
    format_duration,
    parse_duration_s,
    parse_rate_rps,
    parse_size_bytes,
    percent,
    write_duration,
    write_rate,
)

LOADGENS_TIMES = {"": 1.0, "s": 1.0, "us": 1e-6, "ms": 1e-3, "m": 60.0, "h": 3600.0}
LOADGENS_RATES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def as_loadgen_reads(text: str, units: dict[str, float]) -> float:
    """loadgen/src/units.rs: digits with at most one point, no exponent, and a unit."""
    number, unit = re.fullmatch(r"([0-9]+\.?[0-9]*)([A-Za-z]*)", text).groups()
    return float(number) * units[unit.lower()]


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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(8, "8s"), (2.5, "2500ms"), (0.25, "250ms"), (0.0025, "2500us"), (0.0004, "400us"), (0, "0s")],
)
def test_duration_is_written_to_the_microsecond(seconds, text):
    assert write_duration(seconds) == text


@pytest.mark.parametrize("text", ["0.4us", "400.5us", "1.0000001s"])
def test_duration_that_nobody_measures_to_its_last_digit_is_refused(text):
    with pytest.raises(ValueError, match="a duration is in whole microseconds: "):
        parse_duration_s(text)


def test_every_rate_and_time_that_the_plan_takes_is_one_that_loadgen_reads_back_as_the_same_number():
    draw = random.Random(seed := 7)
    rates = [0.5, 1 / 3, "0.0000001", 123_456.7, 999_999, 1_000_000, 1_234_567, "1.001M", "100M"]
    rates += [f"{10 ** draw.uniform(0.5, 7.9):.{draw.randrange(9)}f}" for _ in range(1000)]
    for value in rates:
        rate_rps = parse_rate_rps(value)
        assert as_loadgen_reads(write_rate(rate_rps), LOADGENS_RATES) == rate_rps, (seed, value)
    times = ["1us", "400us", "2500us", "0.0004s", "700ms", "1.1s", "1.5m", "2h", "168h"]
    times += [f"{draw.randrange(1, 10 ** draw.randint(1, 11))}us" for _ in range(1000)]
    for text in times:
        seconds = parse_duration_s(text)
        read_ns = round(as_loadgen_reads(write_duration(seconds), LOADGENS_TIMES) * 1e9)
        assert read_ns == round(seconds * 1e6) * 1000 and seconds == read_ns / 1e9, (seed, text)


@pytest.mark.parametrize(
    ("parse", "value", "bound"),
    [
        (parse_duration_s, "169h", "a duration is at most 7 days: '169h'"),
        (parse_duration_s, "9" * 309 + "s", "a duration is at most 7 days: '999"),
        (parse_rate_rps, 100_000_001, "a rate is at most 100M requests per second: 100000001"),
        (parse_rate_rps, 10**309, "a rate is at most 100M requests per second: 1000"),
        (parse_size_bytes, "1048577g", "a size is at most 1 PiB: '1048577g'"),
        (parse_size_bytes, 10**309, "a size is at most 1 PiB: 1000"),
    ],
    ids=["hours", "digits of hours", "requests", "digits of requests", "bytes", "digits of bytes"],
)
def test_a_number_mistyped_by_some_digits_is_refused_with_its_bound(parse, value, bound):
    with pytest.raises(ValueError, match=bound):
        parse(value)


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


@pytest.mark.parametrize(
    ("number", "thing", "text"),
    [(0, "run", "0 runs"), (1, "run", "1 run"), (2, "launch", "2 launches"), (1, "launch", "1 launch")],
)
def test_what_is_counted_is_one_thing_or_several(number, thing, text):
    assert counted(number, thing) == text


def test_a_share_is_never_written_as_a_limit_that_it_does_not_lie_on_nor_as_one_beyond_it():
    assert percent(0.1234, 1) == "12.3 %" and percent(0.99, 1, 0.99) == "99.0 %"
    assert percent(0.98996, 1, 0.99) == "98.996 %" and percent(0.0501, 0, 0.05, 0.2) == "5.01 %"
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    drawn = random.Random(seed)
    for limit in (0.01, 0.05, 0.2, 0.5, 0.95, 0.99):
        for _ in range(200):
            share = limit + drawn.choice((-1, 1)) * 10 ** drawn.uniform(-6, -2.1)
            written = float(percent(share, drawn.randrange(3), limit).removesuffix(" %"))
            assert (written > 100 * limit) == (share > limit) and written != 100 * limit, (share, limit)
