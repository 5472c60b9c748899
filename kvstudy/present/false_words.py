"""How many words of a page would be false if nothing differed: told where its comparisons are.

    of_comparisons(rows)     of ``configuration.comparisons``, with the duets among them (column ``by``)
    of_runs(24)              of a family of so many words of independent runs
    of_duets(3)              of so many duets
    of_verdicts(35)          of verdicts that are each judged alone

Words of independent runs are corrected for how many they are (``comparison.families``). A duet is a question
of its own: twenty duets are twenty pages in that respect.
"""

import pandas as pd

from kvstudy.analyse.comparison.words import ALPHA, expected_false
from kvstudy.analyse.configuration import INVALID
from kvstudy.analyse.option_duets import BY_DUET
from kvstudy.present import words

# Of a duet's false differences one ALPHA is its primary measure's, another that of all others.
OF_A_DUET = 2 * ALPHA


def of_comparisons(compared: pd.DataFrame) -> str:
    by_duet = compared["by"] == BY_DUET if "by" in compared else pd.Series(False, index=compared.index)
    sizes = compared.loc[~by_duet, "family"]
    duets = compared[by_duet]
    count = len(duets[["experiment", "before_name", "after_name"]].drop_duplicates()) if len(duets) else 0
    invalid = ", those of invalid runs among them," if (compared["measure"] == INVALID).any() else ""
    return of_runs(int(sizes.max()) if len(sizes) else 0, invalid) + of_duets(count)


def of_runs(size: int, among: str = "") -> str:
    """How many of a family, without and with the correction; "" of a single word. Beside the reference the
    reader's words and its own share the page in twenty."""
    if size < 2:
        return ""
    return (
        f" By chance about {expected_false(size):.2g} of {words.counted(size, 'word')} of independent runs"
        f"{among} would be false. Corrected for their number (Holm), at most one page in twenty has a false "
        "difference, and one a false “the same”."
    )


def of_duets(count: int) -> str:
    if not count:
        return ""
    of = (
        f"of {words.counted(count, 'duet')} at most about {OF_A_DUET * count:.2g}"
        if count > 1
        else "the duet"
    )
    return (
        f" Each duet is a question of its own: if nothing differed, {of} would say a false difference"
        f"{'' if count > 1 else ' in one of ten cases at most'}."
    )


def of_verdicts(count: int) -> str:
    if not count:
        return ""
    return (
        f" Each verdict is judged alone, by a 95 % interval that is not corrected for the others: of {count} "
        f"about {expected_false(count):.2g} may be decided wrongly by chance."
    )
