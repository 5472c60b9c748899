"""The doctor believes a program that runs, not one that is there."""

import os
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvstudy.errors import ToolMissing
from kvstudy.hosts import memory_group
from kvstudy.measure import doctor, limits
from kvstudy.measure.build import CARGO_HINT, CARGO_MIN
from kvstudy.subject.jdk import Jdk

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def program(tmp_path, monkeypatch):
    """``program("cargo", "echo 'cargo 1.95'")``: a script of that name on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    def write(name: str, code: str) -> Path:
        (tmp_path / name).write_text(f"#!/bin/sh\n{code}\n")
        (tmp_path / name).chmod(0o755)
        return tmp_path / name

    return write


def test_a_program_that_runs_is_told_with_its_version(program):
    program("cargo", "echo 'cargo 1.95.0'")
    assert doctor._program("cargo", "cargo", "install it") == doctor.Check("cargo", doctor.OK, "cargo 1.95.0")


def test_a_program_that_is_there_and_cannot_run_is_missing_with_its_reason(program):
    path = program(
        "cargo",
        "echo 'info: …' >&2; echo 'error: rustup could not choose a version of cargo to run' >&2; exit 1",
    )
    check = doctor._program("cargo", "cargo", "install it")
    assert (check.verdict, check.hint) == (doctor.MISSING, "install it")
    assert (
        check.observed
        == f"{path} does not run: exit 1: error: rustup could not choose a version of cargo to run"
    )


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("cargo 1.88.0", "ok"), ("cargo 2.0.0", "ok"), ("cargo 1.65.0", "missing"), ("cargo 0.99.9", "missing")],
)
def test_a_cargo_that_is_too_old_for_the_load_generator_is_missing(program, version, verdict):
    program("cargo", f"echo '{version}'")
    assert doctor._cargo().verdict == verdict


def test_the_cargo_that_is_asked_for_is_the_one_that_the_load_generator_names():
    manifest = tomllib.loads((CHECKOUT / "loadgen" / "Cargo.toml").read_text())
    assert manifest["package"]["rust-version"] == ".".join(map(str, CARGO_MIN))
    assert f"({manifest['package']['rust-version']} or newer)" in CARGO_HINT


def test_a_cargo_that_the_build_finds_beside_path_is_there(tmp_path, monkeypatch):
    cargo = tmp_path / ".cargo" / "bin" / "cargo"
    cargo.parent.mkdir(parents=True)
    cargo.write_text("#!/bin/sh\necho cargo 1.95.0\n")
    cargo.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.devnull)
    assert doctor._cargo() == doctor.Check("cargo", doctor.OK, "cargo 1.95.0")


def test_a_git_that_tells_nothing_of_the_project_is_told_with_what_to_do(tmp_path, monkeypatch):
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "own's")], check=True)
    assert doctor._git(tmp_path / "own's").verdict == doctor.OK
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    another = doctor._git(tmp_path / "own's")
    assert another.verdict == doctor.WARN
    assert another.observed.startswith(
        f"git tells nothing of a repository that is another user's: {tmp_path}"
    )
    assert (
        subprocess.run(["sh", "-c", another.hint], env=os.environ | {"HOME": str(tmp_path)}).returncode == 0
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    assert doctor._git(tmp_path / "own's").verdict == doctor.OK
    none = doctor._git(tmp_path)
    assert none.verdict == doctor.WARN and none.observed.startswith("not a git repository")


def test_peers_that_are_not_here_are_told_with_the_packages_that_hold_them(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor._peers() == doctor.Check(
        "peers",
        doctor.OK,
        "not here: nginx, webdis, redis-server (only for make peers; apt-get install nginx-light webdis "
        "redis-server)",
    )
    for name in ("nginx", "webdis"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert doctor._peers().observed == (
        "not here: redis-server (only for make peers; apt-get install redis-server)"
    )


def test_maven_is_asked_with_the_jdk_that_the_build_uses_and_a_wrong_java_home_is_named(
    program, monkeypatch, tmp_path
):
    program(
        "mvn",
        '[ "$JAVA_HOME" = /jdk ] && echo "Apache Maven 3.9" || { echo "JAVA_HOME is not defined '
        'correctly" >&2; exit 1; }',
    )
    monkeypatch.setenv("JAVA_HOME", "/nonsense")
    monkeypatch.setattr(doctor, "find_jdk", lambda: Jdk(Path("/jdk"), "25.0.1"))
    assert doctor._maven() == doctor.Check("maven", doctor.OK, "Apache Maven 3.9")
    jdk = doctor._jdk()
    assert (jdk.verdict, jdk.hint) == (
        doctor.WARN,
        "export JAVA_HOME=/jdk",
    ) and "JAVA_HOME=/nonsense is no Java at all" in jdk.observed
    older = tmp_path / "bin" / "java"
    older.parent.mkdir()
    older.write_text("")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor._jdk().verdict == doctor.OK, "an older Java does no harm"

    def nothing():
        raise ToolMissing("no JDK 25")

    monkeypatch.setattr(doctor, "find_jdk", nothing)
    assert doctor._maven().observed.endswith("exit 1: JAVA_HOME is not defined correctly")


def test_an_older_java_on_path_is_told_with_the_one_to_use_by_hand(monkeypatch, tmp_path):
    for feature in (17, 25):
        java = tmp_path / str(feature) / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text("#!/bin/sh\n")
        java.chmod(0o755)
        (tmp_path / str(feature) / "release").write_text(f'JAVA_VERSION="{feature}.0.1"\n')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(doctor, "find_jdk", lambda: Jdk(tmp_path / "25", "25.0.1"))
    monkeypatch.setenv("PATH", str(tmp_path / "17" / "bin"))
    told = f"; `java` on PATH is 17.0.1: by hand use {tmp_path}/25/bin/java"
    assert doctor._jdk() == doctor.Check("jdk", doctor.OK, f"25.0.1 at {tmp_path / '25'}{told}")
    monkeypatch.setenv("PATH", str(tmp_path / "25" / "bin"))
    assert doctor._jdk().observed == f"25.0.1 at {tmp_path / '25'}"


def test_a_busy_machine_is_told_with_who_keeps_it_busy(monkeypatch):
    """psutil counts a process from its second look on."""
    looks = iter([0.0, 97.0])
    monkeypatch.setattr(
        doctor.psutil, "cpu_times_percent", lambda interval: SimpleNamespace(idle=40.0, steal=0.0)
    )
    monkeypatch.setattr(
        doctor.psutil,
        "process_iter",
        lambda _names: iter([SimpleNamespace(info={"name": "loop", "cpu_percent": next(looks)})]),
    )
    assert doctor._load().observed == "60 % of the cores busy, steal 0 %: loop"


def test_no_program_on_path_is_missing(monkeypatch):
    monkeypatch.setenv("PATH", os.devnull)
    assert doctor._program("maven", "mvn", "install it") == doctor.Check(
        "maven", doctor.MISSING, "not on PATH", "install it"
    )


def test_memory_groups_are_told_with_their_version_or_with_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(memory_group, "try_out", lambda: None)
    monkeypatch.setattr(memory_group, "controller", lambda: SimpleNamespace(version=2))
    assert doctor._memory_groups() == doctor.Check("memory groups", doctor.OK, "cgroup version 2")
    monkeypatch.undo()
    monkeypatch.setattr(memory_group, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory_group, "MEMBERSHIP", tmp_path / "none")
    check = doctor._memory_groups()
    assert check.verdict == doctor.WARN and check.hint
    assert check.observed.startswith("this system has no memory groups")


def test_how_a_disk_is_read_is_told_with_what_it_means_for_a_store_larger_than_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "direct_io_problem", lambda _folder: "invalid argument")
    monkeypatch.setattr(limits, "mincore_problem", lambda _folder: None)
    direct, mincore = doctor._reading(tmp_path)
    assert (direct.name, direct.verdict, mincore.verdict) == ("direct I/O", doctor.WARN, doctor.OK)
    assert direct.observed == f"invalid argument: {limits.READ_PAST_CACHE}" and direct.hint


def test_a_low_limit_of_open_files_is_told_with_what_cannot_be_measured(monkeypatch):
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _which: (1024, 4096))
    check = doctor._open_files()
    assert (check.verdict, check.observed) == (doctor.WARN, "at most 4096: 10 000 connections need 10512")
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _which: (1024, 20_000))
    assert doctor._open_files() == doctor.Check("open files", doctor.OK, "up to 20000")


def test_a_place_of_the_stores_that_cannot_be_written_is_a_line_and_no_end_of_the_others(
    tmp_path, monkeypatch
):
    def refuse(_folder):
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(limits, "direct_io_problem", refuse)
    (check,) = doctor._reading(tmp_path)
    assert (check.verdict, check.observed) == (
        doctor.MISSING,
        f"{tmp_path / 'data' / 'work'} cannot be written: permission denied",
    )


@pytest.mark.parametrize(
    ("cores", "verdict", "told"),
    [
        (1, doctor.WARN, "1: service and generator take time from each other"),
        (2, doctor.WARN, "2: service and generator take time from each other, but in duets and where an"),
        (4, doctor.OK, "4: service and generator get cores of their own"),
    ],
)
def test_cores_are_said_to_be_shared_only_by_what_shares_them(monkeypatch, cores, verdict, told):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(cores)))
    check = doctor._cores()
    assert check.verdict == verdict and check.observed.startswith(told)
    assert ("cores: apart" in check.observed) == (cores == 2)
