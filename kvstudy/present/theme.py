"""One look for every chart: fonts, grid, colours; light, with a dark twin for each colour.

A figure is always drawn with the light colours. ``dark(figure)`` and the exported pages' script replace each
of them by its twin (``TWINS``), so that one figure serves both and no chart is drawn twice.

Colour rules (``colours``): a named value (response, PUT, workers …) and a usual number of connections or
threads (powers of two) have the same colour in every chart of the study; other numbers take theirs from their
rank among the values given, dark to light, so pass all values of an experiment. Grey belongs to invalid runs
alone. Every line colour has a contrast of at least 3 : 1 on its own background, and neighbours differ in
lightness too, because hue alone fails one reader in twelve.
"""

import json
from collections.abc import Iterable

import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio

HEIGHT_PX = 460  # of a chart that says no other
PAPER, TEXT, QUIET_TEXT, GRID, AXIS = "#ffffff", "#1f2329", "#565e6a", "#e1e5ea", "#8b939f"
INVALID, SATURATION, WARNING = "#9ca2ab", "#b3261f", "#8f5b00"
BLUE, VERMILION, GREEN, PURPLE, OCHRE, VIOLET, TEAL, BROWN = (
    "#0072b2",
    "#c9500f",
    "#00805d",
    "#a6478c",
    "#9a6b00",
    "#5b4fa8",
    "#15839a",
    "#7b4a2d",
)
CATEGORIES = (BLUE, VERMILION, GREEN, PURPLE, OCHRE, VIOLET, TEAL, BROWN)

# Dark-to-light order of a ramp that rises in lightness all the way (plasma's path), cut where it would vanish
# on white.
RAMP = ("#16078a", "#4b03a1", "#7d03a8", "#a62098", "#c43e7f", "#d5546e", "#e06461", "#e56b5d")
_RAMP_DARK = ("#a84fd8", "#c05bc4", "#d467ab", "#e57894", "#f28c7c", "#f9a463", "#fcc24f", "#f5e65a")

# Heat maps: from "nothing happened" to "most".
HEAT = ("#f2f5f9", "#c8dbee", "#84b4da", "#3181c1", "#0c4a86", "#06264d")
_HEAT_DARK = ("#1c2129", "#173b58", "#1d6597", "#3f9bd6", "#94ccf2", "#e4f4fe")

TWINS = {
    PAPER: "#15181d",
    TEXT: "#e6e9ee",
    QUIET_TEXT: "#a9b1bd",
    GRID: "#2c323b",
    AXIS: "#7d8693",
    INVALID: "#6a727d",
    SATURATION: "#ff8a80",
    WARNING: "#f0b952",
    BLUE: "#4aa8e0",
    VERMILION: "#f28b50",
    GREEN: "#37c396",
    PURPLE: "#e294ca",
    OCHRE: "#deb035",
    VIOLET: "#a99ef2",
    TEAL: "#5ec9db",
    BROWN: "#c99a78",
} | dict(zip(RAMP + HEAT, _RAMP_DARK + _HEAT_DARK, strict=True))

NAMED = {
    "response": BLUE,
    "service": OCHRE,
    "lateness": PURPLE,
    "PUT": VERMILION,
    "GET": BLUE,
    "DELETE": PURPLE,
    "MIXED": GREEN,
    # Ten workloads and eight colours: only the grid puts two of a colour side by side, put and delete,
    # random_get and missing_get.
    "unique_put": VERMILION,
    "repeated_put": OCHRE,
    "unique_get": BLUE,
    "repeated_get": GREEN,
    "get": TEAL,
    "put": BROWN,
    "mixed": PURPLE,
    "random_get": VIOLET,
    "missing_get": VIOLET,
    "delete": BROWN,
    "selector": BLUE,
    "workers": VERMILION,
    "virtual": GREEN,
    "before": BLUE,
    "after": VERMILION,
    "published": OCHRE,
    "measured": BLUE,
    "loadgen": BLUE,
    "wrk": OCHRE,
    "wrk2": VERMILION,
    "faster": GREEN,
    "slower": VERMILION,
    "cheaper": GREEN,
    "dearer": VERMILION,
    "better": GREEN,
    "worse": VERMILION,
    "the same": BLUE,
    "cannot tell": QUIET_TEXT,
    "gc_pause": VERMILION,
    "safepoint": OCHRE,
    "flush": BLUE,
    "compaction": GREEN,
    "write_stall": PURPLE,
    "wal_sync": TEAL,
    "PASS": GREEN,
    "WARN": WARNING,
    "FAIL": INVALID,
}
_SIZES = dict(
    zip(
        (1, 2, 4, 8, 16, 32, 64, 128),
        (BLUE, GREEN, VERMILION, OCHRE, PURPLE, TEAL, VIOLET, BROWN),
        strict=True,
    )
)

CONFIG = {
    "displaylogo": False,
    "showSendToCloud": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "svg"},
}


def _template() -> go.layout.Template:
    axis = {
        "gridcolor": GRID,
        "linecolor": AXIS,
        "tickcolor": AXIS,
        "zerolinecolor": GRID,
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "automargin": True,
        "title": {"standoff": 8, "font": {"size": 13}},
    }
    return go.layout.Template(
        layout={
            "font": {
                "family": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
                "size": 13,
                "color": TEXT,
            },
            "paper_bgcolor": PAPER,
            "plot_bgcolor": PAPER,
            "colorway": CATEGORIES,
            "title": {
                "x": 0,
                "xref": "container",
                "xanchor": "left",
                "pad": {"l": 12, "t": 16},
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "font": {"size": 16},
                "subtitle": {"font": {"size": 12.5, "color": QUIET_TEXT}},
            },
            "margin": {"l": 64, "r": 20, "t": 84, "b": 56},
            "height": HEIGHT_PX,
            "hovermode": "closest",
            "hoverlabel": {
                "bgcolor": PAPER,
                "bordercolor": AXIS,
                "font": {"color": TEXT, "size": 12},
                "align": "left",
            },
            "legend": {
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "y": -0.16,
                "yanchor": "top",
                "font": {"size": 12},
                "title": {"font": {"size": 12, "color": QUIET_TEXT}},
            },
            "xaxis": axis,
            "yaxis": axis,
            "colorscale": {"sequential": heat_scale()},
            "annotationdefaults": {"font": {"color": TEXT}},
        }
    )


def heat_scale() -> list[list]:
    """Plotly colour scale of a heat map, lowest first."""
    return [[i / (len(HEAT) - 1), colour] for i, colour in enumerate(HEAT)]


def colours(factor: str, values: Iterable) -> dict:
    """``{value: colour}`` for every value of ``factor``, by the rules at the top of this file; order, doubles
    and missing values do not matter."""
    distinct = sorted(
        pd.Series(list(values), dtype=object).dropna().unique(),
        key=lambda value: (isinstance(value, str), value),
    )
    if all(isinstance(value, str) for value in distinct):
        taken = {NAMED[value] for value in distinct if value in NAMED}
        free = [colour for colour in CATEGORIES if colour not in taken] or list(CATEGORIES)
        unnamed = [value for value in distinct if value not in NAMED]
        return {value: NAMED[value] for value in distinct if value in NAMED} | {
            value: free[i % len(free)] for i, value in enumerate(unnamed)
        }
    if factor in ("connections", "threads") and all(value in _SIZES for value in distinct):
        return {value: _SIZES[value] for value in distinct}
    last = max(len(distinct) - 1, 1)
    return {value: _on_ramp(rank / last) for rank, value in enumerate(distinct)}


def _on_ramp(share: float) -> str:
    return RAMP[min(len(RAMP) - 1, max(0, round(share * (len(RAMP) - 1))))]


def dark(figure: go.Figure) -> go.Figure:
    """A copy of ``figure`` with every colour of this theme replaced by its dark twin."""
    text = figure.to_json()
    for light, twin in TWINS.items():
        text = text.replace(
            f'"{light}"', f'"{twin}\u200b"'
        )  # the mark keeps a twin from being replaced again
    return go.Figure(json.loads(text.replace("\u200b", "").replace("\\u200b", "")))


def use(mode: str = "light") -> None:
    """Makes the theme the default of every figure drawn from now on; ``mode`` light or dark (for a dark
    JupyterLab)."""
    if mode not in ("light", "dark"):
        raise ValueError(f"no such theme: mode={mode}; light or dark")
    pio.templates["kvstudy"] = _template()
    if mode == "dark":
        themed = go.Figure(layout={"template": pio.templates["kvstudy"]})
        pio.templates["kvstudy"] = dark(themed).layout.template
    pio.templates.default = "kvstudy"
    for name in ("plotly_mimetype", "jupyterlab", "vscode", "notebook"):
        pio.renderers[name].config = CONFIG


use()
