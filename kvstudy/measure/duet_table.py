"""What a duet's launches say until now, as text: after each launch, and as the table at the end."""

import json
import math

import pandas as pd

from kvstudy.analyse.comparison import launches
from kvstudy.analyse.comparison.looks import FIRST_LOOK, LAST_LOOK
from kvstudy.analyse.comparison.stopping import MeasureResult
from kvstudy.analyse.comparison.words import SAME, findable_limit
from kvstudy.analyse.duet_validity import COMPILERS, QUIET
from kvstudy.analyse.duets import Duet
from kvstudy.analyse.validity import FAIL, PASS
from kvstudy.record.run_folder import SealedRun
from kvstudy.units import format_bytes, format_duration

# As an experiment names them.
MEASURE_NAMES = {
    "p50": launches.P50,
    "p90": launches.P90,
    "p99": launches.P99,
    "p99-slice": launches.P99_SLICE,
    "p99.9": launches.P999,
    "mean": launches.MEAN,
    "cpu": launches.CPU,
    "written": launches.WRITTEN,
    "rate": launches.RATE,
}
_HELD_BACK = "held back for what the sides left out"
_LOOPS = {"rate": "at the rate", "closed": "closed loop"}
OBSERVED_TOLD = 80  # letters
DIGITS, DIGITS_MOST = 3, 6  # of a ratio
CHECKS_TOLD = 2  # of one launch; the page has them all
# Checks that say why a launch gives no value, and what stands before what they saw.
_MARKS = {"generator_not_saturated": "", "rounds_kept": "rounds kept: "}
HEADINGS = ("workload", "measure", "{a}", "{b}", "ratio", "interval", "answer")


def progress_lines(found: Duet | None, launch_s: float) -> list[str]:
    """One line per measure, and when all of them are probably decided."""
    if found is None or not found.results:
        return [_without_value(found)] if found and found.counted else ["no launch counts yet"]
    lines = [
        f"  {row[0]} {row[1]:26} {row[4]:>7} {row[5]:16} {row[6]}{_to_come(one, launch_s)}"
        for one, row in zip(found.results, _rows(found), strict=True)
    ]
    return lines + _notes(found)


def outcome_of(found: Duet | None, run: SealedRun) -> str:
    """Of a launch that was just sealed: its outcome, and why it does not count where it does not."""
    if run.facts["outcome"] != "completed" or found is None:
        return run.facts["outcome"]
    failed = _failed_checks(found)
    why = _told(failed[failed["run_id"] == run.run_id])
    return "completed" + (f", but does not count: {why}" if why else "")


def _failed_checks(found: Duet) -> pd.DataFrame:
    checks = found.tables.duet_validity
    return checks[checks["verdict"] == FAIL]


def _told(failed: pd.DataFrame) -> str:
    """Of one launch."""
    return "; ".join(
        [f"{row.check}: {row.observed[:OBSERVED_TOLD]}" for row in failed.itertuples()][:CHECKS_TOLD]
    )


def table_lines(found: Duet | None, over: str, markdown: bool = False) -> list[str]:
    """The answer: one row per measure, the primary first; below it what it rests on."""
    if found is None or not found.results:
        none = _without_value(found) if found and found.counted else "no launch counts"
        return [f"{none}: {over}"]
    headings = [heading.format(a=found.a, b=found.b) for heading in HEADINGS]
    rows = _rows(found)
    text = (
        f"{_launches(found.counted)}; ratio of {found.b} to {found.a}, with an interval over launches that "
        f"allows for looking after each; {over}"
    )
    if markdown:
        cells = [
            [cell.replace("|", "\\|") for cell in row] for row in (headings, ["---"] * len(headings), *rows)
        ]
        return [
            *(f"| {' | '.join(row)} |" for row in cells),
            "",
            text,
            *(line.strip() for line in _notes(found)),
        ]
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    return [
        *(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (headings, *rows)
        ),
        text,
        *_notes(found),
    ]


def _part(one: MeasureResult) -> str:
    return f"{one.workload} {_LOOPS[one.loop]}"


def _rows(found: Duet) -> list[list[str]]:
    return [
        [
            _part(one),
            one.measure + (" (primary)" if one.primary else ""),
            _value(one.a, one.measure),
            _value(one.b, one.measure),
            f"{one.ratio:.3f}",
            "" if math.isnan(one.low) else _interval(one.low, one.high),
            _answer(one),
        ]
        for one in found.results
    ]


def _interval(low: float, high: float) -> str:
    """With so many digits that no end is written as 1 that is not: a word rests on the side of 1 that it lies
    on."""
    needed = (
        digits
        for digits in range(DIGITS, DIGITS_MOST)
        if all(end == 1 or round(end, digits) != 1 for end in (low, high))
    )
    digits = next(needed, DIGITS_MOST)
    return f"[{low:.{digits}f}, {high:.{digits}f}]"


def _answer(one: MeasureResult) -> str:
    """The word; of what cannot be told what could have been found."""
    if one.held_back:
        return f"{one.word}: {one.held_back}, but for what the sides left out"
    if one.in_groups:
        return f"{one.word}: launches fall into groups"
    if one.decided:
        return f"{SAME} within {100 * one.same_within:.3g} %" if one.word == SAME else one.word
    if limit := findable_limit(one.found):
        return f"{one.word} (a difference of {limit} would likely be found)"
    # Before the first look nobody expects a word.
    missed = " (even a large difference may be missed)" if one.launches >= FIRST_LOOK else ""
    return f"{one.word}{missed}"


def _to_come(one: MeasureResult, launch_s: float) -> str:
    if one.is_over:
        return ""
    if one.to_come is None:
        return "; no number of launches here will decide it" if one.launches else ""
    return f"; about {_launches(one.to_come, 'more ')}, {format_duration(round(one.to_come * launch_s))}"


def _notes(found: Duet) -> list[str]:
    """What the answers are not of."""
    return [*_missing(found), *_odd(found), *_compiling(found), *_left_out(found)]


def _odd(found: Duet) -> list[str]:
    """Ratios are those of the typical launch; how many of each measure are not, and where none is."""
    counts = [
        f"{_part(one)} {one.measure}: {one.odd} of {one.launches}"
        for one in found.results
        if one.odd and one.is_typical
    ]
    apart = [
        f"{_part(one)} {one.measure}: {one.apart[0]:.3f} to {one.apart[1]:.3f}"
        for one in found.results
        if one.apart
    ]
    return [
        *([f"  odd launches, which weigh less than half: {'; '.join(counts)}"] if counts else []),
        *(
            [f"  no launch is typical, but all agree; ratios of launches: {'; '.join(apart)}"]
            if apart
            else []
        ),
    ]


def _compiling(found: Duet) -> list[str]:
    """Of the launches that count."""
    checks, counted = found.tables.duet_validity, found.counted_runs
    is_marked = (checks["check"] == COMPILERS) & (checks["verdict"] != PASS)
    seen = checks[is_marked & checks["run_id"].isin(counted)]["observed"]
    if seen.empty:
        return []
    return [
        f"  code was still being compiled in {len(seen)} of {_launches(len(counted))}, which took "
        f"{seen.iloc[-1]} of the CPU in the last of them: a longer `warm_up` compares compiled code"
    ]


def _left_out(found: Duet) -> list[str]:
    """Launches that do not count are counted all the same."""
    words = _by_whom(found)
    return [f"  launches that do not count: {words}"] if words else []


def _by_whom(found: Duet) -> str:
    outside = f"{found.outside} disturbed or failed from outside{found.failed_besides}"
    words = [outside] if found.outside else []
    words += [
        f"{count} failed by {name}"
        for count, name in ((found.lost.a, found.a), (found.lost.b, found.b))
        if count
    ]
    return ", ".join(words)


def others_alone(found: Duet) -> bool:
    """Whether all that its launches failed by is that others used the machine."""
    return set(_failed_checks(found)["check"]) == {QUIET}


def none_counts(found: Duet, last: SealedRun) -> tuple[str, str]:
    """What to say where no launch counts, and what to do. ``last``: of its launches."""
    none = f"no launch counts, of {len(found.tables.duets)}"
    if others_alone(found):
        return f"{none}: others used the machine", (
            "when it is quiet: the same command with --resume --patience 30m"
        )
    failed = _failed_checks(found)
    why = _told(failed[failed["run_id"] == last.run_id])
    return f"{none}: {_by_whom(found)}; the last one: {why}", f"see {last.path}"


def _launches(count: int, more: str = "") -> str:
    return f"{count} {more}launch{'es' * (count != 1)}"


def _without_value(found: Duet) -> str:
    count = f"{_launches(found.counted)} count{'s' * (found.counted == 1)}"
    return f"{count}, but none gives a value{_why_none(found)}"


def _why_none(found: Duet) -> str:
    """What the generator, or the rounds, of the last launch that counts lacked; "" where that is not it."""
    checks = found.tables.duet_validity
    last = found.tables.duets.query("excluded == ''").sort_values(["start_utc", "run_id"])["run_id"].iloc[-1]
    marked = checks[(checks["run_id"] == last) & (checks["verdict"] != PASS)]
    why = [f"{_MARKS[row.check]}{row.observed}" for row in marked.itertuples() if row.check in _MARKS]
    if any(launches.BUSY in one for one in why):
        why.append("where compilers keep a side busy, a longer warm_up under compare helps")
    return f" ({'; '.join(why)})" if why else ""


def _value(value: float, measure: str) -> str:
    if math.isnan(value):
        return ""
    if measure == launches.RATE:
        return f"{value:.0f}/s"
    if measure == launches.WRITTEN:
        return format_bytes(value)
    return f"{value / 1e6:.3g} ms" if value >= 1e6 else f"{value / 1e3:.3g} us"


def _missing(found: Duet) -> list[str]:
    """A primary measure without a value has no row, and is what was asked for."""
    if found.primary:
        return []
    one = json.loads(found.tables.duets["primary"].iloc[0])
    return [
        (
            f"  {one['workload']} {_LOOPS.get(one['loop'], one['loop'])} {one['measure']} (primary): "
            f"undecided: no launch gives a value of it{_why_none(found)}"
        )
    ]


def undecided(found: Duet | None) -> int | None:
    """How many measures are worth another launch, a primary one without a value among them; None while none
    is known."""
    return len(found.undecided) + (found.primary is None) if found and found.results else None


def nothing_to_come(found: Duet | None, until: str = "all") -> str:
    """Why no further launch would say more of ``until`` (all measures, or the primary one); empty while one
    may."""
    if found is None:
        return ""
    if found.counted >= FIRST_LOOK and not found.primary and (until == "primary" or not found.undecided):
        return f"none of the first {found.counted} launches gives a value of the primary measure"
    left = undecided(found)
    if left is None:
        return ""
    if until == "primary" and found.primary and found.primary.decided:
        others = f"; {left} other{'s are' if left > 1 else ' is'} not" if left else ""
        return f"the primary measure is decided{others}"
    if until == "primary" and found.primary and found.primary.is_over:
        return f"no further launch helps: the word of the primary measure is {_HELD_BACK}"
    if left and found.primary and all(one.launches >= LAST_LOOK for one in found.undecided):
        open_ = f"{left} measures are" if left > 1 else "1 measure is"
        return f"no further look is planned after {LAST_LOOK} launches, and {open_} undecided"
    held = sum(bool(one.held_back) for one in found.results)
    if left == 0 and held:
        of = f"words of {held} measures are" if held > 1 else "word of 1 measure is"
        return f"no further launch helps: the {of} {_HELD_BACK}"
    return "" if left else "every measure is decided"
