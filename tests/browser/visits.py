"""Every page opened in two visits, every chart drawn, and what was seen there: tests about all pages share
these visits, most of whose time is drawing. Each width and each colour scheme is in one of them: no rule of
our style sheets asks for both.

    for name, view in seen(chromium, study, NARROW_PX, "dark").items(): …
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path

import axe_core_python

NARROW_PX, WIDE_PX = 375, 1440
VISITS = ((NARROW_PX, "dark"), (WIDE_PX, "light"))
AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RUN_AXE = """
const done = arguments[0];
// A chart has a label that tells its finding; what plotly draws inside is its own. Style sheets of files
// cannot be fetched.
const none = (refused) => ({violations: [{impact: 'critical', id: String(refused), help: '', nodes: []}]});
// Of rules that hold no node is described: thousands of cells of tables would be.
axe.run({exclude: [['.plot > *']]}, {iframes: false, preload: false, resultTypes: ['violations']}).catch(none)
  .then((found) => done(found.violations.map((fault) => [
    fault.impact, fault.id, fault.help, fault.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3)])));
"""
LOOK = """
const charts = [...document.querySelectorAll('figure.chart .plot')];
const cut = charts.flatMap((chart) => {
    const box = chart.getBoundingClientRect();
    const titles = '.g-xtitle text, [class^="g-x"][class$="title"] text';
    return [...chart.querySelectorAll(titles)].filter((title) => {
        const own = title.getBoundingClientRect();
        return own.width && (own.left < box.left - 1 || own.right > box.right + 1);
    }).map((title) => title.textContent);
});
return {
    drawn: charts.map((chart) => chart.querySelectorAll('.main-svg').length > 0 && chart.clientHeight > 100),
    scrolls_sideways: document.documentElement.scrollWidth > window.innerWidth,
    background: getComputedStyle(document.body).backgroundColor,
    cut_titles: cut,
    row_names: charts.flatMap((chart) => [...chart.querySelectorAll('.ytick text')]
        .map((tick) => tick.textContent)),
};
"""


@dataclass(frozen=True)
class View:
    """``complaints``: of the browser; ``requests``: that left the files; ``faults``: serious ones, of axe."""

    drawn: list[bool]
    scrolls_sideways: bool
    background: str
    cut_titles: list[str]
    row_names: list[str]
    complaints: list[dict]
    requests: list[str]
    faults: list


@functools.cache
def seen(driver, study: Path, width: int, scheme: str) -> dict[str, View]:
    """By page."""
    found = {}
    for page in all_pages(study):
        opened(driver, page, width, scheme)
        draw_all(driver)
        looked = driver.execute_script(LOOK)
        complaints = [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        leaving = [
            url for url in requests_of(driver) if not url.startswith(("file:", "data:", "blob:", "about:"))
        ]
        found[page.name] = View(
            **looked, complaints=complaints, requests=leaving, faults=serious_faults(driver)
        )
    return found


def all_pages(study: Path) -> list[Path]:
    return sorted(study.glob("*.html"))


def opened(driver, page: Path, width: int = WIDE_PX, scheme: str = "light", height: int = 1000):
    sized(driver, width, height)
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    driver.get_log("browser"), driver.get_log("performance")
    driver.get(page.as_uri())
    driver.execute_script("return document.readyState")
    return driver


def sized(driver, width: int, height: int = 1000) -> None:
    """What a page has for itself. From then on the window's own size says nothing of it."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def draw_all(driver) -> None:
    driver.set_script_timeout(120)
    driver.execute_async_script("const done = arguments[0]; kvstudy.drawAll().then(() => done());")


def requests_of(driver) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


def serious_faults(driver) -> list:
    driver.set_script_timeout(120)
    driver.execute_script(AXE)
    return [fault for fault in driver.execute_async_script(RUN_AXE) if fault[0] in ("serious", "critical")]
