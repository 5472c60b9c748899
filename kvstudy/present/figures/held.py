"""How often is a rate held? The share of trials that a fresh service holds, by rate, as a search's own
posterior has it."""

import numpy as np
import plotly.graph_objects as go

from kvstudy.analyse import rates
from kvstudy.analyse.tables import Tables
from kvstudy.present import capacity, theme, words
from kvstudy.present.figures.panels import cell, nothing, one_tick, panel_grid, titled

BAND = "rgba(0, 114, 178, 0.18)"  # theme.BLUE, thin
_DRAWN = (
    "Line: median of the share of trials that a fresh service holds; band, or bar where one rate was "
    "tried: 95 % interval; dots: the trials. "
    "By the posterior that the search itself uses (kvstudy/plan/knee.py)."
)


def held_by_rate(trials: Tables) -> go.Figure:
    """A panel for each search in ``trials``."""
    searched = [(one, rates.held_by_rate(one.trials)) for one in capacity.searches(trials)]
    searched = [(one, shares) for one, shares in searched if len(shares)]
    if not searched:
        return nothing(
            "no search has a trial that says anything",
            "Measure one: kvstudy run experiments/report-1.yaml --preset reference",
        )
    figure = panel_grid([one.name for one, _ in searched], "offered rate", "share of trials that hold it")
    for index, (_, shares) in enumerate(searched):
        place = cell(index, len(searched))
        _draw(figure, shares, index == 0, place)
        one_tick(figure, shares["offered_rate_rps"], **place)
    figure.update_yaxes(tickformat=".0%", range=[-0.03, 1.03])
    return titled(figure, "How often each rate is held", _finding(searched), _DRAWN)


def _draw(figure: go.Figure, shares, named: bool, place: dict) -> None:
    around = np.append(shares["offered_rate_rps"], shares["offered_rate_rps"][::-1])
    figure.add_trace(
        go.Scatter(
            x=around,
            y=np.append(shares["low"], shares["high"][::-1]),
            mode="lines",
            fill="toself",
            fillcolor=BAND,
            line={"width": 0},
            hoverinfo="skip",
            name="95 % interval",
            legendgroup="interval",
            showlegend=named,
        ),
        **place,
    )
    hover = [
        (
            f"{words.rate(row.offered_rate_rps)}: held in "
            f"<b>{words.share(row.share)}</b>{words.interval(row.low, row.high, words.share)} of trials"
        )
        for row in shares.itertuples()
    ]
    figure.add_trace(
        go.Scatter(
            x=shares["offered_rate_rps"],
            y=shares["share"],
            mode="lines",
            line={"color": theme.BLUE, "width": 2.4},
            text=hover,
            hovertemplate="%{text}<extra></extra>",
            name="held in so many trials",
            legendgroup="share",
            showlegend=named,
        ),
        **place,
    )
    tried = shares[shares["trials"] > 0]
    observed = tried["held"] / tried["trials"]
    # A single rate has no band to be seen: its interval is a bar.
    bar = (
        {
            "type": "data",
            "symmetric": False,
            "array": shares["high"] - observed,
            "arrayminus": observed - shares["low"],
            "color": theme.BLUE,
        }
        if len(shares) == 1
        else None
    )
    hover = [
        f"{words.rate(row.offered_rate_rps)}: {row.held} of {words.counted(row.trials, 'trial')} held it"
        for row in tried.itertuples()
    ]
    figure.add_trace(
        go.Scatter(
            x=tried["offered_rate_rps"],
            y=observed,
            mode="markers",
            text=hover,
            hovertemplate="%{text}<extra></extra>",
            error_y=bar,
            marker={"color": theme.TEXT, "size": 5 + 3 * np.sqrt(tried["trials"].to_numpy()), "opacity": 0.7},
            name="trials",
            legendgroup="trials",
            showlegend=named,
        ),
        **place,
    )


def _finding(searched: list) -> str:
    """The knee of each search, as long as they fit into a title."""
    known = [
        (one, one.knee)
        for one, _ in searched
        if one.knee.held_rps is not None and one.knee.missed_rps is not None
    ]
    if not known:
        return (
            f"{words.counted(len(searched), 'search')}: no knee lies between a rate surely held and one "
            "surely missed".replace("searchs", "searches")
        )
    parts = [
        f"{one.name} holds {words.about_rate(knee.knee_rps)} in half of its trials" for one, knee in known[:3]
    ]
    rest = len(searched) - len(parts)
    return f"{words.several(parts)}{f'; {rest} more below' if rest else ''}"
