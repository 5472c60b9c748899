"""Questions that few repeats cannot answer together are asked one after the other, in an order that was
stated, and no word is false more often for it."""

import math

import numpy as np
import pytest

from kvstudy.analyse import linked, permutation
from kvstudy.analyse.comparison.families import holm
from kvstudy.analyse.linked import CANNOT_TELL, LINKED, Question, judge
from kvstudy.analyse.permutation import Repeats

BESIDE = 0.5  # part of the significance where runs of the reader's own stand beside the reference
REPEATS, EVENTS = 5, 8


def moments(generator: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Of each repeat the bins in which something is felt, elsewhere in each."""
    runs = []
    for _ in range(REPEATS):
        run = np.zeros(3000)
        for place in generator.choice(290, EVENTS, replace=False):
            run[10 * place : 10 * place + 5] = 10.0
        runs.append(run)
    return tuple(runs)


@pytest.fixture
def made():
    """Slow answers, events that come together with them, and events that do not."""
    generator = np.random.default_rng(5)
    slow = moments(generator)

    def question(felt, turn):
        return Question((Repeats(slow, felt),), EVENTS * REPEATS, turn)

    return question, slow, moments(generator)


def test_of_two_kinds_that_five_repeats_cannot_answer_together_the_second_is_asked_after_the_first(made):
    question, slow, _ = made
    said = judge({"flush": question(slow, 0), "wal_sync": question(slow, 1)}, part=BESIDE)
    assert [one.word for one in said.values()] == [LINKED] * 2
    smallest = permutation.smallest_p([*question(slow, 0).groups])
    assert 2 * smallest > linked.SIGNIFICANCE * BESIDE >= smallest


def test_after_a_kind_that_is_not_linked_no_other_is_asked_and_it_says_so(made):
    question, slow, apart = made
    said = judge({"wal_sync": question(slow, 1), "flush": question(apart, 0)}, part=BESIDE)
    assert list(said) == ["wal_sync", "flush"]
    assert said["flush"].word == CANNOT_TELL and said["flush"].p_value > 0.0125
    assert (said["wal_sync"].word, said["wal_sync"].why) == (
        CANNOT_TELL,
        "too few repeats for 2 questions at once: it is asked where those before it are linked",
    )
    assert math.isnan(said["wal_sync"].p_value)


def test_the_order_is_that_of_the_turns_and_not_of_what_was_found(made):
    question, slow, apart = made
    said = judge({"apart": question(apart, 1), "together": question(slow, 0)}, part=BESIDE)
    assert said["together"].word == LINKED and said["apart"].word == CANNOT_TELL
    assert not math.isnan(said["apart"].p_value)


def test_a_kind_that_cannot_tell_by_its_design_keeps_no_other_from_being_asked(made):
    question, slow, _ = made
    rare = Question(question(slow, 0).groups, REPEATS, 0)
    said = judge({"flush": rare, "wal_sync": question(slow, 1)}, part=BESIDE)
    assert "5 are needed" in said["flush"].why and said["wal_sync"].word == LINKED


class Pretended:
    """Questions of so many configurations of five repeats each, whose p values are given."""

    def __init__(self, monkeypatch, configurations: list[int]) -> None:
        ones = (np.ones(2),) * REPEATS
        self.questions = {
            name: Question((Repeats(ones, ones),) * groups, 5 * REPEATS * groups, name)
            for name, groups in enumerate(configurations)
        }
        self.ways = [math.factorial(REPEATS) ** groups for groups in configurations]
        monkeypatch.setattr(permutation, "p_value", lambda *_: next(self.given))

    def linked(self, p_values: list[float]) -> set[int]:
        self.given = iter(p_values)
        said = judge(self.questions, part=BESIDE)
        return {name for name, one in said.items() if one.word == LINKED}


@pytest.mark.parametrize(
    ("configurations", "true"),
    [
        ([1, 1, 1], set()),
        ([1, 1, 1], {0}),
        ([1, 1, 1], {0, 1}),
        ([2, 1, 2, 1], {0}),
        ([2, 1, 2, 1], {0, 2}),
        ([2, 1, 2, 1], {1, 3}),
        ([2] * 6, {5}),
    ],
)
def test_words_of_kinds_that_are_not_linked_are_false_no_more_often_than_the_significance(
    monkeypatch, configurations, true
):
    """A p value of what is not linked is as exchanges give it: uniform over their number."""
    pretended, generator = Pretended(monkeypatch, configurations), np.random.default_rng(31)
    studies, wrong = 1500, 0
    for _ in range(studies):
        p_values = [
            1 / ways if name in true else math.ceil(generator.random() * ways) / ways
            for name, ways in enumerate(pretended.ways)
        ]
        wrong += bool(pretended.linked(p_values) - true)
    allowed = linked.SIGNIFICANCE * BESIDE * studies
    assert wrong <= allowed + 3 * math.sqrt(allowed), wrong / studies


def test_what_holms_method_links_among_all_questions_at_once_is_linked_in_batches_too(monkeypatch):
    configurations = [1, 2, 1, 2, 2, 1]
    pretended, generator = Pretended(monkeypatch, configurations), np.random.default_rng(32)
    gained = 0
    for _ in range(1000):
        p_values = [
            math.ceil(generator.random() ** generator.choice([1, 8]) * ways) / ways for ways in pretended.ways
        ]
        at_once = set(np.flatnonzero(holm(p_values) <= linked.SIGNIFICANCE * BESIDE).tolist())
        found = pretended.linked(p_values)
        assert at_once <= found
        gained += found != at_once
    assert gained
