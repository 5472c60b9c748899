"""Tables that grow: what is read again, what is left on disk, and what two builders do to each other."""

import errno
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from duet_maker import DuetMaker
from hdrh.histogram import HdrHistogram

from kvstudy import workers
from kvstudy.analyse import schema, tables
from kvstudy.analyse.tidy import batches, build, part, version
from kvstudy.analyse.tidy.stored import Stored
from kvstudy.errors import KvstudyError
from kvstudy.record.run_folder import SealedRun, seal_digest


@pytest.fixture
def observed(monkeypatch):
    """Run ids in the order in which they were read."""
    read, real = [], part.observe
    monkeypatch.setattr(part, "observe", lambda run: read.append(run.run_id) or real(run))
    return read


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Few runs make several parts."""
    monkeypatch.setattr(batches, "RUNS_MAX", 3)


@pytest.fixture
def tidy(tmp_path) -> Path:
    return tmp_path / "tidy"


def made(make_run, tidy, **options) -> tables.Tables:
    tables.rebuild([make_run.root], tidy, progress=False, **options)
    return tables.load(tidy)


def content(tidy: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tidy)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(tidy.rglob("*"))
        if path.is_file()
    }


def parts(tidy: Path) -> list[Path]:
    """Folders that have the name of a finished part."""
    return sorted(
        path.parent
        for path in tidy.glob(f"*/*/{part.MANIFEST}")
        if not path.parent.name.endswith(part.UNFINISHED)
    )


def unfinished(tidy: Path) -> list[Path]:
    return sorted(tidy.rglob(f"*{part.UNFINISHED}"))


def frames(found: tables.Tables) -> dict[str, pd.DataFrame]:
    return {name: getattr(found, name) for name in schema.TABLES}


def assert_same(one: tables.Tables, other: tables.Tables) -> None:
    for name, frame in frames(one).items():
        pd.testing.assert_frame_equal(frame, getattr(other, name))


def test_tables_are_the_same_bytes_however_they_came_about(make_run, tidy, tmp_path):
    for run_id in ("m", "z", "a", "k", "c", "x"):
        make_run(run_id, stacks={"cpu": f"x;{run_id} 5\n"})
        made(make_run, tidy)
    gone = make_run("g")
    made(make_run, tidy)
    gone.path.rename(tmp_path / "g")
    made(make_run, tidy)
    made(make_run, tmp_path / "at once")
    assert len(parts(tidy)) > 1
    assert content(tidy) == content(tmp_path / "at once")


def test_tables_are_the_same_bytes_whoever_makes_them_and_in_whatever_order(
    make_run, tidy, tmp_path, monkeypatch
):
    for number in range(8):
        make_run(f"run-{number}", experiment=("rates", "tail")[number % 2], stacks={"cpu": f"x;{number} 5\n"})
    made(make_run, tidy)
    monkeypatch.setattr(build, "SPREAD_FROM_RUNS", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2})
    for name, spread in {
        "three processes": workers.processes,
        "backwards": lambda work, tasks: map(work, tasks[::-1]),
    }.items():
        made(make_run, tmp_path / name, spread=spread)
        assert len(parts(tmp_path / name)) > 2 and content(tmp_path / name) == content(tidy)


def test_a_run_is_read_once_whatever_comes_and_goes_beside_it(make_run, tidy, tmp_path, observed):
    for run_id in "bdfhj":
        make_run(run_id)
    made(make_run, tidy)
    assert observed == list("bdfhj")
    made(make_run, tidy)
    make_run("c")
    assert made(make_run, tidy).runs["run_id"].tolist() == list("bcdfhj")
    assert observed == list("bdfhjc")
    (make_run.root / "rates" / "d").rename(tmp_path / "d")
    found = made(make_run, tidy)
    assert (
        found.runs["run_id"].tolist() == list("bcfhj")
        and "d" not in set(found.percentiles["run_id"])
        and "d" not in found.folders
    )
    assert observed == list("bdfhjc")


def test_a_run_sealed_anew_is_read_again(make_run, tidy, tmp_path, observed):
    first = make_run("a")
    made(make_run, tidy)
    first.path.rename(tmp_path / "old")
    make_run("a", label="again")
    assert made(make_run, tidy).runs["label"].tolist() == ["again"]
    assert observed == ["a", "a"]


def rewritten(file: Path, content: bytes) -> bytes:
    """Other content of the same size, and the time set back to what it was; what it was before."""
    before, times = file.read_bytes(), file.stat()
    assert len(before) == len(content)
    file.chmod(0o644)
    file.write_bytes(content)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    return before


def verdicts(found: tables.Tables) -> dict[str, str]:
    return dict(zip(found.runs["run_id"], found.runs["verdict"], strict=True))


@pytest.mark.parametrize("index", ["there", "lost"])
def test_a_run_changed_after_the_tables_were_made_fails_in_the_next_and_passes_again_when_it_is_put_back(
    make_run, tidy, tmp_path, observed, index
):
    for run_id in "abcde":
        make_run(run_id)
    before, named = made(make_run, tidy), parts(tidy)
    log = make_run.root / "rates" / "c" / "service.log"
    old = rewritten(log, log.read_bytes().upper())
    observed.clear()
    if index == "lost":
        (tidy / build.INDEX).unlink()
    changed = made(make_run, tidy)
    assert observed == ["c"]
    assert verdicts(changed) == dict.fromkeys("abde", "PASS") | {"c": "FAIL"}
    (told,) = changed.validity.loc[changed.validity["verdict"] == "FAIL", "observed"]
    assert told.startswith("service.log: changed after sealing")
    assert "c" not in set(changed.believed().runs["run_id"])
    assert_same(made(make_run, tmp_path / "fresh"), changed)
    assert content(tmp_path / "fresh") == content(tidy)
    rewritten(log, old)
    observed.clear()
    assert_same(made(make_run, tidy), before)
    assert observed == ["c"] and parts(tidy) == named


def test_a_folder_put_into_a_run_fails_it_in_the_next_tables_until_it_is_taken_away(make_run, tidy):
    run, _ = make_run("run-1"), make_run("run-2")
    made(make_run, tidy)
    (run.path / "more").mkdir()
    assert verdicts(made(make_run, tidy)) == {"run-1": "FAIL", "run-2": "PASS"}
    (run.path / "more").rmdir()
    assert verdicts(made(make_run, tidy)) == {"run-1": "PASS", "run-2": "PASS"}


def test_a_run_changed_before_it_was_first_read_passes_when_it_is_put_back(make_run, tidy, monkeypatch):
    monkeypatch.setattr(build, "SPREAD_FROM_RUNS", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    for run_id in "abcde":
        make_run(run_id)
    log = make_run.root / "rates" / "c" / "service.log"
    old = rewritten(log, log.read_bytes().upper())
    assert verdicts(made(make_run, tidy, spread=workers.processes))["c"] == "FAIL"
    made_once = content(tidy)
    assert verdicts(made(make_run, tidy))["c"] == "FAIL" and content(tidy) == made_once
    rewritten(log, old)
    assert set(verdicts(made(make_run, tidy)).values()) == {"PASS"}


def test_a_run_whose_times_alone_have_moved_is_not_read_again(make_run, tidy, observed):
    run = make_run("a")
    made(make_run, tidy)
    before = {folder: part.manifest(folder) for folder in parts(tidy)}
    for file in run.path.iterdir():
        os.utime(file)
    made(make_run, tidy)
    assert observed == ["a"] and {folder: part.manifest(folder) for folder in parts(tidy)} == before


def test_a_part_from_another_machine_is_named_by_the_seals_that_its_runs_were_found_with(
    make_run, tidy, tmp_path
):
    run, code = make_run("a"), version.code_version()
    log = run.path / "service.log"
    rewritten(log, log.read_bytes().upper())
    (batch,) = batches.batches([batches.Source("a", seal_digest(run.path), run.path)])
    there = part.make(part.Task(batch, tmp_path / "there", code)).batch
    here = part.adopt(tmp_path / "there" / there.part_name(code), part.Task(batch, tidy, code)).batch
    assert here == there != batch and part.whole(tidy / here.part_name(code))


def test_a_run_that_was_moved_keeps_its_rows(make_run, tmp_path, tidy, observed):
    make_run("a")
    made(make_run, tidy)
    make_run.root.rename(tmp_path / "reference")
    make_run.root = tmp_path / "reference"
    assert made(make_run, tidy).folders["a"] == tmp_path / "reference" / "rates" / "a"
    assert observed == ["a"]


def test_tables_of_other_code_are_made_anew_and_swept_away(make_run, tidy, observed, monkeypatch):
    make_run("a")
    made(make_run, tidy)
    for module in (version, part):
        monkeypatch.setattr(module, "code_version", lambda: "another")
    made(make_run, tidy)
    assert observed == ["a", "a"]
    assert [part.manifest(folder)["version"] for folder in parts(tidy)] == ["another"]


def test_a_process_of_other_code_makes_no_part(make_run, tidy, monkeypatch):
    make_run("a")
    monkeypatch.setattr(part, "code_version", lambda: "another")
    with pytest.raises(KvstudyError, match="other code here"):
        made(make_run, tidy)
    assert parts(tidy) == []


def test_nothing_is_written_when_nothing_changed(make_run, tidy):
    make_run("a")
    made(make_run, tidy)
    before = {path: path.stat().st_mtime_ns for path in (tidy, *tidy.rglob("*"))}
    made(make_run, tidy)
    assert {path: path.stat().st_mtime_ns for path in (tidy, *tidy.rglob("*"))} == before


def test_a_build_interrupted_at_any_file_leaves_what_the_next_one_completes(
    make_run, tidy, tmp_path, monkeypatch, observed
):
    for run_id in "abcdefg":
        make_run(run_id)
    expected = made(make_run, tmp_path / "fresh")
    real, written, last = part._written, [], 0

    def stop_after(count):
        def write(file, table):
            written.append(file)
            if len(written) > count:
                file.write_bytes(b"half")
                raise KeyboardInterrupt
            return real(file, table)

        return write

    for count in (0, 1, 4, 6, 6):
        written.clear()
        monkeypatch.setattr(part, "_written", stop_after(count))
        with pytest.raises(KeyboardInterrupt):
            made(make_run, tidy)
        assert build.read_index(tidy) is None and not list(tidy.rglob("half"))
        assert len(parts(tidy)) >= last and all(part.whole(folder) for folder in parts(tidy))
        last = len(parts(tidy))
    assert last, "no interruption came after a finished part"
    monkeypatch.setattr(part, "_written", real)
    observed.clear()
    assert_same(made(make_run, tidy), expected)
    assert len(observed) < 7, "the finished parts were made again"
    assert content(tidy) == content(tmp_path / "fresh") and not unfinished(tidy)


BUILDER = """
import os, signal
from pathlib import Path
import kvstudy.analyse.tidy.batches as batches
from kvstudy.analyse import tables
from kvstudy.analyse.tidy import part
batches.RUNS_MAX = 3
{before}
print("ready", flush=True)
tables.rebuild([Path({runs!r})], Path({tidy!r}), progress=False)
"""


def test_a_killed_builder_leaves_nothing_that_looks_whole(make_run, tidy, tmp_path):
    seed = random.randrange(1 << 32)
    print(f"seed={seed}")
    for number in range(12):
        make_run(f"run-{number:02d}")
    expected = made(make_run, tmp_path / "fresh")
    program = BUILDER.format(before="", runs=str(make_run.root), tidy=str(tidy))
    for delay_s in random.Random(seed).sample([0.0, 0.02, 0.05, 0.1, 0.15, 0.2], 4):
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as builder:
            builder.stdout.readline()
            time.sleep(delay_s)
            builder.kill()
        assert all(part.whole(folder) for folder in parts(tidy))
        assert not any(part.whole(folder) for folder in unfinished(tidy))
    assert_same(made(make_run, tidy), expected)
    assert content(tidy) == content(tmp_path / "fresh")


def test_of_a_builder_that_was_killed_while_it_wrote_the_index_nothing_stays(make_run, tidy):
    make_run()
    kill = "Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    program = BUILDER.format(before=kill, runs=str(make_run.root), tidy=str(tidy))
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    assert list(tidy.glob(f".{build.INDEX}*"))
    made(make_run, tidy)
    assert {path.name for path in tidy.iterdir() if path.is_file()} == {build.INDEX, build.LOCK}


@pytest.mark.parametrize("killed_by", ["_rows", "_written", "_unreadable", "_name"])
def test_a_part_whose_builder_was_killed_at_any_step_is_made_again(make_run, tidy, tmp_path, killed_by):
    make_run()
    expected = made(make_run, tmp_path / "fresh")
    kill = f"part.{killed_by} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    program = BUILDER.format(before=kill, runs=str(make_run.root), tidy=str(tidy))
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    assert not parts(tidy) and [part.whole(folder) for folder in unfinished(tidy)] == [None]
    assert_same(made(make_run, tidy), expected)
    assert content(tidy) == content(tmp_path / "fresh")


def test_two_builders_at_once_make_the_tables_of_one(make_run, tidy, tmp_path):
    for number in range(12):
        make_run(f"run-{number:02d}")
    expected = made(make_run, tmp_path / "fresh")
    program = f"""
from pathlib import Path
import kvstudy.analyse.tidy.batches as batches
batches.RUNS_MAX = 3
from kvstudy.analyse import tables
for _ in range(3):
    tables.rebuild([Path({str(make_run.root)!r})], Path({str(tidy)!r}), progress=False)
    print(len(tables.load(Path({str(tidy)!r})).percentiles))
"""
    builders = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    answers = [builder.communicate(timeout=120) for builder in builders]
    assert answers == [(f"{len(expected.percentiles)}\n" * 3, "")] * 3
    assert content(tidy) == content(tmp_path / "fresh")


def test_the_lock_of_a_builder_ends_with_it(make_run, tidy):
    make_run("a")
    tidy.mkdir()
    program = (
        f"import fcntl, time; file = open({str(tidy / build.LOCK)!r}, 'w'); fcntl.flock(file, "
        "fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        holder.send_signal(signal.SIGKILL)
        assert made(make_run, tidy).runs["run_id"].tolist() == ["a"]


@pytest.mark.parametrize("refused", [errno.EROFS, errno.EACCES])
def test_tables_that_cannot_be_written_are_read_until_there_is_a_run_that_they_lack(
    make_run, tidy, monkeypatch, refused
):
    make_run("a")
    made(make_run, tidy)
    real = Path.open

    def opened(path, mode="r", *given, **named):
        if set(mode) & set("wax+"):
            raise OSError(refused, os.strerror(refused), str(path))
        return real(path, mode, *given, **named)

    monkeypatch.setattr(Path, "open", opened)
    assert made(make_run, tidy).runs["run_id"].tolist() == ["a"]
    monkeypatch.undo()
    make_run("b")
    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(KvstudyError, match="there are runs that the tables lack") as told:
        made(make_run, tidy)
    assert str(tidy / build.LOCK) in told.value.message and str(tidy) in told.value.hint


@pytest.mark.parametrize(
    "damage", ["cut", "empty", "gone", "flipped", "manifest flipped", "manifest cut", "index cut"]
)
def test_a_damaged_part_is_made_again_and_no_other(make_run, tidy, tmp_path, observed, damage):
    for run_id in "abcdefg":
        make_run(run_id)
    expected = made(make_run, tidy)
    before = content(tidy)
    observed.clear()
    victim = parts(tidy)[1]
    runs_of_it = list(part.manifest(victim)["runs"])
    file = victim / (part.MANIFEST if damage.startswith("manifest") else "intervals.parquet")
    file = tidy / build.INDEX if damage.startswith("index") else file
    old = file.read_bytes()
    if damage == "gone":
        file.unlink()
    elif damage.endswith("flipped"):
        at = old.index(b'"seal": "') + 12 if file.name == part.MANIFEST else len(old) // 2
        file.write_bytes(old[:at] + (b"0" if old[at : at + 1] != b"0" else b"1") + old[at + 1 :])
    else:
        file.write_bytes(old[: 0 if damage == "empty" else len(old) // 2])
    assert_same(made(make_run, tidy), expected)
    assert observed == ([] if damage.startswith("index") else runs_of_it)
    assert content(tidy) == before


def test_damage_that_no_time_tells_of_is_found_when_it_is_read_and_mended_by_the_next_build(
    make_run, tidy, monkeypatch
):
    """What a disk does in silence: no size and no time changes."""
    for run_id in "abcd":
        make_run(run_id)
    expected = made(make_run, tidy)
    file = parts(tidy)[0] / "intervals.parquet"
    histograms = (
        pq.ParquetFile(file).metadata.row_group(0).column(schema.names("intervals").index("histogram"))
    )
    at, old = histograms.data_page_offset + histograms.total_compressed_size // 2, file.read_bytes()
    file.write_bytes(old[:at] + bytes([old[at] ^ 1]) + old[at + 1 :])
    monkeypatch.setattr(
        part, "_unchanged", lambda file, known, _written: file.stat().st_size == known["bytes"]
    )
    with pytest.raises(KvstudyError, match="intervals.parquet: damaged"):
        _ = made(make_run, tidy).intervals
    assert_same(made(make_run, tidy), expected)


def test_what_is_none_of_ours_is_left_alone(make_run, tidy):
    make_run("a")
    (tidy / "notes" / "mine").mkdir(parents=True)
    (tidy / "notes" / "mine" / "text").write_text("x")
    (tidy / "runs.parquet").write_text("as tables were kept before")
    made(make_run, tidy)
    assert (tidy / "notes" / "mine" / "text").read_text() == "x" and not (tidy / "runs.parquet").exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "run.json:1: not JSON"),
        ("[]", "run.json: no JSON object"),
        ('{"run_id": "run-2"}', "run.json lacks "),
        (None, "run has no such file"),
    ],
)
def test_a_run_that_does_not_say_what_it_is_of_is_left_out_with_a_line_and_the_others_are_there(
    make_run, tidy, capsys, text, why
):
    runs = [make_run(f"run-{number}") for number in range(1, 4)]
    file = runs[1].path / "run.json"
    whole = file.read_text()
    file.unlink()
    if text is not None:
        file.write_text(text)
    for _ in range(2):  # who looks again is told again, unless nothing is to be told but the tables
        found = made(make_run, tidy)
        assert list(found.runs["run_id"]) == ["run-1", "run-3"] and "run-2" not in found.folders
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and told.startswith("left out: ") and why in told
    assert f"move {runs[1].path} out of data" in told
    tables.rebuild([make_run.root], tidy, progress=True)
    assert capsys.readouterr().err == told
    file.unlink(missing_ok=True)
    file.write_text(whole)
    assert len(made(make_run, tidy).runs) == 3 and capsys.readouterr().err == ""


def test_a_run_left_out_is_asked_again_by_other_code(make_run, tidy, capsys, monkeypatch):
    run = make_run("run-1")
    with monkeypatch.context() as patched:
        patched.setattr(SealedRun, "why_unknown", "not known yet")
        assert made(make_run, tidy).runs.empty
    assert made(make_run, tidy).runs.empty, "the same code has the same answer"
    for module in (version, part):
        monkeypatch.setattr(module, "code_version", lambda: "another")
    capsys.readouterr()
    assert list(made(make_run, tidy).folders) == [run.run_id] and capsys.readouterr().err == ""


def sealed_anew(run: Path, name: str, change) -> None:
    """Another content of a file, and a seal that fits, as of a run that was never written by kvstudy."""
    stored = next(file for file in (run / name, run / f"{name}.gz") if file.exists())
    text = SealedRun(run).text(name)
    stored.unlink()
    if (changed := change(text)) is not None:
        (run / name).write_text(changed)
    seal(run)


def seal(run: Path) -> None:
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(run.iterdir())
        if file.name != "SHA256SUMS" and not file.is_symlink()
    ]
    (run / "SHA256SUMS").chmod(0o644)
    (run / "SHA256SUMS").write_text("".join(lines))


def facts(**changes):
    return lambda text: json.dumps(
        {name: value for name, value in (json.loads(text) | changes).items() if value is not ...}
    )


def another_layout(log: str) -> str:
    """One second's histogram has two digits where the others have three."""
    found = HdrHistogram(1, 86_400_000_000, 2)
    found.record_value(300)
    lines = log.splitlines(keepends=True)
    at = max(number for number, line in enumerate(lines) if line.startswith("Tag=service"))
    lines[at] = f"{lines[at].rpartition(',')[0]},{found.encode().decode()}\n"
    return "".join(lines)


def without_column(name: str):
    def change(text: str) -> str:
        rows = [line.split(",") for line in text.splitlines()]
        at = rows[0].index(name)
        return "".join(",".join(row[:at] + row[at + 1 :]) + "\n" for row in rows)

    return change


TRIAL = {"purpose": "search", "objective": {"mean": 0.001, "achieved_share": 0.99}}
LEFT_OUT, UNREADABLE, WHOLE = "left out", "unreadable", "whole"
BROKEN = {
    "connections": ("run.json", facts(connections="one"), LEFT_OUT, "TypeError"),
    "no duration": ("run.json", facts(duration_s=None), LEFT_OUT, "TypeError"),
    "generators": ("run.json", facts(generator=["loadgen"]), LEFT_OUT, "TypeError"),
    "large seed": ("run.json", facts(seed=99999999999999999999), LEFT_OUT, "OverflowError"),
    "many digits": ("run.json", lambda _: f'{{"seed": {"9" * 5000}}}', LEFT_OUT, "run.json: not JSON"),
    "deep facts": ("run.json", lambda _: "[" * 100_000, LEFT_OUT, "run.json: not JSON"),
    "no facts": ("run.json", lambda _: None, LEFT_OUT, "run has no such file"),
    "no list of events": ("events.json", lambda _: '{"gc": null}', UNREADABLE, "events.json: not a list: gc"),
    "deep events": ("events.json", lambda _: "[" * 100_000, UNREADABLE, "events.json: RecursionError"),
    "odd lower bounds": (
        "generator.json",
        facts(response_time_at_least=[1]),
        UNREADABLE,
        "generator.json: not what loadgen writes",
    ),
    "another layout": ("latency.hlog", another_layout, UNREADABLE, "a histogram of another layout"),
    "no result": ("generator.json", lambda _: None, UNREADABLE, "generator.json: missing"),
    "no CPU time": ("process.csv", without_column("service_cpu_s"), WHOLE, ""),
}


@pytest.mark.parametrize(("file", "change", "comes_of_it", "why"), BROKEN.values(), ids=BROKEN)
def test_what_others_wrote_into_a_run_costs_its_own_rows_alone_and_its_line_names_it(
    make_run, tidy, tmp_path, capsys, file, change, comes_of_it, why
):
    runs = [make_run(f"run-{number}", search=TRIAL if number == 2 else None) for number in range(1, 5)]
    sealed_anew(runs[1].path, file, change)
    found = made(make_run, tidy)
    told = capsys.readouterr().err
    others = {"run-1": "PASS", "run-3": "PASS", "run-4": "PASS"}
    if comes_of_it == LEFT_OUT:
        assert verdicts(found) == others and set(found.folders) == set(others)
        assert told.count("\n") == 1 and told.startswith("left out: ") and why in told
        assert f"{runs[1].path}" in told
        tables.rebuild([make_run.root], tidy, progress=True)
        assert capsys.readouterr().err == told
    else:
        assert told == ""
        assert verdicts(found) == others | {"run-2": "FAIL" if comes_of_it == UNREADABLE else "PASS"}
        readable = found.validity[found.validity["check"] == "readable"].set_index("run_id")
        assert why in readable.loc["run-2", "observed"]
    assert_same(made(make_run, tmp_path / "fresh"), found)
    assert content(tmp_path / "fresh") == content(tidy)
    make_run("run-5")
    assert set(verdicts(made(make_run, tidy))) == set(verdicts(found)) | {"run-5"}


def test_a_file_that_the_disk_does_not_give_makes_its_run_unreadable_and_no_other(make_run, tidy):
    run, _ = make_run("run-1"), make_run("run-2")
    (run.path / "process.csv.gz").unlink()
    (run.path / "process.csv.gz").symlink_to("/proc/self/mem")  # its first byte is an input/output error
    found = made(make_run, tidy)
    assert verdicts(found) == {"run-1": "FAIL", "run-2": "PASS"}
    (told,) = found.validity.loc[found.validity["verdict"] == "FAIL", "observed"]
    assert "process.csv.gz: cannot be read: input/output error" in told


FACTS_OF_A_ROW = ("label", "comparison", "seed", "profile", "same_within_percent", "parts", "revision")


@pytest.mark.parametrize("missing", [*FACTS_OF_A_ROW, "warm_pairs"])
def test_a_launch_of_a_duet_that_lacks_a_fact_is_left_out_with_a_line_and_the_others_are_there(
    tmp_path, tidy, capsys, missing
):
    make = DuetMaker(tmp_path / "raw")
    first, second = make(launch=1), make(launch=2)

    def without(text: str) -> str:
        found = json.loads(text)
        for one in found["parts"] if missing == "warm_pairs" else [found]:
            del one[missing]
        return json.dumps(found)

    sealed_anew(first.path, "run.json", without)
    tables.rebuild([tmp_path / "raw"], tidy, progress=False)
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("left out: ") and missing in told and str(first.path) in told
    assert Stored(tidy).frame("duets")["run_id"].tolist() == [second.run_id]


def test_a_run_whose_seal_is_gone_is_told_by_every_build(make_run, tidy, capsys):
    run, _ = make_run("run-1"), make_run("run-2")
    (run.path / "SHA256SUMS").unlink()
    assert list(made(make_run, tidy).folders) == ["run-2"]
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(f"left out: {run.path / 'SHA256SUMS'}: seal missing")
    tables.rebuild([make_run.root], tidy, progress=True)
    assert capsys.readouterr().err == told + "\n"


@pytest.mark.parametrize("lost", ["run.json", "service.log", "nothing"])
def test_of_folders_of_one_run_the_one_that_is_whole_is_read_and_the_other_told(make_run, tidy, capsys, lost):
    run = make_run("run-1")
    copy = make_run.root / "aaa" / "run-1"
    shutil.copytree(run.path, copy)
    taken, other = (copy, run.path) if lost == "nothing" else (run.path, copy)
    (copy / lost).unlink(missing_ok=True)
    found = made(make_run, tidy)
    assert found.folders == {"run-1": taken} and verdicts(found) == {"run-1": "PASS"}
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(f"left out: {other}: run run-1 is read from {taken}")


@pytest.mark.parametrize("text", ["[]", "null", "7", "{}", "[" * 100_000], ids=range(5))
def test_an_index_that_is_none_is_made_anew(make_run, tidy, text):
    make_run("run-1")
    before = made(make_run, tidy)
    (tidy / build.INDEX).write_text(text)
    assert_same(made(make_run, tidy), before)


def test_a_copy_of_a_run_beside_it_is_no_other_run(make_run, tidy):
    run = make_run("run-1")
    shutil.copytree(run.path, run.path.with_name("run-1-copy"))
    found = made(make_run, tidy)
    readable = found.validity[found.validity["check"] == "readable"].set_index("run_id")
    assert list(readable["verdict"]) == ["PASS", "FAIL"]
    assert "of run run-1: the folder was copied or renamed" in readable.loc["run-1-copy", "observed"]


def test_a_damaged_description_of_the_machine_makes_its_run_unreadable_and_no_other(make_run, tidy):
    run, _ = make_run("run-1"), make_run("run-2")
    (run.path / "machine.json").chmod(0o644)  # a sealed one may not be written
    (run.path / "machine.json").write_text("")
    found = made(make_run, tidy)
    readable = found.validity[found.validity["check"] == "readable"].set_index("run_id")
    assert list(readable["verdict"]) == ["FAIL", "PASS"]
    assert "machine.json: changed after sealing" in readable.loc["run-1", "observed"]
