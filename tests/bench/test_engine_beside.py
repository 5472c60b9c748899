"""The engine beside another build's: what is read of the benchmark's output, and what the table says."""

import os

import bench_programs
import pytest

# As EngineBenchmark prints it.
OUTPUT = """round 1 ours      fillrandom 860,793/s  readrandom 928,853/s  \
readrandom 2 threads 1,784,239/s  readmissing 2,242,264/s  scan 5,143,953/s  fillsync 9,704/s
round 2 ours      fillrandom 1,560,793/s  readrandom 1,328,853/s  \
readrandom 2 threads 2,784,239/s  readmissing 5,242,264/s  scan 15,143,953/s  fillsync 10,704/s

| row | ours, 1/s | RocksDB, 1/s | ratio (min–max of rounds) |
|---|---|---|---|
| fillrandom | 1,560,793 | NaN | – |
"""


@pytest.fixture(scope="module")
def bench():
    return bench_programs.program("service/bench/bench_engine_beside.py")


def test_every_row_of_the_benchmark_is_read_but_those_of_the_store_that_the_jvm_compiles_for(bench):
    assert bench.rates_of(OUTPUT) == {
        "fillrandom": 1_560_793,
        "readrandom": 1_328_853,
        "readrandom 2 threads": 2_784_239,
        "readmissing": 5_242_264,
        "scan": 15_143_953,
        "fillsync": 10_704,
    }
    third = OUTPUT.replace("round 2 ours      fillrandom 1,5", "round 3 ours      fillrandom 1,7")
    assert bench.rates_of(OUTPUT + third)["fillrandom"] == 1_660_793
    assert bench.rates_of("Exception in thread main") == {}


def test_the_other_build_brings_its_store_and_none_of_this_one(bench):
    paths = bench.class_paths("/before/kv-service.jar", "/m2/rocksdb.jar")
    this, beside = (paths[name].split(os.pathsep) for name in (bench.THIS, bench.BESIDE))
    assert this[0].endswith("service/target/classes")
    assert beside[0] == "/before/kv-service.jar"
    assert this[0] not in beside and this[1:] == beside[1:]


def test_a_store_that_the_benchmark_does_not_fit_is_one_line(bench):
    error = "java.lang.NoSuchMethodError: 'long kv.lsm.Store.x()'"
    trace = f"Exception in thread main {error}\n\tat kv.lsm.bench\n"
    told = bench.misfit(trace)
    assert told.endswith(error) and "\n" not in told
    assert bench.misfit("java.lang.OutOfMemoryError: Java heap space") is None


def test_a_row_for_each_operation_from_the_rounds_that_the_host_left_alone(bench):
    def found(rate, undisturbed=True):
        return {"rates": {"scan": rate, "fillsync": rate / 10}, "undisturbed": undisturbed}

    quiet = [{bench.THIS: found(110.0), bench.BESIDE: found(100.0)} for _ in range(3)]
    lines = bench.table([*quiet, {bench.THIS: found(1.0), bench.BESIDE: found(100.0, False)}])
    # Rounds do not agree better than a thousandth.
    assert lines[2].startswith("| scan | 110 (110–110) | 100 (100–100) | 1.100 [1.097, 1.103] (1.100–1.100)")
    assert lines[3].startswith("| fillsync | 11 (11–11)")
    assert lines[-1].strip() == "1 rounds disturbed by the host"
    assert "every round disturbed" in bench.table([{name: found(1.0, False) for name in quiet[0]}])[2]
