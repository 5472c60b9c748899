"""What the store held in a run, on one clock: tables and memtables, their sizes, and how long writers were
stalled."""

import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse import store_counters
from kvstudy.analyse.store_counters import StoreCounters
from kvstudy.present import theme, words
from kvstudy.present.figures.marks import marked_runs
from kvstudy.present.figures.panels import nothing, panel_grid, titled
from kvstudy.present.figures.seconds import described

HEADINGS = ("how many", "MiB", "seconds of waiting a second")
_NAMES = {"level0_runs": "runs of level 0", "table_bytes": "tables", "memtable_bytes": "memtables"}
_ROW_PX = 190
_MIB = 2**20


def counters(tables, run_id: str | None) -> go.Figure:
    """Of one run; none where it recorded no counters of the store, as another program than ours."""
    runs = marked_runs(tables)
    runs = runs[runs["run_id"] == run_id]
    found = store_counters.read_run(tables, run_id) if len(runs) else None
    if found is None:
        return nothing(
            "no counters of the store", "kv-service tells them once a second; other programs have none here."
        )
    figure = panel_grid(
        list(HEADINGS), "second of the measured window", "", columns=1, match_y=False, row_px=_ROW_PX
    )
    for row, columns in enumerate((store_counters.COUNTS, store_counters.SIZES), start=1):
        for number, column in enumerate(columns):
            _line(figure, found.rows, column, theme.CATEGORIES[3 * (row - 1) + number], row)
    for number, (cause, part) in enumerate(found.stalls.groupby("cause", sort=True)):
        figure.add_trace(
            go.Bar(
                x=part["at_s"],
                y=part["share"],
                name=f"stall: {words.factor(cause)}",
                marker={"color": theme.CATEGORIES[5 + number], "line": {"width": 0}},
                text=[
                    f"{words.factor(one.cause)}: {words.latency(1000 * one.stalled_ms)} of waiting"
                    for one in part.itertuples()
                ],
                textposition="none",
                hovertemplate="%{text}<extra></extra>",
            ),
            row=3,
            col=1,
        )
    figure.update_yaxes(rangemode="tozero")
    return titled(
        figure,
        "What the store held, second by second",
        _finding(found),
        f"{described(next(runs.itertuples()))}. Several writers can wait at once.",
    )


def _line(figure: go.Figure, rows: pd.DataFrame, column: str, hue: str, row: int) -> None:
    is_size = column in store_counters.SIZES
    name = _NAMES.get(column, words.factor(column))
    values = rows[column] / _MIB if is_size else rows[column]
    texts = [words.size(value) if is_size else words.count(value) for value in rows[column]]
    figure.add_trace(
        go.Scatter(
            x=rows["at_s"],
            y=values,
            mode="lines+markers",
            line={"color": hue, "width": 2, "shape": "linear" if is_size else "hv"},
            marker={"size": 4},
            name=f"{name}, MiB" if is_size else name,
            text=[f"{name}: {text} at {at:.1f} s" for text, at in zip(texts, rows["at_s"], strict=True)],
            hovertemplate="%{text}<extra></extra>",
        ),
        row=row,
        col=1,
    )


def _finding(found: StoreCounters) -> str:
    first, last = found.rows.iloc[0], found.rows.iloc[-1]
    done = [
        words.counted(last[name] - first[name], what)
        for name, what in (("flushes", "flush"), ("compactions", "compaction"))
    ]
    level0 = words.count(found.rows["level0_runs"].max())
    tables = f"{_from_to(first, last)}{_between(found.rows['tables'])}"
    summary = f"{words.several(done)}; {tables}, at most {level0} runs in level 0"
    if found.stalls.empty:
        return f"{summary}; no writer was stalled"
    by_cause = found.stalls.groupby("cause")["stalled_ms"].sum().sort_values(ascending=False)
    waits = [f"{words.latency(1000 * ms)} for {words.factor(cause)}" for cause, ms in by_cause.items() if ms]
    return f"{summary}; writers waited {words.several(waits)}"


def _from_to(first: pd.Series, last: pd.Series) -> str:
    if first["tables"] == last["tables"]:
        return words.counted(last["tables"], "table")
    return f"{words.count(first['tables'])} to {words.counted(last['tables'], 'table')}"


def _between(tables: pd.Series) -> str:
    """How many there were in the meantime, where neither end says so."""
    most = tables.max()
    return f" ({words.count(most)} meanwhile)" if most > max(tables.iloc[0], tables.iloc[-1]) else ""
