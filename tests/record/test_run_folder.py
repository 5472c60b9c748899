"""The run folder: sealed runs never change, unsealed ones are never read, a full disk never makes a run look whole."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kvstudy.errors import NotSealed, RunFolderError
from kvstudy.record import run_folder
from kvstudy.record.run_folder import REQUIRED_FACTS, RunWriter, open_run, partial_runs, sealed_runs, verify, verify_all


def facts(run_id: str) -> dict:
    return dict.fromkeys(sorted(REQUIRED_FACTS)) | {"schema_version": 1, "run_id": run_id, "outcome": "completed"}


def sealed_run(root: Path, run_id: str = "run-1"):
    with RunWriter.create(root, "experiment", run_id) as folder:
        folder.write_json("run.json", facts(run_id))
        folder.write_text("generator.txt", "Requests/sec: 2000.00\n")
        return folder.seal()


def test_sealed_run_holds_what_was_written_and_its_checksums(tmp_path):
    run = sealed_run(tmp_path)
    assert run.path == tmp_path / "experiment" / "run-1"
    assert run.facts["outcome"] == "completed"
    assert run.text("generator.txt") == "Requests/sec: 2000.00\n"
    assert [line.split("  ")[1] for line in run.text("SHA256SUMS").splitlines()] == ["generator.txt", "run.json"]
    assert verify(run.path) == []


def test_checksums_are_those_of_sha256sum(tmp_path):
    run = sealed_run(tmp_path)
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=run.path, check=True)


def test_unsealed_run_is_never_read(tmp_path):
    with RunWriter.create(tmp_path, "experiment", "run-1") as folder:
        folder.write_json("run.json", facts("run-1"))
    assert sealed_runs(tmp_path) == []
    assert partial_runs(tmp_path) == [tmp_path / "experiment" / "run-1.partial"]
    with pytest.raises(NotSealed):
        open_run(tmp_path / "experiment" / "run-1.partial")


def test_partial_folder_is_not_read_even_when_it_holds_checksums(tmp_path):
    run = sealed_run(tmp_path)
    run.path.rename(run.path.with_name("run-1.partial"))
    assert sealed_runs(tmp_path) == []
    with pytest.raises(NotSealed):
        open_run(run.path.with_name("run-1.partial"))


def test_folder_without_checksums_is_not_sealed(tmp_path):
    run = sealed_run(tmp_path)
    (run.path / "SHA256SUMS").unlink()
    assert sealed_runs(tmp_path) == []
    with pytest.raises(NotSealed, match="not a sealed run"):
        open_run(run.path)


def test_sealed_run_cannot_be_written_through_its_writer(tmp_path):
    folder = RunWriter.create(tmp_path, "experiment", "run-1")
    folder.write_json("run.json", facts("run-1"))
    run = folder.seal()
    with pytest.raises(AssertionError):
        folder.write_text("late.txt", "too late")
    assert all(not path.stat().st_mode & 0o222 for path in run.path.iterdir())


def test_run_of_the_same_id_is_not_written_over(tmp_path):
    sealed_run(tmp_path)
    with pytest.raises(RunFolderError, match="run exists already"):
        RunWriter.create(tmp_path, "experiment", "run-1")


def test_changed_file_is_named(tmp_path):
    run = sealed_run(tmp_path)
    (run.path / "generator.txt").chmod(0o644)
    (run.path / "generator.txt").write_text("Requests/sec: 9000.00\n")
    problems = verify(run.path)
    assert [(problem.file, problem.what.split(":")[0]) for problem in problems] == [("generator.txt", "changed after sealing")]
    assert str(run.path / "generator.txt") in str(problems[0])


def test_missing_and_added_files_are_named(tmp_path):
    run = sealed_run(tmp_path)
    (run.path / "generator.txt").unlink()
    (run.path / "notes.txt").write_text("mine")
    assert {(problem.file, problem.what.split(":")[0]) for problem in verify_all(tmp_path)} == {
        ("generator.txt", "missing"), ("notes.txt", "added after sealing")}


def test_checksum_line_that_is_cut_is_a_problem_not_a_pass(tmp_path):
    run = sealed_run(tmp_path)
    sums = run.path / "SHA256SUMS"
    sums.chmod(0o644)
    sums.write_text(sums.read_text()[:-20])
    assert verify(run.path)


def test_runs_are_found_below_any_depth_and_sorted_by_id(tmp_path):
    for run_id in ("run-3", "run-1", "run-2"):
        sealed_run(tmp_path / "deep" / "er", run_id)
    assert [run.run_id for run in sealed_runs(tmp_path, tmp_path / "deep")] == ["run-1", "run-2", "run-3"]


def test_run_without_whole_run_json_is_not_sealed(tmp_path):
    folder = RunWriter.create(tmp_path, "experiment", "run-1")
    with pytest.raises(RunFolderError, match="without its run.json"):
        folder.seal()
    folder.write_json("run.json", {"run_id": "run-1"})
    with pytest.raises(RunFolderError, match="lacks facts.*warm_up_s"):
        folder.seal()
    folder.write_json("run.json", facts("another-run"))
    with pytest.raises(RunFolderError, match="another run"):
        folder.seal()
    assert sealed_runs(tmp_path) == []


def test_full_disk_while_sealing_is_one_clear_error_and_no_sealed_run(small_disk):
    folder = RunWriter.create(small_disk, "experiment", "run-1")
    folder.write_json("run.json", facts("run-1"))
    _fill_up(small_disk / "ballast")
    with pytest.raises(RunFolderError, match="disk full: could not seal the run"):
        folder.seal()
    assert sealed_runs(small_disk) == []
    assert not list(small_disk.rglob("SHA256SUMS*"))
    (small_disk / "ballast").unlink()
    assert verify(folder.seal().path) == []


def test_full_disk_while_writing_is_one_clear_error(small_disk):
    folder = RunWriter.create(small_disk, "experiment", "run-1")
    _fill_up(small_disk / "ballast")
    with pytest.raises(RunFolderError, match="disk full: could not write: .*generator.txt"):
        folder.write_text("generator.txt", "x" * 10_000)


@pytest.mark.parametrize("failing_call", ["fsync", "rename"])
def test_error_at_any_step_of_sealing_leaves_no_sealed_run(tmp_path, monkeypatch, failing_call):
    folder = RunWriter.create(tmp_path, "experiment", "run-1")
    folder.write_json("run.json", facts("run-1"))

    def no_space(*_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(run_folder.os, "fsync", no_space) if failing_call == "fsync" else patched.setattr(Path, "rename", no_space)
        with pytest.raises(RunFolderError, match="disk full"):
            folder.seal()
    assert sealed_runs(tmp_path) == []


def test_damaged_run_json_names_file_and_line(tmp_path):
    run = sealed_run(tmp_path)
    (run.path / "run.json").chmod(0o644)
    (run.path / "run.json").write_text('{\n "run_id": \n')
    with pytest.raises(RunFolderError, match=r"run\.json:\d+: not JSON"):
        open_run(run.path).facts


def test_not_a_number_is_refused_because_it_is_not_json(tmp_path):
    folder = RunWriter.create(tmp_path, "experiment", "run-1")
    with pytest.raises(ValueError):
        folder.write_json("run.json", {"achieved": float("nan")})


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB: a tmpfs where the tests run as root on Linux, which is where CI and containers run them."""
    mount_point = tmp_path / "disk"
    mount_point.mkdir()
    mounted = os.geteuid() == 0 and shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount_point)], capture_output=True).returncode == 0
    if not mounted:
        pytest.skip("mounting a small file system needs root; the injected errors above cover the same paths")
    yield mount_point
    subprocess.run(["umount", str(mount_point)], check=True)


def _fill_up(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError as error:
                assert error.errno == errno.ENOSPC
