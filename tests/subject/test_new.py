"""`kvstudy new`: an experiment for a service of one's own is written, tried once, and can be run."""

import shlex
import sys
from pathlib import Path

import pytest
from project import project

from kvstudy.plan.experiment import Experiment

pytestmark = pytest.mark.machine
FOREIGN = Path(__file__).with_name("foreign.py")


def command(*faults: str) -> str:
    return shlex.join([sys.executable, str(FOREIGN), "{port}", "{dir}", *faults])


def test_an_experiment_is_written_and_tried_and_its_plan_is_whole(project):
    code, out, err = project.finished(
        project.kvstudy("new", "my-service", "--command", command(), "--ready", "serving on")
    )
    assert code == 0, err
    lines = out.splitlines()
    assert (
        lines[1].startswith("ready: http://127.0.0.1:")
        and lines[2].endswith(": 201")
        and lines[3].endswith(": 200")
        and lines[4] == "stopped in order"
    )
    experiment = Experiment.load(project.root / "experiments" / "my-service.yaml")
    assert (experiment.subject[0].label, experiment.subject[0].ready.line, experiment.repeats) == (
        "my-service",
        "serving on",
        2,
    )
    assert project.processes() == []
    code, _, err = project.finished(project.kvstudy("new", "my-service", "--command", command()))
    assert code == 1 and "there is such an experiment already: " in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--command", "{python} {foreign} {{port}} {{dir}} answers-500"],
            "PUT /k000000000000001 answered 500: ''",
        ),
        (["--command", "{python} {foreign} {{port}} {{dir}} daemonise"], "keeps it in the foreground"),
        (["--command", "nosuchd {{port}}"], "no such program: nosuchd"),
        (["--url", "http://127.0.0.1:9"], "nothing answers at http://127.0.0.1:9: connection refused"),
        (["--command", "serve 8080"], "{port} is missing: the command must be told the port to serve on"),
        ([], "give either --command or --url"),
    ],
    ids=["answers-500", "daemonises", "no-program", "refuses", "no-port", "nothing-given"],
)
def test_what_is_wrong_is_one_line_and_nothing_is_left_running(project, arguments, message):
    words = [
        word.format(python=shlex.quote(sys.executable), foreign=shlex.quote(str(FOREIGN)))
        if " " in word
        else word
        for word in arguments
    ]
    code, _, err = project.finished(project.kvstudy("new", "trial", *words))
    assert code in (1, 2) and message in err and "Traceback" not in err, err
    assert len(err.strip().splitlines()) == 2 and project.processes() == []
