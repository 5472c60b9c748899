"""Percentile spectra: latency by percentile, the axis stretched towards 100 % as HdrHistogram draws it (x = 1 / (1 − p))."""

from itertools import pairwise

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse.configuration import alike
from kvstudy.present import theme, words
from kvstudy.present.figures.marks import excluded, invalid_legend, marked_runs
from kvstudy.present.figures.panels import cell, latency_axis, nothing, panel_grid, percentile_axis, shortened, titled

ENOUGH_SAMPLES = 100
_OF_RUN = ("run_id", "valid", "hover", "what", "configuration", "alike", "workload", "connections", "offered_rate_rps")


def percentile_spectrum(
    tables, colour_by: str = "offered_rate_rps", panel_by: str | None = None, latency_kind: str = "response"
) -> go.Figure:
    """One line per repeat and one median line per value of ``colour_by`` (a column of runs), one panel per value of ``panel_by``."""
    rows = _rows(tables, [latency_kind], colour_by, panel_by)
    if rows.empty:
        return nothing(f"no {latency_kind} percentiles", "Measure runs with notebooks/02-sweep.ipynb.")
    figure, medians = _draw(rows, colour_by, panel_by)
    finding = _rise(medians, colour_by, panel_by, latency_kind)
    drawn = (
        f"{words.kind(latency_kind).capitalize()} by percentile, coloured by {words.factor(colour_by)}. Thin: each run; strong: median of valid"
        f" repeats; open circle: under {ENOUGH_SAMPLES} samples beyond.{excluded(_runs_of(rows))}"
    )
    return titled(figure, finding, drawn)


def response_against_service(tables, panel_by: str | None = "offered_rate_rps") -> go.Figure:
    """Response time (from the intended start) against service time (from the send) of the same runs: the gap is waiting."""
    rows = _rows(tables, ["response", "service"], "latency_kind", panel_by)
    if rows["latency_kind"].nunique() < 2:
        return nothing("no run has both response and service time", "Closed-loop runs of wrk have service time only.")
    figure, medians = _draw(rows, "latency_kind", panel_by)
    gaps = medians.pivot_table(index=["panel", "configuration", "percentile"], columns="colour", values="latency_us").dropna().reset_index()
    gaps = gaps[np.isclose(gaps["percentile"], 99)]
    if gaps.empty:
        finding = "Too few samples for p99: response and service time cannot be compared there"
    else:
        widest = gaps.loc[(gaps["response"] / gaps["service"]).idxmax()]
        at = "" if panel_by is None else f", {words.value(panel_by, widest['panel'])}"
        ratio = widest["response"] / widest["service"]
        finding = (
            f"Waiting hides in service time: p99 is {words.latency(widest['service'])} from the send but "
            f"{words.latency(widest['response'])} from the intended start{at}"
            if ratio >= 1.1
            else f"Response and service time differ by at most {words.share(ratio - 1)} at p99: hardly a request waits to be sent"
        )
    drawn = f"Median of valid repeats strong, each run thin. The gap is the wait before the send.{excluded(_runs_of(rows))}"
    return titled(figure, finding, drawn)


def _rows(tables, kinds: list[str], colour_by: str, panel_by: str | None) -> pd.DataFrame:
    """A row per run, kind and percentile, in that order, with _OF_RUN, the two factors, and ``alike``: equal for runs that differ in the colour alone."""
    points = tables.percentiles
    points = points[points["latency_kind"].isin(kinds) & (points["percentile"] < 100) & points["latency_us"].notna()]
    runs = marked_runs(tables)
    runs["alike"] = alike(runs, colour_by)
    # Worked out once a run, and only what is drawn goes into the many rows; taking Arrow strings apart there costs more than drawing.
    runs = runs[[*dict.fromkeys([*_OF_RUN, *({colour_by, panel_by} & set(runs.columns))])]]
    runs = runs.astype(dict.fromkeys(runs.select_dtypes("string").columns, object))
    return points.astype({"run_id": object, "latency_kind": object}).merge(runs, on="run_id").sort_values(["run_id", "latency_kind", "percentile"])


def _runs_of(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop_duplicates("run_id")


def _draw(rows: pd.DataFrame, colour_by: str, panel_by: str | None) -> tuple[go.Figure, pd.DataFrame]:
    """The figure and its medians: columns panel, colour, percentile, latency_us."""
    # A closed loop has no offered rate: it stands behind the highest one.
    factors = rows[[name for name in {colour_by, panel_by} if name]]
    factors = factors.fillna({name: np.inf for name in factors.select_dtypes("float")})
    rows = rows.assign(panel=factors[panel_by] if panel_by else "", colour=factors[colour_by], x=100 / (100 - rows["percentile"]))
    palette = theme.colours(colour_by, rows["colour"])
    panels = sorted(rows["panel"].unique())
    figure = panel_grid([words.value(panel_by or "", panel) for panel in panels], "percentile", "latency")
    valid = rows[rows["valid"]]
    medians = valid.groupby(["panel", "colour", "configuration", "percentile"], as_index=False).agg(
        latency_us=("latency_us", "median"), x=("x", "first"), repeats=("run_id", "nunique"), what=("what", "first"), alike=("alike", "first"), workload=("workload", "first"), connections=("connections", "first"), offered_rate_rps=("offered_rate_rps", "first")
    )
    for index, panel in enumerate(panels):
        place = cell(index, len(panels))
        for colour in sorted(palette):
            mine = rows[(rows["panel"] == panel) & (rows["colour"] == colour)]
            _repeats(figure, mine[mine["valid"]], palette[colour], str(colour), place)
            _repeats(figure, mine[~mine["valid"]], theme.INVALID, "invalid", place, dash="dot")
        for colour in sorted(palette):
            line = medians[(medians["panel"] == panel) & (medians["colour"] == colour)]
            _median_lines(figure, line, words.value(colour_by, colour), palette[colour], str(colour), index == 0, place)
    if not rows["valid"].all():
        invalid_legend(figure, **cell(0, len(panels)))
    percentile_axis(figure, rows["percentile"].max())
    latency_axis(figure, rows["latency_us"], "latency (log)")
    return figure, medians


def _median_lines(figure: go.Figure, medians: pd.DataFrame, name: str, colour: str, group: str, named: bool, place: dict) -> None:
    """One line per configuration: runs that differ in more than the colour says are no repeats and share no median."""
    xs, ys, texts, gap = [], [], [], np.full(1, np.nan, dtype=np.float32)
    for _, line in medians.groupby("configuration", sort=False):
        what = line["what"].iloc[0]
        xs += [shortened(line["x"]), gap]
        ys += [shortened(line["latency_us"] / 1e6), gap]
        points = zip(line["percentile"].tolist(), line["latency_us"].tolist(), line["repeats"].tolist(), strict=True)
        texts += [f"{words.percentile(percentile)}: {words.latency(latency_us)}<br>{what}, median of {repeats}" for percentile, latency_us, repeats in points] + [""]
    figure.add_trace(
        go.Scatter(
            x=np.concatenate(xs or [gap]), y=np.concatenate(ys or [gap]), mode="lines", name=name, legendgroup=group, showlegend=named, text=texts,
            line={"color": colour, "width": 2.6, "dash": "dash" if group == "service" else "solid"},
            hovertemplate=f"<b>{name}</b> %{{text}}<extra></extra>",
        ),
        **place,
    )  # fmt: skip


def _repeats(figure: go.Figure, rows: pd.DataFrame, colour: str, group: str, place: dict, dash: str = "solid") -> None:
    """A thin line per run. What the run was stands once in its hover template: in every point it made pages of megabytes.

    ``rows``: ordered by run and kind; they are cut into lines as arrays, since a frame per line takes most of the time of a large chart.
    """
    if rows.empty:
        return
    kinds, hovers = rows["latency_kind"].tolist(), rows["hover"].tolist()
    lines = rows["run_id"].tolist()
    starts = [0, *(i for i in range(1, len(rows)) if (lines[i], kinds[i]) != (lines[i - 1], kinds[i - 1])), len(rows)]
    x, y = shortened(rows["x"]), shortened(rows["latency_us"] / 1e6)
    sizes = np.where(rows["samples_beyond"] < ENOUGH_SAMPLES, 5, 0).astype(np.int8)
    told = zip(rows["percentile"].tolist(), kinds, rows["latency_us"].tolist(), rows["samples_beyond"].tolist(), strict=True)
    texts = np.array([f"{words.percentile(percentile)} {kind}: {words.latency(latency_us)}, {words.count(beyond)} beyond" for percentile, kind, latency_us, beyond in told], dtype=object)
    traces = []
    for begin, end in pairwise(starts):
        traces.append(go.Scatter(
            x=x[begin:end], y=y[begin:end], mode="lines+markers", opacity=0.55,
            line={"color": colour, "width": 0.9, "dash": dash}, legendgroup=group, showlegend=False,
            marker={"symbol": "circle-open", "size": sizes[begin:end], "color": colour},
            text=texts[begin:end], hovertemplate=f"<b>%{{text}}</b><br>{hovers[begin]}<extra></extra>",
        ))  # fmt: skip
    figure.add_traces(traces, rows=[place["row"]] * len(traces), cols=[place["col"]] * len(traces))


def _rise(medians: pd.DataFrame, colour_by: str, panel_by: str | None, kind: str) -> str:
    """The finding: how the highest percentile that every line has moves from the first to the last value of ``colour_by``."""
    if medians.empty:
        return "No valid run: nothing can be claimed from these lines"
    shared = medians.groupby("percentile")["colour"].nunique()
    shared = shared[shared == medians["colour"].nunique()].index
    target = 99.0 if np.isclose(shared, 99).any() else float(max(shared, default=50))
    at = medians[np.isclose(medians["percentile"], target)].sort_values("colour")
    # Among the sets of lines that differ in the colour alone: one with all colours it can have, and of these the steepest.
    sets = at.groupby(["panel", "alike"])["latency_us"].agg(lines="size", rise=lambda column: column.max() / column.min())
    panel, same = sets[sets["lines"] == sets["lines"].max()]["rise"].idxmax()
    lines = at[(at["panel"] == panel) & (at["alike"] == same)]
    where = "" if panel_by is None else f"{words.value(panel_by, panel)}: "
    first, last = lines.iloc[0], lines.iloc[-1]
    name = f"{words.percentile(target)} {words.kind(kind)}"
    if len(lines) == 1:
        return f"{where}{_else(lines, colour_by, panel_by)}{name} is {words.latency(first['latency_us'])} at {words.value(colour_by, first['colour'])}"
    if isinstance(first["colour"], str):
        first, last = lines.loc[lines["latency_us"].idxmin()], lines.loc[lines["latency_us"].idxmax()]
    verb = "rises" if last["latency_us"] >= first["latency_us"] else "falls"
    return (
        f"{where}{_else(lines, colour_by, panel_by)}{name} {verb} from {words.latency(first['latency_us'])} ({words.value(colour_by, first['colour'])}) to "
        f"{words.latency(last['latency_us'])} ({words.value(colour_by, last['colour'])})"
    )


def _else(lines: pd.DataFrame, colour_by: str, panel_by: str | None) -> str:
    """What neither colour nor panel says of these lines: "at 8 000 r/s, " """
    told = [words.value(factor, lines[factor].iloc[0]) for factor in ("workload", "connections", "offered_rate_rps") if factor not in (colour_by, panel_by)]
    return f"{', '.join(told)}: " if told else ""
