"""A study exported once from made-up sealed runs, and a headless Chromium that refuses to speak to anything
but files."""

import gzip
import importlib.util
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from selenium import webdriver

from kvstudy.present.report import export
from kvstudy.project import jfr_converter_jar
from kvstudy.subject.jdk import find_jdk

CHECKOUT = Path(__file__).resolve().parents[2]
COLLAPSED = """\
java/lang/Thread.run;one/nio/server/SelectorThread.run;one/nio/net/NativeSocket.read;recv_[k] 400
java/lang/Thread.run;one/nio/server/SelectorThread.run;kv/http/KvServer.handle;kv/lsm/LsmStore.get 250
java/lang/Thread.run;one/nio/server/SelectorThread.run;\
one/nio/http/HttpSession.sendResponse;one/nio/net/NativeSocket.write;send_[k] 300
thread_start;G1ParTask::work;G1EvacuateFollowers 80
"""


@pytest.fixture(scope="session")
def project(tmp_path_factory, flame_page) -> Path:
    """A project folder with the notebooks of this checkout and sealed runs that never happened."""
    root = tmp_path_factory.mktemp("project")
    for borrowed in ("notebooks", "experiments", "METHODOLOGY.md", "LIMITS.md"):
        (root / borrowed).symlink_to(CHECKOUT / borrowed)
    (root / "data").mkdir()
    (root / "data" / "published").symlink_to(CHECKOUT / "data" / "published")
    _sealed_runs(root, flame_page)
    return root


@pytest.fixture(scope="session")
def flame_page(tmp_path_factory) -> str:
    """async-profiler's page of COLLAPSED, made by the real converter that runs are converted with."""
    jar, folder = jfr_converter_jar(CHECKOUT), tmp_path_factory.mktemp("flame")
    assert jar.is_file(), f"{jar} is missing: run make build"
    (folder / "cpu.collapsed").write_text(COLLAPSED)
    java = find_jdk().tool("java")
    subprocess.run(
        [java, "-jar", jar, "-o", "html", folder / "cpu.collapsed", folder / "cpu.html"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return (folder / "cpu.html").read_text()


@pytest.fixture(scope="session")
def study(project) -> Path:
    return export(project, project / "figures" / "study", progress=False).parent


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """``CHROMIUM`` and ``CHROMEDRIVER`` name other programs than Debian's."""
    options = webdriver.ChromeOptions()
    options.binary_location = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
        "--window-size=1440,1000",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(
        options=options,
        service=webdriver.ChromeService(os.environ.get("CHROMEDRIVER", "/usr/bin/chromedriver")),
    )
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def _heat_map(start_epoch_s: float) -> str:
    """Samples with times: the page of a reference run, as if it had been taken in the window of a made
    one."""
    page = sorted((CHECKOUT / "data" / "reference").glob("reproduce/*-profiled/cpu.heatmap.html.gz"))[0]
    text = gzip.decompress(page.read_bytes()).decode()
    return re.sub(r"let startMs = \d+;", f"let startMs = {round(1000 * start_epoch_s)};", text)


def _sealed_runs(root: Path, flame_page: str) -> None:
    spec = importlib.util.spec_from_file_location(
        "made_runs", CHECKOUT / "tests" / "analyse" / "run_maker.py"
    )
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    make, random = made.RunMaker(root / "data" / "raw"), np.random.default_rng(3)
    print("made runs: seed=3")
    index = 0
    for workload, method in (("unique_put", "PUT"), ("repeated_get", "GET")):
        shared = {
            "experiment": "reproduce",
            "workload": workload,
            "method": method,
            "workload_args": {"key_count": 1000, "key_bytes": 16, "value_bytes": 100},
        }
        for connections in (1, 4):
            for rate in (2000, 8000):
                for repeat in (1, 2):
                    index += 1
                    held = 1 if connections == 4 or rate == 2000 else 3
                    seconds = [
                        (random.lognormal(5, 0.5, rate // held) * (8 if second == 3 else 1)).astype(int) + 1
                        for second in range(5)
                    ]
                    flush = {
                        "kind": "flush",
                        "start_utc": "2026-11-20T20:42:28.300Z",
                        "duration_ms": 150.0,
                        "attributes": {},
                    }
                    make(
                        f"20261120T2000{index:02d}Z-{workload}",
                        seconds=seconds,
                        events=[flush],
                        connections=connections,
                        threads=connections,
                        offered_rate_rps=rate,
                        repeat=repeat,
                        **shared,
                    )
        make(
            f"20261120T2001{index:02d}Z-{workload}-profiled",
            connections=4,
            threads=4,
            offered_rate_rps=2000,
            profile=["cpu", "alloc"],
            stacks={"cpu": COLLAPSED, "alloc": COLLAPSED},
            more={f"{event}.flamegraph.html": flame_page for event in ("cpu", "alloc")}
            | {"cpu.heatmap.html": _heat_map(made.START_EPOCH_S)},
            **shared,
        )
