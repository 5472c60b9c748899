#!/usr/bin/env python3
"""GET on a store that is larger than the memory of its service, by how it reads, in turn.

    .venv/bin/python service/bench/bench_larger_than_memory.py --records 5000000 --memory 256m

Fills one store of records of 16 + 100 bytes, lets it come to rest and stops its service. Then each step
starts a service on that store in a memory group (cgroup) of its own, which holds heap, stacks and page cache
together, lets it warm up, and measures GET in a closed loop, keys drawn evenly and by Zipf's law (exponent
0.99, popular keys scattered over all tables). The store's pages are dropped before each step. Variants take
turns, and each is compared with the first one, the default, in the same round: rounds.py. With --rocksdb,
RocksDB behind the same HTTP front takes turns too, on a store of its own that was fully compacted, with a
block cache and direct I/O (service/src/test/java/kv/lsm/bench/RocksService.java).

Needs the right to make a memory group. --functional is a run of some seconds that only shows that all of it
works.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time
import urllib.request

import psutil
from rounds import rate_summary, ratio_of_rounds
from served import Bench, run

from kvstudy.errors import KvstudyError
from kvstudy.hosts.memory_group import MemoryGroup, forget_pages
from kvstudy.plan.factors import MEMORY
from kvstudy.plan.subject import SubjectSpec
from kvstudy.subject.command import Command
from kvstudy.subject.evidence.prometheus import series
from kvstudy.subject.jdk import find_jdk
from kvstudy.subject.protocol import LiveSubject
from kvstudy.units import parse_size_bytes

DEFAULT = "default"
ALWAYS_FITS = {"table_memory": 1 << 40}
VARIANTS = {
    DEFAULT: {},
    "mapped, as if it fitted": ALWAYS_FITS,
    "pread on the selector": {"read": "pread", **ALWAYS_FITS},
    "pread, 16 workers": {"read": "pread", "handler": "workers", "workers": 16, **ALWAYS_FITS},
}
ROCKSDB = "RocksDB"
# Of a memory group, the part that its block cache may have: the rest is heap, stacks, memtables and the JVM.
CACHE_SHARE = 0.6
DISTRIBUTIONS = ("uniform", "zipfian")
SERVICE = pathlib.Path(__file__).resolve().parents[1]


def rss_anonymous(pid: int) -> int:
    return 1024 * int(pathlib.Path(f"/proc/{pid}/status").read_text().split("RssAnon:")[1].split()[0])


class Ours:
    """The service, as ``jar`` if that is given, with ``further`` options."""

    def __init__(self, jar: pathlib.Path | None, further: dict):
        self.jar, self._further = jar, further
        self.counts_cold_gets = not further and not jar
        self.store = "store"

    def started(self, bench: Bench, options, store: pathlib.Path) -> LiveSubject:
        asked = self._further | {MEMORY: options.memory}
        return bench.service("service", asked, options.heap, self.jar, store)

    def filling(self, bench: Bench, options, store: pathlib.Path) -> LiveSubject:
        return bench.service("fill", {"stall_limit_ms": 0}, jar=self.jar, store=store, filling=True)


class RocksDb:
    """``class_path``: with its library and the tests' classes."""

    counts_cold_gets = False
    store = "rocksdb"

    def __init__(self, class_path: str):
        self._class_path = class_path

    def started(self, bench: Bench, options, store: pathlib.Path) -> LiveSubject:
        cache = round(CACHE_SHARE * parse_size_bytes(options.memory))
        return self._launched(bench, "rocksdb", store, options.heap, cache, memory=options.memory)

    def filling(self, bench: Bench, _options, store: pathlib.Path) -> LiveSubject:
        return self._launched(bench, "rocksdb-fill", store, "128m", 64 << 20, "--settle")

    def _launched(self, bench, name, store, heap, cache, *words, memory=None) -> LiveSubject:
        command = [
            *(find_jdk().tool("java"), f"-Xmx{heap}", "--enable-native-access=ALL-UNNAMED"),
            *("--sun-misc-unsafe-memory-access=allow", "-cp", self._class_path),
            *("kv.lsm.bench.RocksService", "--port", "{port}", "--dir", "{dir}", "--cache", str(cache)),
            *words,
        ]
        spec = {
            "name": name,
            "command": command,
            "ready": {"line": "ready:"},
            "stop": {"signal": "TERM", "time": "30m"},
        } | ({"memory": memory} if memory else {})
        return bench.launched(name, Command(SubjectSpec.model_validate(spec), bench.root, None), store)


def class_path() -> str:
    """Builds the tests' classes."""
    built = subprocess.run(
        [str(SERVICE / "bench" / "bench_engine.sh"), "classpath"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"JAVA_HOME": str(find_jdk().home)},
    )
    if built.returncode != 0:
        raise KvstudyError("RocksDB's service could not be built", "Maven says why")
    return f"{SERVICE}/target/classes:{SERVICE}/target/test-classes:{built.stdout.strip()}"


def step(bench: Bench, options, store: pathlib.Path, contender: Ours | RocksDb) -> dict:
    """Both distributions on a service that was started for them."""
    forget_pages(store)
    began = time.monotonic()
    service = contender.started(bench, options, store)
    found = {"start_s": time.monotonic() - began}
    (pid,) = service.pids
    process = psutil.Process(pid)
    try:
        for distribution in DISTRIBUTIONS:
            read = process.io_counters().read_bytes
            result = bench.loaded(
                *(service, "get", options.records, options.connections, options.seconds, options.warm_up),
                distribution=distribution,
            )
            percentiles = result["response_time"]["percentiles"]
            found[distribution] = {
                "rate_rps": result["counts"]["measured"] / result["measured_s"],
                "p50_ms": percentiles["50"] / 1e3,
                "p99_ms": percentiles["99"] / 1e3,
                "read_bytes_per_get": (process.io_counters().read_bytes - read)
                / result["counts"]["completed"],
            }
        found["anonymous_bytes"] = rss_anonymous(pid)
        if contender.counts_cold_gets:
            metrics = urllib.request.urlopen(f"{service.url}/metrics", timeout=30).read().decode()
            found["cold_gets"] = dict(series(metrics))["kv_store_cold_gets_total"]
    finally:
        service.stop(timeout_s=60)
    return found


def filled_store(bench: Bench, options, contender: Ours | RocksDb) -> pathlib.Path:
    """With all memory there is: how it was filled is not what is measured."""
    store = (options.dir or bench.folder) / contender.store
    if not store.exists():
        began = time.monotonic()
        service = contender.filling(bench, options, store)
        bench.fill(service, options.records)
        service.stop(timeout_s=1800)
        print(f"{contender.store} filled in {time.monotonic() - began:.0f} s", flush=True)
    return store


def print_table(results: list[dict], names: list[str]) -> None:
    for distribution in DISTRIBUTIONS:
        print(f"\n{distribution}\n")
        print(
            "| reads | GET/s | p50, ms | p99, ms | read per GET, kB | rate to the default's | p99 to the "
            "default's |"
        )
        print("|---" * 7 + "|")
        of = {
            name: {
                key: [r[distribution][key] for r in results if r["subject"] == name]
                for key in results[0][distribution]
            }
            for name in names
        }
        for name in names:
            rows = of[name]
            cells = [name, rate_summary(rows["rate_rps"])]
            cells += [f"{statistics.median(rows[key]):.2f}" for key in ("p50_ms", "p99_ms")]
            cells.append(f"{statistics.median(rows['read_bytes_per_get']) / 1e3:.1f}")
            if name != DEFAULT:
                cells += [
                    ratio_of_rounds(rows[key], of[DEFAULT][key]).text(2) for key in ("rate_rps", "p99_ms")
                ]
            print(f"| {' | '.join(cells)} |" + (" | |" if name == DEFAULT else ""))
    print("\n| reads | anonymous memory, MB | start, s |\n|---|---|---|")
    for name in names:
        here = [r for r in results if r["subject"] == name]
        anonymous = statistics.median(r["anonymous_bytes"] for r in here) / 1e6
        print(f"| {name} | {anonymous:.0f} | {statistics.median(r['start_s'] for r in here):.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="measured time of each step")
    parser.add_argument(
        "--warm-up",
        type=float,
        default=4,
        help="before it; longer for more memory, which has to be filled with pages",
    )
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--memory", default="256m", help="limit of the group: bytes, or with k, m, g")
    parser.add_argument("--heap", default="64m", help="-Xmx of the service")
    parser.add_argument(
        "--dir",
        type=pathlib.Path,
        help="folder of stores that are kept, and used again if they are there (default: new ones)",
    )
    parser.add_argument("--jar", type=pathlib.Path, help="of another build, in the place of this one")
    parser.add_argument(
        "--beside",
        metavar="JAR",
        type=pathlib.Path,
        help="another build of the service, with its default options, takes turns too",
    )
    parser.add_argument("--rocksdb", action="store_true", help="RocksDB takes turns too")
    parser.add_argument(
        "--only", nargs="+", choices=list(VARIANTS), help="which others than the default (default: all)"
    )
    parser.add_argument(
        "--functional",
        action="store_true",
        help="one round of a second with a million records in 192 MiB: shows that it works",
    )
    parser.add_argument("--json", help="file for every step's figures")
    options = parser.parse_args()
    if options.functional:
        options.rounds, options.seconds, options.warm_up = 1, 1, 0
        options.records, options.memory = 1_000_000, "192m"
    variants: dict[str, Ours | RocksDb] = {
        name: Ours(options.jar, further)
        for name, further in VARIANTS.items()
        if name == DEFAULT or options.only is None or name in options.only
    }
    if options.beside:
        variants["build beside"] = Ours(options.beside, {})
    if options.rocksdb:
        variants[ROCKSDB] = RocksDb(class_path())
    memory_bytes = parse_size_bytes(options.memory)
    results = []
    with Bench("kv-larger") as bench:
        try:
            with MemoryGroup(memory_bytes):
                pass  # or the fill would be for nothing
            stores = {one.store: filled_store(bench, options, one) for one in variants.values()}
            sizes = ", ".join(
                f"{name} {sum(path.stat().st_size for path in store.iterdir()) / 1e6:,.0f} MB"
                for name, store in stores.items()
            )
            for number in range(options.rounds):
                names = list(variants)[number % len(variants) :] + list(variants)[: number % len(variants)]
                for name in names:
                    found = step(bench, options, stores[variants[name].store], variants[name])
                    results.append({"round": number, "subject": name, **found})
                print(f"round {number + 1} of {options.rounds} done", flush=True)
        finally:
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(results, indent=1))

    print(
        f"\n{options.records} records of 16 + 100 bytes, of files {sizes}, in a memory "
        f"group of {memory_bytes / 1e6:,.0f} MB, -Xmx{options.heap}"
    )
    print(
        f"{options.connections} connections; {options.rounds} rounds of {options.seconds:g} s after "
        f"{options.warm_up:g} s of warm-up"
    )
    print_table(results, list(variants))


if __name__ == "__main__":
    run(main)
