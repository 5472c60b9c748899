"""Published numbers beside measured ones."""

import textwrap

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse import percentile_grid
from kvstudy.analyse.comparison.words import CANNOT_TELL
from kvstudy.analyse.published import same_handler
from kvstudy.analyse.replication import verdicts as judging
from kvstudy.errors import KvstudyError
from kvstudy.present import claims, false_words, theme, words
from kvstudy.present.figures.marks import INVALID_NAME, marked_runs
from kvstudy.present.figures.panels import (
    cell,
    latency_axis,
    nothing,
    panel_grid,
    percentile_axis,
    shortened,
    titled,
)

_COLOURS = {
    judging.REPRODUCED: theme.GREEN,
    judging.NOT_REPRODUCED: theme.VERMILION,
    judging.MISTAKEN: theme.PURPLE,
    judging.UNPROVEN: theme.OCHRE,
    CANNOT_TELL: theme.QUIET_TEXT,
    judging.NOT_MEASURED: theme.AXIS,
}
_SYMBOLS = {
    judging.REPRODUCED: "circle",
    judging.NOT_REPRODUCED: "x",
    judging.MISTAKEN: "diamond",
    judging.UNPROVEN: "square",
    CANNOT_TELL: "circle-open",
}
_BY_INTERVAL = (judging.REPRODUCED, judging.NOT_REPRODUCED, CANNOT_TELL)
ROW_PX = 26
NAME_LETTERS = 62


def verdicts(judged: pd.DataFrame) -> go.Figure:
    """How many claims have each verdict, report by report."""
    counts = judged.groupby(["report", "verdict"]).size().unstack(fill_value=0)
    if counts.empty:
        return nothing("no claim was published", "")
    figure = go.Figure()
    for verdict in [verdict for verdict in judging.VERDICTS if verdict in counts]:
        numbers = counts[verdict]
        figure.add_trace(
            go.Bar(
                y=[f"report {report}" for report in numbers.index],
                x=numbers,
                orientation="h",
                name=verdict,
                marker={"color": _COLOURS[verdict]},
                text=[number or "" for number in numbers],
                textposition="inside",
                insidetextanchor="middle",
                hovertext=[
                    f"report {report}: {words.counted(number, 'claim')} {verdict}"
                    for report, number in numbers.items()
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title_text="claims")
    figure.update_layout(barmode="stack", bargap=0.3, legend_traceorder="normal", height=360, legend_y=-0.25)
    by_verdict = judged["verdict"].value_counts()
    finding = words.several(
        [f"{by_verdict[verdict]} {verdict}" for verdict in judging.VERDICTS if verdict in by_verdict]
    )
    return titled(
        figure,
        "What our runs say of each published claim",
        f"{len(judged)} claims: {finding}",
        "Mistaken: the report contradicts its own output. Unproven: its output cannot carry the claim."
        f"{false_words.of_verdicts(int(judged['verdict'].isin(_BY_INTERVAL).sum()))}",
    )


def claims_measured(judged: pd.DataFrame) -> go.Figure:
    """One row per claim that has a number of ours in the same unit: measured / published with its interval;
    colour and shape say the verdict."""
    in_one_unit = np.array([ours is None or not ours.of_time for ours in judged["ours"]], dtype=bool)
    is_anything = (judged["low"] == 0) & judged["high"].isna()
    is_drawn = (judged["published"] > 0) & (judged["measured"] > 0) & in_one_unit & ~is_anything
    rows = judged[is_drawn].iloc[::-1]
    counts = judged["verdict"].value_counts()
    each = [f"{counts[verdict]} {verdict}" for verdict in judging.VERDICTS if verdict in counts]
    finding = f"{len(judged)} claims of five reports: {words.several(each)}"
    if len(rows) < len(judged):
        finding += f"; drawn are the {len(rows)} that have a number of ours in the same unit"
    if rows.empty:
        return titled(
            nothing("no claim has a number of ours", "Measure experiments/report-1.yaml … report-5.yaml."),
            "Nothing to draw: no claim has a number of ours",
            finding,
            "",
        )
    names = [
        textwrap.shorten(f"{row.report}: {row.method}, {row.says}", NAME_LETTERS, placeholder=" …")
        for row in rows.itertuples()
    ]
    names = [
        name if names.count(name) == 1 else f"{name} ({claim})"
        for name, claim in zip(names, rows["claim"], strict=True)
    ]
    figure = go.Figure()
    for verdict in judging.VERDICTS:
        mine = (rows["verdict"] == verdict).to_numpy()
        if not mine.any():
            continue
        part = rows[mine]
        ratio, low, high = (part[column] / part["published"] for column in ("measured", "low", "high"))
        figure.add_trace(
            go.Scatter(
                x=ratio,
                y=[name for name, chosen in zip(names, mine, strict=True) if chosen],
                mode="markers",
                name=verdict,
                marker={"color": _COLOURS[verdict], "symbol": _SYMBOLS.get(verdict, "circle"), "size": 10},
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": (high - ratio).fillna(0),
                    "arrayminus": (ratio - low).fillna(0),
                    "thickness": 1.5,
                    "width": 4,
                },
                text=[
                    f"<b>{row.verdict}</b>: {row.says}<br>published "
                    f"{claims.number(row.quantity, row.published)}, measured "
                    f"{claims.measured(row)} ({claims.rests_on(row)})"
                    f"{f'<br>{row.note}' if row.note else ''}"
                    for row in part.itertuples()
                ],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    figure.add_vrect(
        x0=1 / judging.FACTOR,
        x1=judging.FACTOR,
        fillcolor=theme.GRID,
        opacity=0.5,
        line_width=0,
        layer="below",
    )
    figure.update_xaxes(type="log", title_text="measured / published (log)", exponentformat="power")
    figure.update_yaxes(categoryorder="array", categoryarray=names, title_text="")
    figure.update_layout(height=200 + ROW_PX * len(names), legend_y=-70 / (ROW_PX * len(names) + 60))
    return titled(
        figure,
        "Published numbers and ours, claim by claim",
        finding,
        "Shaded: within a factor of two. A mistaken claim is judged by its own report's output; the "
        "distance is shown all the same.",
    )


def spectra(published, tables, reports: list[int]) -> list[go.Figure]:
    """``published_spectra`` of each of ``reports``; KvstudyError for what is no list of their numbers."""
    known = sorted(published.claims["report"].unique().tolist())
    if not isinstance(reports, list) or not reports or any(report not in known for report in reports):
        raise KvstudyError(
            f"no list of reports: {reports!r}", f"some of {', '.join(map(str, known))} in brackets, as [1, 3]"
        )
    return [published_spectra(published, tables, report) for report in dict.fromkeys(reports)]


def published_spectra(published, tables, report: int, percentile_max: float = 99.999) -> go.Figure:
    """The latency distributions that a report printed, and of the experiment that asks the same our runs at
    the rate nearest to theirs; one panel per method and published rate. Of a closed loop ours are those of
    the same workload and connections."""
    texts = published.results[published.results["report"] == report].sort_values(
        ["method", "offered_rate_rps"]
    )
    points = published.percentiles.merge(texts, on="text")
    points = points[
        (points["percentile"] < 100) & (points["percentile"] <= percentile_max) & (points["latency_us"] > 0)
    ]
    if points.empty:
        return nothing(f"report {report} printed no distribution", "")
    points = points.sort_values(["text", "percentile"]).drop_duplicates(["text", "percentile"])
    texts = texts[texts["text"].isin(points["text"])]
    runs = marked_runs(tables.select(experiment=f"report-{report}", profiled=False))
    rows = tables.percentiles[
        (tables.percentiles["latency_kind"] == "response") & (tables.percentiles["percentile"] < 100)
    ].dropna(subset=["latency_us"])
    panels = [
        (_asked(same.iloc[0]), same, _counterparts(tables, runs, same))
        for _, same in texts.groupby(["method", "offered_rate_rps"], dropna=False, sort=False)
    ]
    drawn = [
        (points[points["text"].isin(theirs["text"])], rows.merge(ours, on="run_id"))
        for _, theirs, ours in panels
    ]
    others = [_other_rates(theirs, ours) for _, theirs, ours in panels]
    headings = [
        f"{asked} there, {at} here" if at else asked for (asked, *_), at in zip(panels, others, strict=True)
    ]
    figure = panel_grid(headings, "percentile", "latency")
    named: set[str] = set()
    for index, (theirs, ours) in enumerate(drawn):
        place = cell(index, len(panels))
        for _, line in theirs.groupby("text", sort=False):
            _published_line(figure, line, named, place)
        for _, line in ours.groupby("run_id"):
            _measured_line(figure, line, named, place)
    percentile_axis(figure, percentile_max)
    latency_axis(
        figure, pd.concat([points["latency_us"], *(ours["latency_us"] for _, ours in drawn)]), "latency (log)"
    )
    measured = (
        "each of our runs of the same workload and connections"
        if texts["closed_loop"].all()
        else "each of our runs at the rate nearest to theirs"
    )
    has_loop = any(line["closed_loop"].any() for pair in drawn for line in pair)
    dashed = " Dashed: a closed loop, whose times hide the waiting." if has_loop else ""
    return titled(
        figure,
        f"Latency as report {report} printed it, and as we measured",
        _medians(report, panels, others, drawn),
        f"Published: one run each, as printed. Measured: {measured}.{dashed}",
    )


def _counterparts(tables, runs: pd.DataFrame, texts: pd.DataFrame) -> pd.DataFrame:
    """Of marked ``runs`` those that ask what each of ``texts`` (rows of results, alike in method and rate)
    asked; of several rates the nearest, by ratio, at which a run is valid, else the nearest."""
    chosen: set[str] = set()
    for text in texts.itertuples():
        mine = runs[(runs["method"] == text.method) & (runs["closed_loop"] == bool(text.closed_loop))]
        mine = mine[mine["run_id"].isin(same_handler(tables.only(mine["run_id"]), text.stage).runs["run_id"])]
        if text.closed_loop:
            mine = mine[(mine["workload"] == text.workload) & (mine["connections"] == text.connections)]
        elif len(mine):
            known = (
                mine.loc[mine["valid"], "offered_rate_rps"]
                if mine["valid"].any()
                else mine["offered_rate_rps"]
            )
            mine = mine[
                mine["offered_rate_rps"]
                == min(known, key=lambda rate: abs(np.log(rate / text.offered_rate_rps)))
            ]
        chosen |= set(mine["run_id"])
    return runs[runs["run_id"].isin(chosen)]


def _asked(text: pd.Series) -> str:
    """``PUT at 2 000 r/s``."""
    rate = text["offered_rate_rps"]
    return f"{text['method']} {'in a closed loop' if pd.isna(rate) else f'at {words.rate(rate)}'}"


def _other_rates(texts: pd.DataFrame, runs: pd.DataFrame) -> str:
    """The offered rates of ``runs`` where they are not those of ``texts``: "2 100 r/s"."""
    offered = set(runs["offered_rate_rps"].dropna())
    return (
        ""
        if offered <= set(texts["offered_rate_rps"])
        else words.several([words.rate(rate) for rate in sorted(offered)])
    )


def _published_line(figure: go.Figure, line: pd.DataFrame, named: set[str], place: dict) -> None:
    first = line.iloc[0]
    kind = "service time, closed loop" if first["closed_loop"] else "response time"
    offered = words.value(
        "offered_rate_rps",
        float(first["offered_rate_rps"]) if pd.notna(first["offered_rate_rps"]) else np.nan,
    )
    figure.add_trace(
        go.Scatter(
            x=shortened(100 / (100 - line["percentile"])),
            y=shortened(line["latency_us"] / 1e6),
            mode="lines",
            name="published",
            legendgroup="published",
            showlegend="published" not in named,
            line={
                "color": theme.NAMED["published"],
                "width": 2.2,
                "dash": "dash" if first["closed_loop"] else "solid",
            },
            text=_at_each_percentile(line),
            hovertemplate=f"<b>published</b> %{{text}} ({kind})<br>{first['text']}, offered "
            f"{offered}<extra></extra>",
        ),
        **place,
    )
    named.add("published")


def _measured_line(figure: go.Figure, line: pd.DataFrame, named: set[str], place: dict) -> None:
    valid = bool(line["valid"].iloc[0])
    name = "measured" if valid else INVALID_NAME
    figure.add_trace(
        go.Scatter(
            x=shortened(100 / (100 - line["percentile"])),
            y=shortened(line["latency_us"] / 1e6),
            mode="lines",
            name=name,
            legendgroup=name,
            showlegend=name not in named,
            opacity=0.7 if valid else 0.9,
            text=_at_each_percentile(line),
            hovertemplate=f"<b>measured</b> %{{text}}<br>{line['hover'].iloc[0]}<extra></extra>",
            line={"color": theme.NAMED["measured"], "width": 1.2}
            if valid
            else {"color": theme.INVALID, "width": 1.4, "dash": "dot"},
        ),
        **place,
    )
    named.add(name)


def _at_each_percentile(line: pd.DataFrame) -> list[str]:
    """ "p99: 1.24 ms"."""
    return [
        f"{words.percentile(round(percentile, 4))}: {words.latency(latency_us)}"
        for percentile, latency_us in zip(line["percentile"], line["latency_us"], strict=True)
    ]


def _medians(
    report: int, panels: list[tuple], others: list[str], drawn: list[tuple[pd.DataFrame, pd.DataFrame]]
) -> str:
    """The finding: for each panel the medians that were printed, and ours, with their rate where it is
    another."""
    if not any(len(ours) and ours["valid"].any() for _, ours in drawn):
        return f"Report {report}: its distributions, with no valid run of ours beside them yet"
    parts = []
    for (asked, *_), at, (theirs, ours) in zip(panels, others, drawn, strict=True):
        there, here = (
            lines.loc[percentile_grid.at(lines["percentile"], 50), "latency_us"]
            for lines in (theirs, ours[ours["valid"].astype(bool)])
        )
        ours_told = (
            f"{_from_to(here)} here{f' at {at}' if at else ''} ({words.counted(len(here), 'run')})"
            if len(here)
            else "no valid run here"
        )
        parts.append(f"{asked} {_from_to(there)} there, {ours_told}")
    return f"Report {report}, medians: {'; '.join(parts)}"


def _from_to(latencies_us: pd.Series) -> str:
    return words.from_to(latencies_us.min(), latencies_us.max())
