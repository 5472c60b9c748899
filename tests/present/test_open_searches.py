"""A search that met no rate that is too much says *at least*: it reproduces no number, and no ratio, that it
leaves open."""

import math
from types import SimpleNamespace

from kvstudy.analyse.comparison.words import CANNOT_TELL
from kvstudy.analyse.replication import verdicts
from kvstudy.analyse.replication.measured import Measured, Rule
from kvstudy.analyse.replication.measures import ratio_of

OPEN = Measured(28_000.0, 28_000.0, math.nan, 3, trials=True)


def verdict(published: float, measured: Measured) -> str:
    return verdicts.verdict(
        SimpleNamespace(claim="r", mistaken="no", value=published), Rule(lambda _: measured), measured
    )


def test_at_least_so_much_reproduces_no_rate_and_refutes_a_low_one():
    assert verdict(15_000.0, OPEN) == CANNOT_TELL
    assert verdict(8_500.0, OPEN) == verdicts.NOT_REPRODUCED


def test_two_open_searches_say_nothing_of_their_ratio():
    assert verdict(0.5, ratio_of(OPEN, OPEN)) == CANNOT_TELL
