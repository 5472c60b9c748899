"""Page 10: the service beside other programs, as sentences and tables.

found = peers.measured()          Tables of the experiment; without a run where nobody measured it
peers.answer(found)               one sentence, and what to type where there is nothing
peers.claims(found)               every comparison as a claim
peers.compared(found)             a row per peer, workload, rate, size and measure
peers.held(found)                 the highest rate that each held, by size
"""

import math

import pandas as pd

from kvstudy.analyse import peers as analysed
from kvstudy.analyse.answers import Answer
from kvstudy.analyse.claim import comparison_claim
from kvstudy.analyse.comparison.words import CANNOT_TELL, FASTER, MIN_RUNS, SAME, SLOWER
from kvstudy.analyse.configuration import CPU
from kvstudy.analyse.tables import Tables
from kvstudy.plan.subject import EMPTY
from kvstudy.present import false_words, notebook, summary, words
from kvstudy.present.markdown import Markdown

HOW = (
    "**The service was not measured beside others yet.** `make peers` does it in about five minutes; "
    "`make html` then makes this page. It needs nginx-light, webdis and redis-server (Debian's names): "
    "`kvstudy doctor` says what is missing."
)
P50 = "p50"


def measured(experiment: str = analysed.EXPERIMENT) -> Tables:
    """Its valid and invalid latency runs; none of them where it was not measured."""
    return notebook.latency_runs(notebook.experiment_tables(experiment, notebook.all_tables()))


def answer(found: Tables) -> Markdown:
    """Of how many of the comparisons of p50 each peer is slower or faster than ours."""
    names = analysed.peers(found)
    if len(names) < 2:
        return Markdown(HOW if not names else f"{HOW} Measured until now: {names[0]} alone.")
    rows = found.cached(analysed.compared)
    rows = rows[rows["measure"] == P50]
    parts = [f"**{name}** {_of_peer(rows[rows['server'] == name])}" for name in names[1:] if name != EMPTY]
    parts += [
        f"the empty server, which keeps nothing, {_of_peer(rows[rows['server'] == EMPTY])}"
        for _ in range(EMPTY in names)
    ]
    return Markdown(
        f"## {headline(found)}\n\nMedian response time, each against {names[0]} at the same rate and "
        f"size: {'; '.join(parts)}."
    )


def headline(found: Tables) -> str:
    """A sentence without its full stop: how often a peer is slower at the median."""
    ours, told = analysed.peers(found)[0], decided(found)
    if told.empty:
        return f"{CANNOT_TELL.capitalize()} whether {ours} answers faster than its peers"
    slower = int((told["word"] == SLOWER).sum())
    of = words.counted(len(told), "decided comparison")
    return f"{ours} answers faster than a peer in {slower} of {of}"


def decided(found: Tables) -> pd.DataFrame:
    """The comparisons of p50 with a peer that ``headline`` counts. The empty server is nobody's peer."""
    rows = found.cached(analysed.compared)
    return rows[(rows["measure"] == P50) & (rows["server"] != EMPTY) & (rows["word"] != CANNOT_TELL)]


def claims(found: Tables) -> Answer | None:
    """Every comparison, of every measure; None where there is none."""
    ours = next(iter(analysed.peers(found)), "")
    made = [
        comparison_claim(
            row, ours, f"{row.server} with {words.chosen_size(row.value_bytes)}", analysed.EXPERIMENT
        )
        for row in found.cached(analysed.compared).itertuples()
    ]
    return Answer(tuple(made), len(found.runs)) if made else None


def _of_peer(rows: pd.DataFrame) -> str:
    counts = [
        f"{word} in {count}"
        for word in (SLOWER, FASTER, SAME, CANNOT_TELL)
        if (count := int(rows["word"].str.startswith(word).sum()))
    ]
    return (
        f"is {words.several(counts)} of {words.counted(len(rows), 'comparison')}"
        if len(rows)
        else "has no run at a common place"
    )


def compared(found: Tables) -> pd.DataFrame:
    """Ratios of a peer to ours; under MIN_RUNS runs a side the word is always *cannot tell*."""
    rows = found.cached(analysed.compared)
    ours = next(iter(analysed.peers(found)), "ours")
    table = pd.DataFrame(
        [
            {
                "word": words.word(row),
                "peer": row.server,
                "workload": row.workload,
                "values": words.chosen_size(row.value_bytes),
                "offered": words.rate(row.offered_rate_rps),
                "connections": row.connections,
                "measure": row.measure,
                ours: value(row.before, row.measure),
                "of the peer": value(row.after, row.measure),
                "ratio": summary.ratio(row),
                "runs": f"{row.runs_before} and {row.runs_after}",
                **({"differs": row.differs} if (rows["differs"] != "").any() else {}),
            }
            for row in rows.sort_values(
                ["server", "workload", "value_bytes", "offered_rate_rps", "connections", "measure"]
            ).itertuples()
        ]
    )
    table.attrs |= {"missing": HOW, "caption": false_words.of_comparisons(rows).strip()}
    return table


def held(found: Tables) -> pd.DataFrame:
    """A row per workload, size and number of connections, a column per program: the highest rate that it
    held, of those that were offered."""
    rows, names = analysed.held(found), analysed.peers(found)
    places = ["workload", "value_bytes", "connections"]
    table = pd.DataFrame(
        [
            {
                "workload": workload,
                "values": words.chosen_size(size),
                "connections": connections,
                **{name: _held(group[group["server"] == name]) for name in names},
            }
            for (workload, size, connections), group in rows.groupby(places)
        ]
    )
    table.attrs["missing"] = HOW
    return table


def _held(rows: pd.DataFrame) -> str:
    """Of each configuration of a program at one place, named by what tells it from the others."""
    parts = [f"{row.differs}: {_held_by(row)}" if row.differs else _held_by(row) for row in rows.itertuples()]
    return "; ".join(parts) or words.MISSING


def _held_by(row) -> str:
    few = f" (under {MIN_RUNS} runs)" if row.fewest < MIN_RUNS else ""
    if math.isnan(row.saturation_rps):
        return f"every rate, to {words.rate(row.highest_held_rps)}{few}"
    missed = f"not {words.rate(row.saturation_rps)}"
    known = "" if math.isnan(row.highest_held_rps) else f"{words.rate(row.highest_held_rps)}, "
    return f"{known}{missed}{few}"


def value(number: float, measure: str) -> str:
    if measure == CPU:
        return f"{number:.3g} µs"
    return words.latency(number) if measure.startswith("p") else words.share(number)
