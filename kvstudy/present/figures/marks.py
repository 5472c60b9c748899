"""What every chart says about a run: whether it counts, why not, and the text shown when it is pointed at."""

import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse import rates
from kvstudy.analyse.answers.profiles import failures
from kvstudy.present import theme, words

INVALID_NAME = "invalid run (point at it for the reason)"


def marked_runs(tables) -> pd.DataFrame:
    """``tables.runs`` configured (``configuration`` is equal for repeats), with ``is_informative``
    (analyse.rates: whether the run says if its rate was held), ``valid`` (bool: the verdict is not FAIL),
    ``why`` (checks not passed, "" when none), ``failed`` (those that make it invalid, and what they saw),
    ``what`` (a few words) and ``hover`` (HTML).

    The caller's own frame: columns may be added.
    """
    return tables.cached(_marked).copy(deep=False)


def _marked(tables) -> pd.DataFrame:
    runs = rates.with_rate_outcome(tables, tables.runs)
    worse = tables.validity[tables.validity["verdict"] != "PASS"]
    reasons: dict[str, list[str]] = {}
    for row in worse.to_dict("records"):
        reasons.setdefault(row["run_id"], []).append(
            f"{row['verdict']} {row['check']}: {row['observed']} (required: {row['required']})"
        )
    runs["valid"] = runs["verdict"] != "FAIL"
    runs["why"] = ["; ".join(reasons.get(run_id, [])) for run_id in runs["run_id"]]
    failed = failures(tables)
    runs["failed"] = [failed.get(run_id, "") for run_id in runs["run_id"]]
    runs["what"] = [
        f"{run.workload}, {words.value('connections', run.connections)}" for run in runs.itertuples()
    ]
    runs["hover"] = [_hover(run) for run in runs.itertuples()]
    return runs


def _hover(run) -> str:
    offered = "closed loop" if run.closed_loop else f"offered {words.rate(run.offered_rate_rps)}"
    lines = [
        " · ".join([f"<b>{run.workload}</b>", *filter(None, [run.variant, run.label])]),
        f"{words.value('connections', run.connections)}, {words.value('threads', run.threads)}, {offered}",
        f"achieved {words.rate(run.achieved_rate_rps)}, repeat {run.repeat}, verdict {run.verdict}",
    ]
    lines += [f"<b>{reason}</b>" for reason in run.why.split("; ") if reason]
    return "<br>".join([*lines, run.run_id])


def invalid_legend(figure: go.Figure, mode: str = "markers", **place) -> None:
    """One legend entry for all grey runs of ``figure``, looking as they do: ``mode`` markers (a cross) or
    lines (dotted)."""
    figure.add_trace(
        go.Scatter(
            x=[None],
            y=[None],
            mode=mode,
            name=INVALID_NAME,
            legendgroup="invalid",
            line={"color": theme.INVALID, "dash": "dot", "width": 1.5},
            marker={"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": theme.INVALID}},
        ),
        **place,
    )


def run_points(figure: go.Figure, runs: pd.DataFrame, x: str, hue: str, name: str, **place) -> None:
    """A point per run at its columns ``x`` and ``y``: in ``hue`` for a valid one, a grey cross for an invalid
    one; pointed at, ``hover_title`` and ``hover``."""
    for part, marker, group in (
        (runs[runs["valid"]], {"color": hue, "size": 7, "opacity": 0.75}, name),
        (
            runs[~runs["valid"]],
            {"symbol": "x-thin", "size": 8, "line": {"width": 1.8, "color": theme.INVALID}},
            "invalid",
        ),
    ):
        if len(part):
            figure.add_trace(
                go.Scatter(
                    x=part[x],
                    y=part["y"],
                    mode="markers",
                    marker=marker,
                    showlegend=False,
                    legendgroup=group,
                    text=[
                        f"{text}<br>{hover}"
                        for text, hover in zip(part["hover_title"], part["hover"], strict=True)
                    ],
                    hovertemplate="%{text}<extra></extra>",
                ),
                **place,
            )


def excluded(runs: pd.DataFrame) -> str:
    """ "2 of 15 runs are invalid and left out of the medians." or "" when all count."""
    bad = int((~runs["valid"]).sum())
    if bad == 0:
        return ""
    of = words.counted(len(runs), "run")
    return f" {bad} of {of} {'is' if bad == 1 else 'are'} invalid and left out of every median."
