"""Why are slow requests slow: what their seconds share with events, against chance; every run on one
clock."""

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse import tail
from kvstudy.analyse.answers.tail import WORKLOAD
from kvstudy.present import theme, words
from kvstudy.present.figures.marks import marked_runs
from kvstudy.present.figures.panels import nothing, opened, panel_grid, titled

ROWS_MAX, PANEL_PX = 4, 220  # kinds of event in a panel of one workload, and how high it is
_JUDGED = (
    "By chance: with the events of other repeats at the same moment, of a run without repeats with its own "
    "at other times. Linked: beyond that, and beyond other times of the run, with at most 5 % error over the "
    "whole page (Holm)."
)
NOTHING_LINKED = "no kind of event can be called linked"
_HUES = {tail.LINKED: theme.VERMILION, tail.CANNOT_TELL: theme.BLUE, "": theme.QUIET_TEXT}


def causes_by_workload(groups: list[tail.WorkloadCauses]) -> go.Figure:
    """A panel for each workload of ``analyse.tail.page_causes``. Bars: the share of the slow answers that
    each kind of event overlaps, of the linked kinds, or where none is linked of those nearest to it. A tick
    marks what chance would give."""
    answered, groups = bool(groups), [group for group in groups if group.found["slow_requests"].sum()]
    if not groups:
        return _nothing_slow(answered)
    named = [
        f"{group.workload}, {words.rate(group.offered_rate_rps)}" for group in groups
    ]  # short enough for a telephone
    figure = panel_grid(named, "share of the slow answers", "", columns=1, match_y=False, row_px=PANEL_PX)
    for row, group in enumerate(groups, start=1):
        _bars(figure, _informative_causes(group.found).iloc[::-1], row=row, col=1)
    _bars_legend(figure, {"row": 1, "col": 1})
    figure.update_xaxes(tickformat=".0%", range=[0, 1.02])
    figure.update_layout(barmode="overlay", legend_y=-60 / (len(groups) * PANEL_PX))
    # The workload that the page's answer is about, where it was measured.
    first = next((group for group in groups if group.workload == WORKLOAD), groups[0])
    opened(figure, first.workload, words.rate(first.offered_rate_rps))
    return titled(
        figure,
        "What was going on while slow answers waited, workload by workload",
        _finding(first),
        "Each workload at the highest rate of its runs, against a threshold of its own. At most "
        f"{ROWS_MAX} kinds of event each: the table has all. {_JUDGED}",
        [_finding(group) for group in groups],
    )


def _nothing_slow(answered: bool) -> go.Figure:
    """``answered``: whether any valid run says how slow its answers were, second by second."""
    return (
        nothing("no slow answer to explain", "Lower the percentile in the parameters.")
        if answered
        else nothing(
            "no valid run with its answers by the second",
            "The checks that runs failed stand under Doubts; wrk and wrk2 write nothing by the second.",
        )
    )


def _finding(group: tail.WorkloadCauses) -> str:
    linked = linked_to(group.found)
    link = f"linked to {linked}" if linked else NOTHING_LINKED
    return (
        f"{group.workload}, {words.rate(group.offered_rate_rps)}: answers slower than "
        f"{words.latency(group.limit_us)}: {link}; {words.share(untouched(group.found))} have no recorded "
        "event"
    )


def linked_to(found: pd.DataFrame) -> str:
    """The linked kinds of ``analyse.tail.causes`` in words, "" when there is none: "flush (31.0 %, by chance
    12.0 %)"."""
    linked = found[found["word"] == tail.LINKED]
    return (
        words.several(
            [
                f"{words.factor(row.cause)} ({words.share(row.share)}, by chance {words.share(row.chance)})"
                for row in linked.itertuples()
            ]
        )
        if len(linked)
        else ""
    )


def untouched(found: pd.DataFrame) -> float:
    """Share of the slow answers that no telling event touches."""
    return float(found.loc[found["cause"] == tail.NO_EVENT, "share"].iloc[0])


def _informative_causes(found: pd.DataFrame) -> pd.DataFrame:
    events = found[found["cause"] != tail.NO_EVENT]
    linked = events[events["word"] == tail.LINKED]
    return pd.concat(
        [(linked if len(linked) else events).head(ROWS_MAX), found[found["cause"] == tail.NO_EVENT]]
    )


def _bars(figure: go.Figure, rows: pd.DataFrame, **place) -> None:
    """``rows`` of causes as bars, the first one lowest, each with a tick at what chance would give."""
    names = [words.factor(cause) for cause in rows["cause"]]
    figure.add_trace(
        go.Bar(
            y=names,
            x=rows["share"],
            orientation="h",
            marker={"color": [_HUES[word] for word in rows["word"]]},
            name="share of the slow answers",
            showlegend=False,
            text=[_describe(row) for row in rows.itertuples()],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        **place,
    )
    known = rows[rows["chance"].notna()]
    figure.add_trace(
        go.Scatter(
            x=known["chance"],
            y=[words.factor(cause) for cause in known["cause"]],
            mode="markers",
            name="by chance",
            legendgroup="by chance",
            showlegend=place.get("row", 1) == 1,
            marker={"symbol": "line-ns", "size": 22, "line": {"width": 3, "color": theme.TEXT}},
            hoverinfo="skip",
        ),
        **place,
    )
    figure.update_yaxes(categoryorder="array", categoryarray=names, **place)


def _bars_legend(figure: go.Figure, place: dict) -> None:
    for name, word in (("linked", tail.LINKED), ("cannot tell", tail.CANNOT_TELL), (tail.NO_EVENT, "")):
        figure.add_trace(
            go.Bar(y=[None], x=[None], marker={"color": _HUES[word]}, name=name, orientation="h"), **place
        )


def slow_time_line(tables, limit_us: float, runs_max: int = 24) -> go.Figure:
    """A row per run: a mark for each spell of slow answers, as large as their number and as long as they
    waited, hollow and without a length where only their second is known; below it the run's events. Zoom
    in."""
    runs = sorted(
        (run for run in tail.slow_by_run(tables, limit_us) if run.total), key=lambda run: -run.total
    )
    if not runs:
        return _nothing_slow(math.isfinite(limit_us))
    shown = runs[:runs_max]
    what = marked_runs(tables).set_index("run_id")
    rank = {run.run_id: len(shown) - 1 - place for place, run in enumerate(shown)}
    figure = go.Figure()
    events = tables.events[
        tables.events["run_id"].isin(rank)
        & (tables.events["duration_ms"] >= tail.SHORTEST_SHARE * limit_us / 1e3)
    ]
    events = events[events["start_s"] >= -1]
    for kind, hue in theme.colours("kind", events["kind"]).items() if len(events) else ():
        mine = events[events["kind"] == kind]
        xs, ys, texts = [], [], []
        for event in mine.itertuples():
            end = event.start_s + max(event.duration_ms / 1e3, 0.02)
            xs += [event.start_s, end, None]
            ys += [rank[event.run_id] - 0.22] * 2 + [None]
            texts += [
                f"{words.factor(kind)} {words.latency(event.duration_ms * 1e3)} at {event.start_s:.2f} s"
            ] * 2 + [""]
        figure.add_trace(
            go.Scatter(
                x=xs,
                y=ys,
                mode="lines",
                line={"color": hue, "width": 7},
                name=words.factor(kind),
                text=texts,
                hovertemplate="%{text}<extra></extra>",
            )
        )
    spells = [
        (rank[run.run_id] + 0.16, what.loc[run.run_id, "hover"], *spell)
        for run in shown
        if run.one_by_one
        for spell in run.spells()
    ]
    figure.add_trace(
        go.Scatter(
            x=[edge for *_, begin, end, _ in spells for edge in (begin, end, None)],
            y=[edge for height, *_ in spells for edge in (height, height, None)],
            mode="lines",
            line={"color": theme.TEXT, "width": 3},
            name="their wait",
            hoverinfo="skip",
            showlegend=False,
        )
    )
    figure.add_trace(
        _dots(spells, "slow answers", "circle", "{number} waited from {begin:.2f} to {end:.2f} s")
    )
    # How long within their second these waited is not known: a line would look like a standstill of a second.
    by_second = [
        (rank[run.run_id] + 0.16, what.loc[run.run_id, "hover"], *spell)
        for run in shown
        if not run.one_by_one
        for spell in run.spells()
    ]
    if by_second:
        figure.add_trace(
            _dots(
                by_second,
                "slow answers, known by their second",
                "circle-open",
                "second {begin:.0f}: {number}",
            )
        )
    labels = [
        f"{what.loc[run_id, 'what']}, {words.value('offered_rate_rps', what.loc[run_id, 'offered_rate_rps'])}"
        for run_id in rank
    ]
    figure.update_yaxes(
        tickvals=list(rank.values()),
        ticktext=labels,
        title_text="",
        range=[-0.7, len(shown) - 0.3],
        tickfont={"size": 10},
    )
    figure.update_xaxes(title_text="second of the measured window")
    figure.update_layout(height=220 + 30 * len(shown), legend_y=-75 / (30 * len(shown) + 40))
    per_second = tail.slow_seconds(tables, limit_us)
    per_second = per_second.loc[per_second["count"] > 0, "slow"].sort_values(ascending=False)
    concentrated = per_second.cumsum().searchsorted(0.5 * per_second.sum()) + 1
    finding = (
        f"Half of the slow answers lie in {concentrated} of {len(per_second)} seconds with answers; the "
        f"worst second has {words.count(per_second.iloc[0])} of them"
    )
    exact = sum(run.one_by_one for run in shown)
    over = f"answers over {words.latency(limit_us)}"
    how = (
        f"Dots: {over}, as long as the line they waited"
        if exact
        else f"Hollow dots: {over} of a second; when in it they waited was not kept"
    )
    how += (
        (
            f"; hollow dots: those of a second, in the {len(shown) - exact} runs that did not keep them "
            "one by one"
        )
        if 0 < exact < len(shown)
        else ""
    )
    return titled(
        figure,
        "Slow answers and events of every run, on one clock",
        finding,
        f"{how}. Bars below: events long enough to matter. The {len(shown)} runs with most slow answers.",
    )


def _dots(spells: list[tuple], name: str, symbol: str, template: str) -> go.Scatter:
    """A mark in the middle of each of ``spells`` (height, hover text of the run, begin and end in seconds,
    answers); ``told``: its own text."""
    return go.Scatter(
        x=[(begin + end) / 2 for *_, begin, end, _ in spells],
        y=[height for height, *_ in spells],
        mode="markers",
        name=name,
        marker={
            "color": theme.TEXT,
            "size": np.clip(4 + 5 * np.log10([number for *_, number in spells]), 4, 20),
            "symbol": symbol,
        },
        text=[
            f"{template.format(number=words.counted(number, 'slow answer'), begin=begin, end=end)}<br>{hover}"
            for _, hover, begin, end, number in spells
        ],
        hovertemplate="%{text}<extra></extra>",
    )


def _describe(row) -> str:
    lines = [
        f"<b>{words.factor(row.cause)}</b>{': ' + row.word if row.word else ''}",
        f"{words.counted(row.slow_requests, 'slow answer')}, {words.share(row.share)} of all",
    ]
    if row.cause != tail.NO_EVENT:
        lines += [
            f"by chance {words.share(row.chance)}, {words.times(row.lift)} as many"
            + (f"; {row.why}" if row.why else f"; p {row.p_value:.2g}"),
            (
                f"{words.counted(row.events, 'event')}, the longest {words.latency(row.longest_ms * 1e3)}, "
                f"felt in {words.share(row.time_share)} of the time"
            ),
            f"without any other linked kind near: {words.share(row.share_alone)}",
        ]
    return "<br>".join(lines)
