"""What a reader takes out of a page: charts and flame graphs as files, tables as text, a run's folder."""

import re

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait
from test_dragged_part import type_part
from visits import draw_all, opened

pytestmark = pytest.mark.browser
PNG = b"\x89PNG\r\n"
# Of the lines that name a run the point that is farthest from all others, from the middle of the chart.
LINE = """
const plot = arguments[0];
const RUN = /\\d{8}T\\d{6}Z-[A-Za-z0-9._-]+/;
const { xaxis, yaxis } = plot._fullLayout;
const box = plot.getBoundingClientRect();
const points = plot._fullData.flatMap((trace, line) => Array.from(trace.x, (x, at) => ({
    line,
    run: ((trace.hovertemplate || '').match(RUN) || [])[0],
    x: xaxis._offset + xaxis.d2p(x) - box.width / 2,
    y: yaxis._offset + yaxis.d2p(trace.y[at]) - box.height / 2,
})));
const away = (one) => Math.min(...points.filter((other) => other.line !== one.line)
    .map((other) => Math.hypot(one.x - other.x, one.y - other.y)));
return points.filter((one) => one.run).sort((one, other) => away(other) - away(one))[0];
"""


@pytest.fixture
def downloads(chromium, tmp_path):
    chromium.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    yield tmp_path
    chromium.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "default"})


def saved(driver, place, folder, ending: str) -> bytes:
    """What the button of that ending below ``place`` saves."""
    (button,) = [
        one for one in place.find_elements(By.CSS_SELECTOR, ".tools button") if one.text == ending.upper()
    ]
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    (file,) = WebDriverWait(driver, 60).until(lambda _: list(folder.glob(f"*.{ending}")))
    return file.read_bytes()


def with_clipboard(driver) -> None:
    driver.execute_script(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: (text) => "
        "{ window.copied = text; return Promise.resolve(); }}})"
    )


def copied(driver, button) -> list[str]:
    driver.execute_script("window.copied = ''; arguments[0].click()", button)
    return (
        WebDriverWait(driver, 60).until(lambda _: driver.execute_script("return window.copied")).splitlines()
    )


def test_a_chart_is_saved_as_svg_and_as_png(study, chromium, downloads):
    opened(chromium, study / "03-percentiles.html")
    chart = chromium.find_element(By.CSS_SELECTOR, "figure.chart:has(.plot)")
    text = saved(chromium, chart, downloads, "svg").decode()
    title = chart.find_element(By.CSS_SELECTOR, ".title").text
    chosen = [Select(one).first_selected_option.text for one in chart.find_elements(By.TAG_NAME, "select")]
    assert "<svg" in text[:200] and title in text and ", ".join(chosen) in text
    assert saved(chromium, chart, downloads, "png").startswith(PNG)
    (file,) = downloads.glob("*.png")
    assert chosen and all(re.sub("[^A-Za-z0-9]+", "-", one).lower() in file.name for one in chosen)


def flame_graph(chromium, study):
    """The first of page 05, drawn."""
    opened(chromium, study / "05-flame-graphs.html")
    flame = chromium.find_elements(By.CSS_SELECTOR, ".flame:not(.moment .flame)")[0]
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", flame)
    WebDriverWait(chromium, 60).until(
        lambda _: chromium.execute_script(
            "return !!arguments[0].querySelector('iframe').contentWindow.shown", flame
        )
    )
    return flame


def test_a_flame_graph_is_saved_with_the_frames_that_it_shows(study, chromium, downloads):
    flame = flame_graph(chromium, study)
    text = saved(chromium, flame, downloads, "svg").decode()
    assert text.startswith("<svg xmlns=") and "<title>kv/lsm/LsmStore.get</title>" in text
    assert saved(chromium, flame, downloads, "png").startswith(PNG)


def test_a_saved_flame_graph_has_the_frames_that_a_search_found(study, chromium, downloads):
    flame = flame_graph(chromium, study)
    flame.find_element(By.CSS_SELECTOR, "input").send_keys("kv/lsm")
    text = saved(chromium, flame, downloads, "svg").decode()
    assert re.findall('fill="#ee00ee"><title>([^<]*)', text) == ["kv/lsm/LsmStore.get"]


def test_a_click_on_a_line_leads_to_the_folder_of_its_run(study, chromium):
    opened(chromium, study / "03-percentiles.html")
    draw_all(chromium)
    plot = chromium.find_element(By.CSS_SELECTOR, "figure.chart .plot")
    chromium.execute_script(
        "window.open = (url) => { window.left_to = url; }; arguments[0].scrollIntoView({block: 'center'})",
        plot,
    )
    line = chromium.execute_script(LINE, plot)
    mouse = ActionChains(chromium).move_to_element_with_offset(plot, round(line["x"]), round(line["y"]))
    mouse.pause(0.2).click().perform()
    folder = WebDriverWait(chromium, 60).until(lambda _: chromium.execute_script("return window.left_to"))
    assert folder == f"../../data/raw/reproduce/{line['run']}/"


def test_what_stands_below_a_dragged_part_is_copied(study, chromium):
    opened(chromium, study / "07-tail.html")
    with_clipboard(chromium)
    chromium.execute_script("document.querySelector('.moment').scrollIntoView()")
    WebDriverWait(chromium, 60).until(
        lambda _: chromium.find_elements(By.CSS_SELECTOR, ".moment .plot[data-listens]")
    )
    type_part(chromium, "1.00", "5.00")
    rows = chromium.find_elements(By.CSS_SELECTOR, ".moment .lists .tools")
    assert len(rows) == len(chromium.find_elements(By.CSS_SELECTOR, ".moment .lists table"))
    csv, markdown = rows[0].find_elements(By.TAG_NAME, "button")
    assert copied(chromium, csv)[0] == "due at,response,service,connection"
    assert copied(chromium, markdown)[0] == "| due at | response | service | connection |"


def test_a_button_that_is_clicked_twice_has_its_name_again(study, chromium):
    opened(chromium, study / "03-percentiles.html")
    with_clipboard(chromium)
    button = chromium.find_element(By.CSS_SELECTOR, "details.table .tools button")
    chromium.execute_script("window.later = []; window.setTimeout = (act) => { later.push(act); };")
    for clicks in (1, 2):
        chromium.execute_script("arguments[0].click()", button)
        WebDriverWait(chromium, 60).until(
            lambda _, clicks=clicks: chromium.execute_script("return later.length") == clicks
        )
    chromium.execute_script("later.forEach((act) => act())")
    assert button.get_attribute("textContent") == "CSV"


@pytest.mark.parametrize(("allowed", "said"), [("true", "copied"), ("false", "refused by the browser")])
def test_without_a_clipboard_a_button_says_whether_it_copied_and_keeps_the_focus(
    study, chromium, allowed, said
):
    opened(chromium, study / "03-percentiles.html")
    chromium.execute_script(
        "Object.defineProperty(navigator, 'clipboard', {value: undefined}); window.setTimeout = () => {};"
        f"document.execCommand = () => {{ window.copied = document.activeElement.value; return {allowed}; }}"
    )
    table = chromium.find_element(By.CSS_SELECTOR, "details.table")
    chromium.execute_script("arguments[0].open = true", table)
    button = table.find_element(By.CSS_SELECTOR, ".tools button")
    chromium.execute_script("arguments[0].focus()", button)
    assert "," in copied(chromium, button)[0]
    WebDriverWait(chromium, 60).until(lambda _: button.text == said)
    assert chromium.switch_to.active_element == button
    assert (button.get_attribute("aria-live"), button.find_element(By.XPATH, "..").accessible_name) == (
        "polite",
        "Copy",
    )


def test_a_frame_of_plain_pandas_is_copied(study, chromium):
    opened(chromium, study / "09-explore.html")
    with_clipboard(chromium)
    table = next(
        one
        for one in chromium.find_elements(By.CSS_SELECTOR, "details.table:has(table.dataframe)")
        if "median" in one.text
    )
    chromium.execute_script("arguments[0].open = true", table)
    csv = table.find_element(By.CSS_SELECTOR, ".tools button")
    head, *rows = copied(chromium, csv)
    assert head == "connection,count,median,max"
    assert rows and all(len(row.split(",")) == 4 for row in rows)


def test_the_runs_behind_a_median_are_a_click_away(study, chromium):
    opened(chromium, study / "03-percentiles.html")
    table = next(
        one
        for one in chromium.find_elements(By.CSS_SELECTOR, "details.table")
        if "valid runs" in one.get_attribute("innerHTML")
    )
    chromium.execute_script("arguments[0].open = true; arguments[0].scrollIntoView()", table)
    links = WebDriverWait(chromium, 60).until(lambda _: table.find_elements(By.CSS_SELECTOR, "td a.run"))
    assert all(
        f"/data/raw/reproduce/{link.get_attribute('title')}/" in link.get_attribute("href") for link in links
    )
    assert len(links) > 4
