"""The cost of a request against the work, both logarithmic: p99, CPU and memory side by side. Every run is a
point, the median of the valid ones a line; a dotted line rises in proportion to the work."""

import textwrap

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse import growth as analysed
from kvstudy.analyse.configuration import CPU, each_configuration
from kvstudy.analyse.growth import Growth
from kvstudy.analyse.medians import medians_of_repeats
from kvstudy.analyse.tables import Tables
from kvstudy.present import growth as sentences
from kvstudy.present import theme, words
from kvstudy.present.figures.marks import excluded, invalid_legend, marked_runs, run_points
from kvstudy.present.figures.panels import latency_axis, nothing, panel_grid, titled

HEADINGS = {
    analysed.P99: "p99 of response time",
    CPU: "CPU per request",
    analysed.MEMORY: "resident memory",
}
TITLE_LETTERS = 24  # below a third of a narrow chart
_DRAWN = (
    "Both axes are logarithmic. Dots are runs, lines join the medians of valid ones. "
    "Dotted: in proportion to the work."
)


def by_work(found: Tables, growth: Growth) -> go.Figure:
    points = analysed.points(found, growth)
    if points.empty:
        return nothing(f"{growth.name}: not measured yet", sentences.how(growth))
    marks = marked_runs(found)[["run_id", "valid", "hover"]]
    points = points.merge(marks, on="run_id", suffixes=("_", ""))
    points = points.assign(name=_names(points, growth))
    names = points["name"].unique()
    hues = {name: theme.CATEGORIES[number % len(theme.CATEGORIES)] for number, name in enumerate(names)}
    along = "<br>".join(textwrap.wrap(growth.name, TITLE_LETTERS))
    figure = panel_grid(list(HEADINGS.values()), along, "", columns=3, match_y=False)
    for column, measure in enumerate(HEADINGS, start=1):
        place = {"row": 1, "col": column}
        part = points[points["measure"] == measure]
        _draw(figure, part, measure, hues, place)
        _y_axis(figure, part["value"], measure, place)
    works = sorted(points["work"].unique())
    figure.update_xaxes(
        type="log", tickvals=works, ticktext=[sentences.amount(growth, work) for work in works], tickangle=0
    )
    if not points["valid"].all():
        invalid_legend(figure, row=1, col=1)
    figure.layout.meta = (figure.layout.meta or {}) | {"leads": sentences.leads(found, growth)}
    runs = points.drop_duplicates("run_id")
    every = analysed.runs_with_work(found, growth).merge(marks, on="run_id")  # also those without any value
    return titled(
        figure,
        f"Cost against {growth.name}",
        sentences.grown(found, growth),
        f"{sentences.place(runs)}. {_DRAWN}{excluded(every)}",
    )


def _names(points: pd.DataFrame, growth: Growth) -> pd.Series:
    """Of each run its line, and what tells it from runs of that with which it shares no median."""
    names = pd.Series("", index=points.index, dtype=object)
    for line, mine in points.groupby("line"):
        for differs, part in each_configuration(mine, growth.along):
            names[part.index] = f"{line}, {differs}" if differs else line
    return names


def _draw(figure: go.Figure, points: pd.DataFrame, measure: str, hues: dict[str, str], place: dict) -> None:
    scale = 1.0 if measure == analysed.MEMORY else 1e-6
    for number, name in enumerate(points["name"].unique()):
        mine, hue = points[points["name"] == name], hues[name]
        middle = medians_of_repeats(mine[mine["valid"]], "work", "value") * scale
        figure.add_trace(
            go.Scatter(
                x=middle.index,
                y=middle,
                mode="lines",
                line={"color": hue, "width": 2},
                name=name,
                legendgroup=name,
                showlegend=place["col"] == 1,
                hoverinfo="skip",
            ),
            **place,
        )
        if number == 0 and len(middle) > 1:
            _proportion(figure, middle, place)
        texts = [f"{name}: {sentences.value(value, measure)}" for value in mine["value"]]
        run_points(
            figure, mine.assign(y=mine["value"] * scale, hover_title=texts), "work", hue, name, **place
        )


def _proportion(figure: go.Figure, middle: pd.Series, place: dict) -> None:
    """From the least work on, to where the medians end: further up it would only make them flat."""
    first, top = middle.iloc[0], max(middle.max(), 2 * middle.iloc[0])
    end = min(middle.index[-1], middle.index[0] * top / first)
    figure.add_trace(
        go.Scatter(
            x=[middle.index[0], end],
            y=[first, first * end / middle.index[0]],
            mode="lines",
            line={"color": theme.AXIS, "width": 1.2, "dash": "dot"},
            name="in proportion",
            showlegend=place["col"] == 1,
            hoverinfo="skip",
        ),
        **place,
    )


def _y_axis(figure: go.Figure, values: pd.Series, measure: str, place: dict) -> None:
    if measure != analysed.MEMORY:
        latency_axis(figure, values, "", **place)
        return
    powers = range(int(np.log2(values.min())), int(np.log2(values.max())) + 2) if len(values) else ()
    ticks = [2.0**power for power in powers]
    figure.update_yaxes(
        type="log", tickvals=ticks, ticktext=[words.size(tick) for tick in ticks], title_text="", **place
    )
