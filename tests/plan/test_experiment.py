"""Experiment files: what is accepted, and that what is refused is refused with file, line, key and the
nearest valid name."""

import copy
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml as plain_yaml
from committed import experiments

from kvstudy.errors import ExperimentError
from kvstudy.plan.experiment import PRESETS, Experiment

EXPERIMENTS = experiments()
WHOLE = {
    "question": "does it work?",
    "expectation": "p99 under 2 ms",
    "workload": "put",
    "connections": 4,
    "threads": 2,
    "rate": 1000,
    "duration": "3s",
    "warm_up": "1s",
    "repeats": 2,
}
SEARCH = {"method": "bisect", "objective": {"mean": "1ms"}, "lowest_rate": 100, "highest_rate": 1000}


def load(tmp_path, values=None, text=None, preset=None) -> Experiment:
    path = tmp_path / "trial.yaml"
    path.write_text(text if text is not None else plain_yaml.safe_dump(values, sort_keys=False))
    return Experiment.load(path, preset)


def refused(tmp_path, change: dict, without: tuple = ()) -> ExperimentError:
    values = {key: value for key, value in (copy.deepcopy(WHOLE) | change).items() if key not in without}
    with pytest.raises(ExperimentError) as caught:
        load(tmp_path, values)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message
    return caught.value


def line_of(tmp_path, key: str) -> int:
    lines = (tmp_path / "trial.yaml").read_text().splitlines()
    return 1 + next(index for index, line in enumerate(lines) if line.strip().startswith(f"{key}:"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_committed_experiment_is_whole_in_every_preset(path):
    experiment = Experiment.load(path)
    assert experiment.name == path.stem
    assert experiment.question and experiment.expectation


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_committed_experiment_has_every_usual_preset(path):
    assert {Experiment.load(path, preset).preset for preset in PRESETS} == set(PRESETS)


def test_file_is_read_into_seconds_rates_and_lists(tmp_path):
    experiment = load(tmp_path, WHOLE | {"rate": ["2k", 500], "warm_up": "500ms"})
    assert (experiment.rate, experiment.warm_up, experiment.connections, experiment.threads) == (
        [2000, 500],
        0.5,
        [4],
        [2],
    )
    assert experiment.name == "trial"


@pytest.mark.parametrize(
    ("key", "near"),
    [("conections", "connections"), ("warmup", "warm_up"), ("workloads", "workload"), ("Rate", "rate")],
)
def test_mistyped_key_is_named_with_file_line_and_the_nearest_valid_name(tmp_path, key, near):
    error = refused(tmp_path, {key: 1})
    assert error.message == f"{tmp_path / 'trial.yaml'}:{line_of(tmp_path, key)}: unknown key: {key}"
    assert error.hint == f"did you mean {near}?"


def test_a_key_that_is_near_to_none_is_answered_with_those_that_a_file_may_have(tmp_path):
    known = refused(tmp_path, {"zzzz": 1}).hint.removeprefix("known keys: ").split(", ")
    assert sorted(known) == sorted(Experiment.keys()) and "compare" in known and "comparing" not in known


def test_mistyped_key_is_reported_before_the_key_that_it_leaves_missing(tmp_path):
    error = refused(tmp_path, {"repeat": 2}, without=("repeats",))
    assert "unknown key: repeat" in error.message
    assert "did you mean repeats?" in error.hint


def test_mistyped_key_inside_a_part_is_named_with_its_part(tmp_path):
    error = refused(tmp_path, {"service": {"handler": "workers", "cache_entry": 5000}})
    assert re.search(r"trial\.yaml:\d+: service: unknown key: cache_entry$", error.message)
    assert error.message.split(":")[1] == str(line_of(tmp_path, "cache_entry"))
    assert error.hint == "did you mean cache_entries?"


def test_mistyped_argument_of_one_of_several_workloads_is_found(tmp_path):
    error = refused(tmp_path, {"workload": ["put", {"script": "repeated_put", "key_cout": 10}]})
    assert "workload: unknown key: key_cout" in error.message
    assert error.hint == "did you mean key_count?"


def test_a_key_that_holds_a_point_is_named_as_the_one_that_is_unknown(tmp_path):
    searched = {"search": SEARCH | {"objective": {"p99.9": "5ms"}}}
    error = refused(tmp_path, searched, without=("rate",))
    assert error.message.endswith("search.objective: unknown key: p99.9")
    assert error.hint == "did you mean p999?"


def test_mistyped_value_is_answered_with_the_nearest_valid_one(tmp_path):
    error = refused(tmp_path, {"service": {"handler": "worker"}})
    assert "service.handler: not one of selector, workers, virtual: 'worker'" in error.message
    assert error.hint == "did you mean workers?"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"connections": "4"}, "connections: input should be a valid integer: '4'"),
        ({"connections": 0}, "connections: input should be greater than or equal to 1: 0"),
        ({"connections": []}, "connections: an empty list has no runs"),
        ({"connections": [2, 2]}, "connections: a value stands twice"),
        ({"repeats": 2.5}, "repeats: input should be a valid integer: 2.5"),
        ({"repeats": True}, "repeats: input should be a valid integer: True"),
        ({"duration": 10}, "duration: not a duration: 10; write a number and its unit"),
        ({"rate": "fast"}, "rate: not a rate: 'fast'"),
        ({"rate": -5}, "rate: not a rate: -5"),
        ({"question": ["a"]}, "question: input should be a valid string"),
        ({"expectation": "it is fast"}, "expectation: an expectation carries a number"),
        ({"jvm": {"heap": "lots"}}, "jvm.heap: not a size: 'lots'"),
        ({"jvm": {"options": ["-XX:+UseG1GC -Xmx1g"]}}, "jvm.options: not a flag of a JVM: '-XX:+Use"),
        ({"jvm": {"heap": "999999g"}}, "jvm.heap: more than 16 TiB: '999999g'"),
        ({"jvm": {"options": ["-XX:MaxHeapSize=999999g"]}}, "jvm.options: more than 16 TiB: '999999g'"),
        ({"service": {"memory": "999999g"}}, "service.memory: more than 16 TiB: '999999g'"),
        ({"workload": "PUT"}, "workload.script: not a workload: 'PUT'"),
        ({"generator": "x" * 5000}, "generator: not one of loadgen, wrk2, wrk: 'xxx"),
        ({"service": "workers"}, "service: must be a mapping of keys to values"),
        ({"fill": "many"}, "fill: must be a mapping of keys to values"),
        ({"compare": False}, "compare: must be a mapping of keys to values"),
        ({"compare": []}, "compare: must be a mapping of keys to values"),
        ({"presets": False}, "presets: must map names, as quick, full and smoke"),
        ({"presets": 0}, "presets: must map names, as quick, full and smoke"),
        ({"jvm": {"heap": 256}}, "jvm.heap: less than 2.0 MiB: 256; write its unit, as 256m"),
        ({"jvm": {"options": ["-Xmx256"]}}, "jvm.options: less than 2.0 MiB: '256'"),
        ({"service": {"memory": 0}}, "service.memory: less than 2.0 MiB: 0"),
        ({"service": {"memtable_bytes": 1}}, "service.memtable_bytes: not 1.0 KiB to 1.0 GiB: 1"),
        ({"service": {"block_bytes": "1m"}}, "service.block_bytes: not 64 B to 32.0 KiB: '1m'"),
        (
            {"service": {"bloom_bits": 100}},
            "service.bloom_bits: input should be less than or equal to 32: 100",
        ),
        (
            {"workload": {"script": "mixed", "read_share": "0.25"}},
            "workload.read_share: input should be a valid number: '0.25'",
        ),
        (
            {"workload": {"script": "mixed", "read_share": True}},
            "workload.read_share: input should be a valid number: True",
        ),
        (
            {"search": SEARCH | {"objective": {"mean": "1ms", "achieved_share": True}}},
            "search.objective.achieved_share: input should be a valid number: True",
        ),
        (
            {"search": SEARCH | {"precision": "0.2"}},
            "search.precision: input should be a valid number: '0.2'",
        ),
        (
            {"search": SEARCH | {"precision": 0.005}},
            "search.precision: input should be greater than or equal to 0.01: 0.005",
        ),
    ],
)
def test_wrong_type_is_refused_with_key_and_value(tmp_path, change, words):
    error = refused(tmp_path, change)
    assert words in error.message
    assert f"trial.yaml:{line_of(tmp_path, next(iter(change)))}" in error.message or re.search(
        r"trial\.yaml:\d+: ", error.message
    )


@pytest.mark.parametrize(
    ("change", "without", "words"),
    [
        (
            {"connections": 1},
            (),
            "connections: number of connections must be >= threads: connections=1 threads=2",
        ),
        (
            {"connections": [8, 1]},
            (),
            "connections: number of connections must be >= threads: connections=1 threads=2",
        ),
        (
            {"warm_up": "3s"},
            (),
            (
                "warm_up: warm_up must be shorter than duration, of which it is the first part: warm_up=3s "
                "duration=3s"
            ),
        ),
        (
            {
                "search": {
                    "method": "bisect",
                    "objective": {"mean": "1ms"},
                    "lowest_rate": 100,
                    "highest_rate": 1000,
                }
            },
            (),
            "rate: give either rate or search, not both",
        ),
        ({}, ("rate",), "give either rate or search: the rates to measure"),
        ({}, ("repeats",), "required key is missing: repeats"),
        ({"generator": "wrk"}, (), "generator: generator wrk has no rate: write rate: closed"),
        ({"generator": "wrk2", "rate": "closed"}, (), "generator: generator wrk2 has no closed loop"),
        (
            {"generator": "wrk", "rate": "closed", "duration": "5500ms"},
            (),
            "duration: generator wrk takes whole seconds: 5500ms",
        ),
        (
            {"generator": ["loadgen", "wrk2"], "timeout": "400us"},
            (),
            "timeout: generator wrk2 takes whole seconds: 400us",
        ),
        (
            {"generator": "wrk2", "profile": {"events": "cpu", "duration": "4500ms"}},
            (),
            "profile: generator wrk2 takes whole seconds: 4500ms",
        ),
        ({"generator": "wrk2", "rate": 0.5}, (), "rate: generator wrk2 takes whole rates: 0.5"),
        ({"workload": "get"}, (), "workload: workload get reads keys that nothing wrote"),
        (
            {"workload": {"script": "get", "key_count": 500}, "fill": 100},
            (),
            "workload get reads more keys than are filled: key_count=500 fill.records=100",
        ),
        (
            {"workload": {"script": "unique_put", "key_count": 100}},
            (),
            "unique_put would write keys twice: key_count=100",
        ),
        (
            {"workload": {"script": "unique_put", "key_count": 1000}, "rate": "closed"},
            (),
            "unique_put would write keys twice: key_count=1000 rate × duration=",
        ),
        (
            {"workload": "unique_put", "fill": {"records": 100, "methods": ["PUT"]}},
            (),
            "unique_put would write keys twice: fill.records=100",
        ),
        ({"workload": {"script": "put", "value_bytes": 16}}, (), "value_bytes must exceed key_bytes"),
        (
            {"workload": {"script": "put", "key_bytes": 8, "key_count": 10**8}},
            (),
            "key_bytes must exceed the digits: workload=put key_bytes=8 keys=100000000",
        ),
        (
            {"workload": {"script": "unique_put", "key_bytes": 8}, "rate": "closed", "duration": "30s"},
            (),
            "key_bytes must exceed the digits: workload=unique_put key_bytes=8 keys=31000000",
        ),
        (
            {"workload": {"script": "unique_put", "key_bytes": 8, "value_bytes": 10}, "head_start": "1g"},
            (),
            "key_bytes must exceed the digits: workload=unique_put key_bytes=8 keys=",
        ),
        (
            {"jvm": {"heap": ["128m", "256m"], "options": ["-Xmx1g"]}},
            (),
            "jvm: -Xmx1g would be in force whatever heap says",
        ),
        (
            {"jvm": {"gc": "Serial", "options": ["-XX:+UseG1GC"]}},
            (),
            "jvm: -XX:+UseG1GC would be in force whatever gc says",
        ),
        (
            {"workload": {"script": "mixed", "key_count": 200_000}, "fill": 1000},
            (),
            "workload mixed reads more keys than are filled: key_count=200000 fill.records=1000",
        ),
        (
            {"workload": {"script": "put", "value_bytes": [100, 1_048_577]}},
            (),
            "the service takes no value so large: value_bytes=1048577 max_value_bytes=1048576",
        ),
        (
            {"workload": {"script": "get", "value_bytes": 2000}, "fill": 10}
            | {"service": [{"wal": "os"}, {"max_value_bytes": ["1k", "1m"]}]},
            (),
            "the service takes no value so large: value_bytes=2000 max_value_bytes=1024",
        ),
        (
            {"workload": {"script": ["mixed", "put"], "read_share": [0.1, 0.9]}},
            (),
            "workload put heeds no read_share: read_share=0.1, 0.9",
        ),
        (
            {"workload": {"script": "repeated_put", "distribution": ["uniform", "zipfian"]}},
            (),
            "workload repeated_put heeds no distribution: distribution=uniform, zipfian",
        ),
        ({"workload": "my_own"}, (), "workload: no such workload: my_own"),
        ({"repeats": 10**9}, (), "repeats: input should be less than or equal to 1000: 1000000000"),
        ({"method": "GET"}, (), "method: workload put sends PUT: method=GET"),
        (
            {"profile": {"events": "cpu", "warm_up": "1m"}},
            (),
            "profile: warm_up must be shorter than duration, which it is part of: profiled runs have",
        ),
        (
            {"profile": {"events": "cpu", "rate": 5}},
            (),
            "profile: profile.rate is not among the experiment's: 5",
        ),
        ({"name": "other"}, (), "name: the name must be the file's: name=other file=trial.yaml"),
        ({"profile": "smoke"}, (), "profile: not one of cpu, alloc, lock, wall: 'smoke'"),
    ],
)
def test_impossible_combination_is_refused_with_its_values(tmp_path, change, without, words):
    assert words in refused(tmp_path, change, without).message


def test_every_preset_is_checked_not_only_the_one_asked_for(tmp_path):
    error = refused(tmp_path, {"presets": {"quick": {"repeats": 1}, "full": {"duration": "1s"}}})
    assert "warm_up must be shorter than duration" in error.message


@pytest.mark.parametrize(
    ("presets", "words", "hint"),
    [
        ({"quik": {}}, "presets: unknown key: quik", "did you mean quick?"),
        ({"refrence": {}}, "presets: unknown key: refrence", "did you mean reference?"),
        ({"My preset": {}}, "a preset's name is a word in lower case: 'My preset'", None),
        ({7: {}}, "a preset's name is a word in lower case: 7", None),
        ({"quick": {"repeat": 1}}, "presets.quick: unknown key: repeat", "did you mean repeats?"),
        ({"quick": {"question": "another?"}}, "presets.quick.question: is the same in all presets", None),
        ({"quick": 5}, "presets.quick: must be a mapping", None),
    ],
)
def test_mistyped_preset_is_refused(tmp_path, presets, words, hint):
    error = refused(tmp_path, {"presets": presets})
    assert words in error.message
    assert hint is None or error.hint == hint


def test_presets_by_their_older_name_are_told_the_newer_one(tmp_path):
    error = refused(tmp_path, {"profiles": {"quick": {"repeats": 1}}})
    assert error.message.endswith(
        f":{line_of(tmp_path, 'profiles')}: profiles: unknown key: it is called presets"
    )


def test_wrong_value_in_a_preset_is_named_with_the_line_of_the_preset(tmp_path):
    error = refused(tmp_path, {"presets": {"quick": {"warm_up": "ten"}}})
    lines = (tmp_path / "trial.yaml").read_text().splitlines()
    assert lines[int(error.message.split(":")[1]) - 1].strip() == "warm_up: ten"


def test_preset_overrides_and_quick_is_the_default(tmp_path):
    values = WHOLE | {"presets": {"quick": {"repeats": 1}, "full": {"repeats": 9}}}
    assert load(tmp_path, values).repeats == 1
    assert load(tmp_path, values, preset="full").repeats == 9
    with pytest.raises(ExperimentError, match="no such preset: ful") as caught:
        load(tmp_path, values, preset="ful")
    assert caught.value.hint == "did you mean full?"


def test_a_preset_may_have_any_name_of_its_own(tmp_path):
    values = WHOLE | {"presets": {"overnight": {"repeats": 40}, "reference": {"repeats": 9}}}
    assert load(tmp_path, values).repeats == 2, "without quick the file as it stands"
    assert [load(tmp_path, values, preset=name).repeats for name in ("overnight", "reference")] == [
        40,
        9,
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("question: [1,\nexpectation: 2", "not valid YAML"),
        ("a: 1\na: 2\n", r"trial\.yaml:\d: not valid YAML: found duplicate key"),
        ("question: 2026-13-45\n", "trial.yaml: not valid YAML: month must be in"),
        pytest.param("fill: " + "9" * 5000, "trial.yaml: not valid YAML: ", id="5000 digits"),
        ("- a\n", "an experiment is a mapping"),
        ("", "an experiment is a mapping"),
    ],
)
def test_file_that_is_no_mapping_is_refused(tmp_path, text, words):
    with pytest.raises(ExperimentError, match=words):
        load(tmp_path, text=text)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("~: 2\n", ""),
        ("? [a, b]\n: 2\n", ""),
        ("service: {~: 2}\n", "service: "),
        ("service: {[a, b]: 2}\n", "service: "),
        ("service: {1.5: 2}\n", "service: "),
        ("true: 2\n", ""),
    ],
)
def test_a_key_that_is_no_word_is_refused_with_its_line(tmp_path, text, where):
    whole = plain_yaml.safe_dump(WHOLE)
    with pytest.raises(ExperimentError) as caught:
        load(tmp_path, text=whole + text)
    line = 1 + len(whole.splitlines())
    assert caught.value.message.startswith(f"{tmp_path}/trial.yaml:{line}: {where}a key is a word: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("service: " + "[" * 2000 + "]" * 2000, "not valid YAML: nested too deeply"),
        ("service: " + "{a: " * 400 + "1" + "}" * 400, "not valid YAML: nested too deeply"),
        (
            "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
            + "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in pairwise("abcdefgh")),
            "not an experiment: more than 20000 keys and values",
        ),
        ("service: !!python/object/apply:os.system ['true']", "service: must be a mapping of keys to values"),
        ('spin: "a\\0b"', "spin: holds a letter that is none: '\\x00'"),
        ('spin: "a\\ud800b"', "spin: holds a letter that is none: '\\ud800'"),
        ('spin: "\\e[31m"', "spin: holds a letter that is none: '\\x1b'"),
        ('"\\a": 1', "holds a letter that is none: '\\x07'"),
    ],
    ids=["lists", "mappings", "aliases", "tag", "nul", "half-a-letter", "escape", "key"],
)
def test_a_hostile_file_is_one_line_and_soon(tmp_path, text, words):
    """Such as no person writes, but a program or a bad disk may."""
    with pytest.raises(ExperimentError) as caught:
        load(tmp_path, text=plain_yaml.safe_dump(WHOLE) + text + "\n")
    assert words in caught.value.message and "\n" not in caught.value.message
    assert caught.value.message.startswith(str(tmp_path / "trial.yaml"))


def test_a_long_value_is_cut_in_its_message(tmp_path):
    for change in ({"generator": "x" * 5000}, {"rate": "9" * 3000}):
        assert len(refused(tmp_path, change).message) < 600


@pytest.mark.parametrize("name", ["my trial", "my_trial", "Trial", "a.b", "prüf"])
def test_a_file_whose_name_is_none_of_an_experiment_is_told_in_words(tmp_path, name):
    file = tmp_path / f"{name}.yaml"
    file.write_text(plain_yaml.safe_dump(WHOLE))
    with pytest.raises(ExperimentError) as caught:
        Experiment.load(file)
    assert caught.value.message == f"{file}: name: not a name of an experiment: {name!r}"
    assert caught.value.hint.startswith("small letters, digits and -, as my-service")


def test_a_key_that_a_preset_or_a_duet_cannot_have_is_not_called_unknown(tmp_path):
    for change, words in (
        ({"presets": {"quick": {"name": "x"}}}, "presets.quick.name: is the same in all presets"),
        ({"compare": {"repeats": 5}}, "compare.repeats: a duet has none of its own"),
    ):
        assert words in refused(tmp_path, change).message


def test_file_that_cannot_be_read_is_said_without_pythons_words(tmp_path):
    with pytest.raises(ExperimentError, match="cannot read the experiment file: .*: is a directory"):
        Experiment.load(tmp_path)
    (tmp_path / "trial.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ExperimentError, match="cannot read the experiment file: .*: it is not UTF-8 text"):
        Experiment.load(tmp_path / "trial.yaml")


def test_a_part_that_is_no_mapping_is_answered_with_its_keys(tmp_path):
    for service in ("selector", ["selector"]):
        error = refused(tmp_path, {"service": service})
        assert (
            error.message.endswith("service: must be a mapping of keys to values: 'selector'")
            and "handler" in error.hint
        )


def test_missing_file_is_answered_with_the_nearest_name(tmp_path):
    (tmp_path / "reproduce.yaml").write_text("")
    with pytest.raises(ExperimentError) as caught:
        Experiment.load(tmp_path / "reprodce.yaml")
    assert "did you mean" in caught.value.hint and "reproduce.yaml" in caught.value.hint


def test_an_experiment_that_was_meant_by_its_name_alone_is_found_among_the_projects(tmp_path, monkeypatch):
    monkeypatch.chdir(EXPERIMENTS[0].parents[1])
    for asked in ("handler", "handler.yaml", "experiments/handler"):
        with pytest.raises(ExperimentError) as caught:
            Experiment.load(Path(asked))
        assert caught.value.hint == "did you mean experiments/handler.yaml?", asked


def test_a_copied_file_with_the_name_of_the_first_is_told_how_to_mend_it(tmp_path):
    assert refused(tmp_path, {"name": "other"}).hint == "leave name out, or write name: trial"


def test_a_mistyped_workload_is_answered_with_the_nearest_whether_or_not_it_has_a_method(tmp_path):
    for method in ({}, {"method": "PUT"}):
        error = refused(tmp_path, {"workload": ["putt"], **method})
        assert (
            error.message.endswith("workload: no such workload: putt") and error.hint == "did you mean put?"
        )
    for written, meant in (("PUT", "put"), ("Mixed", "mixed"), ("unique-put", "unique_put")):
        assert refused(tmp_path, {"workload": written}).hint == f"did you mean {meant}?"
    far = refused(tmp_path, {"workload": "qqq"}).hint
    assert (
        far.startswith("workloads: delete, get, ")
        and far.endswith("experiments/workloads/qqq.lua")
        and "keyspace" not in far
    )


def test_a_workload_of_ones_own_needs_its_script_and_its_method(tmp_path, monkeypatch):
    for folder in ("notebooks", "experiments/workloads"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "experiments" / "workloads" / "my_own.lua").write_text("")
    monkeypatch.setenv("KVSTUDY_ROOT", str(tmp_path))
    assert (
        "method is needed for a workload of your own: workload=my_own"
        in refused(tmp_path, {"workload": "my_own"}).message
    )
    assert load(tmp_path, WHOLE | {"workload": "my_own", "method": "PUT"}).workload[0].script == ["my_own"]


def test_a_preset_of_the_file_given_as_what_is_profiled_is_told_how_it_is_chosen():
    with pytest.raises(ExperimentError) as caught:
        Experiment.from_parameters(WHOLE | {"profile": "smoke"})
    assert caught.value.hint == (
        "`profile` says what async-profiler samples; a preset of the file is chosen by --preset smoke, in a "
        "notebook by -p preset smoke"
    )
    with pytest.raises(ExperimentError) as caught:
        Experiment.from_parameters(WHOLE | {"profile": "cpuu"})
    assert caught.value.hint == "did you mean cpu?"


def test_parameters_of_a_notebook_are_the_same_experiment_as_the_file(tmp_path):
    from_file = load(tmp_path, WHOLE)
    from_notebook = Experiment.from_parameters(WHOLE | {"name": "trial", "fill": None, "search": None})
    assert from_notebook == from_file


def test_unknown_parameter_of_a_notebook_is_refused():
    with pytest.raises(ExperimentError) as caught:
        Experiment.from_parameters(WHOLE | {"durations": "3s"})
    assert caught.value.message == "parameters: unknown key: durations"
    assert caught.value.hint == "did you mean duration?"


@pytest.mark.parametrize("preset", ["quick", None], ids=["named", "by-default"])
def test_parameters_take_the_place_of_keys_of_the_experiment_file_also_under_a_preset(tmp_path, preset):
    load(tmp_path, WHOLE | {"presets": {"quick": {"repeats": 7, "duration": "4s"}}})
    experiment = Experiment.from_parameters(
        {"experiment_file": str(tmp_path / "trial.yaml"), "repeats": 1}, preset
    )
    assert (experiment.name, experiment.repeats, experiment.duration) == ("trial", 1, 4.0)


def test_parameters_are_refused_for_the_preset_that_is_asked_for_alone(tmp_path):
    presets = {"quick": {}, "full": {"threads": 4}, "long": {"rate": "closed", "generator": "wrk"}}
    load(tmp_path, WHOLE | {"presets": presets})
    file = {"experiment_file": str(tmp_path / "trial.yaml")}
    assert Experiment.from_parameters(file | {"connections": 2}).connections == [2]
    with pytest.raises(ExperimentError, match="connections must be >= threads: connections=2 threads=4"):
        Experiment.from_parameters(file | {"connections": 2}, "full")
    assert Experiment.from_parameters(file | {"rate": 500}).rate == [500]
    with pytest.raises(ExperimentError, match="generator wrk has no rate"):
        Experiment.from_parameters(file | {"rate": 500}, "long")


def test_a_parameter_may_give_what_the_file_lacks(tmp_path):
    file = {"experiment_file": str(tmp_path / "trial.yaml")}
    text = json.dumps({key: value for key, value in WHOLE.items() if key != "connections"})
    (tmp_path / "trial.yaml").write_text(text)
    assert Experiment.from_parameters(file | {"connections": 8}).connections == [8]
    with pytest.raises(ExperimentError, match="connections"):
        Experiment.from_parameters(file | {"repeats": 1})


def test_a_parameter_comes_before_the_older_name_of_its_key_in_a_preset(tmp_path):
    load(tmp_path, WHOLE | {"presets": {"quick": {"server": "empty"}}})
    file = {"experiment_file": str(tmp_path / "trial.yaml")}
    assert Experiment.from_parameters(file | {"subject": "kv-service"}).subject[0].is_ours


@pytest.mark.parametrize("where", ["file", "preset"])
def test_who_gives_a_rate_to_the_file_of_a_search_measures_at_it_and_the_other_way_round(tmp_path, where):
    def kept(change: dict, without: str) -> dict:
        own = {key: value for key, value in (WHOLE | change).items() if key != without}
        return own if where == "file" else own | {"presets": {"quick": change}}

    file = {"experiment_file": str(tmp_path / "trial.yaml")}
    load(tmp_path, kept({"search": SEARCH}, "rate"))
    at_rate = Experiment.from_parameters(file | {"rate": 500})
    assert (at_rate.rate, at_rate.search) == ([500], None)
    load(tmp_path, kept({"rate": 700}, "search"))
    searching = Experiment.from_parameters(file | {"search": SEARCH})
    assert searching.rate is None and searching.search.highest_rate == 1000


@pytest.mark.parametrize("text", ["\0", "question: \x01\n"])
def test_a_file_that_is_no_text_is_refused_in_a_line(tmp_path, text):
    with pytest.raises(ExperimentError) as caught:
        load(tmp_path, text=text)
    assert "trial.yaml: not valid YAML: " in caught.value.message and "\n" not in caught.value.message


@pytest.mark.parametrize(
    "twice",
    [{"workload": ["put", {"script": "put"}]}, {"service": [{"wal": "os"}, {"wal": "os"}]}],
    ids=["workload", "service"],
)
def test_a_set_that_stands_twice_is_refused_since_its_runs_would_pass_for_repeats(tmp_path, twice):
    assert ": a value stands twice in the list: " in refused(tmp_path, twice).message


@pytest.mark.parametrize(
    "key, change",
    [
        ("timeout", {"timeout": "0s"}),
        ("pause.length", {"pause": {"at": "0s", "length": "0s"}}),
        ("compare.within", {"compare": {"within": "0s"}}),
        ("search.objective.p99", {"search": {"method": "mlr", "objective": {"p99": "0s"}}}),
        ("subject.stop.time", {"subject": {"command": ["{port}"], "stop": {"time": "0s"}}}),
    ],
)
def test_a_time_limit_of_nothing_is_refused(tmp_path, key, change):
    assert f": {key}: a time limit is at least 1us: '0s'" in refused(tmp_path, change).message


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_a_seed_that_the_generator_cannot_take_is_refused(tmp_path, seed):
    assert ": seed: input should be " in refused(tmp_path, {"seed": seed}).message


def test_the_values_that_the_service_takes_are_measured(tmp_path):
    largest = WHOLE | {"workload": {"script": "put", "value_bytes": 1 << 20}}
    assert load(tmp_path, largest)
    larger = WHOLE | {"workload": {"script": "put", "value_bytes": 2 << 20}}
    assert load(tmp_path, larger | {"service": {"max_value_bytes": "2m"}})
    assert load(tmp_path, larger | {"subject": {"url": "http://127.0.0.1:1"}})


RANGES = {
    "MEMTABLE_BYTES": "memtable_bytes",
    "BLOCK_BYTES": "block_bytes",
    "BLOOM_BITS": "bloom_bits",
    "WAL_INTERVAL_MILLIS": "wal_interval_ms",
}


@pytest.mark.parametrize("constant", RANGES)
def test_options_are_within_the_bounds_that_the_service_has(tmp_path, constant):
    source = EXPERIMENTS[0].parents[1] / "service/src/main/java/kv/lsm/StoreOptions.java"
    found = re.search(rf" {constant} = new OptionRange\(([^,]+), ([^)]+)\)", source.read_text())
    least, most = (eval(bound) for bound in found.groups())  # as 1 << 10, of our own source
    for value in (least, most):
        assert load(tmp_path, WHOLE | {"service": {RANGES[constant]: value}})
    for value in (least - 1, most + 1):
        assert (
            f": service.{RANGES[constant]}: "
            in refused(tmp_path, {"service": {RANGES[constant]: value}}).message
        )


def test_awake_is_refused_with_what_it_may_be(tmp_path):
    message = refused(tmp_path, {"awake": "maybe"}).message
    assert message.endswith("awake: not one of true, false, auto: 'maybe'")


def test_cores_are_refused_with_what_they_may_be_and_for_what_runs_at_an_address(tmp_path):
    message = refused(tmp_path, {"cores": "two"}).message
    assert message.endswith("cores: not one of apart, shared: 'two'")
    there = {"cores": "apart", "subject": {"url": "http://127.0.0.1:1"}}
    assert "not ours to give cores to" in refused(tmp_path, there, without=("service", "jvm", "fill")).message


def test_a_key_of_compare_is_named_as_it_is_written(tmp_path):
    assert ": compare.pairs: input should be " in refused(tmp_path, {"compare": {"pairs": 0}}).message


def test_a_gap_without_its_end_is_refused(tmp_path):
    assert ": compare.gap: not a duration: ''" in refused(tmp_path, {"compare": {"gap": "20ms.."}}).message


def test_capital_letters_are_answered_with_the_name_that_was_meant(tmp_path):
    assert refused(tmp_path, {"Name": "trial"}).hint == "did you mean name?"
    assert refused(tmp_path, {"jvm": {"gc": "g1"}}).hint == "did you mean G1?"


def test_more_connections_than_the_generator_can_have_are_refused(tmp_path):
    assert ": connections: input should be less than" in refused(tmp_path, {"connections": 10**9}).message


def test_a_search_with_a_profile_is_refused(tmp_path):
    error = refused(tmp_path, {"search": SEARCH, "profile": "cpu"}, without=("rate",))
    assert error.message.endswith(f":{line_of(tmp_path, 'profile')}: profile: a search has no profiled runs")
    assert error.hint == "leave profile out, or profile at a rate: rate: 20000"


@pytest.mark.parametrize(
    ("key", "change", "bound"),
    [
        ("duration", {"duration": "3000000s"}, "a duration is at most 7 days: '3000000s'"),
        ("timeout", {"timeout": "9" * 309 + "s"}, "a duration is at most 7 days: '999"),
        ("rate", {"rate": 10**9}, "a rate is at most 100M requests per second: 1000000000"),
        ("head_start", {"head_start": 10**309}, "a size is at most 1 PiB: 1000"),
        ("fill.records", {"fill": 10**400}, "input should be less than or equal to 1125899906842623: 1000"),
        (
            "workload.value_bytes",
            {"workload": {"script": "put", "value_bytes": 10**10}},
            "input should be less than or equal to 1073741824: 10000000000",
        ),
        (
            "workload.read_share",
            {"workload": {"script": "mixed", "read_share": float("nan")}},
            "input should be a finite number: nan",
        ),
        (
            "search.trials_max",
            {"search": SEARCH | {"trials_max": 10**6}},
            "input should be less than or equal to 10000: 1000000",
        ),
        (
            "compare.closed_pairs",
            {"compare": {"closed_pairs": 10**400}},
            "input should be less than or equal to 10000: 1000",
        ),
        (
            "threads",
            {"connections": 2000, "threads": "connections"},
            "generator loadgen has at most 1024 threads: threads=2000",
        ),
        ("jvm.options", {"jvm": {"options": ["-Xmx2T"]}}, "not a size: '2T'; write bytes"),
    ],
)
def test_a_number_mistyped_by_some_digits_is_refused_with_its_bound(tmp_path, key, change, bound):
    assert f": {key}: {bound}" in refused(tmp_path, change).message


def test_two_scripts_of_one_name_are_refused_since_their_runs_would_pass_for_repeats(tmp_path):
    scripts = [str(tmp_path / folder / "own.lua") for folder in ("one", "other")]
    message = refused(tmp_path, {"workload": scripts, "method": "GET"}).message
    assert message.endswith(f": workload: two scripts have one name, own: {scripts[0]}, {scripts[1]}")


def test_a_time_to_spin_is_given_to_loadgen_without_its_blanks(tmp_path):
    assert load(tmp_path, WHOLE | {"spin": [" 50 us ", "off"]}).spin == ["50us", "off"]


MERGING = """
presets:
  quick: &quick {repeats: 3, duration: 9s, warm_up: 5s}
  full: {<<: *quick, repeats: 9}
"""


def test_a_preset_may_be_merged_from_another_one(tmp_path):
    text = plain_yaml.safe_dump(WHOLE) + MERGING
    full = load(tmp_path, text=text, preset="full")
    assert (full.repeats, full.duration, full.warm_up) == (9, 9.0, 5.0)
    with pytest.raises(ExperimentError) as caught:
        load(tmp_path, text=text.replace("repeats: 9", "duration: 4s"))
    assert f"trial.yaml:{line_of(tmp_path, 'full')}: warm_up: warm_up must be shorter" in caught.value.message


def test_a_preset_of_nothing_is_refused_with_its_line_also_beside_parameters(tmp_path):
    refused(tmp_path, {"presets": {"quick": None}})
    with pytest.raises(ExperimentError) as caught:
        Experiment.from_parameters({"experiment_file": str(tmp_path / "trial.yaml"), "repeats": 1})
    told = f"trial.yaml:{line_of(tmp_path, 'quick')}: presets.quick: must be a mapping of keys to values"
    assert caught.value.message.endswith(told)
