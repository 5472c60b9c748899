"""Measures loadgen against its goals, beside wrk and a bare waiting loop, on this machine.

    python3 loadgen/bench/bench.py [--rounds 5] [--seconds 3] [--results FILE] [--only WORD]

Builds nothing: `cargo build --release` comes first. Every round runs every case once, so that a slow moment of the machine
meets them all alike; a case's figure is the median over rounds, its spread the smallest and largest. Results are appended to
FILE (one JSON object per line, default loadgen/target/bench.jsonl) and the table is made of all lines in it, so that rounds can
be measured in several sittings. The null server has CPU 1 and polls; generators have CPU 0.

Nothing else should run. What others used of the CPUs is measured beside each run; runs in which that was over 3 % of one CPU are
kept in FILE and left out of the table, by this rule and no other, and it says how many they were.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
BINARIES = HERE.parent / "target" / "release"
PUT = HERE / "put.lua"
GENERATOR_CPU, SERVER_CPU = "0", "1"
FOREIGN_SHARE_MAX = 0.03


def busy_s():
    """CPU seconds of all programs and of steal since the machine started; interrupts, the network's share, belong to nobody."""
    user, nice, system, _, _, _, _, steal = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + steal) / os.sysconf("SC_CLK_TCK")


def own_s():
    """CPU seconds of this program and of its children that have ended."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class NullServer:
    """The null server on its CPU (or on any, if `pinned` is false) for the length of a `with`."""

    def __init__(self, pinned=True):
        self.arguments = [BINARIES / "nullserver"] + (["--pin", SERVER_CPU, "--spin"] if pinned else [])

    def __enter__(self):
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE, text=True)
        return self.process.stdout.readline().split()[1] + "/"

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def run(arguments):
    """Runs a command; returns its output, its CPU seconds and its largest resident size in MiB."""
    process = subprocess.Popen([str(a) for a in arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def loadgen(url, seconds, *options, pinned=True):
    """One run of loadgen: figures of its JSON result. Half a second of warm-up is left out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        pin = ["--pin", GENERATOR_CPU] if pinned else []
        warm_up = ["--warmup", "500ms"]
        _, _, mib = run([BINARIES / "loadgen", "-t1", f"-d{seconds}s", *warm_up, *pin, *options, "--json", path, url])
        result = json.loads(path.read_text())
    figures = {
        "rate_rps": result["achieved_rate_rps"],
        "cpu_us_per_request": sum(t["cpu_s"] for t in result["threads"]) / result["counts"]["completed"] * 1e6,
        "rss_mib": mib,
        "saturated": result["verdict"]["generator_saturated"],
        "response_minus_service_p50_us": result["response_time"]["percentiles"]["50"] - result["service_time"]["percentiles"]["50"],
    }
    if result["offered_rate_rps"]:
        figures["achieved_share"] = result["achieved_rate_rps"] / result["offered_rate_rps"]
    for percentile in ("50", "99", "99.9", "100"):
        figures[f"lateness_p{percentile}_us"] = result["send_lateness"]["percentiles"][percentile]
    return figures


def wrk(url, seconds):
    """One run of Debian's wrk on the generator's CPU, in its closed loop."""
    output, cpu_s, _ = run(["taskset", "-c", GENERATOR_CPU, "wrk", "-t1", "-c64", f"-d{seconds}s", url])
    completed = int(re.search(r"(\d+) requests in", output).group(1))
    return {"rate_rps": float(re.search(r"Requests/sec: *([\d.]+)", output).group(1)), "cpu_us_per_request": cpu_s / completed * 1e6}


def waiting_loop(rate, seconds, spin_us):
    """The bare waiting loop at the same rate, in the same way, on the generator's CPU."""
    output, _, _ = run([BINARIES / "waitloop", "--rate", rate, "--seconds", seconds, "--spin", spin_us, "--pin", GENERATOR_CPU])
    loop = json.loads(output)
    figures = {f"lateness_p{p}_us": loop["percentiles"][p] for p in ("50", "99", "99.9", "100")}
    return figures | {"cpu_us_per_wake": loop["cpu_us_per_wake"]}


def cases(seconds):
    """(name, whether the server is pinned, function of its URL), in the order in which a round runs them."""
    for rate in (2000, 20000):
        for spin, spin_us in (("spin", 50), ("no spin", 0)):
            options = ("-c64", f"-R{rate}", "--spin", f"{spin_us}us" if spin_us else "off")
            yield f"{rate}/s {spin}", True, lambda url, o=options: loadgen(url, seconds, *o)
            yield f"{rate}/s {spin}: waiting loop", True, lambda url, r=rate, s=spin_us: waiting_loop(r, seconds, s)
        yield f"{rate}/s unpinned", False, lambda url, r=rate: loadgen(url, seconds, "-c64", f"-R{r}", pinned=False)
    yield "50000/s no spin", True, lambda url: loadgen(url, seconds, "-c64", "-R50000", "--spin", "off")
    yield "static 150000/s", True, lambda url: loadgen(url, seconds, "-c64", "-R150000", "--spin", "off")
    yield "static, as fast as it can", True, lambda url: loadgen(url, seconds, "-c64", "-R400000", "--spin", "off")
    yield "lua 120000/s", True, lambda url: loadgen(url, seconds, "-c64", "-R120000", "--spin", "off", "-s", PUT)
    yield "lua, as fast as it can", True, lambda url: loadgen(url, seconds, "-c64", "-R400000", "--spin", "off", "-s", PUT)
    yield "closed loop", True, lambda url: loadgen(url, seconds, "-c64", "--closed")
    yield "closed loop: wrk", True, lambda url: wrk(url, seconds)
    yield "1000 connections", True, lambda url: loadgen(url, seconds, "-c1000", "-R10000")


def goals(figure):
    """(what, measured, required, unit, whether it is met) for each goal; `figure(case, name)` is a median."""

    def most(what, case, name, limit, unit):
        value = figure(case, name)
        return what, value, f"at most {limit:.6g}", unit, value <= limit

    def least(what, case, name, limit, unit):
        value = figure(case, name)
        return what, value, f"at least {limit:.6g}", unit, value >= limit

    for rate in (2000, 20000):
        for spin, p50, p99, difference in (("spin", 2, 30, 5), ("no spin", 30, 100, 30)):
            case = f"{rate}/s {spin}"
            loop = f"{case}: waiting loop"
            yield most(f"{case}: send lateness p50", case, "lateness_p50_us", p50, "us")
            yield most(f"{case}: send lateness p99", case, "lateness_p99_us", p99, "us")
            for p in ("99.9", "100"):
                name = f"lateness_p{p}_us"
                yield most(f"{case}: send lateness p{p}, 1.5 x waiting loop", case, name, 1.5 * figure(loop, name), "us")
            yield most(f"{case}: response p50 - service p50", case, "response_minus_service_p50_us", difference, "us")
            yield least(f"{case}: achieved / offered", case, "achieved_share", 0.999, "")
    yield least("static request, paced, one core", "static, as fast as it can", "rate_rps", 150_000, "/s")
    yield least("Lua request, paced, one core", "lua, as fast as it can", "rate_rps", 120_000, "/s")
    yield least("closed loop, against wrk's", "closed loop", "rate_rps", figure("closed loop: wrk", "rate_rps"), "/s")
    wrks = figure("closed loop: wrk", "cpu_us_per_request")
    yield most("CPU per request at 50000/s, against wrk's", "50000/s no spin", "cpu_us_per_request", wrks, "us")
    yield most("CPU per request, closed loop, against wrk's", "closed loop", "cpu_us_per_request", wrks, "us")
    yield most("memory, 1000 connections", "1000 connections", "rss_mib", 50, "MiB")


def print_tables(rows):
    """All medians with their spread, then each goal; of runs that others did not disturb."""
    values = {}
    undisturbed = [row for row in rows if row["foreign_share"] <= FOREIGN_SHARE_MAX]
    print(f"{len(rows)} runs, {len(rows) - len(undisturbed)} left out: others used over {FOREIGN_SHARE_MAX:.0%} of a CPU meanwhile")
    for row in undisturbed:
        for name, value in row["figures"].items():
            values.setdefault((row["case"], name), []).append(value)
    print(f"\n{'case':<32}{'figure':<32}{'median':>12}{'smallest':>12}{'largest':>12}{'repeats':>9}")
    for (case, name), all_of_it in values.items():
        print(f"{case:<32}{name:<32}{median(all_of_it):>12.6g}{min(all_of_it):>12.6g}{max(all_of_it):>12.6g}{len(all_of_it):>9}")
    print(f"\n{'goal':<60}{'median':>12}  {'required':<18}{'unit':<5}verdict")
    try:
        for what, value, required, unit, met in goals(lambda case, name: median(values[case, name])):
            print(f"{what:<60}{value:>12.6g}  {required:<18}{unit:<5}{'met' if met else 'NOT MET'}")
    except KeyError as missing:
        print(f"goals need every case: missing {missing}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="0: only print the table")
    parser.add_argument("--seconds", type=int, default=3, help="length of each run")
    parser.add_argument("--results", type=Path, default=BINARIES.parent / "bench.jsonl")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    options = parser.parse_args()
    for tool in (BINARIES / "loadgen", BINARIES / "nullserver", BINARIES / "waitloop"):
        if not tool.exists():
            sys.exit(f"not built: {tool}\n  cargo build --release --manifest-path loadgen/Cargo.toml")
    if options.rounds and subprocess.run(["which", "wrk"], capture_output=True).returncode:
        sys.exit("wrk is missing\n  apt-get install wrk")
    if options.rounds and (os.cpu_count() or 1) < 2:
        sys.exit("two CPUs are needed: one for the generator, one for the server")
    for number in range(options.rounds):
        for case, pinned, measure in cases(options.seconds):
            if options.only in case:
                print(f"round {number + 1}/{options.rounds}: {case}", file=sys.stderr)
                before, since = busy_s() - own_s(), time.monotonic()
                with NullServer(pinned) as url:
                    row = {"case": case, "figures": measure(url)}
                row["foreign_share"] = (busy_s() - own_s() - before) / (time.monotonic() - since)
                with open(options.results, "a") as results:
                    results.write(json.dumps(row) + "\n")
    if options.results.exists():
        print_tables([json.loads(line) for line in options.results.read_text().splitlines()])


if __name__ == "__main__":
    main()
