"""Pages of outputs that the made study does not have: names of all kinds, quantities, few panels."""

import csv
import json
import shutil

import pandas as pd
import plotly.graph_objects as go
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait
from test_answers_first import SCREEN, boxes, on_a_screen
from test_pages import touching
from test_taken_out import copied, with_clipboard
from visits import NARROW_PX, draw_all, opened

from kvstudy.present import notebook, report, words
from kvstudy.present.figures.panels import cell, panel_grid, titled
from kvstudy.present.markdown import Markdown
from kvstudy.present.page import PLOTLY_MIME, Entry, page_of
from kvstudy.project import EXPORT_VARIABLE

pytestmark = pytest.mark.browser
NAME = "queue<int>"
CELL = "table.dataTable tbody td:first-child"
SORTED = ["cannot tell", "–", "812 µs", "1.20 ms [1.10, 1.30 ms]", "9.50 ms", "above 12.0 ms", "1.10 s"]


@pytest.fixture
def page(tmp_path):
    """Makes a page of outputs, each a MIME type and what it holds."""
    report._write_assets(tmp_path / "assets")

    def made(*outputs: tuple[str, object], folders: dict | None = None):
        cells = [
            new_code_cell("x", outputs=[new_output("display_data", {kind: data})]) for kind, data in outputs
        ]
        html = page_of(new_notebook(cells=cells), [Entry("page.html", "Page", here=True)], folders=folders)
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        return tmp_path / "page.html"

    return made


def texts(driver, selector: str) -> list[str]:
    return driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector
    )


def test_a_name_that_looks_like_a_tag_is_whole_in_choosers_headings_and_sentences(page, chromium):
    names = [NAME, "queue", "stack"]
    figure = panel_grid([f"{name}, put" for name in names], "rate", "latency")
    for place in range(len(names)):
        figure.add_trace(go.Scatter(x=[1, 2], y=[1, 2]), **cell(place, len(names)))
    titled(figure, "Latency", "found", "drawn")
    told = Markdown(f"## {NAME} is slower\n\nThan `{NAME}`, **by** <b>much</b>.")
    opened(chromium, page((PLOTLY_MIME, json.loads(figure.to_json())), ("text/markdown", told.data)))
    draw_all(chromium)
    (chooser,) = chromium.find_elements(By.CSS_SELECTOR, ".choose select")
    assert [option.text for option in Select(chooser).options] == names
    chromium.find_element(By.CSS_SELECTOR, ".choose button").click()
    WebDriverWait(chromium, 60).until(lambda _: f"{NAME}, put" in texts(chromium, ".annotation-text"))
    assert chromium.find_element(By.TAG_NAME, "h2").text.startswith(f"{NAME} is slower")
    assert chromium.find_element(By.CSS_SELECTOR, ".prose:has(h2) code").text == NAME
    assert "<b>much</b>" in chromium.find_element(By.CSS_SELECTOR, ".prose:has(h2) p").text


def test_a_column_of_quantities_is_sorted_by_what_they_say(page, chromium, monkeypatch):
    monkeypatch.setenv(EXPORT_VARIABLE, "1")
    mixed = pd.DataFrame({"p99": [SORTED[place] for place in (3, 0, 6, 2, 5, 1, 4)], "run": list("gfedcba")})
    opened(chromium, page(("text/html", notebook.show(mixed).data)))
    chromium.execute_script("document.querySelector('details.table').open = true")
    WebDriverWait(chromium, 60).until(lambda _: set(texts(chromium, CELL)) == set(SORTED))
    chromium.execute_script("document.querySelector('table.dataTable .dt-column-order').click()")
    WebDriverWait(chromium, 60).until(lambda _: set(texts(chromium, CELL)[:2]) == set(SORTED[:2]))
    assert texts(chromium, CELL)[2:] == SORTED[2:]


@pytest.mark.parametrize("around", ["{}", "{}/s", "at {}/s"])
def test_a_number_is_found_as_it_is_typed_and_as_it_stands_there(page, chromium, monkeypatch, around):
    monkeypatch.setenv(EXPORT_VARIABLE, "1")
    cells = [around.format(words.count(rate)) for rate in range(1_000, 101_000, 1_000)]
    opened(chromium, page(("text/html", notebook.show(pd.DataFrame({"rate": cells})).data)))
    chromium.execute_script("document.querySelector('details.table').open = true")
    WebDriverWait(chromium, 60).until(lambda _: len(texts(chromium, CELL)) > 1)
    for typed in ("98000", "98 000", cells[97]):
        box = chromium.find_element(By.CSS_SELECTOR, ".dt-search input")
        box.clear()
        box.send_keys(typed)
        WebDriverWait(chromium, 60).until(lambda _: texts(chromium, CELL) == [cells[97]], typed)


def test_cells_of_any_text_and_number_are_copied_as_they_are_seen(page, chromium, monkeypatch):
    monkeypatch.setenv(EXPORT_VARIABLE, "1")
    texts_of = {"name": [NAME, 'a|b, "c" & d*e*', "`f`"], "p99 (ms)": [1.5, 2.25, float("nan")]}
    frame = pd.DataFrame(texts_of)
    shown = notebook.show(frame).data, frame.to_html(border=0, index=False)
    opened(chromium, page(*(("text/html", html) for html in shown)))
    with_clipboard(chromium)
    numbers = ["1.50", "2.25", "NaN"]
    for table in chromium.find_elements(By.CSS_SELECTOR, "details.table"):
        chromium.execute_script("arguments[0].open = true", table)
        csv_button, markdown = table.find_elements(By.CSS_SELECTOR, ".tools button")
        assert list(csv.reader(copied(chromium, csv_button))) == [
            list(frame.columns),
            *map(list, zip(frame["name"], numbers, strict=True)),
        ]
        rows = [line.strip("| ").rpartition(" | ") for line in copied(chromium, markdown)[2:]]
        assert [name for name, *_ in rows] == [r"queue\<int>", r'a\|b, "c" & d\*e\*', r"\`f\`"]
        assert [number for *_, number in rows] == numbers


def test_a_label_without_a_blank_is_no_wider_than_the_page(page, chromium):
    label = "x" * 200
    figure = panel_grid([f"{label}{place}, put" for place in range(3)], "rate", "latency")
    for place in range(3):
        figure.add_trace(go.Scatter(x=[1, 2], y=[1, 2], name=label), **cell(place, 3))
    titled(figure, "Latency", f"{label}: p99 rises", label)
    told = Markdown(f"## {label}\n\nOf `{label}`, and **{label}**.")
    made = page((PLOTLY_MIME, json.loads(figure.to_json())), ("text/markdown", told.data))
    for width in (NARROW_PX, SCREEN[0]):
        opened(chromium, made, width)
        draw_all(chromium)
        assert chromium.execute_script("return document.documentElement.scrollWidth <= innerWidth"), width


def test_a_legend_shows_the_end_of_a_long_name_beside_the_chart_and_not_over_it(page, chromium):
    names = [f"{' '.join(f'--an-option={place}' for place in range(10))} --last={last}" for last in "abc"]
    figure = panel_grid([""], "rate", "latency")
    for name in names:
        figure.add_trace(go.Scatter(x=[1, 2], y=[1, 2], name=name))
    titled(figure, "Latency", "found", "drawn")
    made = page((PLOTLY_MIME, json.loads(figure.to_json())))
    for width in (NARROW_PX, SCREEN[0]):
        opened(chromium, made, width)
        draw_all(chromium)
        (chart,), (axis,) = boxes(chromium, "figure.chart .plot"), boxes(chromium, ".xtitle")
        shown = boxes(chromium, ".legendtext")
        assert len(shown) == 3 and all(box["right"] <= chart["right"] for box in shown), width
        assert all(axis["bottom"] <= box["top"] and box["bottom"] <= chart["bottom"] for box in shown), width


def test_on_a_low_screen_each_row_of_the_first_chart_keeps_its_name(page, chromium):
    names = [f"option={row}" for row in range(16)]
    figure = panel_grid([""], "ratio", "")
    figure.add_trace(go.Scatter(x=list(range(16)), y=names, mode="markers"))
    figure.update_yaxes(type="category")
    titled(figure, "What options change", "found", "drawn")
    opened(chromium, page((PLOTLY_MIME, json.loads(figure.to_json()))), SCREEN[0], height=500)
    draw_all(chromium)
    assert chromium.find_elements(By.CSS_SELECTOR, ".lead .plot")
    assert sorted(texts(chromium, ".ytick text")) == sorted(names)


def test_a_page_that_was_copied_without_its_assets_says_so_and_no_other_does(page, chromium, tmp_path):
    made, alone = page(("text/markdown", "Told.")), tmp_path / "elsewhere" / "page.html"
    alone.parent.mkdir()
    shutil.copyfile(made, alone)
    for path, is_told in ((made, False), (alone, True)):
        opened(chromium, path, SCREEN[0])
        assert chromium.find_element(By.CSS_SELECTOR, ".alone").is_displayed() == is_told, path


def test_ticks_that_have_no_room_are_hidden_and_round_ones_stay(page, chromium):
    figure = panel_grid(["a", "b", "c"], "records", "latency", columns=3)
    for place in range(3):
        figure.add_trace(go.Scatter(x=[1e5, 1e7], y=[1, 2]), **cell(place, 3, 3))
    works = [90_000, 100_000, 200_000, 1_000_000, 10_000_000]
    figure.update_xaxes(
        type="log", tickvals=works, ticktext=[words.count(work) for work in works], tickangle=0
    )
    titled(figure, "Cost", "found", "drawn")
    opened(chromium, page((PLOTLY_MIME, json.loads(figure.to_json()))), width=720)
    draw_all(chromium)
    chromium.find_element(By.CSS_SELECTOR, ".choose button").click()
    WebDriverWait(chromium, 60).until(lambda _: len(texts(chromium, ".annotation-text")) == 3)
    assert touching(chromium) == []
    shown = 'g.xtick > text:not([style*="hidden"])'
    assert words.count(100_000) in texts(chromium, shown)
    assert words.count(90_000) not in texts(chromium, shown)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_first_chart_of_two_panels_is_whole_on_the_screen(page, chromium, columns):
    figure = panel_grid(["cpu: samples", "alloc: bytes"], "share", "", columns=columns, row_px=500)
    for place in range(2):
        figure.add_trace(go.Scatter(x=[1, 2], y=[1, 2]), **cell(place, 2, columns))
    titled(figure, "Shares", "found", "drawn")
    on_a_screen(chromium, page((PLOTLY_MIME, json.loads(figure.to_json()))))
    draw_all(chromium)
    (plot,) = boxes(chromium, ".lead .plot")
    assert plot["bottom"] <= SCREEN[1]
    assert len(chromium.find_elements(By.CSS_SELECTOR, ".choose select")) == (columns == 1)


def test_on_paper_no_heading_stands_over_tables_that_are_all_folded(page, chromium, monkeypatch):
    monkeypatch.setenv(EXPORT_VARIABLE, "1")
    table = "text/html", notebook.show(pd.DataFrame({"run": ["a", "b"]})).data
    told = [("text/markdown", f"## {name}") for name in ("Folded", "Of parts", "Opened", "Last")]
    part = "text/markdown", "### Part\n\nOne sentence."
    runs = {"base": "data", "of": {"20261120T204200Z-put-rep1": "raw/shop"}}  # they have a list of their own
    made = page(told[0], table, told[1], part, told[2], table, table, told[3], table, folders=runs)
    opened(chromium, made)
    chromium.execute_script("document.querySelectorAll('details.table')[2].open = true")
    chromium.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        headings = chromium.find_elements(By.CSS_SELECTOR, "main :is(h2, h3)")
        shown = [heading.text.rstrip("¶") for heading in headings if heading.is_displayed()]
    finally:
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert shown == ["Of parts", "Part", "Opened"]


BEYOND = """
const plot = document.querySelector('.plot');
const box = plot.getBoundingClientRect();
const titles = '[class^="g-x"][class$="title"] text';
const words = plot.querySelectorAll(`.annotation-text, .legendtext, .ytick text, ${titles}`);
return [...words].filter((word) => word.textContent.trim()).filter((word) => {
    const own = word.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1 || own.bottom > box.bottom + 1;
}).map((word) => word.textContent);
"""


def test_on_a_telephone_headings_titles_and_legends_beside_long_names_are_whole(page, chromium):
    sides = ["compaction=leveled beside compaction=none", "value_bytes=16384 beside value_bytes=100", "c"]
    figure = panel_grid(
        [f"compaction: {side}" for side in sides], "instead of the default / default (log)", ""
    )
    for place, _ in enumerate(sides):
        for part in range(14):
            name = f"subsystem {part}"
            bar = go.Bar(x=[1], y=["CPU per request of repeated_put"], name=name, orientation="h")
            figure.add_trace(bar.update(showlegend=place == 0, legendgroup=name), **cell(place, len(sides)))
    figure.update_layout(barmode="stack")
    titled(figure, "Shares", "found", "drawn")
    opened(chromium, page((PLOTLY_MIME, json.loads(figure.to_json()))), NARROW_PX)
    draw_all(chromium)
    assert chromium.execute_script(BEYOND) == [], "one panel"
    chromium.find_element(By.CSS_SELECTOR, ".choose button").click()
    draw_all(chromium)
    assert chromium.execute_script(BEYOND) == [], "all panels"
