"""What the service's benchmarks share, with the real service and the real generator: nothing here says how
fast anything is."""

import sys

import bench_programs
import pytest

sys.path.append(str(bench_programs.ROOT / "tests" / "measure"))
from project import UNDISTURBED, project

from kvstudy.errors import KvstudyError
from kvstudy.record.run_folder import sealed_runs


@pytest.fixture
def served(project, monkeypatch):
    monkeypatch.setenv("KVSTUDY_ROOT", str(project.root))
    return bench_programs.program("service/bench/served.py")


def test_options_are_read_as_they_are_typed():
    options_of = bench_programs.program("service/bench/served.py").options_of
    assert options_of("--wal always --stall-limit-ms 0") == {"wal": "always", "stall-limit-ms": "0"}
    assert options_of("") == {}
    with pytest.raises(ValueError):
        options_of("--wal")


@pytest.mark.machine
def test_a_service_is_filled_and_loaded_and_nothing_is_left_of_it(project, served):
    with served.Bench("trial") as bench:
        service = bench.service("service", {"wal": "interval"}, heap="64m")
        bench.fill(service, 500)
        assert service.count_records() == 500
        found = bench.loaded(service, "random_get", 500, 2, seconds=0.5, warm_up=0.2, rate=200)
        assert found["counts"]["measured"] > 0
        with pytest.raises(KvstudyError, match="another kvstudy measures or builds in this folder"):
            served.Bench("other").__enter__()
        with pytest.raises(KvstudyError, match="unexpected answers: random_get"):
            bench.loaded(service, "random_get", 5_000, 2, seconds=0.5)
    assert project.processes() == [] and not bench.folder.exists()


@pytest.mark.machine
def test_a_duet_of_the_service_and_the_empty_handler_is_measured(project):
    file = bench_programs.ROOT / "service" / "bench" / "bench-service.yaml"
    asked = project.kvstudy("compare", file, "--preset", "smoke", code=UNDISTURBED)
    code, out, err = project.finished(asked)
    assert code == 0, err
    runs = sealed_runs(project.raw)
    assert [run.facts["outcome"] for run in runs] == ["completed"] * 2
    assert {side["name"] for run in runs for side in run.facts["sides"].values()} == {
        "subject=empty",
        "subject=kv-service",
    }
    assert out and project.processes() == []  # without a value where others use the machine
