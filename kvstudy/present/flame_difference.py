"""Two profiles in one flame graph that can be searched and zoomed: async-profiler's page with frames of ours in it.

jfr-converter draws differences too, but from files and where Java is. The page that a sealed run brings has the same script: its frames,
the scale of its colours and its title are exchanged here, so that any two sets of runs can be compared wherever a notebook runs.
"""

import json
import re
from html import escape

import pandas as pd
from IPython.display import HTML

from kvstudy.analyse.tables import Tables
from kvstudy.errors import KvstudyError
from kvstudy.present import flame, words
from kvstudy.present.stack_tree import StackTree

SHARE_MIN = 0.001
FRAMES_MAX = 4000
GAIN_MIN = 0.005  # a share of all samples is known to about half a percent
_EVENT_NAMES = {"cpu": "all seconds", "cpu_slow": "the slow seconds"}


def difference(tables: Tables, factor: str, before, after, event: str = "cpu") -> HTML:
    """The stacks of ``after``, each frame coloured by how its share of all samples differs from ``before``."""
    runs, stacks = tables.runs, tables.stacks[tables.stacks["event"] == event]
    sides = [stacks[stacks["run_id"].isin(runs.loc[runs[factor] == value, "run_id"])] for value in (before, after)]
    return _drawn(tables, sides, [words.value(factor, value) for value in (before, after)], event, event)


def between(tables: Tables, before: str, after: str) -> HTML:
    """Two events of the same runs, as cpu and cpu_slow: the stacks of ``after``, coloured as in ``difference``."""
    sides = [tables.stacks[tables.stacks["event"] == event] for event in (before, after)]
    return _drawn(tables, sides, [_EVENT_NAMES.get(event, event) for event in (before, after)], "cpu", after)


def _drawn(tables: Tables, sides: list[pd.DataFrame], names: list[str], event: str, page_event: str) -> HTML:
    if any(side["samples"].sum() == 0 for side in sides):
        return HTML(f"<p>No {escape(event)} profiles of both {escape(names[0])} and {escape(names[1])}: measure both with <code>profile: [cpu, alloc]</code>.</p>")
    template = flame.page_of(tables.only(sides[1]["run_id"].drop_duplicates()), page_event)
    if template is None:
        return HTML(f"<p>No flame graph of {escape(names[1])} in its runs to draw the difference in.</p>")
    before, after = _tree(sides[0], 0.0, None), _tree(sides[1], SHARE_MIN, FRAMES_MAX)
    title = f"{event}: {names[1]} against {names[0]}"
    own = before.own_shares(), after.own_shares()
    moved = {name: own[1].get(name, 0) - own[0].get(name, 0) for name in own[0].keys() | own[1].keys()}
    largest = [f"{name} {100 * gain:+.1f} %" for name, gain in sorted(moved.items(), key=lambda item: -abs(item[1]))[:3]]
    return HTML(
        f"<p><strong>{escape(names[1])} against {escape(names[0])}, self share of {escape(event)}: {escape(words.several(largest))}.</strong><br>"
        f"Width: share in {escape(names[1])}. Red: a larger share than in {escape(names[0])}; blue: a smaller one; yellow: only here; grey: within"
        f" {100 * GAIN_MIN:g} % of all. Shares, not seconds. Frames under {100 * after.share_min:.2g} % are left out.</p>"
        + flame.embedded(difference_page(template, before, after, title), title).data
    )


def _tree(stacks: pd.DataFrame, share_min: float, frames_max: int | None) -> StackTree:
    # How a frame was compiled (_[j], _[i], …) differs from run to run and is no difference of the code.
    plain = stacks.assign(stack=stacks["stack"].str.replace(r"_\[.\](?=;|$)", "", regex=True))
    return StackTree.of(plain, share_min, frames_max)


def difference_page(page: str, before: StackTree, after: StackTree, title: str) -> str:
    """async-profiler's ``page`` with the frames of ``after``; the number beside a frame is by how many of the samples of ``after`` its share
    differs. Raises KvstudyError when the page is not as the pinned converter makes it."""
    depth = 1 + max((len(path) for path in after.frames), default=0)
    calls, largest = _calls(before, after)
    names = sorted({path[-1] for path in after.frames})
    numbers = {name: number for number, name in enumerate(names, start=1)}
    lines = [f"d={gain};f({8 * numbers[path[-1]] if path else 0},{len(path)},{step},{width})" for path, gain, step, width in calls]
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
            raise KvstudyError(f"flame graph page: {found} places like {pattern!r} instead of one; made by another converter than this kvstudy knows")
    return page


def _calls(before: StackTree, after: StackTree) -> tuple[list[tuple], int]:
    """For each drawn frame, the root first: its path, gain in samples of ``after`` (``U``: not in ``before``), how far right of the frame
    before it, and width; and the largest gain or loss."""
    calls, largest, last_left = [((), 0, 0, after.total)], 1, 0
    next_left = {(): 0}
    for path in after.frames:
        left = next_left[path[:-1]]
        next_left[path[:-1]], next_left[path] = left + after.sums[path], left
        gain = after.share(path) - before.share(path)
        samples = round(gain * after.total) if abs(gain) >= GAIN_MIN else 0
        largest = max(largest, abs(samples))
        calls.append((path, "U" if samples and path not in before.sums else samples, left - last_left, after.sums[path]))
        last_left = left
    return calls, largest


def _script(value) -> str:
    return json.dumps(value).replace("</", "<\\/")
