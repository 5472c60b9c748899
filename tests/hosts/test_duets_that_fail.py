"""A side of a duet dies, or its generator's host is lost, in the middle of a launch: that launch is sealed
with the reason, and the duet goes on, or says in one line why not."""

import re
import time

import pytest
from project import TINY_SLICES, UNDISTURBED
from test_duets_over_hosts import SIDES_OF_OURS
from test_failures import SEALED_WITHIN_S, alone, came_to, cut_b, kill, nothing_runs_on

from kvstudy.hosts.process import wait_until
from kvstudy.record.run_folder import sealed_runs

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts that fail")]

# What happens, the reason that the launch is sealed with, how many launches answer, and whether it goes on. A
# launch that a side ended is an answer; one that a host ended is none.
DUET_SCENARIOS = [
    (kill("a", "kv-service.jar"), r"host a: side .*: service died during put at the rate: signal 9", 2, True),
    alone(kill("b", "hosts.agent"), r"host b is lost: agent has ended: it was killed", 1, True),
    (cut_b, r"host b is lost: ", 1, False),
]


@pytest.mark.parametrize(
    ("happens", "reason", "answers", "goes_on"),
    DUET_SCENARIOS,
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_launch_that_something_happens_to_is_sealed_and_the_duet_goes_on_or_says_why_not(
    hosts, project, tmp_path, happens, reason, answers, goes_on
):
    file = hosts.yaml(a=["service"], b=["generator"])
    experiment = project.experiment(
        **SIDES_OF_OURS
        | {
            "subject": "kv-service",
            "rate": 400,
            "compare": TINY_SLICES | {"pairs": 6, "launches": answers},
        }
    )
    try:
        with came_to(
            "put at the rate",
            project,
            tmp_path,
            *("compare", experiment, "--hosts", file),
            more=UNDISTURBED,
            module="duet_progress",
            progress="DuetProgress",
        ) as measuring:
            happens(hosts, measuring)
            begun = time.monotonic()
            assert wait_until(lambda: sealed_runs(project.raw), SEALED_WITHIN_S), "never sealed"
            print(f"sealed {time.monotonic() - begun:.1f} s after it happened")
            code, out, err = project.finished(measuring, 90)
    finally:
        hosts.heal("b")
    print(out, err)
    first, *others = sealed_runs(project.raw)
    assert re.search(reason, first.facts["outcome"]), first.facts["outcome"]
    assert "Traceback" not in err, err
    if goes_on:
        assert others and others[-1].facts["outcome"] == "completed", out + err
    else:
        assert code == 1 and not others
        assert len([line for line in err.splitlines() if "host b" in line and "launch 1" not in line]) == 1
    assert not list(project.raw.rglob("*.partial"))
    nothing_runs_on(hosts, "ab")
