"""What is looked at once before the first run: what all runs would fail by, what disk they need, and what is
sealed already."""

import json
import shutil
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from trial import trial

from kvstudy.errors import InputError, KvstudyError
from kvstudy.measure import compare, side_by_side
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.execute import _sealed, _whole
from kvstudy.measure.fill import FILLED, disk_needed
from kvstudy.measure.preconditions import check_port
from kvstudy.measure.station import Station
from kvstudy.plan.run_plan import configurations_of, fill_bytes
from kvstudy.project import raw_root

sys.path.append(str(Path(__file__).parents[1] / "analyse"))
from duet_maker import DuetMaker
from run_maker import RunMaker


def test_a_port_in_use_is_named_before_anything_starts():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError) as refused:
            check_port(port)
    assert (
        str(refused.value)
        == f"port {port} is in use\n  choose another one, or port: 0, which takes a free one"
    )
    check_port(port)
    check_port(0)


def kept(root: Path, run) -> list[str]:
    """Identities of what a measurement keeps that is resumed with the programs of ``run``."""

    class Service:
        digest, digest_name = None, "kv-service"

    facts = run.facts
    key = [facts.get("server") or "kv-service", facts.get("subject"), facts["service"], facts["jvm"]]
    artifacts = Artifacts(root, Path("loadgen"), {}, {json.dumps(key, sort_keys=True): Service()})
    artifacts.__dict__["generator_digests"] = {"loadgen": "0"}  # of a program that is none
    sealed = _sealed(root, "trial", facts["label"])
    return list(_whole([one for one in sealed if artifacts.are_those_of(one.facts)]))


def test_launches_of_a_duet_are_not_taken_for_runs_when_a_measurement_is_resumed(tmp_path):
    """Both are sealed below the experiment's name; a launch has two sides, and neither generator nor
    service."""
    DuetMaker(raw_root(tmp_path))(experiment="trial")
    run = RunMaker(raw_root(tmp_path))(experiment="trial", identity="a run", tool_digests={"loadgen": "0"})

    assert kept(tmp_path, run) == ["a run"]


def test_of_a_search_the_trials_that_their_service_did_not_survive_are_kept_when_it_is_resumed(tmp_path):
    """Asked again until one survives, their rate would be held by survivors."""
    made, died = RunMaker(raw_root(tmp_path)), "failed: service died during measure: signal 9"
    common = {"experiment": "trial", "tool_digests": {"loadgen": "0"}}
    run = made("run-1", **common, identity="plain", outcome=died)
    made("run-2", **common, identity="trial", outcome=died, search={"purpose": "search"})
    made("run-3", **common, identity="cut", outcome="failed: interrupted", search={"purpose": "search"})

    assert kept(tmp_path, run) == ["trial"]


def test_a_run_that_is_not_as_it_was_sealed_is_told_and_not_kept_when_a_measurement_is_resumed(
    tmp_path, capsys
):
    made, common = RunMaker(raw_root(tmp_path)), {"experiment": "trial", "tool_digests": {"loadgen": "0"}}
    run = made("run-1", **common, identity="whole")
    made("run-2", **common, identity="twice")
    changed = [made(f"run-{at}", **common, identity=name) for at, name in ((3, "twice"), (4, "once"))]
    newer, damaged = made("run-5", **common, identity="newer"), made("run-6", **common, identity="damaged")
    for one in changed:
        (one.path / "service.log").chmod(0o644)
        (one.path / "service.log").write_text("")
    for one, text in ((newer, '{"schema_version": 99}'), (damaged, "{")):
        (one.path / "run.json").unlink()
        (one.path / "run.json").write_text(text)

    assert kept(tmp_path, run) == ["whole", "twice"]
    told = [line.replace(f"{raw_root(tmp_path)}/trial/", "") for line in capsys.readouterr().err.splitlines()]
    assert [line.split(" sha256")[0] for line in told] == [
        "not kept: run is of a newer kvstudy: run=run-5 schema_version=99 known=3",
        "not kept: run-6/run.json:1: not JSON: Expecting property name enclosed in double quotes",
        "not kept: run-3/service.log: changed after sealing:",
        "not kept: run-4/service.log: changed after sealing:",
    ]


def test_a_launch_that_is_not_as_it_was_sealed_is_told_and_not_kept_when_a_duet_is_resumed(tmp_path):
    made = DuetMaker(raw_root(tmp_path))
    launches = [made(number, experiment="trial", asked="this") for number in (1, 2, 3)]
    changed = launches[1].path / "slices.csv.gz"
    changed.chmod(0o644)
    changed.write_bytes(b"")
    comparison, told = SimpleNamespace(experiment=SimpleNamespace(name="trial")), []

    duet = compare._resumed(comparison, "this", tmp_path, launches[0].facts["label"], told.append)
    assert [run.facts["launch"] for run in duet.launches] == [1, 3]
    assert len(told) == 1 and "slices.csv.gz: changed after sealing" in told[0]


def test_runs_of_another_machine_are_not_kept_when_a_measurement_is_resumed(monkeypatch):
    """A folder of runs may lie on a disk of two, and a virtual one be given more cores."""
    now = {"machine_id": "m", "cpu_model": "x", "cores": 2}
    monkeypatch.setattr(side_by_side.machine, "fixed_facts", lambda: now)

    def run(hosts=None, **change):
        return SimpleNamespace(facts={"hosts": hosts} if hosts else {}, machine=now | change)

    runs = {
        "here": run(),
        "before it was noted": run(machine_id=None),
        "another": run(machine_id="n"),
        "resized": run(cores=4),
        "on hosts": run(hosts={"service": "a", "generators": ["b"]}),
    }
    assert list(side_by_side.measured_here(runs)) == ["here", "before it was noted"]


class Filled:
    """Stands for the fills, of which those with these numbers of records are there."""

    def __init__(self, root: Path, *records: int):
        self._root = root
        for count in records:
            (root / str(count)).mkdir(parents=True)
            (root / str(count) / FILLED).write_text("{}")

    def folder(self, configuration) -> Path:
        return self._root / str(configuration.fill["records"])


def test_a_measurement_that_is_resumed_needs_no_space_for_the_fills_and_runs_that_are_there(tmp_path):
    small, large = configurations_of(trial(workload="get", fill=[1000, 50_000]))
    assert disk_needed([], Filled(tmp_path / "none"), 7) == 7
    some, all_of_them = Filled(tmp_path / "some", 50_000), Filled(tmp_path / "all", 1000, 50_000)
    assert disk_needed([small, large, small], all_of_them, 7) == 7
    assert disk_needed([small, large, small], some, 7) == 7 + fill_bytes(small.fill)
    assert disk_needed([small], some, 0) == fill_bytes(small.fill)


def test_a_host_needs_no_space_for_the_fills_that_lie_there(tmp_path, monkeypatch):
    there, missing = configurations_of(trial(workload="get", fill=[1000, 2000]))
    station = Station(SimpleNamespace(work=tmp_path), None, Filled(tmp_path, 1000))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=fill_bytes(there.fill) - 1))
    station.check_disk([there], 0)
    with pytest.raises(KvstudyError, match="not enough disk"):
        station.check_disk([there, missing], 0)


def test_a_store_that_is_written_in_each_run_is_no_fill_that_is_kept(tmp_path):
    subject = {"command": ["serve", "{port}"]}
    (one,) = configurations_of(trial(workload="get", fill=1000, subject=subject))
    assert disk_needed([one], Filled(tmp_path), one.disk_bytes) == one.disk_bytes > 0
