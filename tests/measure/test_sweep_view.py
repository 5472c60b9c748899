"""02-sweep with somebody watching: a real kernel, a real small run, and a click while the cell runs."""

import os
import re
import time

import pytest
from jupyter_client.manager import start_new_kernel
from project import PROJECT

from kvstudy.record.run_folder import sealed_runs

pytestmark = pytest.mark.machine
MEASURE = """
%load_ext kvstudy
from kvstudy import sweep
cells = ["", "# Defaults\\nexperiment_file = None", "# Parameters\\nexperiment_file = {file!r}"]
asked = sweep.read_parameters(cells)
await sweep.measure(sweep.experiment(asked), asked, watched=True)
"""


class Kernel:
    """A kernel as JupyterLab drives it."""

    def __init__(self, project):
        environment = os.environ | {"PYTHONPATH": str(PROJECT), "KVSTUDY_ROOT": str(project.root)}
        self.manager, self.client = start_new_kernel(env=environment, cwd=str(project.root))
        self.shown, self.error = [], ""
        self.button = self.table = None
        self.button_states: list[dict] = []

    def end(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def click(self) -> None:
        content = {"comm_id": self.button, "data": {"method": "custom", "content": {"event": "click"}}}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", content))

    def run(self, code: str, on_shown=lambda _html: None, timeout_s: float = 90) -> str:
        """Executes a cell; ``on_shown`` gets each drawing. Returns the cell's result."""
        asked, result = self.client.execute(code), ""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            message = self.client.get_iopub_msg(timeout=timeout_s)
            kind, content = message["msg_type"], message["content"]
            if kind == "comm_open":
                model = content["data"]["state"].get("_model_name")
                self.button = content["comm_id"] if model == "ButtonModel" else self.button
                self.table = content["comm_id"] if model == "HTMLModel" else self.table
            elif kind == "comm_msg" and content["comm_id"] == self.button:
                self.button_states.append(content["data"].get("state", {}))
            elif kind == "comm_msg" and content["comm_id"] == self.table:
                self.shown.append(content["data"]["state"]["value"])
                on_shown(self.shown[-1])
            elif kind in ("display_data", "update_display_data"):
                self.shown.append(content["data"].get("text/html", ""))
                on_shown(self.shown[-1])
            elif kind == "execute_result":
                result = content["data"].get("text/markdown", "")
            elif kind == "error":
                self.error = content["evalue"]
            elif (
                kind == "status"
                and content["execution_state"] == "idle"
                and message["parent_header"].get("msg_id") == asked
            ):
                return result
        raise AssertionError(f"the cell did not end: shown={self.shown[-1:]}")


@pytest.fixture
def kernel(project):
    kernel = Kernel(project)
    yield kernel
    kernel.end()


def test_rate_and_p99_of_the_run_under_way_are_shown_while_it_lasts(project, kernel):
    file = str(project.experiment(duration="4s", warm_up="1s"))
    result = kernel.run(MEASURE.format(file=file))
    assert not kernel.error and "1 sealed" in result
    told = [re.search(r"(\d+) answers/s, p50 \S+, p99 \S+", html) for html in kernel.shown]
    rates = [int(found[1]) for found in told if found]
    assert max(rates, default=0) > 0, kernel.shown[-3:]
    (run,) = sealed_runs(project.raw)
    assert not run.has("generator.log") or "\x1b" not in run.text("generator.log")
    assert project.processes() == []
    assert "all measured" in kernel.shown[-1] and "<progress" not in kernel.shown[-1]
    assert kernel.shown[-1] == kernel.shown[-2], "a saved notebook shows it without its kernel"


def click(kernel) -> None:
    kernel.click()


def interrupt(kernel) -> None:
    kernel.manager.interrupt_kernel()


@pytest.mark.parametrize("stop", [click, interrupt])
def test_stopped_by_click_or_interrupt_it_seals_the_run_under_way_as_failed_and_keeps_the_others(
    project, kernel, stop
):
    file = str(project.experiment(duration="3s", warm_up="1s", repeats=4))
    clicked = []

    def click_in_the_second_run(html: str) -> None:
        if "run 2" in html and "measure" in html and not clicked:
            clicked.append(True)
            stop(kernel)

    result = kernel.run(MEASURE.format(file=file), click_in_the_second_run)
    assert clicked and not kernel.error and result.startswith("**Stopped** after 1 of 4 runs")
    heard = {name: value for state in kernel.button_states for name, value in state.items()}
    assert heard == {"description": "Stopping", "disabled": True}
    outcomes = [run.facts["outcome"].split(" during")[0] for run in sealed_runs(project.raw)]
    assert outcomes == ["completed", "failed: interrupted"]
    assert project.processes() == []
    assert (
        "1 of 4 runs" in kernel.shown[-1]
        and "<progress" not in kernel.shown[-1]
        and "seal" not in kernel.shown[-1]
    )
    assert "3 sealed, 1 kept" in kernel.run(MEASURE.format(file=file)), "the same cell goes on"
