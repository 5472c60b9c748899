"""What was found, as a table: the claims of ``analyse.answers`` in words and numbers, each with the page that
shows it.

    question | answer | number | interval | runs | page

``render(tables)`` writes it. No number is worked out here: a Rule asks for an answer and tells its claims, a
row each. A study of other runs says other things in the same words. Where a question was measured and every
run of it is invalid, the answer is *cannot tell*, with the checks that failed. A question that was not
measured has no row.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kvstudy.analyse.answers import RULER, Answer, service, service_tables
from kvstudy.analyse.claim import DUET, Claim
from kvstudy.analyse.comparison.words import CANNOT_TELL, FASTER, SAME, SLOWER, TOO_FEW
from kvstudy.analyse.duets import Duet
from kvstudy.analyse.tables import Tables
from kvstudy.present import claim_text, words
from kvstudy.present.claim_text import BOTH, REFERENCE, YOURS
from kvstudy.present.markdown import Markdown

__all__ = ["RULER", "RULES", "Finding", "Row", "Rule", "of_claim", "render", "service_tables"]
HEADS = ("question", "answer", "number", "interval", "runs", "page")


@dataclass(frozen=True)
class Row:
    """One number, and what it is of; a row that says how much is undecided may have none. ``runs``,
    ``launches``: how many the number rests on, where these are not all of its question."""

    answer: str
    number: str = ""
    interval: str = ""
    runs: int = 0
    launches: int = 0


@dataclass(frozen=True)
class Finding:
    """``rows``: what is said to the question; ``page``: the notebook that shows it; ``runs``, ``launches``:
    how many it rests on; ``whose`` (YOURS, REFERENCE or both): where the reader has measured; ``own``: what
    his own runs say where they decide less than the reference's, of which ``rows`` are then."""

    question: str
    rows: tuple[Row, ...]
    page: str
    runs: int
    whose: str = ""
    own: str = ""
    launches: int = 0

    def lines(self) -> list[str]:
        """Rows of a Markdown table."""
        page = f"[{self.page[:2]}]({self.page}.ipynb)"
        own = [_line("", self.own, "", "", YOURS, page)] if self.own else []
        return [
            _line(self.question, row.answer, row.number, row.interval, self._rests_on(row), page)
            for row in self.rows
        ] + own

    def _rests_on(self, row: Row) -> str:
        of = row if row.runs or row.launches else self
        counts = [words.counted(of.runs, "run")] if of.runs or not of.launches else []
        counts += [f"{words.counted(of.launches, 'launch')} of duets"] if of.launches else []
        return " and ".join(counts) + (f", {self.whose}" if self.whose else "")


def _line(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


@dataclass(frozen=True)
class Rule:
    """``ask`` answers from the tables; ``tell`` puts the claims of the answer into rows; ``title``: the
    question, unless ``title_of`` makes it from the answer."""

    title: str
    page: str
    ask: Callable[[Tables], Answer | None]
    tell: Callable[[Answer], list[Row]]
    title_of: Callable[[Answer], str] | None = None

    def __call__(
        self, tables: Tables, reference: Tables | None = None, _duets: Sequence[Duet] = ()
    ) -> Finding | None:
        """``reference``: the committed runs, where ``tables`` has the reader's own in the place of some.

        Choosing what decides more makes no word of either more often false: it can only leave words out, and
        a line says whose it is. Each of the two families has half of the page's error (``Tables.part``), so
        that together they are false on at most 5 % of pages."""
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
            own = f"{less}: {_in_one(self._finding(answer).rows)}"
            return self._finding(theirs, REFERENCE, own)
        alone = self.ask(tables.only(tables.own))
        is_own = alone is not None and repr(alone.claims) == repr(answer.claims)
        return self._finding(answer, YOURS if is_own else BOTH)

    def _finding(self, answer: Answer, whose: str = "", own: str = "") -> Finding:
        rows = self.tell(answer) if answer.claims else [Row(describe_unanswered(answer))]
        title = self.title_of(answer) if self.title_of and answer.claims else self.title
        return Finding(title, tuple(rows), self.page, answer.runs, whose, own)


def _in_one(rows: tuple[Row, ...]) -> str:
    return "; ".join(f"{row.answer} {row.number} {row.interval}".strip() for row in rows)


def render(
    tables: Tables,
    rules: tuple[Rule, ...] | None = None,
    reference: Tables | None = None,
    duets: Sequence[Duet] = (),
) -> Markdown:
    """Every finding that the runs support, as a table; a sentence when there is none. ``reference``:
    ``notebook.beside(tables)``; ``duets``: ``options.measured_duets()``, which answer some published
    claims."""
    rules = RULES if rules is None else rules
    found = [finding for rule in rules if (finding := rule(tables, reference, duets)) is not None]
    return render_table(found, "No valid run supports a finding yet. Measure with `make reproduce`.")


def render_table(found: list[Finding], otherwise: str) -> Markdown:
    """``found`` as a table, or the sentence ``otherwise``."""
    if not found:
        return Markdown(otherwise)
    heads = [_line(*HEADS), _line(*["---"] * len(HEADS))]
    return Markdown("\n".join([*heads, *(line for finding in found for line in finding.lines())]))


def describe_unanswered(answer: Answer) -> str:
    """Of an answer without claims."""
    if answer.why:
        return f"{CANNOT_TELL}: {answer.why}"
    if not answer.failed:
        return f"{CANNOT_TELL}: the runs that count are not of both sides, or have too few samples"
    why = words.several([f"{check} ({count})" for check, count in answer.failed])
    return f"{CANNOT_TELL}: none of its runs counts; checks failed: {why}"


def of_claim(answer: str, claim: Claim) -> Row:
    runs, launches = (0, claim.runs) if claim.rule == DUET else (claim.runs, 0)
    return Row(answer, claim_text.alone(claim), claim_text.around(claim), runs, launches)


def _place_of_workloads(answer: Answer) -> str:
    first = answer.claims[0].subject
    return (
        f"p99 response time at {words.rate(first.offered_rate_rps)} on "
        f"{words.value('connections', first.connections)}"
    )


def _p99_of_workloads(answer: Answer) -> list[Row]:
    """With what tells its runs from others of the same workload and place, which share no median with
    them."""
    return [of_claim(named(claim.subject.workload, claim.variant), claim) for claim in answer.claims]


def named(what: str, variant: str) -> str:
    return f"{what} ({variant})" if variant else what


def _rates_held(answer: Answer) -> list[Row]:
    _offered_at_most, *combinations = answer.claims
    of = f"{words.counted(len(combinations), 'combination')} of workload, connections and options"
    lost = [claim for claim in combinations if claim.word == service.MET_ITS_LIMIT]
    every = sum(claim.word == service.HELD_EVERY for claim in combinations)
    few = len(combinations) - len(lost) - every
    rows = []
    if lost:
        held = [claim.estimate for claim in combinations if claim.decided and not math.isnan(claim.estimate)]
        first = min(lost, key=lambda claim: claim.ends[1])
        on = f"on {words.value('connections', first.subject.connections)}"
        rows = [
            Row("the highest that was held", words.rate(max(held)) if held else "none"),
            Row(
                f"the lowest that was not: {named(first.subject.workload, first.variant)} {on}",
                words.rate(first.ends[1]),
            ),
            Row(f"{of} that met a rate that was not held", f"{len(lost)} of {len(combinations)}"),
        ]
    else:
        rows = [Row(f"{of} that held every rate offered", f"{every} of {len(combinations)}")]
    too_few = TOO_FEW.replace(" a side", " at a rate")
    unsure = [Row(f"{CANNOT_TELL}: {too_few}", f"{few} of {len(combinations)}")] if few else []
    return [*rows, *unsure]


def _offered(answer: Answer) -> str:
    return f"Rates chosen beforehand, at most {words.rate(answer.claims[0].estimate)}"


def _repeated_against_unique(answer: Answer) -> list[Row]:
    return [
        of_claim(
            f"p99 of {claim.variant} to that of {claim_text.place(claim)}: {claim_text.certainty(claim)}",
            claim,
        )
        for claim in answer.claims
    ]


def _sides_of_connections(answer: Answer) -> str:
    first = answer.claims[0]
    return f"{first.variant} connections against {first.baseline} at the same rate"


def _more_connections(answer: Answer) -> list[Row]:
    first, of = answer.claims[0], len(answer.claims)
    counts = [
        Row(f"p99 is {word}" if word != CANNOT_TELL else word, f"{count} of {of}")
        for word in (FASTER, SLOWER, SAME, CANNOT_TELL)
        if (count := sum(claim.word == word for claim in answer.claims)) or word in (FASTER, SLOWER)
    ]
    example = f"for example {first.subject.workload} at {words.rate(first.subject.offered_rate_rps)}"
    return [*counts, of_claim(f"{example}: {claim_text.certainty(first)}", first)]


def _waiting(answer: Answer) -> list[Row]:
    (claim,) = answer.claims
    service_us, response_us = claim.ends
    return [
        of_claim(f"p99 from the due time to that from the send, {claim_text.place(claim)}, held", claim),
        Row("from the due time", words.latency(response_us)),
        Row("from the send", words.latency(service_us)),
        *_largest_of(claim),
    ]


def _largest_of(claim: Claim) -> list[Row]:
    """Whoever takes the largest of many takes what chance made large."""
    if claim.chosen_from < 2:
        return []
    return [Row("configurations of which this is the largest", str(claim.chosen_from))]


_PERCENTILES, _CAPACITY = "03-percentiles", "04-capacity"
RULES: tuple[Rule, ...] = (
    Rule("p99 response time", _PERCENTILES, service.p99_of_workloads, _p99_of_workloads, _place_of_workloads),
    Rule("Rates chosen beforehand", _CAPACITY, service.rates_held, _rates_held, _offered),
    Rule(
        "Repeated against unique keys",
        _PERCENTILES,
        service.repeated_against_unique,
        _repeated_against_unique,
    ),
    Rule(
        "More connections",
        "06-before-after",
        service.more_connections,
        _more_connections,
        _sides_of_connections,
    ),
    Rule("Waiting that service time hides", _PERCENTILES, service.waiting, _waiting),
)
