"""Which profiled runs a page shows, and what it calls them: valid ones wherever there are any; where there is
none, INVALID and why.

chosen = profile_of(tables, workload)      one run, for graphs that show one
choice(tables, chosen)                     a sentence: which, among how many
counted(tables)                            the valid runs, or all when none is valid: for charts that take
                                           several together
"""

import math
from collections.abc import Sequence

from kvstudy.analyse.answers.profiles import failures
from kvstudy.analyse.tables import Tables
from kvstudy.errors import KvstudyError
from kvstudy.present import words
from kvstudy.present.markdown import Markdown

INVALID = "INVALID"


def profile_of(tables: Tables, workload: str | Sequence[str] | None = None) -> Tables:
    """One completed profiled run, or none, as tables: a valid one if there is one, else one with samples; of
    these of ``workload`` (several names: the first that has one before the others; None: the first by name),
    at the highest rate, with most connections, the last that was measured. KvstudyError for what is no
    name."""
    if not isinstance(workload, str | list | tuple | None):
        raise KvstudyError(f"no name of a workload: {workload!r}", 'one in quotes, as "unique_put"')
    runs = tables.runs[tables.runs["profiled"] & (tables.runs["outcome"] == "completed")]
    if isinstance(workload, str):
        runs, order = runs[runs["workload"] == workload], [workload]
    else:
        order = list(dict.fromkeys([*(workload or []), *sorted(runs["workload"])]))
    invalid = runs["verdict"] == "FAIL"
    ranked = runs.assign(
        invalid=invalid,
        silent=invalid & ~runs["run_id"].isin(tables.columns("stacks", "run_id")["run_id"].unique()),
        place=[order.index(name) for name in runs["workload"]],
        load=runs["offered_rate_rps"].fillna(math.inf),
    )
    ranked = ranked.sort_values(
        ["invalid", "silent", "place", "load", "connections", "run_id"],
        ascending=[True, True, True, False, False, False],
    )
    return tables.only(ranked["run_id"].head(1))


def choice(tables: Tables, chosen: Tables) -> Markdown:
    """A sentence: which of the profiled runs of ``tables`` is ``chosen``, how many of them are valid, and
    that it is INVALID when it is."""
    if chosen.runs.empty:
        known = sorted(tables.runs.loc[tables.runs["profiled"], "workload"].unique())
        if known:
            return Markdown(f"**No profiled run of this workload.** There are: {', '.join(known)}.")
        return Markdown(
            "**No profiled run**, so no graph below. Experiments with `profile: [cpu, alloc]` make them."
        )
    run_id, workload = chosen.runs[["run_id", "workload"]].iloc[0]
    others = tables.runs[tables.runs["profiled"] & (tables.runs["workload"] == workload)]
    valid = int((others["verdict"] != "FAIL").sum())
    among = (
        f"of {words.counted(len(others), 'profiled run')} of {workload} {valid or 'none'} "
        f"{'is' if valid <= 1 else 'are'} valid"
    )
    taken = (
        f"of {'the valid ones' if valid else 'these'} the last at the highest rate is taken. A profiled "
        "run is never among those that latency is read off"
    )
    why = f" **{invalid(chosen)}**; no ranking below rests on it." if invalid(chosen) else ""
    return Markdown(f"**One run is shown:** {named(chosen)} (`{run_id}`); {among}; {taken}.{why}")


def counted(tables: Tables) -> Tables:
    """The valid runs; all of them when none is valid."""
    valid = tables.runs.loc[tables.runs["verdict"] != "FAIL", "run_id"]
    return tables.only(valid) if len(valid) else tables


def with_event(tables: Tables, event: str) -> Tables:
    """The runs that have samples of ``event``."""
    return tables.only(tables.stacks.loc[tables.stacks["event"] == event, "run_id"].unique())


def named(tables: Tables) -> str:
    """What was asked of one run, or how many runs there are of which workloads."""
    runs = tables.runs
    if len(runs) != 1:
        return f"{words.counted(len(runs), 'run')} of {words.several(sorted(set(runs['workload'])))}"
    run = next(runs.itertuples())
    return ", ".join(
        part
        for part in (
            run.workload,
            run.variant,
            run.label,
            words.value("connections", run.connections),
            words.value("offered_rate_rps", run.offered_rate_rps),
        )
        if part
    )


def invalid(tables: Tables) -> str:
    """ "INVALID: " and what the failed checks saw, when a run of ``tables`` failed one; else ""."""
    reasons = failures(tables)
    return f"{INVALID}: {'; '.join(dict.fromkeys(reasons.values()))}" if reasons else ""
