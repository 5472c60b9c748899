"""Sealed launches of duets → tables → results; which launches count, and what the rest forbid."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from duet_maker import LATE, DuetMaker, slices
from run_maker import RunMaker

from kvstudy.analyse import schema, tables
from kvstudy.analyse.comparison.launches import CPU, P50, P90, P99, P999, WRITTEN
from kvstudy.analyse.comparison.words import CANNOT_TELL, SLOWER
from kvstudy.analyse.duet_observation import observe_duet
from kvstudy.analyse.duets import duet_of, duets
from kvstudy.record.run_folder import sealed_runs


@pytest.fixture
def make(tmp_path):
    return DuetMaker(tmp_path / "data" / "raw")


def checks(run) -> dict[str, str]:
    return {row["check"]: row["verdict"] for row in observe_duet(run)["duet_validity"]}


def excluded(run) -> str:
    return observe_duet(run)["duets"][0]["excluded"]


def test_a_launch_has_rows_in_the_tables_of_duets_and_in_no_table_of_runs(tmp_path, make):
    make(1, stacks={"a": "main;get 5\n", "b": "main;put 7\n"})
    RunMaker(tmp_path / "data" / "raw")()
    found = tables.study_duets(tmp_path / "data", progress=False)
    for name in schema.DUET_TABLES:
        frame = getattr(found, name)
        assert len(frame) and frame.dtypes.astype(str).tolist() == [
            column.dtype for column in schema.DUET_TABLES[name]
        ]
    assert len(found.slices) == 40 and (found.slices["left_out"] == "first round").sum() == 4
    assert found.duet_stacks["side"].tolist() == ["a", "b"]
    runs = tables.study_tables(tmp_path / "data", progress=False)
    assert runs.runs["run_id"].tolist() == ["20261120T204223Z-put-rep1"]
    assert not any(getattr(runs, name)["run_id"].str.contains("duet").any() for name in schema.TABLES)


def test_in_sums_the_first_rounds_of_a_duet_count_less_but_where_its_start_is_asked_about(make):
    early = slices(31)
    early.loc[(early["round"] == 2) & (early["side"] == "b"), "cpu_ns"] *= 7

    def cpu_ratio(launch: int, warm_pairs: int) -> float:
        rows = observe_duet(make(launch, parts={("put", "rate"): early}, warm_pairs=warm_pairs))["ratios"]
        (found,) = (row["log_ratio"] for row in rows if row["measure"] == CPU)
        return found

    assert 0 < 8 * cpu_ratio(1, warm_pairs=6) < cpu_ratio(2, warm_pairs=0)


def test_tables_are_the_same_whether_launches_are_read_at_once_or_one_by_one(tmp_path, make):
    roots, tidy = [tmp_path / "data" / "raw"], tmp_path / "data" / "tidy"
    for launch in (1, 2):
        make(launch)
        tables.rebuild(roots, tidy, progress=False)
    tables.rebuild(roots, tmp_path / "anew", progress=False)
    one_by_one, anew = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tidy, tmp_path / "anew")
    )
    assert one_by_one == anew and sum(path.suffix == ".parquet" for path in anew) >= 4


def test_a_study_without_duets_has_empty_tables_of_them(tmp_path):
    RunMaker(tmp_path / "data" / "raw")()
    found = tables.study_duets(tmp_path / "data", progress=False)
    assert found.duets.empty and found.source == "" and duets(found) == []


def test_a_good_launch_fails_no_check_and_has_every_measure(make):
    rows = observe_duet(make(1))
    assert {row["verdict"] for row in rows["duet_validity"]} == {"PASS"}
    assert {(row["loop"], row["measure"]) for row in rows["ratios"]} == {
        *(
            ("rate", name)
            for name in ("p50", "p90", "p99", "mean", "CPU per request", "bytes written per request")
        ),
        ("closed", "rate"),
        ("closed", "CPU per request"),
    }


def test_a_launch_of_which_p99_9_is_the_primary_measure_has_a_value_of_it(make):
    rows = observe_duet(make(1, primary={"workload": "put", "loop": "rate", "measure": P999}))
    assert P999 in {row["measure"] for row in rows["ratios"] if row["loop"] == "rate"}


def test_the_standing_of_folders_is_that_of_their_tables(tmp_path, make):
    for launch in range(1, 8):
        make(launch, ratio=1.1)
    from_folders = duet_of(sealed_runs(tmp_path), "c0ffee")
    from_tables = duets(tables.study_duets(tmp_path / "data", progress=False))[0]
    assert from_folders == from_tables and from_folders.counted == 7
    assert from_folders.primary.word == SLOWER and from_folders.primary.ratio == pytest.approx(1.1, rel=0.02)
    assert not from_folders.undecided


def test_two_comparisons_are_never_pooled_and_a_profiled_launch_gives_no_ratio(tmp_path, make):
    for launch in range(1, 6):
        make(launch)
    make(6, ratio=3.0, comparison="other build")
    make(7, ratio=3.0, profile=["cpu"])
    found = duet_of(sealed_runs(tmp_path), "c0ffee")
    assert (
        found.counted == 5
        and found.primary.ratio == pytest.approx(1, abs=0.05)
        and len(found.tables.duets) == 6
    )
    assert duet_of(sealed_runs(tmp_path), "no such") is None


def test_a_launch_of_another_build_under_the_same_name_is_not_pooled(tmp_path, make):
    for launch in range(1, 6):
        make(launch, asked="one build")
    make(6, ratio=3.0, asked="another")
    found = duet_of(sealed_runs(tmp_path), "c0ffee")
    assert (found.counted, found.outside) == (5, 1) and found.primary.ratio < 1.1


OVER_HOSTS = {"service": "a", "generators": ["b"]}


@pytest.mark.parametrize("elsewhere", [None, {"service": "c", "generators": ["b"]}])
def test_launches_of_other_hosts_or_of_one_machine_are_no_repeats_of_one_another(tmp_path, make, elsewhere):
    for launch in range(1, 6):
        make(launch, hosts=OVER_HOSTS)
    make(6, ratio=3.0, **({"hosts": elsewhere} if elsewhere else {}))
    found = duet_of(sealed_runs(tmp_path), "c0ffee")
    assert (found.counted, found.outside) == (5, 1) and found.primary.ratio < 1.1
    assert found.where == "service on a, loaded by b"


APART = {"pinning": "service on core 0, generator on core 1"}


def test_launches_on_other_cores_are_not_pooled_and_one_that_was_placed_nowhere_says_nothing_of_it(
    tmp_path, make
):
    make(1, outcome="failed: no port")
    for launch in range(2, 7):
        make(launch, machine=APART)
    make(7, ratio=3.0, machine={"pinning": "not pinned"})
    found = duet_of(sealed_runs(tmp_path), "c0ffee")
    assert (found.counted, found.cores) == (5, APART["pinning"]) and found.primary.ratio < 1.1


def test_launches_count_in_the_order_of_time_whatever_their_folders_are_called(tmp_path, make):
    for launch in range(1, 9):
        make(launch, ratio=1.0 + 0.02 * launch)
    before = duet_of(sealed_runs(tmp_path), "c0ffee")
    runs = sealed_runs(tmp_path)
    assert duet_of(runs[::-1], "c0ffee").results == before.results


def test_a_side_that_dies_is_an_outcome_and_takes_the_good_words_from_it(tmp_path, make):
    for launch in range(1, 9):
        make(launch, ratio=0.9)
    died = make(
        9,
        ends={"a": DuetMaker.end(), "b": DuetMaker.end(died=True)},
        outcome="failed: side b ended with exit code 1",
        parts={("put", "rate"): slices(3)},
    )
    assert excluded(died) == "b" and checks(died)["alive_b"] == "FAIL"
    found = duet_of(sealed_runs(tmp_path), "c0ffee")
    assert (found.counted, found.lost.b, found.primary.word, found.primary.held_back) == (
        8,
        1,
        CANNOT_TELL,
        "faster",
    )


@pytest.mark.parametrize(
    ("changes", "check", "why"),
    [
        ({"machine": {"load_during": {"steal_share_mean": 0.2}}}, "machine_quiet", "outside"),
        ({"machine": {"memory_bytes": 300 << 20}}, "memory", "outside"),
        ({"outcome": "failed: interrupted"}, "completed", "outside"),
        (
            {
                "ends": {"a": DuetMaker.end(), "b": DuetMaker.end(log_errors=["BrokenPipeError"])},
                "outcome": "failed: interrupted during put at the rate",
            },
            "completed",
            "outside",
        ),
        (
            {
                "ends": {"a": DuetMaker.end(), "b": DuetMaker.end(log_errors=["BrokenPipeError"])},
                "outcome": "failed: generator did not end: planned=9s",
            },
            "log_clean_b",
            "outside",
        ),
        (
            {
                "ends": {
                    "a": DuetMaker.end(died=True),
                    "b": DuetMaker.end(log_errors=["BrokenPipeError"]),
                },
                "outcome": "failed: side a: service died during put at the rate",
            },
            "log_clean_b",
            "a",
        ),
        ({"without": ["slices.csv"]}, "rounds_kept", "outside"),
        (
            {
                "ends": {
                    "a": DuetMaker.end(data_check={"sampled": 200, "missing": 3, "wrong": 0}),
                    "b": DuetMaker.end(),
                }
            },
            "data_kept_a",
            "a",
        ),
        (
            {"ends": {"a": DuetMaker.end(), "b": DuetMaker.end(log_errors=["ERROR: disk"])}},
            "log_clean_b",
            "b",
        ),
        (
            {
                "ends": {
                    "a": DuetMaker.end(fault="service did not stop in order: signal 9"),
                    "b": DuetMaker.end(fault=""),
                },
                "outcome": "failed: side a",
            },
            "orderly_a",
            "a",
        ),
        (
            {
                "ends": {"a": None, "b": DuetMaker.end(fault="service was not ready after 60 s")},
                "outcome": "failed: side b",
                "parts": {("put", "rate"): slices(1)},
            },
            "orderly_b",
            "b",
        ),
        (
            {"unexpected": {"b": 3}, "outcome": "failed: unexpected answers: put: 503: 60"},
            "answers_expected_b",
            "b",
        ),
        ({"ends": {"a": DuetMaker.end(died=True), "b": DuetMaker.end(died=True)}}, "alive_a", "ab"),
    ],
)
def test_what_leaves_a_launch_out_and_whose_doing_it_is(make, changes, check, why):
    run = make(1, **changes)
    assert (checks(run)[check], excluded(run)) == ("FAIL", why)


@pytest.mark.parametrize("rounds", [7, 12])
def test_an_order_that_is_always_the_same_marks_the_launch_since_it_may_have_been_drawn(make, rounds):
    part = slices(rounds)
    part["side"] = ["a", "b"] * rounds
    run = make(1, parts={("put", "rate"): part})
    assert checks(run)["turns_balanced"] == "WARN" and excluded(run) == ""


@pytest.mark.parametrize(
    ("column", "value", "check"),
    [
        ("late", 50, "rate_held_b"),
        ("answered", 900, "stores_alike"),
        ("idle_cpu_ns", 2e8, "rounds_kept"),
        ("compiler_ns", 5e6, "compilers_done"),
    ],
)
def test_what_only_marks_a_launch(make, column, value, check):
    run = make(1, parts={("put", "rate"): slices(**{column: value})})
    assert checks(run)[check] == "WARN" and excluded(run) == ""


def test_slices_of_a_profiler_are_kept_and_judge_nothing(make):
    rows = observe_duet(
        make(
            1,
            parts={
                ("put", "rate"): slices(),
                ("put", "profile"): slices(3, ratio=2.0, loop="profile", errors=9),
            },
        )
    )
    assert {row["loop"] for row in rows["slices"]} == {"rate", "profile"} and {
        row["loop"] for row in rows["ratios"]
    } == {"rate"}
    assert {row["verdict"] for row in rows["duet_validity"]} == {"PASS"}


def test_a_part_in_which_the_generator_was_the_limit_gives_no_value_and_the_other_does(make):
    run = make(1, saturated=("closed",))
    assert {row["loop"] for row in observe_duet(run)["ratios"]} == {"rate"}
    assert checks(run)["generator_not_saturated"] == "WARN" and excluded(run) == ""


def late(p50_us: int, p99_us: int) -> np.ndarray:
    return np.repeat([p50_us, p99_us], [9700, 300])


def test_a_generator_that_was_late_now_and_then_spoils_the_p99_and_the_mean_and_nothing_else(make):
    run = make(1, late={"response_time": late(70, 9000), "own_lateness": late(23, 3000)})
    measures = {row["measure"] for row in observe_duet(run)["ratios"] if row["loop"] == "rate"}
    assert measures == {P50, P90, CPU, WRITTEN}
    observed = {row["check"]: row["observed"] for row in observe_duet(run)["duet_validity"]}
    assert observed["generator_not_saturated"].startswith("put rate: p99, mean without value, starved: ")


def test_a_generator_that_was_late_at_the_median_spoils_the_median_too(make):
    run = make(1, late={"response_time": late(400, 9000), "own_lateness": late(150, 100)})
    assert {row["measure"] for row in observe_duet(run)["ratios"] if row["loop"] == "rate"} == {
        P99,
        CPU,
        WRITTEN,
    }


def test_loadgen_still_says_of_itself_what_tells_late_from_out_of_time():
    """``GeneratorResult.late_by_itself`` reads the reason's beginning."""
    source = (Path(__file__).parents[2] / "loadgen/src/verdict.rs").read_text()
    assert LATE.split(": own")[0] in source


def test_what_was_not_recorded_is_marked(make):
    run = make(1, ends={}, machine={"load_during": None})
    marked = [name for name, verdict in checks(run).items() if verdict == "WARN"]
    assert {"alive_a", "log_clean_b", "memory", "machine_quiet"} <= set(marked) and excluded(run) == ""


def test_a_machine_of_which_only_the_host_was_seen_is_not_called_quiet(make):
    """As in a container, or of a service at an address."""
    alone = make(1, machine={"load_during": {"steal_share_mean": 0.0}})
    assert checks(alone)["machine_quiet"] == "WARN" and excluded(alone) == ""


def test_a_damaged_file_is_said_and_the_rest_is_read(make):
    run = make(1)
    broken = run.path / "generator-put-rate.json.gz"
    run.path.chmod(0o755)
    broken.chmod(0o644)
    broken.write_bytes(b"no gzip")
    rows = observe_duet(run)
    (readable,) = [row for row in rows["duet_validity"] if row["check"] == "readable"]
    assert readable["verdict"] == "FAIL" and len(rows["slices"]) == 40
    assert "after sealing" not in readable["observed"]


def test_a_launch_that_is_not_as_it_was_sealed_does_not_count(make):
    run = make(1)
    run.path.chmod(0o755)
    (run.path / "run.json").chmod(0o644)
    (run.path / "run.json").write_text((run.path / "run.json").read_text() + "\n")
    (readable,) = [row for row in observe_duet(run)["duet_validity"] if row["check"] == "readable"]
    assert (readable["verdict"], readable["observed"].split(":")[0]) == ("FAIL", "run.json")
    assert excluded(run) == "outside"


@pytest.mark.parametrize(("every", "said", "held_back"), [(2, CANNOT_TELL, "faster"), (4, "faster", "")])
def test_side_b_busy_in_the_turns_of_a_forbids_what_its_lost_slices_might_have_undone(
    tmp_path, make, every, said, held_back
):
    """b compacts in every second, or fourth, round and goes on into a's turn: with these rounds its slow
    slices are gone. Of a median over rounds a fourth cannot undo that b is faster."""
    for launch in range(1, 10):
        part = slices(12, ratio=0.93)
        part["p50_ns"] *= np.exp(make.generator.normal(0, 0.02, len(part)))
        part.loc[(part["side"] == "a") & (part["round"] % every == 0), "idle_cpu_ns"] = 2e8
        make(launch, parts={("put", "rate"): part})
    found = duet_of(sealed_runs(tmp_path), "c0ffee")
    assert (found.primary.word, found.primary.held_back) == (said, held_back)
    # More than a twentieth of the rounds, whatever is said at worst.
    assert found.primary.flattered
    told = pd.Series({one.measure: one.word for one in found.results})
    assert told["CPU per request"] != "cheaper"
