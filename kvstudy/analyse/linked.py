"""The word for each kind of event: *linked* to the slow answers, or *cannot tell* and why not.

    judge({"flush": Question(groups, events), …})       a Judgement for each; p values hold for all questions
                                                        together

All questions that one page asks belong into one call. What cannot be answered by its design (too few events
in a window, too few repeats) is not tested, and so takes nothing from the others.

Of few repeats no p is small enough for many questions at once. So they are asked in batches. A batch is as
long as all of it could be linked by Holm's method with the whole significance; the next one is asked only
where all of it was linked. Of the batches that hold a kind which is not linked in truth the first has the
whole significance, and no later one is asked before a word of it was false. So a false word is said no more
often than with one batch (Westfall and Krishen, "Optimally weighted, fixed sequence and gatekeeper multiple
testing procedures", 2001). Which questions are in a batch follows from how many repeats and events there
are, which no exchange changes, and from ``turn``: never from what came together. What Holm's method would
link among all questions at once is linked in batches too.
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
_NOT_ASKED = "too few repeats for {} questions at once: it is asked where those before it are linked"


@dataclass(frozen=True)
class Question:
    """Is this kind linked? ``groups``: the repeats of each configuration; ``events``: of the kind, in all
    runs of the groups that can tell; ``turn``: of questions that as many repeats can answer the lower one is
    asked first. It is stated beforehand."""

    groups: tuple[Repeats, ...]
    events: int
    turn: int = 0

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
    asked = {key: question for key, question in questions.items() if not why[key]}
    p_values = {
        key: permutation.p_value(list(question.groups), draws, generator) for key, question in asked.items()
    }
    said = {key: _untold(reason) for key, reason in why.items()}
    worst = 0.0  # corrected p of the batches before
    for batch in _batches(asked, draws, significance):
        if worst > significance:
            said |= dict.fromkeys(batch, _untold(_NOT_ASKED.format(len(asked))))
            continue
        corrected = np.maximum(worst, holm([p_values[key] for key in batch]))
        for key, p_value in zip(batch, corrected, strict=True):
            said[key] = _word(asked[key], float(p_value), len(batch), significance)
        worst = float(corrected.max())
    return said


def _untold(why: str) -> Judgement:
    return Judgement(CANNOT_TELL, float("nan"), why)


def _batches(asked: dict[Hashable, Question], draws: int, significance: float) -> list[list[Hashable]]:
    """First what most repeats can answer; each batch as long as Holm's method could link all of it."""
    least = {}  # p of what could not come together better, in the mean of the draws
    for key, question in asked.items():
        least[key] = (1 + draws * permutation.smallest_p(list(question.groups))) / (1 + draws)
    left = sorted(asked, key=lambda key: (least[key], asked[key].turn))
    found = []
    while left:
        lengths = (
            length
            for length in range(len(left), 1, -1)
            if all(least[key] * (length - place) <= significance for place, key in enumerate(left[:length]))
        )
        length = next(lengths, 1)
        found.append(left[:length])
        left = left[length:]
    return found


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
