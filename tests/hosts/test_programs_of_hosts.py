"""A command whose program lies on the service's host alone: what counts is the one that is there."""

import sys
from pathlib import Path

import pytest
from test_failures import came_to, nothing_runs_on

from kvstudy.record.run_folder import sealed_runs

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts")]

FOREIGN = Path(__file__).parents[1] / "subject" / "foreign.py"


@pytest.fixture
def program(hosts) -> str:
    """Where it lies; on the host a alone, which has this folder on a disk of its own."""
    there = hosts.folder / "there" / "foreign.py"
    hosts.asked("a", f"sed s/127.0.0.1/0.0.0.0/ {FOREIGN} >{there}")
    assert not there.exists()
    return str(there)


def experiment_of(program: str, project, **change) -> Path:
    words = [sys.executable, program, "{port}", "{dir}"]
    subject = {"name": "foreign", "command": words, "needs": [program]}
    return project.experiment(**{"subject": subject, "rate": 100, "repeats": 1} | change)


def test_a_resumed_measurement_keeps_runs_of_the_program_that_is_on_the_host_and_of_no_other(
    hosts, project, program
):
    file = hosts.yaml(a=["service"], b=["generator"])
    command = ("run", experiment_of(program, project), "--hosts", file, "--resume")
    for said in ("1 sealed", "1 kept"):
        code, out, err = project.finished(project.kvstudy(*command))
        assert code == 0 and said in out, out + err
    hosts.asked("a", f"echo >>{program}")
    code, out, err = project.finished(project.kvstudy(*command))
    assert code == 0 and "1 sealed" in out and "kept" not in out, out + err
    one, other = (run.facts["tool_digests"]["subject"] for run in sealed_runs(project.raw))
    assert one != other


def test_a_resumed_measurement_says_how_many_runs_are_of_other_hosts(hosts, project):
    experiment = project.experiment(subject="kv-service")
    for service, told in (("a", False), ("c", True)):
        file = hosts.yaml(**{service: ["service"], "b": ["generator"]})
        code, out, err = project.finished(project.kvstudy("run", experiment, "--hosts", file, "--resume"))
        assert code == 0 and "1 sealed" in out, out + err
        assert ("1 sealed run of other hosts is measured anew" in err) == told, err


def test_a_program_that_is_replaced_on_the_host_while_it_is_measured_fails_the_run(
    hosts, project, tmp_path, program
):
    file = hosts.yaml(a=["service"], b=["generator"])
    experiment = experiment_of(program, project, duration="3s")
    with came_to("measure", project, tmp_path, "run", experiment, "--hosts", file) as measuring:
        hosts.asked("a", f"echo >>{program}")
        code, out, err = project.finished(measuring, timeout_s=90)
    (run,) = sealed_runs(project.raw)
    said = f"failed: host a: program was replaced while it was measured: {program}"
    assert run.facts["outcome"] == said, out + err
    assert code == 1
    nothing_runs_on(hosts, "ab")
