"""The same numbers bit by bit: loadgen's histograms read back by the Java and Python HdrHistogram libraries
give what its text prints.

The run is 1000 answers long, so that most percentiles are those of a whole number of samples: there the
libraries agree with the text as they are. Elsewhere (99.99 of 1000) Java rounds a rank up where wrk2, Python
and loadgen take the nearest, so Java is asked for the same sample by its rank.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from kvstudy.project import loadgen_binary
from kvstudy.subject.jdk import find_jdk

PROJECT = Path(__file__).parents[2]
READ_BACK = Path(__file__).with_name("ReadBack.java")
KINDS = {"response": "response_time", "service": "service_time", "lateness": "send_lateness"}
PERCENTILES = ["50", "75", "90", "99", "99.9", "99.99", "99.999", "100"]

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("same numbers")]


def hdrhistogram_jar() -> Path:
    version = re.search(
        r"<hdrhistogram.version>(.*)</hdrhistogram.version>", (PROJECT / "service" / "pom.xml").read_text()
    ).group(1)
    jar = (
        Path.home() / ".m2/repository/org/hdrhistogram/HdrHistogram" / version / f"HdrHistogram-{version}.jar"
    )
    assert jar.exists(), f"not fetched yet: {jar}; mvn -f service/pom.xml dependency:resolve"
    return jar


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run: its text, its JSON, and the path of its interval log."""
    folder = tmp_path_factory.mktemp("run")
    generator = loadgen_binary(PROJECT)
    server = subprocess.Popen([generator.with_name("nullserver")], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().split()[1] + "/"
        options = [
            "-R500",
            "-c5",
            "-t2",
            "-d3s",
            "--warmup",
            "1s",
            "-U",
            "--json",
            folder / "r.json",
            "--hlog",
            folder / "r.hlog",
        ]
        text = subprocess.run(
            [generator, *options, url], check=True, stdout=subprocess.PIPE, text=True, timeout=60
        ).stdout
    finally:
        server.terminate()
        server.wait()
    return text, json.loads((folder / "r.json").read_text()), folder / "r.hlog"


def block(text: str, kind: str) -> list[str]:
    """The distribution, spectrum and footer of response times, or of service times, as they are printed."""
    title = {"response": "Recorded Latency", "service": "Uncorrected Latency"}[kind]
    return text[text.index(title) :].splitlines()[1:]


def spectrum(lines: list[str]) -> list[str]:
    start = next(number for number, line in enumerate(lines) if "1/(1-Percentile)" in line) + 2
    return lines[start : next(number for number, line in enumerate(lines) if line.startswith("#[Mean"))]


def spectrum_line(value_us: int, percentile: float, count: int) -> str:
    inverse = f"{1 / (1 - percentile / 100):12.2f}" if percentile < 100 else f"{'inf':>12}"
    return f"{value_us / 1000:12.3f} {percentile / 100:12.6f} {count:12d} {inverse}"


def java(*arguments: object) -> list[list[str]]:
    """What the Java library finds, as words."""
    command = [find_jdk().tool("java"), "-cp", hdrhistogram_jar(), READ_BACK, *arguments]
    done = subprocess.run(
        [str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True, timeout=120
    )
    return [line.split() for line in done.stdout.splitlines()]


def python_log_sum(log: Path, tag: str) -> HdrHistogram:
    total = HdrHistogram(1, 86_400_000_000, 3)
    reader = HistogramLogReader(str(log), total)
    while (interval := reader.get_next_interval_histogram()) is not None:
        if interval.get_tag() == tag:
            total.add(interval)
    reader.close()
    return total


@pytest.mark.parametrize("source", ["log", "base64"])
@pytest.mark.parametrize("kind", ["response", "service", "lateness"])
def test_java_reads_the_numbers_that_the_text_prints(run, kind, source):
    text, result, log = run
    latency = result[KINDS[kind]]
    found = java("log", log, kind) if source == "log" else java("base64", latency["histogram_v2_base64"])
    facts = {words[0]: words[1] for words in found if len(words) == 2}
    assert int(facts["count"]) == latency["count"]
    by_rank = {words[1]: int(words[2]) for words in found if words[0] == "percentile"}
    as_it_is = {words[1]: int(words[3]) for words in found if words[0] == "percentile"}
    for percentile in PERCENTILES:
        key = str(float(percentile))
        assert by_rank[key] == latency["percentiles"][percentile], percentile
        if (float(percentile) * latency["count"] / 100).is_integer():
            assert as_it_is[key] == latency["percentiles"][percentile], percentile
    if kind != "lateness":
        lines = block(text, kind)
        ticks = [words[1:] for words in found if words[0] == "tick"]
        assert [
            spectrum_line(int(value), float(percentile), int(count)) for value, percentile, count in ticks
        ] == spectrum(lines)
        footer = " ".join(line for line in lines if line.startswith("#["))
        for name, fact in (("Mean", "mean"), ("StdDeviation", "stdev"), ("Max", "max")):
            assert re.search(rf"{name} *= *([\d.]+)", footer).group(1) == facts[fact], name


@pytest.mark.parametrize("source", ["log", "base64"])
@pytest.mark.parametrize("kind", ["response", "service", "lateness"])
def test_python_reads_the_numbers_that_the_text_prints(run, kind, source):
    text, result, log = run
    latency = result[KINDS[kind]]
    histogram = (
        python_log_sum(log, kind) if source == "log" else HdrHistogram.decode(latency["histogram_v2_base64"])
    )
    assert histogram.get_total_count() == latency["count"]
    for percentile in PERCENTILES:
        assert histogram.get_value_at_percentile(float(percentile)) == latency["percentiles"][percentile], (
            percentile
        )
    if kind != "lateness":
        # This library's own iterator places its ticks elsewhere, so each printed line is looked up by its
        # count.
        for line in spectrum(block(text, kind)):
            value_ms, _, count, _ = line.split()
            value_us = histogram.get_value_at_percentile(100 * int(count) / latency["count"])
            assert f"{value_us / 1000:.3f}" == value_ms, line
