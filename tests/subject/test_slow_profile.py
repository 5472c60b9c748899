"""The slow seconds of a profiled run: the fifth with the highest p99, by response time where there is one."""

import base64
import subprocess
from pathlib import Path

from hdrh.histogram import HdrHistogram

from kvstudy.subject.evidence import profiler
from kvstudy.subject.evidence.profiler import Profiler, Seen
from kvstudy.subject.evidence.slow_profile import slow_seconds
from kvstudy.subject.jdk import Jdk

ALWAYS = (0.0, 1e12)


def _log(path, *rows):
    """``rows``: (tag, second, length in seconds, latency in microseconds; None: nothing was answered)."""
    lines = ["#[StartTime: 1000.000 (seconds since epoch)]\n"]
    for tag, second, length, latency_us in rows:
        histogram = HdrHistogram(1, 3_600_000_000, 3)
        if latency_us is not None:
            histogram.record_value(latency_us, 100)
        text = histogram.encode()
        text = text.decode() if isinstance(text, bytes) else base64.b64encode(text).decode()
        lines.append(f"Tag={tag},{1000 + second:.3f},{length:.3f},1.000,{text}\n")
    path.write_text("".join(lines))
    return path


def test_the_slowest_fifth_of_the_seconds_is_taken_in_their_order(tmp_path):
    log = _log(
        tmp_path / "latency.hlog",
        *(("response", second, 1.0, 9000 if second in (3, 7) else 100 + second) for second in range(10)),
    )
    assert slow_seconds(log, ALWAYS) == [(1003.0, 1004.0), (1007.0, 1008.0)]


def test_a_short_run_has_one_slow_second_and_warm_up_and_the_rest_of_a_second_do_not_count(tmp_path):
    log = _log(
        tmp_path / "latency.hlog",
        ("warmup_response", 0, 1.0, 90000),
        ("response", 1, 1.0, 100),
        ("response", 2, 1.0, 300),
        ("service", 1, 1.0, 900),
        ("response", 3, 0.03, 80000),
    )
    assert slow_seconds(log, ALWAYS) == [(1002.0, 1003.0)]


def test_a_second_in_which_nothing_was_answered_is_the_slowest(tmp_path):
    log = _log(
        tmp_path / "latency.hlog",
        *(("response", second, 1.0, None if second == 4 else 9000 - second) for second in range(8)),
    )
    assert slow_seconds(log, ALWAYS)[-1] == (1004.0, 1005.0)


def test_shorter_intervals_are_judged_by_their_seconds(tmp_path):
    """A slow quarter makes a second slow; the rest behind the last whole second is none."""
    log = _log(
        tmp_path / "latency.hlog",
        *(
            ("response", quarter / 4, 0.25, 9000 if quarter in (13, 30) else 100 + quarter)
            for quarter in range(40)
        ),
        ("response", 10, 0.02, 80000),
    )
    assert slow_seconds(log, ALWAYS) == [(1003.0, 1004.0), (1007.0, 1008.0)]


def test_a_closed_loop_is_judged_by_service_time(tmp_path):
    assert slow_seconds(
        _log(tmp_path / "latency.hlog", ("service", 0, 1.0, 100), ("service", 1, 1.0, 500)), ALWAYS
    ) == [(1001.0, 1002.0)]


def test_a_second_that_the_profiler_did_not_see_whole_is_none_of_its_slow_ones(tmp_path):
    """Attached late, on a busy machine: of the slowest second it has nothing, of the next a part."""
    log = _log(
        tmp_path / "latency.hlog",
        *(("response", second, 1.0, 9000 - 1000 * second) for second in range(5)),
    )
    assert slow_seconds(log, (1001.5, 1005.0)) == [(1002.0, 1003.0)]
    assert slow_seconds(log, (1001.05, 1004.95)) == [(1001.0, 1002.0)], "a poll late, a poll early"
    assert slow_seconds(log, (1004.5, 1009.0)) == []


def test_without_a_log_there_is_no_slow_second(tmp_path):
    assert slow_seconds(tmp_path / "latency.hlog", ALWAYS) == []


def test_slow_seconds_are_asked_of_a_recording_by_the_clock_of_its_host(tmp_path, monkeypatch):
    """The clock of the service's host is two seconds ahead of the log's."""
    asked = []

    def finished(argv, _timeout_s):
        asked.append(argv)
        Path(argv[-1]).write_text("a;b 3\n")
        return subprocess.CompletedProcess(argv, 0, "", "")

    monkeypatch.setattr(profiler, "_finished", finished)
    _log(tmp_path / "latency.hlog", ("response", 0, 1.0, 100), ("response", 1, 1.0, 900))
    seen = Seen(-2.0, window=(1000.0, 1002.0), covered=(1000.0, 1002.05))
    Profiler(Jdk(Path("/jdk"), "25"), Path("/library.so"), Path("/converter.jar")).convert(
        tmp_path / "profile.jfr", ("cpu",), tmp_path, seen
    )
    asked_for = {
        Path(argv[-1]).name: tuple(argv[argv.index(option) + 1] for option in ("--from", "--to"))
        for argv in asked
        if "--from" in argv
    }
    slow = asked_for.pop("cpu_slow.part")
    assert slow == ("1003000", "1004000"), "1001 to 1002 s by the log"
    assert asked_for.keys() == {"cpu.collapsed", "cpu.flamegraph.html", "cpu.heatmap.html"}
    assert set(asked_for.values()) == {("1002000", "1004000")}, "the measured window"
