"""`make duet-power` plants changes into the service: that they are there is tried without a quiet machine."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from project import PROJECT, UNDISTURBED, Project

pytestmark = pytest.mark.machine
AS_MAIN = f"""{UNDISTURBED}
import runpy, sys
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SCRIPT = PROJECT / "tests" / "planted" / "duet_power.py"


@pytest.fixture
def without_blanks(project, tmp_path):
    """An option of the JVM has none."""
    return Project(tmp_path / "project")


def power(project, script, workload, outcomes):
    asked = ["--only", "cpu-5", "--workload", workload, "--launches", "1", "--outcomes", outcomes]
    return subprocess.run(
        [sys.executable, "-c", AS_MAIN, script, "--tiny", "--changed", "1", *asked],
        cwd=project.root,
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("workload", ["get", "put"])
def test_a_change_is_planted_where_requests_come_by(without_blanks, tmp_path, workload):
    outcomes = tmp_path / "outcomes.jsonl"
    done = power(without_blanks, SCRIPT, workload, outcomes)
    assert done.returncode == 0, done.stderr
    (found,) = map(json.loads, outcomes.read_text().splitlines())
    assert (found["kind"], found["workload"], found["launches"]) == ("cpu-5", workload, 1), done.stderr


def test_where_requests_do_not_come_by_what_was_planted_no_duet_is_recorded(without_blanks, tmp_path):
    """As it was when GETs had got another way into the store."""
    folder, outcomes = tmp_path / "planted", tmp_path / "outcomes.jsonl"
    shutil.copytree(SCRIPT.parent, folder, ignore=shutil.ignore_patterns("__pycache__", "*.jsonl"))
    agent = folder / "agent" / "PlantedAgent.java"
    elsewhere = agent.read_text().replace('"get([B[BZ)[B"', '"delete([B)V"')
    assert elsewhere != agent.read_text()
    agent.write_text(elsewhere)
    done = power(without_blanks, folder / SCRIPT.name, "get", outcomes)
    print(done.stderr)
    assert not outcomes.exists(), outcomes.read_text()
    assert "nothing is planted" in done.stderr, done.stderr
