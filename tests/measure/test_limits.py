"""What a plan needs of the machine is asked before anything is started, and what it lacks is one line."""

import os
import resource
import subprocess
from types import SimpleNamespace

import pytest
from memory_groups import can_make_groups, groups_of
from project import project
from trial import configuration

from kvstudy.errors import KvstudyError
from kvstudy.hosts import memory_group
from kvstudy.hosts.memory_group import NoMemoryGroup
from kvstudy.measure import limits


def needs(**change):
    return limits.needs([configuration(**change)])


@pytest.fixture
def open_files(monkeypatch):
    """``open_files(soft, hard)``; the list that it gives gets what is set."""

    def limit(soft, hard):
        given = []
        monkeypatch.setattr(resource, "getrlimit", lambda _which: (soft, hard))
        monkeypatch.setattr(resource, "setrlimit", lambda _which, pair: given.append(pair))
        return given

    return limit


def test_the_soft_limit_of_open_files_is_raised_as_far_as_connections_need(open_files):
    given = open_files(1024, 20_000)
    limits.check_open_files(10_000)
    assert given == [(10_512, 20_000)]
    limits.check_open_files(500)
    assert len(given) == 1


def test_too_many_connections_for_the_hard_limit_are_refused_with_both_numbers(open_files):
    open_files(1024, 4096)
    with pytest.raises(KvstudyError) as refused:
        limits.check_open_files(10_000)
    assert refused.value.message == "not enough open files: needed=10512 limit=4096 connections=10000"
    assert "prlimit" in refused.value.hint and "fewer connections" in refused.value.hint


@pytest.mark.parametrize("jvm", [{"heap": "8g"}, {"options": ["-XX:MaxHeapSize=8g"]}])
def test_a_heap_larger_than_the_machines_memory_is_refused_with_both_sizes(monkeypatch, tmp_path, jvm):
    monkeypatch.setattr(limits.psutil, "virtual_memory", lambda: SimpleNamespace(total=8 << 30))
    assert list(limits.notes(needs(jvm=jvm), tmp_path)) == []
    monkeypatch.setattr(limits.psutil, "virtual_memory", lambda: SimpleNamespace(total=4 << 30))
    with pytest.raises(KvstudyError) as refused:
        list(limits.notes(needs(jvm=jvm), tmp_path))
    assert refused.value.message == "not enough memory: heap=8.0 GiB of the machine=4.0 GiB"
    assert refused.value.hint == "choose a smaller heap: jvm: {heap: 128m}"
    assert list(limits.notes(needs(), tmp_path)) == [], "a JVM that nobody gives a heap takes what there is"


def test_memory_groups_are_asked_for_only_where_a_run_needs_one(monkeypatch, tmp_path):
    def none():
        raise NoMemoryGroup("this system has no memory groups", "measure without")

    monkeypatch.setattr(memory_group, "try_out", none)
    assert list(limits.notes(needs(), tmp_path)) == []
    with pytest.raises(NoMemoryGroup):
        list(limits.notes(needs(service={"memory": "1g"}), tmp_path))


def test_a_file_system_without_direct_io_is_told_where_memory_is_limited(monkeypatch, tmp_path):
    monkeypatch.setattr(memory_group, "try_out", lambda: None)
    monkeypatch.setattr(limits, "direct_io_problem", lambda _folder: "invalid argument: the file system of x")
    monkeypatch.setattr(limits, "mincore_problem", lambda _folder: None)
    asked = needs(service={"memory": "1g"})
    assert list(limits.notes(asked, tmp_path)) == [
        f"note: no direct I/O: invalid argument: the file system of x: {limits.READ_PAST_CACHE}"
    ]


def test_direct_io_and_mincore_are_tried_on_the_disk_and_leave_nothing(tmp_path):
    assert limits.direct_io_problem(tmp_path / "not" / "there") in (
        None,
        f"invalid argument: the file system of {tmp_path / 'not' / 'there'}",
    )
    assert limits.mincore_problem(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a file system needs root")
def test_a_file_system_without_direct_io_is_found_out(tmp_path):
    """ramfs has none."""
    if subprocess.run(["mount", "-t", "ramfs", "none", str(tmp_path)], capture_output=True).returncode:
        pytest.skip("this system mounts no ramfs")
    try:
        assert "the file system of" in limits.direct_io_problem(tmp_path)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.machine
@can_make_groups
def test_a_service_in_a_memory_group_is_filled_outside_measured_inside_and_its_group_is_recorded(project):
    from kvstudy.analyse.observation import observe
    from kvstudy.record.run_folder import sealed_runs

    asked = project.experiment(
        subject="kv-service",
        service={"memory": "256m", "memtable_bytes": "1m"},
        jvm={"heap": "64m", "options": ["-Xms64m", "-XX:+AlwaysPreTouch"]},  # all of its heap is in use
        workload="get",
        fill=20_000,
    )
    process = project.kvstudy("run", asked)
    code, _, err = project.finished(process)
    assert code == 0, err
    (run,) = sealed_runs(project.raw)
    assert run.facts["outcome"] == "completed" and run.facts["service"]["memory"] == "256m"
    group = run.machine["memory_group"]
    assert group["limit_bytes"] == 256 << 20 and not group["killed"] and group["peak_bytes"] > 64 << 20
    assert "--memory " not in run.text("service.cmd")
    assert '"memory": "256m"' in observe(run)["runs"][0]["service_options"]
    assert project.processes() == [] and groups_of(process.pid) == []


@pytest.mark.machine
@can_make_groups
def test_a_memory_group_too_small_to_start_in_is_one_line_and_nothing_is_left(project):
    asked = project.experiment(subject="kv-service", service={"memory": "24m"}, jvm={"heap": "64m"})
    process = project.kvstudy("run", asked)
    code, _, err = project.finished(process)
    line = "service was killed before it was ready: its memory group is too small: memory=24.0 MiB"
    assert code == 1 and line in err and "Traceback" not in err, err
    assert project.processes() == [] and groups_of(process.pid) == []
