"""The service on one host, two generators on two others: four namespaces of this machine, a real sshd, a real
cluster, real runs."""

import json
from pathlib import Path

import pytest

from kvstudy.hosts.process import wait_until
from kvstudy.record import hdr, interval_log, slowest
from kvstudy.record.run_folder import sealed_runs

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts")]


def test_service_on_one_host_and_two_generators_on_two_others_make_one_run(hosts, project):
    file = hosts.yaml(a=["service"], b=["generator"], c=["generator"])
    experiment = project.experiment(
        subject="kv-service", connections=4, threads=2, rate=1000, duration="2s", warm_up="500ms"
    )
    code, out, err = project.finished(project.kvstudy("run", experiment, "--hosts", file, "--generators", 2))
    assert code == 0, err + out
    (run,) = sealed_runs(project.raw)
    assert run.facts["hosts"] == {"service": "a", "generators": ["b", "c"]}
    assert set(run.machine["hosts"]) == {"a", "b", "c"}
    if Path("/etc/machine-id").exists():
        assert len({facts["machine_id"] for facts in run.machine["hosts"].values()}) == 3
    parts = [json.loads(run.text(f"generator-{number}.json")) for number in (1, 2)]
    whole = json.loads(run.text("generator.json"))
    of_parts = hdr.merge(hdr.decode(part["response_time"]["histogram_v2_base64"]) for part in parts)
    of_whole = hdr.decode(whole["response_time"]["histogram_v2_base64"])
    assert of_whole.indices.tolist() == of_parts.indices.tolist()
    assert of_whole.counts.tolist() == of_parts.counts.tolist()
    seconds = interval_log.read(run.text("latency.hlog"), "latency.hlog")
    of_seconds = hdr.merge(hdr.decode(one.histogram) for one in seconds if one.tag == "response")
    assert of_seconds.counts.tolist() == of_whole.counts.tolist()
    connections = set(slowest.read(run.text("slowest.csv"), "slowest.csv")["connection"].tolist())
    assert connections == {0, 1, 2, 3}
    for name in "abc":
        assert wait_until(lambda name=name: not hosts.pids(name), 10), hosts.pids(name)


def test_fill_and_profile_are_made_on_the_services_host_and_come_here(hosts, project):
    file = hosts.yaml(a=["service"], b=["generator"], cores={"b": "0"})
    experiment = project.experiment(
        subject="kv-service",
        workload="get",
        fill=2000,
        rate=500,
        duration="6s",
        warm_up="1s",
        profile={"events": ["cpu"]},
    )
    code, out, err = project.finished(project.kvstudy("run", experiment, "--hosts", file))
    assert code == 0, err + out
    plain, profiled = sorted(sealed_runs(project.raw), key=lambda run: bool(run.facts["profile"]))
    assert profiled.text("cpu.collapsed") and profiled.has("cpu_slow.collapsed")
    assert plain.facts["data_check"]["missing"] == 0 and plain.has("store.csv")
    assert not profiled.has("service.jfr")
    assert plain.machine["clocks"]["before"]["a"]["bound_us"] > 0
