"""Profiles in overview: an icicle of the stacks, pruned, and the share of each subsystem. The whole graph is
async-profiler's page."""

from collections import Counter

import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse.answers.profiles import typical
from kvstudy.analyse.comparison.words import MIN_RUNS
from kvstudy.analyse.frames import OTHER
from kvstudy.present import profiled_runs, stack_tree, theme, words
from kvstudy.present.figures.marks import INVALID_NAME
from kvstudy.present.figures.panels import nothing, panel_grid, titled
from kvstudy.present.stack_tree import IDLE, StackTree, short_name

FRAMES_MAX = 700  # a plotly icicle of thousands of frames does not scroll
DEPTH_MAX = 30  # levels on the screen at once; a click goes deeper
KIND_COLOURS = {
    "kv": theme.VERMILION,
    "one-nio": theme.BLUE,
    "JDK": theme.GREEN,
    "JVM and kernel": theme.VIOLET,
}
SUBSYSTEM_COLOURS = dict(
    zip(
        (
            "store",
            "socket read",
            "parsing",
            "response",
            "JIT",
            "GC",
            "WAL",
            "flush",
            "dispatch",
            "compaction",
            "profiling",
            "metrics",
            "JVM",
            "idle",
            OTHER,
        ),
        (
            theme.VERMILION,
            theme.BLUE,
            theme.TEAL,
            theme.GREEN,
            theme.VIOLET,
            theme.PURPLE,
            theme.OCHRE,
            theme.BROWN,
            *theme.RAMP[1:6],
            theme.AXIS,
            theme.QUIET_TEXT,
        ),
        strict=True,
    )
)
TIMED = (
    "cpu",
    "cpu_slow",
    "wall",
)  # events in which waiting counts samples; what is allocated around it is allocated
# Short enough for a telephone.
_HEADINGS = {
    "cpu": "cpu: samples",
    "cpu_slow": "cpu in the slow seconds",
    "wall": "wall clock: samples",
    "alloc": "alloc: bytes",
    "lock": "lock: time waited",
}
_TITLES = {
    "cpu": "CPU samples",
    "cpu_slow": "CPU samples of the slow seconds",
    "wall": "Samples of the wall clock",
    "alloc": "Bytes allocated",
    "lock": "Time waited for locks",
}
# What went to a subsystem, in a sentence.
_TOLD = {
    "cpu": "CPU",
    "cpu_slow": "CPU of the slow seconds",
    "wall": "time",
    "alloc": "memory",
    "lock": "time waited for locks",
}
_UNITS = {
    "cpu": "samples",
    "cpu_slow": "samples of the slow seconds",
    "wall": "samples",
    "alloc": "bytes allocated",
    "lock": "nanoseconds waited",
}


def icicle(tables, event: str = "cpu", share_min: float = 0.004) -> go.Figure:
    """Stacks of the valid runs given as an icicle, root on top; frames under ``share_min`` of all samples are
    left out. Grey, and without a ranking, when no run is valid."""
    profiled = profiled_runs.counted(profiled_runs.with_event(tables, event))
    tree = StackTree.of(profiled.stacks[profiled.stacks["event"] == event], share_min, FRAMES_MAX)
    if tree.total == 0:
        return nothing(
            f"no {event} profile", "Profiled runs come from experiments with profile: [cpu, alloc]."
        )
    named, reason, hottest = (
        profiled_runs.named(profiled),
        profiled_runs.invalid(profiled),
        tree.hottest(waiting=event not in TIMED),
    )
    kinds = (
        "Grey: no ranking rests on an invalid run."
        if reason
        else "Orange kv, blue one-nio, green JDK, violet JVM and kernel."
    )
    explained = f" {stack_tree.SWITCHING_TOLD}" if stack_tree.SWITCHING in hottest and not reason else ""
    return titled(
        _drawn(tree, event, grey=bool(reason)),
        f"{_TITLES.get(event, event)} by caller and callee",
        f"{reason}. {named}, {event}" if reason else f"Hottest frames of {named} by self: {hottest}",
        f"{words.count(tree.total)} {_UNITS.get(event, 'samples')}; frames under "
        f"{words.share(tree.share_min)} left out. {kinds} Click to zoom.{explained}",
    )


def _drawn(tree: StackTree, event: str, grey: bool) -> go.Figure:
    colours = [theme.INVALID if grey else KIND_COLOURS[_kind_of(path[-1])] for path in tree.frames]
    numbers = {path: str(number) for number, path in enumerate(tree.frames, start=1)}
    unit = _UNITS.get(event, "samples")
    texts = [
        (
            f"<b>{path[-1]}</b><br>{words.count(tree.sums[path])} {unit}<br>total "
            f"{tree.sums[path] / tree.total:.1%}, self {tree.own.get(path, 0) / tree.total:.1%}"
        )
        for path in tree.frames
    ]
    figure = go.Figure(
        go.Icicle(
            ids=["0", *numbers.values()],
            labels=[f"all {event}", *(short_name(path[-1]) for path in tree.frames)],
            parents=["", *(numbers.get(path[:-1], "0") for path in tree.frames)],
            values=[tree.total, *(tree.sums[path] for path in tree.frames)],
            branchvalues="total",
            tiling={"orientation": "v"},
            leaf={"opacity": 1},
            maxdepth=DEPTH_MAX,
            marker={"colors": [theme.GRID, *colours], "line": {"width": 0.5, "color": theme.PAPER}},
            hovertext=[f"all {event}", *texts],
            hovertemplate="%{hovertext}<extra></extra>",
            textfont={"size": 11},
            pathbar={"visible": True, "thickness": 22},
        )
    )
    depth = min(DEPTH_MAX, max((len(path) for path in tree.frames), default=1))
    figure.update_layout(height=150 + 20 * max(depth, 14), margin={"b": 12, "l": 12, "r": 12})
    return figure


def subsystem_shares(shares: pd.DataFrame, by: str = "label") -> go.Figure:
    """Horizontal bars, one stack per value of ``by`` and configuration; ``shares``: ``flame.shares``. One
    without a valid run is grey and in no sentence."""
    if shares.empty:
        return nothing("no profile", "Profiled runs come from experiments with profile: [cpu, alloc].")
    shares = typical(shares, by).sort_values(
        "event",
        key=lambda column: column.map({"cpu": 0, "cpu_slow": 1, "wall": 2, "alloc": 3, "lock": 4}),
        kind="stable",
    )
    shares["named"] = [
        name + ("" if valid else f" ({profiled_runs.INVALID})")
        for name, valid in zip(_names(shares, by), shares["valid"], strict=True)
    ]
    events = list(dict.fromkeys(shares["event"]))
    order = shares.groupby("subsystem")["share"].sum().sort_values(ascending=False).index.tolist()
    known = set(shares.loc[shares["valid"], "subsystem"])
    bars = shares["named"].nunique()
    row_px = 130 + 34 * bars
    figure = panel_grid(
        [_HEADINGS.get(event, event) for event in events],
        "share",
        "",
        columns=1,
        match_y=False,
        row_px=row_px,
    )
    for row, event in enumerate(events, start=1):
        for subsystem in order:
            mine = shares[(shares["event"] == event) & (shares["subsystem"] == subsystem)]
            figure.add_trace(
                _bar(mine[mine["valid"]], subsystem, event, showlegend=row == 1 and subsystem in known),
                row=row,
                col=1,
            )
            if not mine["valid"].all():
                figure.add_trace(_grey_bar(mine[~mine["valid"]], subsystem, event), row=row, col=1)
    if not shares["valid"].all():
        figure.add_trace(
            go.Bar(y=[None], x=[None], orientation="h", name=INVALID_NAME, marker={"color": theme.INVALID}),
            row=1,
            col=1,
        )
    figure.update_layout(
        barmode="stack",
        bargap=0.3,
        height=150 + len(events) * row_px,
        legend_y=-60 / (len(events) * row_px),
        legend_traceorder="normal",
    )
    figure.update_xaxes(tickformat=".0%", range=[0, 1], title_text="")
    findings = [_most(shares[shares["event"] == event], event) for event in events]
    return titled(
        figure,
        f"Share of each subsystem by {words.factor(by)}",
        findings[0],
        "Each sample is counted once, in the first subsystem of kvstudy.analyse.frames that knows one of its "
        "frames.",
        findings,
    )


def _names(shares: pd.DataFrame, by: str) -> list[str]:
    """Of each row its value of ``by``, with rate and connections where a value has several of these, and
    what else tells its configuration from others."""
    several = {
        name: shares.groupby(by)[name].transform("nunique", dropna=False) > 1
        for name in ("connections", "offered_rate_rps")
    }
    return [
        ", ".join(
            [
                words.value(by, value),
                *(words.value(name, shares.at[row, name]) for name in several if several[name][row]),
                *filter(None, [differs]),
            ]
        )
        for row, value, differs in zip(shares.index, shares[by], shares["differs"], strict=True)
    ]


def _bar(mine: pd.DataFrame, subsystem: str, event: str, showlegend: bool) -> go.Bar:
    return go.Bar(
        y=mine["named"],
        x=mine["share"],
        orientation="h",
        name=subsystem,
        legendgroup=subsystem,
        showlegend=showlegend,
        marker={"color": SUBSYSTEM_COLOURS[subsystem]},
        text=[f"{share:.0%}" if share >= 0.05 else "" for share in mine["share"]],
        textposition="inside",
        insidetextanchor="middle",
        insidetextfont={"color": theme.PAPER},
        hovertemplate=f"<b>{subsystem}</b> %{{x:.1%}} of {event}<br>%{{y}}<extra></extra>",
    )


def _grey_bar(mine: pd.DataFrame, subsystem: str, event: str) -> go.Bar:
    """Of values without a valid run: what is no colour's any more is said in words."""
    return go.Bar(
        y=mine["named"],
        x=mine["share"],
        orientation="h",
        name=subsystem,
        showlegend=False,
        customdata=mine["why"],
        marker={"color": theme.INVALID, "line": {"color": theme.PAPER, "width": 1}},
        text=[f"{subsystem} {share:.0%}" if share >= 0.12 else "" for share in mine["share"]],
        textposition="inside",
        insidetextanchor="middle",
        insidetextfont={"color": theme.TEXT},
        hovertemplate=f"<b>{subsystem}</b> %{{x:.1%}} of {event}<br>%{{y}}: %{{customdata}}<extra></extra>",
    )


def _most(shares: pd.DataFrame, event: str) -> str:
    """Where most of ``event`` goes, of the values with a valid run; waiting for events is no work and told
    apart."""
    valid, rest = shares[shares["valid"]], shares[~shares["valid"]]
    without = [
        f"{named[: -len(profiled_runs.INVALID) - 3]} ({why})"
        for named, why in dict(zip(rest["named"], rest["why"], strict=True)).items()
    ]
    invalid = f"{profiled_runs.INVALID}: {'; '.join(without)}" if without else ""
    if valid.empty:
        return f"{invalid}. No ranking rests on invalid runs"
    names = list(dict.fromkeys(valid["named"]))
    bars = [valid[valid["named"] == name] for name in names]
    if len(names) == 1:
        most = _largest(valid, event)
    elif len(names) == 2:
        most = "; ".join(f"{_largest(bar, event)} ({name})" for bar, name in zip(bars, names, strict=True))
    else:
        first = Counter(name for bar in bars for name in _ranked(bar, event).index[:1])
        counts = [f"{name} in {count} of {len(names)} bars" for name, count in first.most_common()]
        most = words.several(counts)
    left_out = invalid and f". Left out, {invalid}"
    fewest, what = int(valid["runs"].min()), _TOLD.get(event, event)
    if fewest < MIN_RUNS:  # which shows nothing of other runs
        return f"Most {what} went to {most}, in {words.counted(fewest, 'profiled run')} a bar{left_out}"
    return f"Most {what} goes to {most}{left_out}"


def _ranked(bar: pd.DataFrame, event: str) -> pd.Series:
    """Shares by subsystem, the largest first, without waiting for events."""
    by_name = bar.set_index("subsystem")["share"].sort_values(ascending=False, kind="stable")
    return by_name.drop(IDLE, errors="ignore") if event in TIMED else by_name


def _largest(bar: pd.DataFrame, event: str) -> str:
    parts = [f"{name} {words.share(share)}" for name, share in _ranked(bar, event).head(3).items()]
    idle = bar.loc[bar["subsystem"] == IDLE, "share"].sum() if event in TIMED else 0.0
    waiting = f", beside {words.share(idle)} around waiting for events (idle)" if idle else ""
    return f"{words.several(parts)}{waiting}"


def _kind_of(frame: str) -> str:
    if frame.startswith("kv/") or frame.startswith("kv."):
        return "kv"
    if frame.startswith(("one/nio", "one.nio")):
        return "one-nio"
    if frame.startswith(("java", "jdk", "sun", "com/sun")):
        return "JDK"
    return "JVM and kernel"
