"""Duets over hosts: both sides on one, one or two generators that send to them in turn on others. Slices are
tiny, so nothing here says which side is faster."""

import json

import pytest
from project import TINY_SLICES, UNDISTURBED

from kvstudy.hosts.process import wait_until
from kvstudy.plan.comparison import SIDES
from kvstudy.record.duet import slice_histograms, slices_of
from kvstudy.record.run_folder import sealed_runs
from kvstudy.record.verification import verify

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts")]

SIDES_OF_OURS = {"subject": None, "jvm": {"heap": ["48m", "64m"]}, "duration": "2s", "warm_up": "1s"}


@pytest.mark.parametrize("generators", [pytest.param("b", marks=pytest.mark.long), "bc"])
def test_a_duet_has_both_sides_on_one_host_and_its_generators_on_others(hosts, project, generators):
    file = hosts.yaml(a=["service"], **{name: ["generator"] for name in generators})
    experiment = project.experiment(
        **SIDES_OF_OURS
        | {
            "subject": "kv-service",
            "workload": "mixed",
            "fill": {"records": 500, "methods": ["MIXED"]},
            "rate": 400,
            "compare": TINY_SLICES | {"launches": 1, "profile": ["cpu"], "profile_pairs": 2},
        }
    )
    compare = ["compare", experiment, "--hosts", file, "--generators", len(generators)]
    code, out, err = project.finished(project.kvstudy(*compare, code=UNDISTURBED))
    assert code == 0 and "Traceback" not in err, out + err
    (run,) = sealed_runs(project.raw)
    assert verify(run.path) == [] and run.facts["outcome"] == "completed", run.facts["outcome"]
    assert run.facts["hosts"] == {"service": "a", "generators": list(generators)}
    assert (
        set(run.machine["hosts"]) == {"a", *generators}
        and run.machine["clocks"]["after"]["a"]["bound_us"] > 0
    )
    slices, histograms = slices_of(run), slice_histograms(run)
    measured = slices[slices["loop"] != "profile"]
    assert len(measured) == 8 and measured["a_cpu_ns"].notna().any()
    for row in measured.itertuples():
        assert histograms[row.workload, row.loop, row.slice].total == row.answered
    if len(generators) > 1:
        for loop in ("rate", "closed", "profile"):
            whole, *parts = (
                json.loads(run.text(f"generator-mixed-{loop}{ending}.json")) for ending in ("", "-1", "-2")
            )
            for place, of_all in enumerate(whole["alternate"]["slices"]):
                of_parts = [part["alternate"]["slices"][place] for part in parts]
                assert of_all["completed"] == sum(one["completed"] for one in of_parts)
                assert len({one["server"] for one in (of_all, *of_parts)}) == 1
                begins = [one["counted_from_unix_ns"] for one in of_parts]  # one clock is behind all of these
                assert abs(begins[0] - begins[1]) < 1_000_000 and of_all["counted_from_unix_ns"] == begins[0]
    for side in SIDES:
        assert run.facts["ends"][side]["data_check"]["missing"] == 0
        assert run.facts["ends"][side]["store_bytes_before"] > 0
        assert run.has(f"events-{side}.json") and "kv/http" in run.text(f"cpu-{side}.collapsed")
        assert not run.has(f"service-{side}.jfr")
    for name in f"a{generators}":
        assert wait_until(lambda name=name: not hosts.pids(name), 10), hosts.pids(name)
    # The same hosts go on with it; one machine is another question.
    code, out, err = project.finished(project.kvstudy(*compare, "--resume", code=UNDISTURBED))
    assert code == 0 and "1 launch is sealed already and kept" in err, out + err
    assert len(sealed_runs(project.raw)) == 1
