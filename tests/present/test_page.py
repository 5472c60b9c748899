"""One executed notebook becomes one page without any external address."""

import json
import re

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from kvstudy.present import flame, theme
from kvstudy.present.cards import Bar, Card
from kvstudy.present.page import PLOTLY_MIME, Entry, folded, page_of, title_of

PAGES = [Entry("index.html", "Findings"), Entry("03-percentiles.html", "Percentiles", here=True)]


def page(*cells) -> str:
    return page_of(new_notebook(cells=list(cells)), PAGES, "here")


def plotted(figure: go.Figure):
    output = new_output("display_data", {PLOTLY_MIME: json.loads(figure.to_json()), "text/plain": "Figure()"})
    return new_code_cell("draw()", outputs=[output])


def test_nothing_is_loaded_from_elsewhere():
    html = page(new_markdown_cell("# Question?"), plotted(go.Figure()))
    assert not re.search(r"(src|href)=['\"]?(https?:)?//", html)
    assert set(re.findall(r'<script src="([^"]+)"', html)) == {
        "assets/plotly.min.js",
        "assets/tables.js",
        "assets/study.js",
        "assets/choose.js",
        "assets/moment.js",
        "assets/quantities.js",
        "assets/ticks.js",
        "assets/save.js",
    }


def test_a_figure_becomes_data_with_its_finding_as_caption_and_label():
    figure = go.Figure(
        go.Scatter(y=[1, 2]),
        layout={"meta": {"title": "a & b", "finding": "b < a & c", "drawn": "points"}, "height": 321},
    )
    html = page(plotted(figure))
    assert '<span class="title">a &amp; b</span>' in html
    assert '<span class="finding">b &lt; a &amp; c.</span>' in html
    assert 'aria-label="Chart. a &amp; b. points"' in html
    assert "height:321px" in html


def test_a_figure_of_plotly_express_has_its_subtitle_as_what_was_found():
    figure = px.bar(x=[1], y=[2], title="Second by second", subtitle="p99 of put")
    html = page(plotted(figure))
    assert '<span class="title">Second by second</span>' in html
    assert '<span class="finding">p99 of put.</span>' in html


def test_text_in_a_figure_cannot_end_its_script():
    html = page(plotted(go.Figure(go.Scatter(y=[1], text=["</script><b>"]))))
    stored = re.search(r'<figure.*?<script type="application/json">(.*?)</script><p', html, re.DOTALL)
    assert json.loads(stored[1])["data"][0]["text"] == ["</script><b>"]


def test_the_upload_button_is_off_on_every_chart():
    html = page(plotted(go.Figure(go.Scatter(y=[1]))))
    assert '"showSendToCloud":false' in html


def test_an_empty_chart_is_its_sentence_alone():
    html = page(
        plotted(go.Figure(layout={"meta": {"finding": "Nothing to draw: no run", "drawn": "Measure some."}}))
    )
    assert "Nothing to draw: no run" in html and "Measure some." in html
    assert 'class="plot"' not in html


def test_a_chart_of_a_frame_without_rows_says_so_and_leads_no_page():
    rows = pd.DataFrame({"samples": [400.0], "frame": ["recv"]})
    empty, drawn = (
        px.bar(frame, x="samples", y="frame", title=title)
        for frame, title in ((rows.head(0), "Of none"), (rows, "Of one"))
    )
    html = page(plotted(empty), plotted(drawn))
    assert html.count('class="plot"') == 1 and html.count("Nothing to draw: these runs have no such") == 1
    assert html.index("Of one") < html.index("Of none")


def test_code_is_folded_and_the_parameters_stand_at_the_end():
    parameters = new_code_cell("# Defaults\nx = 1", metadata={"tags": ["parameters"]})
    html = page(parameters, new_markdown_cell("# Question?"), new_code_cell("x"))
    assert html.index("Question?") < html.index("Defaults")
    assert '<details class="code">' in html and '<details class="code" open' not in html


def answered(*cells, card: Card | None = None) -> str:
    return page_of(new_notebook(cells=list(cells)), PAGES, "here", card=card)


def drawn(title: str) -> go.Figure:
    return go.Figure(go.Scatter(y=[1]), layout={"meta": {"title": title, "finding": "", "drawn": ""}})


def test_the_answer_and_its_doubts_stand_under_the_question_and_the_first_chart_under_them():
    card = Card("03-percentiles", "Question?", "Half of them.", sure=("3 of 4 runs valid",))
    html = answered(
        new_markdown_cell("# Question?\n\nA long **expectation**."),
        new_code_cell("prepare()"),
        plotted(drawn("first")),
        plotted(drawn("second")),
        card=card,
    )
    order = [
        html.index(text) for text in ("<h1>Question?</h1>", "Half of them.", "3 of 4 runs valid", ">first<")
    ]
    assert order == sorted(order)
    assert html.index(">first<") < html.index("expectation") < html.index(">second<")
    assert html.count("<h1") == 1 and html.count('id="lead"') == 1


def test_a_cell_tagged_lead_has_the_chart_that_stands_first():
    tagged = plotted(drawn("second"))
    tagged.metadata["tags"] = ["lead"]
    html = answered(new_markdown_cell("# Question?"), plotted(drawn("first")), tagged)
    assert html.index(">second<") < html.index(">first<")


def test_a_chart_that_says_it_leads_stands_first_whatever_its_cell():
    tagged, leads = plotted(drawn("second")), drawn("third")
    tagged.metadata["tags"] = ["lead"]
    leads.layout.meta = (leads.layout.meta or {}) | {"leads": True}
    html = answered(new_markdown_cell("# Question?"), plotted(drawn("first")), tagged, plotted(leads))
    assert html.index(">third<") < html.index(">first<") < html.index(">second<")


def test_a_page_without_a_chart_begins_with_the_bars_of_its_card():
    card = Card("02-sweep", "Question?", "So.", "of each run", (Bar("passed", 3.0, "3 runs"),))
    html = answered(new_markdown_cell("# Question?\n\nText."), card=card)
    assert html.index("So.") < html.index("3 runs") < html.index("Text.")
    assert "3 runs" not in answered(new_markdown_cell("# Question?"), plotted(drawn("first")), card=card)


def test_a_table_is_folded_behind_the_names_of_its_columns():
    html = str(folded("<table><thead><tr><th>a &lt; b</th><th>p99</th></tr></thead></table>"))
    assert html.startswith("<details") and "<summary>Table: a &amp;lt; b, p99</summary>" not in html
    assert "Table: a &lt; b, p99" in html and " open" not in html
    assert "<details" not in folded("<p>no table</p>")


def test_a_frame_of_plain_pandas_is_folded_too_and_named_by_its_columns_alone():
    frame = pd.DataFrame({"count": [1, 2]}, index=pd.Index(["a", "b"], name="connection"))
    assert "<summary>Table: count, connection</summary>" in folded(frame._repr_html_())
    assert "<details" not in folded("<div><p>no table</p></div>")


def test_a_run_that_the_page_names_is_known_with_its_folder():
    html = page_of(
        new_notebook(cells=[]), PAGES, folders={"base": "../../data", "of": {"x": "reference/wal/x"}}
    )
    assert '"x": "reference/wal/x"' in html


def test_links_between_notebooks_become_links_between_pages():
    html = page(
        new_markdown_cell("[a](00-study.ipynb) [b](05-flame-graphs.ipynb#CPU) [c](../METHODOLOGY.md)")
    )
    assert {"index.html", "05-flame-graphs.html#CPU", "methodology.html"} <= set(
        re.findall(r'href="([^"]+)"', html)
    )


def test_a_short_cell_with_a_number_stays_on_one_line_and_a_sentence_does_not():
    sentence = "p99 from the due time, on a schedule of 2 000 r/s"
    html = page(new_markdown_cell(f"| a | b | c |\n|---|---|---|\n| [374 µs, 1.15 ms] | get | {sentence} |"))
    assert '<td class="whole">[374 µs, 1.15 ms]</td>' in html
    assert f"<td>{sentence}</td>" in html and "<td>get</td>" in html


def test_the_menu_holds_the_headings_of_the_page_that_is_open():
    html = page(new_markdown_cell("# Question?\n\n## First part\n\ntext\n\n## Second <b>"))
    assert '<a href="#First-part">First part</a>' in html
    assert 'aria-current="page"' in html


def test_every_theme_colour_has_its_twin_in_the_page():
    html = page(new_markdown_cell("# Q?"))
    assert json.loads(re.search(r'<script id="twins"[^>]*>(.*?)</script>', html)[1]) == theme.TWINS


def test_a_notebook_is_named_by_its_first_heading():
    assert (
        title_of(new_notebook(cells=[new_code_cell("# no\n"), new_markdown_cell("# Why?\ntext")]), "x")
        == "Why?"
    )
    assert title_of(new_notebook(), "x") == "x"


def test_a_flame_graph_is_embedded_without_its_link_to_the_network():
    original = (
        "<html><head></head><style>#canvas {width: 100%; height: 96px}</style><a "
        "href='https://example.org/x'>async-profiler</a><button id='info'></button>"
    )
    html = flame.embedded(original, 'cpu of "run"').data
    assert "example.org" not in html and "async-profiler" in html
    assert "height:172px" in html
    assert "Search frames" in html
    assert "localStorage" in html
    assert "aria-label=&#x27;Legend and keys&#x27;" in html


def test_the_contents_name_headings_and_no_whole_answers():
    answer = "kv-service answers faster than a peer in 5 of 8 decided comparisons, and slower in none"
    html = page(new_markdown_cell(f"# Question?\n\n## Every slice pair\n\n## {answer}"))
    (contents,) = re.findall(r"<ol>.*?</ol>", html)
    assert "Every slice pair" in contents and answer not in contents and answer in html
