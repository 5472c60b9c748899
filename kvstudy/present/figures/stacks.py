"""Profiles in overview: an icicle of the stacks, pruned, and the share of each subsystem. The whole graph is async-profiler's page."""

import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse.frames import OTHER
from kvstudy.present import theme, words
from kvstudy.present.figures.panels import nothing, panel_grid, titled
from kvstudy.present.stack_tree import StackTree, short_name

FRAMES_MAX = 700  # a plotly icicle of thousands of frames does not scroll
DEPTH_MAX = 30  # levels on the screen at once; a click goes deeper
KIND_COLOURS = {"kv": theme.VERMILION, "one-nio": theme.BLUE, "JDK": theme.GREEN, "JVM and kernel": theme.VIOLET}
SUBSYSTEM_COLOURS = dict(
    zip(
        ("store", "socket read", "parsing", "response", "JIT", "GC", "WAL", "flush", "dispatch", "compaction", "profiling", "metrics", "JVM", "idle", OTHER),
        (theme.VERMILION, theme.BLUE, theme.TEAL, theme.GREEN, theme.VIOLET, theme.PURPLE, theme.OCHRE, theme.BROWN, *theme.RAMP[1:6], theme.AXIS, theme.QUIET_TEXT),
        strict=True,
    )
)  # fmt: skip
_UNITS = {"cpu": "samples", "cpu_slow": "samples of the slow seconds", "wall": "samples", "alloc": "bytes allocated", "lock": "nanoseconds waited"}


def icicle(tables, event: str = "cpu", share_min: float = 0.004) -> go.Figure:
    """Stacks of all given runs as an icicle, root on top; frames under ``share_min`` of all samples are left out."""
    stacks = tables.stacks[tables.stacks["event"] == event]
    tree = StackTree.of(stacks, share_min, FRAMES_MAX)
    if tree.total == 0:
        return nothing(f"no {event} profile", "Profiled runs come from experiments with profile: [cpu, alloc].")
    figure = _drawn(tree, event)
    runs = stacks["run_id"].nunique()
    return titled(
        figure,
        f"Hottest frames by self: {tree.hottest()}",
        f"{words.count(tree.total)} {_UNITS.get(event, 'samples')} of {runs} run{'s' if runs > 1 else ''}; frames under {words.share(tree.share_min)} left"
        " out. Orange kv, blue one-nio, green JDK, violet JVM and kernel. Click to zoom.",
    )


def _drawn(tree: StackTree, event: str) -> go.Figure:
    colours = [KIND_COLOURS[_kind_of(path[-1])] for path in tree.frames]
    numbers = {path: str(number) for number, path in enumerate(tree.frames, start=1)}
    unit = _UNITS.get(event, "samples")
    texts = [
        f"<b>{path[-1]}</b><br>{words.count(tree.sums[path])} {unit}<br>total {tree.sums[path] / tree.total:.1%}, self {tree.own.get(path, 0) / tree.total:.1%}"
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
    """Horizontal bars, one stack per value of ``by``; ``shares`` has one row per ``by``, event and subsystem, and ``share`` (0 – 1)."""
    if shares.empty:
        return nothing("no profile", "Profiled runs come from experiments with profile: [cpu, alloc].")
    # Several profiled runs of one value: the median of their shares, scaled so that the bar is whole.
    shares = shares.groupby(["event", by, "subsystem"], as_index=False)["share"].median()
    shares["share"] /= shares.groupby(["event", by])["share"].transform("sum")
    shares = shares.sort_values("event", key=lambda column: column.map({"cpu": 0, "cpu_slow": 1, "wall": 2, "alloc": 3, "lock": 4}), kind="stable")
    events = list(dict.fromkeys(shares["event"]))
    order = shares.groupby("subsystem")["share"].sum().sort_values(ascending=False).index.tolist()
    figure = panel_grid([f"{event}: {_UNITS.get(event, 'samples')}" for event in events], "share", "", columns=1, match_y=False)
    for row, event in enumerate(events, start=1):
        for subsystem in order:
            mine = shares[(shares["event"] == event) & (shares["subsystem"] == subsystem)]
            figure.add_trace(
                go.Bar(
                    y=[words.value(by, value) for value in mine[by]], x=mine["share"], orientation="h", name=subsystem,
                    legendgroup=subsystem, showlegend=row == 1, marker={"color": SUBSYSTEM_COLOURS[subsystem]},
                    text=[f"{share:.0%}" if share >= 0.05 else "" for share in mine["share"]], textposition="inside",
                    insidetextanchor="middle", insidetextfont={"color": theme.PAPER},
                    hovertemplate=f"<b>{subsystem}</b> %{{x:.1%}} of {event}<br>%{{y}}<extra></extra>",
                ),
                row=row, col=1,
            )  # fmt: skip
    bars = shares[by].nunique()
    figure.update_layout(barmode="stack", bargap=0.3, height=150 + len(events) * (110 + 34 * bars))
    figure.update_layout(legend_y=-60 / (len(events) * (110 + 34 * bars)), legend_traceorder="normal")
    figure.update_xaxes(tickformat=".0%", range=[0, 1], title_text="")
    first = shares[shares["event"] == events[0]].sort_values("share", ascending=False)
    by_name = first.groupby("subsystem")["share"].median().sort_values(ascending=False)
    told = [f"{name} {words.share(share)}" for name, share in by_name.head(3).items()]
    return titled(figure, f"Most {events[0]} goes to {words.several(told)}", "Each sample is counted once: in the first subsystem, in the order of kvstudy.analyse.frames, that knows one of its frames.")


def _kind_of(frame: str) -> str:
    if frame.startswith("kv/") or frame.startswith("kv."):
        return "kv"
    if frame.startswith(("one/nio", "one.nio")):
        return "one-nio"
    if frame.startswith(("java", "jdk", "sun", "com/sun")):
        return "JDK"
    return "JVM and kernel"
