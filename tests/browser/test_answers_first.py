"""What a reader sees first: the answers of all pages on one screen; of a page its answer and its chart."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait
from visits import NARROW_PX, all_pages, draw_all, opened

pytestmark = pytest.mark.browser
SCREEN = (1340, 800)


def on_a_screen(driver, page, scheme="light"):
    return opened(driver, page, SCREEN[0], scheme, SCREEN[1])


def boxes(driver, selector: str) -> list[dict]:
    return driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((one) => "
        "one.getBoundingClientRect().toJSON())",
        selector,
    )


def test_every_question_has_its_answer_on_the_first_screen_and_leads_to_its_page(study, chromium):
    on_a_screen(chromium, study / "index.html")
    cards = boxes(chromium, ".cards .card")
    links = [
        card.get_attribute("href").split("/")[-1] for card in chromium.find_elements(By.CSS_SELECTOR, ".card")
    ]
    notebooks = {page.name for page in all_pages(study) if page.name[:2].isdigit()}
    assert set(links) == notebooks and len(links) == len(notebooks)
    assert all(card["top"] >= 0 and card["bottom"] <= SCREEN[1] for card in cards)
    cut = chromium.execute_script(
        "return [...document.querySelectorAll('.card, .card .answer')].filter((one) => "
        "one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1).length"
    )
    assert cut == 0
    after = chromium.execute_script(
        "return document.querySelector('.lead').nextElementSibling.getBoundingClientRect().top"
    )
    assert after >= SCREEN[1] - 40  # nothing else to read there


def test_the_keyboard_goes_through_the_first_page_from_its_top_to_its_end(study, chromium):
    on_a_screen(chromium, study / "index.html")
    tops = chromium.execute_script(
        "return [...document.querySelectorAll('.home, .card, .menu a')].map((one) => "
        "[one.className, one.getBoundingClientRect().top])"
    )
    assert tops[0][0] == "home" and tops[1][0].startswith("card") and tops[-1][0] == ""
    menu = [top for name, top in tops if not name]
    assert min(menu) > max(top for name, top in tops if name)


def test_on_every_page_the_answer_and_its_chart_are_whole_on_the_first_screen(study, chromium):
    led = 0
    for page in all_pages(study):
        on_a_screen(chromium, page)
        (heading,) = chromium.find_elements(By.TAG_NAME, "h1")
        assert heading.text
        if not chromium.find_elements(By.CSS_SELECTOR, ".lead .plot"):
            continue
        led += 1
        WebDriverWait(chromium, 60).until(lambda _: boxes(chromium, ".lead .plot .main-svg"))
        (answer,) = chromium.find_elements(By.CSS_SELECTOR, ".head .answer")
        assert answer.text and len(answer.text.split()) <= 24, page.name
        (plot,) = boxes(chromium, ".lead .plot")
        assert plot["bottom"] <= SCREEN[1], page.name
        assert plot["height"] >= 200, page.name
    assert led >= 6


def test_a_panel_is_chosen_and_all_of_them_are_a_click_away(study, chromium):
    on_a_screen(chromium, study / "03-percentiles.html")
    plot = WebDriverWait(chromium, 60).until(
        lambda _: next(iter(chromium.find_elements(By.CSS_SELECTOR, ".lead .plot[data-drawn]")), None)
    )
    drawn = (
        "return [Object.keys(arguments[0]._fullLayout._plots).length, "
        "JSON.stringify(arguments[0].data.map((trace) => Array.from(trace.y || [])))]"
    )
    panels, first = chromium.execute_script(drawn, plot)
    assert panels == 1
    row = chromium.find_element(By.CSS_SELECTOR, ".lead .choose")
    chooser = row.find_elements(By.TAG_NAME, "select")[-1]
    caption = chromium.find_element(By.CSS_SELECTOR, ".lead .under")
    chosen = Select(chooser).first_selected_option.text
    assert chosen in caption.text
    other = next(option.text for option in Select(chooser).options if option.text != chosen)
    Select(chooser).select_by_visible_text(other)
    WebDriverWait(chromium, 60).until(lambda _: chromium.execute_script(drawn, plot)[1] != first)
    names = chromium.execute_script(
        "return [...arguments[0].querySelectorAll('.legendtext')].map((name) => name.textContent)", plot
    )
    assert names and other in caption.text
    row.find_element(By.TAG_NAME, "button").click()
    WebDriverWait(chromium, 60).until(lambda _: chromium.execute_script(drawn, plot)[0] > 2)


def test_a_table_is_copied_whole_as_markdown_and_as_csv(study, chromium):
    on_a_screen(chromium, study / "03-percentiles.html")
    chromium.execute_script(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: (text) => "
        "{ window.copied = text; return Promise.resolve(); }}})"
    )
    tables = chromium.find_elements(By.CSS_SELECTOR, "details.table")
    table = tables[-1]
    chromium.execute_script("arguments[0].open = true; arguments[0].scrollIntoView()", table)
    csv, markdown = table.find_elements(By.CSS_SELECTOR, ".tools button")
    csv.click()
    rows = (
        WebDriverWait(chromium, 60)
        .until(lambda _: chromium.execute_script("return window.copied"))
        .splitlines()
    )
    markdown.click()
    lines = (
        WebDriverWait(chromium, 60)
        .until(lambda _: (text := chromium.execute_script("return window.copied")).startswith("|") and text)
        .splitlines()
    )
    assert lines[1].replace("|", "").replace("-", "").strip() == "" and len(lines) == len(rows) + 1
    assert len(rows) == 1 + 16 and rows[0].startswith("verdict,run")
    link = WebDriverWait(chromium, 60).until(
        lambda _: next(iter(table.find_elements(By.CSS_SELECTOR, "a.run")), None)
    )
    assert "/data/raw/reproduce/" in link.get_attribute("href")


def test_every_run_that_a_page_shows_has_a_link_to_its_folder(study, chromium):
    on_a_screen(chromium, study / "04-capacity.html")
    chromium.execute_script("document.querySelector('details.runs').open = true")
    links = WebDriverWait(chromium, 60).until(lambda _: chromium.find_elements(By.CSS_SELECTOR, ".runs a"))
    assert len(links) == 16
    for link in links:
        folder = Path(unquote(urlsplit(link.get_attribute("href")).path))
        assert (folder / "SHA256SUMS").is_file()


def test_on_a_telephone_a_card_is_as_wide_as_the_screen(study, chromium):
    opened(chromium, study / "index.html", NARROW_PX)
    draw_all(chromium)
    cards = boxes(chromium, ".cards .card")
    assert all(NARROW_PX - 60 < card["width"] <= NARROW_PX for card in cards)
