"""Which runs may say whether a rate was held: those that failed nothing, and those that failed by not keeping
up."""

import pytest

from kvstudy.analyse import rates, tables


@pytest.fixture
def verdicts(tmp_path, make_run):
    def of(**runs):
        for run_id, changes in runs.items():
            make_run(run_id, **changes)
        tables.rebuild([tmp_path / "raw"], tmp_path / "tidy", progress=False)
        return tables.load(tmp_path / "tidy")

    return of


def test_a_run_that_did_not_keep_up_is_informative_and_a_disturbed_one_is_not(verdicts):
    found = verdicts(
        kept={},
        overloaded={"offered_rate_rps": 9000},
        disturbed={"process": {"foreign_cpu_share": 0.6}},
        disturbed_and_slow={"offered_rate_rps": 9000, "process": {"foreign_cpu_share": 0.6}},
        limited_by_the_generator={
            "offered_rate_rps": 9000,
            "counted": {"verdict": {"generator_saturated": True, "reason": "late"}},
        },
    )
    assert rates.informative_run_ids(found) == {"kept", "overloaded"}


def test_a_run_that_held_its_rate_and_failed_otherwise_is_not_informative(verdicts):
    assert (
        rates.informative_run_ids(verdicts(broken={"log": "java.lang.IllegalStateException: no\n"})) == set()
    )


def test_a_run_that_drifts_is_marked_and_informative(verdicts):
    drifting = [[100] * 2000] * 3 + [[900] * 2000] * 3
    found = verdicts(drifts={"seconds": drifting})
    assert rates.informative_run_ids(found) == {"drifts"} and found.runs["verdict"].tolist() == ["WARN"]


def test_profiled_closed_and_failed_runs_are_not_about_a_rate(verdicts):
    found = verdicts(
        kept={},
        closed={"closed_loop": True, "offered_rate_rps": None},
        profiled={"profile": ["cpu"]},
        failed={"outcome": "failed: why"},
    )
    assert rates.informative_runs(found).runs["run_id"].tolist() == ["kept"]


def test_runs_that_the_service_lost_by_itself_did_not_hold_their_rate(verdicts):
    runs = {f"kept{n}": {} for n in range(2)} | {
        f"lost{n}": {"counted": {"errors": {"read": 900}}} for n in range(3)
    }
    found = verdicts(**runs)
    assert set(found.runs.loc[found.runs["excluded"] == "service", "run_id"]) == {"lost0", "lost1", "lost2"}
    (row,) = rates.held_rates(found).itertuples()
    assert (
        row.saturation_rps == 2000
        and row.highest_held_rps != row.highest_held_rps
        and (row.runs, row.fewest) == (5, 5)
    )


def test_the_searches_of_two_builds_are_two_and_the_last_is_at_the_end(verdicts):
    search = {"purpose": "sweep", "objective": {"mean": 0.001}}
    found = verdicts(
        **{
            f"2026112{day}T20422{n}Z-put": {"label": label, "search": search}
            for day, label in ((0, "old"), (1, "new"))
            for n in range(2)
        }
    )
    assert [(len(part), part["label"].iloc[0]) for part in rates.each_search(found.runs)] == [
        (2, "old"),
        (2, "new"),
    ]
