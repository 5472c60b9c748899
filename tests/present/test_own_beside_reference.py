"""A reader's own runs make no page poorer: what they leave open the reference still answers, and each line
says whose runs it is of."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sample import empty_tables, sample_tables
from test_claims import runs_of
from test_options import varied

from kvstudy.analyse import options as analysed_options
from kvstudy.analyse import published
from kvstudy.analyse.answers import Answer, service
from kvstudy.analyse.answers.options import standing
from kvstudy.analyse.claim import LINK, Claim, Place
from kvstudy.analyse.intervention import CAUSED
from kvstudy.analyse.intervention import EXPERIMENT as CAUSES
from kvstudy.analyse.replication import verdicts
from kvstudy.present import answers, cards, claims, findings, headlines, notebook
from kvstudy.present.options import every

ROOT = Path(__file__).parents[2]
WAL = ["wal=interval", "wal=always"]


def mine(tables):
    """``tables`` as if the reader had measured them."""
    ids = {run_id: f"own-{run_id}" for run_id in tables.runs["run_id"]}
    renamed = {
        name: getattr(tables, name).assign(run_id=getattr(tables, name)["run_id"].map(ids))
        for name in ("runs", "percentiles", "validity")
    }
    return tables.but(**renamed, own=frozenset(ids.values()))


@pytest.fixture(scope="module")
def decided():
    return varied("wal", WAL, slower=3.0)


@pytest.fixture(scope="module")
def few():
    return mine(varied("wal", WAL, slower=3.0, repeats=2))


def of_page(page, *tables):
    return next(card for card in headlines.index(*tables).cards if card.page == page)


def test_a_card_keeps_the_answer_of_the_reference_and_names_the_own_runs_beside_it(decided, few):
    card = of_page("06-before-after", few, decided)
    assert card.answer == of_page("06-before-after", decided).answer
    assert card.sure[0].startswith("reference: ") and "your own cannot tell yet of wal" in card.sure


def test_own_runs_that_decide_as_much_are_the_answer(decided):
    card = of_page("06-before-after", mine(decided), decided)
    assert card.sure[0].startswith("yours: ") and not any("cannot tell yet" in badge for badge in card.sure)


def test_own_profiles_that_all_are_invalid_take_no_shares_off_the_card():
    found = sample_tables()
    profiled = found.only(found.runs.loc[found.runs["profiled"], "run_id"])
    profiled = profiled.but(runs=profiled.runs.assign(experiment="reproduce"))
    own = mine(profiled)
    failed = own.but(
        runs=own.runs.assign(verdict="FAIL", excluded="outside"),
        stacks=profiled.stacks.assign(run_id="own-" + profiled.stacks["run_id"]),
    )
    theirs, card = (of_page("05-flame-graphs", *of) for of in ((profiled,), (failed, profiled)))
    assert theirs.bars and (card.answer, card.bars) == (theirs.answer, theirs.bars)
    assert card.sure[0].startswith("reference: ")
    assert card.own.startswith("Your own") and card.own.endswith("no profiled run passed its checks."), card


def test_who_has_runs_of_their_own_is_not_told_how_to_get_the_first(decided):
    assert "run `make reproduce`" in notebook.source(decided.but(source="data/reference")).data
    own, source = mine(decided), "data/raw (wal) and data/reference"
    runs = pd.concat([own.runs, decided.runs.assign(experiment="gc")])
    both = notebook.source(own.but(runs=runs, source=source)).data
    assert "run `kvstudy run experiments/…`" in both and "make reproduce" not in both


def test_without_runs_of_the_readers_own_nobody_is_named(decided):
    assert "reference" not in of_page("06-before-after", decided).sure[0]
    assert "yours" not in answers.summarize_options(decided).data


def test_an_option_that_own_runs_leave_open_is_told_by_the_reference_with_the_own_figures_below(decided, few):
    rows = answers.summarize_options(few, decided).data.splitlines()[2:]
    place = next(at for at, row in enumerate(rows) if "Your own" in row)
    assert "p50" in "".join(rows[:place]) and all(", reference |" in row for row in rows[:place])
    assert "| Your own 4 runs cannot tell yet: " in rows[place] and "p50" in rows[place]


def test_an_option_that_own_runs_decide_is_told_as_theirs(decided):
    text = answers.summarize_options(mine(decided), decided).data
    assert "| 10 runs, yours |" in text and "Your own" not in text


def test_an_experiment_that_own_runs_decide_does_not_give_way_for_another(decided, few):
    gc = varied("gc", ["gc=G1", "gc=Z"], slower=3.0)
    told = every(few.joined(mine(gc)), decided.joined(gc))
    assert set(told["experiment"]) == {"wal", "gc"} and "cannot tell" not in set(told["word"])
    assert told.groupby("experiment")["is_own"].agg(["min", "max"]).values.tolist() == [
        [True] * 2,
        [False] * 2,
    ]


def test_a_finding_that_own_runs_leave_open_is_the_references():
    many = sample_tables(profiled=False, repeats=5, connections=(4,))
    own = mine(sample_tables(profiled=False, repeats=2, connections=(4,)))
    lines = findings.render(own, findings.RULES, many).data.splitlines()
    held = [place for place, line in enumerate(lines) if "Rates chosen beforehand" in line]
    assert all(", reference |" in lines[place] for place in held)
    assert any("met a rate that was not held" in lines[place] for place in held)
    assert "Your own" in lines[held[-1] + 1] and "cannot tell yet" in lines[held[-1] + 1]
    again = findings.render(mine(many), findings.RULES, many).data
    assert "Your own" not in again and "yours |" not in again  # the same claims are no others


def test_a_page_of_the_reference_that_own_runs_do_not_answer_says_what_they_have():
    found = sample_tables(repeats=5)
    many = found.but(runs=found.runs.assign(experiment="reproduce"))
    least = sample_tables(repeats=2)
    own = mine(least.but(runs=least.runs.assign(experiment="reproduce")))
    card = of_page("04-capacity", own, many)
    assert card.answer == of_page("04-capacity", many).answer
    assert card.own.startswith("Your own ") and "cannot tell yet: too few runs at each rate." in card.own
    assert "cannot tell yet." in card.html()


def test_a_claim_that_own_runs_leave_open_keeps_the_verdict_of_the_reference():
    reports = published.load(Path(__file__).parents[2] / "data" / "published")
    reference = runs_of("report-2", "put", 2000)
    own = mine(runs_of("report-2", "put", 2000, repeats=2))
    judged = claims.judge(reports, own, reference).set_index("claim")
    row = judged.loc["r2-put-2000-held"]
    assert (row["verdict"], row["whose"], row["runs"]) == (verdicts.REPRODUCED, "reference", 5)
    assert "your own 2 runs cannot tell yet" in row["note"]
    assert claims.table(judged)["whose"].isin(["", "yours", "reference"]).all()
    assert (
        claims.judge(reports, mine(reference), reference).set_index("claim").loc["r2-put-2000-held", "whose"]
        == "yours"
    )
    assert "whose" not in claims.table(claims.judge(reports, reference))


@pytest.mark.parametrize("page", ["02-sweep", "09-explore"])
def test_a_card_about_all_runs_says_how_many_of_them_are_valid(page):
    found = sample_tables()
    card = of_page(page, found.but(runs=found.runs.assign(experiment="reproduce")))
    assert card.sure[0].endswith(f" of {len(found.runs)} runs valid")
    assert f"{len(found.runs)} runs" in card.of + card.answer


def test_the_badge_of_the_reports_counts_the_runs_that_verdicts_rest_on():
    runs = runs_of("report-2", "put", 2000)
    assert of_page("08-published-reports", runs).sure[0] == "5 of 5 runs count"


def test_a_head_shows_what_own_runs_say_beside_the_answer():
    card = cards.Card("04-capacity", "Q?", "A.", own="Your own 4 runs cannot tell yet: <b>")
    assert '<p class="own"' in card.html() and "<b>" not in card.html()


def test_nothing_measured_stays_nothing():
    assert headlines.index(empty_tables(), empty_tables()).cards[0].answer == cards.NOT_MEASURED


def test_what_a_page_asks_again_is_worked_out_once(decided, few, monkeypatch):
    asked = []
    for module, name in ((analysed_options, "comparisons"), (verdicts, "judge")):
        of = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, of=of, **more: asked.append(of) or of(*given, **more)
        )
    own, reference = few.only(few.runs["run_id"]), decided.only(decided.runs["run_id"])
    headlines.index(own, reference)
    first = len(asked)
    answers.summarize_options(own, reference), every(own, reference)
    assert first and len(asked) == first


def test_options_told_by_either_keep_the_word_that_they_have_among_all_of_their_own_runs(decided, few):
    gc = varied("gc", ["gc=G1", "gc=Z"], slower=3.0)
    own, reference = few.joined(mine(gc)), decided.joined(gc)
    told = standing(own, reference).compared
    families = [
        analysed_options.compared_options(own).query("experiment == 'gc'"),
        analysed_options.compared_options(reference).query("experiment == 'wal'"),
    ]
    assert_frame_equal(told, pd.concat(families, ignore_index=True))


@pytest.mark.parametrize(("own", "part"), [("", 1.0), ("report-3", 0.5)])
def test_beside_the_reference_words_have_half_of_a_pages_error_on_every_page(own, part):
    tables = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import own_runs; from kvstudy.present import notebook as n; "
            f"own_runs.stand_beside_the_reference({own!r}); "
            "print(n.all_tables().part, n.tables('report-3').part, n.tables('noise').part, "
            "n.reference_tables().part)",
        ],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests' / 'present'}"},
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=True,
    )
    assert tables.stdout.split() == [str(part)] * 4


def test_what_own_runs_leave_open_is_told_in_a_line_with_the_committed_answer(monkeypatch):
    many = sample_tables(profiled=False, repeats=5, connections=(4,))
    own = mine(sample_tables(profiled=False, repeats=2, connections=(4,)))
    monkeypatch.setattr(notebook, "reference_tables", lambda: many)
    told = notebook.left_open(own, service.rates_held).data.replace("\u202f", " ")
    assert told.startswith("**The reference decides what your own 12 runs leave open:** highest rate held")
    assert "unique_put on 4 connections: 4 000 r/s, met a rate that it did not hold" in told
    assert told.endswith(".") and "\n" not in told
    assert notebook.left_open(mine(many), service.rates_held) is None
    assert notebook.left_open(many, service.rates_held) is None


def claim(word="linked", workload="repeated_put", kind="flush", rate=20_000.0):
    where = Place(workload, offered_rate_rps=rate, experiment="sample")
    return Claim(where, "waited", "share", 0.6, word=word, rule=LINK, baseline="by chance", variant=kind)


def test_a_link_that_own_runs_do_not_show_is_named_though_they_show_as_many_others(monkeypatch):
    """A count of what is decided is the same on both sides, and an answer is gone all the same."""
    many = sample_tables(profiled=False, repeats=5)
    own = mine(many)
    monkeypatch.setattr(notebook, "reference_tables", lambda: many)
    theirs = Answer((claim(), claim("cannot tell", "unique_put")), 10)
    of_own = Answer((claim("cannot tell"), claim(workload="unique_put")), 10)
    told = notebook.left_open(own, lambda found: of_own if found.own_runs else theirs).data
    assert told.replace("\u202f", " ").endswith(
        "leave open:** slow answers of repeated_put at 20 000 r/s are linked to flush."
    )


def test_a_line_names_few_answers_and_counts_the_others(monkeypatch):
    many = sample_tables(profiled=False, repeats=5)
    monkeypatch.setattr(notebook, "reference_tables", lambda: many)
    theirs = Answer(tuple(claim(kind=kind) for kind in "abcdefg"), 10)
    told = notebook.left_open(mine(many), lambda found: None if found.own_runs else theirs).data
    assert told.count("are linked to") == notebook.LEFT_OPEN_MAX and told.endswith("; 3 more.")


def test_only_experiments_that_the_reader_has_measured_are_asked_of_the_reference(monkeypatch):
    many = sample_tables(profiled=False, repeats=5)
    other = many.but(runs=many.runs.assign(experiment="other"))
    monkeypatch.setattr(notebook, "reference_tables", lambda: other)
    asked = []
    notebook.left_open(mine(many), lambda found: asked.append(set(found.runs["experiment"])))
    assert asked == [{"sample"}, set()]


@pytest.fixture
def with_cause(monkeypatch):
    """What the card of the tail asks: a cause, and of the links those that these runs are said to show."""
    cause = Claim(Place("unique_put", 4, 1000.0, CAUSES), "p99", "ratio", 0.2, word=CAUSED, variant="flush")
    found = sample_tables(profiled=False)
    reference = found.but(runs=found.runs.assign(experiment="reproduce"))
    own = mine(reference)
    limit = Claim(Place("unique_put"), "slow answers take over", "us", 900.0)

    def linked(tables):
        return Answer((limit, claim("cannot tell" if tables.own_runs else "linked", "unique_put")), 6)

    monkeypatch.setattr(headlines.tail, "caused", lambda _tables: Answer((cause,), 16))
    monkeypatch.setattr(headlines.tail, "linked", linked)
    return own, reference


def test_a_card_with_the_committed_cause_keeps_the_committed_links_too(with_cause):
    own, reference = with_cause
    card = of_page("07-tail", own, reference)
    assert card.answer == of_page("07-tail", reference).answer
    assert [bar.tone for bar in card.bars] == [cards.BAD]
    assert "your own cannot tell yet of reproduce" in card.sure


def test_bars_of_a_committed_cause_are_not_called_those_of_own_runs_that_are_linked(with_cause, monkeypatch):
    own, reference = with_cause
    limit = Claim(Place("unique_put"), "slow answers take over", "us", 900.0)
    alike = Answer((limit, claim("linked", "unique_put", rate=16_000.0)), 6)
    monkeypatch.setattr(headlines.tail, "linked", lambda _tables: alike)
    card = of_page("07-tail", own, reference)
    assert card.of == "p99 without it, beside p99 as usual"
    assert not any("cannot tell yet" in badge for badge in card.sure)


@pytest.mark.parametrize("page", ["03-percentiles", "04-capacity", "07-tail", "10-peers", "11-growth"])
def test_a_page_that_shows_own_runs_in_the_place_of_the_reference_asks_what_they_leave_open(page):
    assert "notebook.left_open(" in (ROOT / "notebooks" / f"{page}.ipynb").read_text(encoding="utf-8")
