"""What does each option do? Each value against the default: what its duet says (``analyse.option_duets``), or
independent runs at the highest rate and most connections that both were measured at."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from kvstudy.analyse.answers import RULER, Answer, unanswered
from kvstudy.analyse.claim import DUET, Claim, comparison_claim
from kvstudy.analyse.comparison.words import CANNOT_TELL
from kvstudy.analyse.duets import Duet
from kvstudy.analyse.option_duets import BY_DUET, with_duets
from kvstudy.analyse.options import (
    OF_OTHER_PAGES,
    QUESTION,
    Tally,
    at_highest_rate,
    compared_options,
    count_runs,
    of_sizes,
    tally,
    varied_of,
)
from kvstudy.analyse.tables import Tables


def standing(tables: Tables, reference: Tables | None) -> tuple[Tables, dict[str, Answer]]:
    """``tables``, with the runs of ``reference`` in the place of the reader's own wherever these decide
    fewer comparisons of an experiment; and of each such experiment what his own runs say.

    Corrected for how many they are together, the words of such a mixture are false at most as often as those
    of both families together, 10 %: each comparison has two chances at most (docs/rules.md, "Words")."""
    return (tables, {}) if reference is None else tables.cached(_standing, reference)


def _standing(tables: Tables, reference: Tables) -> tuple[Tables, dict[str, Answer]]:
    own_runs = tables.runs.loc[tables.runs["run_id"].isin(tables.own), "experiment"]
    own, theirs = _by_experiment(tables), _by_experiment(reference)
    less = {
        name: own.get(name, Answer((), 0))
        for name in sorted(set(own_runs) & set(theirs))
        if theirs[name].decides > own.get(name, Answer((), 0)).decides
    }
    kept = tables.only(tables.runs.loc[~tables.runs["experiment"].isin(less), "run_id"])
    return kept.joined(reference.select(experiment=list(less))), less


def _by_experiment(tables: Tables) -> dict[str, Answer]:
    """Every comparison of each experiment, decided or not."""
    rows = _compared(tables)
    return {
        str(name): Answer(_claims(mine), count_runs(tables, mine))
        for name, mine in rows.groupby("experiment")
    }


def every(tables: Tables, duets: Sequence[Duet] = ()) -> pd.DataFrame:
    """Rows of ``compared_options`` at every rate, with those of ``duets`` (``option_duets.with_duets``) in
    the place of what they answer; ``tables`` as ``standing`` gives them."""
    own = tables.runs.loc[tables.runs["run_id"].isin(tables.own), "experiment"].unique()
    return with_duets(tables.cached(compared_options), duets, own)


def decided(tables: Tables, duets: Sequence[Duet] = ()) -> dict[str, Answer]:
    """Experiment → what is decided of its options. One whose runs are all of one side, or do not count, has
    an Answer without claims; one in which nothing is decided is left out (``undecided``)."""
    compared, found = _compared(tables, duets), {}
    measured = {*tables.runs["experiment"], *compared["experiment"]}
    for experiment in sorted(measured - set(RULER) - OF_OTHER_PAGES):
        rows = compared[(compared["experiment"] == experiment)]
        mine = rows[rows["word"] != CANNOT_TELL]
        if len(mine):
            found[experiment] = _answer(tables, mine)
        elif rows.empty and tables.cached(varied_of, experiment) is not None:
            silent = unanswered(tables.select(experiment=experiment))
            found |= {experiment: silent} if silent is not None else {}
    return found


def undecided(tables: Tables, duets: Sequence[Duet] = ()) -> tuple[Answer, dict[str, int]]:
    """The comparisons that decide nothing, and of each experiment how many comparisons there are in all."""
    compared = _compared(tables, duets)
    rows = compared[compared["word"] == CANNOT_TELL]
    counts = {str(name): int(count) for name, count in compared["experiment"].value_counts().items()}
    return _answer(tables, rows) if len(rows) else Answer((), 0), counts


def tallied(tables: Tables, duets: Sequence[Duet] = ()) -> Tally:
    """Of ``decided`` and ``undecided`` together."""
    return tally(_compared(tables, duets))


def count_launches(tables: Tables, duets: Sequence[Duet] = ()) -> int:
    """Of every duet of an option that answers something, or leaves it open, each once."""
    compared = _compared(tables, duets)
    return _launches(compared[~of_sizes(compared)])


def whose(tables: Tables, duets: Sequence[Duet], experiment: str) -> set[bool]:
    """Of what is decided of an experiment: whether it is the reader's own; both where some is and some is
    not."""
    rows = _compared(tables, duets)
    rows = rows[(rows["experiment"] == experiment) & (rows["word"] != CANNOT_TELL)]
    return {bool(own) for own in rows["is_own"]}


def beside(tables: Tables, duets: Sequence[Duet], experiment: str) -> list[str]:
    """What a duet of the experiment leaves open that others decide, and what others say that gave way to
    another word, each once."""
    rows = _compared(tables, duets)
    return list(dict.fromkeys(filter(None, rows.loc[rows["experiment"] == experiment, "beside"])))


def _answer(tables: Tables, rows: pd.DataFrame) -> Answer:
    of_runs = rows[rows["by"] != BY_DUET]
    runs = count_runs(tables, of_runs) if len(of_runs) else 0
    return Answer(_claims(rows), runs, launches=_launches(rows))


def _launches(rows: pd.DataFrame) -> int:
    of_duets = rows[rows["by"] == BY_DUET]
    return int(of_duets.groupby([*QUESTION, "is_own"])["runs_before"].max().sum())


def _compared(tables: Tables, duets: Sequence[Duet] = ()) -> pd.DataFrame:
    compared = every(tables, duets)
    return at_highest_rate(compared[~compared["experiment"].isin(RULER)])


def _claims(rows: pd.DataFrame) -> tuple[Claim, ...]:
    # Of runs that share no median, as of two builds, each claim says which it is of.
    names = [
        f"{row.after_name} ({row.differs})" if row.differs else row.after_name for row in rows.itertuples()
    ]
    claims = [
        comparison_claim(row, row.before_name, name, row.experiment)
        for row, name in zip(rows.itertuples(), names, strict=True)
    ]
    return tuple(
        replace(claim, rule=DUET, runs=claim.sides[0]) if by == BY_DUET else claim
        for claim, by in zip(claims, rows["by"], strict=True)
    )
