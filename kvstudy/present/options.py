"""How an option and its default are called, and the table of every option; what they do is
``analyse.options`` and, of duets, ``analyse.option_duets``.

every(tables, reference, measured_duets())          a row per value and measure, each of a duet or of runs
instead("handler=selector", "handler=workers")      "handler=workers instead of selector"
"""

from collections.abc import Sequence

import pandas as pd

from kvstudy import workers
from kvstudy.analyse import duets as analysed
from kvstudy.analyse.answers import options
from kvstudy.analyse.duets import Duet
from kvstudy.analyse.option_duets import option_duets
from kvstudy.analyse.options import parts_of
from kvstudy.analyse.tables import Tables, study_duets

__all__ = ["every", "instead", "measured_duets"]


def measured_duets() -> list[Duet]:
    """The duets of options, the reader's own and committed ones."""
    return option_duets(analysed.duets(study_duets(progress=False, spread=workers.processes)))


def every(
    tables: Tables, reference: Tables | None, duets: Sequence[Duet] = (), experiment: str | None = None
) -> pd.DataFrame:
    """``options.every`` of ``tables``, with the reference's runs of every experiment of which the reader's
    own decide less; ``experiment``: the rows of that one alone."""
    rows = options.every(options.standing(tables, reference), duets)
    return rows if experiment is None or rows.empty else rows[rows["experiment"] == experiment]


def instead(before: str, after: str) -> str:
    """A value beside the default that it replaces; of several parts both whole."""
    first, second = parts_of(before), parts_of(after)
    alone = len(first) == 1 and first.keys() == second.keys()
    return f"{after} instead of {next(iter(first.values())) if alone else before}"
