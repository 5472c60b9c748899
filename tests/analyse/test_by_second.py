"""Intervals put together to seconds: exactly what a log of seconds would have had."""

import numpy as np
import pandas as pd
from run_maker import RunMaker

from kvstudy.analyse import schema
from kvstudy.analyse.by_second import by_second, step_s
from kvstudy.analyse.observation import observe


def intervals(make_run, run_id: str, parts: int) -> pd.DataFrame:
    run = make_run(run_id, seconds=RunMaker.usual_seconds("a"), parts=parts)
    return schema.conform("intervals", pd.DataFrame(observe(run)["intervals"]))


def test_shorter_intervals_of_a_second_are_that_second(make_run):
    quarters, seconds = intervals(make_run, "a", 4), intervals(make_run, "b", 1).assign(run_id="a")
    found = by_second(quarters)
    assert (step_s(quarters), step_s(found), len(found)) == (0.25, 1, 18)
    keys = ["second", "latency_kind"]
    found, seconds = (rows.sort_values(keys, ignore_index=True) for rows in (found, seconds))
    pd.testing.assert_frame_equal(found.drop(columns="histogram"), seconds.drop(columns="histogram"))


def test_rows_of_seconds_come_back_as_they_were_and_beside_shorter_ones(make_run):
    seconds, tenths = intervals(make_run, "a", 1), intervals(make_run, "b", 10)
    assert by_second(seconds) is seconds
    found = by_second(pd.concat([seconds, tenths], ignore_index=True))
    assert found.groupby("run_id").size().to_dict() == {"a": 18, "b": 18}
    assert np.isclose(found["count"].sum(), 2 * seconds["count"].sum())


def test_no_rows_are_no_rows():
    assert by_second(schema.empty("intervals")).empty and step_s(schema.empty("intervals")) == 1
