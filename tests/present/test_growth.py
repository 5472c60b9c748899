"""Page 11: cost against work, of each experiment that was measured; what to type for the others."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from kvstudy.analyse import growth as analysed
from kvstudy.analyse.configuration import CPU
from kvstudy.present import claim_text, expected, growth, headlines, notebook
from kvstudy.present.figures import growth as drawn

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.append(str(CHECKOUT / "tests" / "analyse"))

from run_maker import RunMaker
from test_own_beside_reference import mine

MIB = 1 << 20


@pytest.fixture
def make(tmp_path, monkeypatch):
    """``make("connections", {64: 300, 1000: 600})``: runs with these medians in microseconds."""
    monkeypatch.setenv("KVSTUDY_ROOT", str(tmp_path))
    for borrowed in ("notebooks", "experiments"):
        (tmp_path / borrowed).symlink_to(CHECKOUT / borrowed)
    maker, random, made = RunMaker(tmp_path / "data" / "raw"), np.random.default_rng(11), []

    def of(experiment: str, typical_us: dict, repeats=6, **changes):
        for work, us in typical_us.items():
            for repeat in range(1, repeats + 1):
                made.append(work)
                second = np.full(2000, int(us * random.normal(1, 0.02)))
                maker(
                    f"20261120T20{len(made) // 60:02d}{len(made) % 60:02d}Z-{experiment}-rep{repeat}",
                    **{
                        "experiment": experiment,
                        "workload": "get",
                        "method": "GET",
                        "repeat": repeat,
                        "seconds": [second] * 6,
                    }
                    | asked(experiment, work)
                    | changes,
                )

    return of


def asked(experiment: str, work) -> dict:
    fill = {"records": 2_000_000, "key_bytes": 16, "value_bytes": 100}
    if experiment == "scale":
        return {
            "fill": fill | {"records": work},
            "workload_args": {"key_count": work, "value_bytes": 100},
            "process": {"service_rss_bytes": 100 * MIB + work * 10},
        }
    if experiment == "larger-than-memory":
        return {"fill": fill, "service": {"memory": work}, "variant": {"memory": work}}
    return {"connections": work, "process": {"service_rss_bytes": 100 * MIB + work * 1000}}


def test_what_was_not_measured_says_what_to_type(make):
    make("reproduce", {1: 300}, connections=4)
    found = growth.measured()
    told = growth.answer(found).data
    for one in (growth.SCALE, growth.LARGER_THAN_MEMORY, growth.CONNECTIONS):
        command = f"kvstudy run experiments/{one.experiment}.yaml"
        assert f"not measured yet: run `{command}`" in told
        assert command in drawn.by_work(found, one).layout.meta["drawn"]
        assert "not measured yet" in drawn.by_work(found, one).layout.meta["finding"]
        assert (CHECKOUT / "experiments" / f"{one.experiment}.yaml").is_file()
    assert growth.compared(found).empty and growth.medians(found).empty


@pytest.mark.parametrize(
    ("experiment", "typical_us", "told"),
    [
        ("scale", {1_000_000: 300, 10_000_000: 450}, "get from 1 000 000 to 10 000 000: p99 1.5 ×"),
        ("connections", {64: 300, 1000: 310, 10_000: 1200}, "get from 64 to 10 000: p99 4.0 ×"),
        ("larger-than-memory", {"1g": 200, "192m": 4000}, "get from 0.22 × to 1.2 ×: p99 20 ×"),
    ],
)
def test_each_experiment_tells_how_cost_grew_from_its_least_work_to_its_most(
    make, experiment, typical_us, told
):
    make(experiment, typical_us)
    found, one = growth.measured(), next(o for o in growth.growths() if o.experiment == experiment)
    sentence = growth.grown(found, one).replace("\u202f", " ")
    assert sentence.startswith(told), sentence
    assert sentence in growth.answer(found).data.replace("\u202f", " ")
    figure = drawn.by_work(found, one)
    assert [figure.layout[axis].type for axis in ("xaxis", "xaxis2", "yaxis", "yaxis2", "yaxis3")] == [
        "log"
    ] * 5
    titles = [figure.layout[axis].title.text.split("<br>") for axis in ("xaxis", "xaxis2", "xaxis3")]
    assert max(len(part) for title in titles for part in title) <= drawn.TITLE_LETTERS, "three abreast"
    (line, *_) = [trace for trace in figure.data if trace.mode == "lines" and trace.name == "get"]
    assert len(line.x) == len(typical_us) and list(line.x) == sorted(line.x)
    points = [trace for trace in figure.data if trace.mode == "markers"]
    assert sum(len(trace.x) for trace in points) == 3 * 6 * len(typical_us)
    assert len(growth.medians(found)) == len(typical_us)


def test_the_most_work_is_compared_with_the_least_in_the_words_of_every_page(make):
    make("scale", {1_000_000: 300, 10_000_000: 450})
    make("connections", {64: 300, 10_000: 301}, repeats=3)
    table = growth.compared(growth.measured())
    p99 = table[table["measure"] == "p99"].set_index("experiment")
    assert p99["word"].to_dict() == {"scale": "slower", "connections": "cannot tell"}
    assert p99.loc["scale", "runs"] == "6 and 6" and p99.loc["scale", "ratio"].startswith("1.5")
    assert "CPU per request" in set(table["measure"])


def test_growth_is_told_with_its_interval_and_word_and_of_few_runs_with_neither(make):
    make("connections", {64: 300, 1000: 600})
    make("scale", {1_000_000: 300, 10_000_000: 450}, repeats=3)
    found = growth.measured()
    sentence = growth.grown(found, growth.CONNECTIONS).replace("\u202f", " ")
    assert re.search(r"p99 2\.0 × \[[12]\.\d, 2\.\d ×\] \(slower\)", sentence), sentence
    (step,) = analysed.steps(found, growth.CONNECTIONS)
    claims = {claim.measure: claim for claim in step.claims}
    table = growth.compared(found).query("experiment == 'connections'").set_index("measure")
    assert {name: claim_text.word(claims[name]) for name in ("p99", CPU)} == table["word"].loc[
        ["p99", CPU]
    ].to_dict()
    assert claims[analysed.MEMORY].word == "" and all(claim.interval for claim in step.claims)
    few = growth.grown(found, growth.SCALE)
    assert "[" not in few and few.endswith("(cannot tell: fewer than 5 runs a side)")
    (step,) = analysed.steps(found, growth.SCALE)
    assert all(claim.interval is None and claim.sides == (3, 3) for claim in step.claims)


def test_an_amount_of_work_of_which_every_run_was_lost_is_named_and_those_below_are_compared(make):
    make("connections", {64: 300, 256: 900})
    make("connections", {1024: 1500}, counted={"errors": {"read": 900}})
    found = growth.measured()
    assert set(found.runs.query("connections == 1024")["excluded"]) == {"service"}
    told = growth.grown(found, growth.CONNECTIONS).replace("\u202f", " ")
    assert re.match(r"get from 64 to 256: p99 3\.0 × \[.*\] \(slower\)", told), told
    assert told.endswith("; at 1 024 none of 6 runs was valid"), told
    rows = growth.compared(found)
    assert set(rows["from"]) == {"64"} and set(rows["to"]) == {"256"}


def test_runs_of_other_programs_share_no_median_with_these(make):
    make("connections", {64: 300, 1000: 600})
    make("connections", {64: 900}, jvm=["-Xmx1g"])
    found = growth.measured()
    assert "get: runs of 2 configurations share no median (jvm" in growth.grown(found, growth.CONNECTIONS)
    assert growth.p99_of_each(found) == []
    figure = drawn.by_work(found, growth.CONNECTIONS)
    lines = {trace.name: trace for trace in figure.data if trace.mode == "lines" and trace.xaxis == "x"}
    assert [len(lines[name].x) for name in sorted(lines) if name.startswith("get, jvm")] == [2, 1]


def test_a_step_from_one_build_to_another_is_no_growth(make):
    make("connections", {64: 300})
    make("connections", {1000: 600}, jvm=["-Xmx1g"])
    assert "share no median (jvm" in growth.grown(growth.measured(), growth.CONNECTIONS)


def test_one_amount_of_work_says_nothing_of_growth(make):
    make("connections", {64: 300})
    found = growth.measured()
    assert growth.grown(found, growth.CONNECTIONS) == "only one amount of work was measured"
    assert growth.p99_of_each(found) == []
    card = next(card for card in headlines.index(found).cards if card.page == "11-growth")
    assert card.answer.startswith("Cannot tell")


def test_an_invalid_run_is_a_cross_and_in_no_median(make):
    make("connections", {64: 300, 1000: 600})
    make("connections", {1000: 9000}, repeats=1, outcome="failed: the service died")
    found = growth.measured()
    figure = drawn.by_work(found, growth.CONNECTIONS)
    assert any(trace.marker.symbol == "x-thin" for trace in figure.data if trace.mode == "markers")
    assert "p99 2.0 ×" in growth.grown(found, growth.CONNECTIONS)


def test_the_card_tells_p99_of_each_growth(make):
    make("scale", {1_000_000: 300, 10_000_000: 450})
    make("connections", {64: 300, 10_000: 1200})
    card = next(card for card in headlines.index(growth.measured()).cards if card.page == "11-growth")
    answer = card.answer.replace("\u00a0", " ").replace("\u202f", " ")
    assert answer == "With 10 × the records p99 is 1.5 × as long."
    assert [bar.text.replace("\u202f", " ") for bar in card.bars] == ["1.5 ×", "4.0 ×"]


def test_the_chart_of_the_growth_that_the_card_is_about_leads_its_page(make):
    make("scale", {1_000_000: 300, 10_000_000: 450}, repeats=3)
    make("connections", {64: 300, 10_000: 1200})
    found = growth.measured()
    card = next(card for card in headlines.index(found).cards if card.page == "11-growth")
    assert "connections p99 is" in card.answer
    charts = {one.experiment: drawn.by_work(found, one) for one in (growth.SCALE, growth.CONNECTIONS)}
    assert [name for name, chart in charts.items() if chart.layout.meta["leads"]] == ["connections"]


def test_the_card_says_of_a_growth_what_the_page_says_and_no_more(make):
    make("scale", {1_000_000: 300, 10_000_000: 450}, repeats=3)
    found = growth.measured()
    card = next(card for card in headlines.index(found).cards if card.page == "11-growth")
    (word,) = set(growth.compared(found)["word"])
    assert word == "cannot tell" and card.answer.endswith(": not decided.")
    assert {bar.tone for bar in card.bars} == {"open"}


def test_a_growth_that_own_runs_leave_open_is_told_by_the_reference_and_the_others_by_them(make, monkeypatch):
    make("scale", {1_000_000: 300, 10_000_000: 450})
    make("connections", {64: 300, 10_000: 1200})
    reference = growth.measured().but(own=frozenset())
    few = mine(reference.select(experiment="connections", repeat=[1, 2]))
    own = few.joined(mine(reference.select(experiment="scale")))
    card, alone = (
        next(card for card in headlines.index(*tables).cards if card.page == "11-growth")
        for tables in ((own, reference), (reference,))
    )
    assert (card.answer, card.bars) == (alone.answer, alone.bars)
    assert card.sure == (
        "yours and the reference's: 24 of 24 runs valid",
        "your own cannot tell yet of connections",
    )
    monkeypatch.setattr(notebook, "reference_tables", lambda: reference)
    told = notebook.left_open(own, growth.claims).data.replace("\u202f", " ")
    assert re.search(r"p99 of get, 10 000 connections to 64: (3\.9|4\.0).* slower", told), told
    assert "records" not in told


def test_own_runs_of_growth_that_decide_nothing_do_not_take_the_answer_away(make):
    make("scale", {1_000_000: 300, 10_000_000: 450})
    reference = growth.measured().but(own=frozenset())
    own = mine(reference.select(repeat=[1, 2]))
    card = next(card for card in headlines.index(own, reference).cards if card.page == "11-growth")
    assert card.answer.endswith(" as long.") and card.sure[0].startswith("reference: ")
    assert card.sure[1:] == ("your own cannot tell yet of scale",)


def test_work_that_loses_its_runs_is_a_row_without_a_ratio(make):
    make("connections", {64: 300, 1000: 600})
    make("connections", {1000: 600}, repeats=2, counted={"errors": {"read": 2}})
    (lost,) = growth.compared(growth.measured()).query("measure == 'invalid runs'").to_dict("records")
    assert (lost["ratio"], lost["least work"], lost["most work"]) == ("–", "0 %", "25.0 %")


@pytest.mark.parametrize(
    ("experiment", "typical_us", "said"),
    [
        ("connections", {64: 300, 10_000: 450}, "it held, as far as it was tested. At most 2.0 × "),
        ("connections", {64: 300, 10_000: 1200}, "it did not hold. At most 2.0 × was expected of p99"),
        ("connections", {64: 300, 1000: 1200}, "cannot tell. At most 2.0 × was expected of p99, and there"),
        (
            "larger-than-memory",
            {"1g": 200, "192m": 4000},
            "it held, as far as it was tested. More than 5.3 ×",
        ),
        ("larger-than-memory", {"1g": 200, "192m": 400}, "it did not hold. More than 5.3 × was expected"),
        (
            "larger-than-memory",
            {"1g": 200, "512m": 4000},
            "cannot tell. More than 2.0 × was expected of p99, ",
        ),
    ],
)
def test_the_page_says_whether_p99_grew_as_expected(make, experiment, typical_us, said):
    make(experiment, typical_us)
    told = expected.grows_with_the_work(growth.measured()).data.replace("\u202f", " ")
    assert said in told, told


def test_of_runs_that_survived_it_is_not_said_that_p99_grew_as_little_as_expected(make):
    make("connections", {64: 300, 10_000: 310})
    make("connections", {10_000: 310}, repeats=2, counted={"errors": {"read": 900}})
    assert ": cannot tell. " in expected.grows_with_the_work(growth.measured()).data
