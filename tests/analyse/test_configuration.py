"""What may share a median: repeats alone. Real run folders that differ in one thing, read into tables and
compared."""

import json

import pytest
from planted_facts import ASKED, AT_AN_ADDRESS, MACHINE, PLANTED, PLANTED_IN

from kvstudy.analyse.configuration import INVALID, comparisons, configured, differing, why_not_comparable
from kvstudy.analyse.tables import load, rebuild

SECONDS = [range(100, 2100)] * 3


# A label may stand for either of the first two; a profiled run is in no comparison of latencies at all.
NOT_COMPARED = ("a rebuilt service", "the JDK", "a profiler")


@pytest.fixture
def made(tmp_path, make_run):
    """``made({"label": "before"}, {…})``: the tables of one run for each set of changed facts."""

    def of(*changes: dict):
        for number, change in enumerate(changes):
            changed = {"seconds": SECONDS, **ASKED, **change}
            machine = MACHINE | changed.pop("machine", {})
            make_run(f"run-{number}", more={"machine.json": json.dumps(machine)}, **changed)
        rebuild([make_run.root], tmp_path / "tidy", progress=False)
        return load(tmp_path / "tidy")

    return of


def test_runs_that_differ_in_chance_alone_are_repeats(made):
    tables = made(
        {"repeat": 1, "seed": 1},
        {"repeat": 2, "seed": 2, "machine": {"disk_free_bytes": 4, "memory_bytes": 25276510208 - 2**20}},
    )
    assert configured(tables.runs)["configuration"].nunique() == 1


def test_how_much_of_the_head_start_a_repeat_got_is_chance_and_runs_of_before_had_none(made):
    tables = made(
        {"head_start_bytes": 4 << 20, "head_start_writes": 10},
        {"head_start_bytes": 4 << 20, "head_start_writes": 20},
        {"head_start_bytes": None},
        {},
    )
    assert sorted(configured(tables.runs).groupby("configuration").size()) == [2, 2]


@pytest.mark.parametrize(
    ("asked", "planted"),
    [
        pytest.param(asked, change, id=f"{kind}: {name}")
        for kind, (asked, changes) in PLANTED_IN.items()
        for name, change in changes.items()
    ],
)
def test_a_planted_difference_makes_another_configuration_and_is_named(made, asked, planted):
    runs = configured(made(asked, asked, {**asked, **planted}).runs)
    assert runs.groupby("configuration").size().tolist() in ([1, 2], [2, 1])
    assert differing(runs, ["workload", "label"])


def test_runs_of_the_empty_server_are_repeats_as_long_as_that_program_is_the_same_whatever_the_service_is(
    made,
):
    of_one, after_the_service, after_itself = (
        {"empty-server": empty, "service": service, "loadgen": "gen-1"}
        for empty, service in (("jar-1", "old"), ("jar-1", "new"), ("jar-2", "new"))
    )
    runs = configured(
        made(
            *[
                {"server": "empty", "tool_digests": digests}
                for digests in (of_one, after_the_service, after_itself)
            ]
        ).runs
    )
    assert runs.sort_values("run_id").groupby("configuration")["run_id"].apply(list).sort_values(
        key=lambda found: found.str.len()
    ).tolist() == [["run-2"], ["run-0", "run-1"]]


def test_the_empty_server_of_before_it_had_a_program_of_its_own_is_told_by_the_service_that_held_it(made):
    old = [
        {"server": "empty", "tool_digests": {"service": service, "loadgen": "gen-1"}}
        for service in ("old", "old", "new")
    ]
    assert sorted(configured(made(*old).runs).groupby("configuration").size()) == [1, 2]


@pytest.mark.parametrize(
    "planted",
    [change for name, change in PLANTED.items() if name not in NOT_COMPARED],
    ids=[name for name in PLANTED if name not in NOT_COMPARED],
)
def test_labels_that_differ_in_more_than_the_service_are_not_compared_and_it_is_said_in_what(made, planted):
    tables = made({"label": "before"}, {"label": "after", **planted})
    assert comparisons(tables, "label", "before", "after").empty
    assert why_not_comparable(tables, "label", "before", "after")


def test_the_service_may_differ_between_two_labels(made):
    tables = made({"label": "before"}, {"label": "after", **PLANTED["a rebuilt service"]})
    assert comparisons(tables, "label", "before", "after")["measure"].tolist() == ["p50", "p99"]


def test_a_label_may_stand_for_a_build_of_another_revision_but_not_for_another_address(made):
    build = {"subject": {"build": "main"}, **PLANTED["a rebuilt service"]}
    builds = made({"label": "before"}, {"label": "after", **build})
    assert comparisons(builds, "label", "before", "after")["measure"].tolist() == ["p50", "p99"]


def test_two_addresses_under_two_labels_are_not_compared_and_it_is_said_why(made):
    _, planted = PLANTED_IN["at an address"]
    tables = made(
        {**AT_AN_ADDRESS, "label": "before"}, {**AT_AN_ADDRESS, **planted["its address"], "label": "after"}
    )
    assert comparisons(tables, "label", "before", "after").empty
    assert why_not_comparable(tables, "label", "before", "after") == ["subject"]


def test_ours_is_compared_with_what_serves_at_an_address(made):
    tables = made({}, AT_AN_ADDRESS)
    assert comparisons(tables, "server", "kv-service", "mine")["measure"].tolist() == ["p50", "p99"]


def test_our_service_of_before_there_were_subjects_is_a_repeat_of_one_since(made):
    before = {name: value for name, value in ASKED.items() if name != "subject"}
    assert configured(made(before, {}).runs)["configuration"].nunique() == 1


def test_two_workloads_are_compared_though_their_scripts_say_something_else(made):
    digests = ASKED["tool_digests"]
    of_each = [{"workload": name, "tool_digests": digests | {"script": name}} for name in ("put", "get")]
    assert comparisons(made(*of_each), "workload", "put", "get")["measure"].tolist() == ["p50", "p99"]


def test_two_builds_under_one_label_are_two_comparisons_that_say_so(made):
    rows = comparisons(
        made({"label": "before"}, {"label": "before", **PLANTED["a rebuilt service"]}, {"label": "after"}),
        "label",
        "before",
        "after",
        (50.0,),
    )
    assert rows["runs_before"].tolist() == [1, 1]
    assert sorted(rows["differs"]) == ["service_program digest=jar-1", "service_program digest=jar-2"]


def test_the_quick_and_the_reference_windows_of_one_experiment_are_not_pooled(made):
    quick, reference = {"duration_s": 5, "warm_up_s": 2}, {"duration_s": 11, "warm_up_s": 6}
    rows = comparisons(
        made(*[{"label": label, **asked} for label in ("before", "after") for asked in (quick, reference)]),
        "label",
        "before",
        "after",
        (50.0,),
    )
    assert len(rows) == 2 and set(rows["runs_before"]) == {1}
    assert all("duration_s" in text for text in rows["differs"])


def test_a_fact_that_was_not_recorded_is_equal_to_none_that_was(make_run, tmp_path):
    make_run("old-1"), make_run("old-2")
    make_run("new", **ASKED)
    rebuild([make_run.root], tmp_path / "tidy", progress=False)
    runs = configured(load(tmp_path / "tidy").runs)
    assert runs.groupby("configuration").size().tolist() in ([1, 2], [2, 1])
    assert runs.set_index("run_id").loc["old-1", "arrivals"] == "not recorded"


def test_runs_of_before_it_was_noted_are_compared_with_those_that_slept(make_run, tmp_path):
    for label, machine in (("before", {}), ("after", {"processors_awake": False})):
        make_run(label, label=label, more={"machine.json": json.dumps(machine)})
    rebuild([make_run.root], tmp_path / "tidy", progress=False)
    assert len(comparisons(load(tmp_path / "tidy"), "label", "before", "after")) == 3


def test_runs_that_the_service_made_invalid_are_counted_and_compared_and_those_from_outside_are_not(made):
    fine, slow, disturbed = {}, {"offered_rate_rps": 9000}, {"process": {"foreign_cpu_share": 0.6}}
    rate = {"offered_rate_rps": 9000}
    tables = made(
        *[{"label": "before", **rate, **one} for one in (slow, disturbed)],
        *[{"label": "after", **rate, **one} for one in (slow, slow)],
        fine,
    )
    rows = comparisons(tables, "label", "before", "after")
    assert rows["measure"].tolist() == [INVALID]
    assert rows[["invalid_before", "of_before", "invalid_after", "of_after"]].values.tolist() == [
        [1, 1, 2, 2]
    ]


def test_a_side_that_lost_far_more_runs_from_outside_is_not_called_faster_for_those_that_are_left(made):
    """Who shares the cores with the generator can make it late: five of eight runs of one side only."""
    late = {"process": {"foreign_cpu_share": 0.6}}
    slower = {"seconds": [range(300, 2300)] * 3}
    before, after = [slower] * 8, [late] * 5 + [{}] * 6
    runs = [{"label": "before", **one} for one in before] + [{"label": "after", **one} for one in after]
    rows = comparisons(made(*runs), "label", "before", "after").set_index("measure")
    assert rows.loc["p50", ["invalid_before", "of_before", "invalid_after", "of_after"]].tolist() == [
        0,
        8,
        5,
        11,
    ]
    assert rows.loc["p50", "word"] == "cannot tell" and rows.loc["p50", "ratio"] < 1


def test_runs_lost_from_outside_as_chance_has_it_leave_the_word_as_it_is(made):
    late, slower = {"process": {"foreign_cpu_share": 0.6}}, {"seconds": [range(300, 2300)] * 3}
    runs = [{"label": "before", **slower}] * 8 + [{"label": "after", **one} for one in [late] + [{}] * 7]
    rows = comparisons(made(*runs), "label", "before", "after").set_index("measure")
    assert rows.loc["p50", ["invalid_after", "of_after", "word"]].tolist() == [0, 7, "faster"]


@pytest.mark.parametrize(
    ("order", "apart"),
    [
        ("bbaa", True),
        ("bbbbbbaaaaaa", True),
        ("bbbbbaaaaaab", True),
        ("bbbaaaaaabbb", True),
        ("bbbaaabbbaaa", True),
        ("bbbabababaaa", True),
        ("aabbaabbaabb", False),
        ("baab", False),
        ("baabbaabab", False),
        ("baababababa", False),
        ("ba", False),
    ],
)
def test_labels_not_measured_in_turn_are_marked(made, order, apart):
    runs = [
        {
            "label": {"b": "before", "a": "after"}[side],
            "phases": {"measure": {"start_utc": f"2026-11-20T20:{place:02d}:25.000Z"}},
        }
        for place, side in enumerate(order)
    ]
    assert comparisons(made(*runs), "label", "before", "after", (50.0,))["apart"].tolist() == [apart]


def test_a_put_with_a_head_start_is_compared_with_a_get_which_can_have_none(made):
    tables = made(
        {"workload": "put", "method": "PUT", "head_start_bytes": 4 << 20},
        {"workload": "get", "method": "GET", "head_start_bytes": None},
    )
    assert comparisons(tables, "workload", "get", "put", (50.0,))["measure"].tolist() == ["p50"]


def test_connections_of_one_thread_are_not_set_against_those_of_two_where_those_of_one_were_measured(made):
    tables = made(
        *[
            {"connections": connections, "threads": threads}
            for connections, threads in ((4, 1), (4, 2), (64, 1), (64, 2))
        ]
    )
    assert comparisons(tables, "connections", 4, 64, (50.0,))["threads"].tolist() == [1, 2]


def test_where_threads_grow_with_connections_these_are_compared_all_the_same(made):
    tables = made({"connections": 4, "threads": 1}, {"connections": 64, "threads": 64})
    assert len(comparisons(tables, "connections", 4, 64, (50.0,))) == 1
