"""An option's answer is its duet's, and no undecided answer takes the place of a decided one."""

import sys
from pathlib import Path

import pandas as pd
import pytest
from duet_maker import DuetMaker, slices

from kvstudy.analyse import tables
from kvstudy.analyse.answers import options as answers
from kvstudy.analyse.claim import DUET
from kvstudy.analyse.comparison.words import CANNOT_TELL, DEARER, FASTER, SLOWER
from kvstudy.analyse.configuration import CPU, RATE
from kvstudy.analyse.duets import duets
from kvstudy.analyse.option_duets import (
    BY_DUET,
    BY_RUNS,
    DUET_CANNOT_TELL,
    OWN_CANNOT_TELL,
    option_duets,
    with_duets,
)
from kvstudy.analyse.options import COLUMNS, compared_options

sys.path.append(str(Path(__file__).parents[1] / "present"))

from sample import empty_tables
from test_options import varied

NO_RUNS = pd.DataFrame(columns=COLUMNS)
OPEN = 0.25  # of a launch's ratio, up and down in turn: nothing is decided


class Study:
    """``study.measured(...)`` seals launches; ``study.duets`` are those of options that were measured."""

    def __init__(self, data: Path):
        self.data, self.minute = data, 0

    def measured(
        self, a="wal=interval", b="wal=always", ratio=1.5, wobble=0.0, place="raw", launches=6, **changes
    ):
        comparison = f"{place}{self.minute:04d}"
        make = DuetMaker(self.data / place)
        for launch in range(launches):
            self.minute += 1
            make(
                self.minute,
                ratio=ratio * (1 + wobble * (-1) ** launch),
                run_id=f"20261120T21{self.minute:02d}00Z-duet-{comparison}",
                experiment="wal",
                comparison=comparison,
                sides={"a": {"name": a}, "b": {"name": b}},
                **changes,
            )
        return self

    @property
    def duets(self):
        return option_duets(duets(tables.study_duets(self.data, progress=False)))


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path / "data")


def row(rows: pd.DataFrame, measure: str) -> pd.Series:
    (found,) = [one for _, one in rows.iterrows() if one["measure"] == measure]
    return found


def test_a_duet_of_two_builds_or_subjects_is_none_of_an_option(study):
    assert study.measured(a="main", b="change").duets == []
    assert study.measured(a="subject=empty", b="subject=kv-service").duets == []


def test_a_duet_answers_for_an_option_that_no_run_varied(study):
    rows = with_duets(NO_RUNS, study.measured().duets)
    p50 = row(rows, "p50")
    assert (p50["experiment"], p50["before_name"], p50["after_name"]) == ("wal", "wal=interval", "wal=always")
    assert (p50["word"], p50["by"], p50["is_own"], p50["runs_before"]) == (SLOWER, BY_DUET, True, 6)
    assert p50["ratio"] == pytest.approx(1.5, rel=0.03) and p50["before"] == pytest.approx(20, rel=0.1)
    assert row(rows, CPU)["word"] == DEARER and row(rows, CPU)["offered_rate_rps"] == 2000
    assert row(rows, RATE)["word"] == SLOWER and set(rows["measure"]) == {"p50", "p99", CPU, RATE}


def test_a_ratio_is_over_the_default_whichever_side_was_the_baseline(study):
    rows = with_duets(NO_RUNS, study.measured(a="wal=always", b="wal=interval", ratio=1.5).duets)
    p50 = row(rows, "p50")
    assert (p50["before_name"], p50["after_name"], p50["word"]) == ("wal=interval", "wal=always", FASTER)
    assert p50["ratio"] == pytest.approx(1 / 1.5, rel=0.03) and p50["low"] <= p50["ratio"] <= p50["high"]
    assert p50["after"] < p50["before"] and row(rows, RATE)["ratio"] > 1


def test_what_runs_left_open_is_no_longer_asked_of_them(study):
    runs = compared_options(varied("wal", ["wal=interval", "wal=always"], repeats=2))
    rows = with_duets(runs, study.measured().duets)
    assert set(rows["by"]) == {BY_DUET} and set(runs["word"]) == {CANNOT_TELL}


def test_what_runs_decided_stays_where_the_duet_cannot_tell_and_says_so(study):
    runs = compared_options(varied("wal", ["wal=interval", "wal=always"], slower=3.0))
    runs["workload"] = "put"
    rows = with_duets(runs, study.measured(wobble=OPEN, ratio=1.0).duets)
    p50 = row(rows, "p50")
    assert (p50["by"], p50["word"], p50["beside"]) == (BY_RUNS, SLOWER, DUET_CANNOT_TELL)
    assert row(rows, RATE)["by"] == BY_DUET and row(rows, RATE)["word"] == CANNOT_TELL


def test_what_runs_decided_of_another_workload_stands_beside_the_duet(study):
    runs = compared_options(varied("wal", ["wal=interval", "wal=always"], slower=3.0))
    rows = with_duets(runs, study.measured().duets)
    mixed = rows[rows["workload"] == "mixed"]
    assert set(mixed["by"]) == {BY_RUNS} and CANNOT_TELL not in set(mixed["word"])
    assert set(mixed["beside"]) == {""} and BY_DUET in set(rows["by"])


def test_other_options_keep_their_runs(study):
    runs = compared_options(varied("gc", ["gc=G1", "gc=Z"], repeats=2))
    rows = with_duets(runs, study.measured().duets)
    assert len(rows[rows["by"] == BY_RUNS]) == len(runs)


def test_an_own_duet_that_decides_nothing_leaves_the_committed_answer_and_is_named(study):
    study.measured(place="reference").measured(launches=2)
    rows = with_duets(NO_RUNS, study.duets)
    p50 = row(rows, "p50")
    assert (p50["word"], p50["is_own"], p50["beside"]) == (SLOWER, False, OWN_CANNOT_TELL)


def test_an_own_duet_that_decides_is_the_answer(study):
    study.measured(place="reference").measured(ratio=0.5)
    p50 = row(with_duets(NO_RUNS, study.duets), "p50")
    assert (p50["word"], p50["is_own"]) == (FASTER, True)
    assert p50["beside"] == "the reference's duet calls p50 slower"


def test_a_duet_that_says_another_word_than_decided_runs_names_theirs(study):
    runs = compared_options(varied("wal", ["wal=interval", "wal=always"], slower=3.0))
    runs["workload"] = "put"
    p50 = row(with_duets(runs, study.measured(ratio=0.5).duets), "p50")
    assert (p50["word"], p50["by"], p50["beside"]) == (FASTER, BY_DUET, "independent runs call p50 slower")
    study.measured(place="reference")
    assert row(with_duets(runs, study.duets), "p50")["beside"] == (
        "the reference's duet calls p50 slower; independent runs call p50 slower"
    )


def test_a_lower_rate_at_which_runs_decide_is_not_chosen_for_that(study):
    runs = compared_options(varied("wal", ["wal=interval", "wal=always"], slower=3.0)).assign(workload="put")
    higher = runs.assign(offered_rate_rps=9000.0, word=CANNOT_TELL)
    rows = with_duets(pd.concat([runs, higher]), study.measured(wobble=OPEN, ratio=1.0).duets)
    assert (row(rows, "p50")["by"], row(rows, "p50")["word"]) == (BY_DUET, CANNOT_TELL)


def test_of_ones_own_duets_the_last_one_counts_and_not_the_one_that_pleases(study):
    study.measured(ratio=2.0).measured(wobble=OPEN, ratio=1.0)
    assert row(with_duets(NO_RUNS, study.duets), "p50")["word"] == CANNOT_TELL


def test_a_measure_at_a_rate_and_in_a_closed_loop_is_told_at_the_rate(study):
    rows = with_duets(NO_RUNS, study.measured().duets)
    assert rows[rows["measure"] == CPU]["offered_rate_rps"].tolist() == [2000]
    assert rows[rows["measure"] == RATE]["offered_rate_rps"].isna().all()


def test_a_duet_none_of_whose_rounds_count_has_no_latency_to_tell(study):
    part = {("put", "rate"): slices(12, idle_cpu_ns=2e8)}
    rows = with_duets(NO_RUNS, study.measured(parts=part).duets)
    assert "p50" not in set(rows["measure"])


def test_the_claims_of_an_option_are_those_of_its_duet_and_count_launches(study):
    found = study.measured().duets
    answer = answers.decided(answers.standing(empty_tables()), found)["wal"]
    assert (answer.runs, answer.launches) == (0, 6)
    assert {claim.rule for claim in answer.claims} == {DUET} and {claim.runs for claim in answer.claims} == {
        6
    }
    assert answers.whose(answers.standing(empty_tables()), found, "wal") == {True}


def test_launches_of_a_duet_that_decides_a_part_count_once(study):
    part = slices(12, ratio=1.0)
    for launch in range(1, 9):
        wobbling = part.assign(p50_ns=part["p50_ns"] * (1 if launch % 2 else 1.3) ** (part["side"] == "b"))
        costly = wobbling.assign(cpu_ns=wobbling["cpu_ns"] * (1 + (part["side"] == "b")))
        DuetMaker(study.data / "raw")(
            launch,
            parts={("put", "rate"): costly},
            experiment="wal",
            comparison="partly",
            sides={"a": {"name": "wal=interval"}, "b": {"name": "wal=always"}},
        )
    found = study.duets
    assert answers.decided(answers.standing(empty_tables()), found)["wal"].launches == 8
    assert answers.undecided(answers.standing(empty_tables()), found)[0].launches == 8
    assert answers.count_launches(answers.standing(empty_tables()), found) == (8, 8)
