"""The answer to each experiment's question as a finding: the ruler, the searches, the options, the tail, the published reports.

    findings.told(tables, answers.RULER)       can the ruler be trusted?
    findings.told(tables, answers.SERVICE)     what does each option do, what rate is held, why is the tail slow, do the reports hold?
"""

import numpy as np
import pandas as pd
from IPython.display import Markdown

from kvstudy.analyse import intervention, rates, tail
from kvstudy.analyse.comparison.words import CANNOT_TELL, DIFFERENT, MIN_RUNS
from kvstudy.analyse.configuration import INVALID
from kvstudy.analyse.tables import Tables
from kvstudy.present import claim_rules, claims, findings, sides, tails, words
from kvstudy.present.figures.tail import linked_to, untouched
from kvstudy.present.figures.tail_intervention import finding
from kvstudy.present.findings import Finding, Rule, cannot_tell
from kvstudy.present.notebook import published_reports, slow_limit_us
from kvstudy.present.options import SAME_THING, at_the_highest, compared_options, instead, runs_behind, sides_in
from kvstudy.present.spreads import spread


def _empty_server(tables: Tables) -> Finding | None:
    tables = tables.select(experiment="instrument", profiled=False)
    points = findings.at(tables, 50)
    if points.empty:
        return cannot_tell("The ruler on a server that does nothing", "01-instrument", tables)
    parts = [f"{spread(group['latency_us'], words.latency)} at {words.rate(rate)}" for rate, group in points.groupby("offered_rate_rps")]
    return Finding(f"**The ruler on a server that does nothing:** the median response time is {words.several(parts)}.", "01-instrument", len(points))


def _generators(tables: Tables) -> Finding | None:
    tables = tables.select(experiment="generators")
    rows = sides.generators(tables)
    if rows.empty:
        return cannot_tell("loadgen beside wrk", "01-instrument", tables)
    row = rows[rows["measure"] == "achieved rate"].iloc[0]
    sentence = (
        f"**loadgen beside wrk, closed loop on an empty server:** {words.rate(row['after'])} and {words.rate(row['before'])}, "
        f"ratio {words.times(row['ratio'])}{words.interval(row['low'], row['high'], words.times)} ({words.word(row)})."
    )
    return Finding(sentence, "01-instrument", int(row["runs_before"] + row["runs_after"]))


def _stall(tables: Tables) -> Finding | None:
    tables = tables.select(experiment="stall").believed()
    points = tables.percentiles.merge(tables.runs[["run_id", "closed_loop", "offered_rate_rps"]], on="run_id")
    points = points[np.isclose(points["percentile"], 99) & points["latency_us"].notna()]
    seen = {kind: points[(points["latency_kind"] == kind) & ~points["closed_loop"]] for kind in ("response", "service")}
    closed = points[(points["latency_kind"] == "response") & points["closed_loop"]]
    if any(part.empty for part in (*seen.values(), closed)):
        return None
    sentence = (
        f"**Coordinated omission, shown:** of a service that stands still for one second, p99 is {spread(seen['response']['latency_us'], words.latency)} "
        f"from the intended start on a schedule of {words.rate(seen['response']['offered_rate_rps'].iloc[0])}, {spread(seen['service']['latency_us'], words.latency)} "
        f"from the send in the same runs, and {spread(closed['latency_us'], words.latency)} in a closed loop."
    )
    return Finding(sentence, "01-instrument", len(seen["response"]) + len(closed))


def _noise(tables: Tables) -> Finding | None:
    rows = sides.same_thing_twice(tables, SAME_THING)
    if rows.empty:
        return cannot_tell("The noise floor", "01-instrument", tables.select(experiment=SAME_THING))
    parts = [f"{workload} {words.several([_differs(row) for row in mine.itertuples()])}" for workload, mine in rows.groupby("workload")]
    wrong = rows["word"].isin(DIFFERENT).sum()
    alarms = "is a false alarm" if wrong == 1 else "are false alarms"
    told = "no word says that they differ, as it should be" if wrong == 0 else f"{wrong} of {words.counted(len(rows), 'word')} {alarms}"
    # The measures of one configuration are of the same runs.
    runs = int(rows.groupby(["workload", "connections", "threads", "offered_rate_rps"], dropna=False)[["runs_before", "runs_after"]].max().sum().sum())
    return Finding(f"**The noise floor:** the same thing measured twice differs: {'; '.join(parts)}. {told[0].upper()}{told[1:]}.", "01-instrument", runs)


def _differs(row) -> str:
    word = "" if row.word == CANNOT_TELL else f" ({words.word(row)})"
    return f"{row.measure} {words.times(row.ratio)}{words.interval(row.low, row.high, words.times)}{word}"


def _profiling(tables: Tables) -> Finding | None:
    rows = sides.profiled_against_not(tables)
    if rows.empty:
        return None
    parts = [f"{row.workload} {row.measure} {words.times(row.ratio)}{words.interval(row.low, row.high, words.times)} ({words.word(row)})" for row in rows.itertuples()]
    sentence = f"**What profiling costs,** as the ratio of a closed loop with the profiler to the same without: {words.several(parts)}."
    return Finding(sentence, "01-instrument", int(rows[rows["measure"] == rows["measure"].iloc[0]][["runs_before", "runs_after"]].sum().sum()))


def _searches(tables: Tables) -> Finding | None:
    parts, runs = [], 0
    for method in ("put", "get"):
        if (found := claim_rules.found_rate(method)(tables)) is not None:
            if np.isnan(found.high):
                parts.append(f"{method} at least {words.rate(found.low)}, no higher rate missed")
            else:
                parts.append(f"{method} {words.rate(found.value)}{words.interval(found.low, found.high, words.rate)}")
            runs += found.runs
    if not parts:
        return cannot_tell("Highest rate with a mean of at most 1 ms", "04-capacity", tables.select(experiment="report-1"))
    return Finding(f"**Highest rate with a mean of at most 1 ms on one connection:** {'; '.join(parts)}.", "04-capacity", runs)


def _options(tables: Tables) -> list[Finding]:
    """At the highest rate and connections, each value against the default: what is decided, one per experiment; what nobody could compare;
    and all that is undecided in one."""
    compared = compared_options(tables)
    compared = at_the_highest(compared[~compared["experiment"].isin(findings.RULER)])
    decided, told, unsure = compared[compared["word"] != CANNOT_TELL], [], []
    for experiment in sorted(set(tables.runs["experiment"]) - set(findings.RULER)):
        rows, mine = decided[decided["experiment"] == experiment], tables.select(experiment=experiment)
        if len(rows):
            told.append(Finding(f"**{experiment}:** {'; '.join(_decided(rows))}.", "06-before-after", runs_behind(tables, rows)))
        elif experiment not in set(compared["experiment"]) and sides_in(mine) is not None:
            unsure.append(cannot_tell(experiment, "06-before-after", mine))
    return [*told, *(finding for finding in (*unsure, _undecided(tables, compared)) if finding is not None)]


def _decided(rows: pd.DataFrame) -> list[str]:
    """For each place and value of one experiment what is decided of it, by its words."""
    parts = []
    for (workload, connections, rate), place in rows.groupby(["workload", "connections", "offered_rate_rps"], sort=False, dropna=False):
        offered = "in a closed loop" if np.isnan(rate) else f"at {words.rate(rate)}"
        sides = []
        for (before, after), group in place.groupby(["before_name", "after_name"], sort=False):
            ratios = group.assign(told=[_measured(row) for row in group.itertuples()], word=[words.word(row) for row in group.itertuples()])
            found = [f"{word} ({', '.join(same)})" for word, same in ratios.groupby("word", sort=False)["told"]]
            sides.append(f"{instead(before, after)} is {words.several(found)}")
        parts.append(f"{workload} {offered} on {words.value('connections', connections)}: {', '.join(sides)}")
    return parts


def _measured(row) -> str:
    if row.measure == INVALID:
        return f"{INVALID} {row.invalid_after} of {row.of_after} instead of {row.invalid_before} of {row.of_before}"
    return f"{row.measure} {words.times(row.ratio)}{words.interval(row.low, row.high, words.times)}"


def _undecided(tables: Tables, compared: pd.DataFrame) -> Finding | None:
    """One sentence: of which experiments how many comparisons decide nothing, and where the number of runs alone is the reason."""
    rows = compared[compared["word"] == CANNOT_TELL]
    if rows.empty:
        return None
    of = compared["experiment"].value_counts()
    parts = [f"{experiment} {count} of {of[experiment]}" for experiment, count in rows["experiment"].value_counts(sort=False).items()]
    few = rows[((rows["low"] > 1) | (rows["high"] < 1)) & (rows[["runs_before", "runs_after"]].min(axis=1) < MIN_RUNS)]
    sides = dict.fromkeys(f"{instead(row.before_name, row.after_name)} with {row.workload} ({row.runs_before} and {row.runs_after} runs)" for row in few.itertuples())
    why = f" In {len(few)} of them the number of runs alone forbids a word: {words.several(list(sides))}." if sides else ""
    sentence = f"**{CANNOT_TELL.capitalize()}** in {len(rows)} of {words.counted(len(compared), 'comparison')} of an option with its default: {words.several(parts)}.{why}"
    return Finding(sentence, "06-before-after", runs_behind(tables, rows))


def _caused(tables: Tables) -> Finding | None:
    """What the tail of unique PUTs is caused by, from the experiment that holds things off."""
    mine = tables.select(experiment=intervention.EXPERIMENT, profiled=False)
    found = intervention.interventions(mine)
    if found.empty:
        return cannot_tell("What makes slow PUTs slow", "07-tail", mine) if len(mine.runs) else None
    parts = [f"without {words.factor(row.cause)} p99 is {words.times(row.ratio)}{words.interval(row.low, row.high, words.times)} ({row.word}{': ' + row.why if row.why else ''})"
             for row in found.itertuples()]
    return Finding(f"**What makes slow PUTs slow:** {finding(found)[0].lower()}{finding(found)[1:]}: {words.several(parts)}.", "07-tail", len(mine.believed().runs))


def _tail(tables: Tables) -> Finding | None:
    """The slowest percent of unique PUTs at the highest rate that was held, with the words that 07-tail has for them."""
    measured = tables.select(experiment="reproduce", profiled=False).believed()
    if np.isinf(slow_limit_us(measured, 99.0)):
        return None
    group = next((group for group in tail.of_page(measured).groups if group.workload == "unique_put"), None)
    if group is None:
        return None
    told = f"is linked to {linked_to(group.found)}" if linked_to(group.found) else f"cannot be explained from these runs{tails.nearest(group.found)}"
    sentence = (
        f"**The slowest percent** of unique PUT at {words.rate(group.offered_rate_rps)} (over {words.latency(group.limit_us)}) {told}; "
        f"{words.share(untouched(group.found))} waited while no telling event was felt."
    )
    return Finding(sentence, "07-tail", group.runs)


def _published(tables: Tables) -> Finding | None:
    judged = claims.judge(published_reports(), tables)
    counts = judged["verdict"].value_counts()
    measured = judged[judged["runs"] > 0]
    if measured.empty:
        return None
    parts = [f"{counts[verdict]} {verdict}" for verdict in claims.VERDICTS if verdict in counts]
    ours = tables.only(tables.runs.loc[tables.runs["experiment"].str.startswith("report-"), "run_id"])
    # A trial answers its search, whatever its checks say of its latencies.
    count = rates.speaking(ours) | set(ours.runs.loc[ours.runs["answer"].isin(["held", "missed"]), "run_id"])
    return Finding(f"**Five published reports:** of {len(judged)} claims {words.several(parts)}.", "08-published-reports", len(count))


RULER: tuple[Rule, ...] = (_empty_server, _generators, _stall, _noise, _profiling)
SERVICE: tuple[Rule, ...] = (_searches, *findings.RULES, _caused, _tail, _published)


def options_told(tables: Tables) -> Markdown:
    """One finding for each experiment in which a value of an option is decided, and one for all that is undecided."""
    return findings.listed(_options(tables), "No option was varied yet. Measure one: `kvstudy run experiments/handler.yaml`.")
