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
from kvstudy.present.cards import MIME as CARDS_MIME
from kvstudy.present.cards import Card
from kvstudy.present.figures.panels import NO_ROWS, has_points

PLOTLY_MIME = "application/vnd.plotly.v1+json"
EXPLORE_TAG = "explore"
_TEMPLATES = Path(__file__).parent / "templates"
MOVED = "The chart of this part stands [at the top of the page](#lead)."
LEAD = "lead"  # tag of the cell whose chart stands right under the answer; none: the first that has a chart
_HEADS_MAX = 4
_OF_PANDAS = re.compile(r'\s*<div>\s*(<style.*?</style>\s*)?<table [^>]*class="dataframe"', re.DOTALL)
_HEADING = re.compile(r'<h([23]) id="([^"]*)">(.*?)<a class="anchor-link"', re.DOTALL)
CONTENTS_LETTERS_MAX = 60
WHOLE_LETTERS_MAX = 24


@dataclass(frozen=True)
class Entry:
    """A page in the menu: ``href`` relative to the study, ``here`` for the page that is being written."""

    href: str
    title: str
    here: bool = False


def page_of(
    notebook: nbformat.NotebookNode,
    pages: list[Entry],
    provenance: str = "",
    card: Card | None = None,
    folders: dict | None = None,
) -> str:
    """The HTML text of ``notebook``; ``pages`` is the menu in order, ``card`` is the page's answer, whose
    bars stand first where no chart does, ``folders`` where its runs lie:
    ``{"base": "../../data", "of": {run id: "reference/wal/run id"}}``."""
    title = next(entry.title for entry in pages if entry.here)
    resources = {
        "study": {
            "title": title,
            "pages": pages,
            "provenance": provenance,
            "twins": Markup(json.dumps(theme.TWINS)),
            "heading": title_of(notebook, title),
            "card": card,
            "bars": Markup(card.chart() if card and _lead(notebook) is None else ""),
            "first": any(CARDS_MIME in output.get("data", {}) for _, output in _outputs(notebook)),
            "folders": Markup(json.dumps(folders or {"base": "", "of": {}}).replace("</", "<\\/")),
        }
    }
    html, _ = _exporter().from_notebook_node(_answer_first(_parameters_last(notebook)), resources)
    return _kept_whole(_linked(html)).replace("<!--contents-->", _contents(html), 1)


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
    title, finding, drawn = meta.get("title", ""), meta.get("finding", ""), meta.get("drawn", "")
    finding = "" if finding in ("", title) else f"{finding.rstrip('.')}."
    caption = f'<figcaption><span class="title">{escape(title)}</span></figcaption>'
    below = (
        f'<p class="under"><span class="finding">{escape(finding)}</span> '
        f'<span class="drawn">{escape(drawn)}</span></p>'
    )
    if not figure["data"]:
        # Nothing was measured: the sentence says so, and an empty frame would only push the rest away.
        return Markup(f'<figure class="chart">{caption}{below}</figure>')
    if not has_points(figure):
        return Markup(f'<figure class="chart">{caption}{below}<p class="under">{NO_ROWS}</p></figure>')
    stored = {"data": figure["data"], "layout": layout, "config": theme.CONFIG}
    text = json.dumps(stored, separators=(",", ":")).replace("</", "<\\/")
    label = escape(f"Chart. {title or finding}. {drawn}", quote=True)
    return Markup(
        f'<figure class="chart">{caption}'
        f'<div class="plot" role="group" aria-label="{label}" '
        f'style="height:{layout.get("height", 460)}px"></div>'
        f'<script type="application/json">{text}</script>{below}</figure>'
    )


def folded(html: str) -> Markup:
    """A table of data, of itables or of plain pandas, behind one line that names its columns; anything else
    as it is."""
    is_table = html.lstrip().startswith("<table") or "<!--| quarto-html-table-processing" in html[:200]
    if not is_table and not _OF_PANDAS.match(html):
        return Markup(f'<div class="output">{html}</div>')
    top = html.partition("</thead>")[0]  # a row's name is no column
    heads = [re.sub(r"<[^>]+>", "", head).strip() for head in re.findall(r"<th[^>]*>(.*?)</th>", top)]
    heads = list(dict.fromkeys(head for head in heads if head))
    more = f" and {len(heads) - _HEADS_MAX} more columns" if len(heads) > _HEADS_MAX + 1 else ""
    shown = heads[:_HEADS_MAX] if more else heads
    return Markup(
        f'<details class="table"><summary>Table: {", ".join(shown)}{more}</summary>'
        f'<div class="output">{html}</div></details>'
    )


def _with_finding(layout: dict) -> dict:
    """A figure of a reader's own (plotly express) has a title, and may have a subtitle; ours have all."""
    meta, named = layout.get("meta") or {}, layout.get("title") or {}
    title = named.get("text") or "A chart without a title"
    finding = (named.get("subtitle") or {}).get("text") or title
    return layout | {"meta": {"title": title, "finding": finding, "drawn": ""} | meta}


def _exporter() -> HTMLExporter:
    priority = [PLOTLY_MIME, "text/html", "text/markdown", "image/svg+xml", "image/png", "text/plain"]
    exporter = HTMLExporter(
        config=Config({"NbConvertBase": {"display_data_priority": priority}}),
        template_name="study",
        extra_template_basedirs=[str(_TEMPLATES)],
        filters={"chart": chart, "folded": folded},
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


def _answer_first(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Without its title, which the page's head has; the cards or the chart that answers first of all."""
    result = nbformat.from_dict(notebook)
    for cell in result.cells:
        if cell.cell_type == "markdown" and re.search(r"^# .+$", cell.source, re.MULTILINE):
            cell.source = re.sub(r"^# .+\n?", "", cell.source, count=1, flags=re.MULTILINE).strip()
            break
    place = _lead(result)
    if place is None:
        return result
    index, lead = place
    from_cell = result.cells[index]
    from_cell.outputs = [output for output in from_cell.outputs if output is not lead]
    if PLOTLY_MIME in lead.get("data", {}):
        result.cells.insert(index, nbformat.v4.new_markdown_cell(MOVED))
    for cell in result.cells:
        if LEAD in cell.metadata.get("tags", []):
            cell.metadata["tags"] = [tag for tag in cell.metadata["tags"] if tag != LEAD]
    hoisted = nbformat.v4.new_code_cell("", outputs=[lead], metadata={"tags": [LEAD]})
    result.cells.insert(0, hoisted)
    return result


def _lead(notebook: nbformat.NotebookNode) -> tuple[int, nbformat.NotebookNode] | None:
    """Cell and output: cards, else the chart that says it leads or that of the cell tagged LEAD, else the
    first chart with something drawn."""
    found = list(_outputs(notebook))
    cards = [place for place in found if CARDS_MIME in place[1].get("data", {})]
    charts = [place for place in found if has_points(place[1].get("data", {}).get(PLOTLY_MIME, {}))]
    tagged = [place for place in charts if LEAD in notebook.cells[place[0]].metadata.get("tags", [])]
    leading = [
        place for place in charts if (place[1]["data"][PLOTLY_MIME]["layout"].get("meta") or {}).get("leads")
    ]
    return next(iter(cards or leading or tagged or charts), None)


def _outputs(notebook: nbformat.NotebookNode):
    for index, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            yield index, output


def _linked(html: str) -> str:
    """Links between notebooks become links between pages."""
    html = re.sub(r'href="(?:\./)?00-study\.ipynb', 'href="index.html', html)
    html = re.sub(r'href="(?:\./)?([0-9]{2}-[a-z-]+)\.ipynb', r'href="\1.html', html)
    return re.sub(
        r'href="(?:\.\./)?(METHODOLOGY|LIMITS)\.md', lambda name: f'href="{name[1].lower()}.html', html
    )


def _kept_whole(html: str) -> str:
    """A short cell with a number stays on one line: the unit would stand below, or an interval be two
    halves."""
    return re.sub(rf"<td>(?=[^<]*\d)([^<]{{1,{WHOLE_LETTERS_MAX}}})</td>", r'<td class="whole">\1</td>', html)


def _contents(html: str) -> str:
    """Without headings that are whole answers: these stand at the top of their page."""
    headings = [
        (anchor, re.sub(r"<[^>]+>", "", text).strip())
        for level, anchor, text in _HEADING.findall(html)
        if level == "2"
    ]
    items = [
        f'<li><a href="#{anchor}">{text}</a></li>'
        for anchor, text in headings
        if len(text) <= CONTENTS_LETTERS_MAX
    ]
    return f"<ol>{''.join(items)}</ol>" if items else ""
