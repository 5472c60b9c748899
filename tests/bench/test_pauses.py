"""What a JVM writes of its safepoints and threads is read as it is meant, and judged by the goals."""

import bench_programs
import pytest

STOPS = [
    ("SerialCollectForAllocation", "720000"),
    ("G1PauseRemark", "1500000"),
    ("ZRelocateStartYoung", "     30000"),
    ("PrintThreads", "250000"),
]
LOG = "\n".join(
    f'[12.001s][info][safepoint] Safepoint "{name}", Time since last: 4031123 ns, '
    f"Reaching safepoint: 11000 ns, At safepoint: 700000 ns, Leaving safepoint: 9000 ns, "
    f"Total: {total} ns, Threads: 1 runnable, 24 total"
    for name, total in STOPS
)
THREADS = """\
"main" #3 [4711] prio=5 cpu=53.80ms elapsed=9.32s allocated=2345K defined_classes=620 tid=0x7f waiting
   java.lang.Thread.State: WAITING (parking)
"NIO Selector #0" #27 [4735] prio=5 cpu=812.15ms elapsed=9.1s allocated={selector} defined_classes=3 tid=0
"a name with "quotes" #1" #28 [4736] daemon cpu=0.1ms elapsed=9.1s allocated=512B defined_classes=0
"GC Thread#0" os_prio=0 cpu=3.4ms elapsed=9.3s tid=0x00 nid=4713 runnable
"""


@pytest.fixture(scope="module")
def bench():
    return bench_programs.program("service/bench/bench_pauses.py")


def test_safepoints_of_a_collector_are_told_from_others(bench):
    assert bench.safepoints_ms(LOG) == ([0.72, 1.5, 0.03], [0.25])


def test_threads_are_told_apart_by_their_numbers_and_summed_by_their_names(bench):
    before = bench.allocated(THREADS.format(selector="1000K"))
    after = bench.allocated(THREADS.format(selector="2000K"))
    assert before[("NIO Selector #0", "27")] == 1000 << 10
    assert after[('a name with "quotes" #1', "28")] == 512
    assert len(after) == 3
    found = bench.by_thread(before, after | {("NIO Selector #0", "99"): 24 << 10}, 1024)
    assert found["NIO Selector #0"] == 1024 and found["main"] == 0
    assert bench.of_selectors(found) == 1024


def test_the_port_of_an_acceptor_is_not_told(bench):
    after = {("NIO Acceptor 127.0.0.1:42923 #0", "30"): 2048}
    assert bench.by_thread({}, after, 1024) == {"NIO Acceptor #0": 2.0}


def found(pauses, selector=12.0, rate=50_000.0):
    return {
        "pauses_ms": pauses,
        "bytes_per_request": {"NIO Selector #0": selector, "main": 99.0},
        "result": {"achieved_rate_rps": rate},
    }


def test_what_misses_a_goal_is_named(bench):
    assert bench.misses(found([0.3, 1.0]), 50_000, 1, 32) == []
    assert bench.misses(found([]), 50_000, 1, 32) == []
    assert len(bench.misses(found([0.3, 1.2], selector=40.0, rate=41_000.0), 50_000, 1, 32)) == 3


def test_threads_that_allocate_nothing_worth_a_row_have_none(bench):
    assert bench.shown_threads([{"a": 0.05, "b": 3.0}, {"a": 0.2, "c": 0.01}]) == ["b", "a"]
