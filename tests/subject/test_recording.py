"""JFR recordings as events.json: from a real recording of a real JVM, and from made-up events at the
edges."""

import os
import shutil
import subprocess
from datetime import UTC, datetime

import pytest

from kvstudy.errors import FormatError
from kvstudy.subject.evidence.jvm import GC_LOG, RECORDING, flags
from kvstudy.subject.evidence.recording import (
    RECORDING_SETTINGS,
    counters_by_second,
    read_recording,
    sorted_events,
)
from kvstudy.subject.jdk import Jdk, find_jdk
from kvstudy.subject.protocol import Place

SOURCE = """
import jdk.jfr.*;
public class Recorded {
  @Name("kv.WriteStall") static class WriteStall extends Event { long bytesWaiting; String cause; }
  @Name("kv.Counters") static class Counters extends Event {
    long flushes = 3; @Timespan long flushTime = 2_500_000;
  }
  public static void main(String[] words) throws Exception {
    FlightRecorder.addPeriodicEvent(Counters.class, () -> new Counters().commit());
    WriteStall stall = new WriteStall();
    stall.begin(); Thread.sleep(30); stall.bytesWaiting = 5; stall.cause = "memtable"; stall.commit();
    System.gc();
    Thread.sleep(2_100);
  }
}
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    (folder / "Recorded.java").write_text(SOURCE)
    subprocess.run(
        [
            find_jdk().tool("java"),
            f"-XX:StartFlightRecording:filename={folder / 'r.jfr'},"
            f"settings={RECORDING_SETTINGS},dumponexit=true",
            str(folder / "Recorded.java"),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return folder / "r.jfr"


def test_recording_of_a_real_jvm_gives_its_pauses_safepoints_and_our_events(recording):
    events = read_recording(recording, find_jdk()).events
    (stall,) = events["store"]
    assert stall["kind"] == "write_stall" and stall["attributes"] == {"bytes_waiting": 5, "cause": "memtable"}
    assert stall["duration_ms"] >= 30
    pause = next(event for event in events["gc"] if event["attributes"]["cause"] == "System.gc()")
    assert pause["kind"] == "gc_pause" and pause["duration_ms"] > 0
    safepoint = next(
        event
        for event in events["safepoints"]
        if event["start_utc"] <= pause["start_utc"] and event["duration_ms"] >= pause["duration_ms"]
    )
    assert safepoint["attributes"]["operation"].startswith("G1") or safepoint["attributes"]["operation"]
    assert all(event["start_utc"].endswith("Z") for group in events.values() for event in group)


def test_a_real_jvm_writes_below_a_folder_of_any_name(tmp_path, monkeypatch):
    folder = tmp_path / "it's Ünd, so: on"
    folder.mkdir()
    settings = shutil.copy(RECORDING_SETTINGS, folder)
    monkeypatch.setattr("kvstudy.subject.evidence.jvm.RECORDING_SETTINGS", settings)
    source = folder / "Nothing.java"
    source.write_text("public class Nothing { public static void main(String[] words) {} }")
    command = [find_jdk().tool("java"), *flags(Place(folder, folder)), str(source)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert (folder / GC_LOG).read_text() and (folder / RECORDING).stat().st_size


def test_counters_of_a_real_recording_are_told_apart_from_events_with_times_in_ms(recording):
    read = read_recording(recording, find_jdk())
    assert len(read.counters) >= 2
    assert all(values == {"flushes": 3, "flush_time_ms": 2.5} for values in read.counters.values())
    assert [event["kind"] for event in read.events["store"]] == ["write_stall"]


def test_counters_are_told_by_the_second_of_the_window_in_which_they_were_read():
    counters = {
        f"2026-11-20T20:21:{at}Z": {"flushes": n}
        for n, at in enumerate(("05.900000", "06.100000", "09.900000", "10.900000", "12.100000"))
    }
    rows = counters_by_second(counters, datetime(2026, 11, 20, 20, 21, 10, tzinfo=UTC), from_s=-4, to_s=2)
    assert rows == [
        {"second": -4, "at_s": -3.9, "flushes": 1},
        {"second": -1, "at_s": -0.1, "flushes": 2},
        {"second": 0, "at_s": 0.9, "flushes": 3},
    ]


def test_who_reads_it_is_out_of_reach_of_an_interrupt_to_our_group(tmp_path):
    """One that comes while a run is sealed ends the measurement behind that run."""
    (tmp_path / "bin").mkdir()
    jfr = tmp_path / "bin" / "jfr"
    says = '{"recording": {"events": []}}'
    jfr.write_text(f"#!/bin/sh\nps -o pgid= -p $$ >'{tmp_path}/group'\necho '{says}'\n")
    jfr.chmod(0o755)
    assert read_recording(tmp_path / "own.jfr", Jdk(tmp_path, "25")).counters == {}
    assert int((tmp_path / "group").read_text()) != os.getpgrp()


def test_file_that_is_no_recording_is_an_error_that_names_it(tmp_path):
    (tmp_path / "broken.jfr").write_bytes(b"FLR\0nonsense")
    with pytest.raises(FormatError, match="broken.jfr: not a readable recording"):
        read_recording(tmp_path / "broken.jfr", find_jdk())


def test_safepoint_lasts_from_its_request_until_threads_run_again():
    begin = {
        "type": "jdk.SafepointBegin",
        "values": {"safepointId": 1, "startTime": "2026-11-20T20:21:09.000000001Z", "duration": "PT0.001S"},
    }
    end = {
        "type": "jdk.SafepointEnd",
        "values": {"safepointId": 1, "startTime": "2026-11-20T20:21:09.010000001Z", "duration": "PT0.0005S"},
    }
    (safepoint,) = sorted_events([end, begin])["safepoints"]
    assert safepoint["duration_ms"] == pytest.approx(10.5)
    assert safepoint["attributes"] == {"operation": None, "time_to_safepoint_ms": 1.0}


def test_safepoint_cut_by_the_end_of_the_recording_is_left_out():
    begin = {
        "type": "jdk.SafepointBegin",
        "values": {"safepointId": 1, "startTime": "2026-11-20T20:21:09Z", "duration": "PT0.001S"},
    }
    assert sorted_events([begin])["safepoints"] == []
