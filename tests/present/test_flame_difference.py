"""Differences of profiles; that the page works is tested in a browser."""

import pandas as pd
import pytest
from sample import empty_tables

from kvstudy.errors import KvstudyError
from kvstudy.present.flame_difference import between, difference, difference_page
from kvstudy.present.stack_tree import StackTree


def tree(*stacks) -> StackTree:
    return StackTree.of(pd.DataFrame(stacks, columns=["stack", "samples"]), 0)


def test_a_frame_holds_its_callees_and_itself():
    made = tree(("a;b", 60), ("a;c", 30), ("a", 10))
    assert made.sums == {("a",): 100, ("a", "b"): 60, ("a", "c"): 30}
    assert made.own_shares() == {"a": 0.1, "b": 0.6, "c": 0.3}
    assert made.share(("a", "b")) == 0.6 and made.share(("x",)) == 0


def test_a_page_of_another_converter_is_refused_and_not_half_changed():
    with pytest.raises(KvstudyError, match="0 places like"):
        difference_page("<html><h1>cpu</h1></html>", tree(("a", 1)), tree(("a", 1)), "title")


def test_without_profiles_of_both_sides_it_says_what_to_measure():
    assert "profile: [cpu, alloc]" in difference(empty_tables(), "label", "before", "after").data
    assert "the slow seconds" in between(empty_tables(), "cpu", "cpu_slow").data
