"""A grid of panels with the same axes, the finding as title, and what a page needs to lay the panels out
anew.

``layout.meta`` of every figure of the study:
    title     at most TITLE_WORDS words; pages set it and the next two as HTML text, which wraps on a
              telephone
    finding   what the chart shows, a sentence with its numbers
    drawn     one line: what is drawn and how to read it
    panels    [[x axis, y axis, index of the panel's heading among the annotations], …] or absent; a narrow
              page stacks them
    opens     index of the panel that a page shows first, of those it lets a reader choose from; or absent: 0
    leads     true of the chart that the answer of its page rests on, where that depends on what was measured
"""

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

PANEL_HEIGHT_PX = 330
TITLE_WORDS = 12
NO_ROWS = "Nothing to draw: these runs have no such rows."
_FRAME_PX = 150  # title above, legend below
_LEGEND_LETTERS = 90  # of a line that no legend cuts
_ROWS_NAMED_ONCE = 3  # of so many rows of panels only the lowest names its x axis


def panel_grid(
    headings: list[str],
    x_title: str,
    y_title: str,
    columns: int = 2,
    match_y: bool = True,
    row_px: int = PANEL_HEIGHT_PX,
) -> go.Figure:
    """An empty figure of ``len(headings)`` panels, at most ``columns`` abreast, each row ``row_px`` high; one
    heading makes one panel without heading."""
    count = len(headings)
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=headings if count > 1 else None,
        horizontal_spacing=0.09 if columns < 3 else 0.05,
        vertical_spacing=min(0.25, (100 if rows < _ROWS_NAMED_ONCE else 70) / (row_px * rows))
        if rows > 1
        else 0,
    )
    figure.update_xaxes(title_text=x_title)
    figure.update_yaxes(title_text=y_title)
    if count > 1:
        figure.update_xaxes(matches="x")
        if match_y:
            figure.update_yaxes(matches="y")
        for heading in figure.layout.annotations:
            heading.font = {"size": 13}
    # A grid with a panel to spare keeps its place empty.
    for spare in range(count, rows * columns):
        figure.update_xaxes(visible=False, row=spare // columns + 1, col=spare % columns + 1)
        figure.update_yaxes(visible=False, row=spare // columns + 1, col=spare % columns + 1)
    figure.update_layout(height=rows * row_px + _FRAME_PX)
    if count > 1:
        # The legend keeps its distance in pixels however many rows there are.
        figure.update_layout(legend_y=-75 / (rows * row_px))
        figure.layout.meta = {"panels": [[_axis("xaxis", i), _axis("yaxis", i), i] for i in range(count)]}
    return figure


def cell(index: int, count: int, columns: int = 2) -> dict:
    """``row`` and ``col`` of panel ``index`` (from 0), for ``add_trace``."""
    columns = min(columns, count)
    return {"row": index // columns + 1, "col": index % columns + 1}


def opened(figure: go.Figure, *wanted: str) -> go.Figure:
    """``figure``, of whose panels a page shows first the one with most of ``wanted`` in its heading:
    ``opened(figure, "unique_put", "4 connections")``."""
    meta = figure.layout.meta or {}
    headings = [
        set(figure.layout.annotations[heading].text.split(", ")) for *_, heading in meta.get("panels", [])
    ]
    if headings:
        shared = [len(heading & set(wanted)) for heading in headings]
        figure.layout.meta = meta | {"opens": shared.index(max(shared))}
    return figure


def one_tick(figure: go.Figure, along: pd.Series, **place) -> None:
    """The x axis of values that are all one has a tick there alone: without length it would count in halves
    of a request."""
    if along.nunique() == 1:
        figure.update_xaxes(tickvals=along.unique(), **place)


def latency_axis(figure: go.Figure, values_us: pd.Series, title: str, **place) -> None:
    """Log y axis for latencies drawn in seconds, with ticks in the units that people say: 200 µs, 5 ms, 1
    s."""
    known = values_us[values_us > 0]
    decades = np.log10(known.max() / known.min()) if len(known) else 0
    steps = (
        (1,)
        if decades > 4
        else (1, 3)
        if decades > 2.5
        else (1, 2, 5)
        if decades > 0.8
        else (1, 1.5, 2, 3, 4, 5, 6, 8)
    )
    ticks_us = [step * 10.0**power for power in range(9) for step in steps]
    figure.update_yaxes(
        type="log",
        tickvals=[tick / 1e6 for tick in ticks_us],
        ticktext=[_tick(tick) for tick in ticks_us],
        title_text=title,
        **place,
    )


def percentile_axis(figure: go.Figure, highest: float) -> None:
    """Log x axis of 1 / (1 − p), as HdrHistogram stretches it, with ticks up to the percentile ``highest``; x
    is drawn as 100 / (100 − p)."""
    ticks = [tick for tick in (50, 90, 99, 99.9, 99.99, 99.999, 99.9999) if tick <= highest] or [0]
    # Half a figure wide, five labels and no more stand beside each other.
    ticks = (
        ticks if len(ticks) <= 5 or "panels" not in (figure.layout.meta or {}) else [ticks[0], *ticks[2::2]]
    )
    values, texts = [100 / (100 - tick) for tick in ticks], [f"{tick:g} %" for tick in ticks]
    figure.update_xaxes(
        type="log",
        tickvals=values,
        ticktext=texts,
        tickangle=0,
        title_text="percentile, stretched as 1 / (1 − p)",
    )


def ratio_axis(figure: go.Figure, lowest: float, highest: float, title: str) -> None:
    """Log x axis for ratios around 1, with the ticks of ``log_ratios``."""
    figure.update_xaxes(**log_ratios(lowest, highest), title_text=title)


def log_ratios(lowest: float, highest: float) -> dict:
    """A log axis for ratios around 1, with as many ticks as the span from ``lowest`` to ``highest`` leaves
    room for."""
    lowest, highest = min(lowest, 1.0), max(highest, 1.0)
    span = highest / lowest
    if span > 100:
        ticks = [10.0**power for power in range(-6, 7)]
    elif span > 8:
        ticks = [step * 10.0**power for power in range(-3, 4) for step in (1, 2, 5)]
    elif span > 2.5:
        ticks = [0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7]
    elif span > 1.4:
        ticks = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6, 1.8, 2, 2.2]
    else:
        ticks = [0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4]
    texts = [f"{tick:g} ×" for tick in ticks]
    return {"type": "log", "tickvals": ticks, "ticktext": texts, "tickangle": 0}


def shortened(values: pd.Series) -> np.ndarray:
    """Single precision, more than a screen shows, which plotly writes as bytes: a page holds tens of
    thousands of numbers."""
    return values.to_numpy(dtype=np.float32)


def _tick(latency_us: float) -> str:
    scale, unit = next(pair for pair in ((1e6, "s"), (1e3, "ms"), (1, "µs")) if latency_us >= pair[0])
    return f"{latency_us / scale:g} {unit}"


def titled(
    figure: go.Figure, title: str, finding: str, drawn: str = "", of_panels: Sequence[str] = ()
) -> go.Figure:
    """``figure`` with a title, and below it the finding and ``drawn``. The title has no numbers: they are on
    the marks, in hover and in tables. ``of_panels``: what is found in each panel, for a page that shows one
    of them."""
    assert _is_short(title), f"title of over {TITLE_WORDS} words: {title}"
    _named_once(figure)
    for trace in figure.data:
        if len(trace.name or "") > _LEGEND_LETTERS:
            trace.name = "<br>".join(textwrap.wrap(trace.name, _LEGEND_LETTERS, break_on_hyphens=False))
    lines = textwrap.wrap(title, 96)
    below = textwrap.wrap(finding if finding != title else "", 130) + textwrap.wrap(drawn, 130)
    figure.update_layout(
        title={"text": "<br>".join(lines), "subtitle": {"text": "<br>".join(below)}},
        margin_t=52 + 21 * len(lines) + 17 * len(below) + (16 if figure.layout.annotations else 0),
    )
    told = {"title": title, "finding": finding, "drawn": drawn}
    figure.layout.meta = (
        (figure.layout.meta or {}) | told | ({"findings": list(of_panels)} if of_panels else {})
    )
    return figure


def _named_once(figure: go.Figure) -> None:
    """Panels that share a y axis need its title in the first column alone; beside a second column it lies
    over the first. Of many rows that share an x axis the lowest has its title."""
    panels = (figure.layout.meta or {}).get("panels", [])
    for xaxis, yaxis, _ in panels:
        if figure.layout[xaxis].domain[0] > 0.1 and figure.layout[yaxis].matches:
            figure.layout[yaxis].title.text = ""
    if len({figure.layout[yaxis].domain[0] for _, yaxis, _ in panels}) < _ROWS_NAMED_ONCE:
        return
    columns = [figure.layout[xaxis].domain[0] for xaxis, _, _ in panels]
    for index, (xaxis, _, _) in enumerate(panels):
        if columns[index] in columns[index + 1 :]:
            figure.layout[xaxis].title.text = ""


def nothing(what: str, how: str = "") -> go.Figure:
    """An empty chart that says what is missing and, in ``how``, what would bring it. ``what`` may name what a
    reader has chosen, and then be longer than a title."""
    figure = go.Figure(layout={"xaxis": {"visible": False}, "yaxis": {"visible": False}, "height": 200})
    figure.add_annotation(text=f"{what}<br>{how}", x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)
    finding = f"Nothing to draw: {what}"
    return titled(figure, finding if _is_short(finding) else "Nothing to draw", finding, how)


def has_points(figure: dict) -> bool:
    """Whether a stored figure draws anything: plotly express makes a trace of a frame without rows, too."""
    along = [[trace[name] for name in ("x", "y", "z") if name in trace] for trace in figure.get("data", [])]
    return any(not arrays or any(map(_is_filled, arrays)) for arrays in along)


def _is_filled(array: object) -> bool:
    """Numbers that plotly packed are base64."""
    return bool(array.get("bdata") if isinstance(array, dict) else len(array))


def _is_short(title: str) -> bool:
    return len(title.split()) <= TITLE_WORDS


def _axis(name: str, index: int) -> str:
    return name if index == 0 else f"{name}{index + 1}"
