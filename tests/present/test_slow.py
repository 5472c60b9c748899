"""The charts of the tail: what is linked to slow answers, and on which second."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sample import empty_tables, keep, sample_tables

from kvstudy.analyse import tail
from kvstudy.present import theme
from kvstudy.present.figures.tail import causes, slow_time_line
from kvstudy.present.summary import causes as causes_told
from kvstudy.present.summary import slowest_seconds


@pytest.fixture(scope="module")
def planted():
    """Twenty seconds a run; the third is slow, and so is the collector in it."""
    tables = keep(sample_tables(rates=(4000.0,), connections=(4,), repeats=5, seconds=20, profiled=False), lambda run: True)
    return replace(tables, events=tables.events.assign(duration_ms=lambda event: np.where(event["kind"] == "gc_pause", 60.0, 0.01)))


def test_a_planted_cause_is_named_in_the_title_and_coloured(planted):
    limit_us = tail.threshold_us(planted, 99)
    figure = causes(tail.causes(planted, limit_us), limit_us)
    assert "linked to gc pause" in figure.layout.meta["finding"]
    bars = figure.data[0]
    assert dict(zip(bars.y, bars.marker.color, strict=True))["gc pause"] == theme.VERMILION


def test_chance_is_marked_beside_every_cause(planted):
    limit_us = tail.threshold_us(planted, 99)
    chance = next(trace for trace in causes(tail.causes(planted, limit_us), limit_us).data if trace.name == "by chance")
    assert list(chance.y) == ["gc pause"]
    assert chance.x[0] == pytest.approx(1 / 20, abs=0.01)


def test_slow_seconds_and_events_stand_on_one_clock(planted):
    limit_us = tail.threshold_us(planted, 99)
    figure = slow_time_line(planted, limit_us)
    dots = next(trace for trace in figure.data if trace.name == "slow answers")
    bars = next(trace for trace in figure.data if trace.name == "gc pause")
    assert 3.5 in dots.x and 3.2 in bars.x
    assert "FAIL" not in "".join(dots.text)


def test_the_tables_name_what_ran_in_the_slowest_seconds(planted):
    limit_us = tail.threshold_us(planted, 99)
    first = slowest_seconds(planted, limit_us).iloc[0]
    assert first["second"] == 3 and "gc pause 60.0 ms" in first["in that second"]
    assert causes_told(tail.causes(planted, limit_us))["event"].iloc[-1] == tail.NO_EVENT


def test_without_slow_answers_the_charts_say_so():
    empty = empty_tables()
    assert "Nothing to draw" in causes(tail.causes(empty, np.inf), np.inf).layout.title.text
    assert "Nothing to draw" in slow_time_line(empty, np.inf).layout.title.text
    assert isinstance(slowest_seconds(empty, np.inf), pd.DataFrame)
