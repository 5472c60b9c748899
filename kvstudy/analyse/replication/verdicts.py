"""The published claims beside our runs, each judged by a rule that is written here and nowhere bent.

    judged = judge(published, tables)     one row per claim: what was published, what we measured, the
                                          verdict
    by_duets(published, rows)             what duets say of the claims that they ask the same as, by claim

Verdicts: *mistaken* (the report contradicts its own output, or measured something else; data/published says
why), *unproven* (its output cannot carry it), *reproduced*, *not reproduced*, *cannot tell* (too few runs or
an interval that covers both), *not measured* (no run of ours that counts). Rules for the middle three, by
what is claimed (``rules`` has one for each claim):

    number      ours, with its whole interval, lies within a factor of two of it: another machine, JVM and
                generator stand between them
    proportion  of two rates of one machine: as number, within a factor of √2
    held        a rate was held if the median achieved rate, with its whole interval, is 99 % of it; "not
                held" the other way round
    ratio       the comparison over runs says the same word, faster or slower; *the same within X %* tells
                nothing of a ratio that is no farther from 1; "faster": it says faster, whatever the number
    unchanged   the interval of the ratio lies within 10 % of 1, and no side lost a larger share of its runs
    at least    ours, with its whole interval, is no less
    hardly any  ours, with its whole interval, is under one percent
    differs     ours, with its whole interval, is over 10 % away from it
    rises       ours (a ratio) is over 1.1 and with its whole interval over 1; "falls": under 1 / 1.1 and
                under 1

A number of ours that is not of what was asked (a profile at rates on one side of the report's) decides
nothing, nor does one of fewer than MIN_RUNS runs, or launches of a duet. Where the service lost runs by its
own doing, those left are its better ones: the interval of their number is open to the worse side.
"""

import math

import pandas as pd

from kvstudy.analyse.comparison.words import CANNOT_TELL, FASTER, MIN_RUNS, SAME, SLOWER
from kvstudy.analyse.published import Published
from kvstudy.analyse.replication.duet_ratios import measured_by_duet
from kvstudy.analyse.replication.measured import Measured, Rule
from kvstudy.analyse.replication.rules import RULES
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.validity import ACHIEVED_SHARE_MIN

REPRODUCED, NOT_REPRODUCED, MISTAKEN, UNPROVEN, NOT_MEASURED = (
    "reproduced",
    "not reproduced",
    "mistaken",
    "unproven",
    "not measured",
)
VERDICTS = (REPRODUCED, NOT_REPRODUCED, CANNOT_TELL, MISTAKEN, UNPROVEN, NOT_MEASURED)
FACTOR = 2.0
# Of two rates of one machine, of which a factor of two around a half would reach to no change at all.
PROPORTION = math.sqrt(2)
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
    "why_mistaken",
    "measured_as",
    "ours",
]
TRIAL_COLUMNS = ["verdict", "method", "offered_rate_rps", "mean_us", "held_there", "held_here"]


def judge(published: Published, tables: Tables) -> pd.DataFrame:
    """One row per published claim, in its order: COLUMNS. ``measured`` is NaN where we have no number;
    ``measured_as``: in what ours is another measure, missing where no rule measures the claim; ``ours``: the
    Measured, or None."""
    rows = []
    for claim in published.claims.itertuples():
        rule = RULES.get(claim.claim)
        ours = rule.measure(tables) if rule is not None else None
        numbers = (ours.value, *ours.interval, ours.runs) if ours else (math.nan, math.nan, math.nan, 0)
        rows.append(
            [
                claim.claim,
                claim.report,
                claim.method,
                claim.says,
                claim.quantity,
                claim.value,
                *numbers,
                verdict(claim, rule, ours),
                claim.why_mistaken if isinstance(claim.why_mistaken, str) else "",
                rule.note if rule is not None else None,
                ours,
            ]
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def by_duets(published: Published, rows: pd.DataFrame) -> dict[str, tuple[str, Measured]]:
    """Claim → its verdict and our number, of the claims that say neither that they are mistaken nor unproven
    and that a duet answers. ``rows``: of ``option_duets.answers``."""
    found = {}
    for claim in published.claims.itertuples():
        rule = RULES.get(claim.claim)
        ours = measured_by_duet(rule.duet, rows) if rule is not None and rule.duet is not None else None
        said = verdict(claim, rule, ours) if ours is not None else NOT_MEASURED
        if said in (REPRODUCED, NOT_REPRODUCED, CANNOT_TELL):
            found[claim.claim] = said, ours
    return found


def trials(published: Published, tables: Tables) -> pd.DataFrame:
    """One row per trial of report 1's bisection: TRIAL_COLUMNS. ``held_there``: as the report called it;
    ``held_here``: what our search says of that rate, None where it leaves that open."""
    rows = []
    for trial in published.trials.itertuples():
        found = RULES[f"r1-{trial.method.lower()}-stable"].measure(tables)
        held, rate = trial.called_held == "yes", trial.offered_rate_rps
        ours = None if found is None else True if rate <= found.low else False if rate >= found.high else None
        said = (
            NOT_MEASURED
            if found is None
            else CANNOT_TELL
            if ours is None
            else REPRODUCED
            if ours == held
            else NOT_REPRODUCED
        )
        rows.append([said, trial.method, rate, trial.mean_us, held, ours])
    return pd.DataFrame(rows, columns=TRIAL_COLUMNS).astype({"held_here": object})


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


def verdict(claim, rule: Rule | None, measured: Measured | None) -> str:
    """``claim``: a row of the published claims."""
    if claim.mistaken == "yes":
        return MISTAKEN
    if claim.mistaken == UNPROVEN:
        return UNPROVEN
    if rule is None or measured is None:
        return NOT_MEASURED
    if measured.decides_nothing or (measured.word == CANNOT_TELL and rule.kind in ("number", "proportion")):
        return CANNOT_TELL
    low, high = measured.bounds
    if math.isnan(measured.high) and not math.isnan(
        measured.low
    ):  # a search that met no rate that is too much
        high = math.inf
    if rule.kind in ("ratio", "faster"):
        wanted = SLOWER if rule.kind == "ratio" and claim.value < 1 else FASTER
        is_within = rule.kind == "ratio" and abs(math.log(claim.value)) <= math.log1p(measured.same_within)
        return (
            CANNOT_TELL
            if measured.word == CANNOT_TELL or (measured.word == SAME and is_within)
            else REPRODUCED
            if measured.word == wanted
            else NOT_REPRODUCED
        )
    if rule.kind in ("held", "not held"):
        held = _within(low, high, ACHIEVED_SHARE_MIN * _offered(claim.claim), math.inf)
        return held if rule.kind == "held" else _OPPOSITE[held]
    if rule.kind == "unchanged":
        same = _within(low, high, 1 / NEAR, NEAR)
        if measured.flattered and same == REPRODUCED:
            return CANNOT_TELL
        return same
    if rule.kind == "differs":
        return _OPPOSITE[_within(low, high, claim.value / NEAR, claim.value * NEAR)]
    if rule.kind in ("rises", "falls"):
        if (measured.value > NEAR and low > 1) or (measured.value < 1 / NEAR and high < 1):
            return REPRODUCED if (measured.value > 1) == (rule.kind == "rises") else NOT_REPRODUCED
        return CANNOT_TELL
    least, most = {
        "at least": (claim.value, math.inf),
        "hardly any": (-math.inf, 1.0),
        "proportion": (claim.value / PROPORTION, claim.value * PROPORTION),
    }.get(rule.kind, (claim.value / FACTOR, claim.value * FACTOR))
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
