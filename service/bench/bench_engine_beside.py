#!/usr/bin/env python3
"""The store of this build beside that of another, in process: the rows of EngineBenchmark, taking turns.

    .venv/bin/python service/bench/bench_engine_beside.py --beside ../before/kv-service.jar --rounds 8

``--beside`` is a jar of the service, or a class path with its classes. Needs JAVA_HOME with a JDK 25 and
Maven. Each round starts a JVM for each build, in an order that is turned from round to round. Each JVM fills,
reads and syncs four new stores, and the median of the last three counts: in the first one the JVM still
compiles, and its fill went at half the rate. Both run the benchmark's classes of this build: where they do
not fit the other build's store, one line says so. A ratio compares one round's two rates; printed are that of
the typical round, its 95 % interval (rounds.py), and the smallest and largest. A JVM that the machine's host
disturbed runs again, up to four times; a round with one that stayed disturbed has no ratio.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from functools import partial

from rounds import left_alone, rate_summary, ratio_of_rounds, undisturbed

HERE = pathlib.Path(__file__).resolve().parent
SERVICE = HERE.parent
THIS, BESIDE = "this build", "beside"
STORES = 4
JVM = ["-Xmx512m", "--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"]
# What the JVM says where classes were compiled against others.
DOES_NOT_FIT = re.compile(
    r"\S*(?:NoSuchMethodError|NoSuchFieldError|NoClassDefFoundError|IncompatibleClassChangeError"
    r"|AbstractMethodError|IllegalAccessError)\b.*"
)


def class_paths(beside: str, libraries: str) -> dict[str, str]:
    """By build. What comes first counts: the other build's store, then this build's benchmark, which is all
    that is used of its test classes."""
    stores = {THIS: str(SERVICE / "target/classes"), BESIDE: beside}
    return {
        name: os.pathsep.join([store, str(SERVICE / "target/test-classes"), libraries])
        for name, store in stores.items()
    }


def rates_of(output: str) -> dict[str, float]:
    """Operations a second by row: the median over the stores of EngineBenchmark, the first one apart."""
    stores = re.findall(r"^round (\d+) ours (.*)$", output, re.M)
    rates: dict[str, list[float]] = {}
    for number, told in stores:
        for row, rate in re.findall(r" {2}([a-z][a-z0-9 ]*?) ([\d,]+)/s", told):
            if number != "1":
                rates.setdefault(row, []).append(float(rate.replace(",", "")))
    return {row: statistics.median(found) for row, found in rates.items()}


def misfit(errors: str) -> str | None:
    """One line where the benchmark and the other store do not go together; else None."""
    found = DOES_NOT_FIT.search(errors)
    if found is None:
        return None
    return f"the benchmark of this build does not fit the store beside: {found.group().strip()}"


def one_round(java: str, class_path: str, keys: int, directory: pathlib.Path) -> dict:
    command = [java, *JVM, "-cp", class_path, "kv.lsm.bench.EngineBenchmark", "--only", "ours"]
    command += ["--rounds", str(STORES), "--keys", str(keys), "--directory", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True)
    rates = rates_of(done.stdout)
    if done.returncode != 0 or not rates:
        sys.exit(misfit(done.stderr) or f"EngineBenchmark failed ({done.returncode}):\n{done.stderr}")
    return {"rates": rates}


def table(rounds: list[dict[str, dict]]) -> list[str]:
    """A row for each operation, from the rounds that the host left alone."""
    kept = left_alone(rounds)
    lines = [f"| row | {THIS}, 1/s | {BESIDE}, 1/s | {THIS} to {BESIDE} |", "|---|---|---|---|"]
    for row in rounds[0][THIS]["rates"]:
        if not kept:
            lines.append(f"| {row} | every round disturbed by the host | | |")
            continue
        ours, theirs = ([one[name]["rates"][row] for one in kept] for name in (THIS, BESIDE))
        ratio = ratio_of_rounds(ours, theirs).text()
        lines.append(f"| {row} | {rate_summary(ours)} | {rate_summary(theirs)} | {ratio} |")
    if len(kept) < len(rounds):
        lines.append(f"\n{len(rounds) - len(kept)} rounds disturbed by the host")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beside", required=True, metavar="JAR", help="of the other build, or a class path")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--json", help="file for every single rate")
    options = parser.parse_args()
    missing = [part for part in options.beside.split(os.pathsep) if not pathlib.Path(part).exists()]
    if missing:
        parser.error(f"no such file: {missing[0]}")
    beside = os.pathsep.join(str(pathlib.Path(part).resolve()) for part in options.beside.split(os.pathsep))
    built = subprocess.run([str(HERE / "bench_engine.sh"), "classpath"], stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit("the benchmark could not be built")
    java = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin") or shutil.which("java")
    paths = class_paths(beside, built.stdout.strip())
    work = pathlib.Path(tempfile.mkdtemp(prefix="kv-engine-", dir=SERVICE / "target"))
    rounds: list[dict[str, dict]] = []
    try:
        for number in range(options.rounds):
            found = {}
            for name in (THIS, BESIDE) if number % 2 == 0 else (BESIDE, THIS):
                found[name] = undisturbed(partial(one_round, java, paths[name], options.keys, work))
            rounds.append(found)
            print(f"round {number + 1} of {options.rounds} done", flush=True)
    finally:
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(rounds, indent=1))
        shutil.rmtree(work, ignore_errors=True)
    print(f"\n{options.keys} keys, {len(rounds)} rounds; medians (smallest–largest), ratios: typical round")
    print("[95 % interval] (smallest–largest)\n")
    print("\n".join(table(rounds)))


if __name__ == "__main__":
    main()
