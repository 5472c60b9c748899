"""The words that may be said of *after* against *before*, and when. Every other module says one of these.

    word(low, high, p, p_same, better, runs)

A difference is said when its corrected p is at most ``alpha`` and the interval of the ratio excludes 1; *the
same* when the corrected p of the two one-sided tests is; *cannot tell* else, and always with fewer than
MIN_RUNS on either side.
"""

import math

WORDS = (FASTER, SLOWER, CHEAPER, DEARER, WORSE, BETTER, SAME, CANNOT_TELL) = (
    "faster",
    "slower",
    "cheaper",
    "dearer",
    "worse",
    "better",
    "the same",
    "cannot tell",
)
DIFFERENT = (FASTER, SLOWER, CHEAPER, DEARER, WORSE, BETTER)
FAVOURABLE = (FASTER, CHEAPER, BETTER)
# What a ratio below and above 1 means: of a latency, of a rate, of a cost, of the share of runs that the
# service made invalid.
BELOW_AND_ABOVE = {
    "lower": (FASTER, SLOWER),
    "higher": (SLOWER, FASTER),
    "less": (CHEAPER, DEARER),
    "fewer": (BETTER, WORSE),
}
MIN_RUNS = 5
# Why no word is said.
TOO_FEW, LOST_MORE, LOST_MORE_OF_DUET, NEITHER = (
    f"fewer than {MIN_RUNS} runs a side",
    "a side lost a larger share of its runs",
    "a side lost a larger share of its rounds or launches",
    "neither a difference nor that there is none is shown",
)
ALPHA = 0.05
SAME_WITHIN = 0.05  # where the experiment says nothing
FINDABLE_MOST = 1000.0  # a ratio that is no smaller is no finding of anybody


def expected_false(comparisons: int) -> float:
    """How many words would be false without a correction, if nothing differed."""
    return ALPHA * comparisons


def findable_limit(ratio: float | None) -> str:
    """``1.12`` → "12 %", ``8.14`` → "8×"; "" where there is no limit that anybody would believe."""
    if ratio is None or math.isnan(ratio) or ratio >= FINDABLE_MOST:
        return ""
    percent = 100 * (ratio - 1)
    return f"{percent:.2g} %" if percent < 99.5 else f"{ratio:.1f}×" if ratio < 3 else f"{ratio:.0f}×"


def word(
    low: float, high: float, p: float, p_same: float, better: str, runs: int, alpha: float = ALPHA
) -> str:
    """``p`` and ``p_same``: corrected for the family; ``runs``: the fewer of both sides. ValueError for an
    unknown ``better``."""
    if better not in BELOW_AND_ABOVE:
        raise ValueError(f"better must be one of {', '.join(BELOW_AND_ABOVE)}: better={better}")
    if runs < MIN_RUNS:
        return CANNOT_TELL
    if p <= alpha and not low <= 1 <= high:
        return BELOW_AND_ABOVE[better][0 if high < 1 else 1]
    return SAME if p_same <= alpha else CANNOT_TELL
