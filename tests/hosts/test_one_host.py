"""One host that has both roles: its service is loaded from there, as on the machine where you type."""

import re

import pytest
from project import TINY_SLICES, UNDISTURBED
from test_duets_over_hosts import SIDES_OF_OURS
from test_failures import SEALED_WITHIN_S, alone, came_to, interrupt, nothing_runs_on, stop

from kvstudy.analyse.conditions import hosts_in_words, hosts_of_run
from kvstudy.hosts.process import wait_until
from kvstudy.record.duet import slices_of
from kvstudy.record.run_folder import sealed_runs
from kvstudy.record.verification import verify

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts")]

FILLED = {"workload": "mixed", "fill": {"records": 500, "methods": ["MIXED"]}}
SHARES = "host a: service and generator share it"


def test_a_run_on_one_host_has_all_that_one_on_this_machine_has(hosts, project):
    file = hosts.yaml(a=["service", "generator"])
    experiment = project.experiment(
        **FILLED
        | {"subject": "kv-service", "rate": 300, "connections": 4, "duration": "2s", "warm_up": "500ms"}
    )
    run = ["run", experiment, "--hosts", file]
    code, out, err = project.finished(project.kvstudy(*run))
    assert code == 0 and SHARES in err and "Traceback" not in err, out + err
    (sealed,) = sealed_runs(project.raw)
    assert sealed.facts["outcome"] == "completed" and verify(sealed.path) == [], sealed.facts["outcome"]
    assert sealed.facts["hosts"] == {"service": "a", "generators": ["a"]}
    assert hosts_in_words(hosts_of_run(sealed)) == "service and generator on a"
    assert sealed.facts["data_check"]["missing"] == 0
    # One clock: nothing is compared, and nothing is moved.
    assert set(sealed.machine["hosts"]) == {"a"} and "clocks" not in sealed.machine
    assert sealed.machine["load_during"] and "service" in sealed.machine["pinning"]
    for name in ("generator.json", "latency.hlog", "process.csv", "store.csv", "events.json", "slowest.csv"):
        assert sealed.has(name), name
    nothing_runs_on(hosts, "a")
    code, out, err = project.finished(project.kvstudy(*run, "--resume"))
    assert code == 0 and "1 of 1 runs are sealed already and kept" in err, out + err


def test_a_duet_on_one_host_has_both_sides_and_its_generator_there(hosts, project):
    file = hosts.yaml(a=["service", "generator"])
    experiment = project.experiment(
        **SIDES_OF_OURS
        | FILLED
        | {
            "subject": "kv-service",
            "rate": 400,
            "compare": TINY_SLICES | {"launches": 1, "profile": ["cpu"], "profile_pairs": 2},
        }
    )
    code, out, err = project.finished(
        project.kvstudy("compare", experiment, "--hosts", file, code=UNDISTURBED)
    )
    assert code == 0 and SHARES in err and "Traceback" not in err, out + err
    (launch,) = sealed_runs(project.raw)
    assert launch.facts["outcome"] == "completed" and verify(launch.path) == [], launch.facts["outcome"]
    assert launch.facts["hosts"] == {"service": "a", "generators": ["a"]}
    assert set(launch.machine["hosts"]) == {"a"} and "clocks" not in launch.machine
    slices = slices_of(launch)
    assert len(slices[slices["loop"] != "profile"]) == 8 and launch.has("cpu-a.collapsed")
    nothing_runs_on(hosts, "a")


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (interrupt, r"interrupted during measure"),
        alone(stop("a", "hosts.agent"), r"host a is lost: it does not answer within 6 s"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_run_on_one_host_that_something_happens_to_is_sealed_with_its_reason(
    hosts, project, tmp_path, happens, reason
):
    file = hosts.yaml(a=["service", "generator"])
    experiment = project.experiment(subject="kv-service", rate=300, duration="4s", warm_up="500ms")
    with came_to("measure", project, tmp_path, "run", experiment, "--hosts", file) as measuring:
        happens(hosts, measuring)
        assert wait_until(lambda: sealed_runs(project.raw), SEALED_WITHIN_S), "never sealed"
        _, _, err = project.finished(measuring, timeout_s=90)
    (run,) = sealed_runs(project.raw)
    assert re.search(reason, run.facts["outcome"]) and "Traceback" not in err, run.facts["outcome"] + err
    nothing_runs_on(hosts, "a")
