"""The answer to each experiment's question as rows of the table of findings: the ruler, the searches, the
options, the tail, the published reports.

    findings.render(tables, answers.RULER)       can the ruler be trusted?
    findings.render(tables, answers.SERVICE)     what does each option do, what rate is held, why is the tail
                                               slow, do the reports hold?

The claims are made in ``analyse.answers``; here they are told.
"""

import math
from collections.abc import Sequence

import pandas as pd

from kvstudy.analyse.answers import Answer, options, ruler, service, tail
from kvstudy.analyse.claim import DUET, Claim
from kvstudy.analyse.comparison.words import CANNOT_TELL, TOO_FEW
from kvstudy.analyse.configuration import INVALID
from kvstudy.analyse.duets import Duet
from kvstudy.analyse.intervention import CAUSED
from kvstudy.analyse.linked import LINKED
from kvstudy.analyse.options import Tally
from kvstudy.analyse.replication import verdicts
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.tail import NO_EVENT
from kvstudy.present import claim_text, claims, findings, words
from kvstudy.present.figures.tail_intervention import held_off
from kvstudy.present.findings import Finding, Row, Rule, describe_unanswered, named, of_claim
from kvstudy.present.markdown import Markdown
from kvstudy.present.notebook import published_reports
from kvstudy.present.options import instead

_INSTRUMENT, _CAPACITY, _BEFORE_AFTER, _TAIL = "01-instrument", "04-capacity", "06-before-after", "07-tail"
_WHOSE = {True: claim_text.YOURS, False: claim_text.REFERENCE}


def _empty_server(answer: Answer) -> list[Row]:
    return [
        of_claim(f"p50 {named(f'at {words.rate(claim.subject.offered_rate_rps)}', claim.variant)}", claim)
        for claim in answer.claims
    ]


def _generators(answer: Answer) -> list[Row]:
    (claim,) = answer.claims
    (wrk, loadgen), (of_wrk, of_loadgen) = claim.ends, claim.sides
    return [
        of_claim(f"rate of loadgen to that of wrk: {claim_text.word(claim)}", claim),
        Row("rate of loadgen, about", words.about_rate(loadgen), runs=of_loadgen),
        Row("rate of wrk, about", words.about_rate(wrk), runs=of_wrk),
    ]


def _beside_wrk2(answer: Answer) -> list[Row]:
    rows = []
    for claim in answer.claims:
        at = words.rate(claim.subject.offered_rate_rps)
        rows += [
            Row(f"p50 that {name} reports at {at}", words.latency(value), runs=runs)
            for name, value, runs in zip(
                ("wrk2", "loadgen"), claim.ends[::-1], claim.sides[::-1], strict=True
            )
        ]
        rows += [
            of_claim(f"ratio of the two{'' if claim.decided else f': {claim_text.certainty(claim)}'}", claim),
        ]
    return rows


def _stall(answer: Answer) -> list[Row]:
    of = {claim.variant: claim for claim in answer.claims}
    at = words.rate(of[ruler.RESPONSE].subject.offered_rate_rps)
    return [
        of_claim(f"p99 from the due time, on a schedule of {at}", of[ruler.RESPONSE]),
        of_claim("p99 from the send, of the same runs", of[ruler.SERVICE]),
        of_claim("p99 of a closed loop", of[ruler.CLOSED]),
    ]


def _noise(answer: Answer) -> list[Row]:
    of, few = len(answer.claims), sum(claim.why == TOO_FEW for claim in answer.claims)
    wrong = sum(claim.differs for claim in answer.claims)
    counts = [Row("words that say that a thing differs from itself", f"{wrong} of {of - few}")]
    return [
        *(counts if few < of else []),  # of too few runs no word could be false
        *([Row(f"{CANNOT_TELL}: {TOO_FEW}", f"{few} of {of}")] if few else []),
        *(
            of_claim(
                f"{claim.measure} of {claim.subject.workload}"
                + (f": {claim_text.word(claim)}" if claim.decided else ""),
                claim,
            )
            for claim in answer.claims
        ),
    ]


def _profiling(answer: Answer) -> list[Row]:
    return [
        of_claim(f"{claim.measure} of {claim.subject.workload}: {claim_text.word(claim)}", claim)
        for claim in answer.claims
    ]


def _searches(answer: Answer) -> list[Row]:
    return [
        of_claim(
            named(claim.subject.workload, claim.variant)
            + (", no higher rate missed" if math.isinf(claim.interval[1]) else ""),
            claim,
        )
        for claim in answer.claims
    ]


def _options(tables: Tables, reference: Tables | None = None, duets: Sequence[Duet] = ()) -> list[Finding]:
    """What is decided, one for each experiment and place; what nobody could compare; and all that is
    undecided in one."""
    standing = options.standing(tables, reference)
    less, found = standing.less, options.decided(standing, duets)
    is_told = reference is not None or any(duet.is_own for duet in duets)

    def whose_and_own(name: str, answer: Answer) -> tuple[str, str]:
        if not is_told:
            return "", ""
        owners = options.whose(standing, duets, name) or {name in standing.own_experiments}
        of_runs = name in less and not all(claim.rule == DUET for claim in answer.claims)
        whose = claim_text.BOTH if len(owners) == 2 else _WHOSE[owners.pop()]
        return whose, _less(less[name], answer) if of_runs else ""

    def of_experiment(name: str, answer: Answer) -> list[Finding]:
        whose, own = whose_and_own(name, answer)

        def finding(question: str, rows: list[Row], own: str = "") -> Finding:
            return Finding(question, tuple(rows), _BEFORE_AFTER, answer.runs, whose, own, answer.launches)

        if not answer.claims:
            return [finding(name, [Row(describe_unanswered(answer))], own)]
        *first, last = [
            (f"{name}: {claim_text.place(mine[0])}", [_decided(claim) for claim in mine])
            for mine in _grouped(answer.claims, lambda claim: claim.subject).values()
        ]
        question, rows = last
        open_duets = [Row(text) for text in options.beside(standing, duets, name)]
        return [*(finding(*one) for one in first), finding(question, [*rows, *open_duets], own)]

    told = sorted(found.items(), key=lambda item: not item[1].claims)
    lines = [finding for name, answer in told for finding in of_experiment(name, answer)]
    answer, of = options.undecided(standing, duets)
    rows = tuple(_undecided(answer.claims, of, options.tallied(standing, duets))) if answer.claims else ()
    return [
        *lines,
        *(
            [Finding(_begun(CANNOT_TELL), rows, _BEFORE_AFTER, answer.runs, launches=answer.launches)]
            if rows
            else []
        ),
    ]


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def _less(own: Answer, theirs: Answer) -> str:
    """What the reader's own runs say of an experiment of which the reference decides more."""
    parts = [
        f"{claim_text.place(claim)}: {instead(claim.baseline, claim.variant)}, {_measure(claim)} "
        f"({claim_text.certainty(claim)})"
        for claim in own.claims
    ]
    begun = claim_text.less(own.runs, own.decides, theirs.decides)
    return f"{begun}{': ' if parts else ''}{'; '.join(parts)}."


def _decided(claim: Claim) -> Row:
    said = f"{instead(claim.baseline, claim.variant)} is {claim_text.word(claim)}"
    if claim.measure == INVALID:
        return Row(said, _measure(claim))
    return of_claim(f"{said}: {claim.measure}", claim)


def _grouped(things, key) -> dict:
    """In the order in which each group first comes."""
    found: dict = {}
    for thing in things:
        found.setdefault(key(thing), []).append(thing)
    return found


def _measure(claim: Claim) -> str:
    """ "p99 1.51 × [1.45, 1.54]"."""
    return f"{claim.measure} {claim_text.estimate(claim)}"


def _undecided(claims_made: tuple[Claim, ...], of: dict[str, int], tally: Tally) -> list[Row]:
    """Of which experiments how many comparisons decide nothing, and in how many for want of runs."""
    counts = {
        name: len(mine)
        for name, mine in _grouped(claims_made, lambda claim: claim.subject.experiment).items()
    }
    few = sum(claim.why == TOO_FEW for claim in claims_made)
    why = [Row(f"{TOO_FEW}, too few for a word", str(few))] if few else []
    open_of = [
        Row(f"comparisons of {what}", f"{count - decided} of {count}")
        for decided, count, what in (
            (tally.decided, tally.of, "an option with its default"),
            (tally.sizes_decided, tally.sizes, "sizes of the workload"),
        )
        if count > decided
    ]
    parts = [
        Row(f"those of {name}", f"{count} of {of[name]}")
        for name, count in sorted(counts.items(), key=lambda item: -item[1])
    ]
    return [*open_of, *parts, *why]


def _caused(answer: Answer) -> list[Row]:
    return [
        of_claim(
            f"{CAUSED} {held_off(claim.variant, claim.also)}: p99 without it"
            if claim.word == CAUSED
            else f"p99 without {held_off(claim.variant, claim.also)}: {claim.word}: {claim.why}",
            claim,
        )
        for claim in sorted(answer.claims, key=lambda claim: claim.word != CAUSED)
    ]


def _place_of_cause(answer: Answer) -> str:
    return f"What makes slow PUTs slow? p99 of {claim_text.place(answer.claims[0])}, to that as usual"


def _tail(answer: Answer) -> list[Row]:
    """The slowest percent of unique PUTs, with the words that 07-tail has for them."""
    limit, *kinds = answer.claims
    events = [claim for claim in kinds if claim.variant != NO_EVENT]
    linked = [claim for claim in events if claim.word == LINKED]
    rows = [Row("they take over", words.latency(limit.estimate))]
    rows += [_overlap(claim, "linked to") for claim in linked]
    if not linked:
        rows += [
            _overlap(claim, "cannot be explained from these runs", claim.why) for claim in events[:1]
        ] or [Row("cannot be explained from these runs")]
    return [*rows, Row("waited while no recorded event was felt", words.share(kinds[-1].estimate))]


def _place_of_tail(answer: Answer) -> str:
    subject = answer.claims[0].subject
    workload = words.factor(subject.workload).replace("put", "PUT")
    return f"The slowest percent of {workload} at {words.rate(subject.offered_rate_rps)}"


def _overlap(claim: Claim, said: str, why: str = "") -> Row:
    chance, share = claim.ends
    told = f"{said}: {why}; the most waited with" if why else said
    return Row(f"{told} {words.factor(claim.variant)}, by chance {words.share(chance)}", words.share(share))


def _published(tables: Tables, reference: Tables | None = None, duets: Sequence[Duet] = ()) -> Finding | None:
    judged = claims.judge(published_reports(), tables, reference, duets)
    counts = judged["verdict"].value_counts()
    measured = judged[judged["runs"] > 0]
    if measured.empty:
        return None
    rows = [
        Row(
            f"claims that are {verdict}" if verdict != CANNOT_TELL else verdict,
            f"{counts[verdict]} of {len(judged)}",
        )
        for verdict in verdicts.VERDICTS
        if verdict in counts
    ]
    return Finding(
        "Do five published reports hold?",
        tuple(rows),
        "08-published-reports",
        len(claims.counting(tables)),
        _whose_claims(judged) if reference is not None else "",
        launches=sum({ours.by_duet: ours.runs for ours in judged["ours"] if ours and ours.by_duet}.values()),
    )


def _whose_claims(judged: pd.DataFrame) -> str:
    whose = set(judged.loc[judged["runs"] > 0, "whose"])
    return next(iter(whose)) if len(whose) == 1 else claim_text.BOTH


RULER: tuple[Rule, ...] = (
    Rule("The ruler on a server that does nothing", _INSTRUMENT, ruler.empty_server, _empty_server),
    Rule("loadgen beside wrk, closed loop on an empty server", _INSTRUMENT, ruler.generators, _generators),
    Rule("A real wrk2 beside loadgen, on the same service", _INSTRUMENT, ruler.beside_wrk2, _beside_wrk2),
    Rule("Coordinated omission: a service stands still for one second", _INSTRUMENT, ruler.stall, _stall),
    Rule("The noise floor: the same thing measured twice", _INSTRUMENT, ruler.noise, _noise),
    Rule(
        "What profiling costs: a closed loop with the profiler to the same without",
        _INSTRUMENT,
        ruler.profiling,
        _profiling,
    ),
)
SERVICE = (
    Rule(
        "Highest rate with a mean of at most 1 ms on one connection", _CAPACITY, service.searches, _searches
    ),
    *findings.RULES,
    Rule("What makes slow PUTs slow?", _TAIL, tail.caused, _caused, _place_of_cause),
    Rule("The slowest percent", _TAIL, tail.linked, _tail, _place_of_tail),
    _published,
)


def summarize_options(
    tables: Tables, reference: Tables | None = None, duets: Sequence[Duet] = ()
) -> Markdown:
    """A row for each value of an option that is decided, and rows for all that is undecided. ``reference``:
    ``notebook.beside(tables)``; ``duets``: ``options.measured_duets()``."""
    return findings.render_table(
        _options(tables, reference, duets),
        "No option was varied yet. Measure one: `kvstudy run experiments/handler.yaml`.",
    )
