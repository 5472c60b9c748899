"""What is measured is what the sources say: a build that is missing or older than its sources is refused
before anything starts."""

import os
import sys
import zipfile
from pathlib import Path

import pytest
from trial import configuration, trial

from kvstudy.errors import RunFailed, ToolMissing
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.facts import run_facts
from kvstudy.plan.run_plan import plan
from kvstudy.project import empty_server_jar, loadgen_binary, service_jar
from kvstudy.subject import catalogue
from kvstudy.subject.jdk import Jdk
from kvstudy.subject.kv_service import OurProgram

SOURCES = (
    "service/pom.xml",
    "service/src/main/java/kv/Server.java",
    "service/src/empty-server/java/kv/EmptyServer.java",
    "service/README.md",
    "service/src/test/java/ServerTest.java",
    "loadgen/src/main.rs",
    "loadgen/tests/cli.rs",
)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project that is built, with a JDK that is none."""
    for path in [
        *(tmp_path / source for source in SOURCES),
        tmp_path / "jdk" / "bin" / "jfr",
        service_jar(tmp_path),
        empty_server_jar(tmp_path),
        loadgen_binary(tmp_path),
    ]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        os.utime(path, (1000, 1000))
    monkeypatch.setattr(catalogue, "find_jdk", lambda: Jdk(tmp_path / "jdk", "25"))
    monkeypatch.setattr(OurProgram, "digest", "none")  # these jars are none
    return tmp_path


def needed(root: Path, **change) -> Artifacts:
    return Artifacts.needed_by(plan(trial(**change)), root)


def digests(artifacts: Artifacts) -> dict[str, str]:
    """Of what a run of the empty server notes."""
    return artifacts.digests_of(configuration(subject="empty"))


@pytest.mark.parametrize(
    "source", ["service/pom.xml", "service/src/main/java/kv/Server.java", "loadgen/src/main.rs"]
)
def test_a_program_that_is_older_than_its_sources_is_not_measured(root, source):
    needed(root)
    os.utime(root / source, (2000, 2000))
    with pytest.raises(ToolMissing) as refused:
        needed(root)
    assert (
        str(refused.value) == f"{source.split('/')[0]} is older than its sources: {source}\n  kvstudy build"
    )


@pytest.mark.parametrize(
    "source", ["service/README.md", "service/src/test/java/ServerTest.java", "loadgen/tests/cli.rs"]
)
def test_what_the_build_does_not_read_may_be_newer(root, source):
    os.utime(root / source, (2000, 2000))
    needed(root)


def test_the_empty_server_is_as_old_as_its_own_sources_too(root):
    needed(root, subject="empty")
    os.utime(root / SOURCES[2], (2000, 2000))
    with pytest.raises(ToolMissing, match="service is older than its sources: service/src/empty-server"):
        needed(root, subject="empty")


def test_only_the_servers_that_are_measured_have_to_be_built_and_are_told_by_their_digests(root, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(catalogue, "find_jdk", lambda: Jdk(root / "jdk", "25"))
    service_jar(root).unlink()
    with zipfile.ZipFile(empty_server_jar(root), "w") as jar:
        jar.writestr("kv/EmptyServer.class", b"1")
    empty = needed(root, subject="empty")
    assert set(digests(empty)) == {"empty-server", "loadgen", "script"}
    with pytest.raises(ToolMissing, match="not built: .*kv-service.jar"):
        needed(root)
    with zipfile.ZipFile(empty_server_jar(root), "w") as jar:
        jar.writestr("kv/EmptyServer.class", b"2")
    assert digests(needed(root, subject="empty"))["empty-server"] != digests(empty)["empty-server"]


@pytest.fixture
def scripts(root) -> Path:
    """The project's workloads: one that requires another."""
    workloads = root / "experiments" / "workloads"
    workloads.mkdir(parents=True)
    (workloads / "put.lua").write_text('local keyspace = require "keyspace"')
    (workloads / "keyspace.lua").write_text("return {}")
    return workloads


def facts_of(artifacts: Artifacts) -> dict:
    """run.json of a run that is measured with these."""
    return run_facts(plan(trial()).runs[0], "id", "", "completed", artifacts, {}, None, {}, None, 5.0, {})


def test_a_run_notes_the_answers_that_its_workload_expects(root, scripts):
    own = plan(trial(workload={"script": "put", "statuses": [201, 507]}))
    artifacts = Artifacts.needed_by(own, root)
    facts = run_facts(own.runs[0], "id", "", "completed", artifacts, {}, None, {}, None, 5.0, {})
    assert facts["statuses"] == [201, 507] and facts_of(needed(root))["statuses"] is None


@pytest.mark.parametrize("changed", ["put.lua", "keyspace.lua"])
def test_a_run_of_a_script_that_was_changed_since_is_measured_again_by_resume(root, scripts, changed):
    artifacts = needed(root)
    facts = facts_of(artifacts)
    assert artifacts.are_those_of(facts) and needed(root).are_those_of(facts)
    (scripts / changed).write_text("-- another one")
    assert not needed(root).are_those_of(facts)
    assert facts_of(artifacts)["tool_digests"] != facts["tool_digests"], "each run notes what it has read"


def test_a_run_of_a_store_that_another_script_filled_is_measured_again_by_resume(root, scripts):
    (scripts / "get.lua").write_text("return {}")
    (scripts / "fill.lua").write_text("return {}")
    of_filled = plan(trial(workload="get", fill=1000))
    artifacts = Artifacts.needed_by(of_filled, root)
    facts = run_facts(of_filled.runs[0], "id", "", "completed", artifacts, {}, None, {}, None, 5.0, {})
    assert artifacts.are_those_of(facts)
    (scripts / "fill.lua").write_text("-- another one")
    assert not artifacts.are_those_of(facts)


def test_a_script_of_ones_own_is_found_by_its_path_when_a_measurement_is_resumed(root, scripts, monkeypatch):
    (root / "notebooks").mkdir()
    monkeypatch.setenv("KVSTUDY_ROOT", str(root))
    own = root / "experiments" / "put.lua"
    own.write_text("-- mine")
    of_own = plan(trial(workload={"script": "experiments/put.lua"}, method="GET"))
    artifacts = Artifacts.needed_by(of_own, root)
    facts = run_facts(of_own.runs[0], "id", "", "completed", artifacts, {}, None, {}, None, 5.0, {})
    assert facts["script"] == "experiments/put.lua" and artifacts.are_those_of(facts)
    (scripts / "put.lua").write_text("-- the project's, which is another one")
    assert artifacts.are_those_of(facts)
    own.write_text("-- changed")
    assert not artifacts.are_those_of(facts)


def test_a_run_of_another_jdk_is_measured_again_by_resume(root, scripts, monkeypatch):
    facts = facts_of(needed(root))
    assert facts["tool_versions"]["jdk"] == "25"
    monkeypatch.setattr(catalogue, "find_jdk", lambda: Jdk(root / "jdk", "25.0.1"))
    assert not needed(root).are_those_of(facts)
    over_a_network = facts | {"hosts": {"service": "a", "generators": ["b"]}}
    assert not needed(root).are_those_of(over_a_network), "the service's host is asked, which has a JDK too"


def test_a_run_of_before_its_script_was_noted_is_kept(root, scripts):
    artifacts = needed(root)
    facts = facts_of(artifacts)
    del facts["tool_digests"]["script"]
    del facts["script"]
    assert artifacts.are_those_of(facts)


def test_a_program_that_is_built_anew_while_it_is_measured_is_told(root):
    """Its digest was asked before: later runs would be pooled with those of another program."""
    artifacts = needed(root)
    artifacts.check_unchanged()
    new = service_jar(root).with_name("new.jar")
    new.write_bytes(service_jar(root).read_bytes())
    new.replace(service_jar(root))
    with pytest.raises(RunFailed, match="^program was replaced while it was measured: .*kv-service.jar"):
        artifacts.check_unchanged()


def test_a_program_of_somebody_elses_that_is_replaced_while_it_is_measured_is_told(root):
    program, library, other, data, log = (
        root / name for name in ("shop.py", "lib/shop.jar", "my lib/shop.jar", "data/log", "shop.log")
    )
    for path in (program, library, other, data, log):
        path.parent.mkdir(exist_ok=True)
        path.write_text("before")
    class_paths = ["-cp", str(library.parent / "*"), "--module-path", str(other)]
    words = [sys.executable, str(program), *class_paths, "--log", "shop.log", "{port}"]
    needs = ["{root}/data/"]
    artifacts = needed(root, subject={"name": "shop", "command": words, "needs": needs})
    data.write_text("what the program writes while it is measured")
    log.write_text("and what it is told to write")
    artifacts.check_unchanged()
    for path in (program, library, other):
        before = path.stat()
        path.write_text("after!")
        with pytest.raises(RunFailed, match=f"^program was replaced while it was measured: {path}\n"):
            artifacts.check_unchanged()
        path.write_text("before")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_run_notes_its_script_as_it_was_when_the_run_began(root, scripts):
    artifacts, planned = needed(root), plan(trial()).runs[0]
    before = artifacts.digests_of(planned.configuration)
    (scripts / "put.lua").write_text("-- saved while the run goes on")
    given = (planned, "id", "", "completed", artifacts, {}, None, {}, None, 5.0, {})
    assert run_facts(*given, before)["tool_digests"] == before != run_facts(*given)["tool_digests"]


def test_what_a_command_needs_on_other_hosts_need_not_be_here(root):
    of_command = plan(
        trial(subject={"name": "shop", "command": ["no-such-shop", "{port}"], "needs": ["curlier"]})
    )
    with pytest.raises(ToolMissing, match="no such program: no-such-shop: needed by subject shop"):
        Artifacts.needed_by(of_command, root)
    Artifacts.needed_by(of_command, root, on_hosts=True)
    service_jar(root).unlink()
    with pytest.raises(ToolMissing, match="not built: .*kv-service.jar"):  # which is sent to them
        Artifacts.needed_by(plan(trial()), root, on_hosts=True)
