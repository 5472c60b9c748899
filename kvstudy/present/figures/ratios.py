"""Before against after: one ratio with its interval per measure and configuration; 1 means no change."""

import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse.statistics import CANNOT_TELL, FASTER, MIN_RUNS, SLOWER
from kvstudy.present import theme, words
from kvstudy.present.figures.panels import nothing, titled

ROW_PX = 24
_SYMBOLS = {FASTER: "triangle-left", SLOWER: "triangle-right", CANNOT_TELL: "circle"}


def ratios(compared: pd.DataFrame, before: str, after: str) -> go.Figure:
    """A row per measure and configuration of ``analyse.configuration.comparisons``; colour and shape say the word."""
    if compared.empty:
        return nothing(f"no configuration has valid runs of both {before} and {after}", "Measure both, with the same experiment file.")
    compared = compared.iloc[::-1]
    # Only what tells the rows apart; what is the same in all of them may be the very thing that is compared.
    varied = [column for column in ("workload", "connections") if compared[column].nunique() > 1]
    names = [_name(row, varied) for row in compared.itertuples()]
    figure = go.Figure()
    for word in (FASTER, SLOWER, CANNOT_TELL):
        mine = (compared["word"] == word).to_numpy()
        rows = compared[mine]
        figure.add_trace(
            go.Scatter(
                x=rows["ratio"], y=[name for name, chosen in zip(names, mine, strict=True) if chosen], mode="markers", name=word,
                error_x={"type": "data", "symmetric": False, "array": rows["high"] - rows["ratio"], "arrayminus": rows["ratio"] - rows["low"],
                         "thickness": 1.6, "width": 4},
                marker={"color": theme.NAMED[word], "size": 10, "symbol": _SYMBOLS[word]}, text=[f"{_told(row, before, after)}<br>{name}" for row, name in zip(rows.itertuples(), (name for name, chosen in zip(names, mine, strict=True) if chosen), strict=True)],
                hovertemplate="%{text}<extra></extra>",
            )
        )  # fmt: skip
    figure.add_vline(x=1, line={"color": theme.AXIS, "width": 1.2, "dash": "dash"})
    figure.update_xaxes(type="log", title_text=f"{after} / {before} (log)", dtick="D2")
    figure.update_yaxes(categoryorder="array", categoryarray=names, title_text="")
    figure.update_layout(height=190 + ROW_PX * len(names), legend_y=-70 / (ROW_PX * len(names) + 40))
    counts = compared["word"].value_counts()
    told = [f"{counts[word]} {word}" for word in (FASTER, SLOWER, CANNOT_TELL) if word in counts]
    few = "" if compared[["runs_before", "runs_after"]].min().min() >= MIN_RUNS else f" Under {MIN_RUNS} runs a side the word is always “{CANNOT_TELL}”."
    finding = f"{after} against {before}: {words.several(told)} of {len(compared)} comparisons{_extreme(compared)}"
    return titled(figure, finding, f"Ratio of medians over runs with its 95 % bootstrap interval; left of 1 is lower.{few}")


def _name(row, varied: list[str]) -> str:
    told = [words.value(column, getattr(row, column)) for column in (*varied, "offered_rate_rps")]
    return f"{', '.join(told)}: {row.measure}"


def _told(row, before: str, after: str) -> str:
    value = words.rate if row.measure == "achieved rate" else words.latency
    return (
        f"<b>{row.word}</b>: {words.times(row.ratio)}{words.interval(row.low, row.high, words.times)}"
        f"<br>{before} {value(row.before)} ({row.runs_before} runs), {after} {value(row.after)} ({row.runs_after} runs)"
    )


def _extreme(compared: pd.DataFrame) -> str:
    certain = compared[compared["word"] != CANNOT_TELL]
    if certain.empty:
        return ""
    row = certain.loc[(certain["ratio"].clip(lower=1e-9) - 1).abs().idxmax()]
    return f"; the largest: {row['workload']} {row['measure']} {words.times(row['ratio'])} [{words.times(row['low'])}, {words.times(row['high'])}]"
