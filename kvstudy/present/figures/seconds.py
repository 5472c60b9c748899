"""One run second by second, or finer where it was logged so: where its latency lies, and what the store and
the JVM did at that moment."""

import json
from collections.abc import Iterator

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse import tail
from kvstudy.analyse.by_second import SECOND_S, by_second, step_s
from kvstudy.analyse.medians import median
from kvstudy.errors import KvstudyError
from kvstudy.present import theme, words
from kvstudy.present.figures.marks import marked_runs
from kvstudy.present.figures.panels import latency_axis, nothing, panel_grid, titled
from kvstudy.record import hdr

BUCKETS_PER_DECADE = 12
_SHORTEST_S = 0.004  # an event is drawn at least as long, to be seen


def latency_heat_map(tables, run_id: str | None = None, latency_kind: str = "response") -> go.Figure:
    """Time across, an interval of the run's log each column, drawn from its begin to its end; latency upwards
    (log), shade = share of that interval's requests (log); ``run_id`` None takes the slowest run."""
    intervals, run = _intervals_of(tables, run_id, latency_kind)
    if run is None:
        return _no_histograms(tables, latency_kind)
    trace, edges_us = heat(intervals)
    figure = panel_grid([""], "second of the measured window", "")
    figure.add_trace(trace)
    latency_axis(figure, pd.Series(edges_us), f"{words.kind(latency_kind)} (log)")
    slow, step = intervals.loc[intervals["max_us"].idxmax()], step_s(intervals)
    usual = words.latency(median(intervals["max_us"].dropna()))
    finding = f"The slowest request took {words.latency(slow['max_us'])}, " + (
        f"in second {slow['second']}; the median second has its maximum at {usual}"
        if step == SECOND_S
        else f"in {_place(slow['start_s'], step)}; the median column has its maximum at {usual}"
    )
    return titled(
        figure,
        f"{words.kind(latency_kind).capitalize()}, {_column(step)} by {_column(step)}",
        finding,
        f"{described(run)}. Each column is "
        f"{'one second' if step == SECOND_S else words.latency(step * 1e6)}. "
        f"Darker (on a dark page lighter): more of that {_column(step)}'s requests.",
    )


def heat(intervals: pd.DataFrame) -> tuple[go.Heatmap, np.ndarray]:
    """Latency by interval of one run's log as a trace, and the lower edges of its rows in microseconds."""
    step = step_s(intervals)
    low, high = 1.0, max(10.0, float(intervals["max_us"].max()))
    edges = np.logspace(
        np.log10(low), np.log10(high) + 1 / BUCKETS_PER_DECADE, int(np.log10(high) * BUCKETS_PER_DECADE) + 2
    )
    counts = np.stack([_bucketed(row.histogram, edges) for row in intervals.itertuples()], axis=1)
    shares = counts / np.maximum(counts.sum(axis=0), 1)
    used = np.flatnonzero(counts.sum(axis=1))
    bottom, top = max(0, used.min() - 1), min(len(edges) - 1, used.max() + 2)
    with np.errstate(divide="ignore"):
        depth = np.where(shares > 0, np.log10(shares), np.nan)[bottom:top]
    places = [_place(start_s, step) for start_s in intervals["start_s"]]
    # Where nothing is drawn nothing is told: of short intervals that is most of the page's text.
    hover = [
        [
            f"{place}: {words.counted(counts[b, c], 'request')} ({words.share(shares[b, c])})<br>"
            f"{words.latency(edges[b])} – {words.latency(edges[b + 1])}"
            if counts[b, c]
            else ""
            for c, place in enumerate(places)
        ]
        for b in range(bottom, top)
    ]
    middles = np.sqrt(edges[bottom:top] * edges[bottom + 1 : top + 1]) / 1e6
    trace = go.Heatmap(
        x=intervals["start_s"] + step / 2,
        y=middles,
        z=depth,
        colorscale=theme.heat_scale(),
        zmin=-4,
        zmax=0.25,  # above 100 %: its label would run into the title of the bar
        text=hover,
        hoverongaps=False,
        colorbar={
            "title": {"text": f"share of the<br>{_column(step)}'s requests", "font": {"size": 11}},
            "tickvals": [-4, -3, -2, -1, 0],
            "ticktext": ["≤ 0.01 %", "0.1 %", "1 %", "10 %", "100 %"],
            "thickness": 12,
        },
        hovertemplate="%{text}<extra></extra>",
    )
    return trace, edges[bottom:top]


def time_line(tables, run_id: str | None = None, latency_kind: str = "response") -> go.Figure:
    """p50, p99 and maximum of every second above, the events of store and JVM below, on one clock that zooms
    together. Whole seconds, however short the run's intervals are: in less there are too few answers for a
    p99."""
    intervals, run = _intervals_of(tables, run_id, latency_kind)
    if run is None:
        return _no_histograms(tables, latency_kind)
    seconds = by_second(intervals)
    events = tables.events[(tables.events["run_id"] == run.run_id)].sort_values("start_s")
    events = events[events["start_s"].between(-1, seconds["second"].max() + 1)]
    figure = panel_grid(["", ""], "second of the measured window", "", columns=1, match_y=False)
    for column, name, hue, width in (
        ("max_us", "maximum", theme.RAMP[7], 1.2),
        ("p99_us", "p99", theme.RAMP[4], 1.8),
        ("p50_us", "p50", theme.RAMP[0], 2.4),
    ):
        figure.add_trace(
            go.Scatter(
                x=seconds["second"] + 0.5,
                y=seconds[column] / 1e6,
                mode="lines+markers",
                name=name,
                marker={"size": 4},
                line={"color": hue, "width": width},
                text=[
                    f"second {second}: {name} {words.latency(latency)}"
                    for second, latency in zip(seconds["second"], seconds[column], strict=True)
                ],
                hovertemplate="%{text}<extra></extra>",
            ),
            row=1,
            col=1,
        )
    for bars in event_bars(events):
        figure.add_trace(bars.update(showlegend=False), row=2, col=1)
    figure.update_layout(barmode="overlay", bargap=0.35, meta=None, hovermode="closest")
    latency_axis(
        figure,
        pd.concat([seconds["p50_us"], seconds["max_us"]]),
        f"{words.kind(latency_kind)} (log)",
        row=1,
        col=1,
    )
    figure.update_yaxes(domain=[0.45, 1], row=1, col=1)
    figure.update_yaxes(title_text="", domain=[0, 0.32], row=2, col=1)
    figure.update_xaxes(title_text="", row=1, col=1)
    return titled(
        figure,
        "Latency of every second, and what ran then",
        _coincidence(seconds, events),
        f"{described(run)}. Below: what store and JVM did. Coincidence is no cause: 07-tail tests it.",
    )


def _no_histograms(tables, latency_kind: str) -> go.Figure:
    how = (
        "loadgen writes them, of a run with answers; wrk and wrk2 do not."
        if len(tables.runs)
        else "No run is left to draw."
    )
    return nothing(f"no per-second {latency_kind} histograms", how)


def slowest_run(tables) -> str | None:
    """The run id that ``latency_heat_map`` takes by itself."""
    return getattr(_intervals_of(tables, None, "response")[1], "run_id", None)


def _intervals_of(tables, run_id: str | None, latency_kind: str):
    intervals = tail.logged_intervals(tables, latency_kind)
    runs = marked_runs(tables)
    if run_id is not None and run_id not in runs["run_id"].tolist():
        raise KvstudyError(f"no such run on this page: {run_id}", "its list of runs has them all")
    runs = runs[runs["run_id"].isin(intervals["run_id"])]
    if run_id is not None:
        runs = runs[runs["run_id"] == run_id]
    if runs.empty:
        return intervals, None
    if run_id is None:
        # The slowest run that counts tells most; an invalid one only when there is no other, and one that was
        # not completed only after these.
        pools = (runs[chosen] for chosen in (runs["valid"], runs["outcome"] == "completed"))
        pool = next((pool for pool in pools if len(pool)), runs)
        pooled = intervals[intervals["run_id"].isin(pool["run_id"])]
        slowest = pooled.groupby("run_id")["max_us"].max().idxmax()
        runs = runs[runs["run_id"] == slowest]
    run = next(runs.itertuples())
    return intervals[intervals["run_id"] == run.run_id].sort_values("start_s"), run


def _column(step: float) -> str:
    return "second" if step == SECOND_S else "column"


def _place(start_s: float, step: float) -> str:
    """``second 3``, or of shorter intervals ``3.25 – 3.5 s``."""
    return f"second {start_s:.0f}" if step == SECOND_S else f"{start_s:g} – {start_s + step:g} s"


def _bucketed(encoded: str, edges: np.ndarray) -> np.ndarray:
    histogram = hdr.decode(encoded)
    return np.histogram(np.maximum(histogram.highest_us, 1), bins=edges, weights=histogram.counts)[0]


def described(run) -> str:
    offered = "closed loop" if run.closed_loop else f"{words.rate(run.offered_rate_rps)} offered"
    invalid = "" if run.valid else f" INVALID: {run.failed}."
    asked = (run.workload, run.variant, run.label, words.value("connections", run.connections), offered)
    return f"{', '.join(filter(None, [*asked, run.run_id]))}.{invalid}".rstrip(".")


def event_bars(events: pd.DataFrame) -> Iterator[go.Bar]:
    """A row of bars for each kind of event, from its start on; the shortest are wide enough to be seen."""
    palette = theme.colours("kind", events["kind"]) if len(events) else {}
    for kind, hue in palette.items():
        mine = events[events["kind"] == kind]
        yield go.Bar(
            base=mine["start_s"],
            x=np.maximum(mine["duration_ms"] / 1000, _SHORTEST_S),
            y=[words.factor(kind)] * len(mine),
            orientation="h",
            name=words.factor(kind),
            marker={"color": hue, "line": {"width": 0}},
            text=[_describe_event(event) for event in mine.itertuples()],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        )


def _describe_event(event) -> str:
    more = "".join(f"<br>{key}: {value}" for key, value in json.loads(event.attributes or "{}").items())
    return f"<b>{words.factor(event.kind)}</b> at {event.start_s:.2f} s, {event.duration_ms:.2f} ms{more}"


def _coincidence(seconds: pd.DataFrame, events: pd.DataFrame) -> str:
    slow = seconds.loc[seconds["max_us"].idxmax()]
    start = f"Second {slow['second']} holds the slowest request ({words.latency(slow['max_us'])})"
    within = events[
        (events["start_s"] < slow["second"] + 1)
        & (events["start_s"] + events["duration_ms"] / 1000 >= slow["second"])
    ]
    if within.empty:
        return f"{start}; no recorded event of store or JVM overlaps that second"
    totals = within.groupby("kind")["duration_ms"].sum().sort_values(ascending=False)
    parts = [f"{words.factor(kind)} ({words.latency(ms * 1000)})" for kind, ms in totals.head(3).items()]
    return f"{start}; in it ran {words.several(parts)}"
