"""Tables for people: medians with intervals for each configuration, runs with their verdicts, checks,
provenance."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from kvstudy.analyse import percentile_grid, rates, tail
from kvstudy.analyse import published as published_numbers
from kvstudy.analyse.answers import factors
from kvstudy.analyse.comparison.words import CANNOT_TELL, MIN_RUNS, WORDS
from kvstudy.analyse.conditions import NOT_RECORDED, hosts_in_words
from kvstudy.analyse.configuration import INVALID, RATE, configured, differing
from kvstudy.analyse.option_duets import BY_DUET
from kvstudy.analyse.published import Published
from kvstudy.analyse.replication import profile_shares as replication_shares
from kvstudy.analyse.tables import Tables, source_of
from kvstudy.present import capacity, claim_text, false_words, series, words
from kvstudy.present.markdown import Markdown
from kvstudy.present.spreads import spread

WHO = ["workload", "generator", "variant", "label", "connections", "threads", "offered_rate_rps"]
_WHERE = ["workload", "connections", "offered rate"]  # of a comparison's row
_OF_PAIRS = "median ratio of pairs"  # not that of the medians beside it


def by_configuration(
    tables: Tables, percentiles: tuple[float, ...] = (50.0, 99.0, 99.9), latency_kind: str = "response"
) -> pd.DataFrame:
    """One row per configuration, as text: what was asked, achieved rate, latencies as ``median [low, high]``
    over valid runs, and the names of these, which a page makes links."""
    runs = configured(tables.runs)
    who = [name for name in WHO if name != "generator" or runs[name].nunique() > 1]
    # Two lines that look the same are two configurations: what tells them apart is a column too.
    who += [
        name for name in differing(runs, ["experiment", *who]) if name not in ("service_options", "method")
    ]
    points, informative = (
        tables.percentiles[tables.percentiles["latency_kind"] == latency_kind],
        rates.informative_run_ids(tables),
    )
    rows = []
    for _, group in runs.sort_values([*WHO, "start_utc", "repeat"]).groupby("configuration", sort=False):
        first, valid = group.iloc[0], group[group["verdict"] != "FAIL"]
        row = {
            words.factor(name): first[name]
            if name in ("connections", "threads")
            else words.value(name, first[name])
            for name in who
        }
        row["valid runs"] = f"{len(valid)} of {len(group)}"
        row["achieved rate"] = spread(
            group.loc[group["run_id"].isin(informative), "achieved_rate_rps"], words.rate
        )
        for percentile in percentiles:
            mine = points[
                points["run_id"].isin(valid["run_id"]) & percentile_grid.at(points["percentile"], percentile)
            ]
            row[words.percentile(percentile)] = spread(mine["latency_us"], words.latency)
        row["runs"] = " ".join(valid["run_id"])
        rows.append(row)
    return said_once(_without_idle_columns(pd.DataFrame(rows)), [words.factor(name) for name in who])


def run_list(tables: Tables) -> pd.DataFrame:
    """One row per run: what was asked, what was achieved, verdict and the checks that did not pass, with what
    they saw; ``checks`` says what they require."""
    worse = tables.validity[tables.validity["verdict"] != "PASS"]
    reasons = {
        run_id: "; ".join(f"{row.check}: {row.observed}" for row in rows.itertuples())
        for run_id, rows in worse.groupby("run_id")
    }
    rows = [
        {
            "verdict": run.verdict,
            "run": run.run_id,
            "not passed": reasons.get(run.run_id, ""),
            "workload": run.workload,
            "variant": run.variant or "default",
            "label": run.label or "none",
            "connections": run.connections,
            "threads": run.threads,
            "offered": words.value("offered_rate_rps", run.offered_rate_rps),
            "achieved": words.rate(run.achieved_rate_rps),
            "repeat": run.repeat,
            "profiled": "yes" if run.profiled else "no",
        }
        for run in tables.runs.itertuples()
    ]
    return said_once(
        _without_idle_columns(pd.DataFrame(rows), ("variant", "label", "profiled")),
        ["workload", "variant", "label", "connections", "threads", "offered"],
    )


def checks(tables: Tables) -> pd.DataFrame:
    """One row per check: how many runs passed, were marked or failed, and what it requires, which is the same
    for every run."""
    counted = tables.validity.groupby(["check", "verdict"]).size().unstack(fill_value=0)
    counted = counted.reindex(columns=["PASS", "WARN", "FAIL"], fill_value=0)
    counted["required"] = tables.validity.groupby("check")["required"].first()
    return counted.sort_values(["FAIL", "WARN"], ascending=False).reset_index().rename_axis(columns=None)


def provenance(tables: Tables) -> pd.DataFrame:
    """What was measured, when, from which revision, on which machine: one row per fact."""
    runs = tables.runs
    revisions = sorted(
        {
            f"{run.revision[:12]}{' with uncommitted changes' if run.dirty else ''}"
            for run in runs.itertuples()
        }
    )
    facts = {
        "runs": f"{len(runs)} from {source_of(tables)}",
        "measured": f"{runs['start_utc'].min()} to {runs['start_utc'].max()}" if len(runs) else words.MISSING,
        "revision": words.several(revisions),
        "experiments": words.several(sorted(runs["experiment"].unique())),
        "machine": words.several(_machines(tables)),
        "where": words.several(sorted({hosts_in_words(text) for text in runs["hosts"]})),
    }
    return pd.DataFrame({"fact": facts.keys(), "value": facts.values()})


def _machines(tables: Tables) -> list[str]:
    """CPU, cores and kernel of every machine that runs were measured on."""
    known = [json.loads(text) if text != NOT_RECORDED else {} for text in tables.runs["machine"].unique()]
    found = {
        ", ".join(str(one[key]) for key in ("cpu_model", "cores", "kernel") if key in one) or NOT_RECORDED
        for one in known
    }
    return sorted(found) or [words.MISSING]


def _without_idle_columns(frame: pd.DataFrame, names: tuple[str, ...] = ("variant", "label")) -> pd.DataFrame:
    """A column that says the same for every row, and nothing at that, is left out."""
    idle = [name for name in names if name in frame and set(frame[name]) <= {"default", "none", "no", ""}]
    return frame.drop(columns=idle)


def said_once(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """``frame`` without those columns of ``names`` that say the same in every row: its caption (``attrs``)
    says it instead. Threads that are as many as the connections in every row are told by these."""
    names = [name for name in names if name in frame]
    if len(frame) < 2:
        return frame
    same = [name for name in names if frame[name].nunique() == 1]
    parts = [_named(name, frame[name].iloc[0]) for name in same]
    if "threads" in names and "threads" not in same and (frame["threads"] == frame["connections"]).all():
        same.append("threads")
        parts.append("as many threads as connections")
    shorter = frame.drop(columns=same)
    if parts:
        shorter.attrs["caption"] = f"In every row: {words.several(parts)}."
    return shorter


def _named(name: str, value: object) -> str:
    """*no label* has its name."""
    return value if str(value).endswith(f" {name}") else f"{name} {value}"


def held(tables: Tables) -> pd.DataFrame:
    """One row per combination of workload, connections and options: highest offered rate held, lowest not
    held, of the runs that say so (analyse.rates); with fewer than MIN_RUNS at a rate nobody can tell."""
    points = rates.held_rates(tables).assign(offered_rate_rps=math.nan)
    if points.empty:
        return pd.DataFrame(columns=["workload", "connections", "highest rate held", "saturated at"])
    points["sizes"] = series.differing(points, "data", ["experiment", "workload"])
    group = ["experiment", "workload", "sizes", "variant", "label", "connections", "threads"]
    # Two windows, or two builds, are two rows: what tells them apart is a column too.
    more = [
        name
        for name in differing(points, [*group, "offered_rate_rps"])
        if name not in ("service_options", "method", "data")
    ]
    points = points.sort_values(group, kind="stable", ignore_index=True)
    sure = (points["fewest"] >= MIN_RUNS).tolist()
    frame = pd.DataFrame(
        {
            "experiment": points["experiment"],
            "workload": points["workload"],
            "sizes": points["sizes"],
            "variant": points["variant"].replace("", "default"),
            "label": points["label"].replace("", "none"),
            "connections": points["connections"],
            "threads": points["threads"],
            **{words.factor(name): [words.value(name, value) for value in points[name]] for name in more},
            "runs": points["runs"],
            "highest rate held": [
                words.rate(rate) if sure else CANNOT_TELL
                for rate, sure in zip(points["highest_held_rps"], sure, strict=True)
            ],
            "saturated at": [
                CANNOT_TELL
                if not enough
                else "above the rates offered"
                if np.isnan(rate)
                else words.rate(rate)
                for rate, enough in zip(points["saturation_rps"], sure, strict=True)
            ],
        }
    )
    return _without_idle_columns(frame, ("sizes", "variant", "label"))


def steepest(tables: Tables, factor: str, percentile: float = 99.0) -> Markdown:
    """A sentence: between which two values of ``factor``, all else equal, ``percentile`` differs the most,
    with interval and word."""
    answer = factors.differences(tables, factor, percentile)
    if not answer.claims:
        return Markdown(
            f"**Found:** no two values of {words.factor(factor)} have valid runs that are otherwise "
            "alike, so nothing is compared."
        )
    first, counts = answer.claims[0], Counter(claim.word for claim in answer.claims)
    text = words.several([f"{counts[word]} {word}" for word in WORDS if counts[word]])
    where = "" if factor == "workload" else f"{first.subject.workload}, "
    (before, after), sides = first.ends, first.sides
    return Markdown(
        f"**Found:** of {words.counted(len(answer.claims), 'comparison')} over {words.factor(factor)}, "
        f"all else equal: {text}. "
        f"The largest{' decided' if first.differs else ''}: {where}{first.measure} "
        f"{words.latency(before)} at {claim_text.side(factor, first.baseline)} and {words.latency(after)} "
        "at "
        f"{claim_text.side(factor, first.variant)}, ratio {claim_text.estimate(first)} "
        f"({claim_text.certainty(first)}; {sides[0]} and {sides[1]} runs)."
        f"{false_words.of_runs(len(answer.claims))}"
    )


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """``analyse.configuration.comparisons`` as text: one row per measure and configuration."""
    frame = pd.DataFrame(
        [
            {
                "word": words.word(row),
                "measure": row.measure,
                "ratio": ratio(row),
                "runs": f"{row.runs_before} and {row.runs_after}",
                **_findable(row, rows),
                **_ends(row),
                "workload": row.workload,
                "connections": row.connections,
                "offered rate": words.value("offered_rate_rps", row.offered_rate_rps),
                **({"differs": row.differs} if (rows["differs"] != "").any() else {}),
            }
            for row in rows.itertuples()
        ]
    )
    if frame.empty:
        return missing(
            "No configuration has valid runs of both sides.",
            "kvstudy run experiments/handler.yaml --preset reference",
            ["word", "workload", "measure", "ratio"],
        )
    return said_once(frame, _WHERE)


def options(rows: pd.DataFrame) -> pd.DataFrame:
    """``options.every`` as text: one row per experiment, value and measure."""
    frame = pd.DataFrame(
        [
            {
                "word": words.word(row),
                "experiment": row.experiment,
                "instead": row.after_name,
                "measure": row.measure,
                "ratio": ratio(row),
                **_rests_on(row),
                **_findable(row, rows),
                "workload": row.workload,
                "connections": row.connections,
                "offered rate": words.value("offered_rate_rps", row.offered_rate_rps),
                "default": row.before_name,
            }
            for row in rows.itertuples()
        ]
    )
    if frame.empty:
        return missing(
            "No option was varied yet.",
            "kvstudy run experiments/handler.yaml --preset reference",
            ["word", "experiment", "measure", "ratio"],
        )
    return said_once(frame, _WHERE)


def _rests_on(row) -> dict[str, str]:
    if getattr(row, "by", "") != BY_DUET:
        said = getattr(row, "beside", "")
        return {"runs": f"{row.runs_before} and {row.runs_after}{f', {said}' if said else ''}"}
    whose = claim_text.YOURS if row.is_own else claim_text.REFERENCE
    parts = [f"duet of {words.counted(row.runs_before, 'launch')}", whose, row.beside]
    return {"runs": ", ".join(filter(None, parts))}


def searches(tables: Tables) -> pd.DataFrame:
    """One row per trial of every search for a stable rate: its rate, purpose, latency, what it answered the
    search and the verdict of its checks, in the order of the trials."""
    trials = tables.runs[tables.runs["search"] != ""]
    rows = [
        {
            "experiment": run.experiment,
            "workload": run.workload,
            "trial": run.plan_index + 1,
            "purpose": json.loads(run.search)["purpose"],
            "offered": words.rate(run.offered_rate_rps),
            "achieved": words.rate(run.achieved_rate_rps),
            "mean": words.latency(run.response_mean_us),
            "answer": run.answer,
            "checks": run.verdict,
            "connections": run.connections,
            "run": run.run_id,
        }
        for run in trials.itertuples()
    ]
    if not rows:
        return missing(
            "No search for a stable rate was measured.",
            "kvstudy run experiments/report-1.yaml --preset reference",
            ["experiment", "workload", "trial", "offered"],
        )
    return pd.DataFrame(rows)


def held_shares(trials: Tables) -> pd.DataFrame:
    """One row per search and rate that it tried: how many trials held it, and the share of trials that would,
    with its interval."""
    rows = [
        {
            "search": one.name,
            "offered": words.rate(row.offered_rate_rps),
            "P(held)": words.share(row.share) + words.interval(row.low, row.high, words.share),
            "held": f"{row.held} of {row.trials}",
        }
        for one in capacity.searches(trials)
        for row in rates.held_by_rate(one.trials).itertuples()
        if row.trials
    ]
    if not rows:
        none = missing(
            "No search for a stable rate was measured.",
            "kvstudy run experiments/report-1.yaml --preset reference",
            ["search", "offered", "P(held)", "held"],
        )
        if (trials.runs["search"] != "").any():
            none.attrs["missing"] = "No trial of a search says whether its rate was held."
        return none
    return said_once(pd.DataFrame(rows), ["search"])


def missing(what: str, command: str, columns: list[str]) -> pd.DataFrame:
    """A table without rows that says what is missing, and the command that measures it: ``notebook.show``
    prints that in its place."""
    frame = pd.DataFrame(columns=columns)
    frame.attrs["missing"] = f"{what} Measure it: `{command}`."
    return frame


def _findable(row, rows: pd.DataFrame) -> dict[str, str]:
    """Beside *cannot tell* the smallest difference that these runs could have found; no column where every
    row is decided."""
    if not (rows["word"] == CANNOT_TELL).any():
        return {}
    return {"could have found": could_find(row)}


def could_find(row) -> str:
    """Of a row of ``comparisons``; "" where it is decided."""
    if row.word != CANNOT_TELL:
        return ""
    limit = words.findable_briefly(row.found, min(row.runs_before, row.runs_after) >= MIN_RUNS)
    return f"above {limit}" if words.findable_limit(row.found) else limit


def ratio(row) -> str:
    """Of a row of ``comparisons``: "1.51 × [1.45, 1.54 ×]"; none of the shares of invalid runs, which may be
    zero."""
    return words.MISSING if row.measure == INVALID else words.ratio(row.ratio, row.low, row.high)


def _ends(row) -> dict[str, str]:
    if row.measure == INVALID:
        return {
            "before": f"{row.invalid_before} of {row.of_before}",
            "after": f"{row.invalid_after} of {row.of_after}",
        }
    return {"before": _measured(row.measure, row.before), "after": _measured(row.measure, row.after)}


def _measured(measure: str, value: float) -> str:
    return words.rate(value) if measure == RATE else words.latency(value)


def published_checks(published: Published, folder: Path) -> pd.DataFrame:
    """One row per published result and check of ours that it did not pass: what its own text shows."""
    rows = []
    for _, result in published.results.iterrows():
        for check in published_numbers.checks(result, folder):
            if check.verdict == "FAIL":
                rows.append(
                    {
                        "report": result["report"],
                        "text": result["text"],
                        "called held": words.MISSING
                        if pd.isna(result["called_held"])
                        else result["called_held"],
                        "check": check.check,
                        "observed": check.observed,
                        "required": check.required,
                    }
                )
    return pd.DataFrame(rows, columns=["report", "text", "called held", "check", "observed", "required"])


def profile_shares(published: Published, tables: Tables) -> pd.DataFrame:
    """``analyse.replication.profile_shares`` as text: one row per report, profile and subsystem of ours."""
    return pd.DataFrame(
        [
            {
                "verdict": one.verdict,
                "report": one.report,
                "method": one.method,
                "event": one.event,
                "subsystem": one.subsystem,
                "published": f"{one.theirs_percent:g} %",
                "measured": spread(one.ours, words.share),
                "runs": len(one.ours),
                "lost": words.count(one.lost),
                "published at": words.rate(one.offered_rate_rps),
                "measured at": words.several([words.rate(rate) for rate in one.at_rates_rps])
                if len(one.ours)
                else words.MISSING,
                "part": words.several(
                    [
                        f"{part.part} {part.share_percent:g} %" if len(one.parts) > 1 else part.part
                        for part in one.parts.itertuples()
                    ]
                ),
            }
            for one in replication_shares.compare(published, tables)
        ]
    )


def causes(found: pd.DataFrame) -> pd.DataFrame:
    """``analyse.tail.causes`` as text: one row per kind of event, and what no event touches."""
    return pd.DataFrame(
        [
            {
                "event": words.factor(row.cause),
                "word": row.word,
                "events": words.count(row.events),
                "longest": words.latency(row.longest_ms * 1e3),
                "slow answers": words.count(row.slow_requests),
                "share": words.share(row.share),
                "by chance": words.share(row.chance),
                "p": words.MISSING if np.isnan(row.p_value) else f"{row.p_value:.2g}",
                "alone": words.share(row.share_alone),
                "why": row.why,
            }
            for row in found.itertuples()
        ]
    )


def interventions(found: pd.DataFrame) -> pd.DataFrame:
    """``analyse.intervention.interventions`` as text: one row per kind held off."""
    columns = [
        "held off",
        "with it",
        "word",
        "p99 as usual",
        "p99 without",
        _OF_PAIRS,
        "interval",
        "pairs",
        "p",
        "why",
    ]
    if found.empty:
        return missing(
            "Nothing was held off yet, so nothing can be called a cause.",
            "kvstudy run experiments/tail-intervention.yaml --preset reference",
            columns,
        )
    return pd.DataFrame(
        [
            {
                "held off": f"{words.factor(row.cause)} ({row.held_off})",
                "with it": words.several([words.factor(kind) for kind in row.also])
                if row.also
                else words.MISSING,
                "word": row.word,
                "p99 as usual": words.latency(row.usual_us),
                "p99 without": words.latency(row.without_us),
                _OF_PAIRS: words.times(row.ratio),
                "interval": words.interval(row.low, row.high, words.times).strip() or words.MISSING,
                "pairs": row.pairs,
                "p": words.MISSING if np.isnan(row.p_value) else f"{row.p_value:.2g}",
                "why": row.why,
            }
            for row in found.itertuples()
        ],
        columns=columns,
    )


def _longest_first(ran: pd.Series) -> str:
    """Six of them, each once, and how many more there were."""
    texts = list(dict.fromkeys(ran))
    return "; ".join(texts[:6]) + (f"; and {len(texts) - 6} more" if len(texts) > 6 else "")


def slowest_seconds(tables: Tables, limit_us: float, rows: int = 20) -> pd.DataFrame:
    """The seconds with most slow answers, and what ran in each."""
    aligned = tail.alignment(tables, limit_us).sort_values("duration_ms", ascending=False)
    named = [
        tail.NO_EVENT
        if row.kind == tail.NO_EVENT
        else f"{words.factor(row.kind)} {words.latency(row.duration_ms * 1e3)}"
        for row in aligned.itertuples()
    ]
    seconds = (
        aligned.assign(ran=named)
        .groupby(["run_id", "second", "slow"], as_index=False)["ran"]
        .agg(_longest_first)
    )
    seconds = seconds.sort_values("slow", ascending=False).head(rows)
    seconds["slow"] = seconds["slow"].map(words.count)
    return seconds.reset_index(drop=True).rename(
        columns={"slow": "slow answers", "ran": "in that second", "run_id": "run"}
    )[["slow answers", "second", "in that second", "run"]]
