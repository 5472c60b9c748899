"""Run folders from anywhere: read as they are, or refused in one line."""

import json
import re

import pytest

import kvstudy
from kvstudy.errors import KvstudyError, NotSealed, RunFolderError, SealBroken


@pytest.fixture
def run(make_run):
    return make_run("20261120T204223Z-put-rep1")


def change(run, name: str, text: str) -> None:
    path = run.path / name
    path.chmod(0o644)
    path.write_text(text)


def test_a_run_that_lies_anywhere_has_the_tables_of_a_run_of_the_study(run):
    found = kvstudy.load(str(run.path))
    assert list(found.runs["run_id"]) == [run.run_id] and found.source == str(run.path)
    assert len(found.percentiles) and len(found.intervals) and len(found.slowest) and len(found.validity)
    assert found.select(method="GET").percentiles.empty
    assert kvstudy.histogram(run.run_id, of=found).get_total_count() > 0
    assert not (run.path.parents[1] / "tidy").exists()


def test_a_folder_of_runs_is_read_whole(make_run):
    runs = [make_run(f"2026112{day}T204223Z-put-rep1") for day in range(3)]
    assert list(kvstudy.load(runs[0].path.parents[1]).runs["run_id"]) == [run.run_id for run in runs]


@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        ("latency.hlog", "changed", SealBroken, "changed after sealing"),
        ("new.txt", "added", SealBroken, "added after sealing"),
        ("run.json", "{", RunFolderError, r"run\.json:1: not JSON"),
        ("run.json", "[]", RunFolderError, "no JSON object"),
        ("run.json", '{"a": 1}', RunFolderError, "its run.json lacks"),
        ("run.json", '{"schema_version": 99}', RunFolderError, "newer kvstudy"),
    ],
)
def test_a_damaged_or_foreign_folder_is_told_in_a_line(run, name, text, error, message):
    if name != "new.txt":
        name = name if (run.path / name).exists() else f"{name}.gz"
        change(run, name, text)
    else:
        (run.path / name).write_text(text)
    with pytest.raises(error, match=message) as told:
        kvstudy.load(run.path)
    assert "\n" not in told.value.message


def test_a_run_whose_seal_is_gone_is_told_and_not_left_out_unless_nobody_asks(make_run):
    run, other = (make_run(f"2026112{day}T204223Z-put-rep1") for day in range(2))
    (run.path / "SHA256SUMS").unlink()
    with pytest.raises(SealBroken, match=f"{re.escape(str(run.path))}/SHA256SUMS: seal missing"):
        kvstudy.load(run.path.parent)
    assert list(kvstudy.load(run.path.parent, check=False).runs["run_id"]) == [other.run_id]


def test_what_was_changed_is_read_all_the_same_when_it_is_asked_for(run):
    (run.path / "note.txt").write_text("mine")
    assert len(kvstudy.load(run.path, check=False).runs) == 1


def test_values_of_a_foreign_type_are_an_error_that_names_the_run(run):
    facts = json.loads((run.path / "run.json").read_text())
    change(run, "run.json", json.dumps(facts | {"duration_s": "long"}))
    with pytest.raises(RunFolderError, match=f"cannot be read as a run: {re.escape(str(run.path))}"):
        kvstudy.load(run.path, check=False)


def test_what_is_no_run_says_what_one_is(run, tmp_path):
    with pytest.raises(RunFolderError, match="no such folder"):
        kvstudy.load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotSealed, match="no sealed run here"):
        kvstudy.load(tmp_path / "empty")
    (run.path / "SHA256SUMS").unlink()
    with pytest.raises(KvstudyError, match="not a sealed run"):
        kvstudy.load(run.path)
