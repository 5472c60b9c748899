"""A folder takes the place of another one whole, and what was killed on its way there does not stay."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kvstudy.record.swap import replacing

AT_WORK = """
import sys, time
from pathlib import Path
from kvstudy.record.swap import replacing
with replacing(Path(sys.argv[1])) as new:
    (new / "half").write_text("")
    print("at work", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "page").write_text("before")
    return tmp_path / "study"


@pytest.fixture
def other(folder):
    """Another process that writes a folder for the same place."""
    words = [sys.executable, "-c", AT_WORK, str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "at work\n"
        yield process
        process.kill()


def replace(folder: Path) -> None:
    with replacing(folder) as new:
        (new / "page").write_text("after")


def test_a_new_folder_takes_the_place_of_the_old_one_or_of_none(folder):
    for place in (folder, folder.with_name("first") / "below"):
        replace(place)
        assert (place / "page").read_text() == "after"
        assert [path.name for path in place.parent.iterdir() if path.name.startswith(".")] == []


def test_what_fails_leaves_the_old_folder_and_nothing_beside_it(folder):
    with pytest.raises(KeyboardInterrupt), replacing(folder) as new:
        (new / "page").write_text("half")
        raise KeyboardInterrupt
    assert (folder / "page").read_text() == "before"
    assert list(folder.parent.iterdir()) == [folder]


def test_an_interrupt_between_the_two_renames_loses_nothing(folder, monkeypatch):
    rename = Path.rename

    def interrupted(path, target):
        if target == folder and ".new." in path.name:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace(folder)
    assert (folder / "page").read_text() == "before"
    assert list(folder.parent.iterdir()) == [folder]


def test_what_a_killed_process_left_goes_with_the_next_and_of_one_at_work_nothing(folder, other):
    mine = [".study-of-mine", ".study.bad"]  # of letters that a number in hexadecimal has, too
    for name in mine:
        (folder.parent / name).mkdir()
    for older in (".study.4194304.partial", ".study.4194304.old"):  # as an older kvstudy named them
        (folder.parent / older).mkdir()
    replace(folder)
    (half,) = folder.parent.glob(".study.*.partial")
    assert (half / "half").exists()
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    replace(folder)
    assert sorted(path.name for path in folder.parent.iterdir()) == [*mine, "study"]


def test_two_under_one_pid_as_in_two_containers_do_not_write_into_each_others_folder(folder):
    with replacing(folder) as first:
        (first / "page").write_text("first")
        replace(folder)
        assert (folder / "page").read_text() == "after"
    assert (folder / "page").read_text() == "first"
    assert list(folder.parent.iterdir()) == [folder]


def test_the_old_folder_of_one_killed_between_the_renames_stays_until_there_is_a_new_one(folder):
    old = folder.rename(folder.with_name(".study.4194304.old.partial"))
    with pytest.raises(ValueError), replacing(folder):
        raise ValueError
    assert (old / "page").read_text() == "before"
    for _ in range(2):
        replace(folder)
    assert not old.exists()
