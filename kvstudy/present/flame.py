"""async-profiler's own flame-graph pages inside ours: searchable, zoomable, offline, one HTML fragment for
JupyterLab and the study.

The page comes from the sealed run as jfr-converter made it. Embedded by ``srcdoc``, which inherits the page's
origin, so that the search box above it can reach in; seven things are changed: storage that a browser refuses
no longer stops the script (heat maps read it unguarded), the link to the network becomes text, the page gets
a title and its help button a name, for screen readers, it begins at the root of its graph, stays as wide as
its window, and tells what it shows, so that this can be saved.
"""

import re
from html import escape

import pandas as pd
from IPython.display import HTML

from kvstudy.analyse.answers import profiles
from kvstudy.analyse.answers.profiles import shares
from kvstudy.analyse.claim import Claim
from kvstudy.analyse.comparison.words import CANNOT_TELL
from kvstudy.analyse.tables import Tables
from kvstudy.plan.subject import KV_SERVICE
from kvstudy.present import claim_text, profiled_runs, theme, words
from kvstudy.present.markdown import Markdown
from kvstudy.record.run_folder import open_run

__all__ = [
    "configuration",
    "embedded",
    "flame_graph",
    "guarded",
    "network_and_store",
    "one_at_a_time",
    "page_of",
    "shares",
]
HEIGHT_MAX_PX = 720
MARKED = f"border-left:6px solid {theme.INVALID};padding-left:8px"  # a graph of an invalid run …
GREYED = f"filter:grayscale(1);{MARKED}"  # … whose colours are no part of what it says
_KINDS = {"flamegraph": "flame graph", "heatmap": "heat map"}
_NOTHING = {
    "lock": "No lock waits were recorded: no thread waited for a monitor or a lock long enough to be sampled,"
}
_AROUND_PX = 76
# As wide as if it were seen: its script would begin with a canvas of no width.
_NOT_CHOSEN = "visibility:hidden;height:0;overflow:hidden"
_GUARD = """<script>
try { window.localStorage.length; } catch (refused) {
  const none = { getItem: () => null, setItem: () => {}, removeItem: () => {} };
  Object.defineProperty(window, 'localStorage', { value: none });
}
</script>"""
# A deep graph is higher than its frame and grows upwards: begin at its root. The converter's script asks for
# the width of its canvas once, when it is loaded. And what save.js draws as SVG.
_BELOW = """<script>
window.scrollTo(0, document.documentElement.scrollHeight);
window.addEventListener('resize', () => {
  canvas.style.width = '';
  const width = canvas.offsetWidth;
  canvas.style.width = (width || canvasWidth) + 'px';
  if (!width || width === canvasWidth) return;
  canvasWidth = width;
  canvas.width = width * (devicePixelRatio || 1);
  if (devicePixelRatio) c.scale(devicePixelRatio, devicePixelRatio);
  c.font = document.body.style.font;
  render(root);
});
window.shown = () => {
  const background = getComputedStyle(document.body).backgroundColor;
  return { levels, root, px, height: canvasHeight, background, inverted, pattern };
};
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


def one_at_a_time(choice: str, *graphs: tuple[str, HTML]) -> HTML:
    """The first of ``graphs``, each with its name, and a chooser called ``choice`` that shows another in its
    place; the first alone where none of them has a graph."""
    shown = [graph.data for _, graph in graphs]
    if not any("<iframe" in one for one in shown):
        return HTML(shown[0])
    show = (
        "this.closest('.graphs').querySelectorAll('.graph')"
        f".forEach((one, place) => {{ one.style = place === this.selectedIndex ? '' : '{_NOT_CHOSEN}'; }})"
    )
    options = "".join(f"<option>{escape(name)}</option>" for name, _ in graphs)
    each = "".join(
        f'<div class="graph" data-name="{escape(f"{choice} {name}")}" style="{_NOT_CHOSEN if place else ""}">'
        f"{one}</div>"
        for place, ((name, _), one) in enumerate(zip(graphs, shown, strict=True))
    )
    # A browser that goes back to a page keeps what was chosen, but not what was shown.
    return HTML(
        f'<div class="graphs"><form class="choose" onsubmit="return false"><label>{escape(choice)} '
        f'<select autocomplete="off" onchange="{show}">{options}</select></label></form>{each}</div>'
    )


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
        f'autocomplete="off" oninput="{search}"></label>'
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
    if not from_below:
        return page
    page = page.replace("const canvasWidth =", "let canvasWidth =", 1)
    return page.replace("</body>", f"{_BELOW}</body>", 1)


def network_and_store(shares: pd.DataFrame) -> Markdown:
    """What share of the CPU goes to the network and to the store, of each workload and configuration, and
    whether that is as expected; ``shares``: of ``profiles.shares``."""
    ours = shares[shares["server"] == KV_SERVICE] if len(shares) else shares
    if len(shares) and ours.empty:
        return Markdown(
            f"**Against the Expectation:** not asked. The groups know the code of {KV_SERVICE}; what another "
            "service does itself is *other*, and its flame graphs below have its names."
        )
    answer = profiles.network_and_store(ours)
    if answer is None:
        return Markdown("**Against the Expectation:** no CPU profile was made, so nothing can be told.")
    pairs = list(zip(answer.claims[::2], answer.claims[1::2], strict=True))
    lines = [f"- {configuration(network)}: {_expected(network, store)}" for network, store in pairs]
    sure = sum(network.decided and store.decided for network, store in pairs)
    return Markdown(
        f"**Against the Expectation:** {sure} of {words.counted(len(pairs), 'configuration')} decided, by "
        f"{words.counted(answer.runs, 'valid profiled run')}. Shares of the CPU that go to the network "
        "(reading, answering, waiting for events) and to the store itself, without its log, flushes and "
        "compactions:\n\n" + "\n".join(lines)
    )


def configuration(claim: Claim) -> str:
    """Workload, rate and connections, and what else tells its runs from others."""
    return claim_text.place(claim) + (f" ({claim.variant})" if claim.variant else "")


def _expected(network: Claim, store: Claim) -> str:
    if not network.runs:
        return f"{CANNOT_TELL} ({profiled_runs.INVALID}: {network.why})"
    shares = f"{claim_text.estimate(network)} and {claim_text.estimate(store)}"
    why = network.why or store.why
    if network.word == profiles.LESS or store.word == profiles.MORE:
        return f"{shares}, not as expected"
    return f"{shares}, {f'{CANNOT_TELL}: {why}' if why else 'as expected'}"
