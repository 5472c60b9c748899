"""The commands that measure an experiment: each can be typed as it stands."""

import shlex

import pytest

from kvstudy.errors import ExperimentError
from kvstudy.plan.commands import commands_of

FILE = """\
question: How fast?
expectation: p99 under 10 ms.
workload: put
connections: 4
threads: 1
rate: 1000
duration: 3s
warm_up: 1s
repeats: 1
"""


def test_a_file_without_presets_is_measured_without_one(tmp_path):
    file = tmp_path / "plain.yaml"
    file.write_text(FILE)
    assert [one.command for one in commands_of([file], None)] == [f"kvstudy run {file}"]


def test_a_duet_that_cannot_be_measured_is_refused_and_not_left_out(tmp_path):
    file = tmp_path / "sides.yaml"
    sides = FILE + "service: {handler: [selector, workers]}\n"
    for asked in ("{closed_pairs: 0}", "{rate: 20}", "{}"):
        file.write_text(sides + f"compare: {asked}\n")
        assert [one.duets for one in commands_of([file], None)] == [0, 1]
    for nothing in ("", "compare: null\n"):
        file.write_text(sides + nothing)
        assert [one.duets for one in commands_of([file], None)] == [0]
    file.write_text(sides + "compare: {closed_pairs: 0, primary: rate}\n")
    with pytest.raises(ExperimentError, match="primary measure is not measured: rate"):
        commands_of([file], None)


def test_a_command_can_be_typed_also_of_a_folder_with_a_blank(tmp_path):
    file = tmp_path / "my own" / "one.yaml"
    file.parent.mkdir()
    file.write_text(FILE)
    (one,) = commands_of([file], None, ("workload=put",))
    assert shlex.split(one.command) == ["kvstudy", "run", str(file), "--only", "workload=put"]


def test_of_several_files_the_one_that_has_no_such_run_is_named(tmp_path):
    files = [tmp_path / "sides.yaml", tmp_path / "plain.yaml"]
    files[0].write_text(FILE + "service: {handler: [selector, workers]}\n")
    files[1].write_text(FILE)
    with pytest.raises(ExperimentError, match=f"^{files[1]}: no run has such a key: handler"):
        commands_of(files, None, ("handler=selector",))
    with pytest.raises(ExperimentError, match="^no run has such a key: handler"):
        commands_of(files[1:], None, ("handler=selector",))


def test_a_preset_that_was_asked_for_stands_in_the_command(tmp_path):
    file = tmp_path / "with-presets.yaml"
    file.write_text(FILE + "presets:\n  quick: {repeats: 2}\n")
    assert [one.command for one in commands_of([file], "quick")] == [f"kvstudy run {file} --preset quick"]
