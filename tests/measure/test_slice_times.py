"""When loadgen says that its slices will be, asked of the real one. (That it keeps to it: loadgen's tests,
and duets that would fail otherwise.)"""

import pytest
from project import PROJECT

from kvstudy.errors import RunFailed
from kvstudy.measure import slice_times
from kvstudy.measure.slice_times import planned_times
from kvstudy.project import loadgen_binary

pytestmark = pytest.mark.machine

MS = 1_000_000


def command(*options: str) -> list[str]:
    two = ("--alternate", "http://127.0.0.1:1/", "http://127.0.0.1:1/")
    lengths = ("--slice", "650ms", "--settle", "150ms", "-d", "8350ms", "--warmup", "3340ms")
    return [str(loadgen_binary(PROJECT)), "-R100", "-c1", "-t1", *lengths, *two, *options]


def test_the_borders_of_a_part_are_known_before_it_starts():
    times = planned_times(command("--gap", "20ms..350ms", "--order", "random", "--seed", "7"), {}, 6)
    assert len(times.counted) == 6
    assert times.counted[0][0] == times.measured_from + 150 * MS
    assert all(end - begin == 500 * MS for begin, end in times.counted)
    gaps = [
        after - end - 150 * MS for (_, end), (after, _) in zip(times.counted, times.counted[1:], strict=False)
    ]
    assert len(set(gaps)) == 5 and all(20 * MS <= gap <= 350 * MS for gap in gaps)
    later = times.after(1_000)
    assert later.measured_from == times.measured_from + 1_000
    assert later.borders == sorted(1_000 + border for border in times.borders) and len(later.borders) == 13


def test_options_that_loadgen_refuses_and_other_slices_than_asked_for_are_one_line():
    with pytest.raises(RunFailed, match="exit 1: not a pause, nor a range of pauses: --gap"):
        planned_times(command("--gap", "soon"), {}, 6)
    with pytest.raises(RunFailed, match="other slices than were asked for: asked=8 planned=6"):
        planned_times(command("--gap", "20ms..350ms"), {}, 8)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("#!/bin/sh\necho '{\"slices\": [{}'\n", "slices cannot be read: JSONDecodeError: "),
        ("#!/bin/sh\necho '{\"slices\": [{}]}'\n", "slices cannot be read: KeyError: 'measured'"),
        ("#!/bin/sh\nexec sleep 10\n", "did not say its slices within 0.2 s"),
        (None, "generator failed: .*/loadgen: no such file or directory"),
    ],
)
def test_a_generator_that_says_nothing_of_use_is_one_line(tmp_path, monkeypatch, program, told):
    path = tmp_path / "loadgen"
    if program:
        path.write_text(program)
        path.chmod(0o755)
    monkeypatch.setattr(slice_times, "ASKING_MAX_S", 0.2 if "sleep" in (program or "") else 30.0)
    with pytest.raises(RunFailed, match=told) as failed:
        slice_times.planned_times([str(path)], {}, 1)
    assert "\n" not in str(failed.value)
