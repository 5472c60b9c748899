"""What was found, as sentences: the claims of ``analyse.answers`` in words, each with the page that shows it.

``render(tables)`` writes them all. No number is worked out here: a Rule asks for an answer and tells its
claims. A study of other runs says other things in the same words. Where a question was measured and every run
of it is invalid, the answer is *cannot tell*, with the checks that failed. A question that was not measured
has no line.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from IPython.display import Markdown

from kvstudy.analyse.answers import RULER, Answer, service, service_tables
from kvstudy.analyse.claim import Claim
from kvstudy.analyse.comparison.words import CANNOT_TELL, FASTER, SAME, SLOWER, TOO_FEW
from kvstudy.analyse.tables import Tables
from kvstudy.present import claim_text, words
from kvstudy.present.claim_text import BOTH, REFERENCE, YOURS

__all__ = ["RULER", "RULES", "Finding", "Rule", "render", "service_tables"]


@dataclass(frozen=True)
class Finding:
    """``sentence`` in Markdown; ``page``: the notebook that shows it; ``runs``, ``launches``: how many
    it rests on; ``whose`` (YOURS, REFERENCE or both): where the reader has measured; ``own``: what his own
    runs say where they decide less than the reference's, of which ``sentence`` is then."""

    sentence: str
    page: str
    runs: int
    whose: str = ""
    own: str = ""
    launches: int = 0

    def line(self) -> str:
        counts = [words.counted(self.runs, "run")] if self.runs or not self.launches else []
        counts += [f"{words.counted(self.launches, 'launch')} of duets"] if self.launches else []
        runs = " and ".join(counts) + (f", {self.whose}" if self.whose else "")
        own = f"\n  - {self.own}" if self.own else ""
        return f"- {self.sentence} *({runs}; [{self.page}]({self.page}.ipynb))*{own}"


@dataclass(frozen=True)
class Rule:
    """``ask`` answers from the tables; ``tell`` puts the claims of the answer into sentences; ``title``: of a
    question that no run answers."""

    title: str
    page: str
    ask: Callable[[Tables], Answer | None]
    tell: Callable[[Answer], str]

    def __call__(self, tables: Tables, reference: Tables | None = None) -> Finding | None:
        """``reference``: the committed runs, where ``tables`` has the reader's own in the place of some.

        Choosing what decides more makes no word of either more often false: it can only leave words out, and
        a line says whose it is. So at most 5 % of studies have a false word of one's own, and the reference's
        words are those that it had before. On a page that shows both, the bounds of the two families add up
        to 10 %."""
        answer = self.ask(tables)
        if reference is None:
            return None if answer is None else self._finding(answer)
        theirs = self.ask(reference)
        if answer is None or theirs is None:
            found = answer or theirs
            return None if found is None else self._finding(found, YOURS if answer else REFERENCE)
        if repr(answer.claims) == repr(theirs.claims):  # NaN is no other than NaN
            return self._finding(theirs, REFERENCE)
        if theirs.decides > answer.decides:
            less = claim_text.less(answer.runs, answer.decides, theirs.decides)
            own = f"{less}: {self._finding(answer).sentence}"
            return self._finding(theirs, REFERENCE, own)
        alone = self.ask(tables.only(tables.own))
        is_own = alone is not None and repr(alone.claims) == repr(answer.claims)
        return self._finding(answer, YOURS if is_own else BOTH)

    def _finding(self, answer: Answer, whose: str = "", own: str = "") -> Finding:
        sentence = self.tell(answer) if answer.claims else describe_unanswered(self.title, answer)
        return Finding(sentence, self.page, answer.runs, whose, own)


def render(
    tables: Tables, rules: tuple[Rule, ...] | None = None, reference: Tables | None = None
) -> Markdown:
    """Every finding that the runs support, as a list; a sentence when there is none. ``reference``:
    ``notebook.beside(tables)``."""
    rules = RULES if rules is None else rules
    found = [finding for rule in rules if (finding := rule(tables, reference)) is not None]
    return render_list(found, "No valid run supports a finding yet. Measure with `make reproduce`.")


def render_list(found: list[Finding], otherwise: str) -> Markdown:
    """``found`` as a list, or the sentence ``otherwise``."""
    return Markdown("\n".join(finding.line() for finding in found) or otherwise)


def describe_unanswered(title: str, answer: Answer) -> str:
    """Of an answer without claims."""
    if answer.why:
        return f"**{title}:** {CANNOT_TELL}: {answer.why}."
    if not answer.failed:
        return (
            f"**{title}:** {CANNOT_TELL}: the runs that count are not of both sides, or have too few samples."
        )
    why = words.several([f"{check} ({count})" for check, count in answer.failed])
    return f"**{title}:** {CANNOT_TELL}: none of its runs counts; checks failed: {why}."


def _p99_of_workloads(answer: Answer) -> str:
    first = answer.claims[0].subject
    where = f"{words.rate(first.offered_rate_rps)} on {words.value('connections', first.connections)}"
    return f"**p99 response time at {where}:** {'; '.join(_of_workload(claim) for claim in answer.claims)}."


def _of_workload(claim: Claim) -> str:
    """With what tells its runs from others of the same workload and place, which share no median with
    them."""
    variant = f" ({claim.variant})" if claim.variant else ""
    return f"{claim.subject.workload}{variant} {claim_text.estimate(claim)}"


def _rates_held(answer: Answer) -> str:
    offered, *combinations = answer.claims
    title = f"**Rates chosen beforehand,** at most {words.rate(offered.estimate)}:"
    named = f"{words.counted(len(combinations), 'combination')} of workload, connections and options"
    lost = [claim for claim in combinations if claim.word == service.MET_ITS_LIMIT]
    every = sum(claim.word == service.HELD_EVERY for claim in combinations)
    few = len(combinations) - len(lost) - every
    unsure = f" Of {few} the runs cannot tell: {TOO_FEW.replace(' a side', ' at a rate')}." if few else ""
    if not lost:
        return (
            f"{title} {every} of {named} held every rate that they were offered; what saturates them lies "
            f"above.{unsure}"
        )
    first, held = (
        min(lost, key=lambda claim: claim.ends[1]),
        [claim.estimate for claim in combinations if claim.decided and not math.isnan(claim.estimate)],
    )
    best = f"the highest that was held is {words.rate(max(held))}" if held else "none was held"
    variant = f" ({first.variant})" if first.variant else ""
    return (
        f"{title} {best}. {len(lost)} of {named} met a rate that they did not hold. The lowest such "
        f"rate is {words.rate(first.ends[1])}, "
        f"by {first.subject.workload}{variant} on "
        f"{words.value('connections', first.subject.connections)}.{unsure}"
    )


def _repeated_against_unique(answer: Answer) -> str:
    parts = [
        (
            f"{claim.variant} has {claim_text.estimate(claim)} the p99 of {claim_text.place(claim)} "
            f"({claim_text.certainty(claim)})"
        )
        for claim in answer.claims
    ]
    return f"**Repeated against unique keys:** {'; '.join(parts)}."


def _more_connections(answer: Answer) -> str:
    first = answer.claims[0]
    counts = [
        f"{count} {word}"
        for word in (FASTER, SLOWER, SAME, CANNOT_TELL)
        if (count := sum(claim.word == word for claim in answer.claims)) or word in (FASTER, SLOWER)
    ]
    return (
        f"**{first.variant} connections against {first.baseline} at the same rate:** of "
        f"{words.counted(len(answer.claims), 'comparison')} of p99 "
        f"{words.several(counts)}. For example {first.subject.workload} at "
        f"{words.rate(first.subject.offered_rate_rps)}: {_ratio_and_word(first)}."
    )


def _waiting(answer: Answer) -> str:
    (claim,) = answer.claims
    service_us, response_us = claim.ends
    return (
        f"**Waiting that service time hides:** {claim_text.place(claim)} has a p99 "
        f"{words.times(claim.estimate)} as long from the due time as from the send, "
        f"at a rate that was held. It is {words.latency(response_us)} from the due time and "
        f"{words.latency(service_us)} from the send."
    )


def _ratio_and_word(claim: Claim) -> str:
    return f"{claim_text.estimate(claim)} ({claim_text.certainty(claim)})"


_PERCENTILES, _CAPACITY = "03-percentiles", "04-capacity"
RULES: tuple[Rule, ...] = (
    Rule("p99 response time", _PERCENTILES, service.p99_of_workloads, _p99_of_workloads),
    Rule("Rates chosen beforehand", _CAPACITY, service.rates_held, _rates_held),
    Rule(
        "Repeated against unique keys",
        _PERCENTILES,
        service.repeated_against_unique,
        _repeated_against_unique,
    ),
    Rule("More connections", "06-before-after", service.more_connections, _more_connections),
    Rule("Waiting that service time hides", _PERCENTILES, service.waiting, _waiting),
)
