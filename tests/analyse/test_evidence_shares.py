"""What of the measured window the machine's load is known of."""

import numpy as np
import pytest

from kvstudy.analyse.evidence import shares


def series(seconds, interval_s, foreign):
    return {
        "second": np.array(seconds, dtype=float),
        "interval_s": np.array(interval_s, dtype=float),
        "foreign_cpu_share": np.array(foreign, dtype=float),
        "service_cpu_s": np.array(interval_s, dtype=float) / 2,
    }


def test_rows_of_every_second_are_of_the_whole_window():
    found = shares(series(range(-2, 6), [1] * 8, [0.9] * 2 + [0.1] * 6), 6.0)
    assert found["sampled_share"] == 1.0 and found["foreign_share"] == pytest.approx(0.1)
    assert found["service_cpu_share"] == pytest.approx(0.5)


def test_seconds_without_a_row_are_not_taken_for_quiet_ones():
    """Foreign load from second 3 on, and nothing was read any more."""
    assert shares(series(range(3), [1] * 3, [0.0] * 3), 5.0)["sampled_share"] == pytest.approx(0.6)


def test_a_row_that_was_read_late_counts_for_what_of_it_is_in_the_window():
    """It ends a second behind the window, and began two seconds before its end."""
    found = shares(series([0, 1, 2, 5], [1, 1, 1, 3], [0.0, 0.0, 0.0, 0.5]), 5.0)
    assert found["sampled_share"] == 1.0
    assert found["foreign_share"] == pytest.approx(0.5 * 2 / 5)
    assert found["service_cpu_share"] == pytest.approx(0.5)


def test_a_row_over_the_begin_of_the_window_counts_from_there_on_where_its_end_was_noted():
    rows = series([0, 1, 2, 3, 4], [2.3, 0.7, 1, 1, 1], [0.5, 0, 0, 0, 0])
    found = shares(rows | {"ended_s": np.array([1.3, 2.0, 3.0, 4.0, 5.0])}, 5.0)
    assert found["sampled_share"] == 1.0 and found["foreign_share"] == pytest.approx(0.5 * 1.3 / 5)


def test_a_window_that_nothing_is_known_of_has_no_shares():
    assert shares(series([-2, -1], [1, 1], [0.5, 0.5]), 5.0) == {}


def test_nobody_uses_more_than_all_of_the_cpu():
    """On a busy machine a process is read later than its row begins, and counted for longer."""
    assert shares(series(range(3), [1] * 3, [1.02, 1.1, 1.0]), 3.0)["foreign_share"] == 1.0
