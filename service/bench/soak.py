#!/usr/bin/env python3
"""A mixed load on a small heap for as long as it is told, and whether the service stays whole.

    .venv/bin/python service/bench/soak.py --minutes 20 --records 10000000

Starts the built service with -Xmx128m, fills it, sends half reads and half writes in a closed loop, and asks
/metrics and /proc once a second. Fails when the service dies, says OutOfMemoryError, gives an answer other
than 200 or 201, when a record cannot be read afterwards, or when a range over all keys does not have as many
entries as were written. Prints the figures; --csv keeps the samples. Needs curl.
"""

import argparse
import csv
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

from served import Bench, options_of, run

from kvstudy.errors import KvstudyError

METRICS = {
    "off_heap_bytes": "kv_store_off_heap_bytes",
    "mapped_bytes": "kv_store_mapped_bytes",
    "memtable_bytes": "kv_store_memtable_bytes",
    "flushes": "kv_store_flushes_total",
    "compactions": "kv_store_compactions_total",
}


def sample(url: str, pid: int) -> dict[str, float]:
    """One row: process memory and the store's counters now."""
    text = urllib.request.urlopen(f"{url}/metrics", timeout=30).read().decode()
    row = {
        name: float(re.search(rf"^{metric} (\S+)", text, re.M).group(1)) for name, metric in METRICS.items()
    }
    row["heap_bytes"] = float(re.search(r'^jvm_memory_used_bytes\{area="heap"\} (\S+)', text, re.M).group(1))
    row["nonheap_bytes"] = float(
        re.search(r'^jvm_memory_used_bytes\{area="nonheap"\} (\S+)', text, re.M).group(1)
    )
    row["stalled_s"] = sum(
        map(float, re.findall(r"^kv_store_write_stall_seconds_total\{.*\} (\S+)", text, re.M))
    )
    answers = re.findall(r'^kv_http_requests_total\{.*status="(\d+)".*\} (\S+)', text, re.M)
    row["requests"] = sum(float(count) for _, count in answers)
    row["errors"] = sum(float(count) for status, count in answers if status not in ("200", "201"))
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    for name, field in (("rss_anonymous_bytes", "RssAnon"), ("rss_file_bytes", "RssFile")):
        row[name] = 1024 * int(re.search(rf"^{field}:\s+(\d+)", status, re.M).group(1))
    row["threads"] = int(re.search(r"^Threads:\s+(\d+)", status, re.M).group(1))
    return row


def entries_of_a_range(url: str) -> tuple[int, int]:
    """Entries and bytes of one range over all keys; keys and values of the workloads hold no line feed, so
    each entry gives one."""
    entries = length = 0
    with subprocess.Popen(
        ["curl", "--silent", "--fail", "--no-buffer", f"{url}/v0/entities?start=k"], stdout=subprocess.PIPE
    ) as curl:
        while piece := curl.stdout.read(1 << 20):
            entries += piece.count(b"\n")
            length += len(piece)
    if curl.returncode != 0:
        raise OSError(f"curl ended with {curl.returncode}")
    return entries, length


def course(rows: list[dict[str, float]]) -> str:
    """A table in Markdown: every figure at the start and after each quarter, and its largest value."""
    began = rows[0]["second"]
    marks = [rows[round(quarter * (len(rows) - 1) / 4)] for quarter in range(5)]
    lines = [
        "| | " + " | ".join(f"{(row['second'] - began) / 60:.1f} min" for row in marks) + " | largest |",
        "|---" * 7 + "|",
    ]
    for name in rows[0]:
        if name == "second":
            continue
        unit, label = (2**20, name.removesuffix("_bytes") + ", MiB") if name.endswith("_bytes") else (1, name)
        cells = [
            f"{row[name] / unit:,.{1 if name.endswith(('_bytes', '_s')) else 0}f}"
            for row in [*marks, max(rows, key=lambda row: row[name])]
        ]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def loaded_and_read(bench: Bench, service, options, rows: list[dict[str, float]]) -> list[str]:
    """What went wrong; ``rows``: where the samples go."""
    faults = []

    def sampled() -> None:
        rows.append({"second": time.monotonic()} | sample(service.url, service.pids[0]))

    found = bench.loaded(
        *(service, "mixed", options.records, options.connections, options.minutes * 60, 0),
        each_second=sampled,
    )
    percentiles = found["service_time"]["percentiles"]
    print(
        f"{found['counts']['completed']:,} requests, {found['achieved_rate_rps']:,.0f} a second; "
        "service time: "
        + ", ".join(f"p{p} {percentiles[p] / 1e3:.2f} ms" for p in ("50", "99", "99.9", "100"))
    )
    bench.loaded(service, "unique_get", options.records, 16, 20, 0)
    began = time.monotonic()
    entries, streamed = entries_of_a_range(service.url)
    print(
        f"a range over everything: {entries} entries, {streamed / 2**20:.0f} MiB in "
        f"{time.monotonic() - began:.0f} s"
    )
    if entries != options.records:
        faults.append(
            f"a range over everything gives the wrong number of entries: found={entries}, "
            f"expected={options.records}"
        )
    sampled()
    return faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--heap", default="128m")
    parser.add_argument("--jar", type=pathlib.Path, help="of another build")
    parser.add_argument(
        "--dir",
        type=pathlib.Path,
        help="store directory that is kept and used again if it is there (default: a new one)",
    )
    parser.add_argument("--service-options", type=options_of, default={})
    parser.add_argument("--csv", help="file for the samples, one row per second")
    options = parser.parse_args()
    faults, rows = [], []
    with Bench("kv-soak") as bench:
        directory = options.dir or bench.folder / "store"
        fresh = not directory.exists()
        service = bench.service("service", options.service_options, options.heap, options.jar, directory)
        try:
            if fresh:
                bench.fill(service, options.records)
            faults += loaded_and_read(bench, service, options, rows)
        except (OSError, KvstudyError) as error:
            faults.append(f"{type(error).__name__}: {error}")
        faults += filter(None, [service.stop(timeout_s=120)])
        log = (bench.folder / "service.service.log").read_text()
        faults += [line for line in log.splitlines() if "Error" in line or "ERROR" in line][:5]
        table_bytes = sum(f.stat().st_size for f in directory.rglob("*") if f.is_file())
    if options.csv and rows:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    print(
        f"{options.minutes:g} min of mixed load, {options.records} records, {table_bytes / 2**20:.0f} "
        f"MiB on disk, -Xmx{options.heap}"
    )
    if len(rows) >= 5:
        print(course(rows))
    if faults:
        sys.exit("FAULTS\n" + "\n".join(faults))
    print("no fault")


if __name__ == "__main__":
    run(main)
