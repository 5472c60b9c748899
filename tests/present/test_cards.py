"""The answer of each page: one sentence, few bars, how sure; the same in a notebook and on the pages."""

import json
import re

import pytest
from sample import empty_tables, failed, keep, repeated, sample_tables

from kvstudy.analyse.answers import Answer, ruler
from kvstudy.analyse.claim import Claim, Place
from kvstudy.analyse.comparison.words import CANNOT_TELL, SAME
from kvstudy.analyse.intervention import CAUSED
from kvstudy.analyse.linked import LINKED
from kvstudy.present import cards, headlines, words
from kvstudy.present.cards import Bar, Card
from kvstudy.project import project_root


@pytest.fixture(scope="module")
def shown():
    found = sample_tables()
    return headlines.index(found.but(runs=found.runs.assign(experiment="reproduce"))).cards


def test_there_is_a_card_for_every_page_in_their_order(shown):
    pages = [card.page for card in shown]
    notebooks = (project_root() / "notebooks").glob("*.ipynb")
    assert pages == sorted(page.stem for page in notebooks)[1:]
    assert all(card.question.endswith("?") for card in shown)


def test_an_answer_is_a_sentence_of_few_words_with_bars_that_have_numbers(shown):
    for card in shown:
        assert len(card.answer.split()) <= headlines.WORDS_MAX, card.answer
        assert card.answer.endswith((".", "…")), card.answer
        assert len(card.bars) <= cards.BARS_MAX and all(bar.text and bar.value >= 0 for bar in card.bars)
    assert sum(bool(card.bars) for card in shown) >= 3


def test_beside_an_answer_stands_how_many_of_its_runs_are_valid(shown):
    for card in shown:
        if card.bars:
            assert card.sure[0].endswith("valid"), card


def test_what_nobody_measured_says_so():
    found = headlines.index(empty_tables()).cards
    said = [card.answer for card in found if card.answer.startswith(cards.NOT_MEASURED.rstrip("."))]
    assert len(said) == len(headlines.CARDS)
    answers = {card.page: card.answer for card in found}
    assert "make peers" in answers["10-peers"]
    assert "kvstudy run experiments/connections.yaml" in answers["11-growth"]


def test_cards_are_read_back_as_they_were_shown():
    card = Card("03-x", "Q?", "A.", "of", (Bar("a", 1.0, "1 ms"),), ("1 of 1 run valid",))
    stored = json.loads(json.dumps(cards.Shown([card])._repr_mimebundle_()[cards.MIME]))
    assert cards.read(stored) == {"03-x": card}


def test_text_of_a_card_cannot_become_markup():
    html = Card("03-x", "<b>?", "a & b", "<i>", (Bar("<u>", 0.0, "<s>"),), ("<q>",)).html()
    for tag in ("<b>", "<u>", "<s>", "<q>", "a & b"):
        assert tag not in html
    assert 'href="03-x.ipynb"' in html and "width:0.0%" in html


def of_page(tables, page):
    return next(card for card in headlines.index(tables).cards if card.page == page)


def test_a_label_breaks_behind_its_sign_and_no_badge_between_a_number_and_its_unit():
    card = Card("06", "A?", bars=(Bar("wal=always", 1.0, "5.9 ×"),), sure=("over 120 %",))
    assert ">wal=<wbr>always</span>" in card.html() and 'title="wal=always"' in card.html()
    assert "over 120\u00a0%" in card.html()


def test_shares_of_the_processor_are_those_of_one_workload_and_never_of_a_pool():
    found = keep(sample_tables(), lambda run: run.profiled)
    puts = set(found.runs.loc[found.runs["workload"] == "unique_put", "run_id"])
    stacks = found.stacks
    in_store = stacks["run_id"].isin(puts) & stacks["stack"].str.contains("LsmStore")
    stacks = stacks.assign(samples=stacks["samples"].mask(in_store, 10**6))
    found = found.but(runs=found.runs.assign(experiment="reproduce"), stacks=stacks)
    card = of_page(found, "05-flame-graphs")
    (store,) = [bar for bar in card.bars if bar.label.startswith("store")]
    assert store.value > 0.9  # a pool with the GETs had half of it
    assert "unique PUT" in card.of and "repeated GET" in card.answer and "unique PUT" in card.answer
    assert card.answer.startswith("Cannot tell from 1 run each: ")
    assert of_page(repeated(found, 5), "05-flame-graphs").answer.startswith("CPU that goes to the network")


def test_of_profiles_of_two_windows_the_card_cannot_tell():
    found = repeated(keep(sample_tables(workloads=("put",)), lambda run: run.profiled), 5)
    found = found.but(runs=found.runs.assign(experiment="reproduce"))
    assert of_page(found, "05-flame-graphs").answer.startswith("CPU that goes to the network")
    lower = found.runs.assign(offered_rate_rps=[500.0] * 2 + [1000.0] * 3)
    assert "from 3 runs each" in of_page(found.but(runs=lower), "05-flame-graphs").answer
    quick = found.runs.assign(duration_s=[5.0] * 2 + [8.0] * 3)
    answer = of_page(found.but(runs=quick), "05-flame-graphs").answer
    assert answer.startswith("Cannot tell: profiled runs of 2 configurations")


def test_where_no_run_counts_the_answer_says_so_before_the_checks_that_failed():
    found = sample_tables(profiled=False, rates=(1000.0,), connections=(4,), workloads=("get",))
    found = failed(found, found.runs["run_id"])
    card = headlines.of_experiment(found)["03-percentiles"]
    failures = f"no_foreign_load ({len(found.runs)})"
    assert card.answer == f"Cannot tell: none of its runs counts; checks failed: {failures}."


def test_a_rate_that_was_the_highest_offered_is_no_limit():
    found = keep(sample_tables(repeats=5, profiled=False), lambda run: run.offered_rate_rps < 5000)
    card = of_page(found, "04-capacity")
    assert {bar.text for bar in card.bars} == {f"≥ {words.rate(4000.0)}"}
    assert "≥" in card.of


def test_a_rate_that_was_not_held_is_told_with_its_workload_and_connections():
    card = of_page(sample_tables(repeats=6, profiled=False), "04-capacity")
    assert "connection" in card.answer and "not" in card.answer
    assert "≥" not in "".join(bar.text for bar in card.bars)


def test_from_three_runs_at_a_rate_the_card_has_no_bar_of_what_was_held():
    card = of_page(sample_tables(repeats=3, profiled=False), "04-capacity")
    assert card.answer.startswith("Cannot tell") and not card.bars
    assert "4 of 4 combinations undecided" in card.sure


def test_the_card_of_a_rate_that_was_not_held_names_its_option():
    found = sample_tables(
        rates=(1000.0, 4000.0),
        connections=(4,),
        workloads=("unique_put",),
        repeats=5,
        labels=("a", "b"),
        profiled=False,
    )
    variants = found.runs["label"].map({"a": "wal=interval", "b": "wal=always"})
    lost = (variants == "wal=always") & (found.runs["offered_rate_rps"] == 4000.0)
    achieved_rps = found.runs["achieved_rate_rps"].mask(lost, 2000.0)
    found = found.but(runs=found.runs.assign(variant=variants, label="", achieved_rate_rps=achieved_rps))
    found = failed(found, found.runs.loc[lost, "run_id"], "rate_held", excluded="service")
    answer = of_page(found, "04-capacity").answer.replace("\u00a0", " ").replace("\u202f", " ")
    assert answer == "Unique PUT (wal=always): 1 000 r/s are held on 4 connections, 4 000 are not."


def with_cause(monkeypatch, **of_cause) -> Card:
    """The card of the tail where something was held off."""
    place = Place("unique_put", 4, 1000.0, "reproduce")
    told = {"estimate": 0.4, "word": CAUSED, "variant": "flush", "also": ("compaction", "wal_sync")}
    cause = Claim(place, "p99", "ratio", **told | of_cause)
    tie = Claim(place, "slow answers that waited with it", "share", 0.5, word=LINKED, variant="flush")
    limit = Claim(place, "slow answers take over", "us", 900.0)
    monkeypatch.setattr(headlines.tail, "caused", lambda _tables: Answer((cause,), 16))
    monkeypatch.setattr(headlines.tail, "linked", lambda _tables: Answer((limit, tie), 6))
    found = sample_tables(profiled=False)
    return of_page(found.but(runs=found.runs.assign(experiment="reproduce")), "07-tail")


def test_the_card_names_what_went_away_with_the_cause(monkeypatch):
    card = with_cause(monkeypatch)
    assert card.answer.replace("\u00a0", " ") == (
        "Flush, or compaction and WAL sync that went away with it: without them, p99 is 0.40 ×."
    )
    assert len(card.answer.split()) <= headlines.WORDS_MAX


@pytest.mark.parametrize(
    ("also", "ratio", "answer"),
    [
        (("compaction",), 0.21, "Flush or the compaction after it: without both, p99 is about a fifth."),
        ((), 0.48, "Flush causes it: without it, p99 is about half."),
        ((), 0.4, "Flush causes it: without it, p99 is 0.40 ×."),
    ],
)
def test_the_card_says_a_simple_part_of_the_tail_in_a_word(monkeypatch, also, ratio, answer):
    card = with_cause(monkeypatch, also=also, estimate=ratio)
    assert card.answer.replace("\u00a0", " ") == answer and not card.sure[1:]


def test_what_was_held_off_and_showed_no_cause_is_not_called_never_held_off(monkeypatch):
    unproven = with_cause(monkeypatch, word=CANNOT_TELL)
    assert unproven.sure[1:] == ("no cause is proven",) and "hollow" not in unproven.chart()
    monkeypatch.setattr(headlines.tail, "caused", lambda _tables: None)
    tables = sample_tables(profiled=False)
    card = of_page(tables.but(runs=tables.runs.assign(experiment="reproduce")), "07-tail")
    assert card.sure[1:] == ("nothing was held off: no cause is proven",)


def test_the_answer_of_one_workload_says_which_option_is_fast_and_which_slow():
    found = sample_tables(workloads=("get",), connections=(4,), rates=(1000.0,), repeats=10, profiled=False)
    odd = found.runs["repeat"] % 2 == 1
    options = odd.map({True: "wal=os", False: "wal=always"})
    slow = found.percentiles["run_id"].isin(found.runs.loc[~odd, "run_id"])
    slower = found.percentiles.assign(
        latency_us=found.percentiles["latency_us"].where(~slow, 9 * found.percentiles["latency_us"])
    )
    card = of_page(found.but(runs=found.runs.assign(variant=options), percentiles=slower), "03-percentiles")
    assert re.search(r"\(GET, wal=os\) to .* \(GET, wal=always\)\.$", card.answer), card.answer


def test_bars_leave_no_workload_out_silently():
    names = ("put", "get", "unique_put", "unique_get", "repeated_put", "repeated_get", "mixed")
    found = sample_tables(workloads=names, rates=(1000.0,), connections=(4,), repeats=5, profiled=False)
    (bar,) = of_page(found, "04-capacity").bars
    assert bar.label == "each of 7 workloads" and "unique PUT" in bar.hover
    card = of_page(found, "03-percentiles")
    assert f"({cards.BARS_MAX} of 7)" in card.of


def test_a_change_is_told_by_its_median_before_its_tail_and_named_whole():
    found = sample_tables(
        rates=(1000.0,), connections=(4,), workloads=("unique_put",), repeats=8, labels=("a", "b")
    )
    found = keep(found, lambda run: not run.profiled)
    variants = found.runs["label"].map({"a": "wal=interval", "b": "wal=always"})
    slow = set(found.runs.loc[variants == "wal=always", "run_id"])
    points = found.percentiles
    times = points["percentile"].map({50.0: 6.0, 99.0: 20.0}).fillna(8.0)
    latency = points["latency_us"].mask(points["run_id"].isin(slow), points["latency_us"] * times)
    card = of_page(
        found.but(
            runs=found.runs.assign(variant=variants, label="", experiment="wal"),
            percentiles=points.assign(latency_us=latency),
        ),
        "06-before-after",
    )
    assert card.answer.endswith("slower at the median.") and "unique PUT" in card.answer
    assert card.answer.startswith("Syncing the log before every answer (wal=always)")
    assert card.of == "largest by median or CPU, 1 of 1"
    (bar,) = card.bars
    assert bar.label == "wal=always" and bar.text == "p50 5.8 ×" and "4 connections" in bar.hover


def test_changes_of_one_option_are_told_apart_by_workload_and_connections():
    changes = [
        Claim(Place(workload, connections), "p50", "ratio", 2.0, variant=variant)
        for variant, workload, connections in (
            ("wal=always", "put", 16),
            ("handler=workers", "put", 16),
            ("handler=workers", "get", 16),
            ("handler=workers", "get", 64),
        )
    ]
    assert headlines._apart(changes) == [
        "wal=always",
        "workers, PUT",
        "workers, GET, 16 connections",
        "workers, GET, 64 connections",
    ]


def test_what_two_changes_share_does_not_tell_them_apart():
    """A label has room for two lines: what differs is to stand on them."""
    changes = [
        Claim(Place("get", connections), "p50", "ratio", 2.0, variant="handler=workers")
        for connections in (16, 64)
    ]
    assert headlines._apart(changes) == [
        "workers, 16 connections",
        "workers, 64 connections",
    ]


def test_the_badge_counts_the_runs_that_the_answer_rests_on():
    found = sample_tables()
    card = of_page(found, "03-percentiles")
    valid, of = (int(number) for number in card.sure[0].split(" run")[0].split(" of "))
    assert valid <= of < len(found.runs)


def test_no_card_agrees_more_with_itself_than_the_page_says():
    """The card had a rule of its own: within how many percent all intervals lay."""
    tables = sample_tables(
        profiled=False, repeats=6, rates=(1000.0,), connections=(4,), workloads=("get",), labels=("a", "b")
    )
    found = tables.but(runs=tables.runs.assign(experiment="noise"))
    answer = of_page(found, "01-instrument").answer
    claims = [claim for claim in ruler.noise(found).claims if claim.measure == "p50"]
    same = sum(claim.word == SAME for claim in claims)
    assert "agreed" not in answer
    assert (f"{same} of {len(claims)} medians the same" in answer.replace("\u00a0", " ")) == bool(same)


def test_too_few_runs_to_say_any_word_are_no_absence_of_false_alarms():
    tables = sample_tables(
        profiled=False, repeats=4, rates=(1000.0,), connections=(4,), workloads=("get",), labels=("a", "b")
    )
    found = tables.but(runs=tables.runs.assign(experiment="noise"))
    assert ruler.noise(found).claims
    assert of_page(found, "01-instrument").answer.startswith("Cannot tell: the same thing was not measured")
