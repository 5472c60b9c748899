"""The word for each kind of event: *linked* to the slow answers, or *cannot tell* and why not.

    judged({"flush": Question(groups, events), …})      a Judgement for each; p values hold for all questions
                                                        together (Holm)

All questions that one page asks belong into one call. What cannot be answered by its design (too few events
in a window, too few repeats) is not tested, and so takes nothing from the others.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from kvstudy.analyse import permutation
from kvstudy.analyse.comparison.families import holm
from kvstudy.analyse.permutation import Repeats

LINKED, CANNOT_TELL = "linked", "cannot tell"
# Two families of words stand on a page, this one and that of intervention.py: each has half of the 5 % at
# which the page may be wrong anywhere.
SIGNIFICANCE = 0.05 / 2
DRAWS = 9999
EVENTS_MIN = (
    5  # of a kind in a window, in the mean: with fewer, one coincidence is most of what a run has to say
)
IN_STEP = 0.5
_IN_STEP = "the repeats are in step"


@dataclass(frozen=True)
class Question:
    """Is this kind linked? ``groups``: the repeats of each configuration; ``events``: of the kind, in all
    runs of the groups that can tell."""

    groups: tuple[Repeats, ...]
    events: int

    @property
    def runs(self) -> int:
        return sum(len(group.slow) for group in self.groups if group.is_informative)

    @property
    def events_a_window(self) -> float:
        return self.events / self.runs if self.runs else 0.0

    def unanswerable(self, significance: float = SIGNIFICANCE) -> str:
        """Why these runs cannot answer, whatever happened in them; "" where they can."""
        if not self.runs:
            return "no repeats to exchange events between"
        if self.events_a_window < EVENTS_MIN:
            also = f"; {_IN_STEP}" if permutation.in_step(list(self.groups)) > IN_STEP else ""
            return f"{self.events_a_window:.1f} events a window, {EVENTS_MIN} are needed{also}"
        smallest = permutation.smallest_p(list(self.groups))
        return f"too few repeats: p cannot fall below {smallest:.2g}" if smallest > significance else ""


@dataclass(frozen=True)
class Judgement:
    """``p_value``: corrected; NaN where nothing was tested. ``why``: "" when linked."""

    word: str
    p_value: float
    why: str


def judge(
    questions: dict[Hashable, Question], draws: int = DRAWS, seed: int = 1, part: float = 1.0
) -> dict[Hashable, Judgement]:
    """The same questions and seed give the same judgements. ``part``: of SIGNIFICANCE, as ``Tables`` has
    it."""
    significance = SIGNIFICANCE * part
    generator = np.random.default_rng(seed)
    why = {key: question.unanswerable(significance) for key, question in questions.items()}
    tested = [key for key in questions if not why[key]]
    p_values = [permutation.p_value(list(questions[key].groups), draws, generator) for key in tested]
    corrected = dict(zip(tested, holm(p_values), strict=True)) if tested else {}
    return {
        key: Judgement(CANNOT_TELL, float("nan"), why[key])
        if why[key]
        else _word(questions[key], float(corrected[key]), len(tested), significance)
        for key in questions
    }


def _word(question: Question, p_value: float, tests: int, significance: float) -> Judgement:
    if p_value <= significance:
        return Judgement(LINKED, p_value, "")
    smallest = permutation.smallest_p(list(question.groups)) * tests
    if smallest > significance:
        return Judgement(
            CANNOT_TELL,
            p_value,
            f"too few repeats for {tests} questions: p cannot be told to be below {smallest:.2g}",
        )
    if permutation.in_step(list(question.groups)) > IN_STEP:
        return Judgement(CANNOT_TELL, p_value, f"{_IN_STEP}: it comes at the same moment in all of them")
    return Judgement(
        CANNOT_TELL, p_value, "no closer to the slow answers than in other repeats or at other times"
    )
