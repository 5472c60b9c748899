"""Duets on a page and in a table: which one is shown, its answer first, what each measure says, what was left
out.

shown = duets.chosen(experiment, comparison)     the last that was measured, or the one that is named; None
                                                 where there is none
duets.answer(shown)                              one sentence, then what it rests on
duets.card(shown)                                the same for the head of a page
duets.measures(shown)                            a row per measure
duets.difference(shown)                          the flame graph of either, coloured by its difference
"""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pandas as pd
from IPython.display import HTML

from kvstudy import workers
from kvstudy.analyse import duets as analysed
from kvstudy.analyse.comparison.launches import RATE, WRITTEN
from kvstudy.analyse.comparison.looks import FIRST_LOOK
from kvstudy.analyse.comparison.stopping import MeasureResult
from kvstudy.analyse.comparison.words import CANNOT_TELL, SAME
from kvstudy.analyse.conditions import NOT_RECORDED, ONE_MACHINE
from kvstudy.analyse.duets import Duet
from kvstudy.analyse.option_duets import option_duets
from kvstudy.analyse.tables import study_duets
from kvstudy.errors import ExperimentError
from kvstudy.present import claim_text, flame_difference, words
from kvstudy.present.cards import Card
from kvstudy.present.markdown import Markdown
from kvstudy.record.duet import side_file
from kvstudy.record.run_folder import open_run

NONE = (
    "**There is no duet to show.** `kvstudy compare experiments/handler.yaml` measures one in about three "
    "minutes: both sides at once, loaded in turn. Where no experiment is named the last one is shown."
)
LOOPS = {"rate": "at a rate", "closed": "closed loop"}
_DIFFERS = {"faster": "is faster", "slower": "is slower", "cheaper": "is cheaper", "dearer": "is dearer"}


@dataclass(frozen=True)
class Shown:
    """``duet``: the one that the page is about; ``others``: every other that was measured, one's own and the
    last first."""

    duet: Duet
    others: tuple[Duet, ...]

    @property
    def decided_elsewhere(self) -> Duet | None:
        """Of one's own duet that decides nothing the committed one that did."""
        return decided_by_reference(self.duet, self.others)

    @property
    def again(self) -> list[Duet]:
        """The others that asked for the same: whoever measures until an answer pleases has them all here."""
        asked = set(self.duet.tables.duets["asked"])
        return [one for one in self.others if asked & set(one.tables.duets["asked"])]


def chosen(
    experiment: str | None = None, comparison: str | None = None, data_root: Path | None = None
) -> Shown | None:
    """Of ``experiment``, or of all; ``comparison``: the beginning of its digest. ExperimentError where a
    named one is not there."""
    tables = study_duets(data_root, progress=False, spread=workers.processes)
    found = [one for one in analysed.duets(tables) if experiment in (None, one.experiment)]
    if comparison is not None:
        named = [one for one in found if one.comparison.startswith(str(comparison))]
        if len(named) != 1:
            raise ExperimentError(
                f"no such duet, or several: duet={comparison!r}",
                f"measured: {', '.join(f'{one.comparison} ({one.experiment})' for one in found) or 'none'}",
            )
        return Shown(named[0], tuple(one for one in found if one is not named[0]))
    return Shown(found[0], tuple(found[1:])) if found else None


def answer(shown: Shown | None) -> Markdown:
    """The primary measure's word in a heading, then every other that is decided, then what all rests on."""
    if shown is None:
        return Markdown(NONE)
    duet, primary = shown.duet, shown.duet.primary
    if primary is None:
        return Markdown(f"## {sentence(duet)}\n\n{basis(shown)}")
    rest = [one for one in duet.results if not one.primary and one.decided]
    elsewhere = shown.decided_elsewhere
    reference = f"{from_reference(elsewhere)}\n\n" if elsewhere else ""
    also = (
        f"Besides: {'; '.join(f'{place(one)}: {word(one)} ({ratio(one)})' for one in rest)}."
        if rest
        else "No other measure is decided."
    )
    measured = f"Ratio {ratio(primary)}, {place(primary)}. {odd(primary)}{also}"
    return Markdown(f"## {sentence(duet)}\n\n{measured}\n\n{reference}{basis(shown)}")


def card(shown: Shown) -> Card:
    """The answer, for the head of the page of one experiment alone."""
    duet = shown.duet
    return Card("06-before-after", "Did the change help?", f"{sentence(duet)}.", sure=(_count(duet),))


def _count(duet: Duet) -> str:
    return words.of_which_count(duet.counted, duet.asked, "launch")


def sentence(duet: Duet) -> str:
    """At most one number: "main is slower than before: p50 of put 1.05 ×"."""
    one = duet.primary
    if one is None:
        why = "too few of its rounds count" if duet.counted else "no launch counts"
        return f"Cannot tell whether {duet.b} differs from {duet.a}: {why}"
    what = f"{one.measure} of {one.workload}"
    if one.word in _DIFFERS:
        by = words.estimate_of_ratio(one.ratio, one.low, one.high)
        return f"{duet.b} {_DIFFERS[one.word]} than {duet.a}: {what} {by}"
    if one.word == SAME:
        return f"{duet.b} and {duet.a} are {word(one)}: {what}"
    why = doubt(one)
    if duet.counted < FIRST_LOOK:
        why = f"{_count(duet)}, {FIRST_LOOK} are needed"
    return f"Cannot tell whether {duet.b} differs from {duet.a}: {what}; {why}"


def doubt(one: MeasureResult) -> str:
    """What stands beside *cannot tell*."""
    return (
        "what was left out could be why"
        if one.held_back
        else "its launches fall into groups"
        if one.in_groups
        else words.findable(one.found)
    )


def odd(one: MeasureResult) -> str:
    """How many launches the answer is not of; "" where there is none."""
    if not one.is_typical:
        agree = (
            f", which agree: their ratios are {one.apart[0]:.2f} to {one.apart[1]:.2f}, and this is the mean"
            if one.apart
            else ""
        )
        return f"No launch is typical: {words.counted(one.launches, 'launch')} fall into groups{agree}. "
    if not one.odd:
        return ""
    weigh = "weighs" if one.odd == 1 else "weigh"
    return (
        f"That is the typical launch: {one.odd} of {words.counted(one.launches, 'launch')} {weigh} less than "
        "half. "
    )


def summarize() -> Markdown | None:
    """Of the index: a line per question that duets were measured of, the reader's own first; None where there
    is none. Those of options are told with the options."""
    asked: dict[tuple, list[Duet]] = {}
    known = analysed.duets(study_duets(progress=False))
    for duet in [one for one in known if one not in option_duets(known)]:
        asked.setdefault(duet.question, []).append(duet)
    lines = []
    for duet, *others in asked.values():
        claims = analysed.claims(duet)
        decided = [
            f"{claim.measure} of {claim_text.place(claim)} "
            f"{claim_text.estimate(claim)} ({claim_text.word(claim)})"
            for claim in claims
            if claim.decided
        ]
        elsewhere = decided_by_reference(duet, others)
        also = f" {from_reference(elsewhere)}" if elsewhere else ""
        launches = words.counted(duet.counted, "launch")
        measured = ", ".join([launches, *network(duet), source(duet)])
        lines.append(
            f"- **{sentence(duet)}.** {'; '.join(decided) or 'Nothing is decided'}.{also} "
            f"*({measured}; [06-before-after](06-before-after.ipynb))*"
        )
    return Markdown("\n".join(lines)) if lines else None


def decided_by_reference(duet: Duet, others: Iterable[Duet]) -> Duet | None:
    """The committed duet that decides what ``duet``, which is the reader's own, leaves open."""
    is_open = duet.is_own and (duet.primary is None or not duet.primary.decided)
    return next(
        (
            one
            for one in others
            if is_open
            and not one.is_own
            and one.question == duet.question
            and one.primary
            and one.primary.decided
        ),
        None,
    )


def from_reference(duet: Duet) -> str:
    measured = f"{ratio(duet.primary)}, {words.counted(duet.counted, 'launch')}"
    return f"**The reference decides it:** {sentence(duet)} ({measured})."


def source(duet: Duet) -> str:
    return "yours" if duet.is_own else "reference"


def network(duet: Duet) -> list[str]:
    """On which hosts; nothing of one machine, which is the default."""
    return [duet.where] if duet.where != ONE_MACHINE else []


def basis(shown: Shown) -> str:
    """How many launches of which duet, on which hosts; what does not count; whether the same was asked
    before."""
    duet = shown.duet
    launches = f"{words.counted(duet.counted, 'launch')} of `{duet.experiment}`"
    folder = f"data/{'raw' if duet.is_own else 'reference'}"
    parts = [f"{launches} count{'s' * (duet.counted == 1)} (`{folder}`, duet `{duet.comparison[:12]}`)"]
    parts += network(duet)
    parts += [duet.cores] if duet.cores != NOT_RECORDED else []
    parts += [
        f"{count} {what}"
        for count, what in (
            (duet.outside, f"left out for what came from outside{duet.failed_besides}"),
            (duet.lost.a, f"failed by {duet.a}"),
            (duet.lost.b, f"failed by {duet.b}"),
        )
        if count
    ]
    again = shown.again
    asked = (
        (
            f" **The same was measured {words.counted(len(again), 'time')} more:** "
            f"{'; '.join(map(sentence, again))}. "
            "Each of these may be wrong in one of twenty."
        )
        if again
        else ""
    )
    few = (
        f" Under {FIRST_LOOK} launches the word is always “{CANNOT_TELL}”."
        if duet.counted < FIRST_LOOK
        else ""
    )
    return f"{'; '.join(parts)}.{few}{asked}"


def measures(shown: Shown | None) -> pd.DataFrame:
    """A row per measure for people, the primary first."""
    columns = ["word", "measure", "ratio", "could have found", "launches", "odd", "more needed"]
    if shown is None:
        return pd.DataFrame(columns=columns)
    duet = shown.duet
    rows = [
        {
            "word": word(one),
            "measure": f"{place(one)}{' (primary)' if one.primary else ''}",
            "ratio": ratio(one),
            duet.a: value(one.a, one.measure),
            duet.b: value(one.b, one.measure),
            "could have found": _could_find(one),
            "launches": one.launches,
            "odd": one.odd if one.is_typical else "groups",
            "more needed": ""
            if one.is_over
            else "too many"
            if one.to_come is None
            else f"about {one.to_come}",
        }
        for one in duet.results
    ]
    return pd.DataFrame(rows or None, columns=["word", "measure", "ratio", duet.a, duet.b, *columns[3:]])


def all_of(shown: Shown | None) -> list[Duet]:
    """Every duet that was measured, the one that the page is about first."""
    return [] if shown is None else [shown.duet, *shown.others]


def _could_find(one: MeasureResult) -> str:
    return "" if one.decided else words.findable_briefly(one.found, one.launches >= FIRST_LOOK)


def every_measure(shown: Shown | None) -> pd.DataFrame:
    """``measures`` of every duet, the one that the page is about first."""
    rows = [
        {
            "word": word(one),
            "experiment": duet.experiment,
            "b": duet.b,
            "against a": duet.a,
            "measure": f"{place(one)}{' (primary)' if one.primary else ''}",
            "ratio": ratio(one),
            "value of a": value(one.a, one.measure),
            "value of b": value(one.b, one.measure),
            "could have found": _could_find(one),
            "launches": one.launches,
            "measured": source(duet),
        }
        for duet in all_of(shown)
        for one in duet.results
    ]
    return pd.DataFrame(rows)


def every(shown: Shown | None) -> pd.DataFrame:
    """A row per duet that was measured, one's own and the last first: what its primary measure says."""
    known = all_of(shown)
    rows = [
        {
            "word": word(one.primary) if one.primary else CANNOT_TELL,
            "experiment": one.experiment,
            "b": one.b,
            "against a": one.a,
            "primary": place(one.primary) if one.primary else words.MISSING,
            "ratio": ratio(one.primary) if one.primary else words.MISSING,
            "launches": one.counted,
            "left out": one.asked - one.counted,
            "where": one.where,
            "cores": one.cores,
            "measured": source(one),
            "duet": one.comparison[:12],
        }
        for one in known
    ]
    columns = ["word", "experiment", "b", "against a", "primary", "ratio", "launches", "left out"]
    return pd.DataFrame(rows, columns=[*columns, "where", "cores", "measured", "duet"])


def rounds_left_out(shown: Shown | None) -> pd.DataFrame:
    """Of the launches that count: rounds by why they do not, and by whose doing."""
    columns = ["workload", "loop", "left out", "by", "rounds", "of"]
    if shown is None:
        return pd.DataFrame(columns=columns)
    duet, tables = shown.duet, shown.duet.tables
    rounds = tables.slices[
        tables.slices["run_id"].isin(duet.counted_runs) & (tables.slices["loop"] != "profile")
    ].drop_duplicates(["run_id", "workload", "loop", "round"])
    total = rounds.groupby(["workload", "loop"]).size()
    gone = rounds[rounds["left_out"] != ""].groupby(["workload", "loop", "left_out", "lost_by"]).size()
    named = {"": "", "a": duet.a, "b": duet.b, "ab": "both"}
    return pd.DataFrame(
        [
            (workload, LOOPS[loop], why, named[by], count, total[workload, loop])
            for (workload, loop, why, by), count in gone.items()
        ],
        columns=columns,
    )


def checks(shown: Shown | None) -> pd.DataFrame:
    """Checks of launches that were not passed."""
    columns = ["launch", "check", "verdict", "observed", "required", "run"]
    if shown is None:
        return pd.DataFrame(columns=columns)
    tables = shown.duet.tables
    seen = (
        tables.duet_validity[tables.duet_validity["verdict"] != "PASS"]
        .merge(tables.duets[["run_id", "launch"]], on="run_id")
        .sort_values(["launch", "check"])
    )
    return seen.rename(columns={"run_id": "run"})[columns].reset_index(drop=True)


def difference(shown: Shown | None, event: str = "cpu") -> HTML:
    """Stacks of side b, each frame coloured by how its share of all samples differs from side a, or the other
    way round, as chosen; both sampled in slices of their own."""
    if shown is None:
        return HTML("<p>There is no duet to show.</p>")
    duet, tables = shown.duet, shown.duet.tables
    stacks = tables.duet_stacks[
        (tables.duet_stacks["event"] == event) & tables.duet_stacks["run_id"].isin(duet.counted_runs)
    ]
    sides = [stacks[stacks["side"] == side] for side in "ab"]
    page = _template(duet, event)
    if page is None or any(side["samples"].sum() == 0 for side in sides):
        return HTML(
            f"<p>No {escape(event)} profiles of both {escape(duet.a)} and {escape(duet.b)} in a launch that "
            "counts.</p>"
        )
    names = (duet.a, duet.b)
    launches = f"{words.counted(stacks['run_id'].nunique(), 'launch')} of {duet.experiment}"
    return flame_difference.both_ways(
        names, lambda step: flame_difference.drawn(sides[::step], names[::step], event, page, launches)
    )


def _template(duet: Duet, event: str) -> str | None:
    """async-profiler's page of side b, whose script draws the difference."""
    name = side_file(f"{event}.flamegraph.html", "b")
    for run_id in duet.tables.duets["run_id"]:
        if run_id in duet.tables.folders and (run := open_run(duet.tables.folders[run_id])).has(name):
            return run.text(name)
    return None


def place(one: MeasureResult) -> str:
    """ "p50 of put at a rate"; CPU and rates are in both loops, or in one alone."""
    return f"{one.measure} of {one.workload}, {LOOPS[one.loop]}"


def word(one: MeasureResult) -> str:
    if one.held_back:
        return f"{CANNOT_TELL}: held back"
    return words.word(one)


def ratio(one: MeasureResult) -> str:
    return words.ratio(one.ratio, one.low, one.high)


def value(number: float, measure: str) -> str:
    if measure == RATE:
        return words.rate(number)
    if measure == WRITTEN:
        return words.size(number)
    return words.latency(number / 1000)
