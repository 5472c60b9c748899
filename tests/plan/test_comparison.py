"""From an experiment file to duets: which two sides, which loads, what is drawn, and what is refused."""

import json

import pytest
from committed import experiments

from kvstudy.analyse.comparison.looks import FIRST_LOOK
from kvstudy.errors import ExperimentError
from kvstudy.plan.commands import commands_of
from kvstudy.plan.comparison import LEAST_LAUNCHES, SIDES, Slices, changed, comparisons, profile_loop
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.refusal import read_yaml
from kvstudy.plan.run_plan import FILL_RATE_RPS
from kvstudy.plan.unique_keys import keys_skipped

EXPERIMENTS = experiments()


def experiment(tmp_path, preset=None, **change) -> Experiment:
    values = {
        "question": "which?",
        "expectation": "1 ms",
        "workload": "get",
        "connections": 4,
        "threads": 1,
        "rate": 2000,
        "fill": 1000,
        "duration": "2s",
        "warm_up": "1s",
        "repeats": 1,
    } | change
    path = tmp_path / "trial.yaml"
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))
    return Experiment.load(path, preset, compared=True)


def refused(tmp_path, *, builds=None, only=(), **change) -> str:
    with pytest.raises(ExperimentError) as caught:
        comparisons(experiment(tmp_path, **change), builds=builds, only=only)
    return str(caught.value)


def test_a_factor_of_two_values_makes_the_two_sides(tmp_path):
    (one,) = comparisons(experiment(tmp_path, service={"handler": ["selector", "workers"]}))
    assert one.names == ("handler=selector", "handler=workers")
    (load,) = one.loads
    assert [load.of(side).service for side in SIDES] == [{"handler": "selector"}, {"handler": "workers"}]
    assert [loop.loop for loop in load.loops] == ["rate", "closed"]
    assert (load.loops[0].pairs, load.loops[1].pairs, load.loops[1].warm_pairs) == (12, 8, 0)
    assert 10 <= load.loops[0].warm_up_s < 12


def unique_put(tmp_path, **change) -> Experiment:
    sides = {"service": {"handler": ["selector", "workers"]}, "fill": None}
    return experiment(tmp_path, **sides | {"workload": "unique_put"} | change)


@pytest.mark.parametrize("rate", [2000, "closed"])
def test_the_loops_of_a_duet_share_out_the_keys_that_are_to_be_written_once(tmp_path, rate):
    (one,) = comparisons(unique_put(tmp_path, rate=rate, compare={"primary": "cpu"}))
    (load,) = one.loads
    loops = [*load.loops, profile_loop(one.comparing)]
    key_count = load.a.workload_args["key_count"]
    firsts = [keys_skipped(key_count, load.rates_until(loop)) for loop in loops]
    for first, behind, loop in zip(firsts, [*firsts[1:], key_count], loops, strict=True):
        at_most_rps = 1_000_000 if rate == "closed" or loop.loop == "closed" else rate
        assert behind - first >= at_most_rps * loop.duration_s, loop.loop


def test_keys_that_do_not_suffice_for_a_duet_are_refused_though_they_do_for_a_run(tmp_path):
    few = unique_put(tmp_path, workload={"script": "unique_put", "key_count": 10_000})
    with pytest.raises(ExperimentError, match="keys twice in a duet: key_count=10000 rate × duration of its"):
        comparisons(few)
    open_loop = {"closed_pairs": 0, "warm_up": 1.0, "pairs": 1, "profile": []}
    assert comparisons(few.model_copy(update={"comparing": few.comparing.model_copy(update=open_loop)}))
    short = unique_put(tmp_path, workload={"script": "unique_put", "key_bytes": 8})
    with pytest.raises(ExperimentError, match="key_bytes must exceed the digits: .* keys of a duet="):
        comparisons(short)


def test_a_script_of_ones_own_has_the_keys_that_it_says_whatever_it_is_called(tmp_path):
    script = tmp_path / "unique_put.lua"
    script.write_text("function request() return wrk.format('PUT') end")
    own = unique_put(tmp_path, workload={"script": str(script)}, method="PUT")
    assert len(comparisons(own)) == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"compare": {"primary": "rate", "closed_pairs": 0}}, "not measured: rate: slices are rate\n"),
        ({"rate": "closed"}, "primary measure is not measured: p50: slices are closed\n"),
        ({"compare": {"counted": "1h"}}, "--within 10m is shorter than one launch of both sides, about 42h"),
    ],
)
def test_a_duet_that_could_not_be_measured_is_refused_when_it_is_planned(tmp_path, change, told):
    assert told in refused(tmp_path, service={"handler": ["selector", "workers"]}, **change)


def test_the_time_of_a_duet_is_that_of_its_launches_within_what_it_may_take(tmp_path):
    def one(**compare):
        (found,) = comparisons(
            experiment(
                tmp_path, service={"handler": ["selector", "workers"]}, compare={"profile": [], **compare}
            )
        )
        return found

    plain, few, seven = one(), one(until="primary"), one(launches=7)
    assert plain.estimated_s == plain.at_most_s == plain.fill_s + 600
    assert few.estimated_s == few.fill_s + LEAST_LAUNCHES * few.launch_s and few.at_most_s == plain.at_most_s
    assert seven.estimated_s == seven.fill_s + 7 * seven.launch_s
    assert one(launches=7, within="1m").estimated_s == one().fill_s + 60
    assert LEAST_LAUNCHES == FIRST_LOOK


def test_records_that_each_launch_writes_anew_are_of_its_time_and_of_no_fill(tmp_path):
    """Of a service of one's own, unless its directory is kept."""

    def one(**subject):
        command = {"command": ["serve", "{port}", "{dir}"], **subject}
        sides = [command | {"name": "before"}, command | {"name": "after"}]
        (found,) = comparisons(experiment(tmp_path, subject=sides, workload="get", fill=700_000))
        return found

    written, kept = one(), one(fill="directory")
    assert written.fills == [] and written.fill_s == 0 and len(kept.fills) == 2
    assert written.launch_s == pytest.approx(kept.launch_s + 2 * 700_000 / FILL_RATE_RPS)


def test_who_gives_the_time_is_not_held_to_the_number_of_launches_of_the_file(tmp_path):
    few = experiment(tmp_path, service={"handler": ["selector", "workers"]}, compare={"launches": 7})
    assert changed(few).comparing.launches == changed(few, same=3.0).comparing.launches == 7
    longer = changed(few, within=1200.0).comparing
    assert (longer.launches, longer.within) == (None, 1200.0)


def test_three_values_need_a_baseline_and_then_make_two_duets(tmp_path):
    three = {"service": {"handler": ["selector", "workers", "virtual"]}}
    assert refused(tmp_path, **three) == (
        "two sides are compared, and the file has 3: handler=selector, handler=workers, handler=virtual\n"
        "  choose two with --only, or say what each is compared with: --baseline handler=selector"
    )
    found = comparisons(experiment(tmp_path, **three, compare={"baseline": {"handler": "workers"}}))
    assert [one.names for one in found] == [
        ("handler=workers", "handler=selector"),
        ("handler=workers", "handler=virtual"),
    ]
    (chosen,) = comparisons(experiment(tmp_path, **three), only=["handler=selector", "handler=virtual"])
    assert chosen.names == ("handler=selector", "handler=virtual")
    assert refused(tmp_path, **three, compare={"baseline": {"handler": "worker"}}).startswith(
        "baseline is no side of the file: handler=worker\n"
    )


def test_a_size_of_the_baseline_is_written_as_in_the_options(tmp_path):
    sizes = {"service": {"memtable_bytes": ["4m", "8m", "16m"]}}
    one, _ = comparisons(experiment(tmp_path, **sizes, compare={"baseline": {"memtable_bytes": "8m"}}))
    assert one.names == (f"memtable_bytes={8 << 20}", f"memtable_bytes={4 << 20}")
    assert (
        comparisons(changed(experiment(tmp_path, **sizes), baseline="memtable_bytes=8m"))[0].names
        == one.names
    )
    (one,) = comparisons(
        experiment(tmp_path, **sizes), only=["memtable_bytes=4m", f"memtable_bytes={8 << 20}"]
    )
    assert one.names == (f"memtable_bytes={4 << 20}", f"memtable_bytes={8 << 20}")


def test_of_sets_of_options_the_empty_one_is_the_default_and_may_be_the_baseline(tmp_path):
    three = {"service": [{}, {"handler": "workers"}, {"wal": "always"}]}
    assert refused(tmp_path, **three) == (
        "two sides are compared, and the file has 3: default, handler=workers, wal=always\n"
        "  choose two with --only, or say what each is compared with: --baseline handler=workers"
    )
    expected = [("default", "handler=workers"), ("default", "wal=always")]
    in_file = comparisons(experiment(tmp_path, **three, compare={"baseline": {}}))
    typed = comparisons(changed(experiment(tmp_path, **three), baseline="default"))
    assert [one.names for one in in_file] == [one.names for one in typed] == expected
    with pytest.raises(ExperimentError, match="choose one: --only handler=workers"):
        comparisons(experiment(tmp_path, **{"service": three["service"][:2]}), builds=("main", "."))


def test_one_side_only_is_refused_with_both_ways_to_a_second(tmp_path):
    assert refused(tmp_path) == (
        "one side only: trial varies no option of the service or of the JVM, no subject and no size of the "
        "values\n"
        "  give two builds, as --builds main ., or a factor of two values, as service: {handler: "
        "[selector, workers]}"
    )


def test_one_side_of_a_service_of_one_s_own_is_told_how_to_name_a_second(tmp_path):
    foreign = {"name": "shop", "command": ["shop", "{port}"]}
    for rate in (2000, [1000, 2000]):
        assert refused(tmp_path, subject=foreign, workload="put", fill=None, rate=rate) == (
            "one side only: trial has one subject: shop\n"
            "  give a list of two, each with a name: subject: [{name: before, command: […]}, {name: after, "
            "command: […]}]"
        )


def test_one_side_that_only_leaves_is_said_to_be_left_by_it(tmp_path):
    two = {"service": {"handler": ["selector", "workers"]}}
    assert refused(tmp_path, only=["handler=workers"], **two) == (
        "one side only: --only leaves handler=workers of 2 sides\n  leave --only out, or name two values"
    )


def test_two_builds_get_the_same_options_and_the_same_build_twice_is_called_so(tmp_path):
    (one,) = comparisons(experiment(tmp_path), builds=("main", "."))
    assert one.names == ("main", ".")
    assert (one.loads[0].a.spec.build, one.loads[0].b.spec.build) == ("main", ".")
    assert one.loads[0].a.service == one.loads[0].b.service
    assert comparisons(experiment(tmp_path), builds=(".", "."))[0].names == (".", ". again")
    assert refused(tmp_path, builds=("main", "."), service={"handler": ["selector", "workers"]}) == (
        "two builds are compared with the same options: the file has 2: handler=selector, "
        "handler=workers\n  choose one: --only handler=selector"
    )


def test_an_experiment_that_searches_for_its_rate_is_not_compared_at_the_top_of_its_search(tmp_path):
    search = {"method": "bisect", "objective": {"p99": "10ms"}, "lowest_rate": 1000, "highest_rate": 48000}
    change = {"service": {"handler": ["selector", "workers"]}, "rate": None, "search": search}
    assert refused(tmp_path, **change) == (
        "a duet sends at a rate, and trial searches for one: highest_rate=48000\n"
        "  give one, in the file's compare: {rate: 20000}, or rate: closed"
    )
    (one,) = comparisons(experiment(tmp_path, **change | {"compare": {"rate": 2000}}))
    assert one.loads[0].a.offered_rate_rps == 2000


def test_sides_at_an_address_are_refused_since_no_launch_starts_them_anew(tmp_path):
    sides = [{"url": f"http://127.0.0.1:{port}", "name": f"at-{port}"} for port in (8080, 8081)]
    said = refused(tmp_path, subject=sides, workload="put", fill=None)
    assert (
        said.startswith("a duet starts both sides anew in each launch")
        and "url=http://127.0.0.1:8080" in said
    )


def test_sides_with_other_paths_or_statuses_are_refused_since_both_get_the_same_requests(tmp_path):
    def two(**own) -> list[dict]:
        command = {"command": ["server", "{port}"], "name": "one"}
        return [command, command | {"name": "other"} | own]

    assert comparisons(experiment(tmp_path, subject=two(), workload="put", fill=None))
    said = refused(tmp_path, subject=two(paths={"PUT": "/{key}"}), workload="put", fill=None)
    assert "theirs differ: PUT path: /v0/entity?id={key}; /{key}" in said
    said = refused(tmp_path, subject=two(statuses={"PUT": 204}), workload="put", fill=None)
    assert "theirs differ: PUT statuses: 200, 201, 204; 204" in said
    assert comparisons(experiment(tmp_path, subject=two(statuses={"GET": 204}), workload="put", fill=None)), (
        "nobody sends GET"
    )


def test_what_only_reads_is_measured_before_what_writes(tmp_path):
    (one,) = comparisons(experiment(tmp_path, workload=["put", "get"]), builds=("main", "."))
    assert [load.workload for load in one.loads] == ["get", "put"]


def test_two_rates_of_one_workload_are_refused_until_one_is_chosen(tmp_path):
    assert refused(tmp_path, rate=[1000, 2000], builds=("a", "b")) == (
        "two loads of one workload cannot be measured in one duet: get: they differ in rate\n"
        "  choose one with --only KEY=VALUE, or in the file's compare: {…}"
    )
    (one,) = comparisons(experiment(tmp_path, rate=[1000, 2000]), builds=("a", "b"), only=["rate=2000"])
    assert one.loads[0].a.offered_rate_rps == 2000


def test_two_numbers_of_records_are_refused_until_one_is_chosen(tmp_path):
    """Of a fixed number of keys, which does not tell them apart."""
    several = {"workload": {"script": "get", "key_count": 500}, "fill": [1000, 3000]}
    assert "one duet: get: they differ in records\n" in refused(tmp_path, **several, builds=("a", "b"))
    sides = {"service": {"handler": ["selector", "workers"]}}
    assert "one duet: get: they differ in records\n" in refused(tmp_path, **several, **sides)
    (one,) = comparisons(experiment(tmp_path, **several, **sides), only=["records=1000"])
    assert [load.of(side).fill["records"] for load in one.loads for side in SIDES] == [1000, 1000]


def test_a_side_that_is_not_filled_has_the_load_of_one_that_is(tmp_path):
    filled = {"workload": {"script": "get", "key_count": 1000}, "fill": 1000}
    (one,) = comparisons(experiment(tmp_path, **filled, subject=["kv-service", "empty"]))
    assert [bool(one.loads[0].of(side).fill) for side in SIDES] == [True, False]


def test_a_port_without_a_next_one_is_refused(tmp_path):
    sides = {"service": {"handler": ["selector", "workers"]}}
    assert refused(tmp_path, **sides, port=65535) == (
        "two sides need two ports, and there is none above: port=65535\n"
        "  choose a lower one, or port: 0, which takes free ones"
    )
    assert comparisons(experiment(tmp_path, **sides, port=65534))


def test_the_size_of_values_makes_sides_where_they_are_read_only(tmp_path):
    (one,) = comparisons(experiment(tmp_path, workload={"script": "get", "value_bytes": [100, 1000]}))
    assert one.names == ("value_bytes=100", "value_bytes=1000")
    assert len(one.fills) == 2
    assert "differ in value_bytes" in refused(
        tmp_path, workload={"script": "put", "value_bytes": [100, 1000]}, fill=None
    )


def test_compare_holds_other_values_of_the_experiments_keys_and_a_preset_another_compare(tmp_path):
    values = {
        "service": {"handler": ["selector", "workers", "virtual"]},
        "rate": [1000, 2000],
        "compare": {"service": {"handler": ["selector", "workers"]}, "rate": 2000, "primary": "cpu"},
    }
    (one,) = comparisons(experiment(tmp_path, **values))
    assert one.names == ("handler=selector", "handler=workers") and one.comparing.primary == "cpu"
    quick = experiment(
        tmp_path,
        **values,
        presets={
            "quick": {"compare": {"rate": 1000, "service": {"handler": ["selector", "virtual"]}, "pairs": 4}}
        },
    )
    (one,) = comparisons(quick)
    assert one.names == ("handler=selector", "handler=virtual") and one.comparing.pairs == 4


def test_in_smoke_a_duet_is_one_short_launch_unless_the_preset_says_another(tmp_path):
    def smoke(**of_preset):
        sides, asked = {"handler": ["selector", "workers"]}, {"pairs": 30, "primary": "cpu"}
        given = {"service": sides, "compare": asked, "presets": {"smoke": of_preset}}
        (one,) = comparisons(experiment(tmp_path, "smoke", **given))
        return one

    short = smoke()
    assert short.estimated_s < 60 and short.comparing.primary == "cpu"
    assert (short.comparing.launches, short.comparing.pairs) == (1, 2)
    own = smoke(compare={"pairs": 7, "launches": 3})
    assert (own.comparing.launches, own.comparing.pairs) == (3, 7)


def test_in_smoke_every_duet_of_an_experiment_here_takes_less_than_a_minute():
    of_all = [one for one in commands_of(EXPERIMENTS, "smoke") if one.duets]
    assert len(of_all) >= 9
    assert [one.command for one in of_all if one.seconds > 60] == []


@pytest.mark.parametrize(
    ("compare", "told"),
    [
        ({"primry": "cpu"}, "compare: unknown key: primry\n  did you mean primary?"),
        ({"factor": "handler"}, "compare: unknown key: factor\n  known keys: baseline, "),
        ({"baseline": {"handler": None}}, "compare.baseline.handler: not a value of a factor: None"),
        ({"profile": "cpu"}, "compare.profile: input should be a valid list: 'cpu'\n  write [cpu]"),
        ({"primary": "p51"}, "not one of p50, p90, p99, p99-slice, p99.9, mean, cpu, written, rate: 'p51'"),
        ({"counted": "0.5ms"}, "whole milliseconds, and at least one: '0.5ms'"),
        ({"gap": "20ms..soon"}, "gap: not a duration: 'soon'"),
        ({"gap": "20ms-30ms"}, "2h, or two of them: 20ms..350ms"),
        ({"gap": "350ms..20ms"}, "the shorter one first, as 20ms..350ms: '350ms..20ms'"),
        ({"repeats": 3}, "compare.repeats: a duet has none of its own: it is of the whole file"),
        ("primary", "compare: must be a mapping of keys to values"),
        ({"rate": "fast"}, "rate: not a rate: 'fast'"),
    ],
)
def test_a_mistake_in_compare_is_told_with_its_place(tmp_path, compare, told):
    with pytest.raises(ExperimentError) as caught:
        experiment(tmp_path, compare=compare)
    assert told in str(caught.value) and str(caught.value).startswith(f"{tmp_path}/trial.yaml:1: ")


def test_of_two_launches_one_is_the_other_way_round(tmp_path):
    (one,) = comparisons(experiment(tmp_path), builds=("a", "b"))
    for drawn in ("starts", "ports", "places"):
        for number in range(1, 20, 2):
            assert getattr(one.launch(number), drawn) == getattr(one.launch(number + 1), drawn)[::-1]
        assert len({getattr(one.launch(number), drawn) for number in range(1, 40, 2)}) == 2
    assert {one.first(number, "get", "rate") for number in (1, 2)} == {"a", "b"}
    assert one.launch(3) == one.launch(3)


def test_a_part_lasts_as_long_as_its_pairs_and_the_mean_of_their_gaps():
    slices = Slices("rate", warm_pairs=2, pairs=3, not_counted_s=0.15, counted_s=0.5, gap_s=(0.02, 0.35))
    assert (slices.pair_s, slices.warm_up_s, slices.duration_s) == pytest.approx((1.67, 3.34, 8.35))


def test_gaps_are_drawn_unless_one_length_is_given(tmp_path):
    for gap, expected in [(None, (0.02, 0.35)), ("20ms", (0.02, 0.02)), ("5ms..1s", (0.005, 1.0))]:
        (one,) = comparisons(
            experiment(
                tmp_path, service={"handler": ["selector", "workers"]}, compare={"gap": gap} if gap else {}
            )
        )
        assert {loop.gap_s for loop in one.loads[0].loops} == {expected}


def test_what_was_asked_tells_sides_programs_and_rules_apart_but_not_the_time_allowed(tmp_path):
    def asked(programs=("1", "2"), builds=("a", "b"), **change) -> str:
        (one,) = comparisons(experiment(tmp_path, **change), builds=builds)
        return one.asked({"a": programs[0], "b": programs[1]})

    assert asked() == asked(compare={"within": "1m"}) == asked(question="again?")
    assert asked() == asked(compare={"until": "primary", "launches": 7})
    others = [
        asked(programs=("1", "3")),
        asked(rate=2001),
        asked(same=3),
        asked(cores="apart"),
        asked(compare={"primary": "cpu"}),
        asked(seed=2),
        asked(compare={"pairs": 4}),
    ]
    assert len({asked(), *others}) == 8
    assert (
        asked(compare={"profile": []})
        != asked(compare={"profile": ["cpu"]})
        == asked(compare={"profile": ["alloc"]})
    )


@pytest.mark.parametrize(
    "file", [file for file in EXPERIMENTS if "compare" in read_yaml(file)[0]], ids=lambda file: file.stem
)
def test_every_experiment_with_compare_makes_duets_in_every_preset(file):
    values, _ = read_yaml(file)
    for preset in [*values.get("presets", {})]:
        builds = ("main", ".") if file.stem == "put-get" else None
        assert comparisons(Experiment.load(file, preset, compared=True), builds=builds)


def test_only_options_that_are_about_threads_are_compared_on_all_cores():
    about_threads = {"handler", "compaction", "gc", "report-3"}
    for file in EXPERIMENTS:
        values, _ = read_yaml(file)
        if "compare" not in values:
            continue
        for preset in values["presets"]:
            cores = Experiment.load(file, preset, compared=True).cores
            runs = Experiment.load(file, preset).cores
            assert cores == ("shared" if file.stem in about_threads else runs), (file.stem, preset)
