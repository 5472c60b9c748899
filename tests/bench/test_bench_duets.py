"""The service's benchmarks that are duets: which sides and loads their files have, and what is said of the
work that a side did."""

from types import SimpleNamespace

import bench_programs
import pytest

from kvstudy.errors import KvstudyError
from kvstudy.measure.compare import primary_of
from kvstudy.measure.generator import expected_statuses
from kvstudy.plan.comparison import SIDES, changed, comparisons
from kvstudy.plan.experiment import Experiment

BENCH = bench_programs.ROOT / "service" / "bench"
JAR = "before/kv-service.jar"


def duets(name, preset=None, builds=None, only=()):
    experiment = Experiment.load(BENCH / f"{name}.yaml", preset, compared=True)
    return comparisons(experiment, builds=builds, only=only)


@pytest.mark.parametrize("connections", [1, 16, 64])
def test_the_service_is_compared_with_the_empty_handler_on_each_number_of_connections(connections):
    (one,) = duets("bench-service", only=[f"connections={connections}"])
    assert one.names == ("subject=empty", "subject=kv-service")
    assert [(load.workload, expected_statuses(load.a)) for load in one.loads] == [
        ("random_get", "200"),
        ("unique_put", "200,201"),
    ]
    assert all(load.b.fill["records"] == load.a.workload_args["key_count"] for load in one.loads)
    assert [loop.loop for load in one.loads for loop in load.loops] == ["closed", "closed"]
    assert primary_of(one)["measure"] == "rate"


def test_another_build_takes_the_place_of_the_empty_handler():
    (one,) = duets("bench-service", builds=(JAR, "."), only=["connections=64", "subject=kv-service"])
    assert one.names == (JAR, ".") and [one.loads[0].of(side).spec.build for side in SIDES] == [JAR, "."]


def test_synced_writes_are_compared_by_handler_or_by_build():
    (one,) = duets("bench-service", "synced")
    assert one.names == ("handler=workers", "handler=selector") and one.loads[0].a.service["wal"] == "always"
    assert duets("bench-service", "synced", builds=(JAR, "."), only=["handler=selector"])


SIZES = {"kib-1": 1024, "kib-10": 10 * 1024, "kib-100": 100 * 1024, "mib-1": 1024 * 1024}


@pytest.mark.parametrize(("size", "value_bytes"), SIZES.items())
def test_the_empty_handler_gives_as_many_bytes_as_the_values_have_that_the_service_gives(size, value_bytes):
    (one,) = duets("bench-values", size)
    assert one.names == ("subject=empty", "subject=kv-service")
    put = "put" if value_bytes < 100_000 else "repeated_put"
    assert [load.workload for load in one.loads] == ["random_get", put]
    for load in one.loads:
        assert f"-Dkv.empty.answerBytes={value_bytes}" in load.a.jvm
        assert load.a.workload_args["value_bytes"] == value_bytes
        assert load.b.fill["records"] == load.a.workload_args["key_count"]


@pytest.mark.parametrize(
    ("name", "option"), [("bench-socket-calls", "socketCalls"), ("bench-short-turns", "shortTurns")]
)
def test_one_option_is_all_that_differs_between_two_sides_of_one_jar(name, option):
    (one,) = duets(name)
    commands = [one.loads[0].of(side).spec.command for side in SIDES]
    assert [pair for pair in zip(*commands, strict=True) if len(set(pair)) > 1] == [
        (f"-Dkv.{option}=false", f"-Dkv.{option}=true")
    ]


def test_tails_are_compared_at_a_rate_that_a_closed_loop_gives():
    (closed,) = duets("bench-tail", "saturation")
    assert [loop.loop for loop in closed.loads[0].loops] == ["closed"] and closed.comparing.launches == 1
    file = {"experiment_file": str(BENCH / "bench-tail.yaml"), "rate": 1234}
    found = changed(Experiment.from_parameters(file, compared=True), within=600.0)
    (one,) = comparisons(found)
    assert [one.loads[0].of(side).service["compaction"] for side in SIDES] == ["none", "leveled"]
    assert {one.loads[0].of(side).cores for side in SIDES} == {"apart"}
    assert one.loads[0].a.offered_rate_rps == 1234 and primary_of(one)["measure"] == "p99.9"
    assert comparisons(found, builds=(JAR, "."), only=["compaction=leveled"])


@pytest.fixture
def tail():
    return bench_programs.program("service/bench/bench_tail.py")


def launches(*done: dict[str, tuple[int, int]]):
    """Sealed launches in which sides flushed and compacted so often, after a warm-up in which both did."""

    def text(of: dict, file: str) -> str:
        flushes, compactions = of[file.removeprefix("store-").removesuffix(".csv")]
        return f"second,flushes,compactions\n0,5,5\n1,{5 + flushes},{5 + compactions}\n"

    (one,) = duets("bench-tail")
    runs = [
        SimpleNamespace(facts={"outcome": "completed"}, text=lambda file, of=of: text(of, file))
        for of in done
    ]
    return SimpleNamespace(comparison=one, launches=runs)


def test_how_much_each_side_flushed_and_compacted_is_told(tail):
    told = tail.check_work(launches({"a": (0, 0), "b": (20, 5)}, {"a": (0, 0), "b": (22, 5)}))
    assert told.endswith("compaction=leveled: 21 flushes and 5 compactions a launch")


@pytest.mark.parametrize("done", [{"a": (1, 0), "b": (20, 5)}, {"a": (0, 0), "b": (20, 0)}])
def test_a_side_that_did_not_what_was_to_be_measured_is_an_error(tail, done):
    with pytest.raises(KvstudyError, match="not what was to be measured"):
        tail.check_work(launches(done))


def test_redis_has_a_row_for_each_request_with_the_rounds_that_count():
    def found(rate, undisturbed=True):
        return {"rate_rps": rate, "undisturbed": undisturbed}

    rounds = [{"redis": found(100.0), "service": found(150.0)} for _ in range(3)]
    spoiled = [{"redis": found(100.0, False), "service": found(150.0)}]
    lines = bench_programs.program("service/bench/bench_redis.py").table(
        {("put", 64): rounds + spoiled, ("get", 64): spoiled}
    )
    assert lines[2].startswith("| PUT | 64 | 100 (100–100) | 150 (150–150) | 1.500 [")
    assert lines[2].endswith(" | 3 of 4 |")
    assert lines[3] == "| GET | 64 | every round disturbed by the host |  |  | 0 of 1 |"
