"""One run on one clock: latency, slow answers, events and CPU samples; dragged over, it chooses a part of the
run (``present.moment``)."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse.by_second import SECOND_S, step_s
from kvstudy.present import theme, words
from kvstudy.present.figures.panels import latency_axis, nothing, titled
from kvstudy.present.figures.seconds import described, event_bars, heat
from kvstudy.record.heatmap import BLOCK_S, TimedSamples

HEIGHT_PX = 470
DOTS_MAX = 2000  # of a run of whose answers more were kept: the slowest
_LATENCY, _EVENTS, _SAMPLES = (0.5, 1.0), (0.17, 0.44), (0.0, 0.11)


def clock(
    run,
    intervals: pd.DataFrame,
    answers: pd.DataFrame,
    events: pd.DataFrame,
    samples: TimedSamples | None,
    offset_s: float,
    end_s: float,
) -> go.Figure:
    """``run``: a row of marked runs; the frames: its rows of those tables; ``offset_s``: when the first block
    of ``samples`` began, ``end_s``: where time ends, in seconds of the measured window."""
    if intervals.empty and samples is None:
        return nothing(
            "no latency by second and no samples with times", "loadgen and cpu profiles have them."
        )
    step = step_s(intervals)
    figure = go.Figure()
    if len(intervals):
        trace, edges_us = heat(intervals)
        trace.update(colorbar={"len": 0.5, "y": 0.76, "thickness": 10}, yaxis="y")
        figure.add_trace(trace)
        latency_axis(figure, pd.Series(edges_us), "response time")
    drawn = answers.nlargest(DOTS_MAX, "response_us").sort_values("due_s")
    _answers(figure, drawn)
    for bars in event_bars(events):
        figure.add_trace(bars.update(yaxis="y2"))
    if samples is not None:
        _density(figure, samples, offset_s)
    figure.update_layout(
        height=HEIGHT_PX,
        barmode="overlay",
        bargap=0.3,
        dragmode="select",
        selectdirection="h",
        showlegend=False,
        margin={"b": 56},
        yaxis={"domain": _LATENCY},
        yaxis2={
            "domain": _EVENTS if samples is not None else (0, _EVENTS[1]),
            "fixedrange": True,
            "type": "category",
        },
        yaxis3={
            "domain": _SAMPLES,
            "fixedrange": True,
            "showticklabels": False,
            "ticks": "",
            "title": {"text": "CPU"},
        },
        xaxis={
            "range": [0, end_s],
            "anchor": "y2" if samples is None else "y3",
            "title": {"text": "second of the measured window"},
        },
    )
    slowest_us = intervals["max_us"].max()
    finding = f"The slowest answer took {words.latency(slowest_us)}." if len(intervals) else ""
    kept = f"Each column is {'one second' if step == SECOND_S else words.latency(step * 1e6)}"
    if len(answers):
        few = f"one of the {words.count(DOTS_MAX)} slowest of {words.count(len(answers))} slow answers"
        kept += f"; each dot is {few if len(drawn) < len(answers) else 'a slow answer'}"
        kept += ", at the moment when it was due"
    below = "Below: what store and JVM did" + ("" if samples is None else ", and CPU samples every 20 ms")
    return titled(
        figure, "Latency, events and CPU samples on one clock", finding, f"{described(run)}. {kept}. {below}."
    )


def _answers(figure: go.Figure, answers: pd.DataFrame) -> None:
    if answers.empty:
        return
    figure.add_trace(
        go.Scatter(
            x=answers["due_s"],
            y=answers["response_us"] / 1e6,
            mode="markers",
            name="slow answers",
            marker={"size": 4, "color": theme.VERMILION},
            text=[
                f"due at {due:.3f} s: {words.latency(latency)}"
                for due, latency in zip(answers["due_s"], answers["response_us"], strict=True)
            ],
            hovertemplate="%{text}<extra></extra>",
        )
    )


def _density(figure: go.Figure, samples: TimedSamples, offset_s: float) -> None:
    counts = np.bincount(samples.block)
    at = offset_s + BLOCK_S * (np.arange(len(counts)) + 0.5)
    figure.add_trace(
        go.Heatmap(
            x=at,
            y=[0.5],
            z=[counts],
            yaxis="y3",
            colorscale=theme.heat_scale(),
            showscale=False,
            text=[
                [
                    f"{second:.2f} s: {words.counted(n, 'sample')}"
                    for second, n in zip(at, counts, strict=True)
                ]
            ],
            hovertemplate="%{text}<extra></extra>",
        )
    )
