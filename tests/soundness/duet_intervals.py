"""Which interval of a duet keeps its promise? One look after 6, 10 and 15 launches, where nothing differs:
how often 1 lies outside.

    python tests/soundness/duet_intervals.py

Compared: t over launches (taken), t over all rounds as if independent, a bootstrap of launches, a
hierarchical bootstrap of launches and rounds in them (percentile intervals both), and a signed-rank test over
launches.
"""

import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from rules import duets
from scipy import stats

SEED, DUETS, RESAMPLES = 20261123, 1000, 500


def outside(rounds: np.ndarray, generator: np.random.Generator) -> dict[str, bool]:
    """Of one duet, one row per launch."""
    medians, count = np.median(rounds, axis=1), len(rounds)
    drawn = generator.integers(0, count, (RESAMPLES, count))
    within = generator.integers(0, rounds.shape[1], (RESAMPLES, count, rounds.shape[1]))
    both = np.median(rounds[drawn[..., None], within], axis=2).mean(axis=1)

    def cut(means):
        return not np.quantile(means, 0.025) <= 0 <= np.quantile(means, 0.975)

    return {
        "t over launches": stats.ttest_1samp(medians, 0).pvalue < 0.05,
        "t over rounds": stats.ttest_1samp(rounds.ravel(), 0).pvalue < 0.05,
        "bootstrap of launches": cut(medians[drawn].mean(axis=1)),
        "hierarchical bootstrap": cut(both),
        "signed ranks": stats.wilcoxon(medians).pvalue < 0.05,
    }


def main() -> None:
    generator = np.random.default_rng(SEED)
    print(f"seed {SEED}, {DUETS} duets each; 5 % is the promise\n")
    for name, noise in (("p50 of GET", duets.GET_P50), ("p50 of PUT", duets.PUT_P50)):
        for count in (6, 10, 15):
            found = [outside(rounds, generator) for rounds in duets.rounds(generator, DUETS, count, noise)]
            print(
                f"{name}, {count} launches: "
                + ", ".join(f"{way} {np.mean([one[way] for one in found]):.1%}" for way in found[0])
            )


if __name__ == "__main__":
    main()
