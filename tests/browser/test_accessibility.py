"""axe-core on every page: no serious or critical fault, light and wide, dark and narrow, inside the flame
graphs too."""

from pathlib import Path

import axe_core_python
import pytest
from selenium.webdriver.common.by import By
from test_pages import NARROW_PX, WIDE_PX, all_pages, draw_all, opened

pytestmark = pytest.mark.browser
AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RUN = """
const done = arguments[0];
// A chart has a label that tells its finding; what plotly draws inside is its own. Style sheets of files
// cannot be fetched.
const none = (refused) => ({violations: [{impact: 'critical', id: String(refused), help: '', nodes: []}]});
axe.run({exclude: [['.plot > *']]}, {iframes: false, preload: false}).catch(none)
  .then((found) => done(found.violations.map((fault) => [
    fault.impact, fault.id, fault.help, fault.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3)])));
"""


def faults(driver) -> list:
    driver.set_script_timeout(60)
    driver.execute_script(AXE)
    return [fault for fault in driver.execute_async_script(RUN) if fault[0] in ("serious", "critical")]


@pytest.mark.parametrize(("width", "scheme"), [(WIDE_PX, "light"), (NARROW_PX, "dark")])
def test_no_page_has_a_serious_fault(study, chromium, width, scheme):
    found = {}
    for page in all_pages(study):
        opened(chromium, page, width, scheme)
        draw_all(chromium)
        if these := faults(chromium):
            found[page.name] = these
    assert not found


def test_no_flame_graph_has_a_serious_fault(study, chromium):
    opened(chromium, study / "05-flame-graphs.html")
    frame = chromium.find_element(By.CSS_SELECTOR, ".flame iframe")
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", frame)
    chromium.switch_to.frame(frame)
    try:
        assert faults(chromium) == []
    finally:
        chromium.switch_to.default_content()
