"""How many words of a page would be false if nothing differed is said beside its comparisons, of duets apart
from independent runs."""

import pandas as pd
import pytest
from sample import sample_tables

from kvstudy.analyse.configuration import INVALID, comparisons
from kvstudy.analyse.option_duets import BY_DUET, BY_RUNS
from kvstudy.present import false_words, growth, peers
from kvstudy.present.figures import published as drawn
from kvstudy.present.summary import steepest

FEW = "at most one page in twenty"


def of(*rows: tuple[str, str, int], measure: str = "p50") -> str:
    names = ["by", "experiment", "family"]
    return false_words.of_comparisons(
        pd.DataFrame([dict(zip(names, row, strict=True)) for row in rows]).assign(
            before_name="a", after_name="b", measure=measure
        )
    )


def test_of_independent_runs_it_is_said_how_many_would_be_false_and_on_how_many_pages_one_is():
    text = of(*[(BY_RUNS, "wal", 24)] * 24)
    assert "about 1.2 of 24 words of independent runs would be false" in text and FEW in text
    assert "duet" not in text


def test_words_of_invalid_runs_which_no_row_of_a_chart_has_are_named():
    assert "words of independent runs would be" in of(*[(BY_RUNS, "wal", 7)] * 7)
    text = of(*[(BY_RUNS, "wal", 7)] * 7, measure=INVALID)
    assert "of 7 words of independent runs, those of invalid runs among them, would be false" in text


def test_duets_are_counted_for_themselves_and_never_among_the_page_in_twenty():
    text = of((BY_DUET, "wal", 1), (BY_DUET, "wal", 1), (BY_DUET, "read", 1), (BY_DUET, "cache", 1))
    assert "of 3 duets at most about 0.3 would say a false difference" in text and FEW not in text
    assert "one of ten cases" in of((BY_DUET, "wal", 1))


def test_a_chart_of_both_says_both():
    text = of((BY_RUNS, "heap", 2), (BY_RUNS, "heap", 2), (BY_DUET, "wal", 1), (BY_DUET, "read", 1))
    assert "of 2 words of independent runs" in text and "of 2 duets" in text


def test_a_word_alone_is_no_family():
    assert of((BY_RUNS, "wal", 1)) == false_words.of_runs(0) == false_words.of_duets(0) == ""


@pytest.fixture(scope="module")
def both():
    return sample_tables(
        labels=("before", "after"), rates=(1000.0, 4000.0), connections=(4,), repeats=5, profiled=False
    )


def test_page_03_says_it_below_each_of_its_comparisons(both):
    text = steepest(both, "workload").data
    assert ("of independent runs would be false" in text) == ("of 1 comparison " not in text)


@pytest.mark.parametrize(
    ("page", "columns"),
    [
        (peers, {"server": "nginx", "value_bytes": 100}),
        (growth, {"growth": "scale", "line": "get", "least": 1.0, "most": 10.0}),
    ],
)
def test_pages_10_and_11_say_it_over_their_tables(both, monkeypatch, page, columns):
    rows = comparisons(both, "label", "before", "after").assign(**columns)
    monkeypatch.setattr(page.analysed, "compared", lambda tables: rows)
    caption = page.compared(both).attrs["caption"]
    assert f"of {len(rows)} words of independent runs would be false" in caption


def test_page_08_says_that_its_verdicts_are_each_judged_alone():
    judged = pd.DataFrame(
        {"report": [1] * 42, "verdict": ["reproduced"] * 5 + ["cannot tell"] * 35 + ["mistaken"] * 2}
    )
    text = drawn.verdicts(judged).layout.meta["drawn"]
    assert "not corrected for the others: of 40 about 2 may be decided wrongly" in text
