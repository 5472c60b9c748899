"""What does each option do? Each value against the default: what its duet says (``analyse.option_duets``), or
independent runs at the highest rate and most connections that both were measured at."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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


@dataclass(frozen=True, eq=False)
class Standing:
    """``tables``: of each experiment the runs whose comparisons are told; ``compared``: these, as
    ``compared_options`` has them; ``less``: of each experiment of which the reference decides more, what the
    reader's own runs say."""

    tables: Tables
    compared: pd.DataFrame
    less: dict[str, Answer]

    @property
    def own_experiments(self) -> set[str]:
        return set(self.tables.runs.loc[self.tables.runs["run_id"].isin(self.tables.own), "experiment"])


def standing(tables: Tables, reference: Tables | None = None) -> Standing:
    """``tables``, with the runs of ``reference`` in the place of the reader's own wherever these decide
    fewer comparisons of an experiment.

    Each comparison keeps the word that it has among all of ``tables``, or all of ``reference``: corrected
    anew, those that are left would have a third chance of a false word."""
    if reference is None:
        return Standing(tables, tables.cached(compared_options), {})
    return tables.cached(_standing, reference)


def _standing(tables: Tables, reference: Tables) -> Standing:
    mine, theirs = standing(tables), standing(reference)
    own, of_reference = _by_experiment(mine), _by_experiment(theirs)
    less = {
        name: own.get(name, Answer((), 0))
        for name in sorted(mine.own_experiments & set(of_reference))
        if of_reference[name].decides > own.get(name, Answer((), 0)).decides
    }
    kept = tables.only(tables.runs.loc[~tables.runs["experiment"].isin(less), "run_id"])
    rows = [
        mine.compared[~mine.compared["experiment"].isin(less)],
        theirs.compared[theirs.compared["experiment"].isin(less)],
    ]
    told = pd.concat([part for part in rows if len(part)] or rows[:1])
    return Standing(
        kept.joined(reference.select(experiment=list(less))),
        told.sort_values("experiment", kind="stable", ignore_index=True),
        less,
    )


def _by_experiment(found: Standing) -> dict[str, Answer]:
    """Every comparison of each experiment, decided or not."""
    rows = _compared(found)
    return {
        str(name): Answer(_claims(mine), count_runs(found.tables, mine))
        for name, mine in rows.groupby("experiment")
    }


def every(found: Standing, duets: Sequence[Duet] = ()) -> pd.DataFrame:
    """Rows of ``compared_options`` at every rate, with those of ``duets`` (``option_duets.with_duets``) in
    the place of what they answer."""
    return with_duets(found.compared, duets, found.own_experiments)


def decided(found: Standing, duets: Sequence[Duet] = ()) -> dict[str, Answer]:
    """Experiment → what is decided of its options. One whose runs are all of one side, or do not count, has
    an Answer without claims; one in which nothing is decided is left out (``undecided``)."""
    tables, compared, answers = found.tables, _compared(found, duets), {}
    measured = {*tables.runs["experiment"], *compared["experiment"]}
    for experiment in sorted(measured - set(RULER) - OF_OTHER_PAGES):
        rows = compared[(compared["experiment"] == experiment)]
        mine = rows[rows["word"] != CANNOT_TELL]
        if len(mine):
            answers[experiment] = _answer(tables, mine)
        elif rows.empty and tables.cached(varied_of, experiment) is not None:
            silent = unanswered(tables.select(experiment=experiment))
            answers |= {experiment: silent} if silent is not None else {}
    return answers


def undecided(found: Standing, duets: Sequence[Duet] = ()) -> tuple[Answer, dict[str, int]]:
    """The comparisons that decide nothing, and of each experiment how many comparisons there are in all."""
    compared = _compared(found, duets)
    rows = compared[compared["word"] == CANNOT_TELL]
    counts = {str(name): int(count) for name, count in compared["experiment"].value_counts().items()}
    return _answer(found.tables, rows) if len(rows) else Answer((), 0), counts


def tallied(found: Standing, duets: Sequence[Duet] = ()) -> Tally:
    """Of ``decided`` and ``undecided`` together."""
    return tally(_compared(found, duets))


def count_launches(found: Standing, duets: Sequence[Duet] = ()) -> tuple[int, int]:
    """Of every duet of an option that answers something, or leaves it open, each once; and how many of these
    are the reader's own."""
    compared = _compared(found, duets)
    of_options = compared[~of_sizes(compared)]
    return _launches(of_options), _launches(of_options[of_options["is_own"].astype(bool)])


def whose(found: Standing, duets: Sequence[Duet], experiment: str) -> set[bool]:
    """Of what is decided of an experiment: whether it is the reader's own; both where some is and some is
    not."""
    rows = _compared(found, duets)
    rows = rows[(rows["experiment"] == experiment) & (rows["word"] != CANNOT_TELL)]
    return {bool(own) for own in rows["is_own"]}


def beside(found: Standing, duets: Sequence[Duet], experiment: str) -> list[str]:
    """What a duet of the experiment leaves open that others decide, and what others say that gave way to
    another word, each once."""
    rows = _compared(found, duets)
    return list(dict.fromkeys(filter(None, rows.loc[rows["experiment"] == experiment, "beside"])))


def _answer(tables: Tables, rows: pd.DataFrame) -> Answer:
    of_runs = rows[rows["by"] != BY_DUET]
    runs = count_runs(tables, of_runs) if len(of_runs) else 0
    return Answer(_claims(rows), runs, launches=_launches(rows))


def _launches(rows: pd.DataFrame) -> int:
    of_duets = rows[rows["by"] == BY_DUET]
    return int(of_duets.groupby([*QUESTION, "is_own"])["runs_before"].max().sum())


def _compared(found: Standing, duets: Sequence[Duet] = ()) -> pd.DataFrame:
    compared = every(found, duets)
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
