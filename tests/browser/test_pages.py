"""The exported pages in a real browser: every chart drawn, everything works, nothing leaves the machine,
nothing complains."""

import time

import pandas as pd
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait
from visits import NARROW_PX, VISITS, WIDE_PX, draw_all, opened, seen

from kvstudy.present import flame
from kvstudy.present.flame_difference import difference_page
from kvstudy.present.stack_tree import StackTree

pytestmark = pytest.mark.browser


def all_panels(driver) -> None:
    """Every panel of every chart that shows one at a time."""
    driver.execute_script("document.querySelectorAll('.choose button').forEach((all) => all.click())")


def test_every_chart_of_every_page_is_drawn_without_a_complaint_or_a_request(study, chromium):
    views = seen(chromium, study, WIDE_PX, "light")
    for name, view in views.items():
        assert all(view.drawn), f"{name}: {view.drawn}"
        assert (name, view.complaints, view.requests) == (name, [], [])
    assert sum(len(view.drawn) for view in views.values()) >= 10


def test_traces_are_really_on_the_screen(study, chromium):
    opened(chromium, study / "03-percentiles.html")
    draw_all(chromium)
    lines = chromium.execute_script(
        "return document.querySelectorAll('figure.chart .scatterlayer .trace path.js-line').length"
    )
    assert lines > 20
    assert (
        chromium.execute_script("return document.querySelectorAll('figure.chart .heatmaplayer image').length")
        == 1
    )


def test_charts_are_drawn_by_themselves_when_scrolled_to(study, chromium):
    opened(chromium, study / "03-percentiles.html")
    last = chromium.find_elements(By.CSS_SELECTOR, "figure.chart .plot")[-1]
    assert last.get_attribute("data-drawn") is None
    chromium.execute_script("arguments[0].scrollIntoView()", last)
    WebDriverWait(chromium, 60).until(lambda _: last.find_elements(By.CSS_SELECTOR, ".main-svg"))


def test_pointing_at_a_line_tells_its_run(study, chromium):
    opened(chromium, study / "04-capacity.html")
    plot = chromium.find_element(By.CSS_SELECTOR, "figure.chart .plot")
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    WebDriverWait(chromium, 60).until(lambda _: plot.find_elements(By.CSS_SELECTOR, ".points path"))
    ActionChains(chromium).move_to_element(plot.find_elements(By.CSS_SELECTOR, ".points path")[0]).perform()
    WebDriverWait(chromium, 60).until(lambda _: plot.find_elements(By.CSS_SELECTOR, ".hoverlayer .hovertext"))
    assert "verdict" in plot.find_element(By.CSS_SELECTOR, ".hoverlayer").text


def test_dragging_zooms_a_chart_and_all_its_panels(study, chromium):
    opened(chromium, study / "03-percentiles.html")
    plot = chromium.find_element(By.CSS_SELECTOR, "figure.chart .plot")
    all_panels(chromium)
    WebDriverWait(chromium, 60).until(lambda _: len(plot.find_elements(By.CSS_SELECTOR, ".nsewdrag")) > 2)
    before = chromium.execute_script("return [...arguments[0]._fullLayout.xaxis.range]", plot)
    area = plot.find_elements(By.CSS_SELECTOR, ".nsewdrag")[0]
    ActionChains(chromium).move_to_element(area).click_and_hold().move_by_offset(80, 40).pause(
        0.1
    ).release().perform()
    WebDriverWait(chromium, 60).until(
        lambda _: chromium.execute_script("return [...arguments[0]._fullLayout.xaxis.range]", plot) != before
    )
    ranges = chromium.execute_script(
        "return [arguments[0]._fullLayout.xaxis.range, arguments[0]._fullLayout.xaxis2.range]", plot
    )
    assert ranges[0] == ranges[1]


def test_a_flame_graph_can_be_searched_and_zoomed(study, chromium):
    opened(chromium, study / "05-flame-graphs.html")
    flame = chromium.find_element(By.CSS_SELECTOR, ".flame")
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", flame)
    frame = flame.find_element(By.TAG_NAME, "iframe")
    WebDriverWait(chromium, 60).until(
        lambda _: chromium.execute_script(
            "return !!arguments[0].contentDocument.getElementById('canvas')", frame
        )
    )
    flame.find_element(By.CSS_SELECTOR, "input").send_keys("kv/lsm")
    matched = WebDriverWait(chromium, 60).until(
        lambda _: chromium.execute_script(
            "return arguments[0].contentDocument.getElementById('matchval').textContent", frame
        )
    )
    assert matched == f"{100 * 250 / 1030:.2f}%"
    chromium.switch_to.frame(frame)
    canvas = chromium.find_element(By.ID, "canvas")
    place = ActionChains(chromium).move_to_element_with_offset(canvas, 0, -16)
    place.perform()
    whole = chromium.find_element(By.ID, "status").text
    place.click().perform()
    ActionChains(chromium).move_to_element_with_offset(canvas, 0, -16).perform()
    assert whole.startswith("Function: ") and "samples" in whole
    assert chromium.execute_script("return root.level") > 0
    chromium.switch_to.default_content()


def flame_graph(chromium, study):
    """The frame of the first one of page 05, drawn."""
    opened(chromium, study / "05-flame-graphs.html")
    frame = chromium.find_element(By.CSS_SELECTOR, ".flame iframe")
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", frame)
    WebDriverWait(chromium, 60).until(
        lambda _: chromium.execute_script("return !!arguments[0].contentWindow.shown", frame)
    )
    return frame


def test_a_zoomed_flame_graph_stays_zoomed_in_another_theme(study, chromium):
    frame = flame_graph(chromium, study)
    root = "return arguments[0].contentWindow.shown().root.title"
    chromium.execute_script(
        "const page = arguments[0].contentWindow; page.render(page.shown().levels[2][0])", frame
    )
    zoomed = chromium.execute_script(root, frame)
    chromium.find_element(By.ID, "theme").click()
    is_dark = "return arguments[0].contentDocument.documentElement.classList.contains('dark')"
    WebDriverWait(chromium, 60).until(lambda _: chromium.execute_script(is_dark, frame))
    assert zoomed != "all" and chromium.execute_script(root, frame) == zoomed
    chromium.execute_script("localStorage.clear()")


def test_a_flame_graph_is_as_wide_as_its_window_becomes_and_stays_zoomed(study, chromium):
    frame = flame_graph(chromium, study)
    zoomed = chromium.execute_script(
        "const page = arguments[0].contentWindow; page.render(page.shown().levels[2][0]);"
        "return page.shown().root.title",
        frame,
    )
    drawn = (
        "const {root, px} = arguments[0].contentWindow.shown(), body = arguments[0].contentDocument.body;"
        "return [root.title, Math.round(root.width * px) === body.clientWidth - 20, body.clientWidth]"
    )
    *_, before_px = chromium.execute_script(drawn, frame)
    for wide_px in (before_px - 160, before_px):
        chromium.execute_script("arguments[0].style.width = `${arguments[1]}px`", frame, wide_px)
        WebDriverWait(chromium, 60).until(
            lambda _, wide_px=wide_px: chromium.execute_script(drawn, frame) == [zoomed, True, wide_px]
        )


def test_another_graph_is_drawn_in_the_place_of_the_one_before_when_it_is_chosen(study, chromium):
    opened(chromium, study / "07-tail.html")
    graphs = chromium.find_elements(By.CSS_SELECTOR, ".graphs")[-1]
    first, second = graphs.find_elements(By.CSS_SELECTOR, ".graph")
    assert first.is_displayed() and not second.is_displayed()
    chooser = graphs.find_element(By.TAG_NAME, "select")
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", chooser)
    Select(chooser).select_by_visible_text("all")
    assert second.is_displayed() and not first.is_displayed()
    WebDriverWait(chromium, 60).until(
        lambda _: chromium.execute_script(
            "const {contentWindow: page} = arguments[0].querySelector('iframe');"
            "return page.shown && page.shown().px * page.shown().root.width > 100",
            second,
        )
    )


def test_a_difference_of_profiles_is_coloured_and_searched_in_the_converters_page(
    flame_page, chromium, tmp_path
):
    before = StackTree.of(pd.DataFrame({"stack": ["a;x", "a;y"], "samples": [60, 40]}), 0)
    after = StackTree.of(
        pd.DataFrame({"stack": ["a;x", "a;</script>", "a", "b"], "samples": [900, 50, 30, 20]}), 0
    )
    (tmp_path / "page.html").write_text(
        flame.guarded(difference_page(flame_page, before, after, "cpu: <after>"))
    )
    opened(chromium, tmp_path / "page.html")
    frames = chromium.execute_script(
        "return levels.map(level => level.map(f => [f.title, f.left, f.width, f.color, f.details]))"
    )
    grey, red, blue, yellow = "#e0e0e0", "rgb(255,96,96)", "rgb(215,215,255)", "#ffdd33"
    assert frames == [
        [["all", 0, 1000, grey, ""]],
        [["a", 0, 980, blue, ", -20"], ["b", 980, 20, yellow, ""]],
        [["</script>", 0, 50, yellow, ""], ["x", 50, 900, red, ", +300"]],
    ]
    assert (
        chromium.execute_script("search('^x$'); return document.getElementById('matchval').textContent")
        == "90.00%"
    )
    assert chromium.find_element(By.TAG_NAME, "h1").text == "cpu: <after>"
    assert [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_half_typed_expression_disturbs_nothing(study, chromium):
    opened(chromium, study / "05-flame-graphs.html")
    flame = chromium.find_element(By.CSS_SELECTOR, ".flame")
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", flame)
    WebDriverWait(chromium, 60).until(
        lambda _: chromium.execute_script(
            "return !!arguments[0].querySelector('iframe').contentDocument.getElementById('canvas')", flame
        )
    )
    flame.find_element(By.CSS_SELECTOR, "input").send_keys("kv[")
    assert [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_table_sorts_when_its_heading_is_clicked(study, chromium):
    opened(chromium, study / "index.html")
    table = WebDriverWait(chromium, 60).until(
        lambda _: chromium.find_element(By.CSS_SELECTOR, "table.dataTable")
    )
    first_column = (
        "return [...arguments[0].querySelectorAll('tbody tr td:first-child')].map(cell => cell.textContent)"
    )
    chromium.execute_script("arguments[0].closest('details').open = true", table)
    rows = WebDriverWait(chromium, 60).until(lambda _: chromium.execute_script(first_column, table))
    heading = table.find_element(By.CSS_SELECTOR, "thead th .dt-column-title")
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", heading)
    for expected in (sorted(rows), sorted(rows, reverse=True)):
        heading.click()
        # The table is drawn anew after the click has returned.
        WebDriverWait(chromium, 60).until(
            lambda _, expected=expected: chromium.execute_script(first_column, table) == expected,
            f"not the order {expected}",
        )


@pytest.mark.parametrize(("width", "scheme"), VISITS)
def test_no_page_scrolls_sideways_and_text_stands_out(study, chromium, width, scheme):
    for name, view in seen(chromium, study, width, scheme).items():
        assert not view.scrolls_sideways, f"{name} at {width}"
        assert (view.background == "rgb(21, 24, 29)") == (scheme == "dark"), name


def test_a_narrow_page_stacks_the_panels_of_a_chart(study, chromium):
    opened(chromium, study / "03-percentiles.html", NARROW_PX)
    draw_all(chromium)
    all_panels(chromium)
    domains = (
        "const plot = document.querySelector('figure.chart .plot'); return [plot._fullLayout.xaxis.domain, "
        "plot._fullLayout.xaxis2.domain]"
    )
    assert chromium.execute_script(domains) == [[0, 1], [0, 1]]
    opened(chromium, study / "03-percentiles.html", WIDE_PX)
    draw_all(chromium)
    all_panels(chromium)
    assert chromium.execute_script(domains)[0][1] < 0.5


def test_on_a_telephone_every_axis_title_is_whole_and_every_row_has_a_name(study, chromium):
    for name, view in seen(chromium, study, NARROW_PX, "dark").items():
        assert (name, view.cut_titles) == (name, [])
        assert "null" not in view.row_names, name


def touching(driver) -> list[str]:
    """Ticks that lie over one another, and titles of axes over entries of the legend."""
    return driver.execute_script("""
        const boxes = (chart, which) => [...chart.querySelectorAll(which)]
            .filter((label) => label.style.visibility !== 'hidden' && !/rotate\\([^0]/.test(label.outerHTML))
            .map((label) => [label.textContent, label.getBoundingClientRect()])
            .filter(([, box]) => box.width);
        const meet = (one, other, slack) => one.left < other.right && other.left < one.right
            && one.top < other.bottom - slack && other.top < one.bottom - slack;
        return [...document.querySelectorAll('figure.chart .plot')].flatMap((chart) => {
            const ticks = boxes(chart, 'g[class$="tick"] > text');
            const pairs = ticks.flatMap((tick, index) =>
                ticks.slice(index + 1).map((other) => [tick, other]));
            boxes(chart, '.infolayer [class^="g-x"][class$="title"] text').forEach((title) =>
                boxes(chart, '.legend .traces').forEach((entry) => pairs.push([title, entry])));
            return pairs.filter(([[, one], [, other]]) => meet(one, other, 3))
                .map(([[one], [other]]) => `${one} | ${other}`);
        });
    """)


def test_on_a_telephone_no_label_lies_over_another(study, chromium):
    """Ticks beside each other, and the legend below the title of the axis, however many lines that takes."""
    for name in ("01-instrument", "03-percentiles", "06-before-after"):
        opened(chromium, study / f"{name}.html", NARROW_PX)
        draw_all(chromium)
        assert (name, touching(chromium)) == (name, [])


@pytest.mark.parametrize("width", [720, 1000])
def test_in_a_window_of_any_width_no_label_lies_over_another(study, chromium, width):
    for name in ("01-instrument", "03-percentiles", "04-capacity", "06-before-after", "07-tail"):
        opened(chromium, study / f"{name}.html", width)
        draw_all(chromium)
        all_panels(chromium)
        assert (name, touching(chromium)) == (name, [])


def test_the_theme_button_changes_page_and_charts(study, chromium):
    opened(chromium, study / "04-capacity.html")
    draw_all(chromium)
    lines = "return getComputedStyle(document.querySelector('figure.chart .js-line')).stroke"
    light = chromium.execute_script(lines)
    chromium.find_element(By.ID, "theme").click()
    WebDriverWait(chromium, 60).until(lambda _: chromium.execute_script(lines) != light)
    assert (
        chromium.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 29)"
    )
    chromium.execute_script("localStorage.clear()")


def test_printing_draws_every_chart_on_white(study, chromium):
    opened(chromium, study / "04-capacity.html", scheme="dark")
    chromium.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    WebDriverWait(chromium, 60).until(
        lambda _: chromium.execute_script(
            "return [...document.querySelectorAll('figure.chart .plot')].every((plot) => "
            "plot.querySelector('.main-svg'))"
        )
    )
    assert (
        chromium.execute_script(
            "return document.querySelector('figure.chart .plot')._fullLayout.paper_bgcolor"
        )
        == "#ffffff"
    )


def test_the_study_opens_from_disk(study, chromium):
    began = time.monotonic()
    opened(chromium, study / "index.html")
    WebDriverWait(chromium, 60).until(lambda driver: driver.execute_script("return !!window.kvstudy"))
    print(f"index.html opened in {time.monotonic() - began:.2f} s (at most 3 s on a quiet machine)")
