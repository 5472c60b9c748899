from pathlib import Path

import pandas as pd
import pytest

from kvstudy.analyse import published
from kvstudy.errors import FormatError

FOLDER = Path(__file__).parents[2] / "data" / "published"


@pytest.fixture(scope="module")
def numbers():
    return published.load(FOLDER)


def test_every_printed_result_stands_in_the_table_with_the_numbers_of_its_text(numbers):
    texts = sorted(FOLDER.glob("texts/*.txt"))
    assert sorted(numbers.results["text"]) == [text.stem for text in texts]
    for row in numbers.results.itertuples():
        assert {name: getattr(row, name) for name in published.COUNTED} == published.counted(
            FOLDER / "texts" / f"{row.text}.txt"
        )


def test_every_percentile_is_the_one_printed(numbers):
    rows = [
        row
        for text in numbers.results["text"]
        for row in published.percentile_rows(FOLDER / "texts" / f"{text}.txt")
    ]
    printed = pd.DataFrame(rows).astype({"count": "Int64"})
    assert len(printed) > 500
    pd.testing.assert_frame_equal(numbers.percentiles.astype({"count": "Int64"}), printed)


def test_the_facts_of_a_run_agree_with_its_text(numbers):
    for row in numbers.results.itertuples():
        text = (FOLDER / "texts" / f"{row.text}.txt").read_text()
        if row.report in (1, 3, 5):
            assert f"{int(row.threads)} threads and {int(row.connections)} connections" in text
        if row.report == 1:
            assert f"-R {int(row.offered_rate_rps)} " in text


def test_claims_with_a_printed_result_quote_it(numbers):
    claims = numbers.claims.set_index("claim")
    results = numbers.results.set_index("text")
    assert (
        claims.loc["r2-put-20000-not-held", "value"] == results.loc["report-2-put-20000", "achieved_rate_rps"]
    )
    for connections in (1, 2, 4):
        before, after = (
            results.loc[f"report-5-{when}-repeated_get-c{connections}", "achieved_rate_rps"]
            for when in ("before", "after")
        )
        assert claims.loc[f"r5-repeated-get-c{connections}", "value"] == pytest.approx(
            after / before, abs=0.006
        )
    for workload in ("unique_get", "unique_put", "repeated_put"):
        before, after = (
            results.loc[f"report-5-{when}-{workload}-c1", "achieved_rate_rps"] for when in ("before", "after")
        )
        assert claims.loc[f"r5-{workload.replace('_', '-')}", "value"] == pytest.approx(
            after / before, abs=0.006
        )
    assert set(claims["mistaken"]) == {"yes", "no", "unproven"}


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FormatError, match="results.csv: missing"):
        published.load(tmp_path)


def verdicts(numbers, text):
    row = numbers.results.set_index("text", drop=False).loc[text]
    return {check.check: check for check in published.checks(row, FOLDER)}


def test_the_third_reports_put_run_fails_because_its_rate_was_not_held(numbers):
    found = verdicts(numbers, "report-3-put-20000")
    assert found["rate_held"].verdict == "FAIL"
    assert found["rate_held"].observed == "rate not held: 8805.07/s = 44.0 %"
    assert found["no_errors"].verdict == "FAIL" and found["no_errors"].observed == "timeout 24"


def test_the_published_runs_that_held_their_rate_pass_that_check(numbers):
    for text in (
        "report-1-put-11250",
        "report-1-get-8906",
        "report-2-put-2000",
        "report-2-get-2000",
        "report-3-get-20000",
    ):
        assert verdicts(numbers, text)["rate_held"].verdict == "PASS", text
    assert verdicts(numbers, "report-2-put-20000")["rate_held"].verdict == "FAIL"


def test_the_fifth_reports_unexplained_answers_fail_its_get_runs(numbers):
    found = verdicts(numbers, "report-5-before-repeated_get-c4")
    assert found["answers_expected"].verdict == "FAIL" and found["answers_expected"].observed == "135"
    assert "rate_held" not in found


def test_what_a_text_does_not_say_is_a_warning_not_a_pass(numbers):
    found = verdicts(numbers, "report-1-put-11250")
    assert {
        found[name].verdict
        for name in ("generator_not_saturated", "no_steal", "service_healthy", "data_kept")
    } == {"WARN"}
