"""Finding a JDK 25 beside older ones."""

import os

import pytest

from kvstudy.errors import ToolMissing
from kvstudy.subject.jdk import feature_of, find_jdk


def jdk(folder, version, compiler=True):
    (folder / "bin").mkdir(parents=True)
    for name in ("java", "javac") if compiler else ("java",):
        (folder / "bin" / name).write_text("#!/bin/sh\n")
        (folder / "bin" / name).chmod(0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="test"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.fixture(autouse=True)
def empty_machine(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def test_jdk_25_is_found_beside_an_older_one_that_java_home_names(tmp_path, monkeypatch):
    old = jdk(tmp_path / "java-17", "17.0.1")
    new = jdk(tmp_path / "jvm" / "temurin-25", "25.0.3")
    jdk(tmp_path / "jvm" / "a-21", "21")
    monkeypatch.setenv("JAVA_HOME", str(old))
    found = find_jdk((str(tmp_path / "jvm"),))
    assert (found.home, found.version) == (new, "25.0.3")
    assert found.environment()["JAVA_HOME"] == str(new)
    assert found.environment()["PATH"].split(os.pathsep)[0] == str(new / "bin")


def test_java_home_comes_first(tmp_path, monkeypatch):
    mine = jdk(tmp_path / "mine", "25.0.1")
    jdk(tmp_path / "jvm" / "other", "25.0.9")
    monkeypatch.setenv("JAVA_HOME", str(mine))
    assert find_jdk((str(tmp_path / "jvm"),)).home == mine


def test_that_of_an_active_conda_environment_comes_before_those_of_the_system(tmp_path, monkeypatch):
    of_conda = jdk(tmp_path / "env" / "lib" / "jvm", "25.0.1")
    jdk(tmp_path / "jvm" / "other", "25.0.9")
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "env"))
    assert find_jdk((str(tmp_path / "jvm"),)).home == of_conda
    mine = jdk(tmp_path / "mine", "25.0.1")
    monkeypatch.setenv("JAVA_HOME", str(mine))
    assert find_jdk((str(tmp_path / "jvm"),)).home == mine


def test_jdk_on_path_is_found_through_its_link(tmp_path, monkeypatch):
    home = jdk(tmp_path / "somewhere", "25")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "javac").symlink_to(home / "bin" / "javac")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_jdk(()).home == home


def test_without_jdk_25_the_error_names_those_found_and_what_to_install(tmp_path):
    jdk(tmp_path / "jvm" / "java-17", "17.0.1")
    jdk(tmp_path / "jvm" / "java-25-runtime", "25.0.1", compiler=False)
    with pytest.raises(ToolMissing) as caught:
        find_jdk((str(tmp_path / "jvm"),))
    assert "no JDK 25" in caught.value.message
    assert (
        "java-17 is 17.0.1" in caught.value.message
        and "java-25-runtime has no compiler" in caught.value.message
    )
    assert "apt-get install openjdk-25-jdk" in caught.value.hint


def test_who_has_no_home_is_told_of_java_all_the_same(monkeypatch):
    """As a container's user without a name, of whom nobody says where his home is."""

    def nobody(_uid):
        raise KeyError

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolMissing, match="no JDK 25: found none at all"):
        find_jdk(("~/.jdks",))


def test_machine_without_any_java_is_told_what_to_install():
    with pytest.raises(ToolMissing, match="found none at all"):
        find_jdk(())


@pytest.mark.parametrize(
    ("version", "feature"), [("25.0.1", 25), ("25", 25), ("25-ea", 25), ("1.8.0_292", 8), ("17.0.1+12", 17)]
)
def test_feature_version_is_read_from_every_form(version, feature):
    assert feature_of(version) == feature
