"""What a committed copy of a run does without, and that the rest of it is what was sealed."""

import json

import pytest
from hdrh.histogram import HdrHistogram

from kvstudy.record import copies, hdr, interval_log
from kvstudy.record.run_folder import DUET, DUET_FACTS, REQUIRED_FACTS, RunWriter, SealedRun
from kvstudy.record.verification import verify

RESULT = {"counts": {"sent": 7}, "sample": [{"target": "/v0/entity?id=1", "body_sha256": "ab" * 32}] * 200}
SLICES = {"slices": [{"slice": 1, "response_time_ns": {"count": 3}, "service_time_ns": {"count": 3}}]}


@pytest.fixture
def sealed(tmp_path):
    """``sealed({"generator.json": …}, kind=DUET)``: a run of these JSON files."""

    def seal(files: dict, **facts):
        required = DUET_FACTS if facts.get("kind") == DUET else REQUIRED_FACTS
        with RunWriter.create(tmp_path / "raw", "rates", "run-1") as folder:
            known = {"schema_version": 3, "run_id": "run-1", "outcome": "completed", **facts}
            folder.write_json("run.json", dict.fromkeys(sorted(required)) | known)
            for name, content in files.items():
                folder.write_json(name, content)
            return folder.seal()

    return seal


def copied(run, tmp_path) -> SealedRun:
    copies.copy(run, tmp_path / "copy" / "run-1")
    return SealedRun(tmp_path / "copy" / "run-1")


def test_the_sampled_requests_are_left_out_of_the_copy_and_it_is_whole(sealed, tmp_path):
    run = sealed({"generator.json": RESULT})
    copy = copied(run, tmp_path)
    assert json.loads(copy.text("generator.json")) == {"counts": {"sent": 7}}
    assert verify(copy.path) == [] and verify(run.path) == []
    assert (copy.path / "run.json").read_bytes() == (run.path / "run.json").read_bytes()
    assert not any(path.stat().st_mode & 0o222 for path in copy.path.iterdir())


def test_of_a_duets_slices_the_response_times_are_copied(sealed, tmp_path):
    run = sealed({"generator-put-rate.json": RESULT | {"alternate": SLICES}}, kind=DUET)
    (one,) = json.loads(copied(run, tmp_path).text("generator-put-rate.json"))["alternate"]["slices"]
    assert one == {"slice": 1, "response_time_ns": {"count": 3}}


def test_a_result_without_a_sample_is_copied_byte_for_byte(sealed, tmp_path):
    run = sealed({"generator.json": {"counts": {"sent": 7}}})
    copy = copied(run, tmp_path)
    assert {path.name: path.read_bytes() for path in copy.path.iterdir()} == {
        path.name: path.read_bytes() for path in run.path.iterdir()
    }


def log_of(interval_s: float) -> str:
    """Three seconds of answers."""
    histogram = HdrHistogram(1, 86_400_000_000, 3)
    histogram.record_value(70)
    text = histogram.encode().decode()
    starts = [interval_s * number for number in range(round(3 / interval_s))]
    return "".join(f"Tag=response,{start:.3f},{interval_s:.3f},70.0,{text}\n" for start in starts)


@pytest.mark.parametrize(
    ("experiment", "interval_s", "lines"),
    [("rates", 0.25, 3), (copies.BY_THE_MOMENT, 0.25, 12), ("rates", 1.0, 3)],
)
def test_a_log_finer_than_seconds_is_copied_where_pages_show_it(tmp_path, experiment, interval_s, lines):
    with RunWriter.create(tmp_path / "raw", experiment, "run-1") as folder:
        known = {"schema_version": 3, "run_id": "run-1", "outcome": "completed"}
        folder.write_json("run.json", dict.fromkeys(sorted(REQUIRED_FACTS)) | known)
        folder.write_text("latency.hlog", log_of(interval_s))
        run = folder.seal()
    copy = copied(run, tmp_path)
    found = interval_log.read(copy.text("latency.hlog"), "latency.hlog")
    assert len(found) == lines and sum(hdr.decode(one.histogram).total for one in found) == 3 / interval_s
    assert verify(copy.path) == []


def test_the_size_that_is_told_is_that_of_the_copy_but_for_its_seal(sealed, tmp_path):
    run = sealed({"generator.json": RESULT, "gc.log": {}})
    copy = copied(run, tmp_path)
    assert not copy.has("gc.log")
    files = [path for path in copy.path.iterdir() if path.name != "SHA256SUMS"]
    size = sum(path.stat().st_size for path in files) + (run.path / "SHA256SUMS").stat().st_size
    assert copies.size_bytes(run) == size
