"""The service with many records beside itself with few: how fast it is filled and answers GETs, how soon it
is ready, and what memory and writing each record costs.

    python service/bench/bench_scale.py [--records 100000000] [--few 1000000] …      (make bench-scale)

Both stores are filled over HTTP, in the order of their keys, by a service that has just started, each until
nothing is left to flush or compact. Then every file of both is read once, so that GETs meet the page cache as
far as memory allows, and both services answer uniform GETs in turn, in a closed loop; what they read from the
disk all the same is counted. Ready: started with its pages dropped. Write amplification: bytes that the
process wrote until its fill was at rest, log included, for each byte of keys and values; of keys in order it
is the least that there can be. Random load: of eight bytes somewhere in as much memory as the files take,
many loads at once; in a virtual machine it may cost more than all else that a GET does.
"""

import argparse
import shutil
import statistics
import time
from pathlib import Path

import numpy as np
import psutil
from bench_larger_than_memory import rss_anonymous
from rounds import rate_summary, ratio_of_rounds
from served import KEY_BYTES, VALUE_BYTES, Bench, run

from kvstudy.errors import KvstudyError
from kvstudy.hosts.memory_group import forget_pages
from kvstudy.subject.protocol import LiveSubject

PIECE_BYTES = 1 << 20
SPARE_BYTES = 2 << 30  # what a compaction of the largest tables writes before it deletes
MEMORY_LEFT_BYTES = 2 << 30  # to all else, while random loads are timed
LOAD_PARTS, LOADS_IN_PART = 11, 100_000


def filled(bench: Bench, store: Path, records: int) -> dict:
    """1/s until all were written; bytes written for each byte of a record; bytes of files."""
    service = bench.service("fill", {"stall_limit_ms": 0}, store=store, filling=True)
    (pid,) = service.pids
    written_s = bench.fill(service, records)
    written = psutil.Process(pid).io_counters().write_bytes
    service.stop(timeout_s=600)
    return {
        "fill_rps": records / written_s,
        "amplification": written / (records * (KEY_BYTES + VALUE_BYTES)),
        "files": sum(path.stat().st_size for path in store.iterdir()),
    }


def read_once(store: Path) -> None:
    for path in store.iterdir():
        with path.open("rb") as file:
            while file.read(PIECE_BYTES):
                pass


def random_load_ns(in_bytes: int) -> float | None:
    """Median of some ten parts; None where so much memory is not free."""
    if in_bytes > psutil.virtual_memory().available - MEMORY_LEFT_BYTES:
        return None
    memory, generator, parts = np.ones(in_bytes // 8), np.random.default_rng(1), []
    for _ in range(LOAD_PARTS):
        places = generator.integers(0, memory.size, LOADS_IN_PART)
        began = time.monotonic()
        memory[places].sum()
        parts.append((time.monotonic() - began) / LOADS_IN_PART * 1e9)
    return statistics.median(parts)


def started_cold(bench: Bench, name: str, options, store: Path) -> tuple[LiveSubject, float]:
    """With how long it took until it was ready, in s."""
    forget_pages(store)
    began = time.monotonic()
    service = bench.service(name, {}, options.heap, store=store)
    return service, time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000_000)
    parser.add_argument("--few", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="measured time of each step")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--heap", default="128m", help="-Xmx of the service")
    parser.add_argument("--functional", action="store_true", help="small and short: shows that it works")
    options = parser.parse_args()
    if options.functional:
        options.records, options.few, options.rounds, options.seconds = 300_000, 30_000, 2, 1
    if not 0 < options.few < options.records:
        raise KvstudyError(
            f"--records {options.records} beside --few {options.few}: nothing to compare",
            "the few are at least one, and fewer than the records",
        )
    counts = {"few": options.few, "many": options.records}
    with Bench("kv-scale") as bench:
        needed = 2 * options.records * (KEY_BYTES + VALUE_BYTES) + SPARE_BYTES
        if (free := shutil.disk_usage(bench.folder).free) < needed:
            raise KvstudyError(
                f"too little space: {free / 1e9:.0f} GB free, {needed / 1e9:.0f} GB needed: {bench.folder}",
                "free some, or ask for fewer: --records",
            )
        rows: dict[str, dict] = {}
        for name, records in counts.items():
            rows[name] = filled(bench, bench.folder / name, records)
            print(f"{records:,} records written at {rows[name]['fill_rps']:,.0f}/s", flush=True)
        services = {}
        for name in counts:
            services[name], rows[name]["ready_s"] = started_cold(bench, name, options, bench.folder / name)
            read_once(bench.folder / name)
            bench.loaded(services[name], "get", counts[name], options.connections, options.seconds)
            rows[name] |= {"rates": [], "p99_us": [], "read": []}
        for number in range(options.rounds):
            for name in list(counts)[:: 1 if number % 2 else -1]:
                row, (pid,) = rows[name], services[name].pids
                read_before = psutil.Process(pid).io_counters().read_bytes
                result = bench.loaded(
                    services[name], "get", counts[name], options.connections, options.seconds
                )
                read = psutil.Process(pid).io_counters().read_bytes - read_before
                row["rates"].append(result["counts"]["measured"] / result["measured_s"])
                row["p99_us"].append(result["response_time"]["percentiles"]["99"])
                row["read"].append(read / result["counts"]["completed"])
        for name, service in services.items():
            (pid,) = service.pids
            rows[name]["anonymous"] = rss_anonymous(pid)
            service.stop(timeout_s=600)
        for row in rows.values():
            row["load_ns"] = random_load_ns(row["files"])
    print_table(counts, rows)


def print_table(counts: dict[str, int], rows: dict[str, dict]) -> None:
    print(
        "\n| records | filled, 1/s | GET/s | p99, µs | read per GET, B | random load, ns | ready, s | "
        "files, GB | anonymous memory, MB | bytes written for each |"
    )
    print("|---" * 10 + "|")
    for name, records in counts.items():
        row = rows[name]
        cells = [
            *(f"{records:,}", f"{row['fill_rps']:,.0f}", rate_summary(row["rates"])),
            *(f"{statistics.median(row['p99_us']):,.0f}", f"{statistics.median(row['read']):,.0f}"),
            "–" if row["load_ns"] is None else f"{row['load_ns']:,.0f}",
            f"{row['ready_s']:.1f}",
            *(f"{row['files'] / 1e9:.2f}", f"{row['anonymous'] / 1e6:.0f}", f"{row['amplification']:.2f}"),
        ]
        print(f"| {' | '.join(cells)} |")
    few, many = rows["few"], rows["many"]
    more_bytes = (many["anonymous"] - few["anonymous"]) / (counts["many"] - counts["few"])
    print(f"\nfilled at {many['fill_rps'] / few['fill_rps']:.2f} times the rate of the few")
    print(f"GETs at {ratio_of_rounds(many['rates'], few['rates']).text(2)} times their rate")
    print(f"{more_bytes:.2f} bytes of memory outside the page cache for each further record")


if __name__ == "__main__":
    run(main)
