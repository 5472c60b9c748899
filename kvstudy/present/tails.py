"""The slow answers of each workload in words and as a table; the picture is
``figures.tail.causes_by_workload``."""

import pandas as pd

from kvstudy.analyse.tail import LINKED, NO_EVENT, WorkloadCauses
from kvstudy.present import summary, words
from kvstudy.present.figures.tail import NOTHING_LINKED, linked_to, untouched
from kvstudy.present.markdown import Markdown

# What 07-tail expects the tails of each method to follow.
EXPECTED = {"PUT": ("flush", "wal_sync"), "GET": ("cpu_foreign", "cpu_steal")}


def summarize(groups: list[WorkloadCauses]) -> Markdown:
    """A line for each workload of ``analyse.tail.page_causes``: what its slow answers are linked to, or
    why that cannot be told, and whether it was expected."""
    lines = []
    for group in groups:
        link = (
            f"linked to {linked_to(group.found)}"
            if linked_to(group.found)
            else f"{NOTHING_LINKED}{nearest(group.found)}"
        )
        place = (
            f"**{group.workload} at {words.rate(group.offered_rate_rps)}** "
            f"({words.counted(group.runs, 'run')}), answers over {words.latency(group.limit_us)}"
        )
        lines.append(
            f"- {place}: {link}; {words.share(untouched(group.found))} have no recorded "
            f"event.{_expected(group)}"
        )
    return Markdown("\n".join(lines) or "No workload has answers at a rate to look at.")


def nearest(found: pd.DataFrame) -> str:
    """Of ``analyse.tail.causes`` without a linked kind: the one that most slow answers waited with, what
    chance gives, and why it is not linked."""
    events = found[found["cause"] != NO_EVENT]
    if events.empty:
        return ""
    row = events.iloc[0]
    return (
        f" ({words.factor(row['cause'])} overlaps {words.share(row['share'])}, by chance "
        f"{words.share(row['chance'])}: {row['why']})"
    )


def table(groups: list[WorkloadCauses]) -> pd.DataFrame:
    """``summary.causes`` of all groups, one below the other."""
    parts = []
    for group in groups:
        part = summary.causes(group.found)
        part.insert(0, "workload", f"{group.workload} at {words.rate(group.offered_rate_rps)}")
        part.insert(1, "over", words.latency(group.limit_us))
        parts.append(part)
    return (
        pd.concat(parts, ignore_index=True)
        if parts
        else pd.DataFrame({"workload": [], "over": [], "event": []})
    )


def slowest_first(groups: list[WorkloadCauses]) -> list[str]:
    """The names of the workloads."""
    return [group.workload for group in groups]


def _expected(group: WorkloadCauses) -> str:
    kinds = EXPECTED.get(group.method)
    if kinds is None:
        return ""
    linked = set(group.found.loc[group.found["word"] == LINKED, "cause"])
    held = [words.factor(kind) for kind in kinds if kind in linked]
    verdict = (
        f"{words.several(held)} {'is' if len(held) == 1 else 'are'} linked"
        if held
        else "neither can be called linked"
    )
    return f" Expected: {words.several([words.factor(kind) for kind in kinds])}; {verdict}."
