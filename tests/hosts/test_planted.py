"""What is planted on hosts while they measure, and has to be found: clocks that are wrong, a disk that runs
full."""

import json
import re
import time
from contextlib import contextmanager
from datetime import datetime

import pytest
from namespaces import WrongClock
from test_failures import SEALED_WITHIN_S, alone, came_to, nothing_runs_on

from kvstudy.hosts.process import wait_until
from kvstudy.record import slowest
from kvstudy.record.run_folder import sealed_runs

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts")]

CLOCKS = {"a": WrongClock(250_000_000, 50), "c": WrongClock(-250_000_000, -50)}
# Every few hundred milliseconds all threads of the service stand still for a full collection.
COLLECTING = ["-XX:G1PeriodicGCInterval=400", "-XX:-G1PeriodicGCInvokesConcurrent", "-XX:ParallelGCThreads=1"]

NEAR_S = 0.06


@contextmanager
def begun_anew(hosts, given: dict[str, dict]):
    """``given``: of each host what of it is other than usual, as ``Namespaces.begin`` takes it."""
    for name, other in given.items():
        hosts.end(name)
        hosts.begin(name, **other)
    try:
        yield
    finally:
        for name in given:
            hosts.end(name)
            hosts.begin(name)


def test_wrong_clocks_are_found_within_their_bounds_and_pauses_lie_where_answers_waited(hosts, project):
    """The service's clock is 250 ms ahead and gains 50 ppm; that of one generator is as wrong the other
    way."""
    file = hosts.yaml(a=["service"], b=["generator"], c=["generator"])
    experiment = project.experiment(
        subject="kv-service",
        connections=4,
        rate=300,  # held even where a busy machine makes each pause 0.1 s; all answers measured are kept
        duration="3s",
        warm_up="1s",
        jvm={"gc": "G1", "heap": "256m", "options": COLLECTING},
    )
    with begun_anew(hosts, {name: {"clock": clock} for name, clock in CLOCKS.items()}):
        measuring = project.kvstudy("run", experiment, "--hosts", file, "--generators", 2)
        code, out, err = project.finished(measuring)
    assert code == 0, out + err
    (run,) = sealed_runs(project.raw)
    found = run.machine["clocks"]
    assert found["reference"] == "b"
    for name, clock in CLOCKS.items():
        for when in ("before", "after"):
            one = found[when][name]
            planted_us = clock.ahead_at(epoch_ns(one["at_utc"]) - clock.ahead_ns) / 1e3
            assert abs(one["offset_us"] + planted_us) <= one["bound_us"], (name, when, one, planted_us)
    starts = [json.loads(run.text(f"generator-{part}.json"))["measure_start_utc"] for part in (1, 2)]
    apart_s = (epoch_ns(starts[1]) - epoch_ns(starts[0])) / 1e9
    assert abs(apart_s - CLOCKS["c"].ahead_ns / 1e9) < 0.1, "generators did not begin together"
    whole = json.loads(run.text("generator.json"))
    began_s = epoch_ns(whole["measure_start_utc"]) / 1e9
    assert abs(began_s - window(run)[0]) < 0.1, "events would be set beside answers of another moment"
    assert whole["merged"]["starts_apart_s"] < 0.1
    pauses = [one for one in json.loads(run.text("events.json"))["gc"] if "Periodic" in json.dumps(one)]
    measured = window(run)
    pauses = [one for one in pauses if measured[0] < middle(one) < measured[1]]
    answers = slowest.read(run.text("slowest.csv"), "slowest.csv")
    assert len(pauses) >= 3
    for one in pauses:
        assert longest_near(answers, middle(one) - measured[0]) >= one["duration_ms"] / 2, one


@pytest.mark.parametrize("jumping", ["a", alone("b")], ids=["of the service", "of the generator"])
def test_a_clock_that_is_set_by_a_little_while_it_is_measured_fails_that_run(
    hosts, project, tmp_path, jumping
):
    """By 25 ms: less than it may drift in a long run, and more than most pauses take."""
    file = hosts.yaml(a=["service"], b=["generator"])
    experiment = project.experiment(subject="kv-service", rate=300, duration="3s", warm_up="500ms", repeats=2)
    clock = WrongClock(0, 0, tmp_path / "jump")
    with (
        begun_anew(hosts, {jumping: {"clock": clock}}),
        came_to("measure", project, tmp_path, "run", experiment, "--hosts", file) as measuring,
    ):
        clock.jumps(25_000_000)
        code, out, err = project.finished(measuring, 90)
    ((reason, _),) = failed(project)
    said = rf"clock of host {jumping} was set while it was measured: it moved by 2[45]\.\d ms at once"
    assert re.search(said, reason), out + err
    assert code == 1 and len(completed(project)) == 1  # the next one is measured by the new time


def epoch_ns(utc: str) -> int:
    whole, _, rest = utc.removesuffix("Z").partition(".")
    return int(datetime.fromisoformat(f"{whole}+00:00").timestamp()) * 10**9 + int(rest.ljust(9, "0")[:9])


def window(run) -> tuple[float, float]:
    """Of the measured seconds."""
    phase = run.facts["phases"]["measure"]
    return tuple(epoch_ns(phase[edge]) / 1e9 for edge in ("start_utc", "stop_utc"))


def middle(event: dict) -> float:
    return epoch_ns(event["start_utc"]) / 1e9 + event["duration_ms"] / 2e3


def longest_near(answers: dict, at_s: float) -> float:
    """Of the answers that were waited for around that moment of the window, in ms. On a busy machine a pause
    was once dated over 30 ms beside the answers that waited for it: far less than the clock is wrong."""
    due_s, response_s = answers["due_us"] / 1e6, answers["response_us"] / 1e6
    waiting = (due_s <= at_s + NEAR_S) & (at_s - NEAR_S <= due_s + response_s)
    return float(1e3 * response_s[waiting].max(initial=0.0))


# ---- a full disk -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", ["a", alone("b")], ids=["of the service", "of a generator"])
def test_a_disk_that_runs_full_fails_that_run_with_its_reason_and_others_go_on(
    hosts, project, tmp_path, full
):
    """Two crews side by side: a ← b, one of whose disks runs full while it measures, and c ← d."""
    file = hosts.yaml(a=["service"], b=["generator"], c=["service"], d=["generator"])
    experiment = project.experiment(
        subject="kv-service",
        workload=["put", "unique_put"],
        service={"memtable_bytes": "64k"},  # what is written comes to the disk at once
        rate=[400, 500],  # else both workloads would be compared with one another, and stay on one host
        duration="3s",
        warm_up="500ms",
    )
    with (
        begun_anew(hosts, {full: {"disk": "256m"}}),
        came_to("measure", project, tmp_path, "run", experiment, "--hosts", file) as measuring,
    ):
        hosts.fill(full)
        begun = time.monotonic()
        assert wait_until(lambda: failed(project), SEALED_WITHIN_S), "never sealed"
        print(f"sealed {time.monotonic() - begun:.1f} s after it was full")
        code, out, err = project.finished(measuring, 90)
        nothing_runs_on(hosts, "abcd")
    assert code == 1 and "Traceback" not in err, out + err
    for reason, where in failed(project):
        assert full in (where["service"], *where["generators"])
        assert re.search(rf"(?i)host {full}: .*no space left on device", reason), reason
    assert [run.facts["hosts"]["service"] for run in completed(project)][-2:] == ["c", "c"]
    assert not list(project.raw.rglob("*.partial"))


def failed(project) -> list[tuple[str, dict]]:
    return [
        (run.facts["outcome"], run.facts["hosts"])
        for run in sealed_runs(project.raw)
        if run.facts["outcome"] != "completed"
    ]


def completed(project) -> list:
    return [run for run in sealed_runs(project.raw) if run.facts["outcome"] == "completed"]


HOUR_NS = 3600 * 10**9


def test_hosts_whose_clocks_are_hours_apart_are_measured_on(hosts, project):
    """Two are behind the machine where it is typed, so that what begins there now has not begun yet."""
    file = hosts.yaml(a=["service"], b=["generator"], c=["generator"])
    hours = {"a": -1, "b": 5, "c": -2}
    with begun_anew(hosts, {name: {"clock": WrongClock(of * HOUR_NS, 0)} for name, of in hours.items()}):
        measuring = project.kvstudy(
            "run",
            project.experiment(subject="kv-service", rate=200),
            "--hosts",
            file,
            "--generators",
            len("bc"),
        )
        code, out, err = project.finished(measuring, timeout_s=120)
    assert code == 0, out + err
    (run,) = sealed_runs(project.raw)
    offsets = run.machine["clocks"]["before"]
    assert {name: round(one["offset_us"] / 3600e6, 2) for name, one in offsets.items()} == {"a": 6, "c": 7}
