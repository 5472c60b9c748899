"""Why are slow requests slow: what their seconds share with events, against chance; every run on one clock."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse import tail
from kvstudy.present import theme, words
from kvstudy.present.figures.marks import marked_runs
from kvstudy.present.figures.panels import nothing, titled

ROW_PX = 34


def causes(found: pd.DataFrame, limit_us: float) -> go.Figure:
    """Bars of ``analyse.tail.causes``: share of the slow answers that each kind of event overlaps; a tick marks what chance would give."""
    if found.empty or found["slow_requests"].sum() == 0:
        return nothing("no slow answer to explain", "Lower the percentile in the parameters.")
    rows = found.iloc[::-1]
    names = [words.factor(cause) for cause in rows["cause"]]
    hues = [theme.QUIET_TEXT if row.cause == tail.NO_EVENT else theme.VERMILION if row.word == tail.LINKED else theme.BLUE for row in rows.itertuples()]
    figure = go.Figure()
    figure.add_trace(
        go.Bar(
            y=names, x=rows["share"], orientation="h", marker={"color": hues}, name="share of the slow answers", showlegend=False,
            text=[_told(row) for row in rows.itertuples()], textposition="none", hovertemplate="%{text}<extra></extra>",
        )
    )  # fmt: skip
    for name, hue in (("linked", theme.VERMILION), ("cannot tell", theme.BLUE), (tail.NO_EVENT, theme.QUIET_TEXT)):
        figure.add_trace(go.Bar(y=[None], x=[None], marker={"color": hue}, name=name, orientation="h"))
    known = rows[rows["chance"].notna()]
    figure.add_trace(
        go.Scatter(
            x=known["chance"], y=[words.factor(cause) for cause in known["cause"]], mode="markers", name="by chance",
            marker={"symbol": "line-ns", "size": 22, "line": {"width": 3, "color": theme.TEXT}}, hoverinfo="skip",
        )
    )  # fmt: skip
    figure.update_xaxes(tickformat=".0%", range=[0, 1.02], title_text="share of the slow answers that waited while the event was felt")
    figure.update_yaxes(categoryorder="array", categoryarray=names)
    figure.update_layout(height=210 + ROW_PX * len(rows), barmode="overlay", legend_y=-75 / (ROW_PX * len(rows) + 40))
    linked = found[found["word"] == tail.LINKED]
    untouched = found.loc[found["cause"] == tail.NO_EVENT, "share"].iloc[0]
    told = [f"{words.factor(row.cause)} ({words.share(row.share)}, by chance {words.share(row.chance)})" for row in linked.itertuples()]
    finding = (
        f"Answers slower than {words.latency(limit_us)} are linked to {words.several(told)}" if told
        else f"Answers slower than {words.latency(limit_us)}: no kind of event overlaps them more than chance would"
    )  # fmt: skip
    return titled(figure, f"{finding}; {words.share(untouched)} have no recorded event", "Linked: overlap beyond chance at 5 % after Holm's correction, by shifting each run's events around its clock.")


def slow_time_line(tables, limit_us: float, runs_max: int = 24) -> go.Figure:
    """A row per run: a mark for each spell of slow answers, as large as their number and as long as they waited; below it the run's events.
    Zoom in."""
    runs = sorted((run for run in tail.slow_by_run(tables, limit_us) if run.total), key=lambda run: -run.total)
    if not runs:
        return nothing("no slow answer to explain", "Lower the percentile in the parameters.")
    shown = runs[:runs_max]
    what = marked_runs(tables).set_index("run_id")
    rank = {run.run_id: len(shown) - 1 - place for place, run in enumerate(shown)}
    figure = go.Figure()
    events = tables.events[tables.events["run_id"].isin(rank) & (tables.events["duration_ms"] >= tail.SHORTEST_SHARE * limit_us / 1e3)]
    events = events[events["start_s"] >= -1]
    for kind, hue in theme.colours("kind", events["kind"]).items() if len(events) else ():
        mine = events[events["kind"] == kind]
        xs, ys, texts = [], [], []
        for event in mine.itertuples():
            end = event.start_s + max(event.duration_ms / 1e3, 0.02)
            xs += [event.start_s, end, None]
            ys += [rank[event.run_id] - 0.22] * 2 + [None]
            texts += [f"{words.factor(kind)} {words.latency(event.duration_ms * 1e3)} at {event.start_s:.2f} s"] * 2 + [""]
        figure.add_trace(go.Scatter(x=xs, y=ys, mode="lines", line={"color": hue, "width": 7}, name=words.factor(kind), text=texts, hovertemplate="%{text}<extra></extra>"))
    spells = [(rank[run.run_id] + 0.16, what.loc[run.run_id, "hover"], run.one_by_one, *spell) for run in shown for spell in run.spells()]
    figure.add_trace(
        go.Scatter(
            x=[edge for *_, begin, end, _ in spells for edge in (begin, end, None)], y=[edge for height, *_ in spells for edge in (height, height, None)],
            mode="lines", line={"color": theme.TEXT, "width": 3}, hoverinfo="skip", showlegend=False,
        )
    )  # fmt: skip
    figure.add_trace(
        go.Scatter(
            x=[(begin + end) / 2 for *_, begin, end, _ in spells], y=[height for height, *_ in spells], mode="markers", name="slow answers",
            marker={"color": theme.TEXT, "size": np.clip(4 + 5 * np.log10([number for *_, number in spells]), 4, 20), "symbol": "circle"},
            text=[
                (f"{words.count(number)} slow answers waited from {begin:.2f} to {end:.2f} s" if exactly else f"second {begin:.0f}: {words.count(number)} slow answers") + f"<br>{hover}"
                for _, hover, exactly, begin, end, number in spells
            ],
            hovertemplate="%{text}<extra></extra>",
        )
    )  # fmt: skip
    labels = [f"{what.loc[run_id, 'what']}, {words.value('offered_rate_rps', what.loc[run_id, 'offered_rate_rps'])}" for run_id in rank]
    figure.update_yaxes(tickvals=list(rank.values()), ticktext=labels, title_text="", range=[-0.7, len(shown) - 0.3], tickfont={"size": 10})
    figure.update_xaxes(title_text="second of the measured window")
    figure.update_layout(height=220 + 30 * len(shown), legend_y=-75 / (30 * len(shown) + 40))
    per_second = tail.slow_seconds(tables, limit_us)["slow"].sort_values(ascending=False)
    concentrated = per_second.cumsum().searchsorted(0.5 * per_second.sum()) + 1
    finding = f"Half of the slow answers lie in {concentrated} of {len(per_second)} seconds; the worst second has {words.count(per_second.iloc[0])} of them"
    exact = sum(run.one_by_one for run in shown)
    how = "known one by one" if exact == len(shown) else f"known one by one in {exact} of the runs, by their second in the others"
    return titled(figure, finding, f"Dots: answers over {words.latency(limit_us)}, {how}, as long as the line they waited; bars below: events long enough to matter. The {len(shown)} runs with most slow answers.")


def _told(row) -> str:
    lines = [f"<b>{words.factor(row.cause)}</b>{': ' + row.word if row.word else ''}", f"{words.count(row.slow_requests)} slow answers, {words.share(row.share)} of all"]
    if row.cause != tail.NO_EVENT:
        lines += [
            f"by chance {words.share(row.chance)}, {words.times(row.lift)} as many; p {row.p_value:.2g}",
            f"{words.count(row.events)} events, the longest {words.latency(row.longest_ms * 1e3)}, felt in {words.share(row.time_share)} of the time",
            f"without any other linked kind near: {words.share(row.share_alone)}",
        ]
    return "<br>".join(lines)
