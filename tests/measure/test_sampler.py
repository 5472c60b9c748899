"""The 1 Hz series, of real processes: whose CPU it is, and that a second is a second of the measured window."""

import csv
import os
import subprocess
import sys
import threading
import time

import psutil
import pytest

from kvstudy.errors import RunFailed
from kvstudy.measure.machine import load_during, load_now
from kvstudy.measure.sampler import PROCESS_COLUMNS, Sampler, machine_times

BUSY = [sys.executable, "-c", "while True: pass"]


@pytest.fixture
def children():
    """Starts processes and ends them."""
    started = []

    def start(argv):
        started.append(subprocess.Popen(argv))
        return started[-1]
    yield start
    for process in started:
        process.kill()
        process.wait()


def sampled(tmp_path, service, generator, metrics=str, length_s=3.3, window_s=1.0) -> list[dict]:
    sampler = Sampler(service.pid, generator.pid, time.monotonic() + window_s, tmp_path / "process.csv", tmp_path / "store.csv", metrics)
    sampler.start()
    time.sleep(length_s)
    return sampler.stop()


def test_cpu_of_service_generator_and_strangers_is_told_apart(tmp_path, children):
    service, generator, _hog = children(BUSY), children(["sleep", "60"]), children(BUSY)
    rows = sampled(tmp_path, service, generator)
    assert [row["second"] for row in rows] == [-1, 0, 1]
    total = {name: sum(row[name] for row in rows) for name in ("service_cpu_s", "generator_cpu_s", "foreign_cpu_share")}
    assert total["service_cpu_s"] > 0.1 > total["generator_cpu_s"]
    assert total["foreign_cpu_share"] > 0
    assert all(row["service_rss_bytes"] > 1 << 20 and row["service_threads"] == 1 for row in rows)


COMPILING = """
import ctypes, threading
def spin(name):
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    while True: pass
threading.Thread(target=spin, args=(b"C2 CompilerThread0",), daemon=True).start()
spin(b"worker")
"""


def test_cpu_of_the_jvms_compilers_is_counted_apart(tmp_path, children):
    rows = sampled(tmp_path, children([sys.executable, "-c", COMPILING]), children(["sleep", "60"]))
    service_s, jit_s = (sum(row[name] for row in rows) for name in ("service_cpu_s", "service_jit_cpu_s"))
    assert 0.1 * service_s < jit_s < 0.9 * service_s


METRICS = """\
# TYPE kv_store_flushes counter
kv_store_flushes_total 3.0
# TYPE kv_x gauge
kv_x{level="0"} 1.0
# TYPE jvm_threads_current gauge
jvm_threads_current 20.0
"""


def test_sampling_gives_way_to_what_it_measures_and_the_rest_of_the_harness_does_not(tmp_path, children):
    sampler = Sampler(children(["sleep", "60"]).pid, children(["sleep", "60"]).pid, time.monotonic(), tmp_path / "process.csv", tmp_path / "store.csv", str)
    sampler.start()
    time.sleep(0.3)
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "sampler")
    assert (os.getpriority(os.PRIO_PROCESS, thread.native_id), os.getpriority(os.PRIO_PROCESS, 0)) == (19, 0)
    sampler.stop()


def test_files_have_the_columns_and_rows_that_were_sampled(tmp_path, children):
    service, generator = children(["sleep", "60"]), children(["sleep", "60"])
    rows = sampled(tmp_path, service, generator, metrics=lambda: METRICS, length_s=2.3)
    with (tmp_path / "process.csv").open() as file:
        read = list(csv.DictReader(file))
    assert tuple(read[0]) == PROCESS_COLUMNS and len(read) == len(rows)
    with (tmp_path / "store.csv").open() as file:
        store = list(csv.DictReader(file))
    assert store[0] == {"second": "-1", "kv_store_flushes_total": "3.0", "kv_x{level=0}": "1.0"}


def test_service_without_metrics_gives_no_store_file(tmp_path, children):
    sampled(tmp_path, children(["sleep", "60"]), children(["sleep", "60"]), length_s=1.3)
    assert not (tmp_path / "store.csv").exists()


def test_service_that_dies_ends_the_series_and_not_the_sampler(tmp_path, children):
    service, generator = children(["sleep", "60"]), children(["sleep", "60"])

    def failing():
        raise RunFailed("service does not answer")
    sampler = Sampler(service.pid, generator.pid, time.monotonic(), tmp_path / "process.csv", tmp_path / "store.csv", failing)
    sampler.start()
    time.sleep(1.2)
    service.kill()
    service.wait()
    time.sleep(1.2)
    assert [row["second"] for row in sampler.stop()] == [0]


def test_means_and_maxima_of_the_load_are_of_the_measured_seconds_alone():
    rows = [{"second": second, "steal_share": 0.0, "foreign_cpu_share": share, "busy_share": 0.5} for second, share in ((-1, 0.9), (0, 0.1), (1, 0.3))]
    assert load_during(rows)["foreign_cpu_share_mean"] == pytest.approx(0.2)
    assert load_during(rows)["foreign_cpu_share_max"] == 0.3
    assert load_during(rows[:1]) is None


def test_machine_is_as_busy_as_its_kernel_says():
    busy_s, steal_s = machine_times()
    times = psutil.cpu_times()
    assert 0 < busy_s < sum(times) and 0 <= steal_s < sum(times)
    assert -0.01 <= load_now(0.1)["busy_share"] <= 1.1
