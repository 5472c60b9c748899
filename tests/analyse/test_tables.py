import shutil

import numpy as np
import pandas as pd
import pytest

from kvstudy.analyse import schema, tables
from kvstudy.analyse.tidy import stored
from kvstudy.errors import KvstudyError


def build(make_run, tidy):
    tables.rebuild([make_run.root], tidy, progress=False)
    return tables.load(tidy)


def test_every_sealed_run_is_in_the_tables_and_no_other(make_run, tmp_path):
    make_run("b", label="after")
    make_run("a", outcome="failed: stopped")
    make_run("c", experiment="other", profile=["cpu"], stacks={"cpu": "x;y 5\n"})
    shutil.copytree(make_run.root / "rates" / "a", make_run.root / "rates" / "d.partial")
    (make_run.root / "rates" / "unsealed").mkdir()
    found = build(make_run, tmp_path / "tidy")
    assert found.runs["run_id"].tolist() == ["a", "b", "c"]
    assert found.runs["verdict"].tolist() == ["FAIL", "PASS", "WARN"], "how long c was profiled is not noted"
    for name in schema.TABLES:
        frame = getattr(found, name)
        assert list(frame.columns) == schema.names(name)
        assert frame.dtypes.astype(str).tolist() == [column.dtype for column in schema.TABLES[name]]
    assert found.folders["b"].name == "b" and (found.folders["b"] / "SHA256SUMS").exists()


def test_no_runs_give_empty_tables(make_run, tmp_path):
    make_run.root.mkdir()
    found = build(make_run, tmp_path / "tidy")
    for name in schema.TABLES:
        pd.testing.assert_frame_equal(getattr(found, name), schema.empty(name))


def test_selecting_runs_selects_their_rows_everywhere(make_run, tmp_path):
    make_run("a", label="before")
    make_run("b", label="after")
    make_run("c", label="other")
    found = build(make_run, tmp_path / "tidy").select(label=["before", "after"])
    assert found.runs["run_id"].tolist() == ["a", "b"]
    assert (
        set(found.intervals["run_id"])
        == set(found.percentiles["run_id"])
        == set(found.validity["run_id"])
        == {"a", "b"}
    )


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, np.array, pd.Series, pd.Index, dict.fromkeys])
def test_several_values_select_the_runs_of_each_whatever_holds_them(make_run, tmp_path, kind):
    for label in ("before", "after", "other"):
        make_run(label, label=label)
    found = build(make_run, tmp_path / "tidy")
    assert found.select(label=kind(["other", "before"])).runs["run_id"].tolist() == ["before", "other"]
    assert found.select(label=kind(["after"])).runs["run_id"].tolist() == ["after"]
    assert found.select(label=None).runs["run_id"].tolist() == ["after", "before", "other"]


def test_a_table_is_read_when_it_is_looked_at_and_of_the_selected_runs_alone(make_run, tmp_path, monkeypatch):
    for run_id, experiment in (("a", "rates"), ("b", "tail"), ("c", "tail")):
        make_run(run_id, experiment=experiment)
    read, real = [], stored.part.read
    monkeypatch.setattr(
        stored.part,
        "read",
        lambda file, table, columns: (
            read.append((file.parts[-3], table, columns)) or real(file, table, columns)
        ),
    )
    found = build(make_run, tmp_path / "tidy")
    assert {table for _, table, _ in read} == {"runs"}
    read.clear()
    tail = found.select(experiment="tail").believed().but(source="another")
    assert read == []
    assert set(tail.validity["run_id"]) == {"b", "c"} and tail.columns(
        "intervals", "second", "count"
    ).columns.tolist() == ["second", "count"]
    assert set(read) == {("tail", "validity", None), ("tail", "intervals", ("run_id", "second", "count"))}


def test_rows_are_the_same_whether_they_were_read_before_they_were_selected_or_after(make_run, tmp_path):
    for run_id, experiment in (("d", "rates"), ("b", "tail"), ("c", "tail"), ("a", "wal")):
        make_run(run_id, experiment=experiment, stacks={"cpu": f"x;{run_id} 5\ny 1\n"})
    before, after = build(make_run, tmp_path / "tidy"), tables.load(tmp_path / "tidy")
    for name in schema.TABLES:
        assert getattr(before, name)["run_id"].is_monotonic_increasing
    for wanted in (["d", "b", "a"], ["c"], []):
        for name in schema.TABLES:
            pd.testing.assert_frame_equal(
                getattr(before.only(wanted), name), getattr(after.only(wanted), name)
            )


def test_what_was_selected_twice_from_rows_that_were_read_is_what_both_selected(make_run, tmp_path):
    for run_id, experiment in (("d", "rates"), ("b", "tail"), ("c", "tail"), ("a", "wal")):
        make_run(run_id, experiment=experiment, stacks={"cpu": f"x;{run_id} 5\ny 1\n"})
    found = build(make_run, tmp_path / "tidy")
    for name in schema.TABLES:
        getattr(found, name)  # read
    tail = found.select(experiment="tail")
    for wanted in (["d", "b"], ["c", "b"], ["a"]):
        twice, kept = tail.only(wanted), set(wanted) & {"b", "c"}
        for name in schema.TABLES:
            rows = getattr(found, name)
            expected = rows[rows["run_id"].isin(kept)].reset_index(drop=True)
            if name != "runs":
                pd.testing.assert_frame_equal(twice.columns(name, "run_id"), expected[["run_id"]])
            pd.testing.assert_frame_equal(getattr(twice, name), expected)


def test_failed_and_profiled_runs_are_not_believed(make_run, tmp_path):
    make_run("a")
    make_run("b", offered_rate_rps=4000)
    make_run("c", profile=["cpu"])
    assert build(make_run, tmp_path / "tidy").believed().runs["run_id"].tolist() == ["a"]


def test_the_readers_own_runs_come_before_the_reference_runs(make_run, tmp_path):
    data = tmp_path / "data"
    make_run.root = data / "reference"
    make_run("a", experiment="rates")
    make_run("b", experiment="tail")
    assert tables.study_tables(data, "rates").source == "data/reference"
    make_run.root = data / "raw"
    make_run("c", experiment="rates")
    own = tables.study_tables(data, "rates")
    assert (own.source, own.runs["run_id"].tolist()) == ("data/raw", ["c"])
    assert (own.own, own.own_runs, tables.study_tables(data).own_runs) == (frozenset("c"), 1, 1)
    assert tables.study_tables(data, "tail").runs["run_id"].tolist() == ["b"]
    both = tables.study_tables(data)
    assert (both.source, both.runs["run_id"].tolist()) == ("data/raw (rates) and data/reference", ["b", "c"])


def test_smoke_runs_take_nobodys_place(make_run, tmp_path):
    data = tmp_path / "data"
    make_run.root = data / "reference"
    make_run("a", experiment="rates")
    make_run.root = data / "raw"
    make_run("b", experiment="rates", profile_name="smoke")  # as older runs say it
    make_run("c", experiment="tail", preset="smoke")
    found = tables.study_tables(data)
    assert (found.source, found.runs["run_id"].tolist()) == ("data/raw (tail) and data/reference", ["a", "c"])
    assert (found.smoke_shown, found.smoke_hidden) == (("tail",), ("rates",))
    assert tables.study_tables(data, "rates", places=tables.ALL_OWN).runs["run_id"].tolist() == ["b"]
    make_run("d", experiment="rates", preset="quick")
    own = tables.study_tables(data, "rates")
    assert (own.source, own.runs["run_id"].tolist(), own.smoke_hidden) == ("data/raw", ["d"], ("rates",))


def test_the_reference_alone_can_be_asked_for_whatever_was_measured_since(make_run, tmp_path):
    data = tmp_path / "data"
    for place in ("raw", "reference"):
        make_run.root = data / place
        make_run("a", experiment="rates")  # published from here
    make_run("b", experiment="rates")
    make_run.root = data / "raw"
    make_run("c", experiment="rates")
    alone = tables.study_tables(data, places=tables.REFERENCE_ALONE)
    assert (alone.source, alone.runs["run_id"].tolist()) == ("data/reference", ["a", "b"])
    assert alone.own_runs == 0


def test_the_reference_is_read_from_its_own_copies_where_the_originals_are_there_too(make_run, tmp_path):
    data = tmp_path / "data"
    make_run.root = data / "reference"
    make_run("a", label="copy")
    make_run.root = data / "raw"
    make_run("a", label="original")
    for _ in range(2):
        alone = tables.study_tables(data, places=tables.REFERENCE_ALONE)
        assert alone.runs["label"].tolist() == ["copy"] and alone.source == "data/reference"
        assert alone.folders["a"] == data / "reference" / "rates" / "a"
        assert tables.study_tables(data).runs["label"].tolist() == ["original"]


def test_tables_that_are_joined_have_the_runs_of_both_once(make_run, tmp_path):
    make_run("a")
    make_run("b", offered_rate_rps=4000)
    found = build(make_run, tmp_path / "tidy")
    one, other = found.only(["a"]), found.only(["b"])
    both = one.joined(other).joined(one)
    assert both.runs["run_id"].tolist() == ["a", "b"]
    assert set(both.percentiles["run_id"]) == {"a", "b"} and set(one.percentiles["run_id"]) == {"a"}
    assert len(one.joined(other).percentiles) == len(found.percentiles)  # of tables that were read before


def test_without_a_run_it_is_said_how_to_get_one(tmp_path):
    with pytest.raises(KvstudyError, match="kvstudy run experiments/rates.yaml"):
        tables.study_tables(tmp_path, "rates")
    with pytest.raises(KvstudyError, match="run: kvstudy tables"):
        tables.load(tmp_path)


def test_an_experiment_without_a_run_beside_others_is_said_to_have_none(make_run, tmp_path):
    data = tmp_path / "data"
    make_run.root = data / "raw"
    make_run("a", experiment="tail")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "rates.yaml").touch()
    with pytest.raises(KvstudyError, match="kvstudy run experiments/rates.yaml"):
        tables.study_tables(data, "rates")
    for typed, hint in (
        ("tial", "did you mean tail[?]"),
        ("ratse", "did you mean rates[?]"),
        ("", "measured: tail"),
    ):
        with pytest.raises(KvstudyError, match=hint):
            tables.study_tables(data, experiment=typed)


@pytest.mark.parametrize("text", ["{", '{"schema_version": 99}'], ids=["cut", "newer"])
def test_a_run_of_which_nothing_can_be_told_takes_no_other_away(make_run, tmp_path, text):
    make_run.root = tmp_path / "data" / "raw"
    _, damaged = make_run("b"), make_run("a")
    (damaged.path / "run.json").unlink()
    (damaged.path / "run.json").write_text(text)
    assert tables.study_tables(tmp_path / "data", "rates").runs["run_id"].tolist() == ["b"]
    with pytest.raises(KvstudyError, match="no sealed run of tail") as told:
        tables.study_tables(tmp_path / "data", "tail")
    assert told.value.hint == "measured: rates"


def test_runs_behind_a_link_to_what_is_not_there_are_missed_and_no_others_are_shown_for_them(
    make_run, tmp_path
):
    data = tmp_path / "data"
    make_run.root = data / "reference"
    make_run("b")
    (data / "raw").symlink_to(tmp_path / "not mounted")
    for experiment in ("rates", None):
        with pytest.raises(KvstudyError, match="link to what is not there: .*data/raw"):
            tables.study_tables(data, experiment)
