"""The permutation behind *linked*: exact where it can be counted, and blind to what every repeat does at the
same moment."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from kvstudy.analyse import linked, permutation, tables, tail
from kvstudy.analyse.permutation import Repeats

REFERENCE = Path(__file__).parents[2] / "data" / "reference" / "reproduce"


def bins(*places, length: int = 60) -> np.ndarray:
    found = np.zeros(length)
    found[list(places)] = 10.0
    return found


def test_a_p_value_is_the_share_of_all_orders_that_align_as_well():
    """Three repeats, each with its events where it is slow: of six orders only the observed one aligns as
    well."""
    group = Repeats(tuple(bins(place) for place in (3, 20, 41)), tuple(bins(place) for place in (3, 20, 41)))
    assert permutation.exchanged_p([group.aligned()], 60_000, np.random.default_rng(1)) == pytest.approx(
        1 / 6, abs=0.01
    )
    assert permutation.smallest_p([group]) == pytest.approx(1 / 6)
    assert permutation.smallest_p([group, group]) == pytest.approx(1 / 36)


def test_p_is_never_zero():
    group = Repeats(tuple(bins(4 * run) for run in range(12)), tuple(bins(4 * run) for run in range(12)))
    assert permutation.exchanged_p([group.aligned()], 99, np.random.default_rng(1)) == 0.01


def test_repeats_in_step_can_be_told_from_repeats_that_are_not():
    same = Repeats((bins(5),) * 4, (bins(5, 25, 50),) * 4)
    apart = Repeats((bins(5),) * 4, tuple(bins(5 + run, 25 + run, 50 + run) for run in range(4)))
    assert permutation.in_step([same]) == 1 and permutation.in_step([apart]) == 0


def test_repeats_that_lasted_differently_are_compared_where_both_have_something():
    group = Repeats((bins(5), bins(5, length=61)), (bins(5), bins(60, length=61)))
    assert group.aligned().tolist() == [[math.sqrt(10), 0], [math.sqrt(10), 0]]


def test_a_slow_repeat_among_repeats_in_step_is_no_link():
    """All six have their events and their slow answers at the same moments; in some both are many times as
    long."""
    rhythm, severity = bins(5, 25, 45), (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    group = Repeats(
        tuple(rhythm * factor for factor in severity), tuple(rhythm * factor for factor in severity)
    )
    assert permutation.exchanged_p([group.aligned()], 999, np.random.default_rng(1)) == 1


def test_a_run_that_was_bad_from_end_to_end_links_nothing():
    """One repeat of six has long events and slow answers all the time, at moments that have nothing to do
    with each other."""
    generator = np.random.default_rng(8)
    wrong = 0
    for _ in range(100):
        slow, felt = (
            [np.where(generator.random(500) < (0.4 if run == 0 else 0.02), 10.0, 0.0) for run in range(6)]
            for _ in range(2)
        )
        question = linked.Question((Repeats(tuple(slow), tuple(felt)),), 600)
        wrong += (
            linked.judge({"flush": question}, 199, int(generator.integers(1000)))["flush"].word
            == linked.LINKED
        )
    assert wrong <= 10


def test_a_bad_spell_of_each_run_links_nothing_that_merely_falls_into_it():
    """Six repeats, each with five bad seconds at another time: slow answers and events fall into them, by
    chance together."""
    generator = np.random.default_rng(9)
    wrong = 0
    for _ in range(60):
        slow, felt = [], []
        for begin in generator.integers(0, 2500, 6):
            for runs in (slow, felt):
                run = np.zeros(3000)
                for place in begin + generator.integers(0, 480, 8):
                    run[place : place + 20] += 10
                runs.append(run)
        question = linked.Question((Repeats(tuple(slow), tuple(felt)),), 48)
        asked = {"flush": question}
        wrong += linked.judge(asked, 199, int(generator.integers(1000)))["flush"].word == linked.LINKED
    assert wrong <= 8


@pytest.fixture(scope="module")
def unique_put(tmp_path_factory):
    """The committed runs of unique PUT at 20 000/s: every repeat begins alike."""
    root = tmp_path_factory.mktemp("runs")
    for run in sorted(REFERENCE.glob("*-unique-put-*-r20000-rep?")):
        shutil.copytree(run, root / "raw" / "reproduce" / run.name)
    tables.rebuild([root / "raw"], root / "tidy", progress=False)
    return tables.load(root / "tidy").believed()


def test_compaction_of_runs_out_of_step_is_told_apart_from_the_start_of_the_run(unique_put):
    """``head_start`` puts them out of step, so that the events of other repeats at the same moment explain
    nothing. Before a word is said of it five events a window are needed all the same."""
    questions, generator = (
        tail._questions(unique_put, tail.threshold_us(unique_put)),
        np.random.default_rng(1),
    )
    for kind in ("compaction", "flush"):
        groups = [group for group in questions[kind].groups if group.is_informative]
        assert permutation.in_step(groups) <= linked.IN_STEP, kind
    groups = [group for group in questions["compaction"].groups if group.is_informative]
    slow, felt = ([run for group in groups for run in getattr(group, side)] for side in ("slow", "felt_ms"))
    assert permutation.shifted_p(slow, felt, 999, generator) == 0.001
    assert permutation.exchanged_p([group.aligned() for group in groups], 9999, generator) < 0.05
    assert set(tail.causes(unique_put, tail.threshold_us(unique_put))["word"]) == {tail.CANNOT_TELL, ""}
