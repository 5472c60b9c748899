"""Two profiles in one flame graph that can be searched and zoomed: async-profiler's page with frames of ours
in it.

jfr-converter draws differences too, but from files and where Java is. The page that a sealed run brings has
the same script: its frames, the scale of its colours and its title are exchanged here, so that any two sets
of runs can be compared wherever a notebook runs.
"""

import json
import re
from collections.abc import Callable, Sequence
from html import escape

import pandas as pd
from IPython.display import HTML

from kvstudy.analyse.configuration import comparison_key, configured
from kvstudy.analyse.tables import Tables
from kvstudy.errors import KvstudyError
from kvstudy.present import flame, profiled_runs, series, words
from kvstudy.present.stack_tree import SWITCHING, SWITCHING_TOLD, StackTree

SHARE_MIN = 0.001
FRAMES_MAX = 4000
GAIN_MIN = 0.005  # a share of all samples is known to about half a percent
_EVENT_NAMES = {"cpu": "all seconds", "cpu_slow": "the slow seconds"}


def comparable(tables: Tables, factor: str, before, after) -> Tables:
    """The profiled runs of two values of ``factor`` that are alike in all else: of each configuration the
    last of each value, as many of one as of the other; valid ones where any configuration has them of both
    values, else INVALID ones too; none where nothing is alike."""
    runs = configured(tables.runs)
    runs["key"] = comparison_key(runs, factor)
    for pool in (runs[runs["verdict"] != "FAIL"], runs):
        chosen = []
        for _, group in pool.groupby("key"):
            sides = [_best(group[group[factor] == value]) for value in (before, after)]
            chosen += [run_id for side in sides for run_id in side["run_id"].tail(min(map(len, sides)))]
        if chosen:
            return tables.only(chosen)
    return tables.only([])


def shares(tables: Tables, factor: str, before, after) -> pd.DataFrame:
    """``flame.shares`` of the runs that are compared; of all where nothing can be. ``side``: the value of
    ``factor``, and what else tells a run from others of it, with which it shares no median."""
    found = comparable(tables, factor, before, after)
    found = tables if found.runs.empty else found
    rows = flame.shares(found)
    return rows if rows.empty else rows.assign(side=rows["run_id"].map(_sides(found.runs, factor)))


def _sides(runs: pd.DataFrame, factor: str) -> dict[str, str]:
    runs = configured(runs)
    runs["name"] = series.names(runs, said=(factor,))
    parts = (
        [words.value(factor, value) for value in runs[factor]],
        runs["name"] if runs["name"].nunique() > 1 else [""] * len(runs),
        series.differing(runs, "offered_rate_rps", ["name"]),
    )
    return {
        run_id: ", ".join(filter(None, dict.fromkeys(texts)))
        for run_id, *texts in zip(runs["run_id"], *parts, strict=True)
    }


def difference(tables: Tables, factor: str, before, after, event: str = "cpu") -> HTML:
    """The stacks of ``after``, each frame coloured by how its share of all samples differs from ``before``,
    or the other way round, as chosen; of the ``comparable`` runs."""
    found = comparable(profiled_runs.with_event(tables, event), factor, before, after)
    sides = [found.only(found.runs.loc[found.runs[factor] == value, "run_id"]) for value in (before, after)]
    return _both_ways(sides, [words.value(factor, value) for value in (before, after)], (event, event))


def between(tables: Tables, before: str, after: str) -> HTML:
    """Two events of the same runs, as cpu and cpu_slow: coloured and chosen as in ``difference``."""
    tables = profiled_runs.counted(tables)
    return _both_ways(
        [tables, tables], [_EVENT_NAMES.get(event, event) for event in (before, after)], (before, after)
    )


def _best(runs: pd.DataFrame) -> pd.DataFrame:
    valid = runs[runs["verdict"] != "FAIL"]
    return (valid if len(valid) else runs).sort_values("run_id")


def both_ways(names: Sequence[str], draw: Callable[[int], HTML]) -> HTML:
    """The stacks of the second side or those of the first, as chosen: a frame that only one side has is seen
    only in that side's picture. ``draw(step)``: those of the last of ``[::step]``, 1 or -1, of both sides."""
    return flame.one_at_a_time("Stacks of", (names[1], draw(1)), (names[0], draw(-1)))


def _both_ways(sides: list[Tables], names: list[str], events: tuple[str, str]) -> HTML:
    return both_ways(names, lambda step: _drawn(sides[::step], names[::step], events[::step]))


def _drawn(sides: list[Tables], names: list[str], events: tuple[str, str]) -> HTML:
    event = events[0]
    stacks = [side.stacks[side.stacks["event"] == of] for side, of in zip(sides, events, strict=True)]
    if any(side["samples"].sum() == 0 for side in stacks):
        return HTML(
            f"<p>No {escape(event)} profiles of both {escape(names[0])} and {escape(names[1])}, alike "
            "in all else: measure both with <code>profile: [cpu, alloc]</code>.</p>"
        )
    template = flame.page_of(sides[1], events[1])
    if template is None:
        return HTML(f"<p>No flame graph of {escape(names[1])} in its runs to draw the difference in.</p>")
    reasons = list(map(profiled_runs.invalid, sides))
    return drawn(
        stacks,
        names,
        event,
        template,
        words.several(list(dict.fromkeys(map(profiled_runs.named, sides)))),
        reasons,
    )


def drawn(
    stacks: list[pd.DataFrame],
    names: Sequence[str],
    event: str,
    template: str,
    runs: str,
    reasons: Sequence[str] = ("", ""),
) -> HTML:
    """Stacks of two sides (``stack``, ``samples``) in the second one's page ``template``. ``runs``: whose
    they are; ``reasons``: why a side is invalid."""
    before, after = _tree(stacks[0], 0.0, None), _tree(stacks[1], SHARE_MIN, FRAMES_MAX)
    title = f"{event}: {names[1]} against {names[0]}"
    subtitle, invalid = _subtitle(reasons, names, f"self share of {event}: {_largest(before, after)}")
    page = difference_page(template, before, after, f"{profiled_runs.INVALID}: {title}" if invalid else title)
    return HTML(
        f"<p><strong>{escape(subtitle)}.</strong><br>Of {escape(runs)}.\n"
        f"Width: share in {escape(names[1])}. Red: a larger share than in {escape(names[0])}; blue: a "
        "smaller one; yellow: only here; grey: within"
        f" {100 * GAIN_MIN:g} % of all. Shares, not seconds. Frames under {100 * after.share_min:.2g} "
        f"% are left out.{f' {SWITCHING_TOLD}' if SWITCHING in subtitle else ''}</p>"
        + flame.embedded(
            page,
            f"{subtitle}, {runs}" if invalid else f"{title}, {runs}",
            style=flame.MARKED if invalid else "",
        ).data
    )


def _subtitle(reasons: Sequence[str], names: Sequence[str], ranking: str) -> tuple[str, bool]:
    """What stands above the graph, and whether a run of a side is invalid: then no ranking."""
    against = f"{names[1]} against {names[0]}"
    if not any(reasons):
        return f"{against}, {ranking}", False
    if reasons[0] == reasons[1]:
        return f"{against}, {reasons[0]}; no ranking", True
    return (
        (
            f"{against}, "
            + "; ".join(f"{name} {reason}" for name, reason in zip(names, reasons, strict=True) if reason)
            + "; no ranking"
        ),
        True,
    )


def _largest(before: StackTree, after: StackTree) -> str:
    own = before.own_shares(), after.own_shares()
    moved = {name: own[1].get(name, 0) - own[0].get(name, 0) for name in own[0].keys() | own[1].keys()}
    return words.several(
        [
            f"{name} {100 * gain:+.1f} points"
            for name, gain in sorted(moved.items(), key=lambda item: (-abs(item[1]), item[0]))[:3]
        ]
    )


def _tree(stacks: pd.DataFrame, share_min: float, frames_max: int | None) -> StackTree:
    # How a frame was compiled (_[j], _[i], …) differs from run to run and is no difference of the code.
    plain = stacks.assign(stack=stacks["stack"].str.replace(r"_\[.\](?=;|$)", "", regex=True))
    return StackTree.of(plain, share_min, frames_max)


def difference_page(page: str, before: StackTree, after: StackTree, title: str) -> str:
    """async-profiler's ``page`` with the frames of ``after``; the number beside a frame is by how many of the
    samples of ``after`` its share differs. Raises KvstudyError when the page is not as the pinned converter
    makes it."""
    depth = 1 + max((len(path) for path in after.frames), default=0)
    calls, largest = _calls(before, after)
    names = sorted({path[-1] for path in after.frames})
    numbers = {name: number for number, name in enumerate(names, start=1)}
    lines = [
        f"d={gain};f({8 * numbers[path[-1]] if path else 0},{len(path)},{step},{width})"
        for path, gain, step, width in calls
    ]
    data = f"const cpool = {_script(['all', *names])};\n" + "\n".join(lines) + "\n\nsearch();\n"
    for pattern, new in (
        (r"const maxdiff = [-\d]+;", f"const maxdiff = {largest};"),
        (r"const levels = Array\(\d+\);", f"const levels = Array({depth});"),
        (r"(#canvas \{[^}]*height: )\d+px", rf"\g<1>{16 * depth}px"),
        (r"<h1>[^<]*</h1>", lambda _: f"<h1>{escape(title)}</h1>"),
        (r"const cpool = \[.*(?=</script>)", lambda _: data),
    ):
        page, found = re.subn(pattern, new, page, flags=re.DOTALL)
        if found != 1:
            raise KvstudyError(
                f"flame graph page: {found} places like {pattern!r} instead of one; made by another "
                "converter than this kvstudy knows"
            )
    return page


def _calls(before: StackTree, after: StackTree) -> tuple[list[tuple], int]:
    """For each drawn frame, the root first: its path, gain in samples of ``after`` (``U``: not in
    ``before``), how far right of the frame before it, and width; and the largest gain or loss."""
    calls, largest, last_left = [((), 0, 0, after.total)], 1, 0
    next_left = {(): 0}
    for path in after.frames:
        left = next_left[path[:-1]]
        next_left[path[:-1]], next_left[path] = left + after.sums[path], left
        gain = after.share(path) - before.share(path)
        samples = round(gain * after.total) if abs(gain) >= GAIN_MIN else 0
        largest = max(largest, abs(samples))
        calls.append(
            (
                path,
                "U" if samples and path not in before.sums else samples,
                left - last_left,
                after.sums[path],
            )
        )
        last_left = left
    return calls, largest


def _script(value) -> str:
    return json.dumps(value).replace("</", "<\\/")
