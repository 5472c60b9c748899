"""What a reader does in the real JupyterLab: choose, resize the window, load the page again."""

import os
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from visits import sized

pytestmark = pytest.mark.browser

CELLS = (
    "%load_ext kvstudy",
    "import pandas as pd\nimport plotly.express as px\nfrom kvstudy.present import explore, notebook\n"
    "at = explore.choose()\nat",
    'at.show(lambda now: px.bar(now.seconds, x="second", y="at_us", title=f"p{now.percentile:g} of all"))',
    'notebook.show(pd.DataFrame({"number": range(30)}))',
    "from kvstudy.present import moment\nmoment.shown(notebook.tables())",
)
WORDS = (
    CELLS[0],
    "import pandas as pd\nimport plotly.express as px\nfrom kvstudy.present import notebook\n"
    "from kvstudy.present.figures.panels import titled\n"
    'titled(px.bar(x=[1], y=[2]), "A title", "What was found is told. " * 9, "How it is drawn. " * 9)',
    'notebook.show(pd.DataFrame({"number": range(300)}))',
    'px.bar(x=[1], y=[2], template="plotly_dark")',
)
# What a sweep shows, without one.
WATCHED = (
    "import asyncio\nfrom kvstudy.sweep_view import SweepView\nsecond = 0\nwith SweepView() as view:\n"
    "    while not view.was_stopped:\n        view.draw(f'<b>{second} s</b>')\n        second += 1\n"
    "        await asyncio.sleep(0.5)",
)
CHART = ".jp-RenderedPlotly.js-plotly-plot"
HEIGHT = f"return document.querySelector('{CHART} .main-svg')?.getBoundingClientRect().height ?? 0"
TITLES = f"return [...document.querySelectorAll('{CHART} .gtitle')].map(one => one.textContent)"
IDLE = """
const panel = jupyterapp.shell.currentWidget;
return panel?.sessionContext?.session?.kernel?.status === "idle" && panel.content.model.cells.length > 0
"""
RUN_ALL = "jupyterapp.commands.execute('notebook:run-all-cells').then(arguments[0])"
EXECUTE = """
const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
kernel.requestExecute({code: arguments[0]}).done.then(arguments[1]);
"""
CHOSEN = "return [...document.querySelectorAll('.jp-OutputArea select')][1]?.selectedIndex"
SECONDS = "return document.querySelector('.jp-OutputArea .noUi-handle-upper').getAttribute('aria-valuetext')"
FOCUS = "document.querySelectorAll('.jp-OutputArea ' + arguments[0])[arguments[1]].focus()"
CELLS_NOW = """
const {content} = jupyterapp.shell.currentWidget;
return [content.activeCellIndex, content.widgets.length];
"""
PART_WIDTHS = """
const part = document.querySelector('.moment .plot');
part?.scrollIntoView();
return part?._fullLayout ? [part._fullLayout.width, part.clientWidth] : [0, -1];
"""
# How far the lines of a chart's title reach over its right side, how many there are, and how high it is.
LINES = f"""
const chart = document.querySelector('{CHART}');
const lines = [...chart?.querySelectorAll('.gtitle-subtitle tspan') ?? []];
const ends = lines.map((line) => line.getBoundingClientRect().right);
return lines.length ? [Math.max(...ends) - chart.getBoundingClientRect().right, lines.length,
    chart.querySelector('.main-svg').getBoundingClientRect().height] : null;
"""
# How bright the words around a table are, and what they stand on.
SHADES = """
const head = document.querySelector('.jp-OutputArea table.dataTable thead th');
if (!head) return null;
const partsOf = (colour) => colour.match(/[\\d.]+/g).map(Number);
const shade = ([red, green, blue]) => (red + green + blue) / 3;
let ground = head;
while (partsOf(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
return [head, ground].map((one, at) => getComputedStyle(one)[['color', 'backgroundColor'][at]])
    .map((colour) => shade(partsOf(colour)));
"""
FILTERS = f"return [...document.querySelectorAll('{CHART}')].map(one => getComputedStyle(one).filter)"
SECONDS_WATCHED = "return parseInt(document.querySelector('.jp-OutputArea b')?.textContent ?? -1)"
STOPS = "return [...document.querySelectorAll('.jp-OutputArea button')].map(one => one.textContent)"
ROWS = "return document.querySelectorAll('.jp-OutputArea table.dataTable tbody tr').length"


@pytest.fixture(scope="module")
def lab(project, tmp_path_factory):
    """The address of a JupyterLab in which these notebooks can be opened."""
    folder = tmp_path_factory.mktemp("lab")
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    for name, cells in (("own", CELLS), ("words", WORDS), ("watched", WATCHED)):
        notebook = new_notebook(metadata=kernel, cells=[new_code_cell(cell) for cell in cells])
        nbformat.write(notebook, folder / f"{name}.ipynb")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = {"ip": "127.0.0.1", "port": port, "port_retries": 0, "root_dir": folder, "allow_root": True}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--IdentityProvider.token="]
    command += [f"--ServerApp.{name}={value}" for name, value in settings.items()]
    command += ["--LabApp.expose_app_in_browser=True", "--LabApp.news_url=None"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=log, env=os.environ | {"KVSTUDY_ROOT": str(project)}
        )
    try:
        address = f"http://127.0.0.1:{port}"
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{address}/api", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < until, (folder / "log").read_text()
                time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture
def chromium(chromium):
    """What it asked the server for is no request of the pages that others open."""
    yield chromium
    chromium.get("about:blank")
    for log in ("browser", "performance"):
        chromium.get_log(log)


def opened(chromium, lab: str, name: str = "own", until_idle: bool = True) -> None:
    """Opens the notebook, alone, and waits until its kernel can be asked."""
    chromium.get(f"{lab}/lab/workspaces/{name}/tree/{name}.ipynb")
    until(chromium, "return typeof jupyterapp === 'object' && jupyterapp.restored !== undefined")
    if until_idle:
        until(chromium, IDLE)


def until(chromium, script: str, holds=bool) -> None:
    found = None

    def does_hold(_) -> bool:
        nonlocal found
        found = chromium.execute_script(script)
        return holds(found)

    try:
        WebDriverWait(chromium, 90).until(does_hold)
    except TimeoutException:
        pytest.fail(f"90 s, and the last that was found is {found}")


def as_wide_as(chromium, width: int) -> None:
    sized(chromium, width)
    until(chromium, "return innerWidth", lambda now: now == width)


def settled(chromium, script: str):
    """What the script returns once it returns the same three times."""
    seen: list = []
    until(chromium, script, lambda found: seen.append(found) or (found and seen[-3:] == [found] * 3))
    return seen[-1]


def test_charts_follow_a_choice_and_keep_their_height_and_tables_come_after_another_visit(chromium, lab):
    chromium.set_script_timeout(90)
    as_wide_as(chromium, 1440)
    opened(chromium, lab)
    chromium.execute_async_script(RUN_ALL)
    until(chromium, TITLES, lambda titles: titles == ["p99 of all"])
    until(chromium, ROWS)

    chromium.execute_async_script(EXECUTE, "at.choose(percentile=50.0)")
    until(chromium, TITLES, lambda titles: titles == ["p50 of all"])

    height = chromium.execute_script(HEIGHT)
    assert height == 460, "of the theme"
    for width in (800, 1440):
        as_wide_as(chromium, width)
        time.sleep(2)  # what would shrink does so some frames later
        assert chromium.execute_script(HEIGHT) == height, f"window of {width} px"

    opened(chromium, lab)
    chromium.execute_async_script(RUN_ALL)
    until(chromium, TITLES, lambda titles: titles == ["p99 of all"])
    until(chromium, ROWS)


def test_keys_that_a_chooser_takes_move_insert_and_cut_no_cell(chromium, lab):
    chromium.set_script_timeout(90)
    opened(chromium, lab)
    chromium.execute_async_script(RUN_ALL)
    until(chromium, CHOSEN, lambda place: place is not None)

    def press(selector: str, number: int, *keys: str) -> None:
        chromium.execute_script(FOCUS, selector, number)
        ActionChains(chromium).send_keys(*keys).perform()

    chosen = chromium.execute_script(CHOSEN)
    press("select", 1, Keys.ARROW_UP)
    until(chromium, CHOSEN, lambda place: place == chosen - 1)
    cells = chromium.execute_script(CELLS_NOW)
    press("select", 1, "b", "x")
    end_s = chromium.execute_script(SECONDS)
    press(".noUi-handle-upper", 0, Keys.ARROW_LEFT)
    until(chromium, SECONDS, lambda now: now != end_s)
    assert chromium.execute_script(CELLS_NOW) == cells and cells[1] == len(CELLS)

    chromium.execute_script(FOCUS, "select", 1)
    ActionChains(chromium).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
    until(chromium, CELLS_NOW, lambda now: now == [cells[0] + 1, cells[1]])


def test_views_follow_the_choosers_of_a_cell_that_is_executed_again(chromium, lab):
    chromium.set_script_timeout(90)
    opened(chromium, lab)
    chromium.execute_async_script(RUN_ALL)
    until(chromium, TITLES, lambda titles: titles == ["p99 of all"])
    chromium.execute_async_script(EXECUTE, "before = at")
    chromium.execute_script("jupyterapp.shell.currentWidget.content.activeCellIndex = 1")
    chromium.execute_async_script("jupyterapp.commands.execute('notebook:run-cell').then(arguments[0])")
    chromium.execute_async_script(EXECUTE, "assert at is not before; at.choose(percentile=50.0)")
    until(chromium, TITLES, lambda titles: titles == ["p50 of all"])


def test_the_chart_of_a_part_is_as_wide_as_a_side_panel_leaves_it(chromium, lab):
    chromium.set_script_timeout(90)
    as_wide_as(chromium, 1440)
    opened(chromium, lab)
    chromium.execute_async_script(RUN_ALL)
    until(chromium, PART_WIDTHS, lambda widths: widths[0] == widths[1])
    (before, _) = chromium.execute_script(PART_WIDTHS)
    chromium.execute_async_script(
        "jupyterapp.commands.execute('application:toggle-left-area').then(arguments[0])"
    )
    until(chromium, PART_WIDTHS, lambda widths: widths[0] == widths[1] != before)


def test_lines_under_a_title_are_as_long_as_the_chart_is_wide_and_make_it_higher(chromium, lab):
    chromium.set_script_timeout(90)
    as_wide_as(chromium, 1440)
    opened(chromium, lab, "words")
    chromium.execute_script("jupyterapp.shell.collapseLeft()")  # as wide as it likes, and would leave nothing
    chromium.execute_async_script(RUN_ALL)
    _, lines, height = settled(chromium, LINES)
    as_wide_as(chromium, 640)
    until(chromium, LINES, lambda found: found[0] < 0 and found[1] > lines and found[2] > height)
    as_wide_as(chromium, 1440)
    until(chromium, LINES, lambda found: found[0] < 0 and found[1:] == [lines, height])


def test_tables_and_charts_are_as_dark_as_the_jupyterlab_around_them_also_when_that_changes(chromium, lab):
    """But for a chart that its reader has made dark."""
    chromium.set_script_timeout(90)
    opened(chromium, lab, "words")
    chromium.execute_async_script(RUN_ALL)
    for theme, inverted, is_readable in (
        ("JupyterLab Dark", True, lambda words, ground: words > 180 and ground < 80),
        ("JupyterLab Light", False, lambda words, ground: words < 80 and ground > 180),
    ):
        change = (
            "jupyterapp.commands.execute('apputils:change-theme', {theme: arguments[0]}).then(arguments[1])"
        )
        chromium.execute_async_script(change, theme)
        until(chromium, SHADES, lambda shades, is_readable=is_readable: shades and is_readable(*shades))
        until(
            chromium,
            FILTERS,
            lambda found, inverted=inverted: [one != "none" for one in found] == [inverted, False],
        )


def test_who_loads_the_page_of_a_running_sweep_again_sees_it_go_on_and_can_stop_it(chromium, lab):
    chromium.set_script_timeout(90)
    opened(chromium, lab, "watched")
    chromium.execute_script("jupyterapp.commands.execute('notebook:run-all-cells')")
    until(chromium, SECONDS_WATCHED, lambda second: second >= 0)
    chromium.execute_async_script("jupyterapp.commands.execute('docmanager:save').then(arguments[0])")
    before = chromium.execute_script(SECONDS_WATCHED)
    opened(chromium, lab, "watched", until_idle=False)
    until(chromium, SECONDS_WATCHED, lambda second: second > before + 1)
    until(chromium, STOPS, lambda names: names == ["Stop"])
    chromium.execute_script("document.querySelector('.jp-OutputArea button').click()")
    until(chromium, IDLE)
    until(chromium, STOPS, lambda names: names == [])
    assert chromium.execute_script(SECONDS_WATCHED) > before, "the end stays there"
