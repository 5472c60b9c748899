"""The answer to each experiment's question as a finding: the ruler, the searches, the options, the tail, the
published reports.

    findings.render(tables, answers.RULER)       can the ruler be trusted?
    findings.render(tables, answers.SERVICE)     what does each option do, what rate is held, why is the tail
                                               slow, do the reports hold?

The claims are made in ``analyse.answers``; here they are told.
"""

import math
from collections.abc import Sequence
from itertools import groupby

import pandas as pd
from IPython.display import Markdown

from kvstudy.analyse.answers import Answer, options, ruler, service, tail
from kvstudy.analyse.claim import CLOSED_LOOP, DUET, Claim
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
from kvstudy.present.findings import Finding, Rule, describe_unanswered
from kvstudy.present.notebook import published_reports
from kvstudy.present.options import instead

_INSTRUMENT, _CAPACITY, _BEFORE_AFTER, _TAIL = "01-instrument", "04-capacity", "06-before-after", "07-tail"
_WHOSE = {True: claim_text.YOURS, False: claim_text.REFERENCE}


def _empty_server(answer: Answer) -> str:
    parts = [
        (
            f"{claim_text.estimate(claim)} at "
            f"{words.rate(claim.subject.offered_rate_rps)}{f' ({claim.variant})' if claim.variant else ''}"
        )
        for claim in answer.claims
    ]
    return f"**The ruler on a server that does nothing:** the median response time is {words.several(parts)}."


def _generators(answer: Answer) -> str:
    (claim,) = answer.claims
    wrk, loadgen = claim.ends
    return (
        "**loadgen beside wrk, closed loop on an empty server:** loadgen sends "
        f"{claim_text.estimate(claim)} the rate of wrk ({claim_text.word(claim)}). "
        f"It sends about {words.about_rate(loadgen)}, wrk about {words.about_rate(wrk)}."
    )


def _beside_wrk2(answer: Answer) -> str:
    parts = [
        (
            f"at {words.rate(claim.subject.offered_rate_rps)} wrk2 reports a median of "
            f"{words.latency(claim.ends[1])} and loadgen {words.latency(claim.ends[0])}, "
            f"{claim_text.estimate(claim)} as much{'' if claim.decided else f' ({CANNOT_TELL})'}"
        )
        for claim in answer.claims
    ]
    return f"**A real wrk2 beside loadgen, on the same service:** {'; '.join(parts)}."


def _stall(answer: Answer) -> str:
    of = {claim.variant: claim for claim in answer.claims}
    return (
        "**Coordinated omission, shown:** a service stands still for one second. On a schedule of "
        f"{words.rate(of[ruler.RESPONSE].subject.offered_rate_rps)} p99 is "
        f"{claim_text.estimate(of[ruler.RESPONSE])} from the due time. From the send it is "
        f"{claim_text.estimate(of[ruler.SERVICE])} in the same runs. "
        f"A closed loop reports {claim_text.estimate(of[ruler.CLOSED])}."
    )


def _noise(answer: Answer) -> str:
    of = groupby(answer.claims, key=lambda claim: claim.subject.workload)
    parts = [
        f"{workload} {words.several([_measure(claim, decided=True) for claim in mine])}"
        for workload, mine in of
    ]
    wrong = sum(claim.differs for claim in answer.claims)
    alarms = "is a false alarm" if wrong == 1 else "are false alarms"
    text = (
        "No word says that they differ, as it should be"
        if wrong == 0
        else f"{wrong} of {words.counted(len(answer.claims), 'word')} {alarms}"
    )
    return f"**The noise floor:** the same thing measured twice differs: {'; '.join(parts)}. {text}."


def _profiling(answer: Answer) -> str:
    parts = [
        f"{claim.subject.workload} {claim.measure} {claim_text.estimate(claim)} ({claim_text.word(claim)})"
        for claim in answer.claims
    ]
    return (
        "**What profiling costs,** as the ratio of a closed loop with the profiler to the same without: "
        f"{words.several(parts)}."
    )


def _searches(answer: Answer) -> str:
    parts = [_stable_rate(claim) for claim in answer.claims]
    return f"**Highest rate with a mean of at most 1 ms on one connection:** {'; '.join(parts)}."


def _stable_rate(claim: Claim) -> str:
    text = f"{claim.subject.workload} {claim_text.estimate(claim)}" + (
        f" ({claim.variant})" if claim.variant else ""
    )
    return f"{text}, no higher rate missed" if math.isinf(claim.interval[1]) else text


def _options(tables: Tables, reference: Tables | None = None, duets: Sequence[Duet] = ()) -> list[Finding]:
    """What is decided, one per experiment; what nobody could compare; and all that is undecided in one."""
    tables, less = options.standing(tables, reference)
    found = options.decided(tables, duets)
    is_told = reference is not None or any(duet.is_own for duet in duets)

    def finding(name: str, answer: Answer, sentence: str) -> Finding:
        if not is_told:
            return Finding(sentence, _BEFORE_AFTER, answer.runs, launches=answer.launches)
        owners = options.whose(tables, duets, name) or {bool(tables.select(experiment=name).own_runs)}
        whose = claim_text.BOTH if len(owners) == 2 else _WHOSE[owners.pop()]
        of_runs = name in less and not all(claim.rule == DUET for claim in answer.claims)
        mine = _less(less[name], answer) if of_runs else ""
        return Finding(sentence, _BEFORE_AFTER, answer.runs, whose, mine, answer.launches)

    def sentence(name: str, answer: Answer) -> str:
        open_duets = options.beside(tables, duets, name)
        also = f" ({words.several(open_duets)})" if open_duets else ""
        return f"**{name}:** {'; '.join(_decided(answer.claims))}{also}."

    found_lines = [
        finding(name, answer, sentence(name, answer)) for name, answer in found.items() if answer.claims
    ]
    silent = [
        finding(name, answer, describe_unanswered(name, answer))
        for name, answer in found.items()
        if not answer.claims
    ]
    answer, of = options.undecided(tables, duets)
    open_line = (
        [
            Finding(
                _undecided(answer.claims, of, options.tallied(tables, duets)),
                _BEFORE_AFTER,
                answer.runs,
                launches=answer.launches,
            )
        ]
        if answer.claims
        else []
    )
    return [*found_lines, *silent, *open_line]


def _less(own: Answer, theirs: Answer) -> str:
    """What the reader's own runs say of an experiment of which the reference decides more."""
    parts = [
        f"{claim_text.place(claim)}: {instead(claim.baseline, claim.variant)}, {_measure(claim)} "
        f"({claim_text.certainty(claim)})"
        for claim in own.claims
    ]
    begun = claim_text.less(own.runs, own.decides, theirs.decides)
    return f"{begun}{': ' if parts else ''}{'; '.join(parts)}."


def _decided(claims_made: tuple[Claim, ...]) -> list[str]:
    """For each place and value of one experiment what is decided of it, by its words."""
    parts = []
    for subject, mine in _grouped(claims_made, lambda claim: claim.subject).items():
        offered = (
            "in a closed loop"
            if subject.offered_rate_rps == CLOSED_LOOP
            else f"at {words.rate(subject.offered_rate_rps)}"
        )
        sides = []
        for (before, after), of_value in _grouped(
            mine, lambda claim: (claim.baseline, claim.variant)
        ).items():
            found = [
                f"{word} ({', '.join(map(_measure, same))})"
                for word, same in _grouped(of_value, claim_text.word).items()
            ]
            sides.append(f"{instead(before, after)} is {words.several(found)}")
        parts.append(
            f"{subject.workload} {offered} on {words.value('connections', subject.connections)}: "
            f"{', '.join(sides)}"
        )
    return parts


def _grouped(things, key) -> dict:
    """In the order in which each group first comes."""
    found: dict = {}
    for thing in things:
        found.setdefault(key(thing), []).append(thing)
    return found


def _measure(claim: Claim, decided: bool = False) -> str:
    """ "p99 1.51 × [1.45, 1.54]"; with ``decided`` its word too, where it decides something."""
    if claim.measure == INVALID:
        (before, after), (of_before, of_after) = claim.ends, claim.sides
        return (
            f"{INVALID} {round(after * of_after)} of {of_after} instead of {round(before * of_before)} of "
            f"{of_before}"
        )
    return f"{claim.measure} {claim_text.estimate(claim)}" + (
        f" ({claim_text.word(claim)})" if decided and claim.decided else ""
    )


def _undecided(claims_made: tuple[Claim, ...], of: dict[str, int], tally: Tally) -> str:
    """Of which experiments how many comparisons decide nothing, and where runs are too few whose interval
    leaves 1 out."""
    counts = {
        name: len(mine)
        for name, mine in _grouped(claims_made, lambda claim: claim.subject.experiment).items()
    }
    parts = [
        f"{name} {count} of {of[name]}" for name, count in sorted(counts.items(), key=lambda item: -item[1])
    ]
    few = [claim for claim in claims_made if options.too_few(claim) and claim.rule != DUET]
    sides = dict.fromkeys(
        f"{instead(claim.baseline, claim.variant)} with {claim.subject.workload} ({claim.sides[0]} and "
        f"{claim.sides[1]} runs)"
        for claim in few
    )
    why = (
        (
            f" In {len(few)} of them the interval leaves 1 out and {TOO_FEW} forbid a word: "
            f"{words.several(list(sides))}."
        )
        if sides
        else ""
    )
    open_of = [
        f"{count - decided} of {words.counted(count, 'comparison')} of {what}"
        for decided, count, what in (
            (tally.decided, tally.of, "an option with its default"),
            (tally.sizes_decided, tally.sizes, "sizes of the workload"),
        )
        if count > decided
    ]
    return f"**{CANNOT_TELL.capitalize()}** in {words.several(open_of)}: {words.several(parts)}.{why}"


def _caused(answer: Answer) -> str:
    causes = [claim for claim in answer.claims if claim.word == CAUSED]
    texts = [
        f"{held_off(claim.variant, claim.also)} (p99 is {words.times(claim.estimate)} without it)"
        for claim in causes
    ]
    first = (
        f"the slow tail is caused by {words.several(texts)}"
        if causes
        else "none of what was held off can be called a cause"
    )
    parts = [
        (
            f"p99 is {claim_text.estimate(claim)} without {held_off(claim.variant, claim.also)} "
            f"({claim.word}{': ' + claim.why if claim.why else ''})"
        )
        for claim in answer.claims
    ]
    place = claim_text.place(answer.claims[0])
    return f"**What makes slow PUTs slow:** {first}. For {place} {'; '.join(parts)}."


def _tail(answer: Answer) -> str:
    """The slowest percent of unique PUTs, with the words that 07-tail has for them."""
    limit, *kinds = answer.claims
    events = [claim for claim in kinds if claim.variant != NO_EVENT]
    linked = [claim for claim in events if claim.word == LINKED]
    if linked:
        text = f"is linked to {words.several([_overlap(claim) for claim in linked])}"
    else:
        text = "cannot be explained from these runs" + (
            f" ({_overlap(events[0], ' overlaps')}: {events[0].why})" if events else ""
        )
    return (
        f"**The slowest percent** of {words.factor(limit.subject.workload).replace('put', 'PUT')} at "
        f"{words.rate(limit.subject.offered_rate_rps)} "
        f"(over {words.latency(limit.estimate)}) {text}. {words.share(kinds[-1].estimate)} waited "
        "while no recorded event was felt."
    )


def _overlap(claim: Claim, verb: str = "") -> str:
    chance, share = claim.ends
    inner = f"{words.share(share)}, by chance {words.share(chance)}"
    return (
        f"{words.factor(claim.variant)}{verb} {inner}" if verb else f"{words.factor(claim.variant)} ({inner})"
    )


def _published(tables: Tables, reference: Tables | None = None) -> Finding | None:
    judged = claims.judge(published_reports(), tables, reference)
    counts = judged["verdict"].value_counts()
    measured = judged[judged["runs"] > 0]
    if measured.empty:
        return None
    parts = [f"{counts[verdict]} {verdict}" for verdict in verdicts.VERDICTS if verdict in counts]
    return Finding(
        f"**Five published reports:** of {len(judged)} claims {words.several(parts)}.",
        "08-published-reports",
        len(claims.counting(tables)),
        _whose_claims(judged) if reference is not None else "",
    )


def _whose_claims(judged: pd.DataFrame) -> str:
    whose = set(judged.loc[judged["runs"] > 0, "whose"])
    return next(iter(whose)) if len(whose) == 1 else claim_text.BOTH


RULER: tuple[Rule, ...] = (
    Rule("The ruler on a server that does nothing", _INSTRUMENT, ruler.empty_server, _empty_server),
    Rule("loadgen beside wrk", _INSTRUMENT, ruler.generators, _generators),
    Rule("A real wrk2 beside loadgen", _INSTRUMENT, ruler.beside_wrk2, _beside_wrk2),
    Rule("Coordinated omission", _INSTRUMENT, ruler.stall, _stall),
    Rule("The noise floor", _INSTRUMENT, ruler.noise, _noise),
    Rule("What profiling costs", _INSTRUMENT, ruler.profiling, _profiling),
)
SERVICE = (
    Rule("Highest rate with a mean of at most 1 ms", _CAPACITY, service.searches, _searches),
    *findings.RULES,
    Rule("What makes slow PUTs slow", _TAIL, tail.caused, _caused),
    Rule("The slowest percent", _TAIL, tail.linked, _tail),
    _published,
)


def summarize_options(
    tables: Tables, reference: Tables | None = None, duets: Sequence[Duet] = ()
) -> Markdown:
    """One finding for each experiment in which a value of an option is decided, and one for all that is
    undecided. ``reference``: ``notebook.beside(tables)``; ``duets``: ``options.measured_duets()``."""
    return findings.render_list(
        _options(tables, reference, duets),
        "No option was varied yet. Measure one: `kvstudy run experiments/handler.yaml`.",
    )
