"""What a script says is its text and that of all it requires, and nothing that only lies beside it."""

import shutil
from pathlib import Path

import pytest

from kvstudy.measure.script import fill_digest, script_digest


@pytest.fixture
def project(tmp_path) -> Path:
    """A script of one's own, one that it requires, and the project's workloads."""
    for name, text in {
        "mine/x.lua": 'local y = require "parts.y"\nfunction request() return wrk.format("GET", "/a") end',
        "mine/parts/y.lua": "return require('keyspace')",
        "mine/other.lua": "return 1",
        "workloads/keyspace.lua": "return 2",
        "workloads/put.lua": "return 3",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def digest(project: Path) -> str:
    return script_digest(project / "mine" / "x.lua", project / "workloads")


@pytest.mark.parametrize("changed", ["mine/x.lua", "mine/parts/y.lua", "workloads/keyspace.lua"])
def test_a_line_more_in_the_script_or_in_what_it_requires_is_another_script(project, changed):
    before = digest(project)
    with (project / changed).open("a") as file:
        file.write("\n-- more")
    assert digest(project) != before


@pytest.mark.parametrize("changed", ["mine/other.lua", "workloads/put.lua", "mine/new.lua"])
def test_a_script_that_it_does_not_require_has_no_say_in_it(project, changed):
    before = digest(project)
    (project / changed).write_text("return 4")
    assert digest(project) == before


def test_a_module_beside_the_script_goes_before_one_of_the_projects_of_the_same_name(project):
    before = digest(project)
    (project / "mine" / "keyspace.lua").write_text("return 5")
    beside = digest(project)
    (project / "workloads" / "keyspace.lua").write_text("return 6")
    assert before != beside == digest(project)


def test_a_script_is_the_same_wherever_it_lies_and_one_that_is_gone_is_another(project, tmp_path_factory):
    before = digest(project)
    moved = shutil.copytree(project, tmp_path_factory.mktemp("elsewhere") / "moved")
    assert digest(moved) == before
    (moved / "mine" / "x.lua").unlink()
    assert digest(moved) != before


@pytest.mark.parametrize("changed", ["fill.lua", "keyspace.lua"])
def test_a_run_of_a_filled_store_is_another_one_where_what_filled_it_was_changed(project, changed):
    workloads = project / "workloads"
    (workloads / "fill.lua").write_text("local keyspace = require 'keyspace'")

    def of_each() -> dict[str, str]:
        script = workloads / "put.lua"
        return {
            "the fill": fill_digest(workloads),
            "a run that reads it": script_digest(script, workloads, filled=True),
            "a run without": script_digest(script, workloads),
        }

    before = of_each()
    (workloads / changed).write_text("-- changed")
    assert {name for name, one in of_each().items() if one != before[name]} == {
        "the fill",
        "a run that reads it",
    }
