"""The plan: every combination, seeded order, repeats interleaved, profiled runs apart, names and
identities."""

import hashlib
import json
from collections import Counter
from dataclasses import asdict

import pytest
from trial import trial

from kvstudy.errors import ExperimentError
from kvstudy.plan.run_plan import RUN_OVERHEAD_S, plan
from kvstudy.plan.selection import selected
from kvstudy.plan.show import plan_lines, total_line

SEVERAL = {
    "workload": ["unique_put", {"script": "get", "key_count": 500}],
    "connections": [1, 4],
    "threads": "connections",
    "rate": [1000, 2000],
    "duration": "3s",
    "repeats": 3,
    "fill": 1000,
}


def planned(**change):
    return plan(trial(**SEVERAL | change))


def test_every_combination_is_run_once_per_repeat():
    runs = planned().runs
    assert len(runs) == 2 * 2 * 2 * 3
    assert set(Counter((run.configuration.summary(), run.repeat) for run in runs).values()) == {1}


def test_repeats_are_interleaved_every_block_holds_each_configuration():
    runs = planned().runs
    blocks = [runs[start : start + 8] for start in range(0, 24, 8)]
    for repeat, block in enumerate(blocks, start=1):
        assert {run.repeat for run in block} == {repeat}
        assert len({run.configuration.summary() for run in block}) == 8
    orders = [[run.configuration.summary() for run in block] for block in blocks]
    assert orders[0] != orders[1]


def test_order_comes_from_the_seed():
    def order(seed):
        return [run.configuration.summary() for run in planned(seed=seed).runs]

    assert order(7) == order(7)
    assert order(7) != order(8)


def test_profiled_runs_last_as_long_as_they_are_told_to_and_write_each_unique_key_once():
    runs = planned(
        profile={"events": "cpu", "duration": "30s", "warm_up": "20s", "workload": "unique_put"}
    ).runs
    profiled = [run.configuration for run in runs if run.profile]
    assert {(one.duration_s, one.measured_s) for one in profiled} == {(30.0, 10.0)}
    assert all(one.workload_args["key_count"] >= 30 * one.offered_rate_rps for one in profiled)
    assert {run.configuration.duration_s for run in runs if not run.profile} == {3.0}


def test_threads_can_follow_connections():
    assert {(run.configuration.connections, run.configuration.threads) for run in planned().runs} == {
        (1, 1),
        (4, 4),
    }


def test_profiled_runs_come_last_and_only_for_what_was_asked():
    runs = planned(profile={"events": ["cpu", "alloc"], "rate": 2000, "connections": 4}).runs
    profiled = [run for run in runs if run.profile]
    assert len(runs) == 24 + 2 and runs[-2:] == profiled
    assert {run.configuration.summary() for run in profiled} == {
        "unique_put c=4 t=4 2000/s",
        "get c=4 t=4 2000/s",
    }


@pytest.mark.parametrize("asked", ["path", "name"])
def test_a_script_of_ones_own_is_profiled_by_its_path_or_its_name(tmp_path, asked):
    script = tmp_path / "Own-Script.lua"
    script.write_text("")
    profile = {"events": "cpu", "workload": {"path": str(script), "name": "own_script"}[asked]}
    runs = planned(workload=["put", str(script)], method="PUT", fill=None, profile=profile).runs
    assert {run.configuration.workload for run in runs if run.profile} == {"own_script"}


def test_only_runs_that_read_are_filled_and_read_all_filled_keys_unless_told_otherwise():
    runs = planned(workload=["put", "unique_get", {"script": "repeated_get", "key_count": 5}]).runs
    assert {
        (
            run.configuration.workload,
            bool(run.configuration.fill),
            run.configuration.workload_args["key_count"],
        )
        for run in runs
    } == {("put", False, 100_000), ("unique_get", True, 1000), ("repeated_get", True, 5)}


def test_profiled_runs_of_an_experiment_about_profiling_are_shuffled_into_the_blocks():
    runs = planned(repeats=2, profile={"events": ["cpu"], "repeats": 3, "interleave": True}).runs
    blocks = [runs[:16], runs[16:32], runs[32:]]
    for repeat, block in enumerate(blocks, start=1):
        assert {run.repeat for run in block} == {repeat}
    kinds = ["".join("p" if run.profile else "l" for run in block) for block in blocks]
    assert [(kind.count("l"), kind.count("p")) for kind in kinds] == [(8, 8), (8, 8), (0, 8)]
    assert all("lp" in kind and "pl" in kind for kind in kinds[:2]) and kinds[0] != kinds[1]


def test_experiment_that_only_writes_needs_no_fill():
    runs = planned(workload="put", fill=None).runs
    assert {run.configuration.fill for run in runs} == {None}


def test_unique_put_has_more_keys_than_it_can_write():
    for run in planned(workload="unique_put").runs:
        assert (
            run.configuration.workload_args["key_count"]
            >= run.configuration.offered_rate_rps * run.configuration.duration_s
        )


def test_variant_names_only_what_is_varied_in_service_and_jvm():
    runs = planned(
        service={"handler": ["selector", "workers"], "wal": "os"}, jvm={"heap": ["128m", "1g"], "gc": "G1"}
    ).runs
    assert {tuple(run.configuration.variant) for run in runs} == {("handler", "heap")}
    assert {run.configuration.service["wal"] for run in runs} == {"os"}
    assert {tuple(run.configuration.jvm) for run in runs} == {
        ("-Xmx128m", "-XX:+UseG1GC"),
        ("-Xmx1g", "-XX:+UseG1GC"),
    }


def test_closed_loop_has_no_offered_rate():
    runs = planned(rate=["closed", 1000]).runs
    assert {run.configuration.offered_rate_rps for run in runs} == {None, 1000}
    assert runs[0].name("20261120T193000Z").split("-")[0] == "20261120T193000Z"
    assert any("-closed-rep" in run.name("t") for run in runs)


def test_run_id_sorts_by_time_and_hints_at_the_parameters():
    run = next(
        run
        for run in planned().runs
        if run.configuration.summary() == "unique_put c=4 t=4 2000/s" and run.repeat == 2
    )
    assert run.name("20261120T193000Z") == "20261120T193000Z-unique-put-c4-t4-r02000-rep2"


def test_identity_is_the_same_for_the_same_run_and_another_for_any_other():
    first, again, other = planned(), planned(question="in other words?"), planned(duration="4s")
    assert [run.identity() for run in first.runs] == [run.identity() for run in again.runs]
    assert len({run.identity() for run in first.runs}) == len(first.runs)
    assert not {run.identity() for run in first.runs} & {run.identity() for run in other.runs}


def test_estimate_counts_fills_once_and_grows_with_every_run():
    assert len(planned().fills) == 1
    assert planned(repeats=4).estimated_s > planned(repeats=3).estimated_s > 24 * 3
    assert planned(fill=100_000).disk_bytes > planned(fill=1000).disk_bytes


def test_plan_is_shown_with_every_run_its_order_and_duration():
    lines = plan_lines(planned(profile=["cpu"]))
    assert "32 runs (24 for latency, 8 profiled)" in lines[2] and "on disk" in lines[2]
    assert len([line for line in lines if "repeat " in line]) == 32
    assert lines[-1].endswith("profiled: cpu")


def test_a_search_has_one_line_for_each_configuration_whatever_repeats_says():
    search = {"method": "bisect", "objective": {"mean": "1ms"}, "lowest_rate": 100, "highest_rate": 1000}
    once, often = (
        planned(workload=["put", "delete"], rate=None, search=search, repeats=repeats) for repeats in (1, 5)
    )
    assert [run.configuration for run in often.runs] == [run.configuration for run in once.runs]
    assert often.estimated_s == once.estimated_s and total_line([often]) == total_line([once])
    with pytest.raises(ExperimentError, match="no run has this value: repeat=2"):
        selected(often, ["repeat=2"])


def test_search_is_estimated_by_the_trials_that_it_will_take():
    search = {
        "method": "bisect",
        "objective": {"mean": "1ms"},
        "lowest_rate": 1000,
        "highest_rate": 33_000,
        "precision": 0.1,
    }
    whole = planned(workload="put", rate=None, search=search, connections=1, repeats=1)
    assert len(whole.runs) == 1
    assert whole.estimated_s == (2 + 4 + 3 * 5) * (3 + RUN_OVERHEAD_S)
    assert any(
        "search (bisect): at most 40 trials for each line below, until the knee is known to 10%" in line
        for line in plan_lines(whole)
    )


def test_empty_server_needs_no_disk():
    assert planned(server="empty").disk_bytes == 0


def test_only_selects_by_value_and_keeps_the_place_in_the_plan():
    whole = planned()
    part = selected(whole, ["workload=get", "connections=4", "rate=1000", "rate=2000"])
    assert len(part.runs) == 6
    assert [run.plan_index for run in part.runs] == [
        run.plan_index
        for run in whole.runs
        if run.configuration.workload == "get" and run.configuration.connections == 4
    ]


@pytest.mark.parametrize(
    ("only", "words"),
    [
        (["workloat=get"], "no run has such a key: workloat"),
        (["workload=put"], "no run has this value: workload=put"),
        (["get"], "takes KEY=VALUE"),
        (["workload=get", "key_count=4000"], "no run has"),
    ],
)
def test_only_that_selects_nothing_is_refused(only, words):
    with pytest.raises(ExperimentError, match=words):
        selected(planned(), only)


def test_a_rate_of_over_a_million_is_chosen_by_its_digits():
    assert len(selected(planned(workload="put", rate=[1_000_000, 1_234_567]), ["rate=1234567"]).runs) == 6
    assert len(selected(planned(workload="put", rate=[1000, "1.5M"]), ["rate=1k"]).runs) == 6
    assert len(selected(planned(workload="put", rate=["closed", 100]), ["rate=closed"]).runs) == 6


def test_runs_of_another_generator_are_told_apart_in_the_plan():
    whole = planned(workload="put", rate=1000, generator=["loadgen", "wrk2"], connections=1, repeats=1)
    assert {run.configuration.summary() for run in whole.runs} == {
        "put c=1 t=1 1000/s",
        "put c=1 t=1 1000/s wrk2",
    }


def test_sets_of_service_options_stand_beside_each_other_and_are_not_crossed():
    runs = planned(
        service=[
            {"wal": "interval", "compaction": "leveled"},
            {"wal": "interval", "compaction": ["none", "tiered"]},
            {"wal": "os", "compaction": "leveled"},
        ],
        workload="unique_put",
        repeats=1,
    ).runs
    assert sorted({tuple(run.configuration.variant.values()) for run in runs}) == [
        ("interval", "leveled"),
        ("interval", "none"),
        ("interval", "tiered"),
        ("os", "leveled"),
    ]


def test_each_repeat_has_a_head_start_of_its_own_the_same_in_all_variants():
    runs = planned(
        head_start="4m", repeats=8, workload="unique_put", service={"wal": ["interval", "os"]}
    ).runs
    writes = {run.repeat: run.head_start_writes for run in runs}
    assert all(run.head_start_writes == writes[run.repeat] for run in runs)
    whole = (4 << 20) / 148
    assert sorted(int(count / whole * 8) for count in writes.values()) == list(range(8)), (
        f"one in each eighth: {sorted(writes.values())}"
    )
    again = {
        run.repeat: run.head_start_writes
        for run in planned(head_start="4m", repeats=8, workload="unique_put", seed=2).runs
    }
    assert again != writes


def test_a_head_start_costs_time_and_reading_workloads_have_none():
    runs = planned(head_start="400m", workload=["unique_put", "unique_get"]).runs
    for run in runs:
        reads = run.configuration.workload == "unique_get"
        assert (run.head_start_writes == 0) == reads
        assert (run.estimated_s > run.configuration.duration_s + RUN_OVERHEAD_S) != reads


def test_without_a_head_start_a_run_has_the_identity_that_it_had_before_there_were_any():
    plain, started = (planned(workload="unique_put", **more).runs[0] for more in ({}, {"head_start": "4m"}))
    assert plain.identity() != started.identity()
    asked = asdict(plain.configuration) | {
        "question": None,
        "repeat": plain.repeat,
        "seed": plain.seed,
        "profile": None,
    }
    for later in ("head_start_bytes", "subject", "script", "statuses", "read_back", "generators", "cores"):
        assert asked.pop(later) is None
    assert plain.identity() == hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def test_cores_that_were_asked_for_make_another_run():
    identities = {
        planned(**more).runs[0].identity() for more in ({}, {"cores": "apart"}, {"cores": "shared"})
    }
    assert len(identities) == 3


def test_several_numbers_of_records_are_a_factor_of_the_runs_that_read():
    whole = planned(fill=[1000, 3000], connections=1, rate=1000, repeats=1, workload=["put", "get"])
    filled = [run.configuration.fill for run in whole.runs]
    assert sorted(fill["records"] if fill else 0 for fill in filled) == [0, 1000, 3000]
    keys = {run.configuration.workload_args["key_count"] for run in whole.runs if run.configuration.fill}
    assert keys == {1000, 3000}, "each reads all the keys that it has"
    assert sorted(fill["records"] for fill in whole.fills) == [1000, 3000]
    assert len({run.identity() for run in whole.runs}) == 3
    chosen = selected(whole, ["records=3000"]).runs
    assert [run.configuration.fill["records"] for run in chosen] == [3000]


def test_a_large_store_is_named_by_its_records():
    whole = planned(fill=[1000, 2_000_000], connections=1, rate=1000, repeats=1, workload="get")
    assert sorted(run.configuration.summary() for run in whole.runs) == [
        "get c=1 t=1 1000/s",
        "get c=1 t=1 1000/s records=2000000",
    ]


def test_memory_groups_of_several_sizes_are_variants_that_share_one_fill():
    whole = planned(service={"memory": ["256m", "1g"]}, connections=1, rate=1000, repeats=1, workload="get")
    assert len(whole.fills) == 1 and len({run.identity() for run in whole.runs}) == 2
    assert {run.configuration.variant["memory"]: run.configuration.memory_bytes for run in whole.runs} == {
        "256m": 256 << 20,
        "1g": 1 << 30,
    }
    assert planned().runs[0].configuration.memory_bytes is None


def test_a_command_has_a_memory_group_of_its_own():
    command = {"command": ["serve", "{port}"], "memory": "192m"}
    runs = planned(subject=["kv-service", command], fill=None, workload="put", service={"memory": "1g"}).runs
    found = {run.configuration.spec.label: run.configuration.memory_bytes for run in runs}
    assert found == {"kv-service": 1 << 30, "serve": 192 << 20}
