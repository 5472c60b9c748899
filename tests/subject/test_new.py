"""`kvstudy new`: an experiment for a service of one's own is written, tried once, and can be run."""

import json
import shlex
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from project import project

from kvstudy.errors import KvstudyError
from kvstudy.measure import new
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.subject import SubjectSpec
from kvstudy.record.run_folder import sealed_runs

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
    assert lines[1] == "started: waiting until it writes a line with 'serving on', at most 1m"
    assert (
        lines[2].startswith("ready: http://127.0.0.1:")
        and lines[3].endswith(": 201")
        and lines[4].endswith(": 200")
        and lines[5] == "stopped in order"
    )
    experiment = Experiment.load(project.root / "experiments" / "my-service.yaml")
    assert (experiment.subject[0].label, experiment.subject[0].ready.line, experiment.repeats) == (
        "my-service",
        "serving on",
        2,
    )
    assert project.processes() == []
    code, _, err = project.finished(project.kvstudy("new", "my-service", "--command", command()))
    assert code == 2 and "there is such an experiment already: " in err
    before = (project.root / "experiments" / "my-service.yaml").read_bytes()
    asked = ("new", "my-service", "--replace", "--ready", "serving on", "--command")
    code, _, err = project.finished(project.kvstudy(*asked, "cd x && serve"))
    assert code == 2 and "no line of a shell" in err
    assert (project.root / "experiments" / "my-service.yaml").read_bytes() == before
    code, out, err = project.finished(project.kvstudy(*asked, command("x")))
    assert code == 0 and "stopped in order" in out, err
    assert (project.root / "experiments" / "my-service.yaml").read_bytes() != before


def test_a_service_that_does_not_answer_is_told_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(new, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        live = SimpleNamespace(
            url=f"http://127.0.0.1:{deaf.getsockname()[1]}", check_alive=lambda _doing: None
        )
        with pytest.raises(KvstudyError, match="^no answer to GET /slow within 0.2 s\n  look into what"):
            list(new._answers(live, SubjectSpec(url=live.url), "/slow", tmp_path / "log"))


def test_a_service_that_only_reads_is_measured_by_a_script_that_can_be_changed(project):
    asked = ("--command", command(), "--ready", "/health", "--get", "/health")
    code, out, err = project.finished(project.kvstudy("new", "reader", *asked))
    assert code == 0, err
    lines = out.splitlines()
    assert lines[1].startswith(
        "started: waiting until it answers GET /health with a status under 500, at most "
    )
    assert lines[2].startswith("ready: ") and lines[3:5] == ["GET /health: 200", "stopped in order"]
    assert lines[-2:] == [
        "measure it: kvstudy run experiments/reader.yaml",
        "see it: kvstudy report --experiment reader",
    ]
    file = project.root / "experiments" / "reader.yaml"
    file.write_text(file.read_text().replace("{duration: 5s, warm_up: 2s,", "{duration: 2s, warm_up: 1s,"))
    code, _, err = project.finished(project.kvstudy("run", file, "--only", "rate=1000", "--only", "repeat=1"))
    assert code == 0, err
    (run,) = sealed_runs(project.raw)
    assert run.facts["workload"] == "reader" and run.facts["fill"] is None
    assert json.loads(run.text("generator.json"))["counts"]["unexpected"] == 0
    code, _, err = project.finished(project.kvstudy("new", "reader2", *asked[:-1], "/a'b\\"))
    assert code == 2 and "not a path: " in err and not (project.root / "experiments" / "reader2.lua").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--command", "{python} -m http.server {{port}}"], "PUT /k000000000000001 answered 501: "),
        (
            ["--command", "{python} {foreign} {{port}} {{dir}} answers-500"],
            "PUT /k000000000000001 answered 500: ''",
        ),
        (
            ["--command", "{python} {foreign} {{port}} {{dir}} answers-503"],
            "  if it still starts, say when it is ready: --ready /path; its log: ",
        ),
        (
            ["--command", "{python} {foreign} {{port}} {{dir}} answers-404"],
            "  write its path in paths, as --path '/items/{key}'; the file stays: ",
        ),
        (
            ["--command", "{python} {foreign} {{port}} {{dir}} answers-400"],
            "  bodies and headers of its own are sent by a script: experiments/README.md, Workloads; else ",
        ),
        (["--command", "{python} {foreign} {{port}} {{dir}} daemonise"], "keeps it in the foreground"),
        (
            ["--command", "{python} {foreign} {{port}} {{dir}} dies-when-asked"],
            "service died during PUT /k000000000000001: exit 3: not today: in the trial of trial.yaml",
        ),
        (["--command", "nosuchd {{port}}"], "no such program: nosuchd"),
        (["--url", "http://127.0.0.1:9"], "nothing answers at http://127.0.0.1:9: connection refused"),
        (["--command", "serve 8080"], "{port} is missing: the command must be told the port to serve on"),
        (["--command", "cd /srv && serve {{port}}"], "--command is no line of a shell: '&&'"),
        (["--command", "serve {{port}} &"], "--command is no line of a shell: '&'"),
        (["--command", "PORT={{port}} serve"], "--command is no line of a shell: 'PORT={port}'"),
        (["--command", "serve {{port}}; sleep 1"], "--command is no line of a shell: ';'"),
        (["--command", "~/bin/serve {{port}}"], "--command is no line of a shell: '~/bin/serve'"),
        (["--command", "$HOME/serve {{port}}"], "--command is no line of a shell: '$HOME/serve'"),
        ([], "give either --command or --url"),
    ],
    ids=[
        "takes-no-put",
        "answers-500",
        "still-starts",
        "has-no-such-path",
        "takes-other-bodies",
        "daemonises",
        "dies-when-asked",
        "no-program",
        "refuses",
        "no-port",
        "two-commands",
        "in-the-background",
        "variable",
        "then-another",
        "home",
        "program-from-a-variable",
        "nothing-given",
    ],
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
    stays = "the file stays: mend it there, or the same command with --replace" in err
    assert stays == (project.root / "experiments" / "trial.yaml").exists()
    assert len(err.strip().splitlines()) == 2 and project.processes() == []
