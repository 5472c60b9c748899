"""Two crews of hosts at once: their runs overlap in time, and who stops one stops both."""

import signal
import time
from datetime import datetime
from itertools import product

import pytest
from test_failures import SEALED_WITHIN_S, came_to, nothing_runs_on

from kvstudy.hosts.process import wait_until
from kvstudy.record.run_folder import sealed_runs

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts")]

STOPPED_BY_ITS_BUTTON = """
import asyncio, sys
from pathlib import Path
from kvstudy import sweep, sweep_view
from kvstudy.hosts.hosts_file import HostsFile
doing = sweep_view.WatchedProgress.doing
def stopping(self, phase):
    if phase == "measure":
        self._view.stop()
    doing(self, phase)
sweep_view.WatchedProgress.doing = stopping
hosts = HostsFile.load(Path(sys.argv[2]))
asked = sweep.SweepParameters(Path.cwd(), {"experiment_file": sys.argv[1]}, None, "", False, hosts, 1)
print(asyncio.run(sweep.measure(sweep.experiment(asked), asked, watched=True)).data)
sys.exit()
"""


def two_crews(hosts, project, **change):
    file = hosts.yaml(a=["service"], b=["generator"], c=["service"], d=["generator"])
    experiment = {"subject": "kv-service", "workload": ["put", "unique_put"], "rate": [200, 300]}
    return project.experiment(**experiment | change), file


def test_runs_go_on_side_by_side_and_what_is_compared_with_one_another_stays_on_its_hosts(hosts, project):
    experiment, file = two_crews(hosts, project, repeats=2, duration="2s")
    code, out, err = project.finished(project.kvstudy("run", experiment, "--hosts", file))
    assert code == 0, out + err
    where, under_way = {}, {"a": [], "c": []}
    for run in sealed_runs(project.raw):
        assert run.facts["outcome"] == "completed", run.facts["outcome"]
        where.setdefault(run.facts["workload"], []).append(run.facts["hosts"]["service"])
        # From the service's start: on a busy machine no two of these short loads need be at once.
        phases = run.facts["phases"].values()
        edges = [datetime.fromisoformat(edge) for phase in phases for edge in phase.values()]
        under_way[run.facts["hosts"]["service"]].append((min(edges), max(edges)))
    assert sorted(where.values()) == [["a"] * 4, ["c"] * 4]
    assert any(max(one[0], two[0]) < min(one[1], two[1]) for one, two in product(*under_way.values()))


@pytest.mark.long
def test_what_hosts_that_are_lost_had_begun_is_measured_by_the_others_from_the_beginning(
    hosts, project, tmp_path
):
    experiment, file = two_crews(hosts, project, repeats=2, duration="2s")
    try:
        with came_to("measure", project, tmp_path, "run", experiment, "--hosts", file) as measuring:
            hosts.cut("b")
            begun = time.monotonic()
            assert wait_until(
                lambda: any(run.facts["outcome"] != "completed" for run in sealed_runs(project.raw)),
                SEALED_WITHIN_S,
            ), "never sealed"
            print(f"sealed {time.monotonic() - begun:.1f} s after it happened")
            code, out, err = project.finished(measuring, timeout_s=180)
    finally:
        hosts.heal("b")
    assert code == 1 and "Traceback" not in err, out + err
    assert "hosts a ← b measure no more: " in err and "\nkvstudy: host b" in err, err
    runs = sealed_runs(project.raw)
    completed = [run for run in runs if run.facts["outcome"] == "completed"]
    (lost,) = [run for run in runs if run.facts["outcome"] != "completed"]
    assert "9/9 " in err and "/8 " in err, err
    assert lost.facts["hosts"]["service"] == "a" and "host b is lost: " in lost.facts["outcome"]
    assert {run.facts["hosts"]["service"] for run in completed} == {"c"}
    assert len({run.facts["identity"] for run in completed}) == len(completed) == 8
    nothing_runs_on(hosts, "abcd")


def nothing_was_measured(hosts, project) -> None:
    """What was under way is sealed as failed, and nothing came after it."""
    outcomes = [run.facts["outcome"] for run in sealed_runs(project.raw)]
    assert 1 <= len(outcomes) <= 2 and all(one.startswith("failed: ") for one in outcomes), outcomes
    assert not list(project.raw.rglob("*.partial"))
    nothing_runs_on(hosts, "abcd")


def test_ctrl_c_ends_the_measurement_on_all_hosts(hosts, project, tmp_path):
    experiment, file = two_crews(hosts, project, repeats=3, duration="5s")
    with came_to("measure", project, tmp_path, "run", experiment, "--hosts", file) as measuring:
        measuring.send_signal(signal.SIGINT)
        begun = time.monotonic()
        code, out, err = project.finished(measuring, timeout_s=60)
        print(f"ended {time.monotonic() - begun:.1f} s after it was interrupted")
    assert code == 130 and "--resume goes on from here" in err and "Traceback" not in err, out + err
    nothing_was_measured(hosts, project)


def test_the_stop_button_of_a_notebook_ends_the_measurement_on_all_hosts_and_says_so(hosts, project):
    experiment, file = two_crews(hosts, project, repeats=3, duration="5s")
    code, out, err = project.finished(project.kvstudy(experiment, file, code=STOPPED_BY_ITS_BUTTON), 60)
    assert code == 0 and "**Stopped** after 0 of 12 runs" in out and "Traceback" not in err, out + err
    nothing_was_measured(hosts, project)
