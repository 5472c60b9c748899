"""The parser on real texts: wrk2 runs of ours, and what the five published reports printed."""

import math
from pathlib import Path

import pytest

from kvstudy.errors import FormatError
from kvstudy.record import wrk2_units
from kvstudy.record.wrk2_text import CLOSED_LOOP, CORRECTED, UNCORRECTED, parse, parse_one

OURS = Path(__file__).parent / "wrk2_texts"
PUBLISHED = Path(__file__).parents[2] / "data" / "published" / "texts"
WHOLE = sorted(
    path for path in [*OURS.glob("*.txt"), *PUBLISHED.glob("*.txt")] if not path.name.startswith("usage")
)


def read(name: str):
    path = (OURS if (OURS / name).exists() else PUBLISHED) / name
    return parse_one(path.read_text(), name)


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_every_real_text_parses_and_its_numbers_agree_with_each_other(path):
    result = parse_one(path.read_text(), path.name)
    assert result.achieved_rate_rps == pytest.approx(result.requests / result.duration_s, rel=0.01)
    assert result.transfer_bytes_per_s == pytest.approx(result.bytes_read / result.duration_s, rel=0.01)
    for distribution in result.distributions.values():
        if distribution.spectrum and distribution.total_count:
            assert distribution.spectrum[-1].count == distribution.total_count
            assert distribution.spectrum[-1].value_us == pytest.approx(
                distribution.percentiles_us[100.0], rel=0.005
            )


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_a_text_cut_after_any_line_is_an_error_that_names_the_line(path):
    lines = path.read_text().splitlines()
    end = next(at for at, line in enumerate(lines) if line.startswith("Transfer/sec"))
    for kept in range(end):
        with pytest.raises(FormatError) as caught:
            parse_one("\n".join(lines[:kept]), path.name)
        assert caught.value.line is not None and caught.value.file == path.name


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_a_text_that_lost_any_line_of_its_summary_is_an_error_or_reads_as_before(path):
    """Some lines wrk2 leaves out itself (banner, calibration, errors); without any other the text is not a
    result."""
    text = path.read_text()
    lines = text.splitlines()
    optional = ("Running", "Thread calibration", "Socket errors", "Non-2xx", "Detailed", "wrk ", "$ wrk")
    begin = next(at for at, line in enumerate(lines) if "Thread Stats" in line)
    end = next(at for at, line in enumerate(lines) if line.startswith("Transfer/sec"))
    for lost in range(begin, end + 1):
        line = lines[lost].strip()
        if not line or line.startswith(optional) or "%  " in line or _is_spectrum_row(line):
            continue
        with pytest.raises(FormatError):
            parse_one("\n".join(lines[:lost] + lines[lost + 1 :]), path.name)


def _is_spectrum_row(line: str) -> bool:
    return len(line.split()) == 4 and line[0].isdigit()


def test_all_numbers_of_a_wrk2_text():
    result = read("one-connection.txt")
    assert (result.url, result.planned_duration_s, result.threads, result.connections) == (
        "http://127.0.0.1:8099/",
        14,
        1,
        1,
    )
    assert result.calibrations_us == [628.0]
    assert (result.latency_us.mean, result.latency_us.stdev, result.latency_us.max) == (633.24, 311.27, 3840)
    assert (result.thread_rate_rps.mean, result.thread_rate_rps.within_stdev_percent) == (535.0, 61.06)
    response = result.distributions[CORRECTED]
    assert (response.percentiles_us[50.0], response.percentiles_us[99.9]) == (630, 2170)
    assert (response.spectrum[5].value_us, response.spectrum[5].percentile, response.spectrum[5].count) == (
        630,
        50,
        1000,
    )
    assert (result.requests, result.achieved_rate_rps, result.errors_total) == (7001, 500.03, 0)


def test_the_uncorrected_block_is_a_distribution_of_its_own():
    result = read("uncorrected.txt")
    assert result.distributions[CORRECTED].percentiles_us[50.0] == 838
    assert result.distributions[UNCORRECTED].percentiles_us[50.0] == 43
    assert len(result.calibrations_us) == 2


def test_an_empty_histogram_is_not_a_number_and_errors_are_counted():
    result = read("errors-and-nan.txt")
    assert math.isnan(result.latency_us.mean) and math.isnan(result.distributions[CORRECTED].mean_us)
    assert result.distributions[CORRECTED].total_count == 0
    assert (result.socket_errors["timeout"], result.non_2xx_3xx) == (8, 908)


def test_what_a_script_prints_after_the_summary_is_kept_apart():
    result = read("script-output.txt")
    assert result.script_output[0] == "thread 1 made 13999 requests and got 13998 responses"
    assert len(result.script_output) == 4


def test_seconds_and_minutes_are_read_as_such():
    assert read("saturated.txt").distributions[CORRECTED].percentiles_us[50.0] == 5.32e6
    assert read("report-2-put-20000.txt").duration_s == 60


def test_what_wrk_prints_in_a_closed_loop_is_not_taken_for_response_time():
    result = read("report-5-after-repeated_get-c4.txt")
    assert list(result.distributions) == [CLOSED_LOOP]
    assert result.distributions[CLOSED_LOOP].percentiles_us[99.0] == 3240
    assert result.non_2xx_3xx == 203


def test_the_third_reports_put_run_reached_8805_of_20000_per_second_with_24_timeouts():
    result = read("report-3-put-20000.txt")
    assert (result.achieved_rate_rps, result.socket_errors["timeout"]) == (8805.07, 24)


def test_the_older_wording_of_the_calibration_is_understood():
    text = (OURS / "one-connection.txt").read_text()
    old = text.replace(
        "mean lat.: 0.628ms, rate sampling interval: 10ms",
        "mean lat.: 628 usec, rate sampling interval: 10 msec",
    )
    assert old != text
    assert parse_one(old, "old").calibrations_us == [628.0]


def test_several_results_in_one_text_are_read_in_order():
    text = "".join(
        (OURS / name).read_text() for name in ("script-output.txt", "no-latency.txt", "uncorrected.txt")
    )
    results = parse(text, "three")
    assert [result.requests for result in results] == [27997, 14000, 41974]
    assert len(results[0].script_output) == 4
    with pytest.raises(FormatError, match="one result expected: found=3"):
        parse_one(text, "three")


def test_a_result_in_the_middle_that_lost_its_head_is_not_skipped():
    texts = [(PUBLISHED / name).read_text() for name in ("report-2-put-2000.txt", "report-2-get-2000.txt")]
    headless = texts[0].replace("Thread Stats", "Stats")
    with pytest.raises(FormatError, match=":2: part of a result without its beginning"):
        parse(headless + texts[1], "two")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("Requests/sec:    500.03", "Requests/sec:    5o0.03", 82),
        ("  7001 requests in 14.00s", "  7001 requests in 14.00x", 81),
        ("99.900%    2.17ms", "99.900%    2.17ns", 12),
        ("99.900%    2.17ms", "99.900%    2.17", 12),
        ("99.900%    2.17ms", "99.900%    1.01ms", 12),
        (
            "       0.225     0.100000          201         1.11",
            "       0.225     0.100000          x01         1.11",
            21,
        ),
        ("Total count    =         1998", "Total count    =         1999", 78),
        ("1 threads and 1 connections", "1 thread and 1 connection", 2),
    ],
)
def test_an_altered_number_is_an_error_at_its_line(old, new, line):
    text = (OURS / "one-connection.txt").read_text()
    assert text.count(old) == 1
    with pytest.raises(FormatError) as caught:
        parse_one(text.replace(old, new), "altered.txt")
    assert caught.value.message.startswith(f"altered.txt:{line}: ")


@pytest.mark.parametrize("name", ["usage-no-rate.txt", "usage-few-connections.txt"])
def test_a_refusal_of_the_generator_is_shown_not_read_as_zero(name):
    text = (OURS / name).read_text()
    with pytest.raises(FormatError) as caught:
        parse_one(text, name)
    assert text.splitlines()[0] in caught.value.hint


def test_an_empty_text_is_an_error():
    with pytest.raises(FormatError, match="generator.txt:1: no wrk2 result here"):
        parse_one("", "generator.txt")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("630.00us", 630),
        ("0.94ms", 940),
        ("5.32s ", 5.32e6),
        ("1.00m", 60e6),
        ("2.50h", 9000e6),
        ("0.00us", 0),
        ("14s", 14e6),
    ],
)
def test_times_are_read_in_every_unit(text, value):
    assert wrk2_units.time_us(text) == pytest.approx(value)


def test_counts_and_sizes_are_read_in_every_unit():
    assert [wrk2_units.count(text) for text in ("535.00", "11.83k", "1.20M", "2G")] == pytest.approx(
        [535, 11830, 1.2e6, 2e9]
    )
    sizes = [wrk2_units.size_bytes(text) for text in ("12.00B", "1.00KB", "1.00MB", "1.00GB", "1.00TB")]
    assert sizes == [12, 2**10, 2**20, 2**30, 2**40]


@pytest.mark.parametrize("text", ["", "us", "1.2.3ms", "12", "-4ms", "4 minutes", "inf"])
def test_what_is_not_a_time_is_refused(text):
    with pytest.raises(ValueError, match="not a time"):
        wrk2_units.time_us(text)
