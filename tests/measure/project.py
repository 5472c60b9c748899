"""A project of its own for tests that launch the real service and the real load generator."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kvstudy.project import empty_server_jar, jfr_converter_jar, loadgen_binary, profiler_library, service_jar

PROJECT = Path(__file__).parents[2]
SCHEDULER = "kvstudy.hosts.dask_host"  # of a cluster, which a measurement starts too
# The keys of ``compare`` for a duet that says nothing of speed, and is over in seconds.
TINY_SLICES = {
    "warm_up": "200ms",
    "pairs": 2,
    "closed_pairs": 2,
    "not_counted": "20ms",
    "counted": "80ms",
    "gap": "10ms",
    "profile": [],
    "launches": 2,
    "within": "2m",
}
# The keys of an experiment of two short runs over hosts, with two generators.
TWO_RUNS = {
    "subject": "kv-service",
    "connections": 4,
    "threads": 2,
    "rate": 300,
    "duration": "2s",
    "warm_up": "500ms",
    "repeats": 2,
}
# Code that lets so many launches do as were asked for, whatever else goes on here meanwhile.
UNDISTURBED = """
from kvstudy.analyse import duet_validity
duet_validity.disturbance = lambda load: None
"""
SIGNAL_IN_PHASE = """
import os, signal
from kvstudy.measure.progress import Progress
doing = Progress.doing
def interrupting(self, phase):
    doing(self, phase)
    if phase.startswith({phase!r}) and not hasattr(Progress, "sent"):
        Progress.sent = True
        os.kill(os.getpid(), signal.{signal})
Progress.doing = interrupting
"""


class Project:
    """A folder with the workloads and the built programs of this tree; experiments are written by the
    tests."""

    def __init__(self, root: Path):
        self.root = root
        (root / "notebooks").mkdir(parents=True)
        shutil.copytree(PROJECT / "experiments" / "workloads", root / "experiments" / "workloads")
        for folder in ("service", "loadgen"):
            (root / folder).mkdir()
            (root / folder / "target").symlink_to(PROJECT / folder / "target")

    def experiment(self, **change) -> Path:
        """A short run against the empty server, changed as asked. Values are written as JSON, which is
        YAML."""
        values = {
            "question": "does it work?",
            "expectation": "1 ms",
            "workload": "put",
            "connections": 2,
            "threads": 1,
            "rate": 500,
            "duration": "900ms",
            "warm_up": "300ms",
            "repeats": 1,
        } | change
        values.setdefault("subject", values.pop("server", "empty"))
        path = self.root / "experiments" / "trial.yaml"
        path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))
        return path

    def kvstudy(self, *arguments: object, code: str | None = None) -> subprocess.Popen:
        """kvstudy as a process; ``code`` runs before it, in the same process."""
        program = ["-c", f"{code}\nfrom kvstudy.cli import main\nmain()"] if code else ["-m", "kvstudy"]
        return subprocess.Popen(
            [sys.executable, *program, *map(str, arguments)],
            cwd=self.root,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(PROJECT)},
        )

    @staticmethod
    def finished(process: subprocess.Popen, timeout_s: float = 300) -> tuple[int, str, str]:
        """Exit code, stdout and stderr, at the end. All of stderr is printed, too: pytest shows it where a
        test fails, and cuts long values in an assertion's message."""
        out, err = process.communicate(timeout=timeout_s)
        print(err)
        return process.returncode, out, err

    @staticmethod
    def signal_in_phase(phase: str, signal: str) -> str:
        """Code that makes kvstudy send itself the signal the first time that a run enters the phase."""
        return SIGNAL_IN_PHASE.format(phase=phase, signal=signal)

    def processes(self) -> list[str]:
        """Command lines of processes that this project's measurements started and that still run; not of
        kvstudy itself, but of its scheduler."""
        found = []
        for process in psutil.process_iter(["cmdline", "status"]):
            line = " ".join(process.info["cmdline"] or [])
            is_kvstudy = " kvstudy" in line and SCHEDULER not in line
            if str(self.root) in line and process.info["status"] != psutil.STATUS_ZOMBIE and not is_kvstudy:
                found.append(line)
        return found

    @property
    def raw(self) -> Path:
        return self.root / "data" / "raw"


@pytest.fixture
def project(tmp_path):
    built = (
        service_jar(PROJECT),
        empty_server_jar(PROJECT),
        loadgen_binary(PROJECT),
        profiler_library(PROJECT),
        jfr_converter_jar(PROJECT),
    )
    missing = [str(path.relative_to(PROJECT)) for path in built if not path.is_file()]
    if missing:
        pytest.skip(f"not built: {', '.join(missing)}: run kvstudy build (make test does)")
    return Project(tmp_path / "my project")  # with a blank: a clone may lie anywhere
