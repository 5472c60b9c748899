"""Select a part of a run, see what ran then: latency, events and CPU samples on one clock, and below it the
flame graph, the slow answers and the events of whatever part is dragged over.

    moment.shown(tables)                 a profiled run of each workload, that with the slowest answer first
    moment.shown(tables, worst=run_id)   and another run, whose slow answers were kept one by one

One HTML fragment, for JupyterLab and the exported pages: everything that a part needs is in it, so that
neither a server nor a kernel is asked. A run without samples that have a time (not profiled, or by a wall
clock alone) says so, and shows its slow answers and events.
"""

import json
import math
import os
import re
from html import escape
from pathlib import Path

from IPython.display import HTML
from plotly.offline import get_plotlyjs

from kvstudy.analyse import conditions, tail
from kvstudy.analyse.by_second import SECOND_S, step_s
from kvstudy.analyse.tables import Tables
from kvstudy.errors import KvstudyError
from kvstudy.present import flame, profiled_runs, theme, words
from kvstudy.present.figures.marks import marked_runs
from kvstudy.present.figures.moment import clock
from kvstudy.project import EXPORT_VARIABLE
from kvstudy.record import heatmap
from kvstudy.record.jfr import epoch_s
from kvstudy.record.run_folder import SealedRun, open_run

RUNS_MAX = 4
_PAGE = "cpu.heatmap.html"
_CONFIG = theme.CONFIG | {"modeBarButtonsToRemove": ["lasso2d", "autoScale2d"]}  # dragging chooses a part
_ASSETS = Path(__file__).parent / "assets"
# What of the flame graph's page a part of the run changes; moment.js puts it in.
_HOLES = (
    (r"const maxdiff = [-\d]+;", "const maxdiff = @MAXDIFF@;"),
    (r"const levels = Array\(\d+\);", "const levels = Array(@DEPTH@);"),
    (r"(#canvas \{[^}]*height: )\d+px", r"\g<1>@HEIGHT@px"),
    (r"<h1>[^<]*</h1>", "<h1>@TITLE@</h1>"),
    (r"const cpool = \[.*(?=</script>)", "@FRAMES@"),
)


def shown(tables: Tables, worst: str | None = None) -> HTML:
    """The fragment; a line of text when no run has anything to show."""
    run_ids = [*_profiled(tables)[: RUNS_MAX - bool(worst)], *([worst] if worst else [])]
    if not run_ids:
        return HTML("<p>No profiled run. Experiments with <code>profile: [cpu, alloc]</code> make them.</p>")
    runs = [_describe_run(tables.only([run_id])) for run_id in run_ids]
    template = next((run.pop("template") for run in runs if run.get("template")), "")
    for run in runs:
        run.pop("template", None)
    stored = json.dumps({"runs": runs, "template": template}, separators=(",", ":"), allow_nan=False).replace(
        "</", "<\\/"
    )
    height_px = runs[0]["figure"]["layout"]["height"]
    options = "".join(f'<option value="{at}">{escape(run["named"])}</option>' for at, run in enumerate(runs))
    return HTML(
        '<div class="moment"><form autocomplete="off" onsubmit="return false">'
        f'<label>Run <select class="run" autocomplete="off">{options}</select></label>'
        '<label>from <input class="from" type="number" step="0.02" min="0"> s</label>'
        '<label>to <input class="to" type="number" step="0.02" min="0"> s</label>'
        '<button type="button" class="whole">Whole run</button></form>'
        '<p class="hint">Drag over a part of the chart, or type from and to: what ran then stands '
        "below it.</p>"
        '<figure class="chart"><figcaption>'
        '<span class="title"></span><span class="drawn"></span></figcaption>'
        f'<div class="plot" role="group" aria-label="Chart: a run on one clock" style="height:{height_px}px">'
        '</div></figure><p class="told" role="status"><strong></strong> <span></span></p>'
        '<div class="views" role="group" aria-label="Flame graph">'
        '<button type="button" class="samples" aria-pressed="true">Samples of this part</button>'
        '<button type="button" class="against" aria-pressed="false">Difference against the rest</button>'
        "</div>"
        '<div class="flame"><form onsubmit="return false"><label>Search frames (regular expression) '
        '<input type="search" class="search" autocomplete="off"></label></form>'
        '<iframe title="Flame graph of the part"></iframe></div><div class="lists"></div>'
        f'<script type="application/json" class="runs">{stored}</script></div>{_by_itself()}'
    )


def _profiled(tables: Tables) -> list[str]:
    """A run per workload, as ``profiled_runs.profile_of`` chooses it: first those in which something
    happened, of these that with the slowest answer."""
    names = sorted(tables.runs.loc[tables.runs["profiled"], "workload"].unique())
    chosen = [run_id for name in names for run_id in profiled_runs.profile_of(tables, name).runs["run_id"]]
    slowest = tail.logged_intervals(tables).groupby("run_id")["max_us"].max()
    eventful = set(tables.events["run_id"])
    return sorted(chosen, key=lambda run_id: (run_id not in eventful, -slowest.get(run_id, 0.0)))


def _describe_run(tables: Tables) -> dict:
    run = next(marked_runs(tables).itertuples())
    intervals = tail.logged_intervals(tables).sort_values("start_s")
    step = step_s(intervals)
    answers = tables.slowest.sort_values("due_s")
    events = tables.events.sort_values("start_s")
    event_ends = events["start_s"] + events["duration_ms"] / 1e3
    # to the end of the window at least: what ran while nothing was answered any more is shown too
    ends = intervals["start_s"] + step if len(intervals) else event_ends
    last_s = max([run.duration_s - run.warm_up_s, *ends])
    events = events[(event_ends >= 0) & (events["start_s"] <= last_s)]
    sealed = open_run(tables.folders[run.run_id])
    samples, why = _samples(sealed)
    offset_s = 0.0
    if samples is not None:  # their clock is that of the service's host
        begun_s = samples.start_epoch_s + conditions.clock_offset_s(sealed)
        offset_s = begun_s - epoch_s(run.start_utc)
    figure = clock(run, intervals, answers, events, samples, offset_s, last_s)
    data = {
        "id": run.run_id,
        "named": f"{profiled_runs.named(tables)}, repeat {run.repeat}{', profiled' if run.profiled else ''}",
        "why": why,
        "unkept": "" if len(answers) else _without_answers(tables, run, step),
        "end_s": last_s,
        "figure": json.loads(figure.to_json()) | {"config": _CONFIG},
        "step_s": step,
        "intervals": [
            [row.start_s, int(row.count), _whole(row.p99_us), _whole(row.max_us)]
            for row in intervals[["start_s", "count", "p99_us", "max_us"]].itertuples(index=False)
        ],
        "answers": [  # all that were kept: as few letters as say it, since there may be 10 000
            [round(row.due_s, 4), int(row.response_us), int(row.service_us), int(row.connection)]
            for row in answers.itertuples()
        ],
        "events": [
            [words.factor(row.kind), round(row.start_s, 4), round(row.duration_ms, 3)]
            for row in events.itertuples()
        ],
    }
    if samples is None:
        return data
    return data | {"template": _template(tables), "profile": _profile(samples, offset_s)}


def _without_answers(tables: Tables, run, step: float) -> str:
    """Why there are none one by one: record/copies.py leaves those of profiled runs out."""
    known = "the latency of each second" if step == SECOND_S else f"its latency every {step * 1e3:g} ms"
    if run.profiled and run.run_id not in tables.own:
        return (
            "Slow answers are not kept for profiled runs of the reference; your own runs have them. "
            f"What is known of this run is {known}."
        )
    return f"This run kept no answers one by one. What is known of it is {known}."


def _whole(value: float) -> int | None:
    """None for a percentile that too few answers have."""
    return None if math.isnan(value) else round(value)


def _samples(run: SealedRun) -> tuple[heatmap.TimedSamples | None, str]:
    """Or why there are none."""
    if not run.has(_PAGE):
        return None, "This run has no CPU samples with times, so it has no flame graph of a part."
    return heatmap.read(run.text(_PAGE), _PAGE), ""


def _profile(samples: heatmap.TimedSamples, offset_s: float) -> dict:
    """The samples' stacks as one tree: ``nodes`` has parent, name and kind of each, parents first; ``leaf``
    is the node of each sample."""
    names: dict[str, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    rows: list[list[int]] = []
    leaves = []
    for stack in samples.stacks:
        at = -1
        for frame in stack.split(";"):
            name, kind = _plain(frame)
            key = at, names.setdefault(name, len(names))
            if key not in nodes:
                nodes[key] = len(rows)
                rows.append([at, key[1], kind])
            at = nodes[key]
        leaves.append(at)
    return {
        "begin_s": round(offset_s, 4),
        "step_s": heatmap.BLOCK_S,
        "block": samples.block.tolist(),
        "leaf": [leaves[stack] for stack in samples.stack.tolist()],
        "nodes": rows,
        "names": list(names),
    }


def _plain(frame: str) -> tuple[str, int]:
    """A frame without its mark, which differs from run to run, and the number that the page colours it by."""
    for kind, mark in enumerate(heatmap.KINDS):
        if mark and frame.endswith(mark):
            return frame.removesuffix(mark), kind
    return frame, 4 if "::" in frame else 3


def _template(tables: Tables) -> str:
    """async-profiler's own page with holes where a part's frames go."""
    page = flame.page_of(tables, "cpu")
    if page is None:
        return ""
    for pattern, hole in _HOLES:
        page, found = re.subn(pattern, hole, page, flags=re.DOTALL)
        if found != 1:
            raise KvstudyError(f"flame graph page: {found} places like {pattern!r} instead of one")
    return flame.guarded(page, "Flame graph of the part")


def _by_itself() -> str:
    """In JupyterLab, what an exported page has in its assets."""
    if os.environ.get(EXPORT_VARIABLE):
        return ""
    script = (_ASSETS / "moment.js").read_text(encoding="utf-8")
    style = (_ASSETS / "moment.css").read_text(encoding="utf-8")
    return (
        f"<style>{style}</style><script>if (!window.Plotly) {{ {get_plotlyjs()} }}</script>"
        f"<script>{script}</script>"
    )
