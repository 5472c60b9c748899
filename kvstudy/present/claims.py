"""The published claims beside our runs, in words. How they are judged: ``analyse.replication``."""

import math
from collections.abc import Sequence

import pandas as pd

from kvstudy.analyse import option_duets, rates
from kvstudy.analyse.comparison.looks import FIRST_LOOK
from kvstudy.analyse.comparison.words import CANNOT_TELL, MIN_RUNS
from kvstudy.analyse.duets import Duet
from kvstudy.analyse.published import Published
from kvstudy.analyse.replication import verdicts
from kvstudy.analyse.replication.measured import Measured
from kvstudy.analyse.replication.verdicts import MISTAKEN, UNPROVEN
from kvstudy.analyse.tables import Tables
from kvstudy.present import claim_text, words


def judge(
    published: Published, tables: Tables, reference: Tables | None = None, duets: Sequence[Duet] = ()
) -> pd.DataFrame:
    """The rows of ``analyse.replication.verdicts.judge``; beside each a ``note`` why, and ``in_words``: our
    number in words where the claim's unit does not say it, else "".

    ``reference`` (``notebook.beside(tables)``): decides a claim that the reader's own runs leave open; the
    note then has what these measured. ``whose`` the runs of each row are. ``duets``
    (``options.measured_duets()``): one that asks the same as a claim's runs, and decides, is told in their
    place; what the reader's own runs decide gives way to a duet of his own alone."""
    judged = _of_runs(published, tables, reference)
    said = verdicts.by_duets(published, option_duets.answers(duets))
    if not said:
        return judged
    rows = [
        _by_duet(row, *said[row["claim"]], is_told=reference is not None) if row["claim"] in said else row
        for row in judged.to_dict("records")
    ]
    return pd.DataFrame(rows, columns=judged.columns)


def _by_duet(row: dict, verdict: str, ours: Measured, is_told: bool) -> dict:
    """The row as the duet answers it; as it is where that decides nothing and runs say more, or where the
    reader's own runs have decided it."""
    is_open = row["verdict"] in _OPEN
    if verdict not in _DECIDED and row["verdict"] != verdicts.NOT_MEASURED:
        return row
    if not is_open and row["whose"] == claim_text.YOURS and not ours.is_own:
        return row
    whose = claim_text.YOURS if ours.is_own else claim_text.REFERENCE
    told = {"measured": ours.value, "low": ours.low, "high": ours.high, "runs": ours.runs, "ours": ours}
    source = f"by the duet of {ours.by_duet}"
    other = "" if is_open or row["verdict"] == verdict else f"; independent runs: {row['verdict']}"
    measured_as = row["measured_as"] if isinstance(row["measured_as"], str) else ""
    why = unsure(ours) if verdict not in _DECIDED else ""
    note = "; ".join(filter(None, (measured_as, f"{source}{other}", why)))
    more = {"verdict": verdict, "note": note, "in_words": "", "whose": whose if is_told else ""}
    return row | told | more


def _of_runs(published: Published, tables: Tables, reference: Tables | None) -> pd.DataFrame:
    judged = tables.cached(_judged, published)
    if reference is None:
        return judged.assign(whose="")
    theirs = reference.cached(_judged, published)
    mine = set(tables.runs.loc[tables.runs["run_id"].isin(tables.own), "experiment"])
    rows = []
    for (_, own), (_, one) in zip(judged.iterrows(), theirs.iterrows(), strict=True):
        if own["verdict"] in _OPEN and one["verdict"] in _DECIDED:
            rows.append(_with_own(one, own))
            continue
        whose = claim_text.YOURS if f"report-{own['report']}" in mine else claim_text.REFERENCE
        rows.append(own.to_dict() | {"whose": whose if own["runs"] else ""})
    return pd.DataFrame(rows)


def _judged(tables: Tables, published: Published) -> pd.DataFrame:
    return _noted(verdicts.judge(published, tables))


def _noted(judged: pd.DataFrame) -> pd.DataFrame:
    return judged.assign(
        note=[_note(row) for row in judged.itertuples()],
        in_words=[_measured(ours) for ours in judged["ours"]],
    )


def _with_own(theirs: pd.Series, own: pd.Series) -> dict:
    """The reference's row; its note ends with the reader's own number."""
    runs = words.counted(own["runs"], "run")
    yours = f"your own {runs} cannot tell yet: {measured(own)}" if own["runs"] else ""
    note = "; ".join(part for part in (theirs["note"], yours) if part)
    return theirs.to_dict() | {"note": note, "whose": claim_text.REFERENCE}


def counting(tables: Tables) -> set[str]:
    """The runs that the verdicts may rest on: those of the reports' experiments that measure rates or
    latencies. A trial answers its search, whatever its checks say of its latencies."""
    ours = tables.only(tables.runs.loc[tables.runs["experiment"].str.startswith("report-"), "run_id"])
    return rates.informative_run_ids(ours) | set(
        ours.runs.loc[ours.runs["answer"].isin(["held", "missed"]), "run_id"]
    )


def trials(published: Published, tables: Tables) -> pd.DataFrame:
    """One row per trial of report 1's bisection: whether it held there, whether our search leaves the same
    answer at that rate."""
    return pd.DataFrame(
        [
            {
                "verdict": row.verdict,
                "method": row.method,
                "rate": words.rate(row.offered_rate_rps),
                "mean there": words.latency(row.mean_us),
                "held there": _YES_NO[row.held_there],
                "held here": _YES_NO[row.held_here],
            }
            for row in verdicts.trials(published, tables).itertuples()
        ]
    )


def unsure(ours: Measured) -> str:
    """Why these runs decide nothing, or nothing favourable: they share no median, are too few, or are those
    that the service did not lose; "" where they may."""
    if ours.mixed:
        return ours.mixed
    if not ours.too_few:
        lost = f"the service lost {words.counted(ours.lost, 'run')}" if ours.lost else ours.flattered
        return f"{lost}, so those left are its better ones" if lost else ""
    if ours.by_duet:
        return f"{words.counted(ours.runs, 'launch')}: not enough to be sure, {FIRST_LOOK} are needed"
    runs = ours.runs if ours.fewest is None else ours.fewest
    side = "" if ours.fewest is None else " a side"
    return f"{words.counted(runs, 'run')}{side}: not enough to be sure, {MIN_RUNS} are needed"


def table(judged: pd.DataFrame) -> pd.DataFrame:
    """``judge``'s rows as text for people."""
    return pd.DataFrame(
        [
            {
                "verdict": row.verdict,
                "report": row.report,
                "method": row.method,
                "claim": row.says,
                "published": number(row.quantity, row.published),
                "measured": measured(row),
                "runs": rests_on(row),
                **({"whose": row.whose} if judged["whose"].any() else {}),
                "why": row.note,
            }
            for row in judged.itertuples()
        ]
    )


def rests_on(row) -> str:
    """ "5 runs"; of a duet "12 launches"."""
    is_duet = row.ours is not None and row.ours.by_duet
    return words.counted(row.runs, "launch" if is_duet else "run")


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


def measured(row) -> str:
    """Ours with its interval, or what a search leaves open."""
    if row.in_words:
        return row.in_words
    if math.isnan(row.measured):
        return words.MISSING
    if math.isnan(row.high) and not math.isnan(row.low):
        return (
            f"at least {number(row.quantity, row.low)}" if row.low > 0 else "anything: no rate was too much"
        )
    if row.quantity.endswith("_ratio"):
        return words.ratio(row.measured, row.low, row.high)
    return number(row.quantity, row.measured) + words.interval(
        row.low, row.high, lambda value: number(row.quantity, value)
    )


def _note(row) -> str:
    measured_as = (
        row.measured_as if isinstance(row.measured_as, str) else "our study has no run that could tell"
    )
    why = unsure(row.ours) if row.ours is not None and row.verdict not in (MISTAKEN, UNPROVEN) else ""
    return "; ".join(part for part in (row.why_mistaken, measured_as, why) if part)


def _measured(ours: Measured | None) -> str:
    if ours is None:
        return ""
    if ours.knee is not None:
        return claim_text.estimate(ours.knee)
    share = words.share(ours.value / 100)
    if ours.at_rates_rps:
        between = words.interval(*ours.interval, lambda percent: words.share(percent / 100))
        return f"{share}{between} at {words.several([words.rate(rate) for rate in ours.at_rates_rps])}"
    return f"{share} of the time waited for locks" if ours.of_time else ""


_OPEN = (CANNOT_TELL, verdicts.NOT_MEASURED)
_DECIDED = (verdicts.REPRODUCED, verdicts.NOT_REPRODUCED)
_YES_NO = {True: "yes", False: "no", None: words.MISSING}
