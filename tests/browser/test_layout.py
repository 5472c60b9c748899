"""Pages as large as a screen, a telephone, a sheet of paper: nothing beside the edge, every answer in sight,
text that stands out from what it stands on."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from test_answers_first import SCREEN, boxes, on_a_screen
from visits import NARROW_PX, all_pages, opened, seen, sized

from kvstudy.present.cards import Bar, Card, Shown

pytestmark = pytest.mark.browser
PAPER_PX, SHEET_PX = 718, 1046  # of an A4 sheet within its margins
ENOUGH = 4.5  # contrast of small text, WCAG 2.2 AA
# As much as a card has to say: a long question, the longest sentence, bars and badges of the reference. No
# card has the longest of everything: the one with the longest question has one badge. Of eleven cards 10 can
# have bars.
FULL = Card(
    "06-before-after",
    "Why is the slow one percent slow?",
    "Syncing the log before every answer (wal=always) makes unique PUT on 64 connections 5.9 × slower.",
    "share of slow unique PUT answers during which it was felt (4 of 14)",
    tuple(
        Bar(label, number, "160 000 r/s")
        for label, number in (
            ("half reads, half writes", 5),
            ("mixed", 3),
            ("each of 6 others", 2),
            ("get", 1),
        )
    ),
    ("reference: 154 of 154 runs valid", "12 of 39 decided", "finds only differences over 53 %"),
)
SHORT = Card(
    "09-explore", "What do you want to know?", "In JupyterLab (make lab) choose a run and a percentile."
)
CONTRASTS = """
const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => part / 255)
        .map((part) => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
};
const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
const below = (one) => {
    for (; one; one = one.parentElement) {
        const colour = parts(getComputedStyle(one).backgroundColor);
        if (colour.length < 4 || colour[3] === 1) return colour.slice(0, 3);
    }
    return [255, 255, 255];
};
return [...document.querySelectorAll(arguments[0])].map((one) => {
    const [a, b] = [light(parts(getComputedStyle(one).color).slice(0, 3)), light(below(one))];
    return [one.textContent.slice(0, 40), (Math.max(a, b) + .05) / (Math.min(a, b) + .05)];
});
"""


def with_cards(driver, cards: list[Card]) -> None:
    """The index as if its answers were these."""
    html = Shown(cards)._repr_mimebundle_()["text/html"]
    driver.execute_script(
        "document.querySelector('.cards').outerHTML = arguments[0].replace(/<style>[^]*<.style>/, '')", html
    )


def out_of_sight(driver) -> list:
    """Cards that are not whole on the screen, or hold more than they show."""
    return [box for box in boxes(driver, ".cards .card") if box["top"] < 0 or box["bottom"] > SCREEN[1]] + (
        driver.execute_script(
            "return [...document.querySelectorAll('.card, .card .answer, .card .badges')].filter((one) => "
            "one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1)"
            ".map((one) => one.outerHTML.slice(0, 80))"
        )
    )


@pytest.mark.parametrize(("full", "short"), [(8, 3), (10, 1)])
def test_eleven_answers_are_whole_on_one_screen_even_where_each_says_much(study, chromium, full, short):
    on_a_screen(chromium, study / "index.html")
    with_cards(chromium, [FULL] * full + [SHORT] * short)
    assert out_of_sight(chromium) == []


def test_the_answers_of_the_study_are_whole_on_one_screen(study, chromium):
    on_a_screen(chromium, study / "index.html")
    assert len(boxes(chromium, ".cards .card")) == 11 and out_of_sight(chromium) == []


def test_no_label_of_a_card_is_cut(study, chromium):
    on_a_screen(chromium, study / "index.html")
    cut = chromium.execute_script(
        "return [...document.querySelectorAll('.card .label, .card .of')]"
        ".filter((one) => one.scrollHeight > one.clientHeight + 1).map((one) => one.textContent)"
    )
    assert cut == []


def test_no_page_is_wider_than_a_telephone(study, chromium):
    views = seen(chromium, study, NARROW_PX, "dark")
    assert len(views) == len(all_pages(study))
    assert [name for name, view in views.items() if view.scrolls_sideways] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_of_cards_and_heads_stands_out(study, chromium, scheme):
    text = ".card h2, .card p, .card .label, .card .number, .badge, .head h1, .head p, .under, figcaption"
    for name in ("index.html", "06-before-after.html"):
        opened(chromium, study / name, scheme=scheme)
        pale = [found for found in chromium.execute_script(CONTRASTS, text) if found[1] < ENOUGH]
        assert (name, pale) == (name, [])


def test_bars_of_cards_are_there_where_the_system_chooses_all_colours(study, chromium):
    opened(chromium, study / "index.html")
    try:
        chromium.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "forced-colors", "value": "active"}]}
        )
        full, ground = chromium.execute_script(
            "return [...document.querySelectorAll('.bars .track i:not(.open)'), document.body]"
            ".map((one) => getComputedStyle(one).backgroundColor).slice(-2)"
        )
    finally:
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert full != ground


def test_a_printed_page_is_white_and_no_wider_than_its_paper_whatever_theme_was_chosen(study, chromium):
    try:
        for page in all_pages(study):
            opened(chromium, page, PAPER_PX, "dark")
            for chosen in ("", "dark"):
                chromium.execute_script(
                    "if (arguments[0]) document.documentElement.dataset.theme = arguments[0]", chosen
                )
                chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
                sees = chromium.execute_script(
                    "return [getComputedStyle(document.body).backgroundColor, "
                    "document.documentElement.scrollWidth <= window.innerWidth]"
                )
                assert (page.name, chosen, *sees) == (page.name, chosen, "rgb(255, 255, 255)", True)
                pale = [
                    found
                    for found in chromium.execute_script(CONTRASTS, ".card p, .card h2, .head p, h1")
                    if found[1] < ENOUGH
                ]
                assert (page.name, chosen, pale) == (page.name, chosen, [])
    finally:
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


PRINTED = """
return [...document.querySelectorAll('figure.chart .plot')].map((plot) => {
    const box = plot.querySelector('.main-svg')?.getBoundingClientRect() ?? {};
    return [plot.closest('figure').textContent.slice(0, 60), box.width, box.height];
});
"""
FRAME = """
const page = arguments[0].contentDocument.documentElement;
return {
    width: arguments[0].getBoundingClientRect().width,
    is_dark: page.classList.contains('dark'),
    scrolls: page.scrollWidth > page.clientWidth,
    is_cut: page.scrollHeight > page.clientHeight + 1,
};
"""


def test_a_printed_chart_is_no_wider_than_its_paper_and_whole_on_a_sheet(study, chromium):
    for name in ("03-percentiles.html", "06-before-after.html", "07-tail.html"):
        on_a_screen(chromium, study / name)
        chromium.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        printed = chromium.execute_script(PRINTED)
        assert printed and all(0 < width <= PAPER_PX for _, width, _ in printed), (name, printed)
        assert all(height <= SHEET_PX for *_, height in printed), (name, printed)
        chromium.execute_script("window.dispatchEvent(new Event('afterprint'))")
        assert max(width for _, width, _ in chromium.execute_script(PRINTED)) > PAPER_PX


def test_a_printed_table_is_no_wider_than_its_paper(study, chromium):
    places = "return [...document.querySelectorAll('.output table')].filter((table) => table.offsetWidth)"
    places += ".map((table) => [table.getBoundingClientRect().right, +(table.style.zoom || 1)])"
    for name in ("index.html", "03-percentiles.html"):
        on_a_screen(chromium, study / name)
        chromium.execute_script(
            "document.querySelectorAll('details.table').forEach((table) => { table.open = true; })"
        )
        WebDriverWait(chromium, 60).until(lambda _: len(chromium.execute_script(places)) > 2)
        chromium.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        sized(chromium, PAPER_PX)
        assert max(right for right, _ in chromium.execute_script(places)) <= PAPER_PX, name
        chromium.execute_script("window.dispatchEvent(new Event('afterprint'))")
        assert {zoom for _, zoom in chromium.execute_script(places)} == {1}, name


def test_a_printed_flame_graph_is_white_and_as_wide_as_its_paper(study, chromium):
    on_a_screen(chromium, study / "05-flame-graphs.html", scheme="dark")
    frame = chromium.find_element(By.CSS_SELECTOR, ".flame iframe")
    chromium.execute_script("arguments[0].scrollIntoView()", frame)
    WebDriverWait(chromium, 60).until(lambda _: chromium.execute_script(FRAME, frame)["is_dark"])
    chromium.execute_script(
        "const page = arguments[0].contentWindow;"
        "page.document.getElementById('canvas').style.height = '3000px';"  # a deep one
        "page.dispatchEvent(new Event('resize'))",
        frame,
    )
    before = chromium.execute_script(FRAME, frame)
    assert before["width"] > PAPER_PX and before["is_cut"]
    chromium.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    printed = chromium.execute_script(FRAME, frame)
    assert printed["width"] <= PAPER_PX and not printed["is_dark"]
    assert not printed["scrolls"] and not printed["is_cut"]
    chromium.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert chromium.execute_script(FRAME, frame) == before


def test_on_paper_both_of_two_graphs_are_there_with_their_names(study, chromium):
    opened(chromium, study / "07-tail.html")
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = chromium.execute_script(
            "return [...document.querySelectorAll('.graph')].map((graph) => [graph.clientHeight, "
            "getComputedStyle(graph).visibility, getComputedStyle(graph, '::before').content])"
        )
    finally:
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert len(shown) >= 2 and all(height > 20 and seen == "visible" for height, seen, _ in shown)
    assert [name for *_, name in shown][-2:] == ['"Seconds the slow"', '"Seconds all"']
