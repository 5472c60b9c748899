"""A memory group: its limit holds, who is killed for it is told, and it goes whatever happens; of either
version of cgroups, and in one line where there is none."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from memory_groups import can_make_groups

from kvstudy.hosts import memory_group
from kvstudy.hosts.memory_group import MemoryGroup, NoMemoryGroup, drop_left_behind, forget_pages, try_out
from kvstudy.hosts.process import wait_until
from kvstudy.hosts.session import Session

MIB = 1 << 20
V1_ROOT, V2_ROOT = "4:memory:/\n", "0::/\n"


@pytest.fixture
def system(tmp_path, monkeypatch):
    """``system("0::/a.slice\\n", {"cgroup.controllers": "memory"})``: another tree of groups."""

    def made(membership: str, files: dict[str, str]) -> Path:
        root = tmp_path / "cgroup"
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
        (tmp_path / "self").write_text(membership)
        monkeypatch.setattr(memory_group, "CGROUPS", root)
        monkeypatch.setattr(memory_group, "MEMBERSHIP", tmp_path / "self")
        return root

    return made


@can_make_groups
def test_who_takes_more_than_the_limit_is_killed_and_nobody_else():
    with MemoryGroup(64 * MIB) as group:
        large, small = (
            subprocess.run(
                [*group.prefix, sys.executable, "-c", f"bytearray(b'x') * ({size} << 20)"]
            ).returncode
            for size in (300, 10)
        )
        assert group.directory.is_dir()
    assert (large, small, group.killed) == (-9, 0, True)
    assert 30 * MIB < group.peak_bytes <= 64 * MIB and not group.directory.exists()
    assert group.facts["limit_bytes"] == 64 * MIB


@can_make_groups
def test_a_group_that_was_large_enough_killed_nobody_and_goes_after_its_last_process():
    with MemoryGroup(64 * MIB) as group:
        process = subprocess.Popen([*group.prefix, "cat"], stdin=subprocess.PIPE)
        members = group.directory / "cgroup.procs"
        assert wait_until(lambda: str(process.pid) in members.read_text().split(), 60)
        threading.Timer(0.3, process.stdin.close).start()
    assert not group.killed and not group.directory.exists() and process.wait() == 0


@can_make_groups
def test_what_a_killed_measurement_left_behind_goes_when_the_next_one_begins(tmp_path):
    code = "from kvstudy.hosts.memory_group import *; print(MemoryGroup(1 << 26).__enter__().directory)"
    left = Path(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())
    assert left.is_dir()
    with MemoryGroup(64 * MIB) as mine, Session(tmp_path):
        assert mine.directory.is_dir() and not left.exists()


@can_make_groups
def test_pages_that_are_forgotten_have_to_be_read_again(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "table").write_bytes(b"x" * 32 * MIB)
    forget_pages(tmp_path)
    with MemoryGroup(128 * MIB) as group:
        subprocess.run([*group.prefix, "cat", str(tmp_path / "below" / "table")], stdout=subprocess.DEVNULL)
        assert group.peak_bytes > 30 * MIB  # else they would be charged to whoever wrote them


def test_version_1_limits_memory_and_swap_below_ones_own_group(system):
    root = system("4:memory:/own\n0::/\n", {"memory/own/memory.limit_in_bytes": "9"})
    group = MemoryGroup(5 * MIB)
    with group:
        assert group.version == 1 and group.directory.parent == root / "memory" / "own"
        for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
            assert (group.directory / name).read_text() == str(5 * MIB)
        (group.directory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
        for file in group.directory.iterdir():  # a real group's files go with it
            if file.name != "memory.oom_control":
                file.unlink()
        assert group.killed
        (group.directory / "memory.oom_control").unlink()
    assert not group.directory.exists()


@pytest.mark.parametrize(
    ("delegated", "parent"),
    [
        ({"user/app/cgroup.subtree_control": "memory pids"}, "user/app"),
        ({"user/cgroup.subtree_control": "cpu memory", "user/app/own/cgroup.procs": ""}, "user"),
        ({"user/app/cgroup.subtree_control": "cpu"}, ""),
    ],
    ids=["the group above", "further up", "nothing delegated"],
)
def test_version_2_makes_its_groups_where_memory_is_delegated(system, delegated, parent):
    root = system("0::/user/app/own\n", {"cgroup.controllers": "cpu memory", **delegated})
    with MemoryGroup(5 * MIB) as group:
        assert group.version == 2 and group.directory.parent == root / parent
        assert (group.directory / "memory.max").read_text() == str(5 * MIB)
        assert (group.directory / "memory.swap.max").read_text() == "0"
        (group.directory / "memory.events").write_text("low 0\noom 1\noom_kill 1\noom_group_kill 0\n")
        assert group.killed
        for file in group.directory.iterdir():
            file.unlink()


@pytest.mark.parametrize("membership", ["0::/\n", "1:cpu:/\n", ""])
def test_a_system_without_memory_groups_is_one_line(system, membership):
    system(membership, {"cgroup.controllers": "cpu io"})
    with pytest.raises(NoMemoryGroup, match="^this system has no memory groups") as missing:
        try_out()
    assert missing.value.hint
    drop_left_behind()


def test_who_may_not_make_a_group_is_told_where_and_what_to_do(system, tmp_path):
    system(V2_ROOT, {"cgroup.controllers": "memory"})
    (tmp_path / "cgroup").rename(tmp_path / "elsewhere")
    (tmp_path / "cgroup").symlink_to("/proc/self/fdinfo")  # where not even root makes a folder
    system_has_it = memory_group.Controller(
        2, tmp_path / "cgroup", "memory.max", ("memory.swap.max", "0"), "memory.peak", "memory.events"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory_group, "controller", lambda: system_has_it)
        with pytest.raises(NoMemoryGroup, match="^cannot make a memory group: .*: .*/cgroup/kvstudy-") as no:
            try_out()
    assert "run as root" in no.value.hint
