"""Command lines of the three generators, pinning, and what their exit codes mean."""

import pickle
from pathlib import Path

import pytest
import trial

from kvstudy.errors import RunFailed, ToolMissing
from kvstudy.measure.generator import (
    SideSilent,
    check_exit,
    check_load,
    check_slices,
    expected_statuses,
    generator_commands,
    generator_path,
    slowest_count,
)
from kvstudy.measure.pinning import OF_A_DUET, pinning
from kvstudy.service_failure import is_under_load


def configuration(**change):
    load = {"connections": 4, "threads": 2, "rate": 2000, "duration": "9s", "warm_up": "2500ms"}
    return trial.configuration(**load | change)


def commands(**change):
    return generator_commands(
        "/bin/generator",
        configuration(**change),
        "http://127.0.0.1:80",
        Path("/p/experiments/workloads"),
        7,
        json=Path("/r/j"),
        hlog=Path("/r/h"),
        slowest=Path("/r/s"),
        cores=change.pop("cores", None),
    )


def test_loadgen_gets_rate_warm_up_seed_and_files_and_measures_after_its_warm_up():
    (command,) = commands()
    line = " ".join(command.argv)
    for words in (
        "-c 4 -t 2 -d 9s -R 2000",
        "--warmup 2500ms",
        "--json /r/j",
        "--hlog /r/h --interval 250ms",
        "--slowest /r/s --slowest-count 1000",
        "--seed 7",
        "--expect 201",
        "--timeout 2s",
        (
            "http://127.0.0.1:80 -- key_bytes=16 value_bytes=100 distribution=uniform key_count=100000 "
            "threads=2 seed=7"
        ),
    ):
        assert words in line
    assert (command.measures_from_s, command.length_s) == (2.5, 9.0)


@pytest.mark.parametrize(("rate", "said"), [(1_000_000, "1000000"), (123_456.7, "123456.7"), (0.5, "0.5")])
def test_a_rate_is_written_to_its_last_digit_and_without_an_exponent(rate, said):
    assert f"-R {said} " in " ".join(commands(rate=rate)[0].argv)


def test_times_are_written_to_the_microsecond():
    line = " ".join(commands(timeout="400us", warm_up="2500us")[0].argv)
    assert "--timeout 400us " in line and "--warmup 2500us " in line


@pytest.mark.parametrize(
    ("rate", "kept"), [(100, 1_000), (10_000, 1_300), (500_000, 10_000), ("closed", 5_000)]
)
def test_twice_the_slowest_percent_of_the_measured_answers_is_kept_one_by_one(rate, kept):
    assert slowest_count(configuration(rate=rate)) == kept


@pytest.mark.parametrize(
    ("change", "sampled"),
    [
        ({}, 200),
        ({"rate": "closed"}, 200),
        ({"workload": "delete"}, 200),
        ({"workload": "mixed"}, 400),
        ({"workload": {"script": "mixed", "read_share": 1.0}}, 1000),
        ({"workload": "get", "fill": 10}, 0),
        ({"server": "empty"}, 0),
    ],
)
def test_loadgen_keeps_a_sample_of_what_it_wrote_where_something_is_written(change, sampled):
    line = " ".join(commands(**change)[0].argv)
    assert f"--sample {sampled} " in line if sampled else "--sample" not in line


def test_closed_loop_of_loadgen_has_no_rate_and_no_schedule():
    line = " ".join(commands(rate="closed")[0].argv)
    assert "--closed" in line and "-R" not in line and "--arrivals" not in line
    assert "--spin" not in line, "loadgen refuses a busy wait for due times that there are not"
    assert "--spin" in commands(rate=100)[0].argv


def test_wrk2_and_wrk_warm_up_in_a_process_of_their_own():
    warm_up, measured = commands(generator="wrk2", warm_up="2s")
    assert "-d 7s -R 2000 -U" in " ".join(measured.argv) and not {"--json", "--sample"} & set(measured.argv)
    assert (warm_up.length_s, measured.length_s, measured.measures_from_s) == (2.0, 7.0, 0.0)
    assert measured.environment == {"LUA_PATH": "/p/experiments/workloads/?.lua;;"}
    assert "--latency" in commands(generator="wrk", rate="closed", warm_up="2s")[1].argv
    (alone,) = commands(generator="wrk", rate="closed", warm_up="0s")
    assert alone.length_s == 9.0, "without a warm-up there is none"


def test_what_wrk2_and_wrk_measure_writes_other_keys_than_their_warm_up():
    for change in ({"generator": "wrk2"}, {"generator": "wrk", "rate": "closed"}):
        warm_up, measured = commands(**change, workload="unique_put", warm_up="2s")
        assert skipped(measured) >= 2 * 2000 and not any("skip=" in word for word in warm_up.argv)


def skipped(command) -> int:
    return int(next(word for word in command.argv if word.startswith("skip=")).removeprefix("skip="))


@pytest.mark.parametrize("key_count", [1_000_000, 5_000_000, 5_500_000])
def test_behind_a_closed_loop_of_unknown_rate_few_keys_are_shared_out_by_time(key_count):
    unique_put = {"script": "unique_put", "key_count": key_count}
    _, measured = commands(generator="wrk", rate="closed", duration="14s", warm_up="4s", workload=unique_put)
    assert skipped(measured) == key_count * 4 // 14


def test_what_wrk2_measures_does_not_come_back_to_keys_that_just_suffice():
    unique_put = {"script": "unique_put", "key_count": 3 * 2000}
    _, measured = commands(generator="wrk2", duration="3s", warm_up="2s", workload=unique_put)
    assert skipped(measured) == 2 * 2000


@pytest.mark.parametrize(
    ("change", "statuses"),
    [
        ({}, "201"),
        ({"workload": "get", "fill": 10}, "200"),
        ({"workload": "missing_get"}, "404"),
        ({"workload": "delete"}, "202"),
        ({"workload": "mixed", "fill": 10}, "200,201"),
        ({"workload": "mixed"}, "200,201,404"),
        ({"server": "empty"}, "200"),
    ],
)
def test_expected_statuses_are_those_of_the_http_contract(change, statuses):
    assert expected_statuses(configuration(**change)) == statuses


def test_wrk2_is_taken_from_its_variable_and_missing_programs_are_named(monkeypatch, tmp_path):
    program = tmp_path / "my-wrk2"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("WRK2", str(program))
    assert generator_path("wrk2", Path("/none")) == str(program)
    monkeypatch.setenv("WRK2", str(tmp_path / "absent"))
    with pytest.raises(ToolMissing, match="no wrk2: .*absent is not on PATH"):
        generator_path("wrk2", Path("/none"))
    with pytest.raises(ToolMissing, match="loadgen is not built"):
        generator_path("loadgen", Path("/none"))


@pytest.mark.parametrize(
    ("generator", "code", "whole"),
    [
        ("loadgen", 0, True),
        ("loadgen", 3, True),
        ("loadgen", 4, True),
        ("loadgen", 5, False),
        ("loadgen", 1, False),
        ("loadgen", -9, False),
        ("wrk2", 0, True),
        ("wrk2", 1, False),
    ],
)
def test_exit_code_says_whether_it_measured(tmp_path, generator, code, whole):
    log = tmp_path / "log"
    log.write_text("a warning\nevery connection failed: 127.0.0.1:80\n\n")
    if whole:
        check_exit(generator, code, log)
    else:
        with pytest.raises(RunFailed, match="every connection failed"):
            check_exit(generator, code, log)


def test_a_service_that_answered_nothing_of_a_load_is_told_from_a_generator_that_failed(tmp_path):
    log = tmp_path / "log"
    log.write_text("a warning\nno request was answered: sent 64, timeouts 64\n")
    with pytest.raises(RunFailed) as no_answer:
        check_load("loadgen", 1, log)
    assert str(no_answer.value) == "generator got no answer at all: sent 64, timeouts 64"
    assert is_under_load(f"failed: {no_answer.value}")
    check_load("loadgen", 5, log)  # a rate was measured
    with pytest.raises(RunFailed) as of_a_fill:
        check_exit("loadgen", 1, log)
    assert not is_under_load(f"failed: {of_a_fill.value}")
    log.write_text("no request was answered: Cannot assign requested address: sent 0, connect errors 64\n")
    with pytest.raises(RunFailed, match="^generator failed: exit 1: ") as without_a_port:
        check_load("loadgen", 1, log)
    assert not is_under_load(f"failed: {without_a_port.value}")


SIDES = {"a": "http://127.0.0.1:1", "b": "http://127.0.0.1:2"}


def test_a_duet_whose_slices_had_no_answer_is_told_why_that_may_be(tmp_path):
    log = tmp_path / "generator.log"
    log.write_text(
        "no answer was measured: all 900 are to requests of the warm-up, none to the 80 due behind it"
    )
    told = "^no request due in a slice was answered: {}: no answer was measured: all 900"
    with pytest.raises(RunFailed, match=told.format("the rate may be too high for both sides")):
        check_slices(5, log, at_rate=True, urls=SIDES)
    with pytest.raises(RunFailed, match=told.format("both sides stood still")):
        check_slices(5, log, at_rate=False, urls=SIDES)
    check_slices(3, log, at_rate=True, urls=SIDES)  # of an unexpected status the launch says more itself
    with pytest.raises(RunFailed, match="^generator failed: exit 1: "):
        check_slices(1, log, at_rate=True, urls=SIDES)


def test_a_side_of_a_duet_that_answers_nothing_is_told_from_a_generator_that_failed(tmp_path):
    log = tmp_path / "generator.log"
    log.write_text("a warning\nno request was answered: sent 64, connect errors 0, timeouts 64\n")
    with pytest.raises(RunFailed, match="^neither side answered a request: sent 64, connect"):
        check_slices(1, log, at_rate=True, urls=SIDES)
    log.write_text("no measured request was answered by http://127.0.0.1:2: 30 were due\n")
    with pytest.raises(SideSilent, match="^side b answered no request in its slices: 30 were due$") as silent:
        check_slices(1, log, at_rate=True, urls=SIDES)
    elsewhere = pickle.loads(pickle.dumps(silent.value))  # as it comes from another host
    assert (elsewhere.side, elsewhere.fault) == (
        "b",
        "service answered no request in its slices: 30 were due",
    )
    log.write_text("no request was answered: Cannot assign requested address: sent 0, connect errors 64\n")
    with pytest.raises(RunFailed, match="^generator failed: exit 1: "):
        check_slices(1, log, at_rate=True, urls=SIDES)


def test_four_cores_are_split_and_two_are_not():
    split = pinning(threads=1, cores=[0, 1, 2, 3])
    assert (split.service, split.generator) == ([0, 1, 2], [3])
    assert pinning(threads=8, cores=list(range(8))).generator == [4, 5, 6, 7]
    shared = pinning(threads=1, cores=[0, 1])
    assert (shared.service, shared.generator) == (None, None) and "not pinned: 2 cores" in shared.reason


def test_a_duet_splits_two_cores_too_and_shares_one():
    split = pinning(threads=4, wanted=OF_A_DUET, cores=[0, 1])
    assert (split.service, split.generator) == ([0], [1])
    assert pinning(threads=1, wanted=OF_A_DUET, cores=[0, 1, 2, 3]).service == [0, 1, 2]
    shared = pinning(threads=1, wanted=OF_A_DUET, cores=[3])
    assert (shared.service, shared.generator) == (None, None) and "not pinned: one core" in shared.reason


def test_two_cores_are_split_and_four_are_not_where_the_experiment_says_so():
    split = pinning(threads=2, wanted="apart", cores=[0, 1])
    assert (split.service, split.generator) == ([0], [1])
    shared = pinning(threads=1, wanted="shared", cores=[0, 1, 2, 3])
    assert (shared.service, shared.generator) == (None, None) and "asks for" in shared.reason
    with pytest.raises(RunFailed, match=r"cores of their own: usable=1\n.*another value of cores"):
        pinning(threads=1, wanted="apart", cores=[0])
