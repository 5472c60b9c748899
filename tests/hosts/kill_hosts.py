"""A worker, an agent, a host or the scheduler goes at a random moment of a measurement over hosts: `make
kill-hosts` (KILLS=30, SEED=number for the same ones again).

Three hosts measure two runs, as without any fault takes ``undisturbed_s``. Whatever goes, and whenever:
what is sealed is whole, what was under way is sealed with its reason or was never begun, kvstudy ends,
and nothing is left running on any host once it can be reached. What is printed of each: what went, when,
and how long it took until kvstudy had sealed that run or ended.
"""

import os
import random
import signal
import time
from contextlib import suppress

import psutil
import pytest

from kvstudy.hosts.process import wait_until
from kvstudy.record.run_folder import sealed_runs
from kvstudy.record.verification import verify

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts")]

KILLS = int(os.environ.get("KILLS") or 30)
SEED = int(os.environ.get("SEED") or time.time_ns() % 1_000_000)
HANGS_S = 15.0  # longer than that without a sealed run or an end is a hang
NAMES = "abc"
LONGEST: dict[int, float] = {}


def killed(hosts, name: str, word: str) -> bool:
    """False where no such process is yet, or any more."""
    for pid, words in hosts.pids(name).items():
        if word in words:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
    return False


def scheduler_killed(measuring) -> bool:
    with suppress(psutil.Error):
        for one in psutil.Process(measuring.pid).children(recursive=True):
            if "scheduler" in one.cmdline():
                one.kill()
                return True
    return False


WHAT_GOES = {
    **{
        f"worker on {name}": lambda hosts, _measuring, name=name: killed(hosts, name, "dask_host")
        for name in NAMES
    },
    **{
        f"agent on {name}": lambda hosts, _measuring, name=name: killed(hosts, name, "hosts.agent")
        for name in NAMES
    },
    **{f"host {name}": lambda hosts, _measuring, name=name: hosts.end(name) or True for name in NAMES},
    **{f"link of {name}": lambda hosts, _measuring, name=name: hosts.cut(name) or True for name in NAMES},
    "scheduler": lambda _hosts, measuring: scheduler_killed(measuring),
    "service": lambda hosts, _measuring: killed(hosts, "a", "kv-service.jar"),
}


def measure(hosts, project):
    file = hosts.yaml(a=["service"], b=["generator"], c=["generator"])
    experiment = project.experiment(
        subject="kv-service",
        connections=4,
        threads=2,
        rate=300,
        duration="2s",
        warm_up="500ms",
        repeats=2,
    )
    return project.kvstudy("run", experiment, "--hosts", file, "--generators", 2)


@pytest.fixture(scope="module")
def undisturbed_s(hosts, tmp_path_factory):
    from project import Project

    project = Project(tmp_path_factory.mktemp("undisturbed") / "my project")
    begun = time.monotonic()
    code, out, err = project.finished(measure(hosts, project))
    assert code == 0 and len(sealed_runs(project.raw)) == 2, out + err
    took_s = time.monotonic() - begun
    print(f"\nSEED={SEED}; two runs that nothing happens to: {took_s:.1f} s")
    yield took_s
    if LONGEST:
        print(f"\nlongest wait of {len(LONGEST)}: {max(LONGEST.values()):.1f} s; SEED={SEED}")


@pytest.mark.parametrize("number", range(KILLS))
def test_whatever_goes_at_whatever_moment_nothing_is_lost_and_nothing_is_left(
    hosts, project, undisturbed_s, number
):
    drawn = random.Random(f"{SEED} {number}")
    what, moment_s = drawn.choice(list(WHAT_GOES)), drawn.uniform(0.1, 0.95) * undisturbed_s
    begun = time.monotonic()
    measuring = measure(hosts, project)
    try:
        time.sleep(moment_s)
        assert wait_until(
            lambda: measuring.poll() is not None or WHAT_GOES[what](hosts, measuring), undisturbed_s
        ), "it never came to what should go"
        gone_s = time.monotonic() - begun
        longest_s = _longest_wait(project, measuring, undisturbed_s)
        code, out, err = project.finished(measuring, timeout_s=5)
    finally:
        if measuring.poll() is None:
            measuring.kill()
        for name in NAMES:
            if name in hosts.begun:
                hosts.heal(name)
            else:
                hosts.begin(name)
    outcomes = [run.facts["outcome"] for run in sealed_runs(project.raw)]
    print(f"\n{number + 1}: {what} after {gone_s:.1f} s: {longest_s:.1f} s, exit {code}, {outcomes}")
    LONGEST[number] = longest_s
    assert "Traceback" not in err, err
    for run in sealed_runs(project.raw):
        assert verify(run.path) == []
    assert all(one == "completed" or one.startswith("failed: ") for one in outcomes), outcomes
    assert code in (0, 1) and (code == 0) == (outcomes == ["completed"] * 2), out + err
    assert code == 0 or err.strip() or "failed" in out, "it must say why"
    assert not list(project.raw.rglob("*.partial")), list(project.raw.rglob("*.partial"))
    for name in NAMES:
        assert wait_until(lambda name=name: not hosts.pids(name), 40), (what, hosts.pids(name))
    assert project.processes() == []


def _longest_wait(project, measuring, undisturbed_s: float) -> float:
    """Seconds between what went, each run that is sealed after it, and the end. No wait may be longer than a
    hang beside what the same takes when nothing happens."""
    last, longest_s, sealed = time.monotonic(), 0.0, len(_sealed(project))
    while measuring.poll() is None:
        waited_s = time.monotonic() - last
        assert waited_s < HANGS_S + undisturbed_s, f"hangs: {waited_s:.0f} s without a run that is sealed"
        if (now := len(_sealed(project))) != sealed:
            sealed, last = now, time.monotonic()
        longest_s = max(longest_s, waited_s)
        time.sleep(0.05)
    return longest_s


def _sealed(project) -> list:
    return sealed_runs(project.raw) if project.raw.is_dir() else []
