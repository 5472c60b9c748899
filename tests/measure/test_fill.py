"""Filled stores with the real service: written once, checked, restored for every run, never half."""

import errno
import json
import os
import shutil

import pytest

from kvstudy.analyse.conditions import conditions_of_run
from kvstudy.errors import RunFailed
from kvstudy.measure.fill import _note, _noted
from kvstudy.record import process_series
from kvstudy.record.run_folder import sealed_runs

pytestmark = pytest.mark.machine


def reading(project, **change):
    return project.experiment(
        **{
            "server": "kv-service",
            "workload": "unique_get",
            "fill": 5000,
            "jvm": {"heap": "128m"},
            "service": {"memtable_bytes": "1m"},
        }
        | change
    )


def fills(project) -> list:
    return sorted((project.root / "data" / "work" / "fills").iterdir())


def test_store_is_filled_once_and_every_run_reads_all_of_it(project):
    code, _, err = project.finished(
        project.kvstudy("run", reading(project, repeats=2, duration="3s", warm_up="300ms"))
    )
    assert code == 0, err
    assert err.count("fill 5000 records") == 1
    (fill,) = fills(project)
    assert json.loads((fill / "filled.json").read_text())["found"] == 5000
    tables = [table.stat().st_size for table in (fill / "store").glob("*.table")]
    assert sum(tables) > 5_000 * 116, "records were left in a log, which each run would replay"
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
    interrupted = project.kvstudy(
        "run", reading(project), code=project.signal_in_phase(phase="fill 5000", signal="SIGINT")
    )
    code, _, err = project.finished(interrupted)
    assert code == 130 and err.splitlines()[-1] == "kvstudy: interrupted"
    assert project.processes() == []
    assert not list((project.root / "data" / "work").rglob("filled.json"))
    (run,) = sealed_runs(project.raw)
    assert run.facts["outcome"] == "failed: interrupted during fill"
    code, _, err = project.finished(project.kvstudy("run", reading(project), "--resume"))
    assert code == 0 and "fill 5000 records" in err


@pytest.mark.parametrize("left", [None, "", '{"records": 50', "[]"])
def test_a_marker_that_is_gone_or_damaged_notes_no_fill(tmp_path, left):
    """As the end of the power leaves it, and a full disk: gone, empty, cut, of another form."""
    marker = tmp_path / "filled.json"
    _note(marker, {"records": 5000})
    assert _noted(marker) == {"records": 5000}
    marker.unlink() if left is None else marker.write_text(left)
    assert _noted(marker) is None


def test_kept_fill_without_its_whole_marker_is_made_again_and_is_dropped_by_other_fills(project):
    assert project.finished(project.kvstudy("run", reading(project)))[0] == 0
    (fill,) = fills(project)
    marker = fill / "filled.json"
    marker.write_text('{"records": 50')
    shutil.copytree(fill, fill.with_name("other"))
    code, _, err = project.finished(project.kvstudy("run", reading(project)))
    assert code == 0 and "fill 5000 records" in err and fills(project) == [fill], err
    assert json.loads(marker.read_text())["found"] == 5000


def test_fills_that_another_script_made_are_dropped_by_the_next(project):
    assert project.finished(project.kvstudy("run", reading(project)))[0] == 0
    (before,) = fills(project)
    with (project.root / "experiments" / "workloads" / "fill.lua").open("a") as script:
        script.write("-- changed\n")
    code, _, err = project.finished(project.kvstudy("run", reading(project)))
    assert code == 0 and "fill 5000 records" in err
    (after,) = fills(project)
    assert after != before


def test_a_fill_that_cannot_be_noted_is_a_failed_run_and_no_fill(monkeypatch, tmp_path):
    def full(_file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    marker = tmp_path / "filled.json"
    with (
        monkeypatch.context() as broken,
        pytest.raises(RunFailed, match="^fill could not be noted: .*: no space left on device$"),
    ):
        broken.setattr(os, "fsync", full)
        _note(marker, {"service": "x"})
    assert not marker.exists() and _noted(marker) is None
    _note(marker, {"service": "x"})
    assert _noted(marker) == {"service": "x"}


def test_fill_that_loses_records_is_an_error_that_says_how_many(project):
    """A fill script that stops early: the count of what the store holds is what decides."""
    script = project.root / "experiments" / "workloads" / "fill.lua"
    shutil.copy(script, script.with_name("whole.lua"))
    script.write_text(
        script.read_text().replace(
            "function request()",
            "local sent = 0\n  function request()\n    sent = sent + 1\n"
            "    if sent > 100 then wrk.thread:stop() end",
            1,
        )
    )
    code, _, err = project.finished(project.kvstudy("run", reading(project)))
    assert code == 1
    assert "fill lost records: filled=5000 found=" in err
    assert project.processes() == []
    script.unlink()
    script.with_name("whole.lua").rename(script)
    assert project.finished(project.kvstudy("run", reading(project)))[0] == 0
    lost, whole = ({**conditions_of_run(run), "script_digest": ""} for run in sealed_runs(project.raw))
    assert lost == whole, "else nobody counts it among the runs that its service lost"


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
    workload = [{"script": script, "key_count": 5000} for script in ("put", "mixed", "delete")] + [
        "unique_put"
    ]
    experiment = reading(
        project,
        workload=workload,
        fill={"records": 5000, "methods": ["DELETE"]},
        threads=2,
        rate="closed",
        duration="600ms",
        warm_up="100ms",
    )
    code, _, err = project.finished(project.kvstudy("run", experiment))
    assert code == 0, err
    runs = sealed_runs(project.raw)
    assert len(runs) == 4
    for run in runs:
        check, result = run.facts["data_check"], json.loads(run.text("generator.json"))
        # As many as this machine answered just then, be it few.
        written = {
            one["target"] for one in result["sample"] if one["method"] != "GET" and 200 <= one["status"] < 300
        }
        counted = {
            "delete": max(0, 5000 - result["counts"]["sent"]),
            "unique_put": min(result["answers"].get("201", 0), run.facts["workload_args"]["key_count"]),
        }
        expected = len(written) + counted.get(run.facts["workload"], 0)
        assert result["sample"] and (written or run.facts["workload"] == "mixed"), run.facts["workload"]
        spared = counted.get("delete", 0) if run.facts["workload"] == "delete" else 0
        assert (check or {"sampled": 0, "missing": 0, "wrong": 0, "written": 0}) == {
            "sampled": expected,
            "missing": 0,
            "wrong": 0,
            "written": expected - spared,
        }, run.facts["workload"]


def test_a_store_that_loses_acknowledged_keys_is_found_out(project):
    experiment = project.experiment(
        server="kv-service",
        workload={"script": "put", "key_count": 300},
        rate=2000,
        duration="1s",
        warm_up="200ms",
        timeout="30s",  # how soon it answers is not asked here
    )
    code, _, err = project.finished(project.kvstudy("run", experiment, code=SABOTAGE))
    assert code == 0, err
    (run,) = sealed_runs(project.raw)
    assert 30 < run.facts["data_check"]["missing"] < 150 and run.facts["data_check"]["wrong"] == 0
