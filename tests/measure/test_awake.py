"""Processors kept awake while a run is measured."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from kvstudy.errors import RunFailed
from kvstudy.measure import awake


@pytest.fixture
def device(tmp_path) -> Path:
    """A file in the device's place: whether the kernel heeds what is written to it is the kernel's."""
    path = tmp_path / "cpu_dma_latency"
    path.touch()
    return path


def test_inside_the_device_is_held_open_with_a_latency_of_zero(device):
    with awake.kept_awake("auto", device) as facts:
        assert facts == {"processors_awake": True}
        held = [
            Path(f"/proc/self/fd/{number}").resolve()
            for number in os.listdir("/proc/self/fd")
            if Path(f"/proc/self/fd/{number}").exists()
        ]
        assert held.count(device) == 1
    assert device.read_bytes() == struct.pack("=i", 0)
    assert device not in [Path(f"/proc/self/fd/{number}").resolve() for number in os.listdir("/proc/self/fd")]


def test_who_does_not_want_it_gets_sleeping_processors_and_the_run_says_so(device):
    with awake.kept_awake(False, device) as facts:
        assert facts == {"processors_awake": False, "processors_asleep_why": "not asked for"}
    assert device.read_bytes() == b""


def test_it_is_told_before_anything_is_measured(device, tmp_path):
    assert awake.note("auto", device) is None and awake.note(False, tmp_path / "none") is None
    assert (
        awake.note("auto", tmp_path / "none")
        == f"note: processors sleep between requests: there is no {tmp_path / 'none'}; {awake.HINT}"
    )
    with pytest.raises(RunFailed, match="cannot be kept awake"):
        awake.note(True, tmp_path / "none")


def test_where_it_cannot_be_the_run_says_why_unless_it_was_demanded(tmp_path):
    missing = tmp_path / "none"
    with awake.kept_awake("auto", missing) as facts:
        assert facts == {"processors_awake": False, "processors_asleep_why": f"there is no {missing}"}
    with pytest.raises(RunFailed, match="cannot be kept awake: there is no"), awake.kept_awake(True, missing):
        pass


@pytest.mark.skipif(awake.problem() is not None, reason=f"{awake.problem()}")
def test_a_command_runs_with_the_device_held_by_its_own_process():
    code = (
        "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if "
        "os.path.exists(f'/proc/self/fd/{n}')])"
    )
    out = subprocess.run(
        [sys.executable, "-m", "kvstudy.measure.awake", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert str(awake.DEVICE) in out
