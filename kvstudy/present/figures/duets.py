"""A duet drawn: the ratio of each measure with its interval, and every slice pair as a point, launches told
apart."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse.comparison import launches
from kvstudy.analyse.comparison.looks import FIRST_LOOK
from kvstudy.analyse.comparison.stopping import MeasureResult
from kvstudy.analyse.comparison.words import CANNOT_TELL, WORDS
from kvstudy.analyse.duets import Duet
from kvstudy.analyse.medians import median
from kvstudy.present import duets, theme, words
from kvstudy.present.duets import Shown
from kvstudy.present.figures.panels import (
    cell,
    log_ratios,
    nothing,
    panel_grid,
    ratio_axis,
    shortened,
    titled,
)

ROW_PX = 30
PANELS_MAX = 4
_COLUMNS = {
    launches.P50: "p50_ns",
    launches.P90: "p90_ns",
    launches.P99_SLICE: "p99_ns",
    launches.MEAN: "mean_ns",
    launches.RATE: "rate_rps",
}
_INTERVAL = "with an interval that allows for looking after each (95 %)."
_ERRORS = (
    "The primary measure, named beforehand, may be wrong in one duet of twenty, all others together in "
    "another (Holm)."
)
_SHOWN_FROM, _SHOWN_TO = 0.5, 2.0  # of a round's ratio; what lies beyond stands at the edge, as a triangle


def ratios(shown: Shown | None) -> go.Figure:
    """A row per measure, the primary on top; colour and shape say the word; pale: what this duet could not
    have found."""
    if shown is None or not any(one.launches >= FIRST_LOOK for one in shown.duet.results):
        return nothing(
            "no duet has launches enough",
            f"{FIRST_LOOK} launches are the fewest: {_command(shown)}",
        )
    duet, rows = shown.duet, _rows(shown.duet)
    figure = go.Figure()
    names = _draw(figure, duet, rows)
    margin = 1 + rows[0].same_within
    figure.add_vrect(
        x0=1 / margin, x1=margin, fillcolor=theme.GRID, opacity=0.45, line_width=0, layer="below"
    )
    figure.add_vline(x=1, line={"color": theme.AXIS, "width": 1.2, "dash": "dash"})
    ratio_axis(
        figure, min(one.low for one in rows), max(one.high for one in rows), f"{duet.b}<br>/ {duet.a} (log)"
    )
    figure.update_yaxes(categoryorder="array", categoryarray=names, title_text="")
    figure.update_layout(height=190 + ROW_PX * len(names), legend_y=-70 / (ROW_PX * len(names) + 40))
    most = max(one.launches for one in rows)
    drawn = (
        f"Ratio over {most} launches {_INTERVAL} Grey band: within {100 * rows[0].same_within:g} %. {_ERRORS}"
    )
    return titled(figure, "Each measure: one side over the other", duets.sentence(duet), drawn)


def _command(shown: Shown | None) -> str:
    """That measures what is missing: the same experiment, or one that everybody has."""
    return f"kvstudy compare experiments/{shown.duet.experiment if shown else 'handler'}.yaml"


def every(shown: Shown | None) -> go.Figure:
    """``ratios`` of every duet, a panel each, which a page shows one at a time: that of ``shown`` first."""
    known = [one for one in duets.all_of(shown) if _rows(one)]
    if len(known) < 2:
        return ratios(Shown(known[0], ()) if known else shown)
    headings = [f"{one.experiment}: {one.b} beside {one.a}" for one in known]
    own = {one.is_own for one in known}
    ends = [
        [duets.source(one)] * (len(own) > 1) + [one.comparison[:12]] * (headings.count(heading) > 1)
        for heading, one in zip(headings, known, strict=True)
    ]
    headings = [
        f"{heading} ({' '.join(end)})" if end else heading
        for heading, end in zip(headings, ends, strict=True)
    ]
    row_px = ROW_PX * max(len(_rows(one)) for one in known) + 90
    # One below the other: the names of the rows are too long to stand between two.
    figure = panel_grid(
        headings, "the one / what it stands beside (log)", "", columns=1, match_y=False, row_px=row_px
    )
    figure.update_xaxes(matches=None)
    told = set()
    for index, duet in enumerate(known):
        place, rows = cell(index, len(known), columns=1), _rows(duet)
        names = _draw(figure, duet, rows, told, **place)
        figure.add_vline(x=1, line={"color": theme.AXIS, "width": 1.2, "dash": "dash"}, **place)
        figure.update_yaxes(categoryorder="array", categoryarray=names, **place)
        figure.update_xaxes(
            **log_ratios(min(one.low for one in rows), max(one.high for one in rows)), **place
        )
    drawn = f"Ratio of each measure, one side over the other, over launches {_INTERVAL} {_ERRORS}"
    found = [duets.sentence(one) for one in known]
    titled(figure, "Every duet, measure by measure", f"{words.counted(len(known), 'duet')}", drawn, found)
    return figure


def _rows(duet: Duet) -> list[MeasureResult]:
    """What has launches enough to be drawn, the primary measure last."""
    return [one for one in duet.results if one.launches >= FIRST_LOOK][::-1]


def _draw(
    figure: go.Figure, duet: Duet, rows: list[MeasureResult], told: set[str] | None = None, **cell_of: int
) -> list[str]:
    """A row per measure, a trace per word; the names of the rows. ``told``: words that the legend has
    already."""
    names = [
        f"{'<b>' if one.primary else ''}{duets.place(one)}{'</b>' if one.primary else ''}" for one in rows
    ]
    told = set() if told is None else told
    for said in [said for said in WORDS if any(one.word == said for one in rows)]:
        mine = [(one, name) for one, name in zip(rows, names, strict=True) if one.word == said]
        figure.add_trace(
            go.Scatter(
                x=[one.ratio for one, _ in mine],
                y=[name for _, name in mine],
                mode="markers",
                name=said,
                legendgroup=said,
                showlegend=said not in told,
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": [one.high - one.ratio for one, _ in mine],
                    "arrayminus": [one.ratio - one.low for one, _ in mine],
                    "thickness": 1.8,
                    "width": 5,
                },
                marker={"color": theme.NAMED[said], "size": 11, "symbol": [_symbol(one) for one, _ in mine]},
                text=[
                    f"<b>{duets.word(one)}</b>: {duets.ratio(one)}<br>{duet.a} "
                    f"{duets.value(one.a, one.measure)}, {duet.b} {duets.value(one.b, one.measure)}<br>"
                    f"{one.launches} launches{'' if one.decided else '; ' + duets.doubt(one)}"
                    for one, _ in mine
                ],
                hovertemplate="%{text}<extra></extra>",
            ),
            **cell_of,
        )
        told.add(said)
    return names


def rounds(shown: Shown | None) -> go.Figure:
    """Every slice pair a point at its launch, a panel per measure; the launch's median a line, rounds that do
    not count grey crosses."""
    panels = (
        [] if shown is None else [one for one in shown.duet.results if one.measure in _COLUMNS][:PANELS_MAX]
    )
    if not panels:
        return nothing("no duet has slice pairs to draw", _command(shown))
    duet, tables = shown.duet, shown.duet.tables
    order = duet.counted_runs
    number = {run_id: place for place, run_id in enumerate(order, start=1)}
    figure = panel_grid(
        [duets.place(one) for one in panels], "launch", f"{duet.b} / {duet.a} (log)", match_y=False
    )
    counted = 0
    for index, one in enumerate(panels):
        found = _of_rounds(tables.slices[tables.slices["run_id"].isin(order)], one, number)
        medians = tables.ratios[
            (tables.ratios["workload"] == one.workload)
            & (tables.ratios["loop"] == one.loop)
            & (tables.ratios["measure"] == one.measure)
            & tables.ratios["run_id"].isin(order)
        ]
        if index == 0:
            counted = int(found["counts"].sum())
        place = cell(index, len(panels))
        ticks = _ticks(found["ratio"].clip(_SHOWN_FROM, _SHOWN_TO))
        figure.update_yaxes(type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks], **place)
        figure.add_hline(y=1, line={"color": theme.AXIS, "width": 1, "dash": "dash"}, **place)
        for counts, name, colour in (
            (True, "slice pair", theme.BLUE),
            (False, "does not count", theme.INVALID),
        ):
            mine = found[found["counts"] == counts]
            figure.add_trace(
                go.Scatter(
                    x=shortened(mine["at"]),
                    y=shortened(mine["ratio"].clip(_SHOWN_FROM, _SHOWN_TO)),
                    mode="markers",
                    name=name,
                    legendgroup=name,
                    showlegend=index == 0,
                    marker={
                        "color": colour,
                        "size": 5,
                        "opacity": 0.65,
                        "symbol": np.where(
                            mine["ratio"] > _SHOWN_TO,
                            "triangle-up",
                            np.where(
                                mine["ratio"] < _SHOWN_FROM,
                                "triangle-down",
                                "circle" if counts else "x-thin-open",
                            ),
                        ),
                    },
                    text=[
                        (
                            f"launch {row.launch}, round {row.round}: "
                            f"{words.times(row.ratio)}{'' if row.counts else ', ' + row.left_out}"
                        )
                        for row in mine.itertuples()
                    ],
                    hovertemplate="%{text}<extra></extra>",
                ),
                **place,
            )
        figure.add_trace(
            go.Scatter(
                x=medians["run_id"].map(number),
                y=np.exp(medians["log_ratio"]),
                mode="markers",
                name="launch",
                legendgroup="launch",
                showlegend=index == 0,
                marker={"color": theme.VERMILION, "size": 22, "symbol": "line-ew-open", "line": {"width": 3}},
                text=[
                    (
                        f"launch {number[row.run_id]}: {words.times(float(np.exp(row.log_ratio)))} of "
                        f"{row.rounds} rounds<br>{row.run_id}"  # so the page leads to its folder
                    )
                    for row in medians.itertuples()
                ],
                hovertemplate="%{text}<extra></extra>",
            ),
            **place,
        )
    figure.update_xaxes(dtick=max(1, len(order) // 10))
    spread = [one.noise for one in panels if not np.isnan(one.noise)]
    finding = (
        f"Launches differ by {words.share(median(spread))} of the ratio"
        if spread
        else f"{words.counted(len(order), 'launch')}"
    )
    drawn = (
        f"{words.counted(counted, 'slice pair')} that count of {words.counted(len(order), 'launch')} "
        "(first panel), each pair two slices side by side in time. The unit is the launch: its line "
        "is the median of its pairs. "
        "Pairs beyond the axis stand at its edge as triangles. Grey: first rounds, and rounds in which "
        "a side was busy in the other's turn, or the machine was disturbed."
    )
    return titled(figure, "Every pair of slices, launch by launch", finding, drawn)


def _ticks(ratios: pd.Series) -> list[float]:
    """Nearer together where all rounds are near 1."""
    reach = max(ratios.max(), 1 / ratios.min()) if len(ratios) else 2.0
    if reach < 1.12:
        return [0.9, 0.92, 0.94, 0.96, 0.98, 1, 1.02, 1.04, 1.06, 1.08, 1.1]
    if reach < 1.35:
        return [0.75, 0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3]
    return [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6, 2]


def _of_rounds(slices: pd.DataFrame, one, number: dict[str, int]) -> pd.DataFrame:
    """One row per round of every launch: ratio, whether it counts, and where it is drawn."""
    mine = slices[(slices["workload"] == one.workload) & (slices["loop"] == one.loop)]
    wide = mine.pivot_table(
        index=["run_id", "round", "left_out"], columns="side", values=_COLUMNS[one.measure], aggfunc="first"
    )
    if not {"a", "b"} <= set(wide.columns):
        return pd.DataFrame(
            {"launch": [], "round": [], "left_out": [], "ratio": [], "counts": [], "at": []}
        ).astype({"counts": bool})
    found = (wide["b"] / wide["a"]).rename("ratio").reset_index().dropna(subset=["ratio"])
    found = found.assign(launch=found["run_id"].map(number), counts=found["left_out"] == "")
    return found.assign(at=found["launch"] + 0.7 * (found["round"] / (found["round"].max() + 1) - 0.5))


def _symbol(one) -> str:
    return (
        "circle"
        if one.word == CANNOT_TELL
        else "diamond"
        if one.word == "the same"
        else "triangle-left"
        if one.ratio < 1
        else "triangle-right"
    )
