"""Comparisons of two sides: words where nothing differs, of survivors, of what is not the same, and of what is no repeat."""

import gc

import numpy as np
import pandas as pd
from simulation import Simulation

from kvstudy.analyse.comparison import families, outcomes
from kvstudy.analyse.comparison.intervals import ratio_interval
from kvstudy.analyse.comparison.pairs import pair
from kvstudy.analyse.comparison.words import ALPHA, DIFFERENT, FAVOURABLE, SAME
from kvstudy.analyse.configuration import CONFIGURATION, configured

gc.freeze()  # statsmodels collects garbage at every correction, 0.1 s with all modules loaded
PER_PAGE, RUNS = 24, 6
SHAPES = {
    "heavy tails": lambda generator, size: np.exp(0.1 * generator.standard_t(3, size)),
    "very heavy tails": lambda generator, size: np.exp(0.1 * generator.standard_t(1.5, size)),
    "two modes": lambda generator, size: np.exp(0.02 * generator.standard_normal(size) + 0.3 * (generator.random(size) < 0.3)),
    "skewed": lambda generator, size: generator.lognormal(0, 0.5, size) + 0.2,
}


def false_pages(shape):
    """Pages of PER_PAGE comparisons of a thing with itself: how many say that something differs."""

    def count(generator: np.random.Generator, trials: int) -> int:
        wrong = 0
        for _ in range(trials):
            pairs = [pair(SHAPES[shape](generator, RUNS), SHAPES[shape](generator, RUNS)) for _ in range(PER_PAGE)]
            wrong += any(word in DIFFERENT for word in families.words(pairs, ["lower"] * PER_PAGE))
        return wrong

    return count


def survivors(generator: np.random.Generator, trials: int) -> int:
    """Of ten runs a side 40 % of one side's fail by themselves, never none; those that are left are a fifth faster."""
    wrong = 0
    for _ in range(trials):
        failed = max(1, generator.binomial(10, 0.4))
        one, whole = 80 * SHAPES["heavy tails"](generator, max(1, 10 - failed)), 100 * SHAPES["heavy tails"](generator, 10)
        if generator.random() < 0.5:
            said = families.words([pair(whole, one)], ["lower"], [(0, 10, failed, 10)])
        else:
            said = families.words([pair(one, whole)], ["higher"], [(failed, 10, 0, 10)])
        wrong += said[0] in FAVOURABLE or said[0] == SAME
    return wrong


def fail_alike(generator: np.random.Generator, trials: int) -> int:
    """Both sides lose a quarter of their ten runs: how often one is called worse or better for it."""
    lost = generator.binomial(10, 0.25, (trials, 2))
    return sum(outcomes.outcome_p(int(before), 10, int(after), 10) <= ALPHA for before, after in lost)


def just_not_the_same(generator: np.random.Generator, trials: int) -> int:
    """A true difference of just 5 %: how often it is called the same within 5 %."""
    noise = [0.005, 0.02, 0.05]
    return sum(families.words([pair(np.exp(noise[n % 3] * generator.standard_t(3, RUNS)), 1.05 * np.exp(noise[n % 3] * generator.standard_t(3, RUNS)))], ["lower"])[0] == SAME
               for n in range(trials))


def truly_the_same(generator: np.random.Generator, trials: int) -> int:
    """Nothing differs and runs do by 2 %: how often that is found out."""
    return sum(families.words([pair(np.exp(0.02 * generator.standard_normal(RUNS)), np.exp(0.02 * generator.standard_normal(RUNS)))], ["lower"])[0] == SAME
               for _ in range(trials))


def covered(generator: np.random.Generator, trials: int) -> int:
    """The interval of a ratio of medians, over all shapes."""
    shapes, inside = list(SHAPES.values()), 0
    for trial in range(trials):
        shape = shapes[trial % len(shapes)]
        low, high = ratio_interval(shape(generator, RUNS), 1.3 * shape(generator, RUNS))
        inside += low <= 1.3 <= high
    return inside


def pooled(generator: np.random.Generator, trials: int) -> int:
    """Two runs that differ in one fact, drawn among all: how often they pass for repeats."""
    base = {name: "a" for name in CONFIGURATION if name != "data"} | {"workload_args": "{}", "run_id": "r"}
    facts = [name for name in base if name != "run_id"]
    wrong = 0
    for _ in range(trials):
        fact = facts[generator.integers(len(facts))]
        changed = '{"key_count": 2}' if fact == "workload_args" else "b"
        wrong += configured(pd.DataFrame([base, base | {fact: changed}]))["configuration"].nunique() == 1
    return wrong


SIMULATIONS = [
    *(Simulation("a page's words", f"pages with a false word, {PER_PAGE} comparisons of {RUNS} runs a side, {shape}", false_pages(shape), 500, 24, at_most=ALPHA)
      for shape in SHAPES),
    Simulation("survivors", "“faster” where 40 % of one side's runs fail by themselves", survivors, 4000, 200, at_most=0.0),
    Simulation("invalid n of m", "a word where both sides fail alike", fail_alike, 4000, 400, at_most=ALPHA),
    Simulation("the same", "said within 5 % of a true difference of 5 %", just_not_the_same, 3000, 200, at_most=ALPHA),
    Simulation("the same", "said within 5 % where nothing differs and runs do by 2 %", truly_the_same, 2000, 200, at_least=0.8),
    Simulation("interval of a ratio", f"holds the truth, {RUNS} runs a side", covered, 4000, 400, at_least=0.95),
    Simulation("repeats", "two runs that differ in one fact and pass for repeats", pooled, 500, 60, at_most=0.0),
]
