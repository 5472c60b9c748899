"""Which crew measures what, and who takes over from one that cannot go on."""

import threading
from types import SimpleNamespace

import pytest

from kvstudy.errors import KvstudyError
from kvstudy.measure.side_by_side import side_by_side


def crew(name):
    return SimpleNamespace(names=name, members=())


def test_what_a_crew_left_of_its_last_block_is_measured_by_another_that_had_nothing_more_to_do(capsys):
    measured, begun, other_is_done = [], threading.Event(), threading.Event()

    def measure(block, by):
        if by.names == "a":
            measured.append(("a", block[0]))
            begun.set()
            other_is_done.wait(10)
            raise KvstudyError("host a is lost")
        begun.wait(10)
        measured.extend(("b", run) for run in block)
        other_is_done.set()

    def unmeasured(block):
        return [run for run in block if run not in {run for _, run in measured}]

    with pytest.raises(KvstudyError, match="host a is lost"):
        side_by_side([[1, 2, 3], [4, 5]], [crew("a"), crew("b")], measure, unmeasured)
    assert sorted(run for _, run in measured) == [1, 2, 3, 4, 5]
    assert len([by for by, _ in measured if by == "a"]) == 1
    assert "hosts a measure no more: host a is lost" in capsys.readouterr().err


def test_when_no_crew_is_left_it_ends_with_what_happened_first():
    def measure(block, by):
        raise KvstudyError("host is lost")

    with pytest.raises(KvstudyError, match="host is lost"):
        side_by_side([[1], [2], [3]], [crew("a"), crew("b")], measure, lambda block: block)
