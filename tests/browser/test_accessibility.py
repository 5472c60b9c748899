"""axe-core on every page: no serious or critical fault, dark and narrow, light and wide, inside the flame
graphs too."""

import pytest
from selenium.webdriver.common.by import By
from visits import VISITS, opened, seen, serious_faults

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("width", "scheme"), VISITS)
def test_no_page_has_a_serious_fault(study, chromium, width, scheme):
    views = seen(chromium, study, width, scheme)
    assert not {name: view.faults for name, view in views.items() if view.faults}


def test_no_flame_graph_has_a_serious_fault(study, chromium):
    opened(chromium, study / "05-flame-graphs.html")
    frame = chromium.find_element(By.CSS_SELECTOR, ".flame iframe")
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", frame)
    chromium.switch_to.frame(frame)
    try:
        assert serious_faults(chromium) == []
    finally:
        chromium.switch_to.default_content()
