"""What is left of the tail when one thing is held off: a ratio for every pair of runs, and their median."""

import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse.intervention import CAUSED
from kvstudy.analyse.linked import CANNOT_TELL
from kvstudy.present import theme, words
from kvstudy.present.figures.panels import nothing, ratio_axis, titled

ROW_PX = 60
_HUES = {CAUSED: theme.VERMILION, CANNOT_TELL: theme.BLUE}


def interventions(found: pd.DataFrame) -> go.Figure:
    """A row for each of ``analyse.intervention.interventions``: p99 without the kind, divided by p99 as
    usual."""
    if found.empty:
        return nothing(
            "nothing was held off yet",
            "Measure it: kvstudy run experiments/tail-intervention.yaml --preset reference",
        )
    rows, figure = found.iloc[::-1], go.Figure()
    names = [row_name(row) for row in rows.itertuples()]
    for word, hue in _HUES.items():
        mine = [(name, row) for name, row in zip(names, rows.itertuples(), strict=True) if row.word == word]
        figure.add_trace(
            go.Scatter(
                x=[row.ratio for _, row in mine],
                y=[name for name, _ in mine],
                mode="markers",
                name=word,
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": [row.high - row.ratio for _, row in mine],
                    "arrayminus": [row.ratio - row.low for _, row in mine],
                    "thickness": 2,
                    "width": 6,
                },
                marker={"color": hue, "size": 12},
                text=[explained(row) for _, row in mine],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    pairs = [
        (name, ratio) for name, row in zip(names, rows.itertuples(), strict=True) for ratio in row.ratios
    ]
    figure.add_trace(
        go.Scatter(
            x=[ratio for _, ratio in pairs],
            y=[name for name, _ in pairs],
            mode="markers",
            name="a pair of runs",
            hoverinfo="skip",
            marker={
                "color": theme.QUIET_TEXT,
                "size": 7,
                "symbol": "line-ns",
                "line": {"width": 1.5, "color": theme.QUIET_TEXT},
            },
        )
    )
    figure.add_vline(x=1, line={"color": theme.AXIS, "width": 1.2, "dash": "dash"})
    every = [ratio for _, ratio in pairs] or [1.0]
    ratio_axis(figure, min(every), max(every), "p99 without it<br>/ p99 as usual (log)")
    figure.update_yaxes(categoryorder="array", categoryarray=names, title_text="")
    figure.update_layout(height=200 + ROW_PX * len(names), legend_y=-75 / (ROW_PX * len(names) + 40))
    return titled(
        figure,
        "p99 as usual, and with one thing held off",
        finding(found),
        "Ticks: the two runs of a repeat. Dot: their median, with the interval of a sign test at 95 %. "
        "Words: permutation within pairs, Holm. Without flushes there is nothing to compact, so flush "
        "held off holds off compaction too.",
    )


def finding(found: pd.DataFrame) -> str:
    """The answer in a sentence: "The slowest percent is caused by flush (p99 without it 0.4×)"."""
    caused = [row for row in found.itertuples() if row.word == CAUSED]
    if caused:
        told = [
            f"{held_off(row.cause, row.also)} (p99 without it {words.times(row.ratio)})" for row in caused
        ]
        return f"The slow tail is caused by {words.several(told)}"
    return (
        f"Held off in turn: {words.several([words.factor(cause) for cause in found['cause']])}; none can "
        "be called a cause"
    )


def held_off(cause: str, also: tuple[str, ...]) -> str:
    """``("flush", ("compaction",))`` → "flush, or compaction that went away with it": what went away together
    cannot be told apart."""
    return words.factor(cause) + (
        f", or {words.several([words.factor(kind) for kind in also])} that went away with it" if also else ""
    )


def row_name(row) -> str:
    return f"{words.factor(row.cause)} held off ({row.held_off})"


def explained(row) -> str:
    why = (
        f"<br>with it went {words.several([words.factor(kind) for kind in row.also])}" if row.also else ""
    ) + (f"<br>{row.why}" if row.why else "")
    return (
        f"<b>{words.factor(row.cause)}</b>: {row.word}<br>p99 {words.latency(row.usual_us)} as usual, "
        f"{words.latency(row.without_us)} without it<br>"
        f"{words.ratio(row.ratio, row.low, row.high)}, "
        f"{words.counted(row.pairs, 'pair')}{why}"
    )
