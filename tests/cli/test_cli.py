"""The command line as a user meets it: real processes, exit codes, one clear line per error."""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from committed import experiments

from kvstudy import cli
from kvstudy.hosts.process import _until_creator_dies, wait_until
from kvstudy.hosts.session import Session
from kvstudy.project import work_root
from kvstudy.record.run_folder import REQUIRED_FACTS, RunWriter

PROJECT = Path(__file__).parents[2]


def kvstudy(*arguments, root=PROJECT, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "kvstudy", *map(str, arguments)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(PROJECT)} | environment,
    )


@pytest.fixture
def project(tmp_path):
    """An empty project: the folders that make a root, and nothing built."""
    for folder in ("experiments", "notebooks"):
        (tmp_path / folder).mkdir()
    return tmp_path


def sealed_run(root: Path) -> Path:
    folder = RunWriter.create(root / "data" / "raw", "trial", "run-1")
    folder.write_json("run.json", dict.fromkeys(sorted(REQUIRED_FACTS)) | {"run_id": "run-1"})
    folder.write_text("service.log", "Requests/sec: 2000.00\n")
    return folder.seal().path


def test_help_names_every_command():
    answer = kvstudy("--help")
    assert answer.returncode == 0
    for command in (
        "plan",
        "run",
        "verify",
        "tables",
        "publish",
        "report",
        "findings",
        "doctor",
        "build",
        "new",
    ):
        assert f"\n  {command}" in answer.stdout


@pytest.mark.parametrize("group", [(), ("hosts",)])
def test_help_says_of_every_command_a_whole_sentence(group):
    listed = kvstudy(*group, "--help").stdout.partition("Commands:\n")[2].splitlines()
    assert listed and [line for line in listed if not re.fullmatch(r"  \S+ +.+[^.]\.", line)] == []


def test_plan_shows_runs_order_and_duration_and_starts_nothing():
    answer = kvstudy("plan", "experiments/reproduce.yaml", "--preset", "smoke")
    assert answer.returncode == 0, answer.stderr
    assert "reproduce (smoke): How fast do PUT and GET answer" in answer.stdout
    assert " runs (" in answer.stdout and "repeat 1/1" in answer.stdout


def test_several_files_are_summed_up_first_and_planned_one_after_the_other():
    files = [str(path.relative_to(PROJECT)) for path in experiments()]
    answer = kvstudy("plan", *files, "--preset", "reference")
    lines = answer.stdout.splitlines()
    assert answer.returncode == 0, answer.stderr
    assert re.fullmatch(
        r"as-command, cache, compaction, .*: \d+ runs, about .* in all, builds apart", lines[0]
    )
    assert [line.split(" ")[0] for line in lines if " (reference): " in line] == [
        Path(file).stem for file in files
    ]


def test_duets_are_planned_beside_runs_and_so_is_the_most_that_they_take():
    answer = kvstudy(
        "plan",
        "experiments/reproduce.yaml",
        "--duets",
        "experiments/wal.yaml",
        "--preset",
        "quick",
        "--total",
    )
    told = r"reproduce, wal: \d+ runs and 1 duet, about \d+m \d+s in all, at most \d+m \d+s, builds apart\n"
    assert answer.returncode == 0 and re.fullmatch(told, answer.stdout), answer.stdout + answer.stderr
    alone = kvstudy("plan", "experiments/noise.yaml", "--duets", "experiments/wal.yaml", "--preset", "full")
    assert "wal: wal=always beside wal=interval: unique_put; a launch takes about" in alone.stdout


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_two_files_of_one_name_are_refused_since_their_runs_would_lie_in_one_folder(tmp_path, command):
    first = PROJECT / "experiments" / "wal.yaml"
    other = Path(shutil.copy(first, tmp_path))
    for files in ((first, other), (first, first)):
        answer = kvstudy(command, *files, "--preset", "smoke")
        assert answer.returncode == 2
        assert answer.stderr.splitlines()[-1].endswith(
            "two files of one name, of which runs are kept together: wal"
        )


def test_the_quick_plan_of_make_reproduce_takes_as_long_as_the_readme_says():
    dry = ["make", "--dry-run", "reproduce", "PRESET=quick"]
    printed = subprocess.run(dry, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    (asked,) = re.findall(r"kvstudy (plan .*--total)$", printed, re.MULTILINE)
    told = kvstudy(*asked.split()).stdout
    about = re.search(r"about (\d+)m(?: (\d+)s)? in all, at most (\d+)m(?: (\d+)s)?,", told)
    about_m, about_s, most_m, most_s = (int(part or 0) for part in about.groups())
    # Its pages take one minute more.
    assert 18 * 60 <= 60 * about_m + about_s <= 19 * 60, told
    assert 60 * most_m + most_s <= 27 * 60, told
    assert "takes 18 to 28 minutes" in (PROJECT / "README.md").read_text()


def test_make_refuses_a_base_that_is_empty_and_a_python_that_is_not_there(tmp_path):
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(PROJECT / name, tmp_path)
    for typed, told in (
        (("compare", "BASE="), "BASE is empty: give a revision"),
        (("setup", "PYTHON=nopython"), "no such program: PYTHON=nopython; set PYTHON to "),
    ):
        made = subprocess.run(["make", *typed], cwd=tmp_path, capture_output=True, text=True)
        assert made.returncode == 2 and told in made.stderr and made.stdout == "", made
    assert not (tmp_path / ".venv").exists()


def test_make_takes_the_picture_of_a_checkout_below_any_folder(tmp_path):
    checkout = tmp_path / "it's ours"
    checkout.mkdir()
    shutil.copy(PROJECT / "Makefile", checkout)
    browser = checkout / "browser"
    browser.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    browser.chmod(0o755)
    asked = ["make", "--old-file", "html", "picture", "CHROMIUM=./browser"]
    made = subprocess.run(asked, cwd=checkout, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert f"file://{checkout}/figures/study/index.html" in made.stdout.splitlines()


def test_make_begins_an_environment_anew_that_was_not_finished_and_leaves_one_alone_that_is_not_its_own(
    tmp_path,
):
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(PROJECT / name, tmp_path)
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 0\nfor venv; do :; done\ntouch $venv/half\nexit 1\n')
    python.chmod(0o755)
    asked = ["make", "setup", "PYTHON=./python"]
    mine, left = tmp_path / "mine", tmp_path / ".venv" / "left"
    mine.mkdir()
    (mine / "kept").touch()
    for _ in range(2):
        assert subprocess.run([*asked, "VENV=mine"], cwd=tmp_path, capture_output=True).returncode
        assert sorted(path.name for path in mine.iterdir()) == ["half", "kept"]
    for _ in range(2):
        assert subprocess.run(asked, cwd=tmp_path, capture_output=True).returncode
        assert sorted(path.name for path in left.parent.iterdir()) == ["begun", "half"]
        left.touch()


def test_make_refuses_an_environment_that_was_made_in_another_folder(tmp_path):
    checkout = tmp_path / "it's moved"
    checkout.mkdir()
    shutil.copy(PROJECT / "Makefile", checkout)
    asked = ["make", "--old-file", ".venv/ready", "setup"]
    for made_in, python, returncode in (
        (checkout, sys.executable, 0),
        (tmp_path, sys.executable, 2),
        (checkout, "/nowhere", 2),
    ):
        shutil.rmtree(checkout / ".venv", ignore_errors=True)
        (checkout / ".venv" / "bin").mkdir(parents=True)
        (checkout / ".venv" / "ready").touch()
        (checkout / ".venv" / "bin" / "python").symlink_to(python)
        (checkout / ".venv" / "bin" / "kvstudy").write_text(f"#!{made_in}/.venv/bin/python\n")
        made = subprocess.run(asked, cwd=checkout, capture_output=True, text=True)
        assert made.returncode == returncode, made
        assert ("rm -rf .venv, and the same command again" in made.stderr) == bool(returncode)
    elsewhere = ["make", "--old-file", "/nowhere/.venv/ready", "setup", "VENV=/nowhere/.venv"]
    assert subprocess.run(elsewhere, cwd=checkout, capture_output=True).returncode == 0


@pytest.mark.parametrize(("compared", "told"), [(0, "everything works"), (1, "pages are written"), (2, "")])
def test_make_smoke_writes_its_pages_though_a_run_or_a_launch_failed(tmp_path, compared, told):
    program = tmp_path / "kvstudy"
    program.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/typed\n[ "$1" != compare ] || exit {compared}\n')
    program.chmod(0o755)
    made = subprocess.run(
        ["make", "--no-print-directory", "--old-file", ".venv/ready", "smoke", f"KVSTUDY={program}"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    typed = [line.split()[0] for line in (tmp_path / "typed").read_text().splitlines()]
    assert typed == ["build", "run", "compare", *(["report"] if compared < 2 else [])]
    assert (made.returncode != 0) == bool(compared) and told in made.stdout + made.stderr


@pytest.mark.skipif(not _until_creator_dies(), reason="needs setpriv")
@pytest.mark.parametrize("target", ["smoke", "reproduce"])
def test_what_make_measures_with_ends_with_it(tmp_path, target):
    program, pid = tmp_path / "kvstudy", tmp_path / "pid"
    program.write_text(f'#!/bin/sh\n[ "$1" = run ] || exit 0\necho $$ >{pid}\nexec sleep 60\n')
    program.chmod(0o755)
    made = subprocess.Popen(
        ["make", "--old-file", ".venv/ready", target, f"KVSTUDY={program}"],
        cwd=PROJECT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert wait_until(lambda: pid.is_file() and pid.read_text().endswith("\n"), 20)
    made.terminate()
    made.wait(20)
    assert wait_until(lambda: not psutil.pid_exists(int(pid.read_text())), 20)


@pytest.mark.skipif(not _until_creator_dies(), reason="needs setpriv")
@pytest.mark.parametrize("working", [("cargo", "kvstudy"), ("python", "python")])
def test_what_make_test_has_started_ends_with_it_where_its_output_is_a_pipe(tmp_path, working):
    """``working``: programs that work on when they are asked for tests, of Python's two; all else ends at
    once."""
    shutil.copy(PROJECT / "Makefile", tmp_path)
    programs, pids = tmp_path / "env" / "bin", tmp_path / "pids"
    for folder in (programs, pids, tmp_path / "tests", tmp_path / "build"):
        folder.mkdir(parents=True)
    for name in ("cargo", "kvstudy", "mvn", "pymarkdown", "python", "ruff"):
        works = (
            "*--no-fail-fast*|*--test-java*|*--dist*) touch pids/$$; exec sleep 60" if name in working else ""
        )
        (programs / name).write_text(f'#!/bin/sh\ncase "$*" in {works or "none) :"} ;; esac\n')
        (programs / name).chmod(0o755)
    for name in ("requirements.lock", "pyproject.toml", "env/ready", "tests/test_it.py"):
        (tmp_path / name).write_text("mark.machine")
    made = subprocess.Popen(
        ["make", "test", f"VENV={programs.parent}"],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    with made:
        assert wait_until(lambda: len(list(pids.iterdir())) == len(working), 60), made.communicate()
        made.terminate()
        made.communicate(timeout=20)  # whoever held the pipe would hold this up
    assert wait_until(lambda: not any(psutil.pid_exists(int(pid.name)) for pid in pids.iterdir()), 20)


def test_make_reproduce_names_what_only_longer_measurements_decide_of_every_page():
    dry = ["make", "--dry-run", "reproduce", "PRESET=quick"]
    printed = subprocess.run(dry, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    (named,) = re.findall(r"kvstudy plan (.*) --preset full --commands;", printed)
    of_pages = ["saturation", "peers", "scale", "connections", "larger-than-memory", "grid", "noise", "wrk2"]
    assert {f"experiments/{name}.yaml" for name in of_pages} <= set(named.split())
    answer = kvstudy("plan", *named.split(), "--preset", "full", "--commands")
    assert answer.returncode == 0, answer.stderr
    for name in of_pages:
        assert re.search(rf"^ *[\dhms ]+  kvstudy run experiments/{name}.yaml ", answer.stdout, re.MULTILINE)


@pytest.mark.parametrize("fails", [True, False])
def test_make_reproduce_names_it_after_the_pages_were_written_and_not_where_they_were_not(tmp_path, fails):
    program = tmp_path / "kvstudy"
    program.write_text(f'#!/bin/sh\necho "called $1"\n[ "$1" = report ] && exit {3 * fails}\nexit 0\n')
    program.chmod(0o755)
    made = subprocess.run(
        ["make", "-o", ".venv/ready", "reproduce", "PRESET=quick", f"KVSTUDY={program}"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert "called report" in made.stdout and bool(made.returncode) == fails, made.stdout + made.stderr
    assert ("what only longer measurements decide" in made.stdout) != fails
    assert made.stdout.endswith(f"the pages: {PROJECT}/figures/study/index.html\n") != fails


def test_the_number_of_real_duets_is_that_of_its_own_variables():
    """`make reproduce` has a list of files that was called as the number was."""
    dry = ["make", "--dry-run", "duet-power", "CHANGED=3"]
    printed = subprocess.run(dry, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    assert "duet_power.py --changed 3 --unchanged 10 --within 10m " in printed, printed


def test_the_commands_that_measure_files_are_told_with_their_times():
    files = ["experiments/wal.yaml", "experiments/put-get.yaml", "experiments/report-1.yaml"]
    answer = kvstudy("plan", *files, "--preset", "full", "--commands")
    lines = answer.stdout.splitlines()
    assert answer.returncode == 0 and len(lines) == 4, answer.stdout + answer.stderr
    assert "kvstudy run experiments/wal.yaml --preset full" in lines[0]
    assert "kvstudy compare experiments/wal.yaml --preset full" in lines[1]
    assert re.match(r" *(\d+h )?\d+m", lines[0]) and lines[3].endswith("at most 1 ms?")


def test_total_leaves_the_list_of_runs_out():
    answer = kvstudy(
        "plan", "experiments/reproduce.yaml", "experiments/report-2.yaml", "--preset", "full", "--total"
    )
    assert re.fullmatch(
        r"reproduce, report-2: \d+ runs, about \dh \d+m in all, builds apart\n", answer.stdout
    )


def test_mistake_in_the_second_file_ends_the_run_before_the_first_is_started(project):
    good = (
        "question: what?\nexpectation: 1 ms\nworkload: put\nconnections: 1\nthreads: 1\nrate: 10\n"
        "duration: 2s\nwarm_up: 1s\nrepeats: 1\n"
    )
    (project / "experiments" / "good.yaml").write_text(good)
    (project / "experiments" / "bad.yaml").write_text(good.replace("repeats", "repeat"))
    answer = kvstudy("run", "experiments/good.yaml", "experiments/bad.yaml", root=project)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("kvstudy: experiments/bad.yaml:9: unknown key: repeat\n")
    assert not (project / "data").exists()


def test_mistyped_key_is_one_line_with_file_line_and_nearest_name_and_exit_code_2(project):
    (project / "experiments" / "trial.yaml").write_text("question: what?\nconections: 4\n")
    answer = kvstudy("plan", "experiments/trial.yaml", root=project)
    assert answer.returncode == 2
    assert (
        answer.stderr
        == "kvstudy: experiments/trial.yaml:2: unknown key: conections\n  did you mean connections?\n"
    )
    assert answer.stdout == ""


def test_debug_adds_the_traceback(project):
    (project / "experiments" / "trial.yaml").write_text("conections: 4\n")
    assert "Traceback" in kvstudy("--debug", "plan", "experiments/trial.yaml", root=project).stderr


def test_ctrl_c_before_all_is_imported_is_one_line():
    code = """
import os, runpy, signal, sys
from importlib.abc import MetaPathFinder

class Interrupted(MetaPathFinder):
    def find_spec(self, name, *_):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupted())
runpy.run_module("kvstudy", run_name="__main__")
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, text=True, capture_output=True, timeout=60
    )
    assert (answer.returncode, answer.stderr) == (130, "kvstudy: interrupted\n")


@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP"])
def test_kill_and_a_closed_terminal_are_ctrl_c_to_commands_that_measure_nothing(number):
    """As to `report`, which would leave half-written pages."""
    code = f"""
import os, signal
from kvstudy import cli

signal.signal(signal.{number}, signal.SIG_DFL)  # under nohup it would be left ignored
cli.project_root = lambda: os.kill(os.getpid(), signal.{number})
cli.main(["verify"])
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, text=True, capture_output=True, timeout=60
    )
    assert (answer.returncode, answer.stderr.strip()) == (130, "kvstudy: interrupted")


def test_error_of_kvstudy_itself_is_one_line_and_its_traceback_is_asked_for(project):
    code = "import kvstudy.plan.show as show; del show.plan_lines; from kvstudy.cli import main; main()"
    answers = [
        subprocess.run(
            [sys.executable, "-c", code, *debug, "plan", PROJECT / "experiments" / "reproduce.yaml"],
            cwd=project,
            text=True,
            capture_output=True,
            timeout=60,
            env=os.environ | {"PYTHONPATH": str(PROJECT)},
        )
        for debug in ([], ["--debug"])
    ]
    assert [answer.returncode for answer in answers] == [1, 1]
    assert (
        answers[0].stderr.startswith("kvstudy: error of kvstudy itself: ImportError: ")
        and "Traceback" not in answers[0].stderr
    )
    assert "Traceback" in answers[1].stderr


@pytest.mark.parametrize("typed", [("plan", "experiments/reproduce.yaml"), ("publish", "reproduce")])
def test_an_option_by_its_older_name_is_told_the_newer_one(typed):
    answer = kvstudy(*typed, "--profile", "smoke")
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[-1] == "Error: --profile is called --preset: --preset smoke"


@pytest.mark.parametrize("typed", [["run"], ["plan"], ["compare"], ["verify"], ["report", "--out"]])
def test_an_empty_name_of_a_file_is_not_taken_for_the_folder_one_is_in(typed):
    answer = kvstudy(*typed, "")
    assert answer.returncode == 2
    assert "an empty name; write a path" in answer.stderr


def test_mistyped_option_is_answered_with_the_usage():
    answer = kvstudy("plan", "experiments/reproduce.yaml", "--prese", "smoke")
    assert answer.returncode == 2
    assert "--preset" in answer.stderr and "Traceback" not in answer.stderr


def test_a_full_disk_is_told_with_its_place_where_the_system_names_no_file(project, monkeypatch, capsys):
    def write_tables(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("KVSTUDY_ROOT", str(project))
    monkeypatch.setattr(cli.commands, "main", lambda **_: write_tables())
    used = shutil.disk_usage(project)
    monkeypatch.setattr(shutil, "disk_usage", lambda at: used._replace(free=0) if at == project else used)
    assert cli.exit_code_of(["findings"]) == 1
    assert capsys.readouterr().err == f"kvstudy: {project}: no space left on device\n  free some space\n"


def test_outside_a_project_the_error_says_what_a_project_is(tmp_path):
    answer = kvstudy("verify", root=tmp_path)
    assert answer.returncode == 2
    assert "not inside a kvstudy project" in answer.stderr and "KVSTUDY_ROOT" in answer.stderr


@pytest.mark.parametrize("command", ["run", "compare"])
def test_outside_a_project_who_is_to_measure_says_so_before_anything_else(tmp_path, command):
    file = Path(__file__).parents[2] / "experiments" / "wal.yaml"
    answer = kvstudy(command, str(file), root=tmp_path)
    assert answer.returncode == 2
    assert answer.stderr.startswith("kvstudy: not inside a kvstudy project: ") and answer.stdout == ""


def test_verify_accepts_what_is_as_it_was_sealed(project):
    sealed_run(project)
    answer = kvstudy("verify", root=project)
    assert (answer.returncode, answer.stdout) == (0, "1 sealed run is as it was sealed\n")


def test_verify_names_the_file_whose_checksum_does_not_match(project):
    run = sealed_run(project)
    (run / "service.log").chmod(0o644)
    (run / "service.log").write_text("Requests/sec: 9000.00\n")
    answer = kvstudy("verify", "data/raw", root=project)
    assert answer.returncode == 1
    assert "data/raw/trial/run-1/service.log: changed after sealing: sha256=" in answer.stderr
    assert "kvstudy: 1 of 1 sealed runs are not as they were sealed" in answer.stderr


def test_verify_names_a_run_whose_seal_is_gone(project):
    run = sealed_run(project)
    (run / "SHA256SUMS").unlink()
    for given in ((), ("data",), ("data/raw/trial/run-1",)):
        answer = kvstudy("verify", *given, root=project)
        assert answer.returncode == 1
        assert "data/raw/trial/run-1/SHA256SUMS: seal missing" in answer.stderr
        assert "kvstudy: 1 of 1 sealed runs are not as they were sealed" in answer.stderr


def test_hints_name_the_program_as_it_was_called_where_it_is_not_on_path(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", [".venv/bin/kvstudy"])
    assert (
        cli._as_called("kvstudy: no run\n  kvstudy run x.yaml, or kvstudy build")
        == "kvstudy: no run\n  .venv/bin/kvstudy run x.yaml, or .venv/bin/kvstudy build"
    )
    assert (
        cli._as_called("/tmp/kvstudy run: a folder; kvstudy runs")
        == "/tmp/kvstudy run: a folder; kvstudy runs"
    )
    monkeypatch.setattr(sys, "argv", ["/src/kvstudy/__main__.py"])
    assert cli._as_called("kvstudy build") == "kvstudy build"


def test_verify_of_a_folder_without_sealed_runs_does_not_pass(project):
    folder = RunWriter.create(project / "data" / "raw", "trial", "run-1")
    folder.write_text("service.log", "")
    answer = kvstudy("verify", "data/raw", root=project)
    assert answer.returncode == 1 and "no sealed run here: data/raw" in answer.stderr
    answer = kvstudy("verify", root=project)
    assert answer.returncode == 1
    assert f"no sealed run here: {project}/data/raw {project}/data/reference\n" in answer.stderr
    assert kvstudy("verify", "data/rew", root=project).stderr == (
        "kvstudy: no such folder: data/rew\n"
        "  a run, an experiment or a folder of them: data/raw, data/reference/wal, …\n"
    )


def test_a_place_that_cannot_be_written_is_one_line_with_the_place(project):
    sealed_run(project)
    (project / "data" / "tidy").write_text("in the way")
    answer = kvstudy("tables", root=project)
    assert answer.returncode == 1
    assert (
        answer.stderr == f"kvstudy: {project / 'data' / 'tidy'}: file exists\n"
        "  a file stands where a folder is needed: move it away, or name another place\n"
    )


def test_run_without_what_it_needs_says_what_to_build_before_anything_starts(project):
    (project / "experiments" / "trial.yaml").write_text(
        "question: what?\nexpectation: 1 ms\nworkload: put\nconnections: 1\nthreads: 1\nrate: 10\n"
        "duration: 2s\nwarm_up: 1s\nrepeats: 1\n"
    )
    (project / "experiments" / "workloads").mkdir()
    (project / "experiments" / "workloads" / "put.lua").touch()
    answer = kvstudy("run", "experiments/trial.yaml", root=project)
    assert answer.returncode == 1
    assert "kvstudy build" in answer.stderr and "Traceback" not in answer.stderr
    assert not (project / "data" / "raw").exists()


def test_doctor_names_what_is_missing_and_the_command_that_mends_it(project):
    answer = kvstudy("doctor", root=project, PATH="/nowhere", HOME="/nowhere")
    assert answer.returncode == 1
    for line in (
        "missing maven",
        "apt-get install maven",
        "missing cargo",
        "missing service",
        "→ kvstudy build",
    ):
        assert line in answer.stdout
    assert answer.stderr.startswith("kvstudy: missing on this machine: ")


@pytest.mark.parametrize(
    "given, told",
    [
        (("shop", "--command", "java '-jar {port}"), "--command cannot be split into words: no closing quot"),
        (("shop", "--command", ""), "--command is empty\n"),
        (("shop", "--url", ""), "no experiment was written: subject.url: not an address of HTTP: ''\n"),
        (
            ("shop", "--command", "x {port}", "--path", "a"),
            "no experiment was written: subject.paths: a path",
        ),
        (("Shop", "--command", "x {port}"), "not a name of an experiment: 'Shop'\n"),
        (("../shop", "--command", "x {port}"), "not a name of an experiment: '../shop'\n"),
        (("my shop", "--command", "x {port}"), "not a name of an experiment: 'my shop'\n"),
        (("shop",), "give either --command or --url\n"),
        (("shop", "--command", "x {port}", "--url", "http://127.0.0.1:1"), "give either --command or --url"),
        (("shop", "--command", "x", "--file", "a"), "--file takes NAME=PATH: 'a'\n"),
        (("shop", "--get", "health", "--command", "x {port}"), "not a path: 'health'\n"),
    ],
)
def test_what_is_no_service_is_told_in_a_line_and_no_experiment_is_left(project, given, told):
    answer = kvstudy("new", *given, root=project)
    assert answer.returncode == 2 and answer.stderr.startswith(f"kvstudy: {told}"), answer.stderr
    assert len(answer.stderr.splitlines()) <= 2 and not list(project.rglob("*.yaml"))


def test_who_interrupts_the_trial_of_a_new_service_is_told_that_its_file_stays(project, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setenv("KVSTUDY_ROOT", str(project))
    monkeypatch.setattr("kvstudy.measure.new.try_service", interrupted)
    typed = ["new", "shop", "--command", "shop {port}", "--get", "/health"]
    assert cli.exit_code_of(typed) == 130
    told = capsys.readouterr().err
    assert told.startswith("the file stays: mend it there, or the same command with --replace\n")
    assert (project / "experiments" / "shop.yaml").is_file()


def test_who_tries_a_new_service_while_something_is_built_is_told_no_fault_of_its_file(project):
    with Session(work_root(project)):
        answer = kvstudy("new", "shop", "--command", "sleep {port}", root=project)
    assert answer.returncode == 1 and (project / "experiments" / "shop.yaml").is_file()
    assert answer.stderr == (
        f"kvstudy: another kvstudy measures or builds in this folder: pid={os.getpid()}: in the trial of "
        "shop.yaml\n  wait for it, or stop it (Ctrl-C; Stop in 02-sweep): two at a time would measure each "
        "other; then the same command with --replace\n"
    )


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("plan", "trial.yaml", "--commands", "--total"), "--commands excludes --total"),
        (("plan", "trial.yaml", "--commands", "--duets", "trial.yaml"), "--commands excludes --duets"),
        (
            ("compare", "trial.yaml", "--builds", "main", ".", "--baseline", "wal=os"),
            "--builds excludes --baseline",
        ),
        (("new", "shop", "--url", "http://127.0.0.1:1", "--ready", "tcp"), "--url excludes --ready"),
        (
            ("new", "shop", "--command", "x {port}", "--get", "/", "--path", "/{key}"),
            "--get excludes --path",
        ),
    ],
)
def test_options_that_exclude_each_other_are_refused_together(project, typed, told):
    answer = kvstudy(*typed, root=project)
    assert (answer.returncode, answer.stderr.splitlines()[-1]) == (2, f"Error: {told}")
    assert not list(project.rglob("*.yaml"))


def test_pages_of_one_experiment_do_not_replace_the_whole_study(project):
    for typed in (("study",), ("shop", "--out", "figures/study")):
        answer = kvstudy("report", "--experiment", *typed, root=project)
        told = "kvstudy: pages of one experiment would replace the whole study: "
        assert answer.returncode == 2 and answer.stderr.startswith(told), answer.stderr


def test_a_report_of_nothing_that_is_there_is_wrong_input(project):
    (project / "README.md").write_text("mine")
    for typed, told in (
        (("--experiment", "shp"), "no sealed run of shp under "),
        (("--out", "README.md"), "not a study, will not be replaced: "),
    ):
        (project / "notebooks" / "00-study.ipynb").touch()
        answer = kvstudy("report", *typed, root=project)
        assert answer.returncode == 2 and answer.stderr.startswith(f"kvstudy: {told}"), answer.stderr
    assert (project / "README.md").read_text() == "mine"


def test_a_file_that_is_not_there_is_told_with_where_to_look(project, tmp_path_factory):
    for typed, root, told in (
        (("plan", "experiments"), project, "is a directory\n  name its files: experiments/*.yaml\n"),
        (("run", "x.yaml", "--hosts", "nope.yaml"), project, "nope.yaml\n  what one says: docs/hosts.md\n"),
        (("plan", "x.yaml"), tmp_path_factory.mktemp("out"), "x.yaml\n  not inside a kvstudy project: "),
    ):
        answer = kvstudy(*typed, root=root)
        assert answer.returncode == 2 and told in answer.stderr, answer.stderr


def test_a_plan_says_that_its_file_has_a_duet_unless_that_is_planned_too():
    told = "as a duet: kvstudy compare experiments/wal.yaml --preset smoke (about 8s)"
    answer = kvstudy("plan", "experiments/wal.yaml", "--preset", "smoke")
    assert answer.stdout.splitlines()[-1] == told
    for typed in (("experiments/wal.yaml",), ()):
        answer = kvstudy("plan", *typed, "--duets", "experiments/wal.yaml", "--preset", "smoke")
        assert answer.returncode == 0 and "as a duet" not in answer.stdout
        assert answer.stdout.splitlines()[-1].startswith("wal: wal=always beside wal=interval: ")
    assert kvstudy("plan").returncode == 2


def test_a_plan_of_runs_is_shown_though_its_file_cannot_be_measured_as_a_duet(tmp_path):
    file = tmp_path / "three.yaml"
    file.write_text(
        "question: what?\nexpectation: 1 ms\nworkload: put\nconnections: 1\nthreads: 1\nrate: 10\n"
        "duration: 2s\nwarm_up: 1s\nrepeats: 1\nservice: {handler: [selector, workers, virtual]}\n"
        "compare: {rate: 20}\n"
    )
    answer = kvstudy("plan", file)
    told = "as a duet: not possible: two sides are compared, and the file has 3: "
    assert answer.returncode == 0 and answer.stdout.splitlines()[-1].startswith(told), answer.stderr


def test_commands_name_the_files_that_have_no_such_preset(tmp_path):
    plain = tmp_path / "plain.yaml"
    plain.write_text(
        "question: what?\nexpectation: 1 ms\nworkload: put\nconnections: 1\nthreads: 1\nrate: 10\n"
        "duration: 2s\nwarm_up: 1s\nrepeats: 1\n"
    )
    answer = kvstudy("plan", "experiments/wal.yaml", plain, "--preset", "smoke", "--commands")
    assert answer.returncode == 0 and len(answer.stdout.splitlines()) == 2
    assert answer.stderr == f"left out: {plain}: it has no preset smoke\n"


def test_commands_of_a_preset_that_no_file_has_are_refused():
    answer = kvstudy("plan", "experiments/wal.yaml", "--commands", "--preset", "nope")
    assert answer.returncode == 2 and "wal.yaml: no such preset: nope\n" in answer.stderr


@pytest.mark.parametrize("command", ["run", "compare"])
@pytest.mark.parametrize("label", ["queue<int>", "two\nlines"])
def test_a_label_that_no_chart_shows_is_refused_before_anything_is_measured(project, command, label):
    refused = kvstudy(command, "experiments/trial.yaml", "--label", label, root=project)
    assert refused.returncode == 2 and refused.stderr.startswith(f"kvstudy: not a label: {label!r}\n  ")


@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_label_that_no_file_can_hold_is_refused_before_anything_is_measured(project, command):
    refused = kvstudy(command, "experiments/trial.yaml", "--label", "\udcfcber", root=project)
    assert refused.returncode == 2 and "'--label': not text in UTF-8: " in refused.stderr


SSH_HOSTS = """
ssh: {}
hosts: {a: {address: 192.0.2.1, roles: [service, generator]}}
"""


def test_a_cluster_of_somebody_elses_is_not_said_to_be_down(project):
    file = project / "hosts.yaml"
    file.write_text(SSH_HOSTS.replace("ssh: {}", "scheduler: tcp://192.0.2.1:8786"))
    answer = kvstudy("hosts", "down", file, root=project)
    assert (answer.returncode, answer.stdout) == (1, "")
    told = "its cluster is not kvstudy's: tcp://192.0.2.1:8786\n  who put it up takes it down\n"
    assert answer.stderr == f"kvstudy: {told}"


@pytest.mark.parametrize("command", ["up", "down"])
def test_a_cluster_is_neither_put_up_nor_taken_down_while_something_is_measured(project, command):
    """It may be the one that the measurement has put up for itself."""
    (project / "hosts.yaml").write_text(SSH_HOSTS)
    noted = work_root(project) / "cluster" / "cluster.json"
    with Session(work_root(project)):
        noted.parent.mkdir()
        noted.write_text("{}")
        answer = kvstudy("hosts", command, "hosts.yaml", root=project)
    assert answer.returncode == 1 and noted.exists()
    assert answer.stderr.startswith(
        f"kvstudy: another kvstudy measures or builds in this folder: pid={os.getpid()}\n"
    )
