"""What two processes have used at the borders of slices: their own CPU to the nanosecond, ended threads
included, and what others took."""

import subprocess
import sys
import time

import psutil
import pytest

from kvstudy.hosts.process import wait_until
from kvstudy.measure.border_counters import Border, BorderReader, ProcessCounters, Used, taken

# Works for so many seconds of CPU in a thread that ends, says how much that was, and waits.
WORKER = """
import sys, threading, time
def work():
    while time.thread_time() < float(sys.argv[1]): pass
thread = threading.Thread(target=work); thread.start(); thread.join()
print(time.process_time_ns(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def worker():
    started = []

    def start(cpu_s: float) -> tuple[subprocess.Popen, int]:
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(cpu_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process, int(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.wait()


FAR_NS = 1_000_000_000_000  # borders are so far apart that no machine is slow enough to come to one by itself


def borders_ns(count: int) -> list[int]:
    return [time.time_ns() + number * FAR_NS for number in range(1, count + 1)]


def come_to(reader: BorderReader, border_ns: int, until=lambda _reader: False) -> None:
    """Moves the reader's clock there, and waits until it has read, or for what it does instead."""
    reader._wall_minus_monotonic_ns = border_ns - time.monotonic_ns()
    assert wait_until(lambda: border_ns in reader.at or until(reader), 60, step_s=0.01)


def test_cpu_of_threads_that_have_ended_is_counted_in_nanoseconds(worker):
    process, used_ns = worker(0.2)
    found = ProcessCounters(process.pid).read()
    assert 200_000_000 <= used_ns <= found.cpu_ns < used_ns + 50_000_000
    assert found.cpu_ns % 1_000_000 or ProcessCounters(process.pid).read().cpu_ns % 1_000_000, "not in ticks"
    process.kill()
    process.wait()
    assert ProcessCounters(process.pid).read() is None


def test_borders_are_read_at_their_times_and_none_after_a_side_has_ended(worker):
    (one, _), (other, _) = worker(0.0), worker(0.0)
    borders = borders_ns(3)
    with BorderReader({"a": (one.pid,), "b": (other.pid,)}, borders, set()) as reader:
        come_to(reader, borders[0])
        come_to(reader, borders[1])
        other.kill()
        other.wait()
        come_to(reader, borders[2], until=lambda reader: not reader._thread.is_alive())
    assert sorted(reader.at) == borders[:2]
    assert all(
        border.read_at_ns >= planned and set(border.sides) == {"a", "b"}
        for planned, border in reader.at.items()
    )


def test_the_reader_ends_at_once_when_it_is_over(worker):
    process, _ = worker(0.0)
    began = time.monotonic()
    with BorderReader({"a": (process.pid,), "b": ()}, borders_ns(1), set()):
        pass
    assert time.monotonic() - began < FAR_NS / 10e9


def test_several_processes_of_a_side_are_added_up_and_a_side_of_unknown_ones_is_left_out(worker):
    (one, first_ns), (other, second_ns) = worker(0.05), worker(0.1)
    (at_ns,) = borders_ns(1)
    with BorderReader({"a": (one.pid, other.pid), "b": ()}, [at_ns], set()) as reader:
        come_to(reader, at_ns)
    (border,) = reader.at.values()
    assert list(border.sides) == ["a"] and border.sides["a"].cpu_ns >= first_ns + second_ns


@pytest.mark.parametrize("session", ["the side's", "its own"])
def test_what_a_side_starts_later_is_its_own_and_what_ends_keeps_what_it_used(session):
    """A side's child works for 0.2 s of CPU, is seen at the second border and gone at the third."""
    code = """
import subprocess, sys
sys.stdin.readline()
own = sys.argv[2] == "its own"
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE, start_new_session=own)
print(child.pid, flush=True)
sys.stdin.readline()
child.communicate()
print("ended", flush=True)
sys.stdin.readline()
"""
    child = "import sys, time\nwhile time.process_time() < 0.2: pass\nsys.stdin.read()"
    side = subprocess.Popen(
        [sys.executable, "-c", code, child, session],
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    borders = borders_ns(3)
    try:
        with BorderReader({"a": (side.pid,)}, borders, set()) as reader:
            come_to(reader, borders[0])
            print(file=side.stdin)
            pid = int(side.stdout.readline())
            assert wait_until(lambda: sum(psutil.Process(pid).cpu_times()[:2]) >= 0.19, 60)
            come_to(reader, borders[1])
            print(file=side.stdin)
            assert side.stdout.readline() == "ended\n"
            come_to(reader, borders[2])
        before, _, after = (reader.at[border] for border in borders)
        assert after.sides["a"].cpu_ns - before.sides["a"].cpu_ns >= 150_000_000
        for border in reader.at.values():
            assert str(pid) not in (border.others_ns or {}), "and is nobody else's"
            assert border.read_at_ns <= border.done_at_ns
    finally:
        side.kill()
        side.communicate()


def test_a_wall_clock_that_is_set_moves_no_border_and_is_noted(worker, monkeypatch):
    process, _ = worker(0.0)
    border = time.time_ns() + 2_000_000_000
    wall, began = time.time_ns, time.monotonic()
    with BorderReader({"a": (process.pid,)}, [border], set()) as reader:
        monkeypatch.setattr(time, "time_ns", lambda: wall() + 30_000_000_000)
        time.sleep(0.2)
        # Half a minute later by the wall clock.
        assert not reader.at or time.monotonic() - began >= 1.9
        assert wait_until(lambda: border in reader.at, 60)
    assert border in reader.at and reader.clock_step_ns == pytest.approx(30e9, abs=1e8)


def test_foreign_time_is_that_of_all_other_processes_by_themselves():
    def border(others, sides=("a", "b")):
        return Border(0, {side: Used(0, 0, 0) for side in sides}, others)

    def foreign_ns(before, now):
        return taken(before, now).foreign_ns

    assert foreign_ns(border({"1": 100, "2": 50}), border({"1": 130, "2": 50, "3": 7})) == 37
    assert foreign_ns(border({"1": 100, "9": 10**9}), border({"1": 130})) == 30, (
        "one that ended takes nothing back"
    )
    assert foreign_ns(border({"1": 100}), border({"1": 30})) == 0, "its number was given anew"
    assert foreign_ns(border(None), border({"1": 1})) is None
    assert foreign_ns(border({"1": 1}, sides="a"), border({"1": 9}, sides="a")) is None, "it may be side b"


def test_a_busy_process_is_foreign_unless_it_is_ours(worker):
    (side, _), (busy, _) = worker(0.0), worker(0.0)
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:

        def foreign(ours: set[int]) -> int:
            borders = borders_ns(2)
            with BorderReader({"a": (side.pid,), "b": (busy.pid,)}, borders, ours) as reader:
                come_to(reader, borders[0])
                until = psutil.Process(other.pid).cpu_times().user + 0.05
                assert wait_until(lambda: psutil.Process(other.pid).cpu_times().user >= until, 60)
                come_to(reader, borders[1])
            begin, end = (reader.at[border].others_ns for border in borders)
            if begin is None:
                pytest.skip("not all processes can be seen here")
            return end.get(str(other.pid), 0) - begin.get(str(other.pid), 0)

        assert foreign(set()) > 10_000_000
        assert foreign({other.pid}) == 0
    finally:
        other.kill()
        other.wait()
