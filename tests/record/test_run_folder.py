"""The run folder: sealed runs never change, unsealed ones are never read, a full disk never makes a run look
whole."""

import errno
import gzip
import hashlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from kvstudy.errors import NotSealed, RunFolderError
from kvstudy.record import run_folder
from kvstudy.record.run_folder import (
    REQUIRED_FACTS,
    SCHEMA_VERSION,
    RunWriter,
    open_run,
    partial_runs,
    sealed_runs,
    unsealed_runs,
)
from kvstudy.record.verification import verify, verify_all


def facts(run_id: str) -> dict:
    return dict.fromkeys(sorted(REQUIRED_FACTS)) | {
        "schema_version": 1,
        "run_id": run_id,
        "outcome": "completed",
    }


def sealed_run(root: Path, run_id: str = "run-1", more: dict[str, str] | None = None):
    with RunWriter.create(root, "experiment", run_id) as folder:
        folder.write_json("run.json", facts(run_id))
        folder.write_text("service.log", "Requests/sec: 2000.00\n")
        for name, text in (more or {}).items():
            folder.write_text(name, text)
        return folder.seal()


def test_sealed_run_holds_what_was_written_and_its_checksums(tmp_path):
    run = sealed_run(tmp_path)
    assert run.path == tmp_path / "experiment" / "run-1"
    assert run.facts["outcome"] == "completed"
    assert run.text("service.log") == "Requests/sec: 2000.00\n"
    assert [line.split("  ")[1] for line in run.text("SHA256SUMS").splitlines()] == [
        "run.json",
        "service.log",
    ]
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


def test_bulky_files_are_sealed_packed_and_read_as_if_they_were_not(tmp_path):
    log = "Tag=response,0.000,1.000,7.0,HIST\n" * 500
    run = sealed_run(tmp_path, more={"latency.hlog": log, "cpu.collapsed": "a;b 1\n", "profile.jfr": "FLR"})
    assert {path.name for path in run.path.iterdir()} == {
        "SHA256SUMS",
        "run.json",
        "service.log",
        "latency.hlog.gz",
        "cpu.collapsed.gz",
        "profile.jfr.gz",
    }
    assert (run.has("latency.hlog"), run.has("gc.log")) == (True, False)
    assert (run.text("latency.hlog"), run.text("cpu.collapsed"), run.content("profile.jfr")) == (
        log,
        "a;b 1\n",
        b"FLR",
    )
    assert verify(run.path) == []
    unpacked = subprocess.run(
        ["zcat", run.path / "latency.hlog.gz"], capture_output=True, text=True, check=True
    ).stdout
    assert unpacked == log


def test_the_same_content_is_packed_to_the_same_bytes(tmp_path):
    digests = {
        hashlib.sha256(
            (sealed_run(tmp_path / place, more={"gc.log": "pause\n" * 99}).path / "gc.log.gz").read_bytes()
        ).hexdigest()
        for place in ("here", "there")
    }
    assert len(digests) == 1


def test_a_run_of_schema_1_is_read_as_it_was_written(tmp_path):
    run = sealed_run(tmp_path, more={"gc.log": "pause\n"})
    (run.path / "gc.log").write_bytes(gzip.decompress((run.path / "gc.log.gz").read_bytes()))
    (run.path / "gc.log.gz").unlink()
    assert run.has("gc.log") and run.text("gc.log") == "pause\n"


def test_a_run_of_a_newer_schema_is_refused(tmp_path):
    folder = RunWriter.create(tmp_path, "experiment", "run-1")
    folder.write_json("run.json", facts("run-1") | {"schema_version": SCHEMA_VERSION + 1})
    with pytest.raises(
        RunFolderError, match=rf"newer kvstudy: .*schema_version={SCHEMA_VERSION + 1} known={SCHEMA_VERSION}"
    ):
        _ = folder.seal().facts


@pytest.mark.parametrize(
    "damage",
    [lambda packed: packed[:-12], lambda packed: packed[:40] + b"?" + packed[41:], lambda packed: b"no gzip"],
)
def test_damaged_packing_is_one_error_with_the_file(tmp_path, damage):
    path = (
        sealed_run(tmp_path, more={"gc.log": "".join(f"pause {number}\n" for number in range(999))}).path
        / "gc.log.gz"
    )
    path.chmod(0o644)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RunFolderError, match=r"gc\.log\.gz: not gzip, or cut: "):
        open_run(path.parent).text("gc.log")
    assert [problem.file for problem in verify(path.parent)] == ["gc.log.gz"]


def test_changed_file_is_named(tmp_path):
    run = sealed_run(tmp_path)
    (run.path / "service.log").chmod(0o644)
    (run.path / "service.log").write_text("Requests/sec: 9000.00\n")
    problems = verify(run.path)
    assert [(problem.file, problem.what.split(":")[0]) for problem in problems] == [
        ("service.log", "changed after sealing")
    ]
    assert str(run.path / "service.log") in str(problems[0])


def test_missing_and_added_files_are_named(tmp_path):
    run = sealed_run(tmp_path)
    (run.path / "service.log").unlink()
    (run.path / "notes.txt").write_text("mine")
    assert {(problem.file, problem.what.split(":")[0]) for problem in verify_all(tmp_path)} == {
        ("service.log", "missing"),
        ("notes.txt", "added after sealing"),
    }


def test_checksum_line_that_is_cut_is_a_problem_not_a_pass(tmp_path):
    run = sealed_run(tmp_path)
    sums = run.path / "SHA256SUMS"
    sums.chmod(0o644)
    sums.write_text(sums.read_text()[:-20])
    assert verify(run.path)


def test_checksums_that_are_no_text_are_a_problem_not_a_crash(tmp_path):
    sums = sealed_run(tmp_path).path / "SHA256SUMS"
    sums.chmod(0o644)
    sums.write_bytes(b"\xff\xfe\x00")
    assert any("is not a checksum" in problem.what for problem in verify(sums.parent))


def test_a_run_whose_seal_is_gone_or_empty_is_one_problem(tmp_path):
    whole, gone, empty = (sealed_run(tmp_path, run_id).path for run_id in ("run-1", "run-2", "run-3"))
    RunWriter.create(tmp_path, "experiment", "run-4").write_json("run.json", facts("run-4"))
    (gone / "SHA256SUMS").unlink()
    (empty / "SHA256SUMS").chmod(0o644)
    (empty / "SHA256SUMS").write_text("")
    assert [(problem.run, problem.file, problem.what.split(":")[0]) for problem in verify_all(tmp_path)] == [
        (gone, "SHA256SUMS", "seal missing"),
        (empty, "SHA256SUMS", "seal empty"),
    ]
    assert verify(whole) == []


def test_whatever_else_lies_in_a_run_is_named(tmp_path):
    run = sealed_run(tmp_path)
    (run.path / "more").mkdir()
    (run.path / "gone").symlink_to(tmp_path / "nowhere")
    assert {(problem.file, problem.what.split(":")[0]) for problem in verify(run.path)} == {
        ("more", "added after sealing"),
        ("gone", "added after sealing"),
    }


def test_what_jupyterlab_leaves_beside_a_file_that_it_opens_is_none_of_the_run(tmp_path):
    run = sealed_run(tmp_path)
    (run.path / ".ipynb_checkpoints").mkdir()
    (run.path / ".ipynb_checkpoints" / "run-checkpoint.json").write_text("{}")
    assert verify(run.path) == []


def test_a_seal_names_the_files_of_its_folder_alone(tmp_path):
    run = sealed_run(tmp_path)
    (tmp_path / "outside").write_text("x")
    sums = run.path / "SHA256SUMS"
    sums.chmod(0o644)
    sums.write_text(f"{hashlib.sha256(b'x').hexdigest()}  ../../outside\n{sums.read_text()}")
    assert [(problem.file, problem.what[:24]) for problem in verify(run.path)] == [
        ("SHA256SUMS", "line 1 is not a checksum")
    ]


def test_a_file_that_the_disk_does_not_give_is_a_problem_of_its_run_and_of_no_other(tmp_path):
    run, _ = sealed_run(tmp_path), sealed_run(tmp_path, "run-2")
    log = run.path / "service.log"
    log.unlink()
    log.symlink_to("/proc/self/mem")  # its first byte is an input/output error
    (problem,) = verify_all(tmp_path)
    assert str(problem) == f"{log}: cannot be read: input/output error"
    with pytest.raises(RunFolderError, match="service.log: cannot be read: input/output error"):
        run.text("service.log")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f'{{"schema_version": {SCHEMA_VERSION + 1}}}', "run is of a newer kvstudy"),
        ("{", "run.json:1: not JSON"),
        (f'{{"seed": {"9" * 5000}}}', "run.json: not JSON: Exceeds the limit"),
        ("[" * 100_000, "run.json: not JSON: maximum recursion depth"),
        (None, "run has no such file"),
    ],
    ids=["newer", "cut", "digits", "deep", "missing"],
)
def test_a_run_whose_description_says_nothing_is_a_problem_beside_those_of_other_runs(tmp_path, text, why):
    """The seal fits, as one that somebody wrote anew."""
    run, other = sealed_run(tmp_path), sealed_run(tmp_path, "run-2")
    (other.path / "notes.txt").write_text("mine")
    run.path.joinpath("run.json").unlink()
    if text is not None:
        run.path.joinpath("run.json").write_text(text)
    sums = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(run.path.iterdir())
        if file.name != "SHA256SUMS"
    ]
    (run.path / "SHA256SUMS").chmod(0o644)
    (run.path / "SHA256SUMS").write_text("".join(sums))
    first, second = verify_all(tmp_path)
    assert (first.run, first.file) == (run.path, "run.json") and why in first.what
    assert (second.run, second.file) == (other.path, "notes.txt")


def test_a_run_is_whole_when_it_is_named_from_within(tmp_path, monkeypatch):
    run = sealed_run(tmp_path)
    monkeypatch.chdir(run.path)
    assert verify(Path(".")) == [] and verify_all(Path(".")) == []
    assert [found.run_id for found in sealed_runs(Path("."))] == [run.run_id]
    (run.path / "SHA256SUMS").unlink()
    assert unsealed_runs(Path(".")) == [run.path]


def test_runs_are_found_below_any_depth_and_sorted_by_id(tmp_path):
    for run_id in ("run-3", "run-1", "run-2"):
        sealed_run(tmp_path / "deep" / "er", run_id)
    assert [run.run_id for run in sealed_runs(tmp_path, tmp_path / "deep")] == ["run-1", "run-2", "run-3"]


def test_runs_of_an_experiment_that_lies_on_another_disk_are_found_once_behind_their_link(tmp_path):
    there = sealed_run(tmp_path / "other disk" / "wal", "run-1").path.parent
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "wal").symlink_to(there)
    (there / "back").symlink_to(tmp_path / "raw")
    (there / "run-2.partial").mkdir()
    (run,) = sealed_runs(tmp_path / "raw")
    assert run.path == tmp_path / "raw" / "wal" / "run-1"
    assert partial_runs(tmp_path / "raw") == [tmp_path / "raw" / "wal" / "run-2.partial"]
    (run.path / "run.json").chmod(0o644)  # a sealed one may not be written
    (run.path / "run.json").write_text("{}")
    assert [problem.run for problem in verify_all(tmp_path / "raw")] == [run.path]


def test_a_run_is_found_where_it_lies_whatever_links_lead_to_it(tmp_path):
    run = sealed_run(tmp_path / "wal", "run-1")
    (run.path.parent / "latest").symlink_to(run.path)
    (tmp_path / "aaa").mkdir()
    (tmp_path / "aaa" / "best").symlink_to(run.path)
    assert [found.path for found in sealed_runs(tmp_path)] == [run.path]


@pytest.mark.parametrize("link", ["", "wal"], ids=["the root", "an experiment"])
def test_a_link_to_a_folder_that_is_not_there_is_told(tmp_path, link):
    sealed_run(tmp_path / "other disk" / "wal", "run-1")
    (tmp_path / "raw" / link).parent.mkdir(exist_ok=True)
    (tmp_path / "raw" / link).symlink_to(tmp_path / "other disk" / link)
    assert len(sealed_runs(tmp_path / "raw")) == 1
    (tmp_path / "other disk").rename(tmp_path / "unmounted")
    for find in (sealed_runs, unsealed_runs, partial_runs):
        with pytest.raises(RunFolderError, match="^link to what is not there: .*raw"):
            find(tmp_path / "raw")


def test_the_lock_of_an_editor_is_no_link_to_runs(tmp_path):
    sealed_run(tmp_path / "wal", "run-1")
    (tmp_path / "wal" / ".#notes").symlink_to("somebody@somewhere.1234")
    assert len(sealed_runs(tmp_path)) == 1


def test_a_folder_that_cannot_be_read_is_told_and_not_left_out(tmp_path, monkeypatch):
    sealed_run(tmp_path / "wal", "run-1")
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("wal"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    for find in (sealed_runs, unsealed_runs, partial_runs):
        with pytest.raises(RunFolderError, match="^folder of runs cannot be read: .*wal: permission denied"):
            find(tmp_path)
    assert sealed_runs(tmp_path / "nowhere") == []


def test_bytes_that_are_no_text_do_not_cost_the_run_whose_outcome_names_them(tmp_path):
    writer = RunWriter.create(tmp_path, "experiment", "run-1")
    writer.write_json("run.json", facts("run-1") | {"outcome": "failed: no such file: \udcfcber.lua"})
    assert writer.seal().facts["outcome"] == "failed: no such file: ?ber.lua"


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
    folder.write_text("gc.log", "pause\n" * 999)
    _fill_up(small_disk / "ballast")
    with pytest.raises(RunFolderError, match="disk full: could not seal the run"):
        folder.seal()
    assert sealed_runs(small_disk) == []
    assert not list(small_disk.rglob("SHA256SUMS*"))
    (small_disk / "ballast").unlink()
    run = folder.seal()
    assert verify(run.path) == [] and run.text("gc.log") == "pause\n" * 999


def test_full_disk_while_writing_is_one_clear_error(small_disk):
    folder = RunWriter.create(small_disk, "experiment", "run-1")
    _fill_up(small_disk / "ballast")
    with pytest.raises(RunFolderError, match="disk full: could not write: .*service.log"):
        folder.write_text("service.log", "x" * 10_000)


@pytest.mark.parametrize("failing_call", ["fsync", "rename"])
def test_error_at_any_step_of_sealing_leaves_no_sealed_run(tmp_path, monkeypatch, failing_call):
    folder = RunWriter.create(tmp_path, "experiment", "run-1")
    folder.write_json("run.json", facts("run-1"))

    def no_space(*_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(run_folder.os, "fsync", no_space) if failing_call == "fsync" else patched.setattr(
            Path, "rename", no_space
        )
        with pytest.raises(RunFolderError, match="disk full"):
            folder.seal()
    assert sealed_runs(tmp_path) == []


def test_damaged_run_json_names_file_and_line(tmp_path):
    run = sealed_run(tmp_path)
    (run.path / "run.json").chmod(0o644)
    (run.path / "run.json").write_text('{\n "run_id": \n')
    with pytest.raises(RunFolderError, match=r"run\.json:\d+: not JSON"):
        _ = open_run(run.path).facts


def test_the_hint_of_a_damaged_run_can_be_pasted_also_where_its_path_has_a_space(tmp_path):
    run = sealed_run(tmp_path / "my project")
    (run.path / "run.json").unlink()
    with pytest.raises(RunFolderError) as caught:
        _ = open_run(run.path).facts
    assert shlex.split(caught.value.hint) == ["kvstudy", "verify", str(run.path)]


def test_not_a_number_is_refused_because_it_is_not_json(tmp_path):
    folder = RunWriter.create(tmp_path, "experiment", "run-1")
    with pytest.raises(ValueError):
        folder.write_json("run.json", {"achieved": float("nan")})


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB: a tmpfs where the tests run as root on Linux, which is where CI and
    containers run them."""
    mount_point = tmp_path / "disk"
    mount_point.mkdir()
    mounted = (
        os.geteuid() == 0
        and shutil.which("mount")
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount_point)], capture_output=True
        ).returncode
        == 0
    )
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


def test_a_file_in_the_way_of_the_runs_is_told_with_what_to_do(tmp_path):
    (tmp_path / "raw").write_text("in the way")
    with pytest.raises(
        RunFolderError, match="could not create the run folder: .*: not a directory"
    ) as caught:
        RunWriter.create(tmp_path / "raw", "trial", "run-1")
    assert caught.value.hint.startswith("a file stands where a folder is needed")
