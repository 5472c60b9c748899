"""What may happen to hosts while they measure. Each time that run is sealed as failed with its reason, what
can go on goes on, and nothing is left running on any host that can be reached."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from dask_scheduler import address_in
from project import TWO_RUNS, Project

from kvstudy.hosts.process import wait_until
from kvstudy.record.run_folder import sealed_runs

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts that fail")]

TELL_IN_PHASE = """
import pathlib, time
from kvstudy.measure.{module} import {progress} as Progress
doing = Progress.doing
def telling(self, phase):
    doing(self, phase)
    if phase == {phase!r} and not hasattr(Progress, "told"):
        Progress.told = True
        pathlib.Path({mark!r}).touch()
        time.sleep(0.5)
Progress.doing = telling
"""
SEALED_WITHIN_S = 40  # on a machine with other work; that it takes 15 at most `make kill-hosts` sees
# A worker and an agent, or a whole cluster, begin anew before the next run: other work makes that longer.
PATIENT = """
from kvstudy.hosts import remote
remote.RENEW_TIMEOUT_S = 60
"""
HELD_BEFORE_SEALING = """
from kvstudy.hosts.process import wait_until
at_once = Progress.doing
def held(self, phase):
    if phase == "seal":
        wait_until(pathlib.Path({release!r}).exists, 120)
    at_once(self, phase)
Progress.doing = held
"""
WORKERS_KNOWN_S = 60


def tell_in_phase(phase: str, mark: Path, module: str = "progress", progress: str = "Progress") -> str:
    """Code for the measuring process: the first time that a run comes to this phase there is the file
    ``mark``, and a moment to do something."""
    return TELL_IN_PHASE.format(phase=phase, mark=str(mark), module=module, progress=progress)


@contextmanager
def came_to(phase: str, project: Project, tmp_path: Path, *arguments: object, more: str = "", **where: str):
    """A kvstudy of which a run has come to this phase for the first time; killed at the end if it still runs.
    ``more``: code for it; ``where``: as of ``tell_in_phase``."""
    mark = tmp_path / "mark"
    measuring = project.kvstudy(*arguments, code=tell_in_phase(phase, mark, **where) + more)
    try:
        assert wait_until(lambda: mark.exists() or measuring.poll() is not None, 60), (
            "never came to that phase"
        )
        assert mark.exists(), measuring.communicate()
        yield measuring
    finally:
        if measuring.poll() is None:
            measuring.kill()


def kill(name: str, word: str):
    def act(hosts, _measuring) -> None:
        os.kill(hosts.pid_of(name, word), signal.SIGKILL)

    act.__name__ = f"{word} on {name} is killed"
    return act


def stop(name: str, word: str):
    def act(hosts, _measuring) -> None:
        os.kill(hosts.pid_of(name, word), signal.SIGSTOP)

    act.__name__ = f"{word} on {name} stands still"
    return act


def cut_b(hosts, _measuring) -> None:
    hosts.cut("b")


def end_c(hosts, _measuring) -> None:
    hosts.end("c")


def kill_scheduler(_hosts, measuring) -> None:
    (scheduler,) = [one for one in psutil.Process(measuring.pid).children() if "scheduler" in one.cmdline()]
    scheduler.kill()


def stop_scheduler(_hosts, measuring) -> None:
    (scheduler,) = [one for one in psutil.Process(measuring.pid).children() if "scheduler" in one.cmdline()]
    scheduler.suspend()


def interrupt(_hosts, measuring) -> None:
    measuring.send_signal(signal.SIGINT)


def alone(*scenario):
    """Half a minute each: `make test-hosts` has them all, `make test` those that others do not contain."""
    return pytest.param(*scenario, marks=pytest.mark.long)


# What happens, in which phase, the reason that the run is sealed with, and whether the next run can be
# measured.
SCENARIOS = [
    alone(kill("b", "dask_host"), "warm_up", r"host b is lost: .*worker is gone", True),
    alone(kill("a", "dask_host"), "measure", r"host a is lost: .*worker is gone", True),
    alone(kill("c", "hosts.agent"), "measure", r"host c is lost: agent has ended: it was killed", True),
    alone(kill("a", "kv-service.jar"), "measure", r"service died during measure: signal 9", True),
    alone(stop("b", "hosts.agent"), "measure", r"host b is lost: ", True),
    (kill_scheduler, "measure", r"host . is lost: the cluster's scheduler is gone", True),
    alone(stop_scheduler, "measure", r"host . is lost: it does not answer within 6 s", True),
    alone(interrupt, "measure", r"interrupted during measure", False),
    (cut_b, "measure", r"host b is lost: ", False),
    alone(end_c, "measure", r"host c is lost: ", False),
    alone(kill("a", "dask_host"), "stop", r"host a is lost: ", True),
    alone(kill("a", "dask_host"), "seal", None, True),
]


@pytest.mark.parametrize(
    ("happens", "phase", "reason", "goes_on"), SCENARIOS, ids=lambda value: getattr(value, "__name__", None)
)
def test_a_run_that_something_happens_to_is_sealed_with_its_reason(
    hosts, project, tmp_path, happens, phase, reason, goes_on
):
    file = hosts.yaml(a=["service"], b=["generator"], c=["generator"])
    command = ("run", project.experiment(**TWO_RUNS), "--hosts", file, "--generators", 2)
    try:
        with came_to(phase, project, tmp_path, *command, more=PATIENT if goes_on else "") as measuring:
            happens(hosts, measuring)
            begun = time.monotonic()
            assert wait_until(lambda: sealed_runs(project.raw), SEALED_WITHIN_S), "never sealed"
            print(f"sealed {time.monotonic() - begun:.1f} s after it happened")
            code, out, err = project.finished(measuring, timeout_s=90)
    finally:
        hosts.heal("b")
        if "c" not in hosts.begun:
            hosts.begin("c")
    first, *others = sealed_runs(project.raw)
    assert "Traceback" not in err, err
    if reason is None:
        assert first.facts["outcome"] == "completed"
    else:
        assert re.search(reason, first.facts["outcome"]), first.facts["outcome"]
    if goes_on:
        assert [run.facts["outcome"] for run in others] == ["completed"], out + err
    else:
        assert code in (1, 130) and not [run for run in others if run.facts["outcome"] == "completed"]
    assert not list(project.raw.rglob("*.partial"))
    for name in "abc":
        for pid in hosts.pids(name):  # a process that stands still cannot end by itself
            os.kill(pid, signal.SIGCONT)
    nothing_runs_on(hosts, "abc")


def test_a_host_that_is_lost_while_another_one_fills_a_store_ends_that_run_at_once(hosts, project, tmp_path):
    file = hosts.yaml(a=["service"], b=["generator"])
    fill = {"records": 3_000_000}
    experiment = project.experiment(subject="kv-service", workload="get", rate=300, fill=fill)
    with came_to("fill", project, tmp_path, "run", experiment, "--hosts", file) as measuring:
        os.kill(hosts.pid_of("b", "dask_host"), signal.SIGKILL)
        assert wait_until(lambda: sealed_runs(project.raw), SEALED_WITHIN_S), "never sealed"
        code, out, err = project.finished(measuring, timeout_s=60)
    (run,) = sealed_runs(project.raw)
    assert re.search(r"host b is lost: .*worker is gone", run.facts["outcome"]), run.facts["outcome"]
    assert code == 1 and "Traceback" not in err and set(run.facts["phases"]) <= {"fill", "stop"}, out + err
    nothing_runs_on(hosts, "ab")


def nothing_runs_on(hosts, names) -> None:
    """Soon: a host that was out of reach ends by itself what runs there."""
    for name in names:
        assert wait_until(lambda name=name: not hosts.pids(name), 40), hosts.pids(name)


def test_a_kvstudy_that_is_killed_leaves_nothing_on_any_host_and_no_data(hosts, project, tmp_path):
    file = hosts.yaml(a=["service"], b=["generator"])
    experiment = project.experiment(subject="kv-service", rate=300, duration="20s")
    mark = tmp_path / "mark"
    code = tell_in_phase("measure", mark)
    measuring = project.kvstudy("run", experiment, "--hosts", file, code=code)
    assert wait_until(mark.exists, 60)
    scheduler = next(one for one in psutil.Process(measuring.pid).children() if "scheduler" in one.cmdline())
    measuring.kill()
    measuring.communicate()
    nothing_runs_on(hosts, "ab")
    # It ends by itself too, and may be the last one to.
    assert wait_until(lambda: not scheduler.is_running() or scheduler.status() == psutil.STATUS_ZOMBIE, 15)
    assert not sealed_runs(project.raw)


@pytest.mark.long
def test_a_cluster_of_somebody_elses_is_used_and_left_as_it_was(hosts, project, tmp_path):
    """An ordinary one: with nannies, as `dask worker` starts them, and without certificates."""
    file = hosts.yaml(a=["service"], b=["generator"])
    noted = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    options = ["--no-dashboard", "--no-show", "--scheduler-file", str(noted)]
    scheduler = subprocess.Popen(
        [*dask, "scheduler", "--host", hosts.own_address, "--port", "0", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = address_in(noted)
        for name in "ab":
            hosts.start(name, [*dask, "worker", address, "--host", hosts.address[name], "--no-dashboard"])
        given = json.loads(file.read_text())
        del given["ssh"]
        file.write_text(json.dumps(given | {"scheduler": address}))
        assert wait_until(
            lambda: all("spawn_main" in " ".join(hosts.pids(name).values()) for name in "ab"), 30
        )
        # A worker's process is there before the scheduler knows of it.
        assert wait_until(
            lambda: project.finished(project.kvstudy("hosts", "check", file))[0] == 0, WORKERS_KNOWN_S
        )
        code, out, err = project.finished(
            project.kvstudy("run", project.experiment(subject="kv-service", rate=300), "--hosts", file)
        )
        assert code == 0, out + err
        for name in "ab":
            assert wait_until(lambda name=name: "hosts.agent" not in " ".join(hosts.pids(name).values()), 10)
            assert hosts.pids(name)  # its workers
    finally:
        scheduler.terminate()
        scheduler.wait()
    nothing_runs_on(hosts, "ab")


def test_a_second_user_is_told_who_measures_there_and_disturbs_nobody(hosts, project, tmp_path):
    """Under the same name and with the same folder there; the first one's next launch is after that."""
    file = hosts.yaml(a=["service"], b=["generator"])
    experiment = project.experiment(subject="kv-service", rate=300, duration="2s", warm_up="500ms", repeats=2)
    mark, release = tmp_path / "mark", tmp_path / "release"
    code = tell_in_phase("measure", mark) + HELD_BEFORE_SEALING.format(release=str(release))
    first = project.kvstudy("run", experiment, "--hosts", file, code=code)
    assert wait_until(mark.exists, 60)
    second = Project(tmp_path / "second")
    measuring = second.kvstudy("run", second.experiment(), "--hosts", file)
    code, out, _ = project.finished(project.kvstudy("hosts", "check", file))
    assert code == 1 and "in use by root@" in out
    code, out, err = second.finished(measuring)
    assert code == 1 and "host is in use: by root@" in out + err, out + err
    release.touch()
    code, out, err = project.finished(first)
    assert code == 0, out + err
    assert [run.facts["outcome"] for run in sealed_runs(project.raw)] == ["completed"] * 2
    code, out, err = project.finished(project.kvstudy("hosts", "check", file))
    assert code == 0 and "in use" not in out, out + err


def test_a_host_with_another_python_is_named_before_anything_starts(hosts, project):
    file = hosts.yaml(a=["service"], b=["generator"])
    file.write_text(re.sub(r'"python": "[^"]*"', '"python": "/usr/bin/env nopython"', file.read_text()))
    for command in (["hosts", "check", file], ["run", project.experiment(), "--hosts", file]):
        code, out, err = project.finished(project.kvstudy(*command))
        assert code == 1 and "python" in out + err, out + err
    assert not project.raw.exists()


def test_a_folder_of_somebody_elses_is_refused_before_anything_starts_and_left_as_it_was(hosts, project):
    file = hosts.yaml(a=["service"], b=["generator"])
    theirs = hosts.folder / "there" / "theirs"
    hosts.asked("a", f"mkdir -p {theirs}/runs {theirs}/cluster && touch {theirs}/runs/1 {theirs}/cluster/2")
    before = hosts.asked("a", f"find {theirs} | sort")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"folder": str(theirs)}))
    said = f"folder holds something else: folder={theirs} found=cluster, runs"
    for command in (
        ["hosts", "check", file],
        ["hosts", "up", file],
        ["run", project.experiment(), "--hosts", file],
    ):
        code, out, err = project.finished(project.kvstudy(*command))
        assert code == 1 and said in out + err and "name an empty one under folder" in out + err, out + err
    assert hosts.asked("a", f"find {theirs} | sort") == before
    assert not project.raw.exists()
    nothing_runs_on(hosts, "ab")


def test_a_cluster_that_was_put_up_serves_many_measurements_and_is_taken_down(hosts, project):
    file = hosts.yaml(a=["service"], b=["generator"])
    experiment = project.experiment(subject="kv-service", rate=300)
    for command, said in (
        (["hosts", "up", file], "cluster of 2 hosts"),
        (["run", experiment, "--hosts", file], "1 sealed"),
        (["run", experiment, "--hosts", file], "1 sealed"),
    ):
        code, out, err = project.finished(project.kvstudy(*command))
        assert code == 0 and said in out, out + err
        assert hosts.pids("a")
    assert project.finished(project.kvstudy("hosts", "down", file))[0] == 0
    assert not hosts.pids("a") and not hosts.pids("b")


def test_a_full_disk_of_a_host_is_said_in_one_line(hosts, project):
    file = hosts.yaml(d=["service"], b=["generator"])
    hosts.end("d")
    hosts.begin("d", disk="2m")  # too small for the programs
    try:
        code, _, err = project.finished(
            project.kvstudy("run", project.experiment(subject="kv-service"), "--hosts", file)
        )
    finally:
        hosts.end("d")
        hosts.begin("d")
    assert code == 1 and re.search(r"host d: no space left on device", err), err
    assert not hosts.pids("b")
