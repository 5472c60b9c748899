"""The 1 Hz series, of real processes: whose CPU it is, and that a second is a second of the measured window."""

import csv
import os
import subprocess
import sys
import threading
import time

import psutil
import pytest

from kvstudy.measure import kernel_counts
from kvstudy.measure import sampler as sampler_module
from kvstudy.measure.kernel_counts import Breath, Others, Threads
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


def sampled(tmp_path, service, generator, length_s=3.3, window_s=1.0) -> list[dict]:
    sampler = Sampler(service.pid, generator.pid, time.monotonic() + window_s, tmp_path / "process.csv")
    sampler.start()
    time.sleep(length_s)
    return sampler.stop()


def test_cpu_of_service_generator_and_strangers_is_told_apart(tmp_path, children):
    service, generator, _hog = children(BUSY), children(["sleep", "60"]), children(BUSY)
    rows = sampled(tmp_path, service, generator)
    assert [row["second"] for row in rows] == [-1, 0, 1]
    total = {name: sum(row[name] for row in rows) for name in ("service_cpu_s", "generator_cpu_s", "foreign_cpu_share")}
    assert total["service_cpu_s"] > 0.1 > total["generator_cpu_s"]
    assert total["foreign_cpu_share"] > 0.05 * len(rows)
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


SWITCHING = """
import threading, time
def nap():
    while True: time.sleep(0.001)
threading.Thread(target=nap, daemon=True).start()
time.sleep(60)
"""


def test_switches_are_those_of_all_threads_in_that_second_and_threads_that_end_are_no_error(tmp_path, children):
    rows = sampled(tmp_path, children([sys.executable, "-c", SWITCHING]), children(["sleep", "60"]), length_s=2.5, window_s=0.4)
    whole = [row for row in rows if row["second"] >= 0]
    assert len(whole) == 2 and all(300 < row["service_switches_voluntary"] <= 1_100 and row["service_threads"] == 2 for row in whole)


def test_threads_that_have_ended_are_left_out_and_their_files_closed(children):
    process = children([sys.executable, "-c", "import threading, time\nthreading.Timer(1, time.sleep).start()\ntime.sleep(60)"])
    time.sleep(0.5)
    threads, files = Threads(process.pid), len(os.listdir("/proc/self/fd"))
    assert len(threads.read(Breath()).statuses) == 2
    assert len(os.listdir("/proc/self/fd")) == files + 2
    time.sleep(1)
    assert len(threads.read(Breath()).statuses) == 1
    assert len(os.listdir("/proc/self/fd")) == files + 1
    threads.close()
    assert len(os.listdir("/proc/self/fd")) == files


def test_sampling_gives_way_to_what_it_measures_and_the_rest_of_the_harness_does_not(tmp_path, children):
    sampler = Sampler(children(["sleep", "60"]).pid, children(["sleep", "60"]).pid, time.monotonic(), tmp_path / "process.csv")
    sampler.start()
    time.sleep(0.3)
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "sampler")
    assert (os.getpriority(os.PRIO_PROCESS, thread.native_id), os.getpriority(os.PRIO_PROCESS, 0)) == (19, 0)
    sampler.stop()


def test_what_others_use_is_counted_also_when_the_kernel_saw_nothing_of_it_when_it_looked(tmp_path, children, monkeypatch):
    monkeypatch.setattr(sampler_module, "machine_times", lambda: (0.0, 0.0))
    children(BUSY)
    rows = sampled(tmp_path, children(["sleep", "60"]), children(["sleep", "60"]))
    assert all(row["busy_share"] >= row["foreign_cpu_share"] > 0.05 for row in rows)


def test_reading_stops_to_breathe_where_every_breath_is_long(monkeypatch):
    breaths = []
    monkeypatch.setattr(kernel_counts.time, "sleep", breaths.append)
    monkeypatch.setattr(kernel_counts, "READING_MAX_S", 0.0)
    others = Others(set()).read(Breath())
    assert len(others.stats) > 2 and breaths == []


def test_where_not_all_processes_are_seen_the_kernels_own_count_is_taken(tmp_path, children, monkeypatch):
    monkeypatch.setattr(kernel_counts, "_KERNELS_FIRST_THREAD", (2, b"(hidden)"))
    monkeypatch.setattr(sampler_module, "machine_times", lambda: (0.5 * (psutil.cpu_count() or 1) * time.monotonic(), 0.0))
    rows = sampled(tmp_path, children(["sleep", "60"]), children(["sleep", "60"]))
    assert [row["foreign_cpu_share"] for row in rows] == pytest.approx([0.5] * len(rows), abs=0.1)


def test_what_a_process_used_is_counted_once_also_when_it_has_ended(children):
    waiting = children([sys.executable, "-c", f"import subprocess, time; subprocess.run({['timeout', '1', *BUSY]!r}); time.sleep(60)"])
    ours = {int(pid) for pid in os.listdir("/proc") if pid.isdigit()} - {waiting.pid}
    others = Others(ours)
    time.sleep(0.7)
    while_it_runs = others.read(Breath()).cpu_s()
    time.sleep(1.5)
    after = others.read(Breath()).cpu_s()
    assert 0.05 < while_it_runs <= after < 1.3


def test_file_has_the_columns_and_rows_that_were_sampled(tmp_path, children):
    rows = sampled(tmp_path, children(["sleep", "60"]), children(["sleep", "60"]), length_s=2.3)
    with (tmp_path / "process.csv").open() as file:
        read = list(csv.DictReader(file))
    assert tuple(read[0]) == PROCESS_COLUMNS and len(read) == len(rows)


def test_service_that_dies_ends_the_series_and_not_the_sampler(tmp_path, children):
    service, generator = children(["sleep", "60"]), children(["sleep", "60"])
    sampler = Sampler(service.pid, generator.pid, time.monotonic(), tmp_path / "process.csv")
    sampler.start()
    time.sleep(2.2)
    service.kill()
    service.wait()
    time.sleep(1.2)
    assert [row["second"] for row in sampler.stop()] in ([0], [0, 1])


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
