"""What makes two runs repeats of one another: everything that was asked for, the programs and the machine are
the same. Only repeats share a median.

    runs = configured(tables.runs)                     adds ``data``, and the digests ``configuration``
                                                       and ``combination``
    comparisons(tables, "label", "before", "after")    ratio of medians for every pair of configurations that
                                                       differ in the label alone
    each_configuration(runs)                           parts of runs that share a median
    why_not_repeats(runs)                              why runs share none
    measured_apart(first_utc, second_utc)              whether two sides were not measured in turn
    differing(runs, ["workload"])                      what tells configurations apart that the columns named
                                                       do not
"""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd

from kvstudy.analyse import conditions, percentile_grid, validity
from kvstudy.analyse.comparison import families, outcomes, power
from kvstudy.analyse.comparison.intervals import CONFIDENCE
from kvstudy.analyse.comparison.pairs import pair
from kvstudy.analyse.comparison.words import ALPHA, BELOW_AND_ABOVE
from kvstudy.analyse.tables import Tables
from kvstudy.plan.unique_keys import enough_unique_keys

# One series of runs over connections, threads and rates …
SERIES = [
    "experiment",
    "label",
    "variant",
    "workload",
    "data",
    "method",
    "server",
    "generator",
    "closed_loop",
    "service_options",
    "profiled",
    "processors_awake",
    "duration_s",
    "warm_up_s",
    *(name for name in conditions.COLUMNS if name != "pinning"),
]
# … and one point of it, repeated. On which cores it ran follows from its threads and from what was asked of
# ``cores``.
CONFIGURATION = [*SERIES, "connections", "threads", "pinning", "offered_rate_rps"]
# All of it but the rate: of workload, connections and options. What is held, and what is too much, is said of
# one.
COMBINATION = "combination"

# What changes together with a factor and so cannot be held equal in a comparison over it. A label stands for
# a change to the service, so its program may differ (and with it the build that a subject names); within one
# side it may not, as nothing else.
_FOLLOWS = {
    "label": {"service_program"},
    "variant": {"service_options", "jvm"},
    # only what writes has a head start
    "workload": {"data", "method", "fill", "head_start_bytes", "script_digest", "statuses"},
    "data": {"fill"},
    "connections": {"threads", "pinning"},
    "threads": {"pinning"},
    "experiment": {"label"},
    "server": {"variant", "subject", "service_program", "service_options", "jvm", "fill"},
    "generator": {"generator_program", "arrivals", "spin"},
}
RATE, CPU, INVALID = "achieved rate", "CPU per request", "invalid runs"  # measures beside the percentiles
APART_MIN = 0.5
RESOLUTION_US = 1.0  # of percentiles: the generator counts in whole microseconds
BETTER = {RATE: "higher", CPU: "less", INVALID: "fewer"}
COMPARISON_COLUMNS = [
    "workload",
    "connections",
    "threads",
    "offered_rate_rps",
    "measure",
    "before",
    "after",
    "ratio",
    "low",
    "high",
    "word",
    "runs_before",
    "runs_after",
    "differs",
    "apart",
    "invalid_before",
    "of_before",
    "invalid_after",
    "of_after",
    "p",
    "p_same",
    "same_within",
    "noise",
    "slack",
    "found",
    "family",
    "why",
]
_PLACE = COMPARISON_COLUMNS[:4]
_ARGUMENTS = ["workload", "workload_args", "closed_loop", "offered_rate_rps", "duration_s"]  # what _data asks
_NUMBERS = (
    "before",
    "after",
    "ratio",
    "low",
    "high",
    "p",
    "p_same",
    "same_within",
    "noise",
    "slack",
    "found",
)
_WHOLE_NUMBERS = (
    "connections",
    "threads",
    "runs_before",
    "runs_after",
    "invalid_before",
    "of_before",
    "invalid_after",
    "of_after",
    "family",
)


def configured(runs: pd.DataFrame) -> pd.DataFrame:
    """``runs`` with ``data`` (the workload's arguments that matter), and two digests: ``configuration``,
    equal for repeats, and COMBINATION, equal for runs that differ in the offered rate alone."""
    runs = runs.copy()
    runs["data"] = [_data(*run) for run in _rows(runs, _ARGUMENTS)]
    runs["configuration"] = _digests(runs, CONFIGURATION)
    runs[COMBINATION] = comparison_key(runs, "offered_rate_rps")
    return runs


def each_configuration(runs: pd.DataFrame, along: Sequence[str] = ()) -> list[tuple[str, pd.DataFrame]]:
    """``runs`` as parts that share a median, each with what tells it from the others ("" where it is alone).
    Whoever takes a median of runs that did not come through ``comparisons`` asks here first. ``along``:
    columns in which the runs of a part may differ all the same."""
    if runs.empty:
        return []
    runs = runs if "configuration" in runs else configured(runs)
    columns = [name for name in CONFIGURATION if name not in along]
    digests = _digests(runs, columns)
    if digests.nunique() == 1:
        return [("", runs)]
    parts = [part for _, part in runs.groupby(digests, sort=True)]
    first = pd.DataFrame([part.iloc[0] for part in parts])
    names = [name for name in columns if len({str(value) for value in first[name]}) > 1]
    differences = (
        zip(*([f"{name} {text}" for text in _different_parts(first[name])] for name in names), strict=True)
        if names
        else [()]
    )
    return [(", ".join(texts), part) for texts, part in zip(differences, parts, strict=True)]


def why_not_repeats(runs: pd.DataFrame, along: Sequence[str] = ()) -> str:
    """Why ``runs`` share no median; "" where they are repeats of one another."""
    parts = each_configuration(runs, along)
    differences = "; ".join(difference for difference, _ in parts)
    return f"runs of {len(parts)} configurations share no median ({differences})" if len(parts) > 1 else ""


def comparison_key(runs: pd.DataFrame, factor: str) -> pd.Series:
    """For configured runs: equal where they differ in nothing but ``factor`` and what changes together with
    it."""
    return _digests(
        runs,
        [
            column
            for column in CONFIGURATION
            if column != factor and column not in _FOLLOWS.get(factor, set())
        ],
    )


def differing(runs: pd.DataFrame, said: Sequence[str]) -> list[str]:
    """The columns of CONFIGURATION, but for ``said``, in which configured runs differ that are equal in all
    of ``said``."""
    groups = runs.groupby(list(said), dropna=False) if said else None
    rest = [column for column in CONFIGURATION if column not in said]
    counts = (
        {
            column: (
                groups[column].nunique(dropna=False).max() if said else runs[column].nunique(dropna=False)
            )
            for column in rest
        }
        if len(runs)
        else {}
    )
    return [column for column, count in counts.items() if count > 1]


def why_not_comparable(tables: Tables, factor: str, before, after) -> list[str]:
    """Why the two sides share no configuration: the columns in which their closest configurations differ,
    apart from ``factor`` and what follows it.

    Empty where a side has no believed run, or where some configurations do differ in ``factor`` alone.
    """
    runs = configured(tables.believed().runs)
    first, second = (runs[runs[factor] == side].drop_duplicates("configuration") for side in (before, after))
    others = [
        column for column in CONFIGURATION if column != factor and column not in _FOLLOWS.get(factor, set())
    ]
    unlike = [
        [column for column in others if str(getattr(one, column)) != str(getattr(other, column))]
        for one, other in product(first.itertuples(), second.itertuples())
    ]
    return min(unlike, key=len, default=[])


def comparisons(
    tables: Tables,
    factor: str,
    before,
    after,
    percentiles: Sequence[float] = (50.0, 99.0, 99.9),
    cpu: bool = False,
    share: float | None = families.WHOLE,
    confidence: float = CONFIDENCE,
) -> pd.DataFrame:
    """One row per measure and pair of configurations that have runs on either side of ``factor`` (a column of
    runs).

    Measures: response time at ``percentiles`` (microseconds, lower is better), achieved rate in a closed loop
    (higher is better); with ``cpu`` CPU per request, microseconds of the service without the JVM's compilers
    (a cost, less is better), of believed runs; and, where the service made runs invalid, INVALID: the share
    of its runs on each side.

    Columns COMPARISON_COLUMNS: medians before and after, their ratio after / before with its interval; the
    word, corrected for all rows at ``share`` of the page's error that ``tables`` may spend (``with_words``;
    None: no word yet, for rows that join a larger family). ``differs``: what tells rows of one place apart,
    such as two builds under one label. ``apart``: the sides were not measured in turn (``measured_apart``).
    ``invalid_before`` of ``of_before`` runs were made invalid by the service (``lost_runs``);
    ``slack``: how much of a ratio's logarithm whole microseconds hide; ``found``: the ratio that these runs
    could have found, whichever side it favours; infinite where a side lost a larger share of its runs, since
    what favours that side is never said; ``confidence``: of every interval.
    """
    runs = configured(tables.runs[~tables.runs["profiled"]])
    runs = runs[runs[factor].isin([before, after])]
    measured_as = dict(list(runs.groupby("configuration")["excluded"]))
    runs = runs[runs["excluded"] != validity.OUTSIDE]
    distinguishing, keys = _distinguishing_values(runs, factor), comparison_key(runs, factor)
    measured = _measures(tables, runs[runs["verdict"] != validity.FAIL], percentiles, cpu)
    values = {
        key: group.set_index("run_id")["value"]
        for key, group in measured.groupby(["configuration", "measure"], sort=True)
    }
    names = sorted(measured["measure"].unique())
    rows = []
    # Of many columns each part is slow to take.
    told = [factor, "configuration", *_PLACE, "excluded", "same_within", "start_utc"]
    for _, group in runs[list(dict.fromkeys(told))].groupby(keys, sort=True):
        sides = [
            [mine for _, mine in group[group[factor] == side].groupby("configuration", sort=True)]
            for side in (before, after)
        ]
        pairs = list(product(*sides))
        if factor == "connections":
            pairs = [one for one in pairs if _threads_alike(*one)] or pairs
        for first, second in pairs:
            ends = first["configuration"].iloc[0], second["configuration"].iloc[0]
            differs = " against ".join(dict.fromkeys(filter(None, (distinguishing[end] for end in ends))))
            outcome = lost_runs(*(measured_as[end] for end in ends))
            common = {
                **{name: first[name].iloc[0] for name in _PLACE},
                "differs": differs,
                **outcome,
                "same_within": float(first["same_within"].min()),
            }
            for measure in names:
                if (ends[0], measure) in values and (ends[1], measure) in values:
                    resolution = 0.0 if measure in BETTER else RESOLUTION_US
                    rows.append(
                        {
                            **common,
                            **compare_values(
                                *(values[end, measure] for end in ends),
                                common["same_within"],
                                resolution,
                                confidence,
                            ),
                            "measure": measure,
                            "apart": measured_apart(first["start_utc"], second["start_utc"]),
                        }
                    )
            if outcome["invalid_before"] or outcome["invalid_after"]:
                rows.append(
                    {
                        **common,
                        **_compared_outcomes(outcome),
                        "measure": INVALID,
                        "apart": measured_apart(first["start_utc"], second["start_utc"]),
                    }
                )
    # Said for every column, since a table without rows has no types of its own, and lends that to the tables
    # that it is joined to.
    frame = pd.DataFrame(rows, columns=COMPARISON_COLUMNS).astype(dict.fromkeys(_NUMBERS, "float64"))
    frame = frame.sort_values(_PLACE, kind="stable", ignore_index=True)
    return with_words(frame, share * tables.part) if share is not None else frame


def with_words(rows: pd.DataFrame, share: float = families.WHOLE) -> pd.DataFrame:
    """``rows`` of one or several ``comparisons`` as one family: ``word``, ``why``, ``found`` and ``family``
    anew."""
    outcomes_of = [
        (0, 1, 0, 1)
        if row.measure == INVALID
        else (row.invalid_before, row.of_before, row.invalid_after, row.of_after)
        for row in rows.itertuples()
    ]
    if rows.empty:
        return rows.assign(word=pd.Series([], dtype=object), why=pd.Series([], dtype=object)).astype(
            dict.fromkeys(_WHOLE_NUMBERS, "int64")
        )
    said = families.with_reasons(
        list(rows.itertuples()),
        [BETTER.get(measure, "lower") for measure in rows["measure"]],
        outcomes_of,
        share,
    )
    alpha = ALPHA * share / max(1, len(rows))
    found = [
        np.nan
        if row.measure == INVALID
        else np.inf
        if _forbids(BETTER.get(row.measure, "lower"), outcome)
        else power.detectable(
            row.noise,
            row.runs_before,
            row.runs_after,
            alpha,
            row.slack,
            freedom=row.runs_before + row.runs_after - 2,
        )
        for row, outcome in zip(rows.itertuples(), outcomes_of, strict=True)
    ]
    words, whys = (pd.Series(part, index=rows.index, dtype=object) for part in zip(*said, strict=True))
    return rows.assign(word=words, why=whys, found=np.array(found, dtype=float), family=len(rows)).astype(
        dict.fromkeys(_WHOLE_NUMBERS, "int64")
    )


def _forbids(better: str, outcome: tuple[int, int, int, int]) -> bool:
    """Whether lost runs forbid to say a difference of one direction or both."""
    return any(outcomes.allowed(word, *outcome) != word for word in BELOW_AND_ABOVE[better])


def compare_values(
    before: pd.Series,
    after: pd.Series,
    same_within: float,
    resolution: float = 0.0,
    confidence: float = CONFIDENCE,
) -> dict:
    """What one row of ``comparisons`` says of two sides' values, a number per run."""
    found = pair(before, after, same_within, confidence, resolution)
    return {
        "before": float(np.median(before)),
        "after": float(np.median(after)),
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "p_same": found.p_same,
        "noise": found.noise,
        "slack": found.slack,
        "runs_before": found.runs_before,
        "runs_after": found.runs_after,
    }


def lost_runs(first: pd.Series, second: pd.Series) -> dict[str, int]:
    """Of the runs of either side, by their ``excluded``, without those excluded from outside, how many the
    service made invalid. Where being excluded from outside befell one side more often than chance does, it
    was not from outside alone, and these count as well."""
    outside = [int((side == validity.OUTSIDE).sum()) for side in (first, second)]
    counts = [
        (int((side == validity.SERVICE).sum()), len(side) - lost)
        for side, lost in zip((first, second), outside, strict=True)
    ]
    before, after = ((lost, lost + of) for lost, (_, of) in zip(outside, counts, strict=True))
    if outcomes.outcome_p(*before, *after) <= ALPHA:
        counts = [(bad + lost, of + lost) for lost, (bad, of) in zip(outside, counts, strict=True)]
    return {
        "invalid_before": counts[0][0],
        "of_before": counts[0][1],
        "invalid_after": counts[1][0],
        "of_after": counts[1][1],
    }


def _threads_alike(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    """As many on both sides, or one for each connection: a thread more takes a core, which is no effect of
    connections."""
    ends = first.iloc[0], second.iloc[0]
    return ends[0]["threads"] == ends[1]["threads"] or all(
        end["threads"] == end["connections"] for end in ends
    )


def _compared_outcomes(outcome: dict) -> dict:
    """The share of invalid runs on each side; of all runs, since every one of them is an observation of
    it."""
    before, after = (
        outcome["invalid_before"] / outcome["of_before"],
        outcome["invalid_after"] / outcome["of_after"],
    )
    ratio = after / before if before else np.inf
    return {
        "before": before,
        "after": after,
        "ratio": ratio,
        "low": ratio,
        "high": ratio,
        "p": outcomes.outcome_p(*outcome.values()),
        "p_same": 1.0,
        "noise": np.nan,
        "slack": 0.0,
        "runs_before": outcome["of_before"],
        "runs_after": outcome["of_after"],
    }


def measured_apart(first_utc: pd.Series, second_utc: pd.Series) -> bool:
    """Whether the runs of two sides, which began at these times, were measured in blocks instead of in turn:
    a machine that drifts meanwhile looks like a change.

    The largest distance between the two distributions of times (Kolmogorov and Smirnov) is how much of a
    drift in one direction can become a difference: all of it where one side came first. From APART_MIN on a
    drift of 5 % makes over 5 % of false words. Two runs a side in turn are half a side apart all the same."""
    counts = len(first_utc), len(second_utc)
    if min(counts) < 2:
        return False
    times = sorted({*first_utc, *second_utc})
    reached = [
        np.searchsorted(np.sort(np.asarray(side)), times, side="right") for side in (first_utc, second_utc)
    ]
    distance = np.abs(reached[0] / counts[0] - reached[1] / counts[1]).max()
    return bool(distance >= APART_MIN and distance > 1 / min(counts))


def _distinguishing_values(runs: pd.DataFrame, factor: str) -> dict[str, str]:
    """Configuration → what tells it from others of the same side and place."""
    place = [factor, *(name for name in _PLACE if name != factor)]
    each = runs.drop_duplicates("configuration")
    are_alone = ~each.duplicated(place, keep=False)
    texts_of = dict.fromkeys(each.loc[are_alone, "configuration"], "")
    for _, one in each[~are_alone].groupby(place, dropna=False):
        parts = [[f"{name} {text}" for text in _different_parts(one[name])] for name in differing(one, place)]
        texts_of |= {
            name: ", ".join(texts) for name, *texts in zip(one["configuration"], *parts, strict=True)
        }
    return texts_of


def _different_parts(values: pd.Series) -> list[str]:
    """Of JSON objects only what differs between them; other values as they are."""
    if not all(str(value).startswith("{") for value in values):
        return [str(value) for value in values]
    parts = [json.loads(value) for value in values]
    names = [
        name
        for name in sorted({name for part in parts for name in part})
        if len({str(part.get(name)) for part in parts}) > 1
    ]
    return [" ".join(f"{name}={part.get(name, conditions.NOT_RECORDED)}" for name in names) for part in parts]


def _digests(runs: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """A missing offered rate (closed loop) is a value like any other here."""
    texts = (repr([str(value) for value in row]) for row in _rows(runs, columns))
    return pd.Series(
        [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts], index=runs.index, dtype=object
    )


def _rows(runs: pd.DataFrame, columns: Sequence[str]) -> Iterator[tuple]:
    """These columns, row by row. Several times as fast as ``itertuples``, which takes each column by its
    place."""
    return zip(*(runs[name].tolist() for name in columns), strict=True)


def _measures(tables: Tables, runs: pd.DataFrame, percentiles: Sequence[float], cpu: bool) -> pd.DataFrame:
    """One row per run and measure: run_id, configuration, ``measure`` and ``value`` (missing and zero values
    left out)."""
    # Of many columns each part is slow to take.
    runs = runs[["run_id", "configuration", "closed_loop", "achieved_rate_rps", "service_cpu_us_per_answer"]]
    points = tables.percentiles[tables.percentiles["latency_kind"] == "response"]
    parts = []
    for percentile in percentiles:
        values = points.loc[percentile_grid.at(points["percentile"], percentile), ["run_id", "latency_us"]]
        part = runs[~runs["closed_loop"]].merge(values.rename(columns={"latency_us": "value"}), on="run_id")
        parts.append(part.assign(measure=f"p{percentile:g}"))
    loops = runs[runs["closed_loop"]]
    parts.append(loops.assign(measure=RATE, value=loops["achieved_rate_rps"]))
    if cpu:
        parts.append(runs.assign(measure=CPU, value=runs["service_cpu_us_per_answer"]))
    measured = pd.concat(parts, ignore_index=True)
    return measured[measured["value"] > 0]


@lru_cache(maxsize=100_000)
def _data(
    workload: str, workload_args: str | None, closed_loop: bool, offered_rate_rps: float, duration_s: float
) -> str:
    """The workload's arguments, but for as many keys of unique_put as the plan chooses: these follow from
    rate and duration, and make it no other workload."""
    arguments = json.loads(workload_args or "{}")
    rate = None if closed_loop else offered_rate_rps
    is_known = math.isfinite(duration_s) and (rate is None or math.isfinite(rate))
    if workload == "unique_put" and (
        not is_known or arguments.get("key_count") == enough_unique_keys(rate, duration_s)
    ):
        arguments.pop("key_count", None)
    return json.dumps(arguments, sort_keys=True)
