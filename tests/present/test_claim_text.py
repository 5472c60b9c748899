"""Claims in words: what a reader reads of each number, word and place."""

import math
from dataclasses import replace

import pytest

from kvstudy.analyse.claim import CLOSED_LOOP, INTERVENTION, LINK, SEARCH, Claim, Place
from kvstudy.analyse.comparison.words import NEITHER, TOO_FEW
from kvstudy.analyse.configuration import INVALID
from kvstudy.present import claim_text, words

RATIO = Claim(
    Place("get", 4, 20_000.0),
    "p50",
    "ratio",
    1.512,
    (1.45, 1.54),
    "slower",
    12,
    sides=(6, 6),
    within_percent=5.0,
    findable_percent=12.0,
)


def test_a_ratio_is_told_with_its_interval_and_few_runs_with_their_extent():
    assert claim_text.estimate(RATIO) == "1.51 × [1.45, 1.54 ×]"
    assert (
        claim_text.estimate(Claim(Place(), "p99", "us", 1240.0, extent=(1000.0, 2000.0)))
        == "1.24 ms (1.00 … 2.00 ms)"
    )


def test_shares_of_invalid_runs_are_told_as_counts_since_their_ratio_may_be_infinite():
    lost = Claim(
        Place("get", 4, 20_000.0),
        INVALID,
        "ratio",
        math.inf,
        (math.inf, math.inf),
        "worse",
        20,
        baseline="kv-service",
        variant="redis",
        sides=(10, 10),
        ends=(0.0, 0.6),
    )
    assert claim_text.sentence(lost) == (
        "invalid runs of get at 20\u202f000 r/s on 4 connections, redis to kv-service: "
        "6 of 10 instead of 0 of 10, worse"
    )


def test_a_rate_that_a_search_found_is_rounded_and_one_without_an_upper_end_is_at_least():
    found = Claim(Place("put"), "stable rate", "rps", 24_046.0, (22_113.0, 25_987.0), rule=SEARCH)
    assert claim_text.estimate(found) == "24\u202f000 r/s [22\u202f000, 26\u202f000 r/s]"
    assert (
        claim_text.estimate(
            Claim(Place("put"), "stable rate", "rps", 28_000.0, (24_046.0, math.inf), rule=SEARCH)
        )
        == "at least 24\u202f000 r/s"
    )


def test_the_same_says_within_what_and_cannot_tell_says_what_could_have_been_found():
    assert (
        claim_text.word(Claim(Place(), "p50", "ratio", 1.0, word="the same", within_percent=5.0))
        == "the same within 5 %"
    )
    assert claim_text.findable(RATIO) == "only a difference above 12 % could have been found"
    assert (
        claim_text.findable(Claim(Place(), "p50", "ratio", 1.0, sides=(6, 6)))
        == "even a large difference could have been missed"
    )
    assert claim_text.findable(Claim(Place(), "p50", "us", 1.0)) == ""
    assert (
        claim_text.certainty(replace(RATIO, word="cannot tell"))
        == "cannot tell: only a difference above 12 % could have been found"
    )
    assert claim_text.certainty(RATIO) == "slower"
    assert [words.findable_briefly(*one) for one in ((1.12, True), (math.inf, False), (math.inf, True))] == [
        "12 %",
        "nothing",
        "nothing for certain",
    ]


def test_a_word_that_is_kept_back_says_why_in_the_place_of_what_could_have_been_found():
    undecided = replace(RATIO, word="cannot tell", why=NEITHER)
    few = replace(undecided, why=TOO_FEW, interval=None, findable_percent=None, sides=(2, 2))
    assert claim_text.certainty(undecided).endswith("only a difference above 12 % could have been found")
    assert claim_text.certainty(few) == "cannot tell: fewer than 5 runs a side"
    assert claim_text.estimate(few) == "1.51 ×"


@pytest.mark.parametrize(
    "ratio, told",
    [
        (1.052, "5.2 %"),
        (1.12, "12 %"),
        (2.14, "2.1×"),
        (8.14, "8×"),
        (5000.0, ""),
        (math.inf, ""),
        (math.nan, ""),
    ],
)
def test_a_difference_that_could_have_been_found_is_rounded(ratio, told):
    assert words.findable_limit(ratio) == told


@pytest.mark.parametrize(
    "place, told",
    [
        (Place("get", 4, 20_000.0), "get at 20\u202f000 r/s on 4 connections"),
        (Place("get", 1, CLOSED_LOOP), "get in a closed loop on 1 connection"),
        (Place("put"), "put"),
        (Place(), ""),
    ],
)
def test_a_place_is_told_as_far_as_it_is_known(place, told):
    assert claim_text.place(Claim(place, "p50", "us", 1.0)) == told


@pytest.mark.parametrize(
    "factor, value, told",
    [
        ("connections", "4", "4 connections"),
        ("offered_rate_rps", "2000.0", "2\u202f000 r/s"),
        ("workload", "mixed", "mixed"),
    ],
)
def test_a_value_of_a_factor_has_its_unit(factor, value, told):
    assert claim_text.side(factor, value) == told


def test_a_sentence_says_what_a_claim_is_of_where_how_much_and_the_word():
    of_sides = replace(RATIO, baseline="selector", variant="workers")
    assert claim_text.sentence(of_sides).replace("\u202f", " ") == (
        "p50 of get at 20 000 r/s on 4 connections, workers to selector: 1.51 × [1.45, 1.54 ×], slower"
    )
    number = Claim(Place("get"), "p99", "us", 1240.0, (1000.0, 2000.0))
    assert claim_text.sentence(number) == "p99 of get: 1.24 ms [1.00, 2.00 ms]"
    none_held = Claim(Place("put", 1), "highest rate held", "rps", math.nan, word="met one that it did not")
    assert claim_text.sentence(none_held) == (
        "highest rate held of put on 1 connection: met one that it did not"
    )


def test_a_sentence_about_slow_answers_names_what_they_are_linked_to_or_caused_by():
    link = Claim(Place("put"), "waited", "share", 0.6, word="linked", rule=LINK, variant="wal_sync")
    assert claim_text.sentence(link) == "slow answers of put are linked to WAL sync"
    cause = replace(link, rule=INTERVENTION, word="caused by", variant="flush", also=("compaction",))
    assert claim_text.sentence(cause) == "slow answers of put are caused by flush and compaction"
