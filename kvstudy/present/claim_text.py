"""A claim (``analyse.claim``) in words: its number with the interval, its word, its place. No number is
worked out here.

claim_text.estimate(claim)      "1.51 × [1.45, 1.54 ×]"
claim_text.alone(claim)         "1.51 ×"
claim_text.around(claim)        "[1.45, 1.54 ×]"
claim_text.word(claim)          "slower", "the same within 5 %", "cannot tell"
claim_text.place(claim)         "get at 20 000 r/s on 4 connections"
claim_text.sentence(claim)      "p50 of get at 20 000 r/s on 4 connections, workers to selector: 1.51 × …"
claim_text.findable(claim)      "only a difference above 12 % could have been found"
claim_text.less(4, 0, 3)        "Your own 4 runs cannot tell yet"
"""

import math

from kvstudy.analyse.claim import CLOSED_LOOP, INTERVENTION, LINK, SEARCH, Claim
from kvstudy.analyse.comparison.words import CANNOT_TELL, SAME
from kvstudy.analyse.configuration import INVALID
from kvstudy.present import words

# Whose runs an answer rests on, where the reader has measured.
YOURS, REFERENCE, BOTH = "yours", "reference", "yours and the reference's"
_NUMBERS = {
    "ratio": words.times,
    "us": words.latency,
    "rps": words.rate,
    "share": words.share,
    "count": words.count,
}


def number(value: float, unit: str) -> str:
    return _NUMBERS[unit](value)


def estimate(claim: Claim) -> str:
    """The number with its interval, or of few runs with their extent. A rate that a search found is rounded:
    it is none that was offered."""
    return f"{alone(claim)} {around(claim)}".rstrip()


def alone(claim: Claim) -> str:
    """The number without what is around it; of shares of invalid runs, whose ratio may be infinite, both."""
    if claim.measure == INVALID:
        (before, after), (of_before, of_after) = claim.ends, claim.sides
        counts = f"{round(after * of_after)} of {of_after}", f"{round(before * of_before)} of {of_before}"
        return " instead of ".join(counts)
    if claim.interval is not None and math.isinf(claim.interval[1]):
        return f"at least {_formatter(claim)(claim.interval[0])}"
    if claim.unit == "ratio" and claim.interval is not None:
        return words.estimate_of_ratio(claim.estimate, *claim.interval)
    return _formatter(claim)(claim.estimate)


def around(claim: Claim) -> str:
    """The interval, or of few runs the extent; "" where there is neither, or no end above."""
    if claim.measure == INVALID:
        return ""
    if claim.interval is None:
        return "" if claim.extent is None else words.extent(*claim.extent, _formatter(claim)).strip()
    if math.isinf(claim.interval[1]):
        return ""
    return words.interval(*claim.interval, _formatter(claim)).strip()


def _formatter(claim: Claim):
    return words.about_rate if claim.rule == SEARCH else _NUMBERS[claim.unit]


def word(claim: Claim) -> str:
    return f"{SAME} within {claim.within_percent:.3g} %" if claim.word == SAME else claim.word


def findable(claim: Claim) -> str:
    """Which difference these runs could have found; "" where no comparison was made."""
    if claim.sides is None:
        return ""
    return words.findable(_found(claim))


def certainty(claim: Claim) -> str:
    """The word, and beside *cannot tell* why no more is said, or what could have been found."""
    if claim.word != CANNOT_TELL or claim.sides is None:
        return word(claim)
    return f"{claim.word}: {words.doubt(claim.why, _found(claim))}"


def _found(claim: Claim) -> float:
    return math.inf if claim.findable_percent is None else 1 + claim.findable_percent / 100


def place(claim: Claim) -> str:
    """The workload, the rate and the connections, as far as they are known."""
    subject = claim.subject
    parts = [subject.workload] if subject.workload else []
    if subject.offered_rate_rps is not None:
        parts.append(
            "in a closed loop"
            if subject.offered_rate_rps == CLOSED_LOOP
            else f"at {words.rate(subject.offered_rate_rps)}"
        )
    if subject.connections is not None:
        parts.append(f"on {words.value('connections', subject.connections)}")
    return " ".join(parts)


def sentence(claim: Claim) -> str:
    """All of it without the full stop: what it is of, where, the number and the word."""
    if claim.rule == LINK:
        return f"slow answers of {place(claim)} are {claim.word} to {words.factor(claim.variant)}"
    if claim.rule == INTERVENTION:
        causes = words.several([words.factor(kind) for kind in (claim.variant, *claim.also)])
        return f"slow answers of {place(claim)} are {claim.word} {causes}"
    sides = f"{claim.variant} to {claim.baseline}" if claim.baseline else claim.variant
    told = "" if math.isnan(claim.estimate) else estimate(claim)
    what = ", ".join(filter(None, [f"{claim.measure} of {place(claim)}", sides]))
    return f"{what}: {', '.join(filter(None, [told, word(claim)]))}"


def less(runs: int, decided: int, of: int) -> str:
    """How the reader's own runs stand beside a reference that decides more."""
    yours = f"Your own {words.counted(runs, 'run')}" if runs else "Your own runs"
    return f"{yours} decide {decided} of these {of}" if decided else f"{yours} {CANNOT_TELL} yet"


def side(factor: str, value: str) -> str:
    """A baseline or variant that is a value of a factor, with its unit: ("connections", "4") → "4
    connections"."""
    for read in (int, float):
        try:
            return words.value(factor, read(value))
        except ValueError:
            continue
    return words.value(factor, value)
