"""async-profiler's own flame-graph pages inside ours: searchable, zoomable, offline, one HTML fragment for JupyterLab and the study.

The page comes from the sealed run as jfr-converter made it. Embedded by ``srcdoc``, which inherits the page's origin, so that the
search box above it can reach in; five things are changed: storage that a browser refuses no longer stops the script (heat maps
read it unguarded), the link to the network becomes text, the page gets a title and
its help button a name, for screen readers, and it begins at the root of its graph.
"""

import re
from html import escape

import pandas as pd
from IPython.display import HTML

from kvstudy.analyse import frames
from kvstudy.analyse.tables import Tables
from kvstudy.record.run_folder import open_run

HEIGHT_MAX_PX = 720
_AROUND_PX = 76
_GUARD = """<script>
try { window.localStorage.length; } catch (refused) {
  Object.defineProperty(window, 'localStorage', { value: { getItem: () => null, setItem: () => {}, removeItem: () => {} } });
}
</script>"""


def profile_of(tables: Tables, workload: str | None = None) -> Tables:
    """The last profiled run of ``workload`` (None: of the first workload by name), as tables of one run, or of none."""
    runs = tables.runs[tables.runs["profiled"] & (tables.runs["outcome"] == "completed")]
    if workload is None and len(runs):
        workload = runs["workload"].min()
    return tables.only(runs.loc[runs["workload"] == workload, "run_id"].tail(1))


def flame_graph(tables: Tables, event: str = "cpu", kind: str = "flamegraph") -> HTML:
    """The page ``<event>.<kind>.html`` of the first run of ``tables``; a line of text when there is none."""
    if tables.runs.empty:
        return HTML("<p>No profiled run. Experiments with <code>profile: [cpu, alloc]</code> make them.</p>")
    page, run_id = page_of(tables, event, kind), tables.runs["run_id"].iloc[0]
    if page is None:
        return HTML(f"<p>No {escape(event)} {escape(kind)} in run <code>{escape(run_id)}</code>.</p>")
    told = {"flamegraph": "flame graph", "heatmap": "heat map"}[kind]
    return embedded(page, f"{event.replace('cpu_slow', 'cpu in the slow seconds')}: {told} of {run_id}", searchable=kind == "flamegraph")


def page_of(tables: Tables, event: str, kind: str = "flamegraph") -> str | None:
    """async-profiler's page ``<event>.<kind>.html`` of the first run of ``tables``, if it has one."""
    run = open_run(tables.folders[tables.runs["run_id"].iloc[0]])
    name = f"{event}.{kind}.html"
    return run.text(name) if run.has(name) else None


def embedded(page: str, title: str, searchable: bool = True) -> HTML:
    """``page`` in a frame as high as its graph; ``searchable``: with a search box that colours matching frames and tells their share (a
    heat map has its own)."""
    page = guarded(page, title, from_below=searchable)
    height = searchable and re.search(r"#canvas \{[^}]*height: (\d+)px", page)
    height_px = min(HEIGHT_MAX_PX, int(height[1]) + _AROUND_PX) if height else HEIGHT_MAX_PX
    reach = "this.closest('.flame').querySelector('iframe').contentWindow"
    search = f"try {{ {reach}.search(this.value || false) }} catch (unfinished) {{}}"
    box = (
        f'<form onsubmit="return false"><label>Search frames (regular expression) <input type="search" oninput="{search}"></label>'
        f'<button type="button" onclick="{reach}.render()">Reset zoom</button><span>Click a frame to zoom into it.</span></form>'
        if height
        else ""
    )
    return HTML(
        f'<div class="flame">{box}<iframe title="{escape(title)}" loading="lazy" style="width:100%;border:0;height:{height_px}px" srcdoc="{escape(page)}"></iframe></div>'
    )


def guarded(page: str, title: str = "flame graph", from_below: bool = True) -> str:
    """``page`` with a title, without external addresses and with storage that cannot fail."""
    page = re.sub(r"<a href=(['\"])https?://[^'\"]*\1>(.*?)</a>", r"\2", page)
    page = page.replace("<button id='info'>", "<button id='info' aria-label='Legend and keys'>")
    page = re.sub(r"(<head[^>]*>)", lambda head: f"{head[1]}<title>{escape(title)}</title>{_GUARD}", page, count=1)
    # A deep graph is higher than its frame and grows upwards: begin at its root.
    below = "<script>window.scrollTo(0, document.documentElement.scrollHeight);</script></body>"
    return page.replace("</body>", below, 1) if from_below else page


def shares(tables: Tables) -> pd.DataFrame:
    """Shares by subsystem of every profiled run, with the factors of the run beside: for ``subsystem_shares``."""
    if tables.stacks.empty:
        return pd.DataFrame()
    return frames.shares(tables.stacks).merge(tables.runs[["run_id", "workload", "label", "variant", "connections"]], on="run_id")
