"""Page 11: how cost grows with the work, as sentences and tables.

found = growth.measured()         Tables of the three experiments, of those that were measured
growth.answer(found)              a line for each, and what to type where there is nothing
growth.claims(found)              the same as claims
growth.compared(found)            the most work against the least: a row per line and measure
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from kvstudy.analyse import growth as analysed
from kvstudy.analyse.answers import Answer
from kvstudy.analyse.claim import Claim
from kvstudy.analyse.comparison.words import CANNOT_TELL, TOO_FEW
from kvstudy.analyse.configuration import CPU
from kvstudy.analyse.growth import Growth, Step, growth_of, growths
from kvstudy.analyse.tables import Tables
from kvstudy.present import claim_text, false_words, notebook, summary, words
from kvstudy.present.markdown import Markdown

SCALE, LARGER_THAN_MEMORY, CONNECTIONS = analysed.RECORDS, analysed.DATA, analysed.CONNECTIONS
MINUTES = 3  # of each experiment's quick preset, at most
_TITLES = {
    SCALE.experiment: "Records",
    LARGER_THAN_MEMORY.experiment: "Larger than memory",
    CONNECTIONS.experiment: "Connections",
}
_WORK = {
    SCALE.experiment: "records",
    LARGER_THAN_MEMORY.experiment: "data per memory",
    CONNECTIONS.experiment: "connections",
}
_NAMES = {analysed.P99: "p99", CPU: "CPU per request", analysed.MEMORY: "resident memory"}


def measured() -> Tables:
    """The latency runs, valid and invalid, of the three experiments."""
    names = [growth.experiment for growth in growths()]
    return notebook.latency_runs(notebook.all_tables().select(experiment=names))


def how(growth: Growth) -> str:
    """What to type, and how long it takes."""
    return f"kvstudy run experiments/{growth.experiment}.yaml, about {MINUTES} minutes"


def answer(found: Tables) -> Markdown:
    lines = []
    for growth in growths():
        title = f"**{_TITLES[growth.experiment]}**"
        if analysed.runs_with_work(found, growth).empty:
            lines.append(
                f"- {title}: not measured yet: run `{how(growth).split(',')[0]}` ({MINUTES} minutes)."
            )
        else:
            lines.append(f"- {title}: {grown(found, growth)}.")
    return Markdown("\n".join(lines))


def p99_of_each(found: Tables, *of: Growth) -> list[tuple[str, Claim]]:
    """Of each line of each growth (or of those of ``of``) that has a number, what grew, as ``10 × records``,
    and its p99."""
    return [
        (
            f"{words.times(step.most / step.least, 2)} {_WORK[growth.experiment]} "
            f"({words.factor(step.line)})",
            claim,
        )
        for growth in of or growths()
        for step in found.cached(analysed.steps, growth)
        for claim in step.claims
        if claim.measure == analysed.P99 and claim.ends
    ]


def answered(grown: Sequence[tuple[Any, Claim]]) -> tuple[Any, Claim] | None:
    """The one that the answer is about: the first that is decided, else the first; None of none."""
    return next((pair for pair in grown if pair[1].decided), next(iter(grown), None))


def leads(found: Tables, growth: Growth) -> bool:
    """Whether the answer is about this growth."""
    told = answered([(one, claim) for one in growths() for _, claim in p99_of_each(found, one)])
    return told is not None and told[0] == growth


def claims(found: Tables) -> Answer | None:
    """Of each line of each growth what ``grown`` says, with the two amounts of work; None without any."""
    made = [
        replace(
            claim,
            baseline=amount(growth, step.least),
            variant=f"{amount(growth, step.most)} {_WORK[growth.experiment]}",
        )
        for growth in growths()
        for step in found.cached(analysed.steps, growth)
        for claim in step.claims
    ]
    return Answer(tuple(made), sum(claim.runs for claim in made)) if made else None


def grown(found: Tables, growth: Growth) -> str:
    """How much each measure grows from the least work to the most, a sentence without its full stop."""
    steps = found.cached(analysed.steps, growth)
    if not steps:
        works = analysed.runs_with_work(found, growth)["work"].nunique()
        return (
            "only one amount of work was measured" if works < 2 else "too few runs count to say how it grows"
        )
    return "; ".join(_grown(step, growth) for step in steps)


def _grown(step: Step, growth: Growth) -> str:
    known = [claim for claim in step.claims if claim.ends]
    if not known:
        return f"{step.line}: {step.claims[0].why}"
    few = all(claim.why == TOO_FEW for claim in known)
    grew = [
        f"{_NAMES[claim.measure]} {_ratio(claim)}"
        + (words.interval(*claim.interval, _two_digits) if claim.interval else "")
        + (f" ({claim_text.word(claim)})" if claim.word and not few else "")
        for claim in known
    ]
    doubt = f" ({CANNOT_TELL}: {TOO_FEW})" if few else ""
    lost = "".join(f"; at {amount(growth, at)} none of {runs} runs was valid" for at, runs in step.none_valid)
    work = works(growth, step.least, step.most)
    return f"{step.line} from {work}: {words.several(grew)}{doubt}{lost}"


def _ratio(claim: Claim) -> str:
    return _two_digits(claim.estimate)


def _two_digits(ratio: float) -> str:
    return words.times(ratio, 2)


def compared(found: Tables) -> pd.DataFrame:
    """Every comparison of the most work with the least, in the words of all pages."""
    rows = found.cached(analysed.compared)
    table = pd.DataFrame(
        [
            {
                "word": words.word(row),
                "experiment": row.growth,
                "workload": row.line,
                "offered": words.rate(row.offered_rate_rps),
                "from": amount(growth_of(row.growth), row.least),
                "to": amount(growth_of(row.growth), row.most),
                "measure": row.measure,
                "least work": value(row.before, row.measure),
                "most work": value(row.after, row.measure),
                "ratio": summary.ratio(row),
                "could have been found": summary.could_find(row),
                "runs": f"{row.runs_before} and {row.runs_after}",
                **({"differs": row.differs} if (rows["differs"] != "").any() else {}),
            }
            for row in rows.itertuples()
        ]
    )
    table.attrs["missing"] = "**Nothing to compare:** no experiment has runs at two amounts of work."
    table.attrs["caption"] = false_words.of_comparisons(rows).strip()
    return table


def medians(found: Tables) -> pd.DataFrame:
    """A row per experiment, workload and amount of work: medians of the valid runs."""
    table = pd.DataFrame([row for growth in growths() for row in _median_rows(found, growth)])
    table.attrs["missing"] = "**Not measured yet:** run " + ", ".join(
        f"`{how(growth).split(',')[0]}`" for growth in growths()
    )
    return table


def _median_rows(found: Tables, growth: Growth) -> list[dict]:
    rows = []
    for (line, work), part in analysed.at_each(found, growth).groupby(["line", "work"], sort=False):
        values = part.set_index("measure")["value"]
        rows.append(
            {
                "experiment": growth.experiment,
                "workload": line,
                "work": f"{amount(growth, work)} {growth.name}",
                **{_NAMES[name]: value(values.get(name), name) for name in analysed.MEASURES},
                "runs": part["runs"].max(),
            }
        )
    return rows


def place(runs: pd.DataFrame) -> str:
    """Rate and connections of the runs, where all have the same."""
    named = [
        words.value(name, runs[name].iloc[0])
        for name in ("offered_rate_rps", "connections")
        if runs[name].nunique() == 1
    ]
    return f"At {words.several(named)}" if named else "At several rates"


def works(growth: Growth, least: float, most: float) -> str:
    return f"{amount(growth, least)} to {amount(growth, most)}"


def amount(growth: Growth, work: float) -> str:
    return words.times(work, 2) if growth == LARGER_THAN_MEMORY else words.count(work)


def value(number: float | None, measure: str) -> str:
    if measure == analysed.MEMORY:
        return words.size(number)
    return words.latency(number) if measure == CPU or measure.startswith("p") else words.share(number)
