"""Comparisons of two sides, from tables to the word that a page says: where nothing differs, of survivors, of
what is not the same, and of what is no repeat."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import tidy
from simulation import FOLDER, Simulation

from kvstudy.analyse.answers.factors import Ends, between_ends
from kvstudy.analyse.comparison.families import CHART
from kvstudy.analyse.comparison.intervals import ratio_interval
from kvstudy.analyse.comparison.words import ALPHA, DIFFERENT, FAVOURABLE, SAME
from kvstudy.analyse.configuration import INVALID, RATE, comparisons, configured
from kvstudy.analyse.tables import load, rebuild

sys.path.append(str(FOLDER.parent / "analyse"))  # run folders that differ in a planted fact
from planted_facts import ASKED, MACHINE, PLANTED
from run_maker import RunMaker

PER_PAGE, RUNS, LINES = 24, 6, 6
SHAPES = {
    "heavy tails": lambda generator, size: np.exp(0.1 * generator.standard_t(3, size)),
    "very heavy tails": lambda generator, size: np.exp(0.1 * generator.standard_t(1.5, size)),
    "two modes": lambda generator, size: np.exp(
        0.02 * generator.standard_normal(size) + 0.3 * (generator.random(size) < 0.3)
    ),
    "skewed": lambda generator, size: generator.lognormal(0, 0.5, size) + 0.2,
}


def words(
    before: np.ndarray,
    after: np.ndarray,
    invalid: tuple[int, int] = (0, 0),
    closed_loop: bool = False,
    unit_us: float = 1e4,
) -> dict[str, list[str]]:
    """Measure → the word of each comparison, as the entry of the pages says it: a row of ``before`` and
    ``after`` is a comparison, a column a run; p99, or in a closed loop the rate; a value is so many times
    ``unit_us``, far above the generator's resolution. ``invalid``: so many runs of either side more, which
    the service made invalid."""
    ids, labels, workloads, values, failed = [], [], [], [], []
    for label, side, lost in (("before", before, invalid[0]), ("after", after, invalid[1])):
        for place, row in enumerate(side):
            for run, value in enumerate([*row, *[np.nan] * lost]):
                ids.append(f"{label}-{place:02d}-{run:02d}")
                labels.append(label)
                workloads.append(f"workload {place:02d}")
                values.append(unit_us * value)
                failed.append(run >= len(row))
    runs = {
        "run_id": ids,
        "label": labels,
        "workload": workloads,
        "verdict": np.where(failed, "FAIL", "PASS"),
        "excluded": np.where(failed, "service", ""),
    }
    known = [place for place, bad in enumerate(failed) if not bad]
    if closed_loop:
        made = tidy.tables(runs=runs | {"closed_loop": [True] * len(ids), "achieved_rate_rps": values})
    else:
        made = tidy.tables(
            runs=runs,
            percentiles=tidy.p99([ids[place] for place in known], [values[place] for place in known]),
        )
    rows = comparisons(made, "label", "before", "after", (99.0,))
    return {measure: mine.tolist() for measure, mine in rows.groupby("measure")["word"]}


def false_pages(shape):
    """Pages of PER_PAGE comparisons of a thing with itself: how many say that something differs."""

    def count(generator: np.random.Generator, trials: int) -> int:
        pages = ((SHAPES[shape](generator, (PER_PAGE, RUNS)) for _ in range(2)) for _ in range(trials))
        return sum(any(word in DIFFERENT for word in words(*page)["p99"]) for page in pages)

    return count


def survivors(generator: np.random.Generator, trials: int) -> int:
    """Of ten runs a side 40 % of one side's fail by themselves, never none; those that are left are a fifth
    faster."""
    wrong = 0
    for _ in range(trials):
        failed = max(1, generator.binomial(10, 0.4))
        one, whole = (
            80 * SHAPES["heavy tails"](generator, (1, max(1, 10 - failed))),
            100 * SHAPES["heavy tails"](generator, (1, 10)),
        )
        if generator.random() < 0.5:
            (said,) = words(whole, one, (0, failed))["p99"]
        else:
            (said,) = words(one, whole, (failed, 0), closed_loop=True)[RATE]
        wrong += said in FAVOURABLE or said == SAME
    return wrong


def fail_alike(generator: np.random.Generator, trials: int) -> int:
    """Both sides lose a quarter of their ten runs: how often one is called worse or better for it."""
    wrong = 0
    for lost in generator.binomial(10, 0.25, (trials, 2)):
        before, after = (SHAPES["heavy tails"](generator, (1, max(1, 10 - one))) for one in lost)
        wrong += any(
            word in DIFFERENT for word in words(before, after, tuple(map(int, lost))).get(INVALID, [])
        )
    return wrong


def just_not_the_same(generator: np.random.Generator, trials: int) -> int:
    """A true difference of just 5 %: how often it is called the same within 5 %."""
    noise = [0.005, 0.02, 0.05]
    sides = (np.exp(noise[n % 3] * generator.standard_t(3, (2, 1, RUNS))) for n in range(trials))
    return sum(words(before, 1.05 * after)["p99"] == [SAME] for before, after in sides)


def truly_the_same(generator: np.random.Generator, trials: int) -> int:
    """Nothing differs and runs do by 2 %: how often that is found out."""
    return sum(
        words(*np.exp(0.02 * generator.standard_normal((2, 1, RUNS))))["p99"] == [SAME] for _ in range(trials)
    )


def rounded_false_pages(generator: np.random.Generator, trials: int) -> int:
    """Pages of PER_PAGE comparisons of 17 us with 17 us and a hundredth of one, which rounding makes 17 and
    18: how many say that something differs."""
    wrong = 0
    for _ in range(trials):
        before, after = (
            np.round(centre + 0.02 * generator.standard_normal((PER_PAGE, RUNS)))
            for centre in (17.495, 17.505)
        )
        wrong += any(word in DIFFERENT for word in words(before, after, unit_us=1)["p99"])
    return wrong


def rounded_not_the_same(generator: np.random.Generator, trials: int) -> int:
    """17.55 us beside 18.45 us, 5.1 % apart, which rounding makes the same number: how often they are called
    the same within 5 %."""
    sides = (
        np.round(np.array([17.55, 18.45])[:, None, None] + 0.01 * generator.standard_normal((2, 1, RUNS)))
        for _ in range(trials)
    )
    return sum(words(*pair, unit_us=1)["p99"] == [SAME] for pair in sides)


def covered(generator: np.random.Generator, trials: int) -> int:
    """The interval of a ratio of medians, over all shapes."""
    shapes, inside = list(SHAPES.values()), 0
    for trial in range(trials):
        shape = shapes[trial % len(shapes)]
        low, high = ratio_interval(shape(generator, RUNS), 1.3 * shape(generator, RUNS))
        inside += low <= 1.3 <= high
    return inside


def pooled(generator: np.random.Generator, trials: int) -> int:
    """Sealed runs that differ from a first one in one to three planted facts, drawn among all: how many pass
    for its repeats."""
    names = list(PLANTED)
    with TemporaryDirectory() as folder:
        make_run = RunMaker(Path(folder) / "raw")
        for run in range(trials + 1):
            chosen = generator.choice(names, generator.integers(1, 4), replace=False) if run else []
            facts, machine = dict(ASKED), dict(MACHINE)
            for change in (PLANTED[name] for name in chosen):
                machine |= change.get("machine", {})
                facts |= {name: value for name, value in change.items() if name != "machine"}
            make_run(
                f"run-{run:04d}",
                seconds=[[100] * 20] * 3,
                more={"machine.json": json.dumps(machine)},
                repeat=run,
                seed=run,
                **facts,
            )
        rebuild([Path(folder) / "raw"], Path(folder) / "tidy", progress=False)
        configurations = configured(load(Path(folder) / "tidy").runs).set_index("run_id")["configuration"]
    return int((configurations.iloc[1:] == configurations.iloc[0]).sum())


def false_titles(generator: np.random.Generator, trials: int) -> int:
    """Charts of LINES lines without an order, of which nothing differs, whose title says that the two
    farthest do."""

    wrong = 0
    for _ in range(trials):
        lines = 1e4 * np.exp(0.1 * generator.standard_normal((LINES, RUNS)))
        lines = lines[np.argsort(np.median(lines, axis=1))]
        ((_, word),) = between_ends([Ends(lines[0], lines[-1], (0, RUNS, 0, RUNS), LINES * (LINES - 1) // 2)])
        wrong += word in DIFFERENT
    return wrong


SIMULATIONS = [
    Simulation(
        "a chart's title",
        f"a word of the two farthest of {LINES} lines where nothing differs",
        false_titles,
        2000,
        100,
        at_most=ALPHA * CHART,
    ),
    *(
        Simulation(
            "a page's words",
            f"pages with a false word, {PER_PAGE} comparisons of {RUNS} runs a side, {shape}",
            false_pages(shape),
            300,
            4,
            at_most=ALPHA,
        )
        for shape in SHAPES
    ),
    Simulation(
        "survivors",
        "“faster” where 40 % of one side's runs fail by themselves",
        survivors,
        400,
        12,
        at_most=0.0,
    ),
    Simulation("invalid n of m", "a word where both sides fail alike", fail_alike, 400, 12, at_most=ALPHA),
    Simulation(
        "the same", "said within 5 % of a true difference of 5 %", just_not_the_same, 400, 12, at_most=ALPHA
    ),
    Simulation(
        "the same",
        "said within 5 % where nothing differs and runs do by 2 %",
        truly_the_same,
        400,
        12,
        at_least=0.8,
    ),
    Simulation(
        "whole microseconds",
        f"pages with a false word, {PER_PAGE} comparisons of 17 µs with 17 µs",
        rounded_false_pages,
        300,
        4,
        at_most=ALPHA,
    ),
    Simulation(
        "whole microseconds",
        "the same within 5 %, said of a true difference of 5.1 %",
        rounded_not_the_same,
        400,
        12,
        at_most=ALPHA,
    ),
    Simulation(
        "interval of a ratio", f"holds the truth, {RUNS} runs a side", covered, 4000, 400, at_least=0.95
    ),
    Simulation(
        "repeats",
        "sealed runs that differ in one to three planted facts and pass for repeats",
        pooled,
        150,
        8,
        at_most=0.0,
    ),
]
