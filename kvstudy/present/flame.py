"""async-profiler's own flame-graph pages inside ours: searchable, zoomable, offline, one HTML fragment for
JupyterLab and the study.

The page comes from the sealed run as jfr-converter made it. Embedded by ``srcdoc``, which inherits the page's
origin, so that the search box above it can reach in; five things are changed: storage that a browser refuses
no longer stops the script (heat maps read it unguarded), the link to the network becomes text, the page gets
a title and its help button a name, for screen readers, and it begins at the root of its graph.
"""

import re
from html import escape

import pandas as pd
from IPython.display import HTML, Markdown

from kvstudy.analyse import frames
from kvstudy.analyse.tables import Tables
from kvstudy.present import profiled_runs, theme, words
from kvstudy.record.run_folder import open_run

HEIGHT_MAX_PX = 720
MARKED = f"border-left:6px solid {theme.INVALID};padding-left:8px"  # a graph of an invalid run …
GREYED = f"filter:grayscale(1);{MARKED}"  # … whose colours are no part of what it says
NETWORK = ("socket read", "response", "idle")  # reading from the socket, answering, waiting for events
NETWORK_MIN, STORE_MAX = 0.5, 0.1  # what 05-flame-graphs expects of their shares
_KINDS = {"flamegraph": "flame graph", "heatmap": "heat map"}
_NOTHING = {
    "lock": "No lock waits were recorded: no thread waited for a monitor or a lock long enough to be sampled,"
}
_AROUND_PX = 76
_GUARD = """<script>
try { window.localStorage.length; } catch (refused) {
  const none = { getItem: () => null, setItem: () => {}, removeItem: () => {} };
  Object.defineProperty(window, 'localStorage', { value: none });
}
</script>"""


def flame_graph(tables: Tables, event: str = "cpu", kind: str = "flamegraph") -> HTML:
    """The page ``<event>.<kind>.html`` of the first run of ``tables`` under a line that names the run, grey
    and called INVALID when it is; a line of text when there is none, or nothing in it."""
    if tables.runs.empty:
        return HTML("<p>No profiled run. Experiments with <code>profile: [cpu, alloc]</code> make them.</p>")
    run_id = tables.runs["run_id"].iloc[0]
    run, page = tables.only([run_id]), page_of(tables, event, kind)
    name, where = profiled_runs.named(run), f"run <code>{escape(run_id)}</code>"
    if page is None:
        return HTML(f"<p>No {escape(event)} {_KINDS[kind]} in {where}.</p>")
    if profiled_runs.with_event(run, event).runs.empty:
        return HTML(
            f"<p>{escape(_NOTHING.get(event, f'No {event} samples were recorded'))} in {escape(name)}, "
            f"{where}.</p>"
        )
    title, reason = (
        f"{event.replace('cpu_slow', 'cpu in the slow seconds')}: {_KINDS[kind]} of {name}",
        profiled_runs.invalid(run),
    )
    if reason:
        title, page = f"{reason}. {title}", page.replace("<h1>", f"<h1>{profiled_runs.INVALID}: ", 1)
    frame = embedded(
        page, f"{title}, {run_id}", searchable=kind == "flamegraph", style=GREYED if reason else ""
    )
    return HTML(f"<p><strong>{escape(title)}</strong>, {where}</p>{frame.data}")


def page_of(tables: Tables, event: str, kind: str = "flamegraph") -> str | None:
    """async-profiler's page ``<event>.<kind>.html`` of the first run of ``tables``, if it has one."""
    run = open_run(tables.folders[tables.runs["run_id"].iloc[0]])
    name = f"{event}.{kind}.html"
    return run.text(name) if run.has(name) else None


def embedded(page: str, title: str, searchable: bool = True, style: str = "") -> HTML:
    """``page`` in a frame as high as its graph; ``searchable``: with a search box that colours matching
    frames and tells their share (a heat map has its own); ``style``: CSS of what is around it."""
    page = guarded(page, title, from_below=searchable)
    height = searchable and re.search(r"#canvas \{[^}]*height: (\d+)px", page)
    height_px = min(HEIGHT_MAX_PX, int(height[1]) + _AROUND_PX) if height else HEIGHT_MAX_PX
    reach = "this.closest('.flame').querySelector('iframe').contentWindow"
    search = f"try {{ {reach}.search(this.value || false) }} catch (unfinished) {{}}"
    box = (
        '<form onsubmit="return false"><label>Search frames (regular expression) <input type="search" '
        f'oninput="{search}"></label>'
        f'<button type="button" onclick="{reach}.render()">Reset zoom</button><span>Click a frame to '
        "zoom into it.</span></form>"
        if height
        else ""
    )
    return HTML(
        f'<div class="flame" style="{style}">{box}<iframe title="{escape(title)}" loading="lazy" '
        f'style="width:100%;border:0;height:{height_px}px" srcdoc="{escape(page)}"></iframe></div>'
    )


def guarded(page: str, title: str = "flame graph", from_below: bool = True) -> str:
    """``page`` with a title, without external addresses and with storage that cannot fail."""
    page = re.sub(r"<a href=(['\"])https?://[^'\"]*\1>(.*?)</a>", r"\2", page)
    page = page.replace("<button id='info'>", "<button id='info' aria-label='Legend and keys'>")
    page = re.sub(
        r"(<head[^>]*>)", lambda head: f"{head[1]}<title>{escape(title)}</title>{_GUARD}", page, count=1
    )
    # A deep graph is higher than its frame and grows upwards: begin at its root.
    below = "<script>window.scrollTo(0, document.documentElement.scrollHeight);</script></body>"
    return page.replace("</body>", below, 1) if from_below else page


def shares(tables: Tables) -> pd.DataFrame:
    """Shares by subsystem of every profiled run, with the factors of the run beside, ``valid`` (bool) and
    ``why`` ("" when it is): for ``subsystem_shares`` and ``network_and_store``."""
    if tables.stacks.empty:
        return pd.DataFrame()
    why = profiled_runs.failures(tables)
    runs = tables.runs[["run_id", "workload", "label", "variant", "connections"]]
    runs = runs.assign(
        valid=~runs["run_id"].isin(list(why)), why=[why.get(run_id, "") for run_id in runs["run_id"]]
    )
    return frames.shares(tables.stacks).merge(runs, on="run_id")


def of_network(cpu: pd.DataFrame) -> pd.DataFrame:
    """Of the CPU shares of each workload, as ``shares`` gives them: those of ``network`` and ``store``, and
    whether most goes to the network (``most``) and both are ``expected``; ``valid``, ``why``: of its runs."""
    rows = []
    for workload, mine in profiled_runs.typical(cpu, "workload").groupby("workload"):
        of = mine.set_index("subsystem")["share"]
        network, store = float(of.reindex(NETWORK, fill_value=0.0).sum()), float(of.get("store", 0.0))
        most = network > NETWORK_MIN
        expected = most and store <= STORE_MAX
        rows.append(
            (workload, network, store, most, expected, bool(mine["valid"].all()), mine["why"].iloc[0])
        )
    columns = ["workload", "network", "store", "most", "expected", "valid", "why"]
    return pd.DataFrame(rows, columns=columns)


def network_and_store(shares: pd.DataFrame) -> Markdown:
    """A sentence: what share of the CPU goes to the network and to the store, workload by workload, and
    whether that is as expected."""
    cpu = shares[shares["event"] == "cpu"] if len(shares) else shares
    if cpu.empty:
        return Markdown("**Against the Expectation:** no CPU profile was made, so nothing can be told.")
    parts = [
        f"{row.workload} {words.share(row.network)} and {words.share(row.store)}, "
        f"{'as expected' if row.expected else 'not as expected'}"
        if row.valid
        else f"{row.workload} cannot tell ({profiled_runs.INVALID}: {row.why})"
        for row in of_network(cpu).itertuples()
    ]
    return Markdown(
        "**Against the Expectation:** shares of the CPU that go to the network (reading, answering, "
        "waiting for events) and to the store itself, without its log, "
        f"flushes and compactions: {'; '.join(parts)}."
    )
