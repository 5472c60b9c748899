"""Rate by connections with the Universal Scalability Law fitted to it, one configuration at a time, drawn
only where there is data."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse.scalability import LEVELS_MIN, Usl, fit
from kvstudy.present import series, words
from kvstudy.present.figures.marks import invalid_legend, marked_runs, run_points
from kvstudy.present.figures.panels import cell, nothing, panel_grid, titled

_TOLD_MAX = 3  # laws that a title can tell one by one
_STEEP = "the rate falls with the connections faster than any law"


def scalability(tables) -> go.Figure:
    """Closed-loop runs: a point each, a panel for each workload, a colour for each configuration (same sizes,
    same options). The law as a line with its interval where a configuration has valid runs of LEVELS_MIN
    numbers of connections; else points only, and why."""
    runs = marked_runs(tables)
    runs = runs[runs["closed_loop"] & (runs["outcome"] == "completed") & (runs["achieved_rate_rps"] > 0)]
    if runs.empty:
        return nothing(
            "no closed-loop run",
            f"Scalability needs rate: closed at {LEVELS_MIN} or more numbers of connections.",
        )
    runs = runs.assign(
        y=runs["achieved_rate_rps"],
        hover_title=[f"<b>{words.rate(rate)}</b>" for rate in runs["achieved_rate_rps"]],
        line=series.names(runs, series.CONNECTIONS),
        colour=series.names(runs, series.CONNECTIONS, said=("workload",)),
    )
    panels = sorted(runs["workload"].unique())
    palette = series.colours(runs)
    figure = panel_grid(panels, "connections", "achieved rate, requests/s", match_y=False)
    for colour, hue in palette.items():
        mark = {"color": hue, "size": 7}
        figure.add_trace(
            go.Scatter(x=[None], y=[None], mode="markers", marker=mark, name=colour, legendgroup=colour),
            **cell(0, len(panels)),
        )
    laws: dict[str, Usl] = {}
    steep = 0
    for (workload, line), mine in runs.groupby(["workload", "line"]):
        place, colour = cell(panels.index(workload), len(panels)), mine["colour"].iloc[0]
        run_points(figure, mine, "connections", palette[colour], colour, **place)
        counted = mine[mine["valid"]]
        if counted["connections"].nunique() < LEVELS_MIN:
            continue
        law = fit(counted["connections"], counted["achieved_rate_rps"])
        if law is None:
            steep += 1
            continue
        laws[line] = law
        _draw(figure, law, palette[colour], colour, place)
    if not runs["valid"].all():
        invalid_legend(figure, **cell(0, len(panels)))
    sizes = sorted(runs["connections"].unique().tolist())
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[str(size) for size in sizes])
    figure.update_yaxes(rangemode="tozero")
    told = _finding(runs, laws, steep), _drawn(runs, laws, steep)
    return titled(figure, "Rate of closed loops by connections", *told)


def _draw(figure: go.Figure, law: Usl, hue: str, name: str, place: dict) -> None:
    at = np.geomspace(law.smallest, law.largest, 40)
    fitted = [law.rate_rps(min(connections, law.largest)) for connections in at]
    text = (
        f"σ {law.sigma.estimate:.3f}, κ {law.kappa.estimate:.2g}; a median lies up to "
        f"{words.share(law.misfit)} off"
    )
    figure.add_trace(
        go.Scatter(
            x=at,
            y=[one.estimate for one in fitted],
            mode="lines",
            line={"color": hue, "width": 2.4},
            legendgroup=name,
            showlegend=False,
            hovertemplate=f"<b>{name}</b><br>{text}<extra></extra>",
        ),
        **place,
    )
    if len(law.draws):
        figure.add_trace(
            go.Scatter(
                x=[*at, *at[::-1]],
                y=[*(one.high for one in fitted), *(one.low for one in reversed(fitted))],
                fill="toself",
                mode="none",
                fillcolor=hue,
                opacity=0.15,
                legendgroup=name,
                showlegend=False,
                hoverinfo="skip",
            ),
            **place,
        )


def _finding(runs: pd.DataFrame, laws: dict[str, Usl], steep: int) -> str:
    if not runs["valid"].any():
        return "No valid closed-loop run: no law is fitted"
    if steep and not laws:
        return f"No law is fitted: {_STEEP}"
    if not laws:
        levels = runs[runs["valid"]].groupby("line")["connections"].nunique()
        configurations = runs["line"].nunique()
        whose = (
            "the only configuration has"
            if configurations == 1
            else f"none of {configurations} configurations has more than"
        )
        return (
            f"No law is fitted: it takes {LEVELS_MIN} numbers of connections with valid runs, and {whose} "
            f"{levels.max()}"
        )
    if len(laws) <= _TOLD_MAX:
        return (
            "Contention by the Universal Scalability Law: "
            f"{'; '.join(_describe_law(name, law) for name, law in laws.items())}"
        )
    least, most = (choose(laws, key=lambda name: laws[name].sigma.estimate) for choose in (min, max))
    return (
        f"Contention by the Universal Scalability Law, of {len(laws)} configurations: from "
        f"{_sigma(laws[least])} ({least}) to {_sigma(laws[most])} ({most})"
    )


def _describe_law(name: str, law: Usl) -> str:
    extent = f"{law.smallest:g} to {law.largest:g} connections"
    peak = (
        f"no peak can be told within {extent}"
        if law.peak is None
        else f"peak at {law.peak.estimate:.0f} [{law.peak.low:.0f}, {law.peak.high:.0f}] connections"
    )
    return f"{name} {_sigma(law)}, {peak}"


def _sigma(law: Usl) -> str:
    interval = (
        f" [{law.sigma.low:.3f}, {law.sigma.high:.3f}]"
        if len(law.draws)
        else " (no interval: one run at a number of connections)"
    )
    return f"σ {law.sigma.estimate:.3f}{interval}"


def _drawn(runs: pd.DataFrame, laws: dict[str, Usl], steep: int) -> str:
    only = f", {runs['workload'].iloc[0]}" if runs["workload"].nunique() == 1 else ""
    parts = [f"Closed loop{only}. Points: runs"]
    if laws:
        parts[0] += (
            "; line: fitted law with its 95 % interval, from the smallest to the largest number of "
            "connections"
        )
        why = {
            f"valid runs at under {LEVELS_MIN} numbers of connections": runs["line"].nunique()
            - len(laws)
            - steep,
            _STEEP: steep,
        }
        parts += [
            f"{words.counted(count, 'configuration')} without a line: {told}"
            for told, count in why.items()
            if count
        ]
    elif not steep:
        parts.append(f"To fit a law, measure a closed loop at {LEVELS_MIN} or more numbers of connections")
    bad = int((~runs["valid"]).sum())
    parts += [f"{bad} of {len(runs)} runs {'is' if bad == 1 else 'are'} invalid and in no fit"] if bad else []
    return ". ".join(parts) + "."
