"""Rows on disk, read after others have changed them, by columns, and by another program."""

import pandas as pd
import pyarrow.dataset as ds
import pytest

from kvstudy.analyse import schema, tables
from kvstudy.analyse.tidy.stored import Stored
from kvstudy.errors import KvstudyError


@pytest.fixture
def built(make_run, tmp_path):
    """Builds the tables and gives their folder."""

    def build():
        tables.rebuild([make_run.root], tmp_path / "tidy", progress=False)
        return tmp_path / "tidy"

    return build


def test_tables_read_before_a_rebuild_find_their_rows_after_it(make_run, built):
    for run_id in "ac":
        make_run(run_id)
    held, expected = tables.load(built()), tables.load(built())
    assert len(expected.percentiles)
    make_run("b")
    built()
    pd.testing.assert_frame_equal(held.percentiles, expected.percentiles)


def test_rows_of_a_run_that_changed_meanwhile_are_not_mixed_with_its_old_ones(make_run, built, tmp_path):
    held_run = make_run("a")
    held = tables.load(built())
    held_run.path.rename(tmp_path / "old")
    make_run("a", label="again")
    built()
    with pytest.raises(KvstudyError, match="made anew since they were read"):
        _ = held.percentiles


def test_only_the_columns_asked_for_are_there_in_the_order_asked_for(make_run, built):
    make_run("a")
    frame = Stored(built()).frame("intervals", None, ["p99_us", "second"])
    assert frame.dtypes.astype(str).to_dict() == {"p99_us": "float64", "second": "int64"} and len(frame)
    assert Stored(built()).frame("stacks", None, ["samples"]).empty


def test_what_is_kept_in_memory_has_a_bound(make_run, built, monkeypatch):
    for experiment in ("rates", "tail", "wal"):
        make_run(experiment[0], experiment=experiment)
    stored = Stored(built())
    size = stored.frame("intervals", ["r"]).shape[0] and next(iter(stored._cache.values())).nbytes
    monkeypatch.setattr("kvstudy.analyse.tidy.stored.CACHE_BYTES", int(1.5 * size))
    assert set(stored.frame("intervals")["run_id"]) == {"r", "t", "w"}
    assert len(stored._cache) == 1 and stored._cached_bytes == sum(
        rows.nbytes for rows in stored._cache.values()
    )


def test_another_program_reads_the_parts_as_a_dataset(make_run, built):
    make_run("a", experiment="rates")
    make_run("b", experiment="tail")
    stored = Stored(built())
    rows = stored.dataset("percentiles").to_table(
        columns=["run_id", "latency_us"], filter=ds.field("percentile") == 50.0
    )
    assert set(rows["run_id"].to_pylist()) == {"a", "b"}
    assert len(stored.dataset("percentiles", ["b"]).files) == 1
    make_run("c", experiment="rates")
    of_one = Stored(built()).dataset("percentiles", ["c"])
    assert len(of_one.files) == 1 and set(of_one.to_table()["run_id"].to_pylist()) == {"c"}
    assert stored.dataset("stacks").schema.names == schema.names("stacks")
