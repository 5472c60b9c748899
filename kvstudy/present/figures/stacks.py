"""Profiles in overview: an icicle of the stacks, pruned, and the share of each subsystem. The whole graph is async-profiler's page."""

from collections import defaultdict
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from kvstudy.analyse.frames import OTHER
from kvstudy.present import theme, words
from kvstudy.present.figures.panels import nothing, panel_grid, titled

FRAMES_MAX = 700
DEPTH_MAX = 30  # levels on the screen at once; a click goes deeper
KIND_COLOURS = {"kv": theme.VERMILION, "one-nio": theme.BLUE, "JDK": theme.GREEN, "JVM and kernel": theme.VIOLET}
SUBSYSTEM_COLOURS = dict(
    zip(
        ("store", "socket read", "parsing", "response", "JIT", "GC", "WAL", "flush", "dispatch", "compaction", "profiling", "metrics", "JVM", "idle", OTHER),
        (theme.VERMILION, theme.BLUE, theme.TEAL, theme.GREEN, theme.VIOLET, theme.PURPLE, theme.OCHRE, theme.BROWN, *theme.RAMP[1:6], theme.AXIS, theme.QUIET_TEXT),
        strict=True,
    )
)  # fmt: skip
_EVENT_NAMES = {"cpu": "all seconds", "cpu_slow": "the slow seconds"}
_UNITS = {"cpu": "samples", "cpu_slow": "samples of the slow seconds", "wall": "samples", "alloc": "bytes allocated", "lock": "nanoseconds waited"}


def icicle(tables, event: str = "cpu", share_min: float = 0.004) -> go.Figure:
    """Stacks of all given runs as an icicle, root on top; frames under ``share_min`` of all samples are left out."""
    stacks = tables.stacks[tables.stacks["event"] == event]
    tree = _Tree.of(stacks, share_min)
    if tree.total == 0:
        return nothing(f"no {event} profile", "Profiled runs come from experiments with profile: [cpu, alloc].")
    figure = _drawn(tree, event, [KIND_COLOURS[_kind_of(path[-1])] for path in tree.frames], [""] * len(tree.frames))
    runs = stacks["run_id"].nunique()
    return titled(
        figure,
        _hottest(stacks, tree.total),
        f"{words.count(tree.total)} {_UNITS.get(event, 'samples')} of {runs} run{'s' if runs > 1 else ''}; frames under {words.share(tree.share_min)} left"
        " out. Orange kv, blue one-nio, green JDK, violet JVM and kernel. Click to zoom.",
    )


def icicle_difference(tables, factor: str, before, after, event: str = "cpu", share_min: float = 0.004) -> go.Figure:
    """The stacks of ``after``, each frame coloured by how its share of all samples differs from ``before``: red gained, blue lost."""
    runs = tables.runs
    stacks = tables.stacks[tables.stacks["event"] == event]
    sides = [stacks[stacks["run_id"].isin(runs.loc[runs[factor] == value, "run_id"])] for value in (before, after)]
    names = [words.value(factor, value) for value in (before, after)]
    if any(side.empty for side in sides):
        return nothing(f"{event} profiles of {names[0]} and {names[1]} are not both there", "Measure both with profile: [cpu, alloc].")
    return _difference(sides, names, event, share_min)


def icicle_between(tables, before: str, after: str, share_min: float = 0.004) -> go.Figure:
    """Two events of the same runs, as cpu and cpu_slow: the stacks of ``after``, coloured as in ``icicle_difference``."""
    sides = [tables.stacks[tables.stacks["event"] == event] for event in (before, after)]
    names = [_EVENT_NAMES.get(event, event) for event in (before, after)]
    if any(side.empty for side in sides):
        return nothing(f"no profile of both {names[0]} and {names[1]}", "Profiled runs have them from profile: [cpu].")
    return _difference(sides, names, "cpu", share_min)


def _difference(sides: list[pd.DataFrame], names: list[str], event: str, share_min: float) -> go.Figure:
    other, tree = _Tree.of(sides[0], 0.0, frames_max=1_000_000), _Tree.of(sides[1], share_min)
    gains = [tree.sums[path] / tree.total - other.sums.get(path, 0) / other.total for path in tree.frames]
    figure = _drawn(tree, event, [_gain_colour(gain) for gain in gains], [f"<br>{gain:+.1%} of all against {names[0]}" for gain in gains])
    own = {side: _own_shares(part) for side, part in zip(("before", "after"), sides, strict=True)}
    moved = {name: own["after"].get(name, 0) - own["before"].get(name, 0) for name in own["before"].keys() | own["after"].keys()}
    largest = sorted(moved.items(), key=lambda item: -abs(item[1]))[:3]
    return titled(
        figure,
        f"{names[1]} against {names[0]}, self share of {event}: {words.several([f'{name} {gain:+.1%}' for name, gain in largest])}",
        f"Width: share in {names[1]}. Red: more of all {event} than in {names[0]}; blue: less; grey: within 0.5 %. Shares, not seconds.",
    )


@dataclass(frozen=True)
class _Tree:
    """``sums`` and ``own``: samples by path from the root, with and without callees; ``frames``: the paths that are drawn, sorted."""

    total: int
    sums: dict[tuple, int]
    own: dict[tuple, int]
    frames: list[tuple]
    share_min: float

    @classmethod
    def of(cls, stacks: pd.DataFrame, share_min: float, frames_max: int = FRAMES_MAX) -> "_Tree":
        sums, own = defaultdict(int), defaultdict(int)
        for stack, samples in zip(stacks["stack"], stacks["samples"], strict=True):
            frames = tuple(stack.split(";"))
            own[frames] += int(samples)
            for depth in range(1, len(frames) + 1):
                sums[frames[:depth]] += int(samples)
        total = int(stacks["samples"].sum())
        kept = [path for path, samples in sums.items() if samples >= share_min * total]
        # Raised until the browser can take it: a plotly icicle of thousands of frames does not scroll.
        while len(kept) > frames_max:
            share_min = max(share_min * 1.25, 1e-5)
            kept = [path for path in kept if sums[path] >= share_min * total]
        return cls(total, sums, own, sorted(kept), share_min)


def _drawn(tree: _Tree, event: str, colours: list[str], more: list[str]) -> go.Figure:
    numbers = {path: str(number) for number, path in enumerate(tree.frames, start=1)}
    unit = _UNITS.get(event, "samples")
    texts = [
        f"<b>{path[-1]}</b><br>{words.count(tree.sums[path])} {unit}<br>total {tree.sums[path] / tree.total:.1%}, self {tree.own.get(path, 0) / tree.total:.1%}{note}"
        for path, note in zip(tree.frames, more, strict=True)
    ]
    figure = go.Figure(
        go.Icicle(
            ids=["0", *numbers.values()],
            labels=[f"all {event}", *(_short(path[-1]) for path in tree.frames)],
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


def _gain_colour(gain: float) -> str:
    """Five steps each way: a share is known to about half a percent of all samples."""
    if abs(gain) < 0.005:
        return theme.GRID
    step = min(len(theme.GAINED) - 1, int(abs(gain) / 0.02))
    return (theme.GAINED if gain > 0 else theme.LOST)[step]


def _own_shares(stacks: pd.DataFrame) -> dict[str, float]:
    own = defaultdict(int)
    for stack, samples in zip(stacks["stack"], stacks["samples"], strict=True):
        own[_short(stack.rsplit(";", 1)[-1])] += int(samples)
    total = sum(own.values())
    return {name: samples / total for name, samples in own.items()}


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


def _short(frame: str) -> str:
    """``kv/lsm/LsmStore.get_[j]`` → "LsmStore.get"."""
    return frame.rsplit("/", 1)[-1].split("_[")[0]


def _kind_of(frame: str) -> str:
    if frame.startswith("kv/") or frame.startswith("kv."):
        return "kv"
    if frame.startswith(("one/nio", "one.nio")):
        return "one-nio"
    if frame.startswith(("java", "jdk", "sun", "com/sun")):
        return "JDK"
    return "JVM and kernel"


def _hottest(stacks: pd.DataFrame, total: int) -> str:
    top = sorted(_own_shares(stacks).items(), key=lambda item: -item[1])[:3]
    return f"Hottest frames by self: {words.several([f'{name} {words.share(share)}' for name, share in top])}"
