"""Every published claim is judged by a rule: what our runs say decides, and a report's own mistake is never
reproduced."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from sample import empty_tables, sample_tables

from kvstudy.analyse import published
from kvstudy.analyse.replication import rules, verdicts
from kvstudy.analyse.replication.measured import Measured
from kvstudy.errors import KvstudyError
from kvstudy.present import claims, words
from kvstudy.present.figures.published import claims_measured, published_spectra, spectra

FOLDER = Path(__file__).resolve().parents[2] / "data" / "published"


@pytest.fixture(scope="module")
def reports():
    return published.load(FOLDER)


def runs_of(experiment, workload, rate, variant="", mean_us=200.0, achieved=1.0, repeats=5, closed=False):
    tables = sample_tables(
        rates=(float(rate),),
        connections=(4,),
        workloads=(workload,),
        repeats=repeats,
        capacity_rps=1e9,
        profiled=False,
    )
    runs = tables.runs.assign(
        experiment=experiment,
        variant=variant,
        response_mean_us=mean_us,
        closed_loop=closed,
        achieved_rate_rps=[rate * achieved * (1 + 0.001 * n) for n in range(len(tables.runs))],
    )
    return replace(tables, runs=runs)


def trials_of(experiment, workload, rate, answers, purpose="sweep"):
    """One trial of a search from 1 000/s to 28 000/s for each of ``answers``."""
    runs = runs_of(experiment, workload, rate, repeats=len(answers))
    search = json.dumps(
        {"purpose": purpose, "precision": 0.05, "lowest_rate_rps": 1000.0, "highest_rate_rps": 28000.0}
    )
    return replace(
        runs,
        runs=runs.runs.assign(
            search=search, answer=answers, run_id=[f"{rate} {purpose} {n}" for n in range(len(answers))]
        ),
    )


def together(*parts):
    return replace(parts[0], runs=pd.concat([part.runs for part in parts], ignore_index=True))


def verdict(reports, tables, claim):
    return claims.judge(reports, tables).set_index("claim").loc[claim, "verdict"]


def answered(**changes) -> pd.DataFrame:
    """The one row of a duet as ``option_duets.answers`` has it: PUT of report 3 by a pool is slower."""
    row = {
        "experiment": "report-3",
        "before_name": "handler=selector",
        "after_name": "handler=workers",
        "workload": "put",
        "connections": 16,
        "offered_rate_rps": 20000.0,
        "measure": "p50",
        "ratio": 1.9,
        "low": 1.5,
        "high": 2.0,
        "word": "slower",
        "same_within": 0.05,
        "runs_before": 11,
        "why": "",
        "is_own": False,
        "flattered": "",
    }
    return pd.DataFrame([row | changes])


def test_a_duet_that_asks_the_same_as_a_claim_decides_it_and_is_named(reports, monkeypatch):
    monkeypatch.setattr(claims.option_duets, "answers", lambda _duets: answered())
    judged = claims.judge(reports, empty_tables()).set_index("claim")
    row = judged.loc["r3-pool-faster"]
    assert (row["verdict"], row["runs"], row["measured"]) == (verdicts.NOT_REPRODUCED, 11, 1.9)
    assert row["note"].endswith("; by the duet of report-3")
    told = claims.table(judged.reset_index())
    assert told.loc[told["why"].str.contains("duet"), "runs"].tolist() == ["11 launches"]
    assert judged.loc["r3-get-unchanged", "verdict"] == verdicts.NOT_MEASURED


@pytest.mark.parametrize(
    "other",
    [
        {"connections": 64},
        {"offered_rate_rps": 2000.0},
        {"measure": "p99.9"},
        {"experiment": "handler"},
        {"after_name": "handler=virtual"},
        {"why": "launches fall into groups"},
        {"low": float("nan"), "high": float("nan")},
    ],
)
def test_a_duet_that_asks_anything_else_or_is_held_back_decides_no_claim(reports, monkeypatch, other):
    monkeypatch.setattr(claims.option_duets, "answers", lambda _duets: answered(**other))
    judged = claims.judge(reports, empty_tables()).set_index("claim")
    assert judged.loc["r3-pool-faster", "verdict"] == verdicts.NOT_MEASURED


@pytest.mark.parametrize(("lost", "said"), [(False, verdicts.REPRODUCED), (True, verdicts.CANNOT_TELL)])
def test_unchanged_is_not_said_by_a_duet_of_which_a_side_lost_more(reports, monkeypatch, lost, said):
    """It leaves open whether both are the same within 5 %; its interval lies within 10 %."""
    row = answered(
        workload="get",
        ratio=1.0,
        low=0.93,
        high=1.08,
        word="cannot tell",
        flattered="a side lost a larger share of its rounds" if lost else "",
    )
    monkeypatch.setattr(claims.option_duets, "answers", lambda _duets: row)
    judged = claims.judge(reports, empty_tables()).set_index("claim")
    assert judged.loc["r3-get-unchanged", "verdict"] == said
    told = claims.table(judged.reset_index())
    assert told["why"].str.contains("a side lost a larger share of its rounds").any() == lost


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.02, 1.09, verdicts.REPRODUCED),
        (1.02, 1.11, verdicts.CANNOT_TELL),
        (1.11, 1.2, verdicts.NOT_REPRODUCED),
    ],
)
def test_unchanged_is_refuted_only_by_an_interval_that_lies_outside(reports, monkeypatch, low, high, said):
    row = answered(workload="get", ratio=(low * high) ** 0.5, low=low, high=high, word="slower")
    monkeypatch.setattr(claims.option_duets, "answers", lambda _duets: row)
    judged = claims.judge(reports, empty_tables()).set_index("claim")
    assert judged.loc["r3-get-unchanged", "verdict"] == said


def test_of_a_duet_of_few_launches_launches_are_asked_for(reports, monkeypatch):
    row = answered(word="cannot tell", low=0.0, high=math.inf, runs_before=3)
    monkeypatch.setattr(claims.option_duets, "answers", lambda _duets: row)
    judged = claims.judge(reports, empty_tables()).set_index("claim")
    assert judged.loc["r3-pool-faster", "note"].endswith("3 launches: not enough to be sure, 6 are needed")


def test_a_ratio_of_report_5_is_of_the_closed_loop_alone(reports, monkeypatch):
    of_cache = {
        "experiment": "report-5",
        "workload": "repeated_get",
        "before_name": "cache_entries=0",
        "after_name": "cache_entries=5000",
        "connections": 1,
        "measure": "achieved rate",
        "word": "faster",
    }
    for rate, verdict in ((float("nan"), verdicts.REPRODUCED), (20000.0, verdicts.NOT_MEASURED)):
        row = answered(**of_cache, offered_rate_rps=rate)
        monkeypatch.setattr(claims.option_duets, "answers", lambda _duets, row=row: row)
        judged = claims.judge(reports, empty_tables()).set_index("claim")
        assert judged.loc["r5-repeated-get-c1", "verdict"] == verdict


def test_what_own_runs_decide_gives_way_to_no_duet_of_the_reference():
    row = {"verdict": verdicts.REPRODUCED, "whose": "yours", "measured_as": ""}
    ours = Measured(1.9, 1.5, 2.0, 11, "slower", by_duet="report-3")
    assert claims._by_duet(row, verdicts.NOT_REPRODUCED, ours, is_told=True) == row
    own = claims._by_duet(row, verdicts.NOT_REPRODUCED, replace(ours, is_own=True), is_told=True)
    assert (own["verdict"], own["whose"]) == (verdicts.NOT_REPRODUCED, "yours")
    assert own["note"] == "by the duet of report-3; independent runs: reproduced"


def test_every_claim_has_a_verdict_and_every_rule_a_claim(reports):
    judged = claims.judge(reports, empty_tables())
    assert len(judged) == len(reports.claims)
    assert set(judged["verdict"]) == {verdicts.MISTAKEN, verdicts.UNPROVEN, verdicts.NOT_MEASURED}
    assert set(rules.RULES) <= set(reports.claims["claim"])


def test_a_mistake_stays_a_mistake_whatever_we_measure(reports):
    ours = runs_of("report-3", "put", 20000, "handler=workers")
    judged = claims.judge(reports, ours).set_index("claim")
    assert judged.loc["r3-put-20000-held", "verdict"] == verdicts.MISTAKEN
    assert judged.loc["r3-put-20000-held", "measured"] == pytest.approx(20040)


def test_the_table_of_claims_shows_what_we_measured_and_a_dash_where_we_did_not(reports):
    judged = claims.judge(reports, runs_of("report-2", "put", 2000))
    shown = claims.table(judged).set_index(judged["claim"])["measured"]
    assert shown["r2-put-2000-held"].startswith("2\u202f00")
    assert shown["r3-put-20000-held"] == words.MISSING
    assert shown.str.len().min() >= 1


def test_a_rate_that_we_hold_too_is_reproduced_and_one_that_we_do_not_is_not(reports):
    assert verdict(reports, runs_of("report-2", "put", 2000), "r2-put-2000-held") == verdicts.REPRODUCED
    assert (
        verdict(reports, runs_of("report-2", "put", 2000, achieved=0.9), "r2-put-2000-held")
        == verdicts.NOT_REPRODUCED
    )


def test_a_rate_that_was_not_held_is_not_reproduced_by_a_service_that_holds_it(reports):
    assert (
        verdict(reports, runs_of("report-2", "put", 20000), "r2-put-20000-not-held")
        == verdicts.NOT_REPRODUCED
    )
    assert (
        verdict(reports, runs_of("report-2", "put", 20000, achieved=0.9), "r2-put-20000-not-held")
        == verdicts.REPRODUCED
    )


def test_a_number_is_reproduced_within_a_factor_of_two(reports):
    assert (
        verdict(reports, runs_of("report-2", "put", 20000, mean_us=2e6), "r2-put-20000-mean")
        == verdicts.REPRODUCED
    )
    assert (
        verdict(reports, runs_of("report-2", "put", 20000, mean_us=1.8e6), "r2-put-20000-mean")
        == verdicts.NOT_REPRODUCED
    )


def two_sides(variants, workload, spread):
    """Five runs a side of report 3, whose median is the same and whose latencies differ by ``spread``."""
    runs, points = [], []
    for side, variant in enumerate(variants):
        part = runs_of("report-3", workload, 20000, variant)
        ids = {run_id: f"{side}-{run_id}" for run_id in part.runs["run_id"]}
        factor = {run_id: 1 + spread * (number - 2) for number, run_id in enumerate(ids)}
        of_run = part.percentiles["run_id"]
        points.append(part.percentiles.assign(run_id=of_run.map(ids), latency_us=2e4 * of_run.map(factor)))
        runs.append(part.runs.assign(run_id=part.runs["run_id"].map(ids)))
    return replace(part, runs=pd.concat(runs, ignore_index=True), percentiles=pd.concat(points))


def losing(tables, lost, variant=""):
    """``tables`` with ``lost`` runs more that the service made invalid."""
    more = tables.runs[tables.runs["variant"].str.contains(variant, regex=False)].head(1)
    more = pd.concat([more.assign(run_id=f"lost-{variant}-{n}") for n in range(lost)] or [more.head(0)])
    more = more.assign(verdict="FAIL", excluded="service", outcome="failed: service died during measure")
    return replace(tables, runs=pd.concat([tables.runs, more], ignore_index=True))


@pytest.mark.parametrize(
    ("claim", "ours", "found", "of_survivors"),
    [
        ("r2-put-20000-mean", {"mean_us": 2e6}, verdicts.REPRODUCED, "cannot tell"),
        ("r2-put-20000-mean", {"mean_us": 1.0}, verdicts.NOT_REPRODUCED, "cannot tell"),
        ("r2-put-20000-mean", {"mean_us": 9e9}, verdicts.NOT_REPRODUCED, verdicts.NOT_REPRODUCED),
    ],
)
def test_a_number_of_survivors_decides_nothing_that_lost_runs_may_contradict(
    reports, claim, ours, found, of_survivors
):
    tables = runs_of("report-2", "put", 20000, **ours)
    assert verdict(reports, tables, claim) == found
    judged = claims.judge(reports, losing(tables, 2)).set_index("claim").loc[claim]
    assert judged["verdict"] == of_survivors and "the service lost 2 runs" in judged["note"]


@pytest.mark.parametrize(
    ("lost", "expected"), [((0, 0), verdicts.REPRODUCED), ((0, 4), "cannot tell"), ((4, 0), "cannot tell")]
)
@pytest.mark.parametrize("spread", [0.002, 0.03])
def test_a_ratio_of_survivors_is_not_unchanged_whether_or_not_a_word_was_refused(
    reports, lost, expected, spread
):
    sides = ["handler=selector", "handler=workers"]
    tables = two_sides(sides, "get", spread)
    for variant, count in zip(sides, lost, strict=True):
        tables = losing(tables, count, variant)
    judged = claims.judge(reports, tables).set_index("claim").loc["r3-get-unchanged"]
    assert judged["verdict"] == expected
    assert ("a larger share of its runs" in judged["note"]) == any(lost)


def test_a_search_answers_with_its_knee_and_the_rates_that_enclose_it(reports):
    good, bad = (
        trials_of("report-1", "put", 12000, ["held"] * 8),
        trials_of("report-1", "put", 14000, ["missed"] * 4),
    )
    judged = claims.judge(reports, together(good, bad)).set_index("claim")
    measured, low, high = judged.loc["r1-put-stable", ["measured", "low", "high"]]
    assert 11_000 < low < 12_900 < high < 15_000 and low < measured < high
    assert judged.loc["r1-put-stable", "verdict"] == verdicts.REPRODUCED


@pytest.mark.parametrize("answers", [["unknown"] * 3, ["missed"] * 3])
def test_a_search_that_held_no_rate_is_no_answer(reports, answers):
    assert (
        verdict(reports, trials_of("report-1", "put", 1000, answers), "r1-put-stable")
        == verdicts.NOT_MEASURED
    )


def test_a_trial_counts_for_the_study_as_it_did_for_the_search_whatever_its_checks_say_of_its_latencies(
    reports,
):
    drifted = together(
        trials_of("report-1", "put", 12000, ["held"] * 8), trials_of("report-1", "put", 14000, ["missed"] * 4)
    )
    drifted = replace(drifted, runs=drifted.runs.assign(verdict="FAIL"))
    assert verdict(reports, drifted, "r1-put-stable") == verdicts.REPRODUCED


@pytest.mark.parametrize(
    ("claim", "word", "found"),
    [
        ("r5-unique-get", "the same", verdicts.CANNOT_TELL),  # 0.96 lies within 5 % itself
        ("r5-unique-get", "slower", verdicts.REPRODUCED),
        ("r5-unique-get", "faster", verdicts.NOT_REPRODUCED),
        ("r5-repeated-get-c1", "the same", verdicts.NOT_REPRODUCED),  # 1.34 does not
    ],
)
def test_the_same_within_a_margin_does_not_contradict_a_ratio_within_it(reports, claim, word, found):
    (row,) = (one for one in reports.claims.itertuples() if one.claim == claim)
    ours = Measured(1.0, 0.97, 1.03, 12, word, same_within=0.05, fewest=6)
    assert verdicts.verdict(row, rules.RULES[claim], ours) == found
    if word == "the same":
        narrow = replace(ours, same_within=0.02)
        assert verdicts.verdict(row, rules.RULES[claim], narrow) == verdicts.NOT_REPRODUCED


def test_a_ratio_needs_runs_enough_to_tell(reports):
    few = [
        runs_of("report-5", "repeated_get", 1000, variant, repeats=2, closed=True, achieved=gain)
        for variant, gain in (("cache_entries=0", 1.0), ("cache_entries=5000", 1.5))
    ]
    many = [
        runs_of("report-5", "repeated_get", 1000, variant, closed=True, achieved=gain)
        for variant, gain in (("cache_entries=0", 1.0), ("cache_entries=5000", 1.5))
    ]
    for sides, expected in ((few, "cannot tell"), (many, verdicts.REPRODUCED)):
        assert verdict(reports, _joined(*sides), "r5-repeated-get-c4") == expected


def test_an_interval_that_covers_the_limit_decides_nothing(reports):
    near = runs_of("report-2", "put", 20000, mean_us=2e6)
    spread = near.runs.assign(response_mean_us=[1.2e6, 1.9e6, 2e6, 2.4e6, 3e6])
    assert verdict(reports, replace(near, runs=spread), "r2-put-20000-mean") == "cannot tell"


def test_a_run_that_another_program_disturbed_says_nothing_about_a_rate(reports):
    disturbed = runs_of("report-2", "put", 20000, achieved=0.9)
    checks = pd.DataFrame(
        {
            "run_id": disturbed.runs["run_id"],
            "check": "no_foreign_load",
            "verdict": "FAIL",
            "observed": "40 %",
            "required": "5 %",
        }
    )
    failed = replace(
        disturbed,
        runs=disturbed.runs.assign(verdict="FAIL"),
        validity=pd.concat([disturbed.validity, checks]),
    )
    assert verdict(reports, failed, "r2-put-20000-not-held") == verdicts.NOT_MEASURED


def test_a_trial_is_answered_by_what_our_search_holds_and_misses(reports):
    good, bad = (
        trials_of("report-1", "put", 11000, ["held"] * 8),
        trials_of("report-1", "put", 14000, ["missed"] * 4),
    )
    trials = claims.trials(reports, together(good, bad)).set_index(["method", "rate"])
    told = {
        rate.replace("\u202f", ""): row["verdict"]
        for (method, rate), row in trials.iterrows()
        if method == "PUT"
    }
    assert told == {
        "20000 r/s": "reproduced",
        "10000 r/s": "reproduced",
        "15000 r/s": "reproduced",
        "12500 r/s": "cannot tell",
        "11250 r/s": "cannot tell",
    }


@pytest.mark.parametrize(
    ("published", "measured", "expected"),
    [
        (10, [12, 19] * 3, "reproduced"),
        (0.5, [4, 5] * 3, "cannot tell"),
        (3.16, [0] * 5, "cannot tell"),
        (90, [10, 12] * 3, "not reproduced"),
        (10, [12, 40] * 3, "cannot tell"),
        (10, [12, 19] * 2, "cannot tell"),
        (90, [10] * 4, "cannot tell"),
        (10, [], "not measured"),
    ],
)
def test_a_share_is_reproduced_within_a_factor_and_not_by_being_small_as_well(published, measured, expected):
    assert verdicts.share_verdict(published, pd.Series(measured, dtype=float)) == expected


def test_a_number_of_four_runs_decides_nothing_and_says_why(reports):
    four = (
        claims.judge(reports, runs_of("report-2", "put", 2000, repeats=4))
        .set_index("claim")
        .loc["r2-put-2000-held"]
    )
    assert four["verdict"] == "cannot tell" and four["note"].endswith(
        "4 runs: not enough to be sure, 5 are needed"
    )
    assert (
        "not enough"
        not in claims.judge(reports, runs_of("report-2", "put", 2000))
        .set_index("claim")
        .loc["r2-put-2000-held", "note"]
    )


def test_claims_and_distributions_are_drawn(reports):
    ours = runs_of("report-3", "put", 20000, "handler=workers")
    figure = claims_measured(claims.judge(reports, ours))
    assert f"{len(reports.claims)} claims" in figure.layout.meta["finding"] and "mistaken" in {
        trace.name for trace in figure.data
    }
    drawn = published_spectra(reports, ours, 3)
    assert {"published", "measured"} <= {trace.name for trace in drawn.data}
    assert "no valid run of ours" in published_spectra(reports, empty_tables(), 1).layout.meta["finding"]


def test_a_claim_that_is_pointed_at_says_the_number_of_the_table(reports):
    """Of a search that met no rate that is too much the chart said the highest rate tried."""
    judged = claims.judge(reports, runs_of("report-3", "put", 20000, "handler=workers"))
    ours = {"measured": 28_000.0, "low": 24_000.0, "high": math.nan, "runs": 4}
    is_search = judged["claim"] == judged["claim"].iloc[0]
    judged = judged.assign(**{name: judged[name].mask(is_search, value) for name, value in ours.items()})
    told = claims.table(judged)["measured"].iloc[0]
    texts = [text for trace in claims_measured(judged).data for text in trace.text or ()]
    assert told == "at least 24\u202f000 r/s"
    assert any(f"measured {told} (4 runs)" in text for text in texts), texts
    anything = claims_measured(judged.assign(low=judged["low"].mask(is_search, 0.0)))
    assert sum(len(trace.text or ()) for trace in anything.data) == len(texts) - 1, "no mark of it"


def test_a_point_of_a_distribution_says_its_percentile_and_its_time_as_all_other_charts_do(reports):
    drawn = published_spectra(reports, runs_of("report-3", "put", 20000, "handler=workers"), 3)
    for trace in drawn.data:
        assert "%{text}" in trace.hovertemplate and "%{y" not in trace.hovertemplate
        for text, seconds in zip(trace.text, trace.y, strict=True):
            told = re.fullmatch(r"p[0-9.]+: ([0-9.]+) (µs|ms|s)", text)
            scale = {"µs": 1e-6, "ms": 1e-3, "s": 1.0}[told[2]]
            assert float(told[1]) * scale == pytest.approx(float(seconds), rel=0.01)


def test_every_report_that_is_named_is_drawn_and_what_is_no_list_of_them_refused(reports):
    titles = [figure.layout.title.text for figure in spectra(reports, empty_tables(), [5, 1, 3, 2, 1])]
    assert [f"report {number} " in title for number, title in zip([5, 1, 3, 2], titles, strict=True)]
    (fourth,) = spectra(reports, empty_tables(), [4])
    assert "report 4 printed no distribution" in fourth.layout.meta["finding"]
    for wrong in ([], 3, None, ["1", "3"], [9], [1, 9], "13", {1: 3}, [[1]]):
        with pytest.raises(KvstudyError, match="no list of reports") as error:
            spectra(reports, empty_tables(), wrong)
        assert "1, 2, 3, 4, 5" in error.value.hint


def _joined(first, second):
    renamed = second.runs.assign(run_id=second.runs["run_id"] + "-after", experiment="report-5")
    return replace(
        first,
        runs=pd.concat([first.runs.assign(connections=4), renamed.assign(connections=4)], ignore_index=True),
    )


def test_a_rate_that_most_runs_did_not_survive_is_not_reproduced_as_held(reports):
    held = runs_of("report-2", "put", 2000)
    lost = runs_of("report-2", "put", 2000, repeats=20)
    lost = replace(
        lost,
        runs=lost.runs.assign(
            run_id=lost.runs["run_id"] + "-lost",
            outcome="failed: service ended: exit_code=1",
            verdict="FAIL",
            excluded="service",
            achieved_rate_rps=float("nan"),
        ),
    )
    assert verdict(reports, together(held, lost), "r2-put-2000-held") == verdicts.NOT_REPRODUCED


def profiled_at(low, high):
    """A profiled run of report 2 at either rate."""
    one = sample_tables(workloads=("put",), connections=(4,), rates=(1000.0,))
    profiled = one.runs[one.runs["profiled"]].assign(offered_rate_rps=low)
    return replace(
        one,
        runs=pd.concat(
            [profiled, profiled.assign(run_id=profiled["run_id"] + "-b", offered_rate_rps=high)],
            ignore_index=True,
        ).assign(experiment="report-2"),
        stacks=pd.concat(
            [one.stacks, one.stacks.assign(run_id=one.stacks["run_id"] + "-b")], ignore_index=True
        ),
    )


def test_claims_of_an_experiment_as_a_whole_are_of_its_runs_at_every_rate():
    found = rules.RULES["r4-syscalls"].measure(profiled_at(1000.0, 20_000.0))
    assert found.runs == 2 and found.mixed == ""


def test_a_ratio_of_shares_counts_the_runs_that_the_service_lost_at_either_rate():
    tables, rule = profiled_at(2000.0, 20_000.0), rules.RULES["r2-put-idle-falls"]
    assert rule.measure(tables).lost == 0
    assert rule.measure(losing(tables, 3)).lost == 3


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.4, 0.6, verdicts.REPRODUCED),
        (0.95, 0.99, verdicts.NOT_REPRODUCED),
        (0.72, 0.8, verdicts.NOT_REPRODUCED),
        (0.6, 0.9, verdicts.CANNOT_TELL),
    ],
)
def test_a_rate_is_halved_only_where_the_proportion_is_near_a_half(low, high, said):
    claim = SimpleNamespace(mistaken="no", claim="r4-doubling", value=0.5)
    measured = Measured((low + high) / 2, low, high, 6)
    assert verdicts.verdict(claim, rules.RULES["r4-doubling"], measured) == said
