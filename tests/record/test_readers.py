"""Interval logs, events and collapsed stacks."""

import gzip
import json
import random
import re
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from kvstudy.errors import FormatError
from kvstudy.record import hdr, interval_log, jfr, process_series, slowest, stacks

REFERENCE = Path(__file__).resolve().parents[2] / "data" / "reference"


def histogram(*values_us: int) -> str:
    result = HdrHistogram(1, 86_400_000_000, 3)
    for value_us in values_us:
        result.record_value(value_us)
    return result.encode().decode()


def read_log(*lines: str):
    return interval_log.read("".join(line + "\n" for line in lines), "latency.hlog")


HEAD = (
    "#[Histogram log format version 1.3]",
    "#[StartTime: 1795207345.250 (seconds since epoch), Fri Nov 20 20:42:25 UTC 2026]",
    '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
)


def test_an_interval_log_is_read_by_tag_on_the_clock_of_the_epoch():
    first, second = read_log(
        *HEAD,
        f"Tag=response,0.000,1.000,7.0,{histogram(5, 7)}",
        f"Tag=service,1.000,0.500,3.0,{histogram(3)}",
    )
    assert (first.tag, first.start_epoch_s, first.length_s, first.line) == ("response", 1795207345.25, 1.0, 4)
    assert (second.tag, second.start_epoch_s, second.length_s) == ("service", 1795207346.25, 0.5)
    assert hdr.decode(first.histogram).total == 2


def test_time_stamps_of_the_epoch_are_not_shifted():
    (interval,) = read_log(*HEAD, f"1795207347.250,1.000,3.0,{histogram(3)}")
    assert (interval.tag, interval.start_epoch_s) == ("", 1795207347.25)


def test_a_base_time_is_added():
    (interval,) = read_log(
        "#[BaseTime: 1795207000.000 (seconds since epoch)]", f"Tag=response,2.000,1.000,3.0,{histogram(3)}"
    )
    assert interval.start_epoch_s == 1795207002.0


def log_of(*intervals: tuple[str, float, float]) -> list[interval_log.Interval]:
    """Tag, begin and length of each."""
    return read_log(
        *HEAD, *(f"Tag={tag},{at:.3f},{length:.3f},3.0,{histogram(3)}" for tag, at, length in intervals)
    )


@pytest.mark.parametrize(
    ("intervals", "step_s"),
    [
        ([("warmup_response", 0, 1), ("response", 1, 1), ("response", 2, 1), ("response", 3, 0)], 1),
        (
            [("response", 0, 0.25), ("service", 0, 0.25), ("response", 0.25, 0.25), ("response", 0.5, 0.001)],
            0.25,
        ),
        (
            [
                ("warmup_response", 0, 1),
                *(("response", 1 + n / 10, 0.1) for n in range(20)),
                ("response", 3, 2),
            ],
            0.1,
        ),
        ([("response", 0, 1.02), ("response", 1, 1.03), ("response", 2, 0.01)], 1),  # of parts begun apart
        ([("response", 0, 1), ("response", 2, 1)], 1),  # nothing was logged in between
        ([("response", 0, 0.25)], 0.25),
        ([("response", 0, 0.7)], 1),  # the only one, which ended with the run
        ([("response", 0, 1), ("response", 1, 1), ("step_1_response", 0, 1.4)], 1),
        ([], 1),
    ],
)
def test_the_intervals_of_a_log_are_of_one_length(intervals, step_s):
    assert interval_log.step_s(log_of(*intervals), "latency.hlog") == step_s


@pytest.mark.parametrize(
    ("intervals", "told"),
    [
        (
            [("response", 0, 0.3), ("response", 0.3, 0.3)],
            "4: an interval of 0.300 s, which does not fit into a second",
        ),
        ([("response", 0, 2), ("response", 2, 2)], "4: an interval of 2.000 s"),
        ([("response", 0, 1), ("response", 1, 0), ("response", 2, 1)], "5: an interval of 0.000 s"),
        (
            [("response", 0, 0.25), ("response", 0.25, 0.25), ("response", 0.6, 0.25)],
            "6: an interval 0.600 s after the first, where each has 0.25 s",
        ),
    ],
)
def test_a_log_of_intervals_of_another_length_is_refused_in_one_line(intervals, told):
    with pytest.raises(FormatError, match=rf"^latency.hlog:{told}") as refused:
        interval_log.step_s(log_of(*intervals), "latency.hlog")
    assert "\n" not in refused.value.message


def test_a_log_is_added_up_to_seconds_and_one_of_seconds_is_as_it_was():
    lines = [
        *HEAD,
        f"Tag=warmup_response,0.000,1.000,9.0,{histogram(9)}",
        *(
            f"Tag={tag},{1 + half / 2:.3f},{length:.3f},{half + 3}.0,{histogram(half + 3)}"
            for half, length in enumerate((0.5, 0.5, 0.5, 0.5, 0.007))
            for tag in ("response", "service")
        ),
    ]
    found = read_log(
        *interval_log.by_second("".join(f"{line}\n" for line in lines), "latency.hlog").splitlines()
    )
    assert [(one.tag, one.start_epoch_s - 1795207345.25, round(one.length_s, 3)) for one in found] == [
        ("warmup_response", 0, 1),
        *(
            (tag, at, length)
            for at, length in ((1, 1), (2, 1), (3, 0.007))
            for tag in ("response", "service")
        ),
    ]
    values = [hdr.decode(one.histogram).highest_us.tolist() for one in found if one.tag == "service"]
    assert values == [[3, 4], [5, 6], [7]]
    again = "".join(f"{line}\n" for line in [*lines[:4], lines[4].replace(",0.500,", ",1.000,")])
    assert interval_log.by_second(again, "latency.hlog") == again


def test_a_log_that_lacks_intervals_is_one_of_seconds_when_it_is_added_up():
    seed = random.randrange(1 << 32)
    print(f"seed={seed}")
    generator = random.Random(seed)
    for _ in range(20):
        there = sorted({0, 1, *generator.sample(range(24), 8)})
        lines = [
            *HEAD,
            *(f"Tag=response,{1 + at / 4:.3f},0.250,3.0,{histogram(3)}" for at in there),
        ]
        text = "".join(f"{line}\n" for line in lines)
        found = interval_log.read(interval_log.by_second(text, "latency.hlog"), "latency.hlog")
        assert interval_log.step_s(found, "latency.hlog") == 1
        starts_s = [one.start_epoch_s - 1795207346.25 for one in found]
        assert starts_s == sorted({at // 4 for at in there})
        assert [one.length_s for one in found[:-1]] == [1] * (len(found) - 1)
        assert starts_s[-1] + found[-1].length_s == there[-1] / 4 + 0.25
        assert sum(hdr.decode(one.histogram).total for one in found) == len(there)


def test_a_histogram_is_read_back_as_it_was_written():
    written = hdr.decode(histogram(1, 5, 5, 2047, 70_000, 86_400_000_000))
    again = hdr.decode(hdr.encode(written))
    assert again.layout == written.layout and again.counts.tolist() == written.counts.tolist()
    assert again.indices.tolist() == written.indices.tolist()
    assert hdr.decode(hdr.encode(hdr.decode(histogram()))).total == 0


def test_a_cut_interval_log_names_the_line():
    text = "\n".join([*HEAD, f"Tag=response,0.000,1.000,7.0,{histogram(5, 7)}"])
    with pytest.raises(FormatError, match=r"latency.hlog:4: .*cut"):
        interval_log.read(text[:-20], "latency.hlog")


def test_the_slowest_answers_are_read_by_column():
    found = slowest.read(
        "due_us,response_us,service_us,connection\n-20,300,290,3\n700000,5,4,0\n", "slowest.csv"
    )
    assert {name: column.tolist() for name, column in found.items()} == {
        "due_us": [-20, 700_000],
        "response_us": [300, 5],
        "service_us": [290, 4],
        "connection": [3, 0],
    }


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "slowest.csv:1: .*head line"),
        ("due,response\n", "slowest.csv:1: .*head line"),
        (
            "due_us,response_us,service_us,connection\n1,2,3,4\n5,6,7\n",
            "slowest.csv:3: .*not 4 whole numbers: '5,6,7'",
        ),
        ("due_us,response_us,service_us,connection\n1,2,3,4\n5,6,7,1", "slowest.csv:3: .*cut"),
        ("due_us,response_us,service_us,connection\n1,2,x,4\n", "slowest.csv:2: .*not 4 whole numbers"),
    ],
)
def test_a_cut_or_damaged_list_of_slow_answers_names_the_line(text, error):
    with pytest.raises(FormatError, match=error):
        slowest.read(text, "slowest.csv")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "process.csv:1: .*head line"),
        ("service_cpu_s\n", "process.csv:1: .*head line"),
        ("second,service_cpu_s,steal_share\n0,0.5,\n1\n", "process.csv:3: not 3 numbers: '1'"),
        ("second,service_cpu_s\n0,0.5,1\n", "process.csv:2: not 2 numbers"),
        ("second,service_cpu_s\n0,x\n", "process.csv:2: not 2 numbers"),
        ("second,service_cpu_s\n0,0.5\n1,0.5", "process.csv:3: cut within a line"),
    ],
)
def test_a_cut_or_damaged_series_names_the_line(text, error):
    with pytest.raises(FormatError, match=error):
        process_series.read(text, "process.csv")


def test_events_are_read_in_the_order_of_time():
    text = json.dumps(
        {
            "gc": [
                {
                    "kind": "gc_pause",
                    "start_utc": "2026-11-20T20:42:26.500Z",
                    "duration_ms": 3.1,
                    "attributes": {"cause": "G1 Evacuation Pause"},
                }
            ],
            "safepoints": [],
            "store": [
                {
                    "kind": "flush",
                    "start_utc": "2026-11-20T20:42:25.123456789Z",
                    "duration_ms": 120,
                    "attributes": None,
                }
            ],
        }
    )
    flush, pause = jfr.read(text, "events.json")
    assert (flush.kind, flush.duration_ms, flush.attributes) == ("flush", 120.0, {})
    assert flush.start_epoch_s == pytest.approx(1795207345.123456, abs=1e-5)
    assert pause.attributes["cause"] == "G1 Evacuation Pause"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"gc": [', "events.json:1: not JSON"),
        ("[]", "not an object"),
        ('{"gcs": []}', "unknown groups: gcs"),
        ('{"gc": [{"kind": "gc_pause", "duration_ms": 1}]}', r"gc\[0\]: KeyError 'start_utc'"),
        (
            '{"gc": [{"kind": "gc_pause", "start_utc": "2026-11-20T20:42:26", "duration_ms": 1}]}',
            "time without a zone",
        ),
        (
            '{"store": [{"kind": "flush", "start_utc": "2026-11-20T20:42:26Z", "duration_ms": -1}]}',
            "duration_ms=-1",
        ),
    ],
)
def test_what_is_not_an_event_is_an_error(content, message):
    with pytest.raises(FormatError, match=message):
        jfr.read(content, "events.json")


def test_collapsed_stacks_are_added_up():
    assert stacks.read("a;b with blank;c 10\na 1\na;b with blank;c 5\n\n", "cpu.collapsed") == {
        "a;b with blank;c": 15,
        "a": 1,
    }


def test_stacks_that_differ_by_the_address_of_a_hidden_class_are_the_same():
    text = (
        "a;kv/C$$Lambda.0x0000000030130c90.run_[j] 2\na;kv/C$$Lambda.0x000000007113a520.run_[j] 3\n"
        "b;java/lang/invoke/LambdaForm$MH.0x00000000300a8400.invoke 1\n"
        "c;jdk/internal/foreign/abi/DowncallStub.0x00000000100a1000.invoke_[i] 1\n"
        "c;jdk/internal/foreign/abi/DowncallStub.0x0000000050092c00.invoke_[i] 1\n"
        "d;java/lang/String$$StringConcat.0x000000003010b000.concat;kv/C$$TypeSwitch/0x000000003010b400.f 4\n"
    )
    assert stacks.read(text, "cpu.collapsed") == {
        "a;kv/C$$Lambda.run_[j]": 5,
        "b;java/lang/invoke/LambdaForm$MH.invoke": 1,
        "c;jdk/internal/foreign/abi/DowncallStub.invoke_[i]": 2,
        "d;java/lang/String$$StringConcat.concat;kv/C$$TypeSwitch.f": 4,
    }


def test_no_stack_of_a_committed_run_keeps_the_address_of_a_hidden_class():
    files = sorted(REFERENCE.glob("*/*/*.collapsed.gz"))
    assert files
    for file in files:
        text = gzip.decompress(file.read_bytes()).decode()
        assert not [stack for stack in stacks.read(text, file.name) if re.search(r"0x[0-9a-f]{6,}", stack)], (
            file
        )


@pytest.mark.parametrize("line", ["a;b;c", "a;b -3", "a;b 1.5", " 12", "a;b x"])
def test_what_is_not_a_stack_is_an_error_at_its_line(line):
    with pytest.raises(FormatError, match="cpu.collapsed:2: not a collapsed stack"):
        stacks.read(f"a 1\n{line}\n", "cpu.collapsed")


def test_of_several_generators_slowest_answers_the_slowest_are_kept_in_the_order_in_which_they_were_due():
    head = "due_us,response_us,service_us,connection\n"
    texts = [head + "10,300,290,0\n30,5,4,0\n", head + "-5,200,200,1\n20,7,7,1\n"]
    assert slowest.merged(texts, ["1", "2"], 3) == head + "-5,200,200,1\n10,300,290,0\n20,7,7,1\n"
