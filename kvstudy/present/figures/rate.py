"""Latency and achieved rate against offered rate, with the saturation point by the rule of
``analyse.rates``."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse import percentile_grid
from kvstudy.analyse.comparison.words import CANNOT_TELL, MIN_RUNS, TOO_FEW
from kvstudy.analyse.medians import medians
from kvstudy.analyse.rates import saturation_of
from kvstudy.present import series, theme, words
from kvstudy.present.figures.marks import excluded, invalid_legend, marked_runs, run_points
from kvstudy.present.figures.panels import cell, latency_axis, nothing, one_tick, panel_grid, titled

_PLACE = ["panel", "colour", "line"]


def latency_against_rate(
    tables,
    percentile: float = 99.0,
    colour_by: str = "connections",
    panel_by: str | None = None,
    latency_kind: str = "response",
) -> go.Figure:
    """Latency at ``percentile`` against offered rate: a point per run, a line through the medians, dashed at
    saturation.

    ``colour_by``: a column of runs, or series.COLUMN: every line its own colour and name. KvstudyError for
    what is no percentile.
    """
    percentile_grid.check(percentile)
    runs, panel_by = _at_rates(tables, colour_by, panel_by)
    points = tables.percentiles
    points = points[
        (points["latency_kind"] == latency_kind)
        & percentile_grid.at(points["percentile"], percentile)
        & points["latency_us"].notna()
    ]
    rows = runs.merge(points[["run_id", "latency_us"]], on="run_id")
    if runs.empty:
        return _no_rate(tables)
    if rows.empty:
        return nothing(
            f"no run at an offered rate has {words.percentile(percentile)}",
            percentile_grid.why_not(tables.percentiles["percentile"], percentile),
        )
    titles = [
        f"{words.percentile(percentile)} <b>{words.latency(latency)}</b>" for latency in rows["latency_us"]
    ]
    rows = rows.assign(y=rows["latency_us"] / 1e6, hover_title=titles)
    runs = runs[runs["line"].isin(rows["line"])]
    saturation = _saturation(runs)
    figure = _draw(rows, _sure(saturation), colour_by, panel_by)
    panels = [panel for _, panel in rows.groupby("panel")["offered_rate_rps"]]
    for index, offered in enumerate(panels):
        one_tick(figure, offered, **cell(index, len(panels)))
    latency_axis(
        figure, rows["latency_us"], f"{words.percentile(percentile)} {words.kind(latency_kind)} (log)"
    )
    dashed = (
        "; dashed line: saturation point (median achieved under 99 % of offered)"
        if _sure(saturation)["saturation_rps"].notna().any()
        else ""
    )
    drawn = f"{_only_panel(rows, panel_by)}Points: runs; {_line(rows)}{dashed}.{excluded(runs)}"
    return titled(
        figure,
        f"{words.percentile(percentile)} {words.kind(latency_kind)} by offered rate",
        _held(runs, saturation, rows, percentile),
        drawn,
        _of_panels(rows["panel"], runs, saturation, rows, percentile),
    )


def achieved_against_offered(
    tables, colour_by: str = "connections", panel_by: str | None = None
) -> go.Figure:
    """Achieved against offered rate; on the diagonal the service kept up."""
    runs, panel_by = _at_rates(tables, colour_by, panel_by)
    rows = runs[runs["achieved_rate_rps"].notna()]
    if rows.empty:
        return _no_rate(tables)
    rows = rows.assign(
        y=rows["achieved_rate_rps"],
        hover_title=[f"achieved <b>{words.rate(rate)}</b>" for rate in rows["achieved_rate_rps"]],
    )
    # A run that died has no achieved rate to draw, and did not hold the one that it was offered.
    runs = runs[runs["line"].isin(rows["line"])]
    saturation = _saturation(runs)
    figure = _draw(rows, _sure(saturation), colour_by, panel_by)
    top = rows["offered_rate_rps"].max()
    count = rows["panel"].nunique()
    for index in range(count):
        figure.add_trace(
            go.Scatter(
                x=[0, top],
                y=[0, top],
                mode="lines",
                name="achieved = offered",
                legendgroup="diagonal",
                showlegend=index == 0,
                line={"color": theme.AXIS, "dash": "dash", "width": 1},
                hoverinfo="skip",
            ),
            **cell(index, count),
        )
    figure.update_yaxes(title_text="achieved rate, requests/s", rangemode="tozero")
    figure.update_xaxes(rangemode="tozero")
    drawn = (
        f"{_only_panel(rows, panel_by)}Points: runs; {_line(rows)}. A run below the diagonal did not keep "
        f"up.{excluded(runs)}"
    )
    found = _held(runs, saturation)
    return titled(
        figure, "Achieved rate by offered rate", found, drawn, _of_panels(rows["panel"], runs, saturation)
    )


def _no_rate(tables) -> go.Figure:
    why = "A closed loop has none." if len(tables.runs) else "Nothing of this was measured yet."
    return nothing("no run at an offered rate", why)


def _at_rates(tables, colour_by: str, panel_by: str | None) -> tuple[pd.DataFrame, str | None]:
    """Marked runs at a rate with ``line`` (equal for runs that differ in the rate alone), ``colour`` and
    ``panel``; and what the panels are by.

    More lines than there are colours go into panels of workloads.
    """
    runs = marked_runs(tables).query("not closed_loop").reset_index(drop=True)
    line = series.names(runs)
    if colour_by == series.COLUMN and panel_by is None and line.nunique() > len(theme.CATEGORIES):
        panel_by = "workload"
    colour = (
        series.names(runs, said=(panel_by,) if panel_by else ())
        if colour_by == series.COLUMN
        else runs[colour_by]
    )
    return runs.assign(line=line, colour=colour, panel=runs[panel_by] if panel_by else ""), panel_by


def _saturation(runs: pd.DataFrame) -> pd.DataFrame:
    """Of every line, by all runs that the service answers for."""
    return saturation_of(runs, _PLACE)


def _sure(saturation: pd.DataFrame) -> pd.DataFrame:
    """The lines with enough runs at each rate to say which they hold."""
    return saturation[saturation["fewest"] >= MIN_RUNS]


def _draw(rows: pd.DataFrame, saturation: pd.DataFrame, colour_by: str, panel_by: str | None) -> go.Figure:
    palette = series.colours(rows) if colour_by == series.COLUMN else theme.colours(colour_by, rows["colour"])
    panels = sorted(rows["panel"].unique())
    figure = panel_grid(
        [words.value(panel_by or "", panel) for panel in panels], "offered rate, requests/s", ""
    )
    for index, panel in enumerate(panels):
        place = cell(index, len(panels))
        for colour, hue in palette.items():
            mine = rows[(rows["panel"] == panel) & (rows["colour"] == colour)].sort_values("offered_rate_rps")
            _group(figure, mine, words.value(colour_by, colour), hue, index == 0, place)
        met = saturation[(saturation["panel"] == panel) & saturation["saturation_rps"].notna()]
        for point in met.drop_duplicates(["colour", "saturation_rps"]).itertuples():
            figure.add_vline(
                x=point.saturation_rps,
                line={"color": palette[point.colour], "dash": "dash", "width": 1.2},
                **place,
            )
    if not rows["valid"].all():
        invalid_legend(figure, **cell(0, len(panels)))
    return figure


def _group(figure: go.Figure, runs: pd.DataFrame, name: str, hue: str, named: bool, place: dict) -> None:
    xs, ys = [], []
    for _, repeats in runs[runs["valid"]].groupby("line", sort=False):
        middle = medians(repeats, "offered_rate_rps", "y")
        xs += [*middle.index, None]
        ys += [*middle, None]
    figure.add_trace(
        go.Scatter(
            x=xs or [None],
            y=ys or [None],
            mode="lines",
            name=name,
            legendgroup=name,
            showlegend=named,
            line={"color": hue, "width": 2.4},
            hoverinfo="skip",
        ),
        **place,
    )
    run_points(figure, runs, "offered_rate_rps", hue, name, **place)


def _only_panel(rows: pd.DataFrame, panel_by: str | None) -> str:
    """What the heading of a single panel would say, which has none."""
    return (
        f"{words.value(panel_by, rows['panel'].iloc[0])}. "
        if panel_by and rows["panel"].nunique() == 1
        else ""
    )


def _line(rows: pd.DataFrame) -> str:
    """What the line joins, and how many of its points are a single run."""
    repeats = rows[rows["valid"]].groupby(["line", "offered_rate_rps"]).size()
    single = int((repeats == 1).sum())
    return "line: median of valid repeats" + (
        f" ({single} of {len(repeats)} rest{'s' * (single == 1)} on one run)" if single else ""
    )


def _held(
    runs: pd.DataFrame,
    saturation: pd.DataFrame,
    rows: pd.DataFrame | None = None,
    percentile: float | None = None,
) -> str:
    """The finding: the highest rate that was held, by how many lines, what saturates above it, and what the
    latency is there; of lines with fewer than MIN_RUNS runs at a rate no more than that.

    ``rows``: runs with their ``latency_us`` at ``percentile``.
    """
    if saturation.empty:
        return "Whether a rate was held cannot be told: every run failed a check that it needs for that"
    sure = _sure(saturation)
    few = TOO_FEW.replace(" a side", " at a rate")
    if sure.empty:
        return f"{CANNOT_TELL.capitalize()} which rate is held: {few}"
    of = f"{len(saturation) - len(sure)} of {len(saturation)} lines"
    rest = "" if len(sure) == len(saturation) else f"; of {of} the runs cannot tell: {few}"
    return f"{_held_surely(runs[runs['line'].isin(sure['line'])], sure, rows, percentile)}{rest}"


def _of_panels(
    panels: pd.Series,
    runs: pd.DataFrame,
    saturation: pd.DataFrame,
    rows: pd.DataFrame | None = None,
    percentile: float | None = None,
) -> list[str]:
    """The finding of each panel, in the order of ``_draw``; none where there is one alone."""
    names = sorted(panels.unique())
    if len(names) == 1:
        return []
    parts = [
        [None if table is None else table[table["panel"] == name] for table in (runs, saturation, rows)]
        for name in names
    ]
    return [_held(*part, percentile) for part in parts]


def _held_surely(
    runs: pd.DataFrame, saturation: pd.DataFrame, rows: pd.DataFrame | None, percentile: float | None
) -> str:
    best, lost = saturation["highest_held_rps"].max(), saturation["saturation_rps"].dropna()
    if np.isnan(best):
        return "No offered rate was held: every line is past its saturation point at its lowest rate"
    at_best = saturation[saturation["highest_held_rps"] == best]
    latency = (
        ""
        if rows is None
        else _there(rows[rows["line"].isin(at_best["line"]) & (rows["offered_rate_rps"] == best)], percentile)
    )
    if lost.empty:
        pairs = runs[["line", "offered_rate_rps"]]
        every = len(pairs.drop_duplicates()) == len(pairs[runs["is_informative"]].drop_duplicates())
        if runs["offered_rate_rps"].nunique() == 1:
            return (
                f"The only rate offered, {words.rate(best)}, was "
                f"achieved{'' if every else ' wherever a run can judge it'}{latency}"
            )
        return (
            f"Every offered rate{'' if every else ' that a run can judge'} was achieved, up to "
            f"{words.rate(best)}{latency and f', there{latency}'}"
        )
    if len(saturation) == 1:
        return (
            f"{at_best['line'].iloc[0]} held {words.rate(best)}{latency}; {words.rate(lost.min())} "
            "saturates it"
        )
    who = at_best["line"].iloc[0] if len(at_best) == 1 else f"{len(at_best)} of {len(saturation)} lines"
    return (
        f"{who} held {words.rate(best)}{latency}; {len(lost)} of {len(saturation)} met a rate that they "
        f"did not hold, the lowest {words.rate(lost.min())}"
    )


def _there(rows: pd.DataFrame, percentile: float) -> str:
    found = medians(rows[rows["valid"]], "line", "latency_us")
    if found.empty:
        return ""
    if len(found) == 1:
        return f" with {words.percentile(percentile)} {words.latency(found.iloc[0])}"
    between = words.from_to(found.min(), found.max())
    return f" with {words.percentile(percentile)} {between} (medians of {len(found)} lines)"
