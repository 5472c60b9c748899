"""The commands that measure an experiment: each can be typed as it stands."""

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


def test_a_preset_that_was_asked_for_stands_in_the_command(tmp_path):
    file = tmp_path / "with-presets.yaml"
    file.write_text(FILE + "presets:\n  quick: {repeats: 2}\n")
    assert [one.command for one in commands_of([file], "quick")] == [f"kvstudy run {file} --preset quick"]
