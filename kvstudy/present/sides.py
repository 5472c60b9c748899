"""What is compared with what: two values of one factor, given, or found among the runs.

    sides = choose_sides(experiment=None, factor=None, before=None, after=None)
    sides.tables, sides.factor, sides.before, sides.after

Without a factor the first of these that the runs vary: label (your change), variant (service options),
connections, workload. Of labels ``before`` and ``after`` where both are there, else the first and the last
that were given; runs without a label are a side only where there is one label at most. Variants stand in the
order of ``analyse.options``: the default first, sizes and other numbers by what they are.
"""

from dataclasses import dataclass

import pandas as pd

from kvstudy.analyse.answers.factors import compared_sides
from kvstudy.analyse.configuration import CONFIGURATION, measured_apart, why_not_comparable
from kvstudy.analyse.options import SAME_THING, distance_from_default, usual_sides
from kvstudy.analyse.tables import Tables
from kvstudy.errors import ExperimentError
from kvstudy.present import notebook, words
from kvstudy.present.markdown import Markdown

FACTORS = ("label", "variant", "connections", "workload")
DUET_ALONE = "Of this experiment no independent run was measured; its duet stands above."
APART = (
    "The two sides were not measured in turn: a machine that drifts meanwhile looks like a change. "
    "Where it drifts by 5 % and one side came first, a comparison says a false word in three of ten."
)


@dataclass(frozen=True)
class ComparedRuns:
    """``tables`` hold the runs of both sides; ``before`` and ``after`` are values of the column ``factor`` of
    runs, ``left_out`` the others that were measured."""

    tables: Tables
    factor: str
    before: object
    after: object
    left_out: tuple = ()

    @property
    def names(self) -> tuple[str, str]:
        """The sides as people call them."""
        return words.value(self.factor, self.before), words.value(self.factor, self.after)

    def source(self) -> Markdown:
        """``notebook.source`` of the two sides, which they are, and what was measured beside them; without a
        run, that the duet stands alone."""
        if self.tables.runs.empty:
            return Markdown(self.doubts())
        (before, after), factor, source = (
            self.names,
            words.factor(self.factor),
            notebook.source(self.tables).data,
        )
        if self.before == self.after:
            return Markdown(f"{source} {self.doubts()}")
        others = words.several([words.value(self.factor, value) for value in self.left_out])
        rest = (
            f"; left out: {others}. The parameters `before` and `after` name other sides"
            if self.left_out
            else ""
        )
        apart = f" **{APART}**" if self.factor == "label" and self._apart() else ""
        return Markdown(f"{source} Compared by {factor}: {after} against {before}{rest}.{apart}")

    def _apart(self) -> bool:
        runs = self.tables.runs
        return measured_apart(
            *(runs.loc[runs[self.factor] == side, "start_utc"] for side in (self.before, self.after))
        )

    def doubts(self) -> str:
        """In what the sides differ besides, where that leaves nothing to compare; and of the sides half of
        whose latency runs are invalid: how many, and the check that they failed most often. That there is one
        side alone, or no run. Empty where there is no doubt."""
        if self.tables.runs.empty:
            return DUET_ALONE
        if self.before == self.after:
            one = f"one {words.factor(self.factor)}, {self.names[0]}"
            return f"They are all of {one}: there is nothing to compare them with."
        runs = notebook.latency_runs(self.tables).runs
        failed = self.tables.validity[self.tables.validity["verdict"] == "FAIL"]
        unlike = why_not_comparable(self.tables, self.factor, self.before, self.after)
        parts = (
            [
                (
                    f"no two configurations differ in the {words.factor(self.factor)} alone, but also in "
                    f"{words.several([words.factor(name) for name in unlike])}"
                )
            ]
            if unlike
            else []
        )
        for name, value in dict(zip(self.names, (self.before, self.after), strict=True)).items():
            mine = runs[runs[self.factor] == value]
            invalid = mine.loc[mine["verdict"] == "FAIL", "run_id"]
            checks = failed.loc[failed["run_id"].isin(invalid), "check"].value_counts()
            often = "" if checks.empty else f", most often by {checks.index[0]} ({checks.iloc[0]})"
            parts += (
                [f"{len(invalid)} of {words.count(len(mine))} runs of {name} are invalid{often}"]
                if len(invalid) and 2 * len(invalid) >= len(mine)
                else []
            )
        text = "; ".join(parts)
        return f"{text[0].upper()}{text[1:]}. What each check saw stands under Doubts." if parts else ""

    def compared(self, percentiles: tuple[float, ...] = (50.0, 99.0, 99.9)) -> pd.DataFrame:
        """One row per measure and configuration that both sides have:
        ``analyse.configuration.comparisons``; none where both are one."""
        tables = self.tables.only([]) if self.before == self.after else self.tables
        return compared_sides(tables, self.factor, self.before, self.after, percentiles)


def choose_sides(
    experiment: str | None = None, factor: str | None = None, before=None, after=None
) -> ComparedRuns:
    """The two sides; ExperimentError when the runs do not have them."""
    tables = notebook.tables(_varied_experiment() if experiment is None and factor is None else experiment)
    latency = tables.runs[~tables.runs["profiled"]]
    latency = tables.runs if latency.empty else latency
    if factor is None:
        factor = next((name for name in FACTORS if latency[name].nunique() > 1), "label")
    known = [name for name in dict.fromkeys([*FACTORS, *CONFIGURATION]) if name in tables.runs]
    if factor not in known:
        raise ExperimentError(f"no such factor: factor={factor!r}", f"factors: {', '.join(known)}")
    # In the order in which they were first measured, so that what came first is "before".
    values = list(dict.fromkeys(latency.sort_values("start_utc")[factor]))
    if factor in ("connections", "workload", "variant"):
        values = sorted(values, key=distance_from_default if factor == "variant" else None)
    usual = usual_sides(factor, values)
    before = next((value for value in usual if value != after), usual[0]) if before is None else before
    after = next((value for value in reversed(usual) if value != before), before) if after is None else after
    for name, value in (("before", before), ("after", after)):
        if not isinstance(value, str | float | int) or value not in values:
            raise ExperimentError(
                f"no run with this {factor}: {name}={value!r}", f"measured: {', '.join(map(repr, values))}"
            )
    left_out = tuple(value for value in values if value not in (before, after))
    return ComparedRuns(tables.select(**{factor: [before, after]}), factor, before, after, left_out)


def _varied_experiment() -> str | None:
    """The experiment to show when none is named: one with two labels, else one with two variants that differ,
    else the main one."""
    runs = notebook.all_tables().runs
    runs = runs[runs["experiment"] != SAME_THING]
    for factor in ("label", "variant"):
        varied = runs[~runs["profiled"]].groupby("experiment")[factor].nunique()
        varied = varied[varied > 1]
        # One whose profiles can be compared too tells more.
        both = (
            runs[runs["profiled"] & runs["experiment"].isin(varied.index)]
            .groupby("experiment")[factor]
            .nunique()
        )
        varied = varied if both[both > 1].empty else both[both > 1]
        if len(varied):
            latest = runs[runs["experiment"].isin(varied.index)].groupby("experiment")["start_utc"].max()
            return latest.idxmax()
    return None
