"""The doctor believes a program that runs, not one that is there."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvstudy.errors import ToolMissing
from kvstudy.measure import doctor
from kvstudy.subject.jdk import Jdk


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
    assert doctor._load().observed == "60% of the cores busy, steal 0%: loop"


def test_no_program_on_path_is_missing(monkeypatch):
    monkeypatch.setenv("PATH", os.devnull)
    assert doctor._program("maven", "mvn", "install it") == doctor.Check(
        "maven", doctor.MISSING, "not on PATH", "install it"
    )
