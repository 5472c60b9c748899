"""The 1 Hz series, of real processes: whose CPU it is, and that a second is a second of the measured
window."""

import csv
import os
import re
import subprocess
import sys
import threading
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from kvstudy.hosts.process import wait_until
from kvstudy.measure import kernel_counts
from kvstudy.measure import sampler as sampler_module
from kvstudy.measure.kernel_counts import Pacer, Processes, ProcessTexts, Threads, usage_between
from kvstudy.measure.machine import load_during, load_now
from kvstudy.measure.sampler import PROCESS_COLUMNS, Sampler, machine_times

BUSY = [sys.executable, "-c", "while True: pass"]


@pytest.fixture
def children():
    """Starts processes and ends them."""
    started = []

    def start(argv, **options):
        started.append(subprocess.Popen(argv, **options))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def sampled(tmp_path, service, generator, window_s=1.0) -> list[dict]:
    """Of what goes before the window and its first two seconds."""
    sampler = Sampler((service.pid,), generator.pid, time.monotonic() + window_s, tmp_path / "process.csv")
    sampler.start()
    assert wait_until(lambda: has_read(sampler, 2), 60)
    return sampler.stop()


def has_read(sampler: Sampler, second: int) -> bool:
    """The row of the second before, too: one that is read late is no row where hardly any time is left."""
    read = sampler._readings
    return len(read) > 1 and read[-1][0] >= second and read[-1][1].at - read[-2][1].at > 0.2


def threads_seen(sampler: Sampler) -> int:
    """The most that the service had at one reading."""
    readings = [reading.processes for _, reading in sampler._readings]
    return max((one.service_threads for one in usage_between(readings, sampler._service)), default=0)


def test_cpu_of_service_generator_and_strangers_is_told_apart(tmp_path, children):
    service, generator, _hog = children(BUSY), children(["sleep", "60"]), children(BUSY)
    rows = sampled(tmp_path, service, generator)
    seconds = [row["second"] for row in rows]
    assert seconds[0] >= -1 and seconds[-1] >= 1 and seconds == sorted(set(seconds)), (
        "one that is read over a second late is part of the next"
    )
    total = {
        name: sum(row[name] for row in rows)
        for name in ("service_cpu_s", "generator_cpu_s", "foreign_cpu_share")
    }
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


def voluntary_switches(pid: int) -> int:
    """Of all its threads."""
    statuses = [
        Path(f"/proc/{pid}/task/{thread}/status").read_text() for thread in os.listdir(f"/proc/{pid}/task")
    ]
    return sum(
        int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)[1]) for status in statuses
    )


def test_switches_are_those_of_all_threads_in_that_second_and_threads_that_end_are_no_error(
    tmp_path, children
):
    napping = children([sys.executable, "-c", SWITCHING])
    assert wait_until(lambda: psutil.Process(napping.pid).num_threads() == 2, 60)
    before = voluntary_switches(napping.pid)
    rows = sampled(tmp_path, napping, children(["sleep", "60"]), window_s=0.4)
    in_all = voluntary_switches(napping.pid) - before
    assert 0.5 * in_all < sum(row["service_switches_voluntary"] for row in rows) <= in_all
    assert all(row["service_switches_voluntary"] > 0 and row["service_threads"] == 2 for row in rows)


def test_threads_that_have_ended_are_left_out_and_their_files_closed(children):
    process = children(
        [
            sys.executable,
            "-c",
            "import sys, threading, time\nthreading.Thread(target=sys.stdin.readline).start()\n"
            "time.sleep(600)",
        ],
        stdin=subprocess.PIPE,
    )
    assert wait_until(lambda: psutil.Process(process.pid).num_threads() == 2, 60)
    threads, files = Threads(process.pid), len(os.listdir("/proc/self/fd"))
    assert len(threads.read(Pacer()).statuses) == 2
    assert len(os.listdir("/proc/self/fd")) == files + 2
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert wait_until(lambda: psutil.Process(process.pid).num_threads() == 1, 60)
    assert len(threads.read(Pacer()).statuses) == 1
    assert len(os.listdir("/proc/self/fd")) == files + 1
    threads.close()
    assert len(os.listdir("/proc/self/fd")) == files


def test_sampling_gives_way_to_what_it_measures_and_the_rest_of_the_harness_does_not(tmp_path, children):
    sampler = Sampler(
        (children(["sleep", "60"]).pid,),
        children(["sleep", "60"]).pid,
        time.monotonic(),
        tmp_path / "process.csv",
    )
    before = os.getpriority(os.PRIO_PROCESS, 0)
    sampler.start()
    assert wait_until(lambda: sampler._readings, 60)
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "sampler")
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert (os.getpriority(os.PRIO_PROCESS, thread.native_id), own) == (19, before)
    sampler.stop()


def test_what_others_use_is_counted_also_when_the_kernel_saw_nothing_of_it_when_it_looked(
    tmp_path, children, monkeypatch
):
    monkeypatch.setattr(sampler_module, "machine_times", lambda: (0.0, 0.0))
    children(BUSY)
    rows = sampled(tmp_path, children(["sleep", "60"]), children(["sleep", "60"]))
    assert all(row["busy_share"] >= row["foreign_cpu_share"] > 0.05 for row in rows)


def test_reading_stops_to_breathe_where_every_breath_is_long(monkeypatch):
    breaths = []
    monkeypatch.setattr(kernel_counts.time, "sleep", breaths.append)
    monkeypatch.setattr(kernel_counts, "READING_MAX_S", 0.0)
    read = Processes((), set()).read([], Pacer())
    assert len(read.stats) > 2 and breaths == []


def test_where_not_all_processes_are_seen_the_kernels_own_count_is_taken(tmp_path, children, monkeypatch):
    monkeypatch.setattr(kernel_counts, "_KERNELS_FIRST_THREAD", (2, b"(hidden)"))
    readings = count()
    monkeypatch.setattr(sampler_module, "machine_times", lambda: (100.0 * next(readings), 0.0))
    rows = sampled(tmp_path, children(["sleep", "60"]), children(["sleep", "60"]))
    ours_s = [row["service_cpu_s"] + row["generator_cpu_s"] + row["harness_cpu_s"] for row in rows]
    foreign_s = [row["foreign_cpu_share"] * row["interval_s"] * psutil.cpu_count() for row in rows]
    assert [ours + foreign for ours, foreign in zip(ours_s, foreign_s, strict=True)] == pytest.approx(
        [100.0] * len(rows), rel=1e-4
    )


def of_others(readings: list[ProcessTexts]) -> list[float]:
    return [usage.others_cpu_s for usage in usage_between(readings)]


def of_family(readings: list[ProcessTexts], first: subprocess.Popen) -> list[ProcessTexts]:
    """Of a process and its descendants alone: what else begins on this machine meanwhile is not the
    test's."""
    family = {str(first.pid).encode()}
    for text in (
        text
        for reading in readings
        for text in sorted(reading.stats, key=lambda text: int(kernel_counts._fields(text)[19]))
    ):
        if kernel_counts._fields(text)[1] in family:
            family.add(text.partition(b" ")[0])
    return [
        ProcessTexts([text for text in reading.stats if text.partition(b" ")[0] in family], reading.left_out)
        for reading in readings
    ]


ENDING = f"""
import resource, subprocess, time
limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
busy = subprocess.Popen({BUSY!r}, preexec_fn=limit)
print(busy.pid, flush=True)
busy.wait()
print("ended", flush=True)
time.sleep(60)
"""


def test_what_a_process_used_is_counted_once_also_when_it_has_ended(children):
    """The one that ends does so after a second of its own CPU time, however busy the machine is."""
    others = Processes((), set())
    readings = [others.read([], Pacer())]
    waiting = children([sys.executable, "-c", ENDING], stdout=subprocess.PIPE)
    used_more(psutil.Process(int(waiting.stdout.readline())), 0.3)
    readings.append(others.read([], Pacer()))
    assert waiting.stdout.readline() == b"ended\n"
    readings.append(others.read([], Pacer()))
    while_it_ran_s, afterwards_s = of_others(of_family(readings, waiting))
    assert 0.3 <= while_it_ran_s < while_it_ran_s + afterwards_s < 1.6


IGNORING = f"""
import signal, subprocess, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print(subprocess.Popen({BUSY!r}).pid, flush=True)
time.sleep(60)
"""


def used_more(process: psutil.Process, seconds: float) -> None:
    """Returns when it has used them."""
    until = process.cpu_times().user + seconds
    while process.cpu_times().user < until:
        time.sleep(0.01)


def test_one_that_ends_and_that_nobody_waits_for_takes_nothing_away_from_what_the_others_use(children):
    parent = children([sys.executable, "-c", IGNORING], stdout=subprocess.PIPE)
    ending, hog = psutil.Process(int(parent.stdout.readline())), children(BUSY)
    used_more(ending, 1.0)
    others = Processes((), set())
    before = others.read([], Pacer())
    ending.kill()
    assert wait_until(lambda: not psutil.pid_exists(ending.pid), 60)
    used_more(psutil.Process(hog.pid), 0.2)
    assert of_others([before, others.read([], Pacer())])[0] > 0.19


def stat(pid: int, parent: int, own_s: float, of_children_s: float = 0.0, session: int = 0) -> bytes:
    """As the kernel writes it; the name has what names may have. Started when its number was given."""
    ticks, of_children = (int(seconds * os.sysconf("SC_CLK_TCK")) for seconds in (own_s, of_children_s))
    return b"%d (a ) S 9) S %d 0 %d 0 0 0 0 0 0 0 %d 0 %d 0 20 0 1 0 %d 0 1" % (
        pid,
        parent,
        session,
        ticks,
        of_children,
        pid,
    )


def test_one_that_ends_while_they_are_read_is_counted_one_reading_late_and_once():
    readings = [
        ProcessTexts(stats, frozenset())
        for stats in (
            [stat(1, 0, 4.0, 2.0), stat(7, 1, 10.0), stat(8, 1, 1.0)],
            [stat(1, 0, 4.0, 2.0), stat(8, 1, 1.5)],  # its parent was read before it ended
            [stat(1, 0, 4.0, 12.25), stat(8, 1, 2.0)],
            [stat(1, 0, 4.0, 12.25), stat(8, 1, 2.5)],
        )
    ]
    assert of_others(readings) == pytest.approx([0.5, 0.75, 0.5])


def test_what_nobody_waited_for_is_awaited_for_one_reading_and_no_longer():
    readings = [
        ProcessTexts(stats, frozenset())
        for stats in (
            [stat(1, 0, 0.0), stat(7, 1, 10.0)],
            [stat(1, 0, 0.0)],
            [stat(1, 0, 0.0)],
            [stat(1, 0, 0.0, 0.5)],
        )
    ]
    assert of_others(readings) == pytest.approx([0.0, 0.0, 0.5])


def test_child_of_ours_that_ends_is_not_awaited_with_the_others_and_one_that_begins_counts_whole():
    readings = [
        ProcessTexts(stats, frozenset({b"5"}))
        for stats in (
            [stat(1, 0, 0.0), stat(7, 5, 10.0)],
            [stat(1, 0, 0.0, 0.5)],
            [stat(1, 0, 0.0, 0.5), stat(9, 1, 0.25)],
        )
    ]
    assert of_others(readings) == pytest.approx([0.5, 0.25])


def of_service(readings: list[list[bytes]], *pids: int) -> list[tuple[float, float]]:
    """CPU of the service and of the others, of texts as they are read when kvstudy, number 3, is left out."""
    texts = [ProcessTexts(stats, frozenset({b"3"})) for stats in readings]
    return [
        (usage.service_cpu_s, usage.others_cpu_s)
        for usage in usage_between(texts, frozenset(str(pid).encode() for pid in pids))
    ]


def test_worker_that_the_service_starts_under_load_is_its_own_from_its_first_moment_to_its_end():
    readings = [
        [stat(7, 3, 1.0, session=7), stat(8, 7, 1.0, session=7), stat(1, 0, 5.0)],
        # one more; one that its starter has left to the first process; and one in a session of its own
        [
            *[stat(7, 3, 1.0, session=7), stat(8, 7, 1.5, session=7), stat(1, 0, 5.25)],
            *[stat(9, 7, 2.0, session=7), stat(11, 1, 0.5, session=7), stat(12, 9, 0.25, session=12)],
        ],
        # 9 has ended: 7 waited for it, and 12 is the first process's child now
        [
            *[stat(7, 3, 1.0, 2.5, session=7), stat(8, 7, 1.5, session=7), stat(1, 0, 5.25)],
            *[stat(11, 1, 0.5, session=7), stat(12, 1, 0.75, session=12)],
        ],
        # 11 and 12 have ended, and who waited for them is not the service
        [stat(7, 3, 1.0, 2.5, session=7), stat(8, 7, 1.5, session=7), stat(1, 0, 5.25, 1.25)],
    ]
    assert of_service(readings, 7, 8) == [(3.25, 0.25), (1.0, 0.0), (0.0, 0.0)]


def test_service_that_is_in_a_session_of_others_has_what_it_starts_and_not_what_these_do():
    readings = [
        [stat(6, 1, 1.0, session=6), stat(7, 6, 1.0, session=6)],
        [*[stat(6, 1, 1.5, session=6), stat(7, 6, 2.0, session=6)], stat(9, 7, 0.25, session=6)],
        [*[stat(6, 1, 1.5, session=6), stat(7, 6, 2.0, session=6)], stat(10, 6, 4.0, session=6)],
    ]
    assert of_service(readings, 7) == [(1.25, 0.5), (0.0, 4.0)]


STARTING = f"""
import resource, subprocess, sys
limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
sys.stdin.readline()
while True:
    subprocess.run({BUSY!r}, preexec_fn=limit)
"""


def test_a_worker_that_a_command_starts_while_it_is_loaded_is_the_services(tmp_path, children):
    """One after the other, each of which ends after a second of its own CPU time."""
    service = children([sys.executable, "-c", STARTING], stdin=subprocess.PIPE, start_new_session=True)
    generator = children(["sleep", "60"])
    sampler = Sampler((service.pid,), generator.pid, time.monotonic(), tmp_path / "process.csv")
    sampler.start()
    assert wait_until(lambda: sampler._readings, 60)
    alone = psutil.Process(service.pid).memory_info().rss
    service.stdin.write(b"\n")
    service.stdin.flush()
    # A reading may fall between two workers: its list of processes is made before the next one begins.
    assert wait_until(lambda: has_read(sampler, 3) and threads_seen(sampler) == 2, 60)
    rows = sampler.stop()
    assert sum(row["service_cpu_s"] for row in rows) > 0.3
    assert max(row["service_rss_bytes"] for row in rows) > 1.3 * alone


def test_one_that_ended_since_they_were_looked_for_or_between_two_looks_ends_no_series(tmp_path, children):
    service, generator = children(["sleep", "60"]), children(["sleep", "60"])
    gone, ending = children(["true"]), children(["sleep", "60"])
    gone.wait()
    pids = (service.pid, gone.pid, ending.pid)
    sampler = Sampler(pids, generator.pid, time.monotonic(), tmp_path / "process.csv")
    sampler.start()
    assert wait_until(lambda: has_read(sampler, 1), 60)
    ending.kill()
    ending.wait()
    assert wait_until(lambda: has_read(sampler, 3), 60)
    assert [row["service_threads"] for row in sampler.stop()][-1] == 1


def test_parent_is_read_before_its_child_also_when_numbers_have_begun_anew(monkeypatch):
    read = []
    texts = {"1": stat(1, 0, 0.0), "7": stat(7, 9, 0.0).replace(b" 7 0", b" 99 0"), "9": stat(9, 1, 0.0)}
    monkeypatch.setattr(kernel_counts, "names_in", lambda _: list(texts))
    monkeypatch.setattr(
        kernel_counts, "_read_file", lambda path: read.append(path.split("/")[2]) or texts.get(read[-1], b"")
    )
    others = Processes((), set())
    monkeypatch.setattr(others, "_all_are_seen", True)
    others.read([], Pacer())
    read.clear()
    others.read([], Pacer())
    assert read == ["1", "9", "7"]


def test_file_has_the_columns_and_rows_that_were_sampled(tmp_path, children):
    rows = sampled(tmp_path, children(["sleep", "60"]), children(["sleep", "60"]))
    with (tmp_path / "process.csv").open() as file:
        read = list(csv.DictReader(file))
    assert tuple(read[0]) == PROCESS_COLUMNS and len(read) == len(rows)


def test_seconds_that_a_busy_machine_kept_from_being_read_are_in_the_last_row(
    tmp_path, children, monkeypatch
):
    """The reading of the second before the end lasts until the end is near."""
    service, generator = children(["sleep", "60"]), children(["sleep", "60"])
    sampler = Sampler((service.pid,), generator.pid, time.monotonic(), tmp_path / "process.csv")
    usual, begun = sampler._read, []

    def slow():
        found = usual()
        begun.append(found)
        if len(begun) == 2:
            time.sleep(2.4)
        return found

    monkeypatch.setattr(sampler, "_read", slow)
    sampler.start()
    assert wait_until(lambda: len(begun) == 2, 60)
    time.sleep(2.3)  # the reading is not over yet
    rows = sampler.stop()
    assert rows[-1]["interval_s"] > 2
    covered_s = sum(row["interval_s"] for row in rows)
    assert covered_s == pytest.approx(begun[-1].at - begun[0].at, abs=0.2)


def test_service_that_dies_ends_the_series_and_not_the_sampler(tmp_path, children):
    service, generator = children(["sleep", "60"]), children(["sleep", "60"])
    sampler = Sampler((service.pid,), generator.pid, time.monotonic(), tmp_path / "process.csv")
    sampler.start()
    assert wait_until(lambda: has_read(sampler, 1), 60)
    service.kill()
    service.wait()
    assert wait_until(lambda: not sampler._thread.is_alive(), 60)
    readings = len(sampler._readings)
    assert 1 <= len(sampler.stop()) < readings


def test_means_and_maxima_of_the_load_are_of_the_measured_seconds_alone():
    rows = [
        {
            "second": second,
            "interval_s": 1.0,
            "ended_s": second + 1.0,
            "steal_share": 0.0,
            "foreign_cpu_share": share,
            "busy_share": 0.5,
        }
        for second, share in ((-1, 0.9), (0, 0.1), (1, 0.3))
    ]
    assert load_during(rows)["foreign_cpu_share_mean"] == pytest.approx(0.2)
    assert load_during(rows)["foreign_cpu_share_max"] == 0.3
    assert load_during(rows[:1]) is None
    late = [*rows[:2], rows[2] | {"interval_s": 3.0, "ended_s": 4.0}]
    assert load_during(late)["foreign_cpu_share_mean"] == pytest.approx(0.25), "three seconds of it"
    over_the_start = [rows[0] | {"interval_s": 2.3, "ended_s": 1.3}, rows[2] | {"interval_s": 0.7}]
    assert load_during(over_the_start)["foreign_cpu_share_mean"] == pytest.approx(0.9 * 0.65 + 0.3 * 0.35)


@pytest.fixture
def sampled_when(tmp_path, monkeypatch, children):
    """``sampled_when([0.3, …])``: rows of a sampler that starts 1.5 s before the window and that is woken so
    many seconds late, once each. Its time passes only while it waits, so that the machine adds none."""

    def rows_when(late_s):
        now_s, late = [100.0], iter(late_s)
        monkeypatch.setattr(sampler_module, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
        sampler = Sampler(None, children(["sleep", "60"]).pid, now_s[0] + 1.5, tmp_path / "process.csv")

        def wait(timeout_s):
            late_by_s = next(late, None)
            now_s[0] += timeout_s + (late_by_s or 0.0)
            return late_by_s is None

        monkeypatch.setattr(sampler._over, "wait", wait)
        sampler.start()
        sampler._thread.join()
        return sampler.stop()

    return rows_when


def test_a_row_that_ends_with_its_second_is_not_of_the_next(sampled_when):
    """A window of half a second has no row: of its first 0.2 ms nobody knows anything."""
    rows = sampled_when([0.0002] * 3)
    assert [(row["second"], row["ended_s"]) for row in rows] == [(-2, -1.0), (-1, 0.0), (0, 1.0)]
    assert load_during(rows[:2]) is None


def test_who_is_woken_late_says_when_it_read_and_of_which_second(sampled_when):
    """1.3 s of a machine that stood still when the window began are seconds of the window."""
    before, over, later = sampled_when([0, 1.3, 0])
    assert (before["second"], before["ended_s"], before["interval_s"]) == (-2, -1.0, 0.5)
    assert (over["second"], over["ended_s"], over["interval_s"]) == (0, 1.3, 2.3)
    assert (later["second"], later["ended_s"], later["interval_s"]) == (1, 2.0, 0.7)


def test_machine_is_as_busy_as_its_kernel_says():
    busy_s, steal_s = machine_times()
    times = psutil.cpu_times()
    assert 0 < busy_s < sum(times) and 0 <= steal_s < sum(times)
    assert -0.01 <= load_now(0.1)["busy_share"] <= 1.1


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/a/b\n", {"a/cpu.stat": "usage_usec 9\nthrottled_usec 2500000\n"}, 2.5),
        ("0::/a\n", {"cpu.stat": "usage_usec 9\n"}, 0.0),
        ("4:memory:/m\n3:cpu,cpuacct:/a\n", {"cpu,cpuacct/a/cpu.stat": "throttled_time 2000000000\n"}, 2.0),
        ("1:cpuacct,cpu:/a\n", {"cpu/a/cpu.stat": "throttled_time 500000000\n"}, 0.5),
        ("1:cpu:/of/the/host\n", {"cpu/cpu.stat": "nr_throttled 3\nthrottled_time 1500000000\n"}, 1.5),
        ("4:memory:/m\n", {"memory/m/cpu.stat": "throttled_usec 1\n"}, None),
        ("0::/\n", {}, None),
    ],
)
def test_the_quota_that_counts_is_that_of_our_own_group_or_of_one_above(tmp_path, groups, files, expected):
    own = tmp_path / "cgroup"
    own.write_text(groups)
    for name, text in files.items():
        (tmp_path / "fs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fs" / name).write_text(text)
    found = sampler_module.throttled_by_group(sampler_module.cpu_groups(tmp_path / "fs", own))
    assert max(found.values(), default=None) == expected


def test_where_no_quota_can_be_seen_nothing_is_said_of_one(tmp_path, children, monkeypatch):
    monkeypatch.setattr(sampler_module, "cpu_groups", list)
    rows = sampled(tmp_path, children(["sleep", "60"]), children(["sleep", "60"]))
    assert "throttled_s" not in rows[0] and "steal_share" in rows[0]


def test_a_group_that_is_throttled_now_is_not_hidden_by_one_above_that_was_before(
    tmp_path, children, monkeypatch
):
    seconds = count()
    monkeypatch.setattr(
        sampler_module,
        "throttled_by_group",
        lambda _groups: {Path("/own"): next(seconds) * 0.25, Path("/above"): 100.0},
    )
    rows = sampled(tmp_path, children(["sleep", "60"]), children(["sleep", "60"]))
    assert {row["throttled_s"] for row in rows} == {0.25}
