"""Progress: a line per run where nobody looks at a terminal, a bar with the time left where somebody does."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

from trial import TRIAL

from kvstudy.measure.duet_progress import DuetProgress
from kvstudy.measure.progress import Progress
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.run_plan import plan

PROJECT = Path(__file__).parents[2]
TWO_RATES = TRIAL | {"rate": [10, 20]}


def test_log_gets_one_line_per_run_with_its_outcome_and_the_time_left(capsys):
    runs = plan(Experiment.from_parameters(TWO_RATES)).runs
    with Progress(runs, fill_s=0) as progress:
        for run, outcome in zip(runs, ("completed", "failed: service died"), strict=True):
            progress.begin(run)
            progress.doing("measure")
            progress.tick()
            progress.end(run, outcome)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(
        f"1/2 {runs[0].configuration.summary()} repeat 1: completed, "
    ) and first.endswith(" left")
    assert second == f"2/2 {runs[1].configuration.summary()} repeat 1: failed: service died"


def test_a_run_that_is_begun_once_more_is_one_more(capsys):
    """Other hosts measure what a lost one had begun."""
    runs = plan(Experiment.from_parameters(TWO_RATES)).runs
    with Progress(runs, fill_s=0) as progress:
        for run in (*runs, runs[0]):
            progress.begin(run)
            progress.end(run, "completed")
    said = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert said == ["1/2", "2/2", "3/3"]


def test_imported_ipykernel_alone_does_not_make_a_log_a_notebook(capsys):
    import ipykernel.kernelapp

    runs = plan(Experiment.from_parameters(TWO_RATES)).runs
    with Progress(runs, fill_s=0) as progress:
        progress.begin(runs[0])
        progress.end(runs[0], "completed")
    assert capsys.readouterr().err.startswith("1/2 put c=1 t=1")


def test_notebook_gets_a_bar(tmp_path):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(
                f"import sys; sys.path.insert(0, {str(PROJECT)!r})\n"
                "from kvstudy.measure.progress import shows_bars\n"
                "shows_bars()"
            )
        ]
    )
    NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert notebook.cells[0].outputs[0]["data"]["text/plain"] == "True"


def test_terminal_gets_a_bar_with_run_phase_and_time_left():
    code = f"""
import time
from kvstudy.measure.duet_progress import DuetProgress
from kvstudy.measure.progress import Progress
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.run_plan import plan
runs = plan(Experiment.from_parameters({TWO_RATES!r})).runs
with Progress(runs, fill_s=0) as progress:
    progress.begin(runs[0])
    progress.doing("measure")
    time.sleep(0.6)
    progress.tick()
    progress.doing("check")
    progress.end(runs[0], "completed")
"""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 160, 0, 0))
    subprocess.run(
        [sys.executable, "-c", code],
        stderr=follower,
        check=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(PROJECT), "TERM": "xterm"},
    )
    os.close(follower)
    shown = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert "1/2 put c=1 t=1" in shown and "left" in shown and "check" in shown and "%|" in shown


def test_what_goes_on_under_a_terminal_that_was_closed_goes_on(monkeypatch):
    """Whoever is interrupted by that has still to seal what was under way."""
    runs = plan(Experiment.from_parameters(TWO_RATES)).runs
    leader, descriptor = pty.openpty()
    with os.fdopen(descriptor, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with Progress(runs, fill_s=0) as of_runs:
            of_duet = DuetProgress(60)
            of_runs.begin(runs[0])
            os.close(leader)
            of_duet.begin(1)
            for progress in (of_runs, of_duet):
                progress.doing("seal")
                progress.tick()
        monkeypatch.undo()
        with suppress(OSError):
            terminal.close()
