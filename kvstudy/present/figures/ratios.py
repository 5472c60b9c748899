"""Before against after: one ratio with its interval per measure and configuration; 1 means no change."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse.answers import RULER
from kvstudy.analyse.comparison.words import (
    CANNOT_TELL,
    DIFFERENT,
    FAVOURABLE,
    MIN_RUNS,
    SAME,
    WORDS,
)
from kvstudy.analyse.configuration import CPU, INVALID, RATE
from kvstudy.analyse.option_duets import BY_DUET
from kvstudy.analyse.options import Tally, at_highest_rate, of_sizes, tally
from kvstudy.present import false_words, theme, words
from kvstudy.present.claim_text import REFERENCE, YOURS
from kvstudy.present.figures.panels import nothing, ratio_axis, titled

ROW_PX = 24
ROWS_ON_A_SCREEN = 16  # of the chart that a page begins with
_PREFERRED = ("p50", CPU, "p99", RATE)
APART = "The sides were not measured in turn: a machine that drifts meanwhile looks like a change."
NAME_LETTERS = 58
_NO_PAIR = "no configuration has valid runs of both sides"
_RATIOS = {
    False: "Ratio of medians over runs with the 95 % interval of its t test",
    True: "Ratio over the launches of a duet, or of medians over runs, with its 95 % interval",
}
MEASURE_COLOURS = {
    "p50": theme.BLUE,
    "p99": theme.VERMILION,
    "p99.9": theme.PURPLE,
    RATE: theme.GREEN,
    CPU: theme.TEXT,
}


def ratios(compared: pd.DataFrame, before: str, after: str, doubts: str = "") -> go.Figure:
    """A row per measure and configuration of ``analyse.configuration.comparisons``; colour and shape say the
    word. ``doubts``: what to say of invalid runs where they leave nothing to compare."""
    if compared.empty:
        more = doubts or (
            "Measure both with the same experiment file; a run whose processors slept is not compared with "
            "one whose processors were kept awake."
        )
        return nothing(_NO_PAIR, f"{_sides(before, after)} {more}".strip())
    outcomes, every = _outcomes(compared, before, after), compared
    compared = compared[compared["measure"] != INVALID].iloc[::-1]
    if compared.empty:
        return nothing(_NO_PAIR, f"{_sides(before, after)}{outcomes} {doubts}".strip())
    # Only what tells the rows apart; what is the same in all of them may be the very thing that is compared.
    varied = [column for column in ("workload", "connections") if compared[column].nunique() > 1]
    names = [_name(row, varied) for row in compared.itertuples()]
    figure = _rows_by_word(
        compared,
        names,
        [
            f"{_describe(row, before, after)}<br>{name}"
            for row, name in zip(compared.itertuples(), names, strict=True)
        ],
        [_decided(row).removesuffix("-open") for row in compared.itertuples()],
        f"{after}<br>/ {before} (log)",
    )
    counts = compared["word"].value_counts()
    parts = [f"{counts[word]} {word}" for word in WORDS if word in counts]
    few = (
        ""
        if compared[["runs_before", "runs_after"]].min().min() >= MIN_RUNS
        else f" Under {MIN_RUNS} runs a side the word is always “{CANNOT_TELL}”."
    )
    if len(compared) == 1:
        row = compared.iloc[0]
        finding = (
            f"{after} against {before}: {row['measure']} "
            f"{words.ratio(*row[['ratio', 'low', 'high']])}, "
            f"{words.word(row)}"
        )
    else:
        finding = (
            f"{after} against {before}: {words.several(parts)} of {len(compared)} "
            f"comparisons{_extreme(compared)}"
        )
    apart = f" {APART}" if compared["apart"].any() else ""
    better = ", green is better" if compared["word"].isin(FAVOURABLE).any() else ""
    return titled(
        figure,
        "Ratio of each measure, one side over the other",
        finding,
        f"Ratio of medians over runs with the 95 % interval of its t test; left of 1 is lower{better}.{few}"
        f"{apart}{outcomes}{false_words.of_comparisons(every)}",
    )


def _sides(before: str, after: str) -> str:
    return f"Before: {before}; after: {after}." if before != after else ""


def _rows_by_word(
    compared: pd.DataFrame, names: list[str], texts: list[str], symbols: list[str], axis: str
) -> go.Figure:
    """A row per comparison, the first one lowest, with its interval; a trace per word, in its colour.
    ``names``, ``texts`` (under the pointer) and ``symbols``: of each row."""
    figure = go.Figure()
    for word in [word for word in WORDS if (compared["word"] == word).any()]:
        mine = np.flatnonzero(compared["word"] == word)
        rows = compared.iloc[mine]
        figure.add_trace(
            go.Scatter(
                x=rows["ratio"],
                y=[names[place] for place in mine],
                mode="markers",
                name=word,
                error_x=_interval(rows),
                marker={
                    "color": theme.NAMED[word],
                    "size": 10,
                    "symbol": [symbols[place] for place in mine],
                },
                text=[texts[place] for place in mine],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    figure.add_vline(x=1, line={"color": theme.AXIS, "width": 1.2, "dash": "dash"})
    ratio_axis(figure, *_ends(compared), axis)
    figure.update_yaxes(categoryorder="array", categoryarray=names, title_text="")
    figure.update_layout(height=190 + ROW_PX * len(names), legend_y=-70 / (ROW_PX * len(names) + 40))
    return figure


def _outcomes(compared: pd.DataFrame, before: str, after: str) -> str:
    """A sentence on the runs that the service made invalid; "" where it made none."""
    rows = compared[compared["measure"] == INVALID]
    parts = [
        (
            f"{_place(row, ['workload', 'connections'])}: {row.invalid_before} of {row.of_before} "
            f"({before}) and {row.invalid_after} of {row.of_after} ({after}), {row.word}"
        )
        for row in rows.itertuples()
    ]
    return (
        (
            f" Runs that the service made invalid: {'; '.join(parts)}. Of a side that lost more runs "
            "nothing favourable is said."
        )
        if parts
        else ""
    )


def decided(compared: pd.DataFrame) -> go.Figure:
    """What ``options.every`` decides: a row per value, workload and measure, the largest
    difference on top; colour and shape say the word."""
    top = at_highest_rate(compared[~compared["experiment"].isin(RULER)])
    counts = tally(top)
    top = top[(top["measure"] != INVALID) & (top["word"] != CANNOT_TELL)]
    count, largest, top = len(top), _largest_of_options(top), _on_a_screen(top)
    if top.empty:
        return nothing("no option is decided yet", "More repeats may decide one: --preset full")
    top = top.iloc[np.log(top["ratio"]).abs().argsort(kind="stable")]
    names = [f"{row.after_name}, {row.workload}: {row.measure}" for row in top.itertuples()]
    names = [
        (name if names.count(name) == 1 else f"{row.experiment}: {name}") + whose
        for name, row, whose in zip(names, top.itertuples(), _owners(top), strict=True)
    ]
    figure = _rows_by_word(
        top,
        names,
        [
            f"{row.measure} {_describe(row, row.before_name, row.after_name)}<br>{row.experiment}, "
            f"{_name(row, ['workload', 'connections'])}"
            for row in top.itertuples()
        ],
        [_decided(row) for row in top.itertuples()],
        "with the option / with its default (log)",
    )
    return titled(
        figure,
        "What options change, where the runs decide",
        f"{_counted(counts)}{largest}",
        f"{_left_out(count, len(top))}Left of 1 is less. Ratio over the launches of a duet, or where there "
        "is none of medians over runs at the highest rate of each experiment, with its 95 % interval.",
    )


def _counted(counts: Tally) -> str:
    """As the card of the page counts them; sizes of the workload, which it leaves out, beside that."""
    options = f"{counts.decided} of {words.counted(counts.of, 'comparison')} of options are decided"
    sizes = f"{counts.sizes_decided} of {counts.sizes} of sizes of the workload"
    if not counts.sizes:
        return options
    return f"{options}, and {sizes}" if counts.of else f"{sizes} are decided"


def _on_a_screen(rows: pd.DataFrame) -> pd.DataFrame:
    """Of more rows than a screen holds first one measure of each value and workload, the median before
    others, then the next of each; within these those whose ratio is farthest from 1."""
    if len(rows) <= ROWS_ON_A_SCREEN:
        return rows
    place = rows["measure"].map({name: at for at, name in enumerate(_PREFERRED)}).fillna(len(_PREFERRED))
    order = rows.assign(place=place, size=-np.log(rows["ratio"]).abs()).sort_values("place", kind="stable")
    order["turn"] = order.groupby(["experiment", "before_name", "after_name", "workload"]).cumcount()
    chosen = order.sort_values(["turn", "size"], kind="stable").head(ROWS_ON_A_SCREEN)
    return chosen.drop(columns=["place", "size", "turn"])


def _left_out(count: int, drawn: int) -> str:
    of = f"{drawn} of {count} are drawn, of each value the median first"
    return f"{of}; all stand in the picture of every option. " if drawn < count else ""


def options(compared: pd.DataFrame) -> go.Figure:
    """``options.every``, or ``compared_options``: a row per experiment, value and workload; one mark per
    measure, hollow where it decides nothing."""
    if compared.empty:
        return nothing("no experiment varied an option", "Measure one: kvstudy run experiments/handler.yaml")
    top = at_highest_rate(compared)
    outcomes, top = _outcomes(top, "default", "instead"), top[top["measure"] != INVALID].iloc[::-1]
    if top.empty:
        return nothing("no option has valid runs on both sides", outcomes.strip())
    names = [
        f"{row.experiment}: {row.after_name} / {row.before_name}, {row.workload}{whose}"
        for row, whose in zip(top.itertuples(), _owners(top), strict=True)
    ]
    short = [name if len(name) <= NAME_LETTERS else f"{name[: NAME_LETTERS - 1]}…" for name in names]
    names = [
        name if len(set(n for n, s in zip(names, short, strict=True) if s == name)) == 1 else whole
        for name, whole in zip(short, names, strict=True)
    ]
    figure = go.Figure()
    for measure, hue in MEASURE_COLOURS.items():
        mine = (top["measure"] == measure).to_numpy()
        rows = top[mine]
        if rows.empty:
            continue
        own = [name for name, chosen in zip(names, mine, strict=True) if chosen]
        figure.add_trace(
            go.Scatter(
                x=rows["ratio"],
                y=own,
                mode="markers",
                name=measure,
                orientation="h",
                offsetgroup=measure,
                error_x=_interval(rows),
                marker={"color": hue, "size": 9, "symbol": [_decided(row) for row in rows.itertuples()]},
                text=[
                    (
                        f"{measure} {_describe(row, row.before_name, row.after_name)}<br>{row.experiment}, "
                        f"{_name(row, ['workload', 'connections'])}"
                    )
                    for row in rows.itertuples()
                ],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    figure.add_vline(x=1, line={"color": theme.AXIS, "width": 1.2, "dash": "dash"})
    ratio_axis(figure, *_ends(top), "instead of the default / default (log)")
    order = list(dict.fromkeys(names))
    figure.update_yaxes(categoryorder="array", categoryarray=order, title_text="")
    measures = top["measure"].nunique()
    row_px = max(ROW_PX, 12 * measures)
    # The measures of a row stand one above the other, or their intervals would hide each other.
    figure.update_layout(
        scattermode="group",
        scattergap=0.25,
        height=200 + row_px * len(order),
        legend_y=-70 / (row_px * len(order) + 40),
    )
    counts = top["word"].value_counts()
    parts = [f"{counts[word]} {word}" for word in WORDS if word in counts]
    left = len(compared) - len(top)
    more = (
        (
            f"; {words.counted(left, 'comparison')} at lower ones {'stands' if left == 1 else 'stand'} in "
            "the table of 06-before-after alone"
        )
        if left
        else ""
    )
    drawn = (
        f"{_RATIOS[bool(top.get('by', pd.Series()).eq(BY_DUET).any())]}, at the highest rate and most "
        f"connections of each experiment{more}. Filled: decided, faster where a latency is lower or a rate "
        "higher, cheaper where the service uses less CPU; diamond: the same within the experiment's "
        f"limit; hollow: cannot tell.{false_words.of_comparisons(top)}{outcomes}"
    )
    is_size = of_sizes(top)
    what = " or ".join(
        (["an option"] if not is_size.all() else []) + (["a size of the workload"] if is_size.any() else [])
    )
    varied = (
        f"{words.counted(top['experiment'].nunique(), 'experiment')} varied {what}: of "
        f"{words.counted(len(top), 'comparison')} {words.several(parts)}"
    )
    largest = _largest_of_options(top)
    return titled(figure, "Every option against its default", f"{varied}{largest}", drawn)


def _decided(row) -> str:
    return (
        "circle-open"
        if row.word == CANNOT_TELL
        else "diamond"
        if row.word == SAME
        else "triangle-left"
        if row.ratio < 1
        else "triangle-right"
    )


def _name(row, varied: list[str]) -> str:
    return f"{_place(row, varied)}: {row.measure}"


def _place(row, varied: list[str]) -> str:
    parts = [words.value(column, getattr(row, column)) for column in (*varied, "offered_rate_rps")]
    return ", ".join([*parts, *filter(None, [row.differs])])


def _describe(row, before: str, after: str) -> str:
    value = words.rate if row.measure == RATE else words.latency
    doubt = f"; {words.doubt(row.why, row.found)}" if row.word == CANNOT_TELL else ""
    return (
        f"<b>{words.word(row)}</b>: "
        f"{words.ratio(row.ratio, row.low, row.high)}{doubt}"
        f"<br>{before} {value(row.before)}{_of(row, row.runs_before)}, {after} {value(row.after)}"
        f"{_of(row, row.runs_after)}{_behind(row)}"
    )


def _of(row, runs: int) -> str:
    return "" if _is_duet(row) else f" ({words.counted(runs, 'run')})"


def _is_duet(row) -> bool:
    return getattr(row, "by", "") == BY_DUET


def _behind(row) -> str:
    """Of a row of ``options.every``: that a duet says it, and what another one leaves open."""
    duet = [f"duet of {words.counted(row.runs_before, 'launch')}"] if _is_duet(row) else []
    beside = [row.beside] if getattr(row, "beside", "") else []
    return f"<br>{', '.join([*duet, *beside])}" if duet or beside else ""


def _owners(rows: pd.DataFrame) -> list[str]:
    """Of each row whose it is, where some are the reader's own and some the reference's."""
    own = rows.get("is_own", pd.Series(False, index=rows.index))
    return [f" ({YOURS if mine else REFERENCE})" if own.nunique() > 1 else "" for mine in own]


def _largest_of_options(compared: pd.DataFrame) -> str:
    """Sizes of the workload aside, which change more by far, and of which nobody is the default."""
    is_size = of_sizes(compared)
    return _extreme(compared[~is_size], " of an option" if is_size.any() else "")


def _extreme(compared: pd.DataFrame, of: str = "") -> str:
    certain = compared[compared["word"].isin(DIFFERENT)]
    if certain.empty:
        return ""
    row = certain.loc[np.log(certain["ratio"].clip(lower=1e-9)).abs().idxmax()]
    option = f"{row['after_name']}, " if "after_name" in row else ""
    return (
        f"; the largest decided{of}: {option}{row['workload']} {row['measure']} "
        f"{words.ratio(*row[['ratio', 'low', 'high']])}"
    )


def _ends(rows: pd.DataFrame) -> tuple[float, float]:
    """Of all intervals, and of the ratios that have none."""
    return rows[["low", "ratio"]].min(axis=None), rows[["high", "ratio"]].max(axis=None)


def _interval(rows: pd.DataFrame) -> dict:
    """The bars of each ratio's interval; none where the runs are too few for one."""
    return {
        "type": "data",
        "symmetric": False,
        "array": rows["high"] - rows["ratio"],
        "arrayminus": rows["ratio"] - rows["low"],
        "thickness": 1.6,
        "width": 4,
    }
