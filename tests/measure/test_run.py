"""Whole runs with the real service and the real generator: what is sealed, and what is left when something
goes wrong."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import psutil
import pytest
from project import Project

from kvstudy.analyse import tables
from kvstudy.analyse.rates import runs_with_rate_outcome
from kvstudy.analyse.validity import OUTSIDE
from kvstudy.hosts.process import wait_until
from kvstudy.measure.pinning import pinning
from kvstudy.measure.verdict_line import failed_checks
from kvstudy.project import loadgen_binary
from kvstudy.record.run_folder import sealed_runs
from kvstudy.record.verification import verify

ATTEMPTS = 5  # where other tests take the CPU that a run needs

pytestmark = pytest.mark.machine


def test_run_is_sealed_with_every_file_and_leaves_no_process(project):
    code, out, err = project.finished(
        project.kvstudy("run", project.experiment(duration="1500ms", warm_up="500ms"), "--label", "before")
    )
    assert code == 0 and out.startswith("trial: 1 run: 1 sealed"), err
    (run,) = sealed_runs(project.raw)
    assert verify(run.path) == []
    assert {path.name for path in run.path.iterdir()} >= {
        "run.json",
        "machine.json",
        "service.cmd",
        "service.log",
        "gc.log.gz",
        "generator.cmd",
        "generator.txt.gz",
        "generator.json.gz",
        "latency.hlog.gz",
        "slowest.csv.gz",
        "process.csv.gz",
        "events.json.gz",
        "SHA256SUMS",
    }
    facts = run.facts
    assert (facts["outcome"], facts["label"], facts["connections"], facts["offered_rate_rps"]) == (
        "completed",
        "before",
        2,
        500,
    )
    moments = [
        facts["phases"][phase][end]
        for phase in ("launch", "warm_up", "measure", "stop")
        for end in ("start_utc", "stop_utc")
    ]
    assert moments == sorted(moments) and all(moment.endswith("Z") for moment in moments)
    assert run.text("service.cmd").splitlines()[0].endswith("/bin/java")
    assert "Requests/sec:" in run.text("generator.txt")
    assert len(run.text("process.csv").splitlines()) >= 2
    assert run.machine["cores"] >= 1 and "steal_share" in run.machine["load_before"]
    assert project.processes() == []
    assert not (project.root / "data" / "work" / "session.json").exists()
    assert list((project.root / "data" / "work" / "stores").iterdir()) == []


def test_a_rate_so_high_that_the_warm_up_lasts_to_the_end_is_measured_and_not_held(project):
    """The rate that was achieved is known, and the latency of nothing. Five such runs would say that the rate
    is too high; failed ones say nothing, and the third in a row ends the experiment."""
    path = project.experiment(duration="2s", warm_up="1500ms", connections=1, rate=400_000)
    for attempt in range(ATTEMPTS):
        code, _, err = project.finished(project.kvstudy("run", path, "--label", f"attempt-{attempt}"))
        assert code == 0 and ": completed, but invalid: " in err, err
        assert failed_checks(sealed_runs(project.raw)[-1])["rate_held"].startswith("rate not held: "), err
        tables.rebuild([project.raw], project.root / "data" / "tidy", progress=False)
        found = tables.load(project.root / "data" / "tidy")
        run = found.runs.iloc[-1]
        assert (run["outcome"], run["requests_measured"]) == ("completed", 0)
        assert 0 < run["achieved_rate_rps"] < 200_000
        assert found.percentiles["latency_us"].isna().all()
        if run["excluded"] != OUTSIDE:  # other tests took the CPU
            break
    assert runs_with_rate_outcome(found)["run_id"].tolist() == [run["run_id"]], run


def test_a_run_without_a_warm_up_is_measured_from_its_start(project):
    code, _, err = project.finished(project.kvstudy("run", project.experiment(warm_up="0s")))
    assert code == 0, err
    (run,) = sealed_runs(project.raw)
    warm_up, measured = (run.facts["phases"][name] for name in ("warm_up", "measure"))
    assert warm_up["start_utc"] <= warm_up["stop_utc"] == measured["start_utc"] < measured["stop_utc"]


@pytest.mark.parametrize(
    ("phase", "number"),
    [(phase, "SIGINT") for phase in ("launch", "warm_up", "measure", "check", "stop", "seal")]
    + [("measure", "SIGTERM")],
)
def test_interrupt_in_any_phase_seals_the_run_as_failed_and_leaves_no_process(project, phase, number):
    process = project.kvstudy(
        "run", project.experiment(repeats=2), code=project.signal_in_phase(phase=phase, signal=number)
    )
    code, _, err = project.finished(process)
    assert code == 130
    assert err.splitlines()[-1] == "kvstudy: interrupted" and "Traceback" not in err
    assert project.processes() == []
    (run,) = sealed_runs(project.raw)
    assert verify(run.path) == []
    if phase == "seal":
        assert run.facts["outcome"] == "completed"
        told = ": 1 run: 1 sealed"
    else:
        assert run.facts["outcome"].startswith("failed: interrupted during ")
        told = ": 1 run: 0 sealed, 1 interrupted, kept as failed; the same command with --resume goes on "
    assert told in err
    assert not list(project.raw.rglob("*.partial"))


def test_a_mistake_in_a_script_ends_the_measurement_at_its_first_run(project):
    (project.root / "experiments" / "mine.lua").write_text("function request() return wrk.fromat() end\n")
    asked = project.experiment(repeats=3, workload="experiments/mine.lua", method="GET", fill=None)
    code, _, err = project.finished(project.kvstudy("run", asked))
    assert code == 1 and len(sealed_runs(project.raw)) == 1, err
    assert "a script failed: generator failed: exit 1: " in err and "mine.lua:1: attempt to call" in err


def test_service_that_dies_while_measured_is_a_failed_run_with_its_signal(project):
    process = project.kvstudy("run", project.experiment(duration="40s", warm_up="20s", rate=200))
    kill_service(project)
    code, _, err = project.finished(process)
    assert code == 1
    (run,) = sealed_runs(project.raw)
    assert run.facts["outcome"].startswith("failed: service died during warm_up: signal 9")
    assert "service died" in err and "Traceback" not in err
    assert project.processes() == []


def kill_service(project) -> None:
    """SIGKILL, once the generator runs."""
    session = project.root / "data" / "work" / "session.json"
    assert wait_until(lambda: session.exists() and session.read_text().count('"started"') == 3, 60)
    service = next(
        child
        for child in psutil.process_iter(["cmdline"])
        if any(word.endswith("empty-server.jar") for word in child.info["cmdline"] or [])
        and str(project.root) in " ".join(child.info["cmdline"])
    )
    service.kill()


def test_a_run_disturbed_by_another_program_is_measured_again_and_both_are_kept(project):
    experiment = project.experiment(duration="2500ms")
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as hog:
        try:
            code, out, err = project.finished(project.kvstudy("run", experiment, "--retries", "1"))
        finally:
            hog.kill()
    assert code == 0 and re.fullmatch(
        r"trial: 2 runs: 2 sealed, \d invalid \(.*no_foreign_load \d.*\), 1 of them again\n", out
    ), err
    assert "repeat 1: completed, but invalid: " in err
    assert err.endswith(
        "trial: other programs, or the machine's host, disturbed 1 of 1 run\n"
        "  when it is quiet: the same kvstudy run with --resume --retries 1 --patience 30m\n"
    )
    assert (
        "measured again, since disturbed: 1 of 1 run (time 1 of at most 1); the first: other programs used "
    ) in err
    assert len({run.facts["identity"] for run in sealed_runs(project.raw)}) == 1
    # What disturbed the newest try is asked, so a kept run that was disturbed is measured again too.
    project.finished(project.kvstudy("run", experiment, "--resume", "--retries", "1"))
    assert len(sealed_runs(project.raw)) == 3


@pytest.mark.parametrize("named", ["C", "xx_XX.UTF-8"])
def test_a_folder_with_a_letter_beyond_ascii_is_measured_in_also_where_the_locale_is_c(
    project, monkeypatch, named
):
    """There a JVM opens no file below it. One that is not installed is taken for it."""
    elsewhere = Project(project.root.with_name("größer"))
    monkeypatch.setenv("LC_ALL", named)
    code, out, err = elsewhere.finished(elsewhere.kvstudy("run", elsewhere.experiment()))
    assert code == 0 and out.startswith("trial: 1 run: 1 sealed"), err


def test_port_in_use_is_said_in_one_line(project):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = project.finished(project.kvstudy("run", project.experiment(port=port)))
    assert code == 2
    assert err.splitlines()[-2:] == [
        f"kvstudy: port {port} is in use",
        "  choose another one, or port: 0, which takes a free one",
    ]
    assert sealed_runs(project.raw) == [] and project.processes() == []


def test_killed_kvstudy_leaves_no_process_and_no_data(project):
    process = project.kvstudy("run", project.experiment(duration="60s", rate=200))
    session = project.root / "data" / "work" / "session.json"
    assert wait_until(lambda: session.exists() and session.read_text().count('"started"') == 3, 60)
    process.kill()
    process.wait()
    assert sealed_runs(project.raw) == []
    code, _, err = project.finished(project.kvstudy("run", project.experiment()))
    assert code == 0, err
    assert err.count("never sealed, so not data") == 1
    assert wait_until(lambda: project.processes() == [], 60)
    assert len(sealed_runs(project.raw)) == 1


def test_full_disk_while_sealing_is_one_line_and_no_sealed_run(project):
    if os.geteuid() != 0:
        pytest.skip(
            "mounting a small file system needs root; test_run_folder covers the same path with "
            "injected errors"
        )
    raw = project.raw
    raw.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(raw)], check=True)
    try:
        fill_up = f"""
from kvstudy.measure.progress import Progress
doing = Progress.doing
def filling(self, phase):
    doing(self, phase)
    if phase == "seal":
        with open({str(raw / "ballast")!r}, "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(512))
            except OSError:
                pass
Progress.doing = filling
"""
        code, _, err = project.finished(project.kvstudy("run", project.experiment(), code=fill_up))
        assert code == 1
        assert "disk full: could not" in err and "--resume" in err and "Traceback" not in err
        assert sealed_runs(raw) == [] and project.processes() == []
        assert list((project.root / "data" / "work" / "stores").iterdir()) == [], (
            "a store would take the space that is missing"
        )
        (raw / "ballast").unlink()
        for partial in raw.rglob("*.partial"):
            shutil.rmtree(partial)
        assert project.finished(project.kvstudy("run", project.experiment(), "--resume"))[0] == 0
        assert len(sealed_runs(raw)) == 1
    finally:
        subprocess.run(["umount", str(raw)], check=True)


# What was free before a run may be gone in it.
DISK_IS_NOT_ASKED = """
import kvstudy.measure.execute as execute
execute.check_disk = lambda *_: None
"""


@pytest.mark.parametrize(
    ("memtable", "size"), [("64m", "8m"), ("1m", "12m")], ids=["at-the-start", "while-it-is-measured"]
)
def test_full_disk_under_the_store_is_a_run_that_says_so(project, memtable, size):
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    work = project.root / "data" / "work"
    work.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(work)], check=True)
    try:
        experiment = project.experiment(
            server="kv-service",
            workload={"script": "put", "value_bytes": 4096},
            rate=8000,
            duration="15s",  # the service refuses a write when it has waited for room for ten seconds
            connections=8,
            service={"memtable_bytes": memtable},
        )
        code, _, err = project.finished(project.kvstudy("run", experiment, code=DISK_IS_NOT_ASKED))
        assert "Traceback" not in err and project.processes() == []
        (run,) = sealed_runs(project.raw)
        assert verify(run.path) == []
        if memtable == "64m":
            assert code == 1 and run.facts["outcome"].startswith(
                "failed: service ended before it was ready: exit=1: "
            )
            assert "No space left on device" in err
        else:
            assert "No space left on device" in run.text("service.log")
            assert json.loads(run.text("generator.json"))["counts"]["unexpected"] > 0
            assert run.facts["data_check"]["missing"] == 0, "refused is not lost"
    finally:
        subprocess.run(["umount", str(work)], check=True)


FULL_DISK = """
import shutil
usage = shutil.disk_usage
shutil.disk_usage = lambda folder: usage(folder)._replace(free=0)
"""


def test_resume_needs_no_space_where_all_is_sealed_and_asks_the_disk_where_stores_lie(project):
    experiment = project.experiment(server="kv-service", jvm={"heap": "64m"})
    code, _, err = project.finished(project.kvstudy("run", experiment, code=FULL_DISK))
    assert code == 1 and "kvstudy: not enough disk: needed=" in err
    assert f" free=0 B at {project.root / 'data' / 'work'}\n" in err and not project.raw.exists()
    assert project.finished(project.kvstudy("run", experiment))[0] == 0
    code, out, err = project.finished(project.kvstudy("run", experiment, "--resume", code=FULL_DISK))
    assert code == 0 and out.startswith("trial: 1 run: 0 sealed, 1 kept"), err


def test_resume_keeps_what_is_sealed_and_runs_what_is_missing(project):
    experiment = project.experiment(rate=[200, 400], duration="800ms", warm_up="200ms")
    assert project.finished(project.kvstudy("run", experiment, "--only", "rate=200"))[0] == 0
    (first,) = sealed_runs(project.raw)
    code, out, err = project.finished(project.kvstudy("run", experiment, "--resume"))
    assert code == 0 and out.startswith("trial: 2 runs: 1 sealed, 1 kept"), err
    assert (
        first.run_id in [run.run_id for run in sealed_runs(project.raw)]
        and len(sealed_runs(project.raw)) == 2
    )
    assert project.finished(project.kvstudy("run", experiment, "--resume"))[1].startswith(
        "trial: 2 runs: 0 sealed, 2 kept"
    )
    assert project.finished(
        project.kvstudy("run", experiment, "--resume", "--label", "after", "--only", "rate=200")
    )[1].startswith("trial: 1 run: 1 sealed")


def test_failed_run_is_measured_again_by_resume(project):
    experiment = project.experiment()
    project.finished(
        project.kvstudy("run", experiment, code=project.signal_in_phase(phase="measure", signal="SIGINT"))
    )
    code, out, _ = project.finished(project.kvstudy("run", experiment, "--resume"))
    assert code == 0 and out.startswith("trial: 1 run: 1 sealed")
    assert sorted(run.facts["outcome"].split(":")[0] for run in sealed_runs(project.raw)) == [
        "completed",
        "failed",
    ]


def test_second_measurement_beside_the_first_is_refused(project):
    first = project.kvstudy("run", project.experiment(duration="60s", rate=200))
    session = project.root / "data" / "work" / "session.json"
    assert wait_until(session.exists, 60)
    try:
        code, _, err = project.finished(project.kvstudy("run", project.experiment()))
        assert code == 1 and f"another kvstudy measures or builds in this folder: pid={first.pid}" in err
    finally:
        first.send_signal(signal.SIGINT)
        project.finished(first)


def test_profiled_run_carries_collapsed_stacks_and_flame_graphs(project):
    code, _, err = project.finished(
        project.kvstudy("run", project.experiment(profile=["cpu", "alloc", "lock"], rate=2000, duration="6s"))
    )
    assert code == 0, err
    latency, profiled = sealed_runs(project.raw)
    assert (latency.facts["profile"], profiled.facts["profile"]) == (None, ["cpu", "alloc", "lock"])
    for event in ("cpu", "alloc", "lock"):
        assert (
            profiled.has(f"{event}.collapsed")
            and "<html" in profiled.text(f"{event}.flamegraph.html").lower()
        )
    stacks = profiled.text("cpu.collapsed").splitlines()
    assert stacks and all(line.rsplit(" ", 1)[1].isdigit() for line in stacks)
    assert "one/nio" in profiled.text("cpu.collapsed")
    assert "<html" in profiled.text("cpu.heatmap.html").lower()
    assert (
        set(profiled.text("cpu_slow.collapsed").splitlines())
        and "<html" in profiled.text("cpu_slow.flamegraph.html").lower()
    )
    assert profiled.has("profile.jfr") and profiled.facts["profiler"]["cpu_engine"]
    assert not latency.has("cpu.collapsed")


def test_wrk2_is_driven_by_its_own_command_line_and_read_from_its_text(project, monkeypatch):
    """loadgen takes wrk2's command line and prints its text: it stands for a wrk2 that this machine lacks."""
    monkeypatch.setenv("WRK2", str(loadgen_binary(project.root)))
    experiment = project.experiment(generator="wrk2", duration="3s", warm_up="1s", profile=["cpu"])
    code, _, err = project.finished(project.kvstudy("run", experiment))
    assert code == 0, err
    run, profiled = sealed_runs(project.raw)
    noted, measured = profiled.facts["profiler"], profiled.facts["phases"]["measure"]
    assert noted["start_utc"] <= measured["start_utc"], "it measures from its start, and attaching takes time"
    assert run.facts["generator"] == "wrk2" and not run.has("generator.json")
    assert run.text("generator.cmd").count("-U") == 2
    assert "Uncorrected Latency" in run.text("generator.txt")
    assert run.text("generator.txt").count("Requests/sec:") == 1


def test_pause_of_the_service_is_seen_in_response_time_and_not_in_service_time_alone(project):
    experiment = project.experiment(pause={"at": "300ms", "length": "500ms"}, rate=1000, duration="2s")
    assert project.finished(project.kvstudy("run", experiment))[0] == 0
    result = json.loads(sealed_runs(project.raw)[0].text("generator.json"))
    assert result["response_time"]["max_us"] > 400_000
    delayed = result["response_time"]["percentiles"]
    assert delayed["90"] > 4 * result["service_time"]["percentiles"]["90"]


AFFINITY = """
import os, psutil
from kvstudy.measure.progress import Progress
cores = sorted(os.sched_getaffinity(0))
doing = Progress.doing
def looking(self, phase):
    doing(self, phase)
    if phase == "measure":
        for child in psutil.Process().children():
            for thread in child.threads():
                allowed = sorted(os.sched_getaffinity(thread.id))
                print("affinity", child.name(), ",".join(map(str, allowed)), flush=True)
        print("harness", ",".join(map(str, sorted(os.sched_getaffinity(0)))), flush=True)
Progress.doing = looking
"""


def test_every_thread_of_service_and_generator_runs_on_the_cores_that_it_was_given(project):
    cores = sorted(os.sched_getaffinity(0))
    split = pinning(threads=1, wanted="apart")
    experiment = project.experiment(cores="apart")
    code, out, err = project.finished(project.kvstudy("run", experiment, code=AFFINITY))
    assert code == 0, err
    seen = [line.split() for line in out.splitlines() if line.startswith("affinity")]
    assert {tuple(words[1:]) for words in seen} == {
        ("java", ",".join(map(str, split.service))),
        ("loadgen", ",".join(map(str, split.generator))),
    }
    assert len([words for words in seen if words[1] == "java"]) > 5, "the JVM's threads, not only its first"
    assert f"harness {','.join(map(str, cores))}\n" in out, "kvstudy itself stays where it was"
    (run,) = sealed_runs(project.raw)
    assert run.machine["pinning"] == split.reason and run.facts["cores"] == "apart"
    assert run.text("generator.cmd").splitlines()[
        run.text("generator.cmd").splitlines().index("--pin") + 1
    ] == str(cores[-1])


def test_a_disk_that_is_full_before_the_load_is_the_reason_of_a_failed_run_in_one_line(project):
    full = """
import errno, os
from kvstudy.measure.station import Station
def commands(*_arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "generator.cmd")
Station.commands = commands
"""
    code, _, err = project.finished(project.kvstudy("run", project.experiment(), code=full))
    assert code == 1 and "Traceback" not in err, err
    (run,) = sealed_runs(project.raw)
    assert run.facts["outcome"] == "failed: no space left on device: generator.cmd"
    assert project.processes() == []
