"""Whole runs of a service that is not ours: what is sealed, what is read back, what is said to be not
recorded, and what is said when it fails."""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from project import PROJECT, project

from kvstudy.analyse.observation import observe
from kvstudy.plan.subject import SubjectSpec
from kvstudy.project import service_jar
from kvstudy.record import process_series
from kvstudy.record.run_folder import sealed_runs
from kvstudy.service_failure import is_of_service, is_under_load
from kvstudy.subject.command import Command
from kvstudy.subject.jdk import find_jdk
from kvstudy.subject.protocol import Place

pytestmark = pytest.mark.machine
FOREIGN = Path(__file__).with_name("foreign.py")


def foreign(*faults: str, **change) -> dict:
    return {
        "name": "foreign",
        "command": [sys.executable, str(FOREIGN), "{port}", "{dir}", *faults],
        "paths": {"PUT": "/{key}", "GET": "/{key}", "DELETE": "/{key}"},
    } | change


def experiment(project, **change) -> Path:
    return project.experiment(
        **{"subject": foreign(), "rate": 100, "duration": "1500ms", "warm_up": "500ms"} | change
    )


def test_a_foreign_service_is_filled_loaded_and_read_back_and_what_it_cannot_give_is_not_recorded(project):
    asked = experiment(project, workload=[{"script": "put", "key_count": 100}, "get"], fill=200)
    code, _, err = project.finished(project.kvstudy("run", asked))
    assert code == 0, err
    runs = {run.facts["workload"]: run for run in sealed_runs(project.raw)}
    put, get = runs["put"], runs["get"]
    assert (put.facts["server"], put.facts["fill"], get.facts["fill"]["records"]) == ("foreign", None, 200)
    assert put.facts["data_check"]["sampled"] > 20 and get.facts["data_check"]["sampled"] > 100
    assert {
        (run.facts["data_check"]["missing"], run.facts["data_check"]["wrong"]) for run in runs.values()
    } == {(0, 0)}
    assert set(json.loads(get.text("generator.json"))["answers"]) == {"200"}
    for run in runs.values():
        assert not run.has("events.json") and not run.has("store.csv") and not run.has("gc.log")
        rows = observe(run)
        verdicts = {check["check"]: check["verdict"] for check in rows["validity"]}
        assert verdicts["readable"] == verdicts["answers_expected"] == verdicts["completed"] == "PASS"
        assert rows["runs"][0]["server"] == "foreign" and rows["runs"][0]["service_cpu_us_per_answer"] != 0
    assert project.processes() == []


def test_counters_that_a_foreign_service_tells_are_recorded_by_the_second(project):
    asked = experiment(
        project,
        subject=foreign(metrics="/metrics"),
        workload={"script": "put", "key_count": 100},
        duration="3s",
    )
    code, _, err = project.finished(project.kvstudy("run", asked))
    assert code == 0, err
    (run,) = sealed_runs(project.raw)
    counters = process_series.read(run.text("store.csv"), "store.csv")
    puts = counters["requests_total{method=PUT;note=a_ _b_}"]
    assert list(counters)[:2] == ["second", "at_s"] and len(puts) >= 1 and (puts[1:] > puts[:-1]).all()
    assert not any("bucket" in name for name in counters) and "unknown" not in counters
    assert counters["latency_count"].tolist() == [3] * len(puts)


def test_a_foreign_service_that_forgets_is_found_out(project):
    code, _, err = project.finished(
        project.kvstudy(
            "run",
            experiment(project, subject=foreign("forgets"), workload={"script": "put", "key_count": 100}),
        )
    )
    assert code == 0, err
    (run,) = sealed_runs(project.raw)
    assert run.facts["data_check"]["missing"] > 20 and run.facts["data_check"]["wrong"] == 0


def test_a_foreign_service_that_answers_500_is_told_as_invalid_and_its_fill_is_refused_in_one_line(project):
    code, _, err = project.finished(
        project.kvstudy("run", experiment(project, subject=foreign("answers-500")))
    )
    assert code == 0 and "completed, but invalid: answers_expected: " in err, err
    code, _, err = project.finished(
        project.kvstudy("run", experiment(project, subject=foreign("answers-500"), workload="get", fill=200))
    )
    assert code == 1 and "failed: fill was not acknowledged: PUT answered 500" in err, err
    (_, filled) = sorted(sealed_runs(project.raw), key=lambda run: run.facts["fill"] is not None)
    assert is_of_service(filled.facts["outcome"]) and not is_under_load(filled.facts["outcome"])
    assert project.processes() == []


def test_a_fill_that_is_not_over_in_its_time_fails_and_blames_no_key_that_was_not_written(project):
    asked = experiment(project, workload="get", fill=100_000)
    in_a_second = "from kvstudy.measure import fill; fill.LEAST_S, fill.RECORDS_PER_S_MIN = 1, 10**9"
    code, _, err = project.finished(project.kvstudy("run", asked, code=in_a_second))
    assert code == 1 and "failed: fill was not over in time: writes=100000 time=1s" in err, err
    (run,) = sealed_runs(project.raw)
    assert run.facts["data_check"] is None and is_of_service(run.facts["outcome"])
    assert not is_under_load(run.facts["outcome"]) and project.processes() == []


def test_two_subjects_and_the_empty_server_are_variants_of_one_experiment(project):
    asked = experiment(
        project,
        subject=["empty", foreign(), foreign(name="other")],
        service={"handler": ["selector", "workers"]},
        duration="800ms",
        warm_up="200ms",
    )
    code, _, err = project.finished(project.kvstudy("run", asked))
    assert code == 0, err
    assert sorted(run.facts["variant"]["subject"] for run in sealed_runs(project.raw)) == [
        "empty",
        "foreign",
        "other",
    ]


def test_an_address_is_measured_with_the_cpu_of_the_process_behind_it_and_keeps_running(project, tmp_path):
    (tmp_path / "store").mkdir()
    live = Command(SubjectSpec.model_validate(foreign()), tmp_path, None).launch(
        Place(tmp_path / "store", tmp_path)
    )
    try:
        asked = experiment(
            project, subject={"url": live.url, "name": "there", "paths": {"PUT": "/{key}", "GET": "/{key}"}}
        )
        code, _, err = project.finished(project.kvstudy("run", asked))
        assert code == 0, err
        live.check_alive("after the run")
        with_jvm = experiment(project, subject={"url": live.url, "name": "there", "jvm": True})
        code, _, err = project.finished(project.kvstudy("run", with_jvm))
        assert code == 1 and err.splitlines()[-2:] == [
            f"kvstudy: subject says jvm: true, but what answers at {live.url} is no JVM: pid={live.pids[0]}",
            "  leave jvm out",
        ]
    finally:
        assert live.stop() is None
    (run,) = sealed_runs(project.raw)
    assert (
        run.facts["data_check"]["missing"] == 0 and "service_cpu_s" in run.text("process.csv").splitlines()[0]
    )
    code, _, err = project.finished(project.kvstudy("run", asked))
    assert code == 1 and err.splitlines()[-2:] == [
        f"kvstudy: nothing answers at {live.url}: connection refused",
        "  start it first, or let kvstudy start it: subject: {command: […]}",
    ]


def test_a_port_that_is_taken_is_said_once_before_the_first_run(project):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = project.finished(project.kvstudy("run", experiment(project, port=port)))
    assert code == 2 and f"port {port} is in use" in err and sealed_runs(project.raw) == []


@pytest.mark.parametrize(("name", "programs"), [("nginx", ["nginx"]), ("webdis", ["webdis", "redis-server"])])
def test_a_peer_that_no_one_here_wrote_is_filled_loaded_and_read_back(project, name, programs):
    if missing := [program for program in programs if shutil.which(program) is None]:
        pytest.skip(f"not here: {', '.join(missing)}; kvstudy doctor says what to install")
    for path in (PROJECT / "experiments" / "peers").parent.rglob("peers*"):
        target = project.root / path.relative_to(PROJECT)
        shutil.copytree(path, target) if path.is_dir() else shutil.copy(path, target)
    peers = project.root / "experiments" / "peers.yaml"
    code, _, err = project.finished(
        project.kvstudy("run", peers, "--preset", "smoke", "--only", f"subject={name}")
    )
    assert code == 0, err
    runs = {run.facts["method"]: run for run in sealed_runs(project.raw)}
    assert set(runs) == {"PUT", "GET"}
    for run in runs.values():
        assert run.facts["server"] == name and run.facts["data_check"]["sampled"] > 100
        assert (run.facts["data_check"]["missing"], run.facts["data_check"]["wrong"]) == (0, 0)
        verdicts = {check["check"]: check["verdict"] for check in observe(run)["validity"]}
        assert verdicts["answers_expected"] == verdicts["no_errors"] == verdicts["service_healthy"] == "PASS"
    assert project.processes() == []


def test_a_script_of_ones_own_has_its_own_path_and_statuses(project):
    script = project.root / "mine" / "Health-Check.lua"
    script.parent.mkdir()
    script.write_text("function request() return wrk.format('GET', '/nothing-here') end\n")
    asked = experiment(project, workload={"script": "mine/Health-Check.lua", "statuses": 404}, method="GET")
    code, _, err = project.finished(project.kvstudy("run", asked))
    assert code == 0, err
    (run,) = sealed_runs(project.raw)
    assert run.facts["workload"] == "health_check" and set(
        json.loads(run.text("generator.json"))["answers"]
    ) == {"404"}
    assert {check["check"]: check["verdict"] for check in observe(run)["validity"]}[
        "answers_expected"
    ] == "PASS"


def test_our_service_as_a_command_with_a_jvm_gives_recording_and_profile_as_the_built_in_one_does(project):
    java, jar = find_jdk().tool("java"), str(service_jar(PROJECT))
    subject = {
        "name": "by-command",
        "command": [java, "-Xmx128m", "-jar", jar, "--port", "{port}", "--dir", "{dir}"],
        "jvm": True,
        "ready": {"line": "ready: http"},
        "fill": "directory",
    }
    asked = experiment(
        project,
        subject=subject,
        workload="get",
        fill=2000,
        profile=["cpu"],
        duration="3s",
        warm_up="1s",
        repeats=2,
    )
    code, _, err = project.finished(project.kvstudy("run", asked))
    assert code == 0, err
    assert err.count("fill 2000 records") == 1, "filled once, then restored"
    runs = sealed_runs(project.raw)
    assert len(runs) == 3 and not any(run.has("service.jfr") for run in runs)
    for run in runs:
        assert run.facts["data_check"] == {
            "sampled": run.facts["data_check"]["sampled"],
            "missing": 0,
            "wrong": 0,
            "written": 0,
        }
        assert {"gc", "safepoints"} <= set(json.loads(run.text("events.json")))
    (profiled,) = [run for run in runs if run.facts["profile"]]
    assert "one/nio" in profiled.text("cpu.collapsed")


def test_a_jvm_at_an_address_is_recorded_and_profiled_and_no_recording_stays_in_it(project, tmp_path):
    (tmp_path / "store").mkdir()
    java, jar = find_jdk().tool("java"), str(service_jar(PROJECT))
    ours = {
        "command": [java, "-Xmx128m", "-jar", jar, "--port", "{port}", "--dir", "{dir}"],
        "ready": {"line": "ready: http"},
    }
    place = Place(tmp_path / "store", tmp_path)
    live = Command(SubjectSpec.model_validate(ours), tmp_path, None).launch(place)

    def jcmd(*words: str) -> str:
        return subprocess.run(
            [find_jdk().tool("jcmd"), str(live.pids[0]), *words], capture_output=True, text=True, check=True
        ).stdout

    try:
        jcmd("JFR.start", "name=kvstudy")  # as a run leaves it that was killed
        asked = experiment(
            project,
            subject={"url": live.url, "name": "there", "jvm": True},
            profile=["cpu"],
            duration="3s",
            warm_up="1s",
        )
        code, _, err = project.finished(project.kvstudy("run", asked))
        assert code == 0, err
        assert "No available recordings" in jcmd("JFR.check")
    finally:
        assert live.stop() is None
    runs = sealed_runs(project.raw)
    assert len(runs) == 2
    for run in runs:
        assert {"gc", "safepoints"} <= set(json.loads(run.text("events.json")))
        verdicts = {check["check"]: check["verdict"] for check in observe(run)["validity"]}
        assert verdicts["events_recorded"] == "PASS" and not run.has("service.jfr")
    (profiled,) = [run for run in runs if run.facts["profile"]]
    assert "one/nio" in profiled.text("cpu.collapsed")


def test_a_subject_that_says_it_is_a_jvm_and_is_none_is_one_line(project):
    code, _, err = project.finished(project.kvstudy("run", experiment(project, subject=foreign(jvm=True))))
    assert (
        code == 1
        and "subject says jvm: true, but none of its processes is a JVM: foreign" in err
        and "Traceback" not in err
    )
    assert project.processes() == []
