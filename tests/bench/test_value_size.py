"""Which sizes of values are out of line: planted steps and plateaus are found, and nothing else is."""

import random

import bench_programs
import pytest

LIMIT = 2.0
STEP_S = 0.043  # an answer that waits for the client's delayed acknowledgement
GOAL_KIB = {1, 4, 15, 16, 17, 64, 256, 1024}


@pytest.fixture(scope="module")
def bench():
    return bench_programs.program("service/bench/bench_value_size.py")


def smooth(bench, curve=1.0):
    """50 µs a request and 0.7 µs a KiB; ``curve`` over 1: more of it for large ones."""
    return {size: 50e-6 + 0.7e-6 * size**curve for size in bench.SIZES}


def out_of_line(bench, times):
    return [size for size in times if bench.of_share(times, size) > LIMIT]


def test_every_size_of_the_goal_is_measured_and_held_against_a_line(bench):
    times = smooth(bench)
    assert set(bench.SIZES) >= GOAL_KIB
    assert all(bench.shares(times, size) for size in times)
    assert [bench.of_share(times, size) for size in times] == pytest.approx([1] * len(times))


def test_a_step_of_43_ms_at_16_kib_is_found_there(bench):
    times = {size: s + STEP_S * (size >= 16) for size, s in smooth(bench).items()}
    assert 16 in out_of_line(bench, times)


def test_three_slow_sizes_beside_each_other_do_not_excuse_one_another(bench):
    times = {size: s + STEP_S * (size in (62, 64, 66)) for size, s in smooth(bench).items()}
    assert set(out_of_line(bench, times)) >= {62, 64, 66}


def test_slow_sizes_are_found_wherever_they_begin_and_end(bench):
    sizes = bench.SIZES
    runs = [(i, j) for i in range(len(sizes)) for j in range(i, len(sizes)) if j - i + 1 < len(sizes)]
    for first, last in runs:
        slow = sizes[first : last + 1]
        times = {size: s + STEP_S * (size in slow) for size, s in smooth(bench).items()}
        assert set(out_of_line(bench, times)) & set(slow), slow


@pytest.mark.parametrize("size", sorted(GOAL_KIB))
def test_a_single_size_of_three_times_its_time_is_the_one_that_is_found(bench, size):
    times = smooth(bench)
    times[size] *= 3
    assert size in out_of_line(bench, times)


@pytest.mark.parametrize("curve", [0.9, 1.0, 1.1])
def test_a_noise_of_ten_percent_is_not_out_of_line(bench, curve):
    seed = random.randrange(2**32)
    source = random.Random(seed)
    for _ in range(500):
        times = {size: s * source.uniform(0.9, 1.1) for size, s in smooth(bench, curve).items()}
        assert out_of_line(bench, times) == [], f"seed {seed}"
