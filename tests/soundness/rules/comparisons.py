"""Comparisons of two sides, from tables to the word that a page says: where nothing differs, of survivors, of
what is not the same, of sides measured one after the other, and of what is no repeat."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import tidy
from simulation import FOLDER, Simulation

from kvstudy.analyse import validity
from kvstudy.analyse.answers.factors import TwoLines, compared_lines
from kvstudy.analyse.comparison.families import CHART, holm
from kvstudy.analyse.comparison.pairs import difference_p, pair
from kvstudy.analyse.comparison.words import ALPHA, DIFFERENT, FAVOURABLE, SAME
from kvstudy.analyse.configuration import INVALID, RATE, comparisons, configured, with_words
from kvstudy.analyse.tables import load, rebuild
from kvstudy.analyse.validity import Evidence

# Run folders that differ in a planted fact, and the histograms in them.
sys.path += [str(FOLDER.parent / "analyse"), str(FOLDER.parent)]
from planted_facts import MACHINE, PLANTED_IN
from run_maker import RunMaker

PER_PAGE, RUNS, LINES = 24, 6, 6
# So many refute a rule that is wrong on 40 % of pages in 96 of 100 tries; of the shape that such a rule was
# found with, since a page takes a quarter of a second.
PAGES, PAGES_OF_OTHERS, PAGES_SHORT = 300, 100, 24
FOUND_WITH = "heavy tails"
MOST_FALSE = "skewed"
SHAPES = {
    "heavy tails": lambda generator, size: np.exp(0.1 * generator.standard_t(3, size)),
    "very heavy tails": lambda generator, size: np.exp(0.1 * generator.standard_t(1.5, size)),
    "two modes": lambda generator, size: np.exp(
        0.02 * generator.standard_normal(size) + 0.3 * (generator.random(size) < 0.3)
    ),
    "skewed": lambda generator, size: generator.lognormal(0, 0.5, size) + 0.2,
}
# Each group by a hundredth as wide as the two are apart.
TIGHT = {
    "two tight modes": lambda generator, size: np.exp(
        0.003 * generator.standard_normal(size) + 0.3 * (generator.random(size) < 0.5)
    )
}


# What a run looks like, and what the service, or others, can make of it: the study's own checks say what
# excludes it.
_GOOD = Evidence(
    generator="loadgen",
    closed_loop=False,
    connections=16,
    threads=1,
    offered_rate_rps=2000,
    achieved_rate_rps=2000.0,
    unexpected_answers=0,
    errors={"timeout": 0},
    samples=60_000,
    saturated=False,
    steal_share=0.0,
    foreign_share=0.0,
    log_errors=(),
)
_LATE = ((50.0, 4000.0, 5000.0), (99.0, 9000.0, 10_000.0))
BY_THE_SERVICE = tuple(
    replace(_GOOD, **change)
    for change in (
        {"errors": {"timeout": 5}},
        {"unexpected_answers": 3},
        {"log_errors": ("out of memory",)},
        {"outcome": "failed: service died during measure: exit=137"},
        {"achieved_rate_rps": 1500.0},
        {"achieved_rate_rps": 1500.0, "percentile_pairs": _LATE, "errors": {"timeout": 5}},
        {"throttled_share": 0.3},
    )
)
BY_OTHERS = tuple(
    replace(_GOOD, **change)
    for change in (
        {"steal_share": 0.2},
        {"foreign_share": 0.5},
        {"saturated": True},
        {"percentile_pairs": _LATE},
    )
)


@dataclass(frozen=True)
class Sides:
    """A comparison: a value per run of ``before`` and ``after``; ``lost``: what was seen of runs of either
    side more, which failed."""

    before: Sequence[float]
    after: Sequence[float]
    lost: tuple[Sequence[Evidence], Sequence[Evidence]] = ((), ())
    closed_loop: bool = False


def pages_of(pages: Sequence[Sequence[Sides]], unit_us: float = 1e4) -> list[dict[str, list[str]]]:
    """Of each page its words by measure, as the entries of the pages say them."""
    found = {number: with_words(mine) for number, mine in rows_of(pages, unit_us).groupby("page")}
    return [
        {measure: mine.tolist() for measure, mine in found[number].groupby("measure")["word"]}
        if number in found
        else {}
        for number in range(len(pages))
    ]


def rows_of(pages: Sequence[Sequence[Sides]], unit_us: float = 1e4) -> pd.DataFrame:
    """The comparisons of all ``page``s, without a word. They are one table, so that hundreds are quick. p99,
    or in a closed loop the rate; a value is so many times ``unit_us``, far above the generator's
    resolution."""
    runs = []
    for number, page in enumerate(pages):
        for place, one in enumerate(page):
            workload = f"{number:05d} workload {place:02d}"
            for label, values, lost in zip(
                ("before", "after"), (one.before, one.after), one.lost, strict=True
            ):
                runs += [(workload, label, value, one.closed_loop, "PASS", "") for value in values]
                for seen in lost:
                    checks = validity.check(replace(seen, closed_loop=one.closed_loop))
                    why = validity.excluded(checks, one.closed_loop), validity.worst(checks)
                    runs.append((workload, label, np.nan, one.closed_loop, why[1], why[0]))
    workloads, labels, values, loops, verdicts, excluded = zip(*runs, strict=True)
    ids, latencies = [f"run-{number:06d}" for number in range(len(runs))], unit_us * np.array(values)
    known = ~np.isnan(latencies) & ~np.array(loops)
    made = tidy.tables(
        runs={
            "run_id": ids,
            "label": labels,
            "workload": workloads,
            "verdict": verdicts,
            "excluded": excluded,
            "closed_loop": loops,
            "achieved_rate_rps": latencies,
        },
        percentiles=tidy.p99(np.array(ids)[known], latencies[known]),
    )
    rows = comparisons(made, "label", "before", "after", (99.0,), share=None)
    return rows.assign(page=rows["workload"].str[:5].astype(int))


def said(comparisons_: Iterable[Sides], unit_us: float = 1e4) -> list[str]:
    """The word of each latency, or rate, with a page for itself."""
    found = pages_of([[one] for one in comparisons_], unit_us)
    return [next(iter(words[name] for name in ("p99", RATE) if name in words))[0] for words in found]


def says_a_difference(words: dict[str, list[str]]) -> bool:
    return any(word in DIFFERENT for of_measure in words.values() for word in of_measure)


def false_pages(shape, before: int = RUNS, after: int = RUNS):
    """Pages of PER_PAGE comparisons of a thing with itself: how many say that something differs."""

    def count(generator: np.random.Generator, trials: int) -> int:
        runs = (SHAPES | TIGHT)[shape](generator, (trials, PER_PAGE, before + after))
        pages = [[Sides(one[:before], one[before:]) for one in page] for page in runs]
        return sum(map(says_a_difference, pages_of(pages)))

    return count


def _failed(
    generator: np.random.Generator, count: int, of: Sequence[Evidence] = BY_THE_SERVICE
) -> list[Evidence]:
    return [of[place] for place in generator.integers(len(of), size=count)]


def survivors(generator: np.random.Generator, trials: int) -> int:
    """Of ten runs a side 40 % of one side's fail by the service's own doing, never none; those that are left
    are a fifth faster."""
    made = []
    for _ in range(trials):
        lost = max(1, generator.binomial(10, 0.4))
        one, whole = (
            80 * SHAPES["heavy tails"](generator, max(1, 10 - lost)),
            100 * SHAPES["heavy tails"](generator, 10),
        )
        bad = _failed(generator, lost)
        if generator.random() < 0.5:
            made.append(Sides(whole, one, ((), bad)))
        else:
            # At no rate none can be missed.
            bad = [replace(seen, achieved_rate_rps=2000.0, errors={"timeout": 5}) for seen in bad]
            made.append(Sides(one, whole, (bad, ()), closed_loop=True))
    return sum(word in FAVOURABLE or word == SAME for word in said(made))


def fail_alike(of: Sequence[Evidence]):
    """Both sides lose a quarter of their ten runs: how often one is called worse or better for it."""

    def count(generator: np.random.Generator, trials: int) -> int:
        made = [
            Sides(
                *(SHAPES["heavy tails"](generator, max(1, 10 - one)) for one in lost),
                tuple(_failed(generator, one, of) for one in lost),
            )
            for lost in generator.binomial(10, 0.25, (trials, 2))
        ]
        words = [page.get(INVALID, []) for page in pages_of([[one] for one in made])]
        return sum(any(word in DIFFERENT for word in mine) for mine in words)

    return count


def read_again(readings: int):
    """Pages of PER_PAGE comparisons where nothing differs, read after RUNS runs a side, after as many more,
    and so on: how many said a difference at any time."""

    def count(generator: np.random.Generator, trials: int) -> int:
        wrong = 0
        for _ in range(trials):
            first, second = generator.standard_normal((2, PER_PAGE, readings * RUNS))
            wrong += any(
                min(holm(difference_p(first[:, :runs], second[:, :runs]))) <= ALPHA
                for runs in range(RUNS, readings * RUNS + 1, RUNS)
            )
        return wrong

    return count


def just_not_the_same(generator: np.random.Generator, trials: int) -> int:
    """A true difference of just 5 %: how often it is called the same within 5 %."""
    noise = [0.005, 0.02, 0.05]
    sides = (np.exp(noise[n % 3] * generator.standard_t(3, (2, RUNS))) for n in range(trials))
    return said(Sides(before, 1.05 * after) for before, after in sides).count(SAME)


def pages_falsely_the_same(generator: np.random.Generator, trials: int) -> int:
    """Pages of PER_PAGE comparisons of 20 and 5 runs, or of 5 and 20, of which each is truly 5 % apart: how
    many call any the same within 5 %."""
    sizes = (20, 5), (5, 20)
    pages = [
        [
            Sides(
                *(
                    centre * np.exp(0.03 * generator.standard_normal(size))
                    for centre, size in zip((1, 1.05), sizes[n % 2], strict=True)
                )
            )
            for _ in range(PER_PAGE)
        ]
        for n in range(trials)
    ]
    return sum(any(SAME in said_of for said_of in page.values()) for page in pages_of(pages))


def truly_the_same(generator: np.random.Generator, trials: int) -> int:
    """Nothing differs and runs do by 2 %: how often that is found out."""
    return said(Sides(*pair) for pair in np.exp(0.02 * generator.standard_normal((trials, 2, RUNS)))).count(
        SAME
    )


def rounded_false_pages(generator: np.random.Generator, trials: int) -> int:
    """Pages of PER_PAGE comparisons of 17 us with 17 us and a hundredth of one, which rounding makes 17 and
    18: how many say that something differs."""
    centres = np.array([17.495, 17.505])[:, None]
    pages = np.round(centres + 0.02 * generator.standard_normal((trials, PER_PAGE, 2, RUNS)))
    return sum(map(says_a_difference, pages_of([[Sides(*pair) for pair in page] for page in pages], 1)))


def rounded_not_the_same(generator: np.random.Generator, trials: int) -> int:
    """17.55 us beside 18.45 us, 5.1 % apart, which rounding makes the same number: how often they are called
    the same within 5 %."""
    centres = np.array([17.55, 18.45])[:, None]
    sides = np.round(centres + 0.01 * generator.standard_normal((trials, 2, RUNS)))
    return said((Sides(*pair) for pair in sides), 1).count(SAME)


def drifting(interleaved: bool):
    """Two labels of one thing, RUNS runs each that differ by 3 %, on a machine that becomes slower or faster
    by 5 % from the first run to the last: how often a difference is said. Interleaved in pairs of a drawn
    order, or one label after the other."""

    def count(generator: np.random.Generator, trials: int) -> int:
        made = []
        for _ in range(trials):
            drift = generator.choice((-1, 1)) * 0.05 * np.linspace(0, 1, 2 * RUNS)
            runs = np.exp(drift + 0.03 * generator.standard_normal(2 * RUNS))
            if interleaved:
                runs = generator.permuted(runs.reshape(RUNS, 2), axis=1).T.ravel()
            made.append(Sides(runs[:RUNS], runs[RUNS:]))
        return sum(word in DIFFERENT for word in said(made))

    return count


def covered(generator: np.random.Generator, trials: int) -> int:
    """The interval of a ratio of medians, over all shapes."""
    shapes, inside = list(SHAPES.values()), 0
    for trial in range(trials):
        shape = shapes[trial % len(shapes)]
        found = pair(shape(generator, RUNS), 1.3 * shape(generator, RUNS))
        inside += found.low <= 1.3 <= found.high
    return inside


def pooled(generator: np.random.Generator, trials: int) -> int:
    """Sealed runs that differ from a first one of their kind (ours, at an address, profiled) in one to three
    planted facts, drawn among all: how many pass for its repeats."""
    kinds = list(PLANTED_IN)
    with TemporaryDirectory() as folder:
        make_run = RunMaker(Path(folder) / "raw")
        for run in range(-len(kinds), trials):
            kind = kinds[run % len(kinds)]
            facts, planted = PLANTED_IN[kind]
            facts, machine = dict(facts), dict(MACHINE)
            count = min(len(planted), generator.integers(1, 4)) if run >= 0 else 0
            for change in (planted[name] for name in generator.choice(list(planted), count, replace=False)):
                machine |= change.get("machine", {})
                facts |= {name: value for name, value in change.items() if name != "machine"}
            make_run(
                f"{kind} {run:04d}",
                seconds=[[100] * 20] * 3,
                more={"machine.json": json.dumps(machine)},
                repeat=run,
                seed=abs(run),
                **facts,
            )
        rebuild([Path(folder) / "raw"], Path(folder) / "tidy", progress=False)
        configurations = configured(load(Path(folder) / "tidy").runs).set_index("run_id")["configuration"]
    firsts = {f"{kind} {place - len(kinds):04d}" for place, kind in enumerate(kinds)}
    as_first = configurations.isin(configurations[configurations.index.isin(firsts)])
    return int(as_first.sum()) - len(firsts)


def false_titles(generator: np.random.Generator, trials: int) -> int:
    """Charts of LINES lines without an order, of which nothing differs, whose title says that two do."""

    wrong = 0
    for _ in range(trials):
        lines = 1e4 * np.exp(0.1 * generator.standard_normal((LINES, RUNS)))
        pairs = [TwoLines(one, other, (0, RUNS, 0, RUNS)) for one, other in combinations(lines, 2)]
        wrong += any(word in DIFFERENT for _, word, _ in compared_lines(pairs))
    return wrong


SIMULATIONS = [
    Simulation(
        "a chart's title",
        f"a word of two of {LINES} lines where nothing differs",
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
            PAGES if shape in (FOUND_WITH, MOST_FALSE) else PAGES_OF_OTHERS,
            PAGES_SHORT if shape == FOUND_WITH else 4,
            at_most=ALPHA,
        )
        for shape in SHAPES
    ),
    *(
        Simulation(
            "a page's words",
            f"pages with a false word, {PER_PAGE} comparisons of 5 runs beside {after}, {shape}",
            false_pages(shape, 5, after),
            PAGES_OF_OTHERS,
            4,
            at_most=ALPHA,
            limit=shape in TIGHT,
        )
        for after, shape in (
            (12, "two modes"),
            (12, "skewed"),
            (20, "two modes"),
            (20, "skewed"),
            (10, "two tight modes"),
        )
    ),
    Simulation(
        "survivors",
        "“faster” where 40 % of one side's runs fail by themselves",
        survivors,
        400,
        12,
        at_most=0.0,
    ),
    *(
        Simulation(
            "invalid n of m", f"a word where both sides {told}", fail_alike(of), 400, 12, at_most=ALPHA
        )
        for told, of in (("fail alike", BY_THE_SERVICE), ("lose runs to others alike", BY_OTHERS))
    ),
    Simulation(
        "labels measured apart",
        f"a word where the machine drifts by 5 % meanwhile, {RUNS} runs a side that differ by 3 %",
        drifting(False),
        400,
        12,
        at_most=ALPHA,
        limit=True,
    ),
    Simulation(
        "labels measured in turn",
        f"a word where the machine drifts by 5 % meanwhile, {RUNS} runs a side that differ by 3 %",
        drifting(True),
        400,
        12,
        at_most=ALPHA,
    ),
    *(
        Simulation(
            "read again",
            f"pages with a false word at any of {readings} readings, {PER_PAGE} comparisons, each time "
            f"{RUNS} runs a side more",
            read_again(readings),
            2000,
            100,
            at_most=ALPHA,
            limit=True,
        )
        for readings in (2, 4)
    ),
    Simulation(
        "the same", "said within 5 % of a true difference of 5 %", just_not_the_same, 400, 12, at_most=ALPHA
    ),
    Simulation(
        "the same",
        f"pages that say it of {PER_PAGE} comparisons of 20 and 5 runs, of which each is truly 5 % apart",
        pages_falsely_the_same,
        PAGES_OF_OTHERS,
        4,
        at_most=ALPHA,
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
        PAGES_OF_OTHERS,
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
