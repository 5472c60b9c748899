"""Percentile spectra: latency by percentile, the axis stretched towards 100 % as HdrHistogram draws it (x = 1
/ (1 − p))."""

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse import percentile_grid
from kvstudy.analyse.answers.factors import TwoLines, compared_lines
from kvstudy.analyse.comparison.words import DIFFERENT, LOST_MORE, SAME, TOO_FEW
from kvstudy.analyse.configuration import comparison_key, lost_runs
from kvstudy.analyse.validity import SAMPLES_BEYOND_PRINTED
from kvstudy.present import theme, words
from kvstudy.present.figures.lines import DASHES, factors, placed
from kvstudy.present.figures.marks import excluded, invalid_legend, marked_runs
from kvstudy.present.figures.panels import (
    PANEL_HEIGHT_PX,
    cell,
    latency_axis,
    nothing,
    panel_grid,
    percentile_axis,
    shortened,
    titled,
)

ENOUGH_SAMPLES = 100
MUCH_MORE = 10.0  # beyond the last percentile drawn: what a reader would not guess from the line
_LEAST_US = 1.0  # the recorder's step: what a logarithmic axis has instead of 0
_LOW_ROW_PX = 260  # of a grid of three rows and more
_OF_RUN = [
    "run_id",
    "valid",
    "hover",
    "configuration",
    "comparison_key",
    "panel",
    "heading",
    "colour",
    "dash",
    "dash_text",
    "hover_title",
]
_KINDS = ("response", "service")
_NO_VALID_RUN = "No valid run: nothing can be claimed from these lines"
_NOTHING = np.full(1, np.nan, dtype=np.float32)


def percentile_spectrum(
    tables,
    colour_by: str = "offered_rate_rps",
    panel_by: str | Sequence[str] | None = None,
    latency_kind: str = "response",
    note: str = "",
    order: Sequence = (),
) -> go.Figure:
    """One line per repeat and one median line per value of ``colour_by`` (a column of runs), one panel per
    value of ``panel_by`` (one column or several); ``note`` ends the line below the title. ``order``: of every
    value of ``colour_by``, the one that the others are set against first; else their own."""
    rows, abreast = _rows(tables, [latency_kind], colour_by, panel_by)
    if rows.empty:
        how = (
            f"None of {words.counted(len(tables.runs), 'run')} has any: too few answers, or a generator that "
            "records none."
            if len(tables.runs)
            else "Measure runs with notebooks/02-sweep.ipynb."
        )
        return nothing(f"no {words.kind(latency_kind)} percentiles", how)
    figure, medians = _draw(rows, colour_by, abreast)
    dashed = ", dashed as the legend says" if rows["dash"].nunique() > 1 else ""
    drawn = (
        f"{words.kind(latency_kind).capitalize()} by percentile, coloured by "
        f"{words.factor(colour_by)}{dashed}. Thin: each run; strong: median of valid"
        f" repeats; open circle: under {ENOUGH_SAMPLES} samples beyond."
        f"{excluded(_runs_of(tables, rows))}{note}"
    )
    whole, of_panels = _rises(tables, rows, medians, colour_by, latency_kind, order)
    return titled(figure, f"{words.kind(latency_kind).capitalize()} by percentile", whole, drawn, of_panels)


def send_lateness(
    tables, colour_by: str = "offered_rate_rps", panel_by: str | Sequence[str] | None = None
) -> go.Figure:
    """The generator's own part of send lateness, of requests whose connection was free; where no run tells
    that apart, all of it, and so the chart says."""
    scheduled = set(tables.runs.loc[~tables.runs["closed_loop"], "run_id"])
    known = tables.percentiles[
        tables.percentiles["latency_us"].notna() & tables.percentiles["run_id"].isin(scheduled)
    ]
    own, all_of_it = (
        set(known.loc[known["latency_kind"] == kind, "run_id"]) for kind in ("own_lateness", "lateness")
    )
    if not own:
        note = (
            " These runs do not tell the generator's own part apart: the wait for a connection that the "
            "service kept busy is in it."
        )
        return percentile_spectrum(tables, colour_by, panel_by, "lateness", note)
    more = len(all_of_it - own)
    note = (
        (
            f" {more} more {'runs do' if more > 1 else 'run does'} not tell it apart and "
            f"{'are' if more > 1 else 'is'} not drawn."
        )
        if more
        else ""
    )
    return percentile_spectrum(tables, colour_by, panel_by, "own_lateness", note)


def response_against_service(
    tables, panel_by: str | Sequence[str] | None = "offered_rate_rps", colour_by: str = "latency_kind"
) -> go.Figure:
    """Response time (from the due time, solid) against service time (from the send, dashed) of the same
    runs: the gap is waiting."""
    rows, abreast = _rows(tables, list(_KINDS), colour_by, panel_by)
    if rows["latency_kind"].nunique() < 2:
        return nothing(
            "no run has both response and service time", "Closed-loop runs of wrk have service time only."
        )
    figure, medians = _draw(rows, colour_by, abreast)
    drawn = (
        "Solid: response time; dashed: service time. Strong: median of valid repeats; thin: each run. "
        "The gap is the wait before the send."
        f"{excluded(_runs_of(tables, rows))}{_beyond(tables, rows)}"
    )
    return titled(
        figure,
        "Response time and service time by percentile",
        _gap(medians, colour_by),
        drawn,
        [_gap(medians[medians["panel"] == panel], colour_by) for panel in _panels(rows)],
    )


def _rows(
    tables, kinds: list[str], colour_by: str, panel_by: str | Sequence[str] | None
) -> tuple[pd.DataFrame, int]:
    """A row per run, kind and percentile, in that order, with _OF_RUN and x, and how many panels stand
    abreast. ``comparison_key``: equal for runs that differ in the colour alone."""
    points = tables.percentiles
    points = points[
        points["latency_kind"].isin(kinds) & (points["percentile"] < 100) & points["latency_us"].notna()
    ]
    runs = marked_runs(tables)
    runs = runs[runs["run_id"].isin(points["run_id"])]
    runs = runs.assign(comparison_key=comparison_key(runs, colour_by))
    # Of several kinds each has a dash of its own.
    runs, abreast = placed(runs, colour_by, factors(panel_by), dashes=len(kinds) == 1)
    # Worked out once a run, and only what is drawn goes into the many rows; taking Arrow strings apart there
    # costs more than drawing.
    runs = runs[_OF_RUN]
    runs = runs.astype(dict.fromkeys(runs.select_dtypes("string").columns, object))
    rows = (
        points.astype({"run_id": object, "latency_kind": object})
        .merge(runs, on="run_id")
        .sort_values(["run_id", "latency_kind", "percentile"])
    )
    if len(kinds) > 1:
        rows["dash"] = [kinds.index(kind) for kind in rows["latency_kind"]]
        rows["dash_text"] = [words.kind(kind) for kind in rows["latency_kind"]]
    if colour_by == "latency_kind":
        rows["colour"] = rows["latency_kind"]
    return rows.assign(
        x=100 / (100 - rows["percentile"]), latency_us=rows["latency_us"].clip(lower=_LEAST_US)
    ), abreast


def _runs_of(tables, rows: pd.DataFrame) -> pd.DataFrame:
    """The runs that are drawn, and the invalid ones of the same configurations: one that died early has no
    line."""
    runs = marked_runs(tables)
    of_lines = runs["configuration"].isin(rows["configuration"])
    return runs[runs["run_id"].isin(rows["run_id"]) | (of_lines & ~runs["valid"])]


def _draw(rows: pd.DataFrame, colour_by: str, abreast: int) -> tuple[go.Figure, pd.DataFrame]:
    """The figure and its medians: a row per line and percentile."""
    palette = theme.colours(colour_by, rows["colour"])
    headings = rows.drop_duplicates("panel").sort_values("panel")["heading"].tolist()
    low = len(headings) > 2 * abreast
    figure = panel_grid(
        headings, "percentile", "latency", columns=abreast, row_px=_LOW_ROW_PX if low else PANEL_HEIGHT_PX
    )
    medians = (
        rows[rows["valid"]]
        .groupby(["panel", "colour", "dash", "latency_kind", "configuration", "percentile"], as_index=False)
        .agg(
            latency_us=("latency_us", "median"),
            x=("x", "first"),
            repeats=("run_id", "nunique"),
            comparison_key=("comparison_key", "first"),
            hover_title=("hover_title", "first"),
        )
    )
    dashes = dict(sorted(set(zip(rows["dash"].tolist(), rows["dash_text"].tolist(), strict=True))))
    of_colour = {colour: sorted(mine.unique().tolist()) for colour, mine in rows.groupby("colour")["dash"]}
    for index in range(len(headings)):
        place = cell(index, len(headings), abreast)
        here = rows[rows["panel"] == index]
        for (colour, dash), mine in here.groupby(["colour", "dash"]):
            _repeats(figure, mine[mine["valid"]], palette[colour], str(colour), place, DASHES[dash])
            _repeats(
                figure, mine[~mine["valid"]], theme.INVALID, "invalid", place, "dot", width=1.4, opacity=0.9
            )
        lines = dict(iter(medians[medians["panel"] == index].groupby(["colour", "dash"])))
        for colour in sorted(palette):
            for dash in of_colour[colour]:
                named = index == 0 and dash == of_colour[colour][0]
                _median_line(
                    figure,
                    lines.get((colour, dash), medians.head(0)),
                    words.value(colour_by, colour),
                    palette[colour],
                    str(colour),
                    named,
                    place,
                    DASHES[dash],
                )
    first = cell(0, len(headings), abreast)
    if len(dashes) > 1 and colour_by != "latency_kind":
        for dash, text in dashes.items():
            figure.add_trace(
                go.Scatter(
                    x=[None],
                    y=[None],
                    mode="lines",
                    name=text,
                    legendgroup=f"dash {dash}",
                    line={"color": theme.TEXT, "width": 2, "dash": DASHES[dash]},
                ),
                **first,
            )
    if not rows["valid"].all():
        invalid_legend(figure, "lines", **first)
    percentile_axis(figure, rows["percentile"].max())
    latency_axis(figure, rows["latency_us"], "latency (log)")
    return figure, medians


def _median_line(
    figure: go.Figure,
    line: pd.DataFrame,
    name: str,
    colour: str,
    group: str,
    named: bool,
    place: dict,
    dash: str,
) -> None:
    """The line of one configuration, or an entry of the legend alone: panel, colour and dash are those of no
    other."""
    if line.empty and not named:
        return
    points = zip(
        line["percentile"].tolist(),
        line["latency_us"].tolist(),
        line["hover_title"].tolist(),
        line["repeats"].tolist(),
        strict=True,
    )
    figure.add_trace(
        go.Scatter(
            x=_NOTHING if line.empty else shortened(line["x"]),
            y=_NOTHING if line.empty else shortened(line["latency_us"] / 1e6),
            mode="lines",
            name=name,
            legendgroup=group,
            showlegend=named,
            line={"color": colour, "width": 2.6, "dash": dash},
            text=[
                f"{words.percentile(percentile)}: {words.latency(latency_us)}<br>{text}, median of {repeats}"
                for percentile, latency_us, text, repeats in points
            ],
            hovertemplate=f"<b>{name}</b> %{{text}}<extra></extra>",
        ),
        **place,
    )


def _repeats(
    figure: go.Figure,
    rows: pd.DataFrame,
    colour: str,
    group: str,
    place: dict,
    dash: str,
    width: float = 0.9,
    opacity: float = 0.55,
) -> None:
    """A thin line per run. What the run was stands once in its hover template: in every point it made pages
    of megabytes.

    ``rows``: ordered by run and kind; they are cut into lines as arrays, since a frame per line takes most of
    the time of a large chart.
    """
    if rows.empty:
        return
    kinds, hovers = rows["latency_kind"].tolist(), rows["hover"].tolist()
    lines = rows["run_id"].tolist()
    starts = [
        0,
        *(i for i in range(1, len(rows)) if (lines[i], kinds[i]) != (lines[i - 1], kinds[i - 1])),
        len(rows),
    ]
    x, y = shortened(rows["x"]), shortened(rows["latency_us"] / 1e6)
    sizes = np.where(rows["samples_beyond"] < ENOUGH_SAMPLES, 5, 0).astype(np.int8)
    drawn_rows = zip(
        rows["percentile"].tolist(),
        kinds,
        rows["latency_us"].tolist(),
        rows["samples_beyond"].tolist(),
        strict=True,
    )
    texts = np.array(
        [
            (
                f"{words.percentile(percentile)} {words.kind(kind)}: {words.latency(latency_us)}, "
                f"{words.count(beyond)} beyond"
            )
            for percentile, kind, latency_us, beyond in drawn_rows
        ],
        dtype=object,
    )
    traces = []
    for begin, end in pairwise(starts):
        traces.append(
            go.Scatter(
                x=x[begin:end],
                y=y[begin:end],
                mode="lines+markers",
                opacity=opacity,
                line={"color": colour, "width": width, "dash": dash},
                legendgroup=group,
                showlegend=False,
                marker={"symbol": "circle-open", "size": sizes[begin:end], "color": colour},
                text=texts[begin:end],
                hovertemplate=f"<b>%{{text}}</b><br>{hovers[begin]}<extra></extra>",
            )
        )
    figure.add_traces(traces, rows=[place["row"]] * len(traces), cols=[place["col"]] * len(traces))


def _beyond(tables, rows: pd.DataFrame) -> str:
    """A sentence about answers so slow and so few that no percentile drawn shows them; "" when there are
    none."""
    drawn = (
        rows[rows["valid"] & (rows["latency_kind"] == "response")]
        .groupby("run_id")
        .agg(
            highest_us=("latency_us", "max"),
            hover_title=("hover_title", "first"),
            heading=("heading", "first"),
        )
    )
    slowest = tables.percentiles[
        (tables.percentiles["latency_kind"] == "response") & (tables.percentiles["percentile"] == 100)
    ]
    found = drawn.join(slowest.set_index("run_id")["latency_us"], how="inner")
    found = found[found["latency_us"] >= MUCH_MORE * found["highest_us"]]
    if found.empty:
        return ""
    worst = found.loc[found["latency_us"].idxmax()]
    return (
        f" Not drawn, since fewer than {SAMPLES_BEYOND_PRINTED} answers of a run lie beyond the last "
        "percentile of its line: slower ones, up to "
        f"{words.latency(worst['latency_us'])} ({worst['heading'] or worst['hover_title']})."
    )


def _gap(medians: pd.DataFrame, colour_by: str) -> str:
    """The finding of response against service: where p99 of the two lies furthest apart."""
    if medians.empty:
        return _NO_VALID_RUN
    at = medians[percentile_grid.at(medians["percentile"], 99)]
    pairs = (
        at.pivot_table(index="configuration", columns="latency_kind", values="latency_us")
        .reindex(columns=list(_KINDS))
        .dropna()
    )
    if pairs.empty:
        return "Too few samples for p99: response and service time cannot be compared there"
    pairs = pairs.join(
        at.drop_duplicates("configuration").set_index("configuration")[["hover_title", "colour", "repeats"]]
    )
    pairs = pairs[
        2 * pairs["repeats"] >= pairs["repeats"].max()
    ]  # one run where others have five is no median
    ratios = pairs["response"] / pairs["service"]
    if ratios.min() < 1:
        wrong = pairs.loc[ratios.idxmin()]
        return (
            f"Cannot be: p99 is {words.latency(wrong['service'])} from the send and only "
            f"{words.latency(wrong['response'])} from the due time, which is no later, "
            f"{_where(wrong, colour_by)}"
        )
    widest = pairs.loc[ratios.idxmax()]
    if ratios.max() < 1.1:
        return (
            f"Response and service time differ by at most {words.share(ratios.max() - 1)} at p99: hardly a "
            "request waits to be sent"
        )
    return (
        f"Waiting hides in service time: p99 is {words.latency(widest['service'])} from the send but "
        f"{words.latency(widest['response'])} from the due time, {_where(widest, colour_by)}"
    )


def _where(line: pd.Series, colour_by: str) -> str:
    if colour_by == "latency_kind":
        return line["hover_title"]
    return f"{line['hover_title']}, {words.value(colour_by, line['colour'])}"


def _panels(rows: pd.DataFrame) -> list[int]:
    return sorted(rows["panel"].unique())


def _rises(
    tables, rows: pd.DataFrame, medians: pd.DataFrame, colour_by: str, kind: str, order: Sequence
) -> tuple[str, list[str]]:
    """The finding, of the whole chart and of each of its panels: how the highest percentile that every colour
    has differs between two values of ``colour_by``, all else equal; of ordered ones between the first and
    another (as ``factors.differences``, whose words these are where it compares the same runs).

    Of several such pairs the one that differs most among those that the runs decide; where they decide none,
    the one that differs most, as *cannot tell*.
    """
    if medians.empty:
        return _NO_VALID_RUN, []
    shared = medians.groupby("percentile")["colour"].nunique()
    shared = shared[shared == medians["colour"].nunique()].index
    target = 99.0 if percentile_grid.at(shared, 99).any() else float(max(shared, default=50))
    at = medians[percentile_grid.at(medians["percentile"], target)].sort_values("colour")
    name = f"{words.percentile(target)} {words.kind(kind)}"
    if at.empty:
        return f"No {name}: too few samples lie beyond it", []
    sets = [lines for _, lines in at.groupby(["panel", "dash", "comparison_key"])]
    pairs = sorted((two for lines in sets for two in _pairs(lines, order)), key=_distance, reverse=True)
    if not pairs:
        each = [_highest(at[at["panel"] == panel], name, colour_by) for panel in _panels(rows)]
        return _highest(at, name, colour_by), each
    values = (
        rows[rows["valid"] & percentile_grid.at(rows["percentile"], target)]
        .groupby("configuration")["latency_us"]
        .apply(list)
    )
    runs = marked_runs(tables)  # those that died have no percentiles, and no rows
    of_configuration = runs.groupby("configuration")
    same_within, excluded = of_configuration["same_within"].min(), dict(iter(of_configuration["excluded"]))
    found = compared_lines(
        [
            TwoLines(
                *(values[line["configuration"]] for line in two),
                tuple(lost_runs(*(excluded[line["configuration"]] for line in two)).values()),
                same_within[two[0]["configuration"]],
            )
            for two in pairs
        ],
        tables.part,
    )

    def summarize(places: list[int]) -> str:
        if not places:
            return ""
        chosen = next((place for place in places if found[place][1] in DIFFERENT), places[0])
        _, word, _ = found[chosen]
        moves = _moves(name, pairs[chosen], *found[chosen], colour_by)
        return f"{pairs[chosen][0]['hover_title']}: {moves}{_of_how_many(len(places), word)}"

    every = range(len(pairs))
    each = [
        summarize([place for place in every if pairs[place][0]["panel"] == panel]) for panel in _panels(rows)
    ]
    return summarize(list(every)), each


def _highest(at: pd.DataFrame, name: str, colour_by: str) -> str:
    """Of lines of which no two differ in the colour alone."""
    if at.empty:
        return ""
    top = at.loc[at["latency_us"].idxmax()]
    of = f", the highest of {len(at)} lines" if len(at) > 1 else ""
    value = words.value(colour_by, top["colour"])
    return f"{top['hover_title']}: {name} is {words.latency(top['latency_us'])} at {value}{of}"


def _pairs(lines: pd.DataFrame, order: Sequence) -> list[tuple[pd.Series, pd.Series]]:
    """Of lines that differ in the colour alone the first of ``order``, or of an ordered factor, and each
    other; of another factor every two, the lower one first."""
    if len(order):
        lines = lines.sort_values("colour", key=lambda colours: colours.map(list(order).index))
    elif not _is_ordered(lines):
        return list(combinations((line for _, line in lines.sort_values("latency_us").iterrows()), 2))
    first, *others = (line for _, line in lines.iterrows())
    return [(first, other) for other in others]


def _is_ordered(lines: pd.DataFrame) -> bool:
    return not isinstance(lines["colour"].iloc[0], str)


def _distance(pair: tuple[pd.Series, pd.Series]) -> float:
    return abs(np.log(pair[1]["latency_us"] / pair[0]["latency_us"]))


def _moves(name: str, pair: tuple[pd.Series, pd.Series], result, word: str, why: str, colour_by: str) -> str:
    before, after = (
        f"{words.latency(end['latency_us'])} ({words.value(colour_by, end['colour'])})" for end in pair
    )
    ratio = words.ratio(result.ratio, result.low, result.high)
    if word not in DIFFERENT:
        return f"{name} has medians {before} and {after}, {ratio}: {word}{_more(result, word, why)}"
    if isinstance(pair[0]["colour"], str):
        return f"{name} is {before} against {after}, {ratio}"
    return f"{name} {'rises' if result.ratio >= 1 else 'falls'} from {before} to {after}, {ratio}"


def _more(result, word: str, why: str) -> str:
    """How alike *the same* is, or why it is *cannot tell* where the interval does not show that."""
    if word == SAME:
        return f" within {100 * result.same_within:.3g} %"
    if why == TOO_FEW:
        return f" from {result.runs_before} and {result.runs_after} runs"
    if why == LOST_MORE:
        return f", since {why}"
    return "" if result.low <= 1 <= result.high else " at 5 % for the whole page"


def _of_how_many(pairs: int, word: str) -> str:
    if pairs == 1:
        return ""
    return (
        f"; none of {pairs} such pairs is decided"
        if word not in DIFFERENT
        else f"; the largest decided of {pairs} such pairs"
    )
