"""Drag over a part of a run: the flame graph, the slow answers and the events are of that part."""

import json
import re

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait
from visits import opened

from kvstudy.analyse.tables import REFERENCE_ALONE, study_tables
from kvstudy.present import moment

pytestmark = pytest.mark.browser
LEVELS = "return document.querySelector('.moment iframe').contentWindow.eval('levels[0][0].width')"


@pytest.fixture
def page(study, chromium):
    return at_the_chart(chromium, study / "07-tail.html")


def at_the_chart(chromium, page):
    opened(chromium, page)
    chromium.execute_script("document.querySelector('.moment').scrollIntoView()")
    WebDriverWait(chromium, 60).until(
        lambda _: chromium.find_elements(By.CSS_SELECTOR, ".moment .plot[data-listens]")
    )
    return chromium


def part_text(driver) -> str:
    return driver.find_element(By.CSS_SELECTOR, ".moment .told").text


def samples(driver) -> tuple[int, int]:
    found = re.search(r"([\d\u202f]+) of ([\d\u202f]+) CPU samples", part_text(driver))
    return tuple(int(number.replace("\u202f", "")) for number in found.groups())


def drawn(driver) -> int | None:
    try:
        return driver.execute_script(LEVELS)
    except Exception:  # the frame is between two pages
        return None


def drag(driver) -> None:
    area = driver.find_elements(By.CSS_SELECTOR, ".moment .nsewdrag")[0]
    mouse = ActionChains(driver).move_to_element_with_offset(area, -150, 0).click_and_hold()
    mouse.move_by_offset(60, 3).pause(0.1).move_by_offset(60, 3).pause(0.1).release().perform()
    WebDriverWait(driver, 60).until(lambda _: not part_text(driver).startswith("The whole run"))


def type_part(driver, begin_s: str, end_s: str) -> None:
    for name, value in (("from", begin_s), ("to", end_s)):
        field = driver.find_element(By.CSS_SELECTOR, f".moment .{name}")
        driver.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))", field, value
        )


def maxima_us(driver) -> list[float]:
    """Of the columns that are listed."""
    scale = {"µs": 1.0, "ms": 1e3, "s": 1e6}
    cells = driver.find_elements(By.CSS_SELECTOR, ".moment .lists > div:first-child td:nth-child(4)")
    return [float(number) * scale[unit] for number, unit in (cell.text.split() for cell in cells)]


def test_one_drag_leads_to_the_samples_of_just_that_part(page):
    part, whole = samples(page)
    drag(page)
    part, of = samples(page)
    assert 0 < part < of and whole == of
    WebDriverWait(page, 60).until(lambda _: drawn(page) == part)


def test_the_difference_is_against_the_rest_of_the_run(page):
    page.find_element(By.CSS_SELECTOR, ".moment .against").click()
    assert "no rest to differ from" in part_text(page)
    drag(page)
    assert "Self share against the rest" in part_text(page)
    part, _ = samples(page)
    WebDriverWait(page, 60).until(lambda _: drawn(page) == part)
    colours = page.execute_script(
        "return document.querySelector('.moment iframe').contentWindow"
        ".eval('levels.flat().map((frame) => frame.color)')"
    )
    assert any(colour.startswith("rgb(255") for colour in colours)


def test_on_the_page_of_profiles_a_drag_leads_to_the_samples_and_the_slow_answers(study, chromium):
    page = at_the_chart(chromium, study / "05-flame-graphs.html")
    drag(page)
    part, whole = samples(page)
    assert 0 < part < whole
    WebDriverWait(page, 60).until(lambda _: drawn(page) == part)
    type_part(page, "1.00", "5.00")
    heads = [head.text for head in page.find_elements(By.CSS_SELECTOR, ".moment .lists strong")]
    assert heads[0] == "Slow answers"
    assert not page.find_elements(By.CSS_SELECTOR, ".moment .unkept")


def test_a_part_can_be_typed_and_left_again(page):
    type_part(page, "1.00", "5.00")
    assert part_text(page).startswith("1.00 – 5.00 s")
    assert [head.text for head in page.find_elements(By.CSS_SELECTOR, ".moment .lists strong")] == [
        "Slow answers"
    ]
    cells = page.find_elements(By.CSS_SELECTOR, ".moment .lists td:first-child")
    assert cells and all(0.9 < float(cell.text.split()[0]) < 5 for cell in cells)
    for begin_s, end_s, shown in (
        ("3.50", "4.50", "3.50 – 4.50 s"),
        ("1.00", "2.00", "1.00 – 2.00 s"),
        ("", "4.00", "1.00 – 4.00 s"),
    ):
        type_part(page, begin_s, end_s)
        assert part_text(page).startswith(shown), "typed, and not turned round"
    page.find_element(By.CSS_SELECTOR, ".moment .whole").click()
    assert part_text(page).startswith("The whole run")


def test_a_part_typed_outside_the_run_is_moved_into_it(page):
    type_part(page, "1.00", "3.00")
    end_s = page.execute_script("return document.querySelector('.moment .plot')._fullLayout.xaxis.range[1]")
    type_part(page, "99", "")
    assert part_text(page).startswith(f"{end_s - 2:.2f} – {end_s:.2f} s")
    type_part(page, "", "-7")
    assert part_text(page).startswith("0.00 – 2.00 s")


def test_a_run_without_samples_says_so_and_lists_its_slow_answers(page):
    run = Select(page.find_element(By.CSS_SELECTOR, ".moment .run"))
    run.select_by_index(len(run.options) - 1)
    assert "no CPU samples with times" in part_text(page)
    assert not page.find_element(By.CSS_SELECTOR, ".moment iframe").is_displayed()
    drag(page)
    assert "slow answer" in part_text(page)
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_who_comes_back_to_the_page_sees_the_run_that_the_chooser_names(page, study):
    chosen = "return [arguments[0].value, document.querySelector('.moment .from').value]"
    run = Select(page.find_element(By.CSS_SELECTOR, ".moment .run"))
    run.select_by_index(len(run.options) - 1)
    type_part(page, "1.00", "5.00")
    page.get((study / "index.html").as_uri())
    page.back()
    WebDriverWait(page, 60).until(
        lambda _: page.find_elements(By.CSS_SELECTOR, ".moment .plot[data-listens]")
    )
    shown = page.execute_script(chosen, page.find_element(By.CSS_SELECTOR, ".moment .run"))
    assert shown == ["0", "0.00"] and part_text(page).startswith("The whole run")


def test_of_a_part_without_a_slow_answer_the_slowest_seconds_stand_there(page):
    run = Select(page.find_element(By.CSS_SELECTOR, ".moment .run"))
    run.select_by_index(len(run.options) - 1)
    type_part(page, "0.00", "2.50")
    assert "0 slow answers" in part_text(page)
    text = page.find_element(By.CSS_SELECTOR, ".moment .lists").text
    assert text.startswith("Seconds\nNo slow answer was kept of this part.")
    assert len(maxima_us(page)) == 3 and maxima_us(page) == sorted(maxima_us(page), reverse=True)
    type_part(page, "0.00", "5.00")
    assert page.find_element(By.CSS_SELECTOR, ".moment .lists").text.startswith("Slow answers")


def test_a_notebook_needs_nothing_but_its_output(chromium, tmp_path):
    """JupyterLab puts an output into the page and then makes each of its scripts anew."""
    tables = study_tables(experiment="reproduce", progress=False, places=REFERENCE_ALONE)
    output = moment.shown(tables.only(tables.runs.loc[tables.runs["profiled"], "run_id"].head(1))).data
    stored = json.dumps(output).replace("</", "<\\/")
    (tmp_path / "output.html").write_text(
        f"""<!DOCTYPE html><meta charset="utf-8"><body><script>
        const host = document.createElement('div');
        host.innerHTML = {stored};
        host.querySelectorAll('script').forEach((script) => {{
          const made = document.createElement('script');
          [...script.attributes].forEach((one) => made.setAttribute(one.name, one.value));
          made.textContent = script.textContent;
          script.replaceWith(made);
        }});
        document.body.append(host);
        </script></body>""",
        encoding="utf-8",
    )
    opened(chromium, tmp_path / "output.html")
    WebDriverWait(chromium, 60).until(
        lambda _: chromium.find_elements(By.CSS_SELECTOR, ".moment .plot[data-listens]")
    )
    drag(chromium)
    part, whole = samples(chromium)
    assert 0 < part < whole
    WebDriverWait(chromium, 60).until(lambda _: drawn(chromium) == part)
    # In the colours of a dark JupyterLab.
    chromium.execute_script("document.body.style.setProperty('--jp-ui-font-color2', 'rgb(200, 201, 202)')")
    hint = chromium.find_element(By.CSS_SELECTOR, ".moment .hint")
    assert hint.value_of_css_property("color").startswith("rgba(200, 201, 202")
    # A profiled run of the reference: its seconds stand there, and why.
    text = chromium.find_element(By.CSS_SELECTOR, ".moment .lists").text
    assert text.startswith("Seconds\nSlow answers are not kept for profiled runs of the reference")
    chromium.find_element(By.CSS_SELECTOR, ".moment .whole").click()
    assert len(maxima_us(chromium)) > 3 and maxima_us(chromium) == sorted(maxima_us(chromium), reverse=True)
