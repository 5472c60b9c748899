"""Choosers, and views that follow them: what 09-explore and a reader's own notebook are made of.

    at = explore.choose()            the reference at once, or one's own runs
    at                               choosers of experiment, variant, run, percentile and seconds
    at.show(lambda now: px.line(now.seconds, x="second", y="p99_us"))
                                     drawn now, and again after every choice

A view is any function of the ``Choice``: it returns a figure, a frame or a text. In the exported pages, where
nobody can choose, the first choice is drawn and the choosers are a sentence.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real

import numpy as np
import pandas as pd
import plotly.io as pio
from hdrh.histogram import HdrHistogram
from IPython import get_ipython
from IPython.display import HTML, Markdown, display

from kvstudy.analyse import percentile_grid, schema
from kvstudy.analyse.by_second import by_second
from kvstudy.analyse.configuration import configured, differing
from kvstudy.analyse.percentile_grid import printed_us
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.tail import logged_intervals
from kvstudy.errors import KvstudyError, one_line
from kvstudy.present import notebook, profiled_runs, series, theme, words
from kvstudy.present.figures import panels
from kvstudy.present.markdown import without_tags
from kvstudy.project import EXPORT_VARIABLE
from kvstudy.record import hdr

# plotly's ``labels``: what the axes of the views say
AXES = {
    "offered_rate_rps": "offered rate, r/s",
    "connections": "connections",
    "latency_us": "response time, µs",
    "response_us": "response time, µs",
    "one_in": "one answer in so many is slower",
    "second": "second of the measured window",
    "at_us": "response time at the chosen percentile, µs",
    "due_s": "due, s of the measured window",
    "start_s": "began, s of the measured window",
    "kind": "what ran",
    "samples": "samples",
    "frame": "topmost frame",
}
# plotly's ``color_discrete_map``: runs that count nowhere are grey
COLOURS = dict.fromkeys((f"{name}, {profiled_runs.INVALID}" for name in ("chosen", "others")), theme.INVALID)
_EMPTY = f'<div style="height: {theme.HEIGHT_PX}px"></div>'  # as high as a chart, so that nothing moves
NO_RUN = (
    "**There is no run to choose from**: nothing but duets was measured, and page 06 shows those. "
    "`kvstudy run experiments/reproduce.yaml` measures runs."
)
CHOSEN = ("experiment", "variant", "run_id", "percentile", "start_s", "stop_s")
_made: dict[str, tuple] = {}  # cell → its last execution, the explorers of that, and of the one before
PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)


@dataclass(frozen=True)
class Choice:
    """What is chosen: a run of a variant of an experiment, a percentile, and the seconds from ``start_s`` to
    ``stop_s`` of its measured window. Its frames have the columns of docs/api.md; latencies are response
    times."""

    tables: Tables  # of the experiment
    variant: str
    run_id: str
    percentile: float
    start_s: float
    stop_s: float

    @property
    def experiment(self) -> str:
        return self.tables.runs["experiment"].iloc[0]

    @property
    def runs(self) -> pd.DataFrame:
        """Every run of the experiment, with its ``variant`` in words, and whether it is of the ``chosen``
        one; of an invalid run that says so too."""
        runs = self.tables.runs
        named = variants(runs)
        chosen = (named == self.variant).map({True: "chosen", False: "others"})
        return runs.assign(variant=named, chosen=_marked(chosen, runs["verdict"]))

    @property
    def run(self) -> pd.Series:
        return self.tables.runs.set_index("run_id").loc[self.run_id]

    @property
    def percentiles(self) -> pd.DataFrame:
        """Of the repeats of the variant; ``one_in``: one answer in so many is slower. ``repeat``: its number,
        and that it is invalid."""
        repeats = self._of_variant[["run_id", "repeat", "verdict"]]
        rows = self.tables.only(repeats["run_id"]).percentiles
        rows = rows[(rows["latency_kind"] == "response") & (rows["percentile"] < 100)].merge(
            repeats, on="run_id"
        )
        repeat = _marked(rows["repeat"].astype(str), rows["verdict"])
        return rows.assign(one_in=100 / (100 - rows["percentile"]), repeat=repeat)

    @property
    def by_rate(self) -> pd.DataFrame:
        """One row per run of the experiment: its latency at the chosen percentile."""
        rows = self.tables.percentiles
        wanted = percentile_grid.at(rows["percentile"], self.percentile)
        rows = rows[(rows["latency_kind"] == "response") & wanted]
        if rows.empty:  # one that the table does not have, as 97
            rows = pd.DataFrame(
                (
                    (run_id, *printed_us(hdr.merge(map(hdr.decode, texts)), [self.percentile]))
                    for run_id, texts in logged_intervals(self.tables).groupby("run_id")["histogram"]
                ),
                columns=["run_id", "latency_us"],
            )
        return _latency_runs(self.runs).merge(rows[["run_id", "latency_us"]], on="run_id")

    @property
    def along(self) -> str:
        """The column of ``by_rate`` that tells its runs apart: of closed loops, which have no offered rate,
        their connections."""
        return "connections" if self.by_rate["offered_rate_rps"].isna().all() else "offered_rate_rps"

    @property
    def not_along(self) -> str:
        """What is not drawn along it, in words; "" where all is."""
        closed = int(self.by_rate[self.along].isna().sum())
        return f"; without {closed} of closed loops" if closed else ""

    @property
    def seconds(self) -> pd.DataFrame:
        """Second by second of the run: ``count``, ``p50_us``, ``p99_us``, ``max_us``, the chosen percentile
        as ``at_us``, and whether it is within the chosen time. Where its intervals are shorter those of a
        second are added up; ``intervals`` has them one by one."""
        return self._at_percentile(by_second(self._intervals), "second")

    @property
    def intervals(self) -> pd.DataFrame:
        """As ``seconds``, in the steps in which the run was logged: ``start_s``, ``length_s``."""
        return self._at_percentile(self._intervals, "start_s")

    def _at_percentile(self, rows: pd.DataFrame, begin: str) -> pd.DataFrame:
        at_us = [printed_us(hdr.decode(text), [self.percentile])[0] for text in rows["histogram"]]
        part = np.where(rows[begin].between(self.start_s, self.stop_s, inclusive="left"), "part", "rest")
        return rows.drop(columns="histogram").assign(at_us=at_us, part=part)

    @property
    def events(self) -> pd.DataFrame:
        """What ran in the chosen time."""
        rows = self.tables.only([self.run_id]).events
        return rows[
            (rows["start_s"] < self.stop_s) & (rows["start_s"] + rows["duration_ms"] / 1000 >= self.start_s)
        ]

    @property
    def slowest(self) -> pd.DataFrame:
        """The slowest answers that were due in the chosen time."""
        rows = self.tables.only([self.run_id]).slowest
        return rows[rows["due_s"].between(self.start_s, self.stop_s)].sort_values(
            "response_us", ascending=False
        )

    @property
    def stacks(self) -> pd.DataFrame:
        """CPU samples of the profiled runs of the same workload, all of their time."""
        same = self.tables.runs[
            self.tables.runs["profiled"] & (self.tables.runs["workload"] == self.run["workload"])
        ]
        rows = self.tables.only(same["run_id"]).stacks
        return rows[rows["event"] == "cpu"]

    @property
    def part_and_rest(self) -> pd.DataFrame:
        """Percentiles of the chosen time and of the rest, an interval counting where it begins: ``part``,
        ``percentile``, ``one_in``, ``latency_us``."""
        rows = []
        for name, inside in (("part", True), ("rest", False)):
            within = self._intervals["start_s"].between(self.start_s, self.stop_s, inclusive="left") == inside
            histograms = [hdr.decode(text) for text in self._intervals.loc[within, "histogram"]]
            grid = np.array([0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99])
            if histograms:
                latencies = printed_us(hdr.merge(histograms), grid)
                rows.append(pd.DataFrame({"part": name, "percentile": grid, "latency_us": latencies}))
        found = pd.concat(rows) if rows else pd.DataFrame({"part": [], "percentile": [], "latency_us": []})
        return found.assign(one_in=100 / (100 - found["percentile"]))

    def histogram(self) -> HdrHistogram:
        """Every latency of the chosen seconds."""
        from kvstudy import api

        return api.histogram(self.run_id, start_s=self.start_s, stop_s=self.stop_s, of=self.tables)

    @property
    def title(self) -> str:
        invalid = f", {profiled_runs.INVALID}" if self.run["verdict"] == "FAIL" else ""
        return f"{self.variant}, repeat {self.run['repeat']}{invalid}"

    @cached_property
    def _intervals(self) -> pd.DataFrame:
        return logged_intervals(self.tables.only([self.run_id])).sort_values("start_s")

    @property
    def _of_variant(self) -> pd.DataFrame:
        runs = _latency_runs(self.tables.runs)
        return runs[variants(runs) == self.variant]


def _marked(names: pd.Series, verdicts: pd.Series) -> pd.Series:
    return names.where(verdicts != "FAIL", names + f", {profiled_runs.INVALID}")


def _latency_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Those that latency may be read off; where there are only profiled ones, these."""
    return runs if runs["profiled"].all() else runs[~runs["profiled"]]


def variants(runs: pd.DataFrame) -> pd.Series:
    """What was asked for, in words, the repeat apart: ``put, 4 connections, 2 000 r/s, wal=os``; then what
    else tells runs of one such name apart. ``runs``: all of an experiment, or its latency runs, which have
    the same names among both."""
    named = configured(runs)
    rates = [
        "closed loop" if closed else words.rate(rate)
        for closed, rate in zip(named["closed_loop"], named["offered_rate_rps"], strict=True)
    ]
    named["name"] = [
        ", ".join(filter(None, (workload, words.value("connections", connections), rate, variant, label)))
        for workload, connections, rate, variant, label in zip(
            named["workload"], named["connections"], rates, named["variant"], named["label"], strict=True
        )
    ]
    for column in differing(named, ["name", "profiled"]):
        texts = series.differing(named, column, ["name", "profiled"])
        named["name"] = [", ".join(filter(None, pair)) for pair in zip(named["name"], texts, strict=True)]
    return named["name"]


class Choices:
    """What can be chosen, and what follows from it: each choice sets those below it to their first."""

    def __init__(self, tables: Tables):
        latency = _latency_runs(tables.runs)
        self._tables = tables
        self.experiments = sorted(
            latency["experiment"].unique(), key=lambda name: (name != notebook.MAIN, name)
        )

    def experiment_tables(self, name: str) -> Tables:
        if name not in self.experiments:
            raise KvstudyError(f"no such experiment: {name}", f"known: {', '.join(self.experiments)}")
        return self._tables.select(experiment=name)

    def variants(self, experiment: str) -> list[str]:
        runs = _latency_runs(self.experiment_tables(experiment).runs).sort_values(
            ["workload", "connections", "offered_rate_rps", "variant", "label"]
        )
        return list(dict.fromkeys(variants(runs)))

    def runs(self, experiment: str, variant: str) -> list[str]:
        """Valid ones first, each in the order of the repeats."""
        runs = _latency_runs(self.experiment_tables(experiment).runs)
        runs = runs[variants(runs) == variant]
        return list(runs.assign(bad=runs["verdict"] == "FAIL").sort_values(["bad", "repeat"])["run_id"])

    def seconds(self, experiment: str, run_id: str) -> tuple[int, int]:
        """From 0 to the end of the last second."""
        seconds = logged_intervals(self.experiment_tables(experiment).only([run_id]))["second"]
        return 0, 1 if seconds.empty else int(seconds.max()) + 1

    def first(
        self, experiment: str | None, variant: str | None, run_id: str | None, percentile: float
    ) -> Choice:
        """None: the first there is, or a choice without a run where nothing but duets was measured. A run
        alone says its experiment and variant."""
        runs = self._tables.runs
        percentile_grid.check(percentile)
        for name, value in (("experiment", experiment), ("variant", variant), ("run_id", run_id)):
            if not isinstance(value, str | None):
                raise KvstudyError(f"not one {name}: {one_line(value)}", f"{name} is a text, or None")
        if runs.empty and experiment is None and run_id is None:
            return Choice(self._tables, "", "", percentile, 0, 0)
        if run_id is not None:
            if run_id not in runs["run_id"].tolist():
                raise KvstudyError(f"no such run: {run_id}", "kvstudy.runs() has them all")
            experiment = runs.set_index("run_id").loc[run_id, "experiment"]
            runs = self.experiment_tables(experiment).runs
            variant = variants(runs)[runs["run_id"] == run_id].iloc[0]
            others = self.runs(experiment, variant)
            if run_id not in others:
                raise KvstudyError(
                    f"{run_id} was profiled, and no latency is read off such a run",
                    f"its repeats without a profile: {', '.join(others) or 'none'}",
                )
        experiment = experiment or self.experiments[0]
        known = self.variants(experiment)
        if run_id is None and variant is not None:
            variant = {_unspaced(name): name for name in known}.get(_unspaced(variant), variant)
        if run_id is None and variant is not None and variant not in known:
            raise KvstudyError(f"no such variant of {experiment}: {variant}", f"known: {'; '.join(known)}")
        variant = variant or known[-1]
        run_id = run_id or self.runs(experiment, variant)[0]
        start_s, stop_s = self.seconds(experiment, run_id)
        return Choice(self.experiment_tables(experiment), variant, run_id, percentile, start_s, stop_s)


def _unspaced(name: str) -> str:
    """Nobody types the narrow blank in 20 000 r/s."""
    return "".join(name.split())


class Explorer:
    """``choice`` is what is chosen now; ``show`` draws a view of it, and again when it changes."""

    def __init__(self, choices: Choices, first: Choice):
        self._choices, self.choice = choices, first
        self._views: dict[object, tuple[Callable[[Choice], object], object]] = {}
        self._choosers, self._follow = None, lambda: None

    def show(self, view: Callable[[Choice], object]) -> None:
        """``view``: Choice → a figure, a frame, a Markdown or any text. A cell executed again draws anew.
        Without a run to choose from it says so instead. KvstudyError for what is no function."""
        if not callable(view):
            raise KvstudyError(
                f"not a view: {one_line(view)}", "a view is a function, as lambda now: now.slowest.head(10)"
            )
        if self.choice.tables.runs.empty:
            display(Markdown(NO_RUN))
            return
        shown = _drawn(view(self.choice))
        place = display(*shown[0], display_id=True, **shown[1])
        self._views[_cell() or len(self._views)] = view, place

    def choose(self, **changes: object) -> None:
        """As the choosers do: ``at.choose(percentile=99.9)``, ``at.choose(start_s=3, stop_s=5)``.
        KvstudyError for what cannot be chosen; what was chosen before stays then."""
        if self.choice.tables.runs.empty:
            raise KvstudyError("no run to choose from", "measure one: kvstudy run experiments/reproduce.yaml")
        for name in changes:
            if name not in CHOSEN:
                raise KvstudyError(f"nothing to choose is called {name}", schema.nearest(name, CHOSEN))
        names = {"experiment", "variant", "run_id"} & changes.keys()
        now = self.choice
        if names:
            asked = {name: changes[name] for name in names}
            if "run_id" not in asked and "experiment" not in asked:
                asked["experiment"] = now.experiment
            now = self._choices.first(
                asked.get("experiment"), asked.get("variant"), asked.get("run_id"), now.percentile
            )
        rest = {name: value for name, value in changes.items() if name not in names}
        now = replace(now, **rest)
        percentile_grid.check(now.percentile)
        if {"start_s", "stop_s"} & rest.keys():
            self._check_time(now)
        self.choice = now
        self._follow()
        self._draw_anew()

    def take_views(self, other: "Explorer") -> None:
        """Those of ``other``, which this one stands in the place of, are drawn anew and follow this one."""
        self._views, other._views = other._views, {}
        self._draw_anew()

    def _draw_anew(self) -> None:
        for view, place in self._views.values():
            if place is not None:
                shown = _drawn_or_why_not(view, self.choice)
                if shown[1]:
                    # JupyterLab's renderer of plotly keeps the chart that it has, whatever it is given:
                    # something else in its place lets a new one begin.
                    place.update(HTML(_EMPTY))
                place.update(*shown[0], **shown[1])

    def _check_time(self, choice: Choice) -> None:
        low, high = self._choices.seconds(choice.experiment, choice.run_id)
        for name, value in (("start_s", choice.start_s), ("stop_s", choice.stop_s)):
            if not isinstance(value, Real):
                raise KvstudyError(f"not a time: {name}={one_line(value)}", "a number of seconds")
        if not low <= choice.start_s < choice.stop_s <= high:
            raise KvstudyError(
                f"no such time: from {choice.start_s:g} to {choice.stop_s:g} s",
                f"the run has seconds from {low} to {high}",
            )

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        now = self.choice
        if now.tables.runs.empty:
            return {"text/markdown": NO_RUN, "text/plain": NO_RUN}
        reason = profiled_runs.invalid(now.tables.only([now.run_id]))
        text = (
            f"**Shown:** `{now.experiment}`: {now.title} (`{now.run_id}`), percentile {now.percentile:g}, "
            f"seconds {now.start_s:g} to {now.stop_s:g}. {f'{reason}. ' if reason else ''}In JupyterLab "
            "(`make lab`) choosers stand here."
        )
        said = {"text/markdown": without_tags(text), "text/plain": text}
        if os.environ.get(EXPORT_VARIABLE):
            return said
        from kvstudy.present.choosers import choosers

        if self._choosers is None:
            self._choosers, self._follow = choosers(self, self._choices)
        bundle = self._choosers._repr_mimebundle_()
        return said | (bundle[0] if isinstance(bundle, tuple) else bundle)


def choose(
    experiment: str | None = None,
    variant: str | None = None,
    run_id: str | None = None,
    percentile: float = 99.0,
) -> Explorer:
    """Of one's own runs, or of the reference where nothing was measured. Where its cell is executed again the
    views of before follow the new choosers."""
    choices = Choices(notebook.all_tables())
    made = Explorer(choices, choices.first(experiment, variant, run_id, percentile))
    if (before := _before(made)) is not None:
        made.take_views(before)
    return made


def _before(made: Explorer) -> Explorer | None:
    """What this cell made in the place of ``made`` when it was executed before."""
    cell, shell = _cell(), get_ipython()
    if cell is None:
        return None
    execution, now, earlier = _made.get(cell, (None, [], []))
    if execution != shell.execution_count:
        now, earlier = [], now
    _made[cell] = shell.execution_count, [*now, made], earlier
    return earlier[len(now)] if len(now) < len(earlier) else None


def _cell() -> str | None:
    """The cell that is executed, where the frontend says it: its earlier view makes room for the new one."""
    shell = get_ipython()
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    return (parent.get("metadata") or {}).get("cellId")


def _drawn(shown: object) -> tuple[tuple, dict]:
    """Arguments of ``display``. A figure would display itself, and could then not be drawn anew in place."""
    if hasattr(shown, "to_plotly_json"):
        if not panels.has_points(shown.to_dict()):
            shown.update_layout(xaxis_visible=False, yaxis_visible=False)
            shown.add_annotation(
                text=panels.NO_ROWS, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False
            )
        bundle = pio.renderers["plotly_mimetype"].to_mimebundle(shown.to_dict())
        return (bundle | {"text/plain": "a chart"},), {"raw": True}
    return (Markdown(shown) if isinstance(shown, str) else shown,), {}


def _drawn_or_why_not(view: Callable[[Choice], object], choice: Choice) -> tuple[tuple, dict]:
    """In a chooser's answer there is no cell to show an error in."""
    try:
        return _drawn(view(choice))
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        return _drawn(without_tags(f"**This view has nothing to show:** {why}"))
