"""The published claims beside our runs, each judged by a rule that is written here and nowhere bent.

    judged = judge(published, tables)       one row per claim: what was published, what we measured, the
                                            verdict

Verdicts: *mistaken* (the report contradicts its own output, or measured something else; data/published says
why), *unproven* (its output cannot carry it), *reproduced*, *not reproduced*, *cannot tell* (too few runs or
an interval that covers both), *not measured* (no run of ours that counts). Rules for the middle three, by
what is claimed (``claim_rules`` has one for each claim):

    number      ours, with its whole interval, lies within a factor of two of it: another machine, JVM and
                generator stand between them
    held        a rate was held if the median achieved rate, with its whole interval, is 99 % of it; "not
                held" the other way round
    ratio       the comparison over runs says the same word, faster or slower; "faster": it says faster,
                whatever the number
    unchanged   the interval of the ratio lies within 10 % of 1
    at least    ours, with its whole interval, is no less
    hardly any  ours, with its whole interval, is under one percent
    differs     ours, with its whole interval, is over 10 % away from it
    rises       ours (a ratio) is over 1.1 and with its whole interval over 1; "falls": under 0.9 and under 1

A number of ours that is not of what was asked (a profile at rates on one side of the report's) decides
nothing, nor does one of fewer than MIN_RUNS runs.
"""

import math

import pandas as pd

from kvstudy.analyse.comparison.words import CANNOT_TELL, FASTER, MIN_RUNS, SLOWER
from kvstudy.analyse.published import Published
from kvstudy.analyse.tables import Tables
from kvstudy.present import words
from kvstudy.present.claim_rules import HELD_SHARE, RULES, Measured, Rule

REPRODUCED, NOT_REPRODUCED, MISTAKEN, UNPROVEN, NOT_MEASURED = (
    "reproduced",
    "not reproduced",
    "mistaken",
    "unproven",
    "not measured",
)
VERDICTS = (REPRODUCED, NOT_REPRODUCED, CANNOT_TELL, MISTAKEN, UNPROVEN, NOT_MEASURED)
FACTOR = 2.0
NEAR = 1.1
SHARE_POINTS = 5.0

COLUMNS = [
    "claim",
    "report",
    "method",
    "says",
    "quantity",
    "published",
    "measured",
    "low",
    "high",
    "runs",
    "verdict",
    "note",
    "told",
]


def judge(published: Published, tables: Tables) -> pd.DataFrame:
    """One row per published claim, in its order: COLUMNS; ``measured`` NaN where we have no number."""
    rows = []
    for claim in published.claims.itertuples():
        rule = RULES.get(claim.claim)
        measured = rule.measure(tables) if rule is not None else None
        numbers = (
            (measured.value, measured.low, measured.high, measured.runs)
            if measured is not None
            else (math.nan, math.nan, math.nan, 0)
        )
        notes = [
            claim.why_mistaken if isinstance(claim.why_mistaken, str) else "",
            rule.note if rule is not None else "our study has no run that could tell",
        ]
        if measured is not None and claim.mistaken not in ("yes", UNPROVEN):
            notes.append(measured.unsure)
        note = "; ".join(part for part in notes if part)
        rows.append(
            [
                claim.claim,
                claim.report,
                claim.method,
                claim.says,
                claim.quantity,
                claim.value,
                *numbers,
                _verdict(claim, rule, measured),
                note,
                measured.told if measured is not None else "",
            ]
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def share_verdict(published_percent: float, measured_percent: pd.Series) -> str:
    """Of a share that was read off a profile: reproduced when ours is within a factor of two of it in every
    profiled run of ours, not reproduced when it is farther off than that, and than five points, in every one.
    A share of 3 % beside none is neither, nor is one of fewer than MIN_RUNS runs."""
    if measured_percent.empty:
        return NOT_MEASURED
    if len(measured_percent) < MIN_RUNS:
        return CANNOT_TELL
    same = measured_percent.between(published_percent / FACTOR, published_percent * FACTOR)
    near = same | ((measured_percent - published_percent).abs() <= SHARE_POINTS)
    return REPRODUCED if same.all() else NOT_REPRODUCED if not near.any() else CANNOT_TELL


def trials(published: Published, tables: Tables) -> pd.DataFrame:
    """One row per trial of report 1's bisection: whether it held there, whether our search leaves the same
    answer at that rate."""
    rows = []
    for trial in published.trials.itertuples():
        found = RULES[f"r1-{trial.method.lower()}-stable"].measure(tables)
        held = trial.called_held == "yes"
        rate = trial.offered_rate_rps
        ours = None if found is None else True if rate <= found.low else False if rate >= found.high else None
        verdict = (
            NOT_MEASURED
            if found is None
            else CANNOT_TELL
            if ours is None
            else REPRODUCED
            if ours == held
            else NOT_REPRODUCED
        )
        rows.append(
            {
                "verdict": verdict,
                "method": trial.method,
                "rate": words.rate(rate),
                "mean there": words.latency(trial.mean_us),
                "held there": "yes" if held else "no",
                "held here": {True: "yes", False: "no", None: words.MISSING}[ours],
            }
        )
    return pd.DataFrame(rows)


def told(judged: pd.DataFrame) -> pd.DataFrame:
    """``judge``'s rows as text for people."""
    return pd.DataFrame(
        [
            {
                "verdict": row.verdict,
                "report": row.report,
                "method": row.method,
                "claim": row.says,
                "published": number(row.quantity, row.published),
                "measured": _interval(row),
                "runs": row.runs,
                "why": row.note,
            }
            for row in judged.itertuples()
        ]
    )


def number(quantity, value: float) -> str:
    """A claim's number with its unit."""
    if not isinstance(quantity, str) or value is None or math.isnan(value):
        return words.MISSING
    if quantity.endswith("_us"):
        return words.latency(value)
    if quantity.endswith("_rps"):
        return words.rate(value)
    if quantity.endswith("_share"):
        return words.share(value / 100)
    if quantity.endswith("_bytes"):
        return words.size(value)
    return words.times(value) if quantity.endswith("_ratio") else words.count(value)


def _interval(row) -> str:
    if row.told:
        return row.told
    if math.isnan(row.measured):
        return words.MISSING
    return number(row.quantity, row.measured) + words.interval(
        row.low, row.high, lambda value: number(row.quantity, value)
    )


def _verdict(claim, rule: Rule | None, measured: Measured | None) -> str:
    if claim.mistaken == "yes":
        return MISTAKEN
    if claim.mistaken == UNPROVEN:
        return UNPROVEN
    if rule is None or measured is None:
        return NOT_MEASURED
    if measured.unsure or (measured.word == CANNOT_TELL and rule.kind == "number"):
        return CANNOT_TELL
    low, high = (measured.value if math.isnan(end) else end for end in (measured.low, measured.high))
    if math.isnan(measured.high) and not math.isnan(
        measured.low
    ):  # a search that met no rate that is too much
        high = math.inf
    if rule.kind in ("ratio", "faster"):
        wanted = SLOWER if rule.kind == "ratio" and claim.value < 1 else FASTER
        return (
            CANNOT_TELL
            if measured.word == CANNOT_TELL
            else REPRODUCED
            if measured.word == wanted
            else NOT_REPRODUCED
        )
    if rule.kind in ("held", "not held"):
        held = _within(low, high, HELD_SHARE * _offered(claim.claim), math.inf)
        return held if rule.kind == "held" else _OPPOSITE[held]
    if rule.kind == "unchanged":
        same = _within(low, high, 1 / NEAR, NEAR)
        return same if same == REPRODUCED or measured.word == CANNOT_TELL else NOT_REPRODUCED
    if rule.kind == "differs":
        return _OPPOSITE[_within(low, high, claim.value / NEAR, claim.value * NEAR)]
    if rule.kind in ("rises", "falls"):
        if (measured.value > NEAR and low > 1) or (measured.value < 1 / NEAR and high < 1):
            return REPRODUCED if (measured.value > 1) == (rule.kind == "rises") else NOT_REPRODUCED
        return CANNOT_TELL
    least, most = {"at least": (claim.value, math.inf), "hardly any": (-math.inf, 1.0)}.get(
        rule.kind, (claim.value / FACTOR, claim.value * FACTOR)
    )
    return _within(low, high, least, most)


def _within(low: float, high: float, least: float, most: float) -> str:
    """Of an interval: wholly inside, wholly outside, or neither."""
    if least <= low and high <= most:
        return REPRODUCED
    return NOT_REPRODUCED if high < least or low > most else CANNOT_TELL


_OPPOSITE = {REPRODUCED: NOT_REPRODUCED, NOT_REPRODUCED: REPRODUCED, CANNOT_TELL: CANNOT_TELL}


def _offered(claim: str) -> float:
    """The rate in a claim's name: r2-put-2000-held."""
    return float(next(part for part in claim.split("-") if part.isdigit()))
