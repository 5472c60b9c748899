"""slices.csv and the histograms of a duet's launch, read from files as they are sealed."""

import json

import pandas as pd
import pytest
from hdrh.histogram import HdrHistogram

from kvstudy.errors import FormatError, RunFolderError
from kvstudy.record import duet
from kvstudy.record.run_folder import DUET_FACTS, SCHEMA_VERSION, RunWriter

SLICE = {
    "workload": "put",
    "loop": "rate",
    "round": 1,
    "slice": 0,
    "side": "a",
    "begin_utc_ns": 1_795_207_345_000_000_001,
    "end_utc_ns": 1_795_207_345_500_000_001,
    "due": 1000,
    "answered": 1000,
    "errors": 0,
    "late": 0,
    "rate_rps": 2000.0,
    "mean_ns": 21000.5,
    "p50_ns": 20015,
    "p90_ns": 30015,
    "p99_ns": 90111,
    "cpu_ns": 21_000_000,
    "idle_cpu_ns": 900_000,
}


def text(*changes: dict) -> str:
    return duet.write_slices(pd.DataFrame([SLICE | change for change in changes]))


def histogram(values_ns) -> str:
    found = HdrHistogram(1, 86_400_000_000_000, 3)
    for value in values_ns:
        found.record_value(value)
    return found.encode().decode()


def test_slices_are_read_back_as_they_were_written_to_the_nanosecond():
    slices = duet.read_slices(text({}, {"slice": 1, "side": "b"}), "slices.csv")
    assert list(slices.columns) == list(duet.SLICES)
    assert slices["begin_utc_ns"].tolist() == [SLICE["begin_utc_ns"]] * 2 and slices["side"].tolist() == [
        "a",
        "b",
    ]
    assert slices["written_bytes"].isna().all()


def test_a_file_without_the_optional_columns_is_read():
    lines = [line.split(",") for line in text({}).splitlines()]
    shorter = "\n".join(",".join(cells[: len(duet.SLICES) - len(duet.OPTIONAL)]) for cells in lines)
    assert duet.read_slices(shorter, "slices.csv")["a_cpu_ns"].isna().all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"side": "c"}, "slices.csv:2: side"),
        ({"loop": "open"}, "loop must be"),
        ({"answered": None}, "answered is missing"),
    ],
)
def test_what_is_no_slice_is_refused(change, said):
    with pytest.raises(FormatError, match=said):
        duet.read_slices(text(change), "slices.csv")


def test_a_file_that_lacks_a_column_is_refused():
    with pytest.raises(FormatError, match="columns are missing: p50_ns"):
        duet.read_slices(text({}).replace("p50_ns", "p50_us"), "slices.csv")


def test_a_launch_is_sealed_and_its_histograms_count_nanoseconds(tmp_path):
    facts = dict.fromkeys(sorted(DUET_FACTS)) | {
        "kind": duet.DUET,
        "schema_version": SCHEMA_VERSION,
        "run_id": "one",
        "outcome": "completed",
        "parts": [{"workload": "put", "loop": "rate"}, {"workload": "put", "loop": "closed"}],
    }
    with RunWriter.create(tmp_path, "wal", "one") as folder:
        folder.write_json("run.json", facts)
        folder.write_text(duet.SLICES_FILE, text({}, {"slice": 1, "side": "b"}))
        slices = [
            {"slice": number, "response_time_ns": {"histogram_v2_base64": histogram([20_000 + number] * 3)}}
            for number in (0, 1)
        ]
        folder.write_text(duet.generator_file("put", "rate"), json.dumps({"alternate": {"slices": slices}}))
        run = folder.seal()
    assert {path.name for path in run.path.iterdir()} == {
        "run.json",
        "slices.csv.gz",
        "generator-put-rate.json.gz",
        "SHA256SUMS",
    }
    assert duet.is_duet(run) and len(duet.slices_of(run)) == 2
    found = duet.slice_histograms(run)
    assert sorted(found) == [("put", "rate", 0), ("put", "rate", 1)]
    assert duet.percentile_ns(found["put", "rate", 0], 50) == pytest.approx(20_000, abs=16)


def test_a_launch_without_its_facts_is_not_sealed(tmp_path):
    with RunWriter.create(tmp_path, "wal", "one") as folder:
        folder.write_json("run.json", {"kind": duet.DUET, "run_id": "one"})
        with pytest.raises(RunFolderError, match="comparison"):
            folder.seal()


def test_a_file_of_one_side_carries_its_letter():
    assert [duet.side_file(name, "b") for name in ("service.log", "cpu.flamegraph.html")] == [
        "service-b.log",
        "cpu-b.flamegraph.html",
    ]
