"""Filled stores with the real service: written once, checked, restored for every run, never half."""

import json
import shutil

import pytest

from kvstudy.record import process_series
from kvstudy.record.run_folder import sealed_runs

pytestmark = pytest.mark.machine


def reading(project, **change):
    return project.experiment(**{"server": "kv-service", "workload": "unique_get", "fill": 5000, "jvm": {"heap": "128m"},
                                 "service": {"memtable_bytes": "1m"}} | change)


def fills(project) -> list:
    return sorted((project.root / "data" / "work" / "fills").iterdir())


def test_store_is_filled_once_and_every_run_reads_all_of_it(project):
    code, _, err = project.finished(project.kvstudy("run", reading(project, repeats=2, duration="1s", warm_up="300ms")))
    assert code == 0, err
    assert err.count("fill 5000 records") == 1
    fill, = fills(project)
    assert json.loads((fill / "filled.json").read_text())["found"] == 5000
    runs = sealed_runs(project.raw)
    assert len(runs) == 2
    for run in runs:
        check = run.facts["data_check"]
        assert 150 < check["sampled"] <= 200 and (check["missing"], check["wrong"]) == (0, 0)
        assert run.facts["fill"] == {"records": 5000, "key_bytes": 16, "value_bytes": 100}
        answers = json.loads(run.text("generator.json"))["answers"]
        assert set(answers) == {"200"}
        counted = process_series.read(run.text("store.csv"), "store.csv")
        assert counted["gets"][-1] > 0 and counted["table_bytes"][-1] > 5_000 * 100


def test_interrupted_fill_is_not_restored_and_is_made_again(project):
    interrupted = project.kvstudy("run", reading(project), code=project.signal_in_phase(phase="fill 5000", signal="SIGINT"))
    code, _, err = project.finished(interrupted)
    assert code == 130 and err.splitlines()[-1] == "kvstudy: interrupted"
    assert project.processes() == []
    assert not list((project.root / "data" / "work").rglob("filled.json"))
    run, = sealed_runs(project.raw)
    assert run.facts["outcome"] == "failed: interrupted during fill"
    code, _, err = project.finished(project.kvstudy("run", reading(project), "--resume"))
    assert code == 0 and "fill 5000 records" in err


def test_kept_fill_without_its_marker_is_made_again(project):
    assert project.finished(project.kvstudy("run", reading(project)))[0] == 0
    fill, = fills(project)
    (fill / "filled.json").unlink()
    code, _, err = project.finished(project.kvstudy("run", reading(project)))
    assert code == 0 and "fill 5000 records" in err and fills(project) == [fill]


def test_fill_that_loses_records_is_an_error_that_says_how_many(project):
    """A fill script that stops early: the count of what the store holds is what decides."""
    script = project.root / "experiments" / "workloads" / "fill.lua"
    shutil.copy(script, script.with_name("whole.lua"))
    script.write_text(script.read_text().replace("function request()", "local sent = 0\n  function request()\n    sent = sent + 1\n"
                                                 "    if sent > 100 then wrk.thread:stop() end", 1))
    code, _, err = project.finished(project.kvstudy("run", reading(project)))
    assert code == 1
    assert "fill lost records: filled=5000 found=" in err
    assert project.processes() == []


SABOTAGE = """
import http.client
from kvstudy.subject.launched import Launched
from kvstudy.measure.progress import Progress
from kvstudy.measure.keys import key_of
started, doing = Launched.__init__, Progress.doing
def noted(self, *arguments, **named):
    started(self, *arguments, **named)
    Launched.running = self
def losing(self, phase):
    doing(self, phase)
    if phase == "check":
        connection = http.client.HTTPConnection(Launched.running.url.removeprefix("http://"))
        for number in range(0, 300, 2):
            connection.request("DELETE", "/v0/entity?id=" + key_of(number, 16))
            connection.getresponse().read()
Launched.__init__, Progress.doing = noted, losing
"""


def test_what_every_workload_wrote_and_deleted_is_read_back_from_the_real_store(project):
    """In a closed loop of two threads, where neither knows how far the other is."""
    workload = [{"script": script, "key_count": 5000} for script in ("put", "mixed", "delete")] + ["unique_put"]
    experiment = reading(project, workload=workload, fill={"records": 5000, "methods": ["DELETE"]}, threads=2, rate="closed", duration="600ms",
                         warm_up="100ms")
    code, _, err = project.finished(project.kvstudy("run", experiment))
    assert code == 0, err
    checks = {run.facts["workload"]: run.facts["data_check"] for run in sealed_runs(project.raw)}
    assert {(check["missing"], check["wrong"]) for check in checks.values()} == {(0, 0)}
    # A busy machine answers a few hundred requests in so short a run.
    assert all(20 < checks[name]["sampled"] < 280 for name in ("put", "mixed")), checks
    assert checks["delete"]["sampled"] > 20 and checks["unique_put"]["sampled"] > 20, checks


def test_a_store_that_loses_acknowledged_keys_is_found_out(project):
    experiment = project.experiment(server="kv-service", workload={"script": "put", "key_count": 300}, rate=2000, duration="1s", warm_up="200ms")
    code, _, err = project.finished(project.kvstudy("run", experiment, code=SABOTAGE))
    assert code == 0, err
    run, = sealed_runs(project.raw)
    assert 30 < run.facts["data_check"]["missing"] < 150 and run.facts["data_check"]["wrong"] == 0
