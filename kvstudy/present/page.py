"""One executed notebook → one page of the study: HTML without any external address, charts as data beside one
shared plotly.

nbconvert converts with our template (templates/study): its own pages load scripts from the network, and show
no chart at all of a plotly that emits only its own MIME type. That type is converted here (``chart``).
"""

import json
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

import nbformat
from markupsafe import Markup
from nbconvert import HTMLExporter
from traitlets.config import Config

from kvstudy.present import theme

PLOTLY_MIME = "application/vnd.plotly.v1+json"
EXPLORE_TAG = "explore"
_TEMPLATES = Path(__file__).parent / "templates"
_HEADING = re.compile(r'<h([23]) id="([^"]*)">(.*?)<a class="anchor-link"', re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """A page in the menu: ``href`` relative to the study, ``here`` for the page that is being written."""

    href: str
    title: str
    here: bool = False


def page_of(
    notebook: nbformat.NotebookNode, pages: list[Entry], provenance: str = "", unfolded: bool = False
) -> str:
    """The HTML text of ``notebook``; ``pages`` is the menu in order, ``unfolded`` shows the code (of a
    notebook that was not run)."""
    title = next(entry.title for entry in pages if entry.here)
    resources = {
        "study": {
            "title": title,
            "pages": pages,
            "provenance": provenance,
            "unfolded": unfolded,
            "twins": Markup(json.dumps(theme.TWINS)),
        }
    }
    html, _ = _exporter().from_notebook_node(_parameters_last(notebook), resources)
    return _linked(html).replace("<!--contents-->", _contents(html), 1)


def title_of(notebook: nbformat.NotebookNode, default: str) -> str:
    """The first heading of a notebook."""
    for cell in notebook.cells:
        heading = re.search(r"^# (.+)$", cell.source, re.MULTILINE) if cell.cell_type == "markdown" else None
        if heading:
            return heading[1].strip()
    return default


def chart(data: dict) -> Markup:
    """An output that has a plotly figure → the figure's data, its finding as caption, and a place to draw;
    else its text."""
    if PLOTLY_MIME not in data:
        return Markup(f"<pre class='printed'>{escape(str(data.get('text/plain', '')))}</pre>")
    figure = data[PLOTLY_MIME]
    layout = _with_finding(figure.get("layout", {}))
    meta = layout["meta"]
    finding, drawn = meta.get("finding", ""), meta.get("drawn", "")
    if not figure["data"]:
        # Nothing was measured: the sentence says so, and an empty frame would only push the rest away.
        return Markup(
            f'<figure class="chart"><figcaption><span class="finding">{escape(finding)}</span><span class="drawn">{escape(drawn)}</span></figcaption></figure>'
        )
    stored = {"data": figure["data"], "layout": layout, "config": theme.CONFIG}
    text = json.dumps(stored, separators=(",", ":")).replace("</", "<\\/")
    label = escape(f"Chart. {finding}. {drawn}", quote=True)
    return Markup(
        f'<figure class="chart"><figcaption><span class="finding">{escape(finding)}</span><span class="drawn">{escape(drawn)}</span></figcaption>'
        f'<div class="plot" role="group" aria-label="{label}" style="height:{layout.get("height", 460)}px"></div>'
        f'<script type="application/json">{text}</script></figure>'
    )


def _with_finding(layout: dict) -> dict:
    """A figure of a reader's own (plotly express) has a title, which is its finding; ours have both."""
    meta = layout.get("meta") or {}
    title = (layout.get("title") or {}).get("text") or "A chart without a title"
    return layout | {"meta": {"finding": title, "drawn": ""} | meta}


def _exporter() -> HTMLExporter:
    priority = [PLOTLY_MIME, "text/html", "text/markdown", "image/svg+xml", "image/png", "text/plain"]
    exporter = HTMLExporter(
        config=Config({"NbConvertBase": {"display_data_priority": priority}}),
        template_name="study",
        extra_template_basedirs=[str(_TEMPLATES)],
        filters={"chart": chart},
    )
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    return exporter


def _parameters_last(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A page begins with its question; the parameters cells, first in the notebook, go to its end. What a
    reader of the notebook is to change cannot be changed here, and is left out."""
    tags = {"parameters", "injected-parameters"}
    moved = [cell for cell in notebook.cells if tags & set(cell.metadata.get("tags", []))]
    rest = [
        cell
        for cell in notebook.cells
        if cell not in moved and EXPLORE_TAG not in cell.metadata.get("tags", [])
    ]
    result = nbformat.from_dict(notebook)
    result.cells = [*rest, *moved]
    return result


def _linked(html: str) -> str:
    """Links between notebooks become links between pages."""
    html = re.sub(r'href="(?:\./)?00-study\.ipynb', 'href="index.html', html)
    html = re.sub(r'href="(?:\./)?([0-9]{2}-[a-z-]+)\.ipynb', r'href="\1.html', html)
    return re.sub(
        r'href="(?:\.\./)?(METHODOLOGY|LIMITS)\.md', lambda name: f'href="{name[1].lower()}.html', html
    )


def _contents(html: str) -> str:
    items = [
        f'<li><a href="#{anchor}">{re.sub(r"<[^>]+>", "", text).strip()}</a></li>'
        for level, anchor, text in _HEADING.findall(html)
        if level == "2"
    ]
    return f"<ol>{''.join(items)}</ol>" if items else ""
