"""The answer of each page: one sentence, few bars, how sure; the same in a notebook and on the pages."""

import json

import pytest
from sample import empty_tables, sample_tables

from kvstudy.present import cards, headlines
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
    assert [card.answer for card in found].count(cards.NOT_MEASURED) == len(headlines.CARDS)


def test_cards_are_read_back_as_they_were_shown():
    card = Card("03-x", "Q?", "A.", "of", (Bar("a", 1.0, "1 ms"),), ("1 of 1 run valid",))
    stored = json.loads(json.dumps(cards.Shown([card])._repr_mimebundle_()[cards.MIME]))
    assert cards.read(stored) == {"03-x": card}


def test_text_of_a_card_cannot_become_markup():
    html = Card("03-x", "<b>?", "a & b", "<i>", (Bar("<u>", 0.0, "<s>"),), ("<q>",)).html()
    for tag in ("<b>", "<u>", "<s>", "<q>", "a & b"):
        assert tag not in html
    assert 'href="03-x.ipynb"' in html and "width:0.0%" in html
