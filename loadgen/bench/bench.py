"""Measures loadgen against its goals, beside wrk and a bare waiting loop, on this machine; prints one table in Markdown.

    make bench-loadgen                  # builds first
    python3 loadgen/bench/bench.py [--rounds 6] [--seconds 3] [--results FILE] [--only WORD]

About a minute a round. Every round runs every case once, so that a slow moment of the machine meets them all alike;
what is told is the median over the rounds, with the smallest and the largest. The null server has CPU 1 and polls; generators
have CPU 0. Nothing else should run.

A run during which other programs (or the hypervisor) used over 3 % of a CPU is made again, once; a run that stayed disturbed is left
out, by this rule and no other, and it says how many were. All runs are kept in FILE (one JSON object per line, default
loadgen/target/bench.jsonl), and the table is made of all of them, so that rounds can be measured in several sittings. Delete FILE
when the program has changed.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
BINARIES = HERE.parent / "target" / "release"
PUT = HERE / "put.lua"
GENERATOR_CPU, SERVER_CPU = "0", "1"
FOREIGN_SHARE_MAX = 0.03
ATTEMPTS_MAX = 2
REPEATS_MIN = 5
LATENESS = ("50", "99", "99.9", "100")


def steal_s():
    """CPU seconds that the hypervisor gave to others since the machine started."""
    return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / os.sysconf("SC_CLK_TCK")


def used_s():
    """CPU seconds of every process that is there, by its number."""
    used = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        used[int(stat.parent.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


class Foreign:
    """What others than this program and its children used of a CPU during a `with`, and what the hypervisor took: `share`, 1 = one CPU."""

    def __init__(self, *own):
        self.own = {os.getpid(), *own}

    def __enter__(self):
        self.before, self.steal_s, self.since = used_s(), steal_s(), time.monotonic()
        return self

    def __exit__(self, *_):
        others = sum(now - self.before.get(number, 0) for number, now in used_s().items() if number not in self.own)
        self.share = (others + steal_s() - self.steal_s) / (time.monotonic() - self.since)


class NullServer:
    """The null server on its CPU (or on any, if `pinned` is false) for the length of a `with`."""

    def __init__(self, pinned=True):
        self.arguments = [BINARIES / "nullserver"] + (["--pin", SERVER_CPU, "--spin"] if pinned else [])

    def __enter__(self):
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[1] + "/"
        return self

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


def loadgen(url, seconds, *options, pinned=True, before=()):
    """One run of loadgen: figures of its JSON result. Half a second of warm-up is left out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        pin = ["--pin", GENERATOR_CPU] if pinned else []
        _, _, mib = run([*before, BINARIES / "loadgen", "-t1", f"-d{seconds}s", "--warmup", "500ms", *pin, *options, "--json", path, url])
        result = json.loads(path.read_text())
    figures = {
        "rate_rps": result["achieved_rate_rps"],
        "cpu_us_per_request": sum(t["cpu_s"] for t in result["threads"]) / result["counts"]["completed"] * 1e6,
        "work_us_per_request": sum(t["cpu_s"] - t["spun_s"] for t in result["threads"]) / result["counts"]["completed"] * 1e6,
        "rss_mib": mib,
        "spin_us": result["threads"][0]["spin_us"],
        "sleep_cost_us": result["threads"][0]["sleep_cost_us"],
        "saturated": result["verdict"]["generator_saturated"],
        "response_minus_service_p50_us": result["response_time"]["percentiles"]["50"] - result["service_time"]["percentiles"]["50"],
    }
    if result["offered_rate_rps"]:
        figures["missed_share"] = abs(1 - result["achieved_rate_rps"] / result["offered_rate_rps"])
    for percentile in LATENESS:
        figures[f"lateness_p{percentile}_us"] = result["send_lateness"]["percentiles"][percentile]
    return figures


def wrk(url, seconds):
    """One run of Debian's wrk on the generator's CPU, in its closed loop."""
    output, cpu_s, _ = run(["taskset", "-c", GENERATOR_CPU, "wrk", "-t1", "-c64", f"-d{seconds}s", url])
    completed = int(re.search(r"(\d+) requests in", output).group(1))
    return {"rate_rps": float(re.search(r"Requests/sec: *([\d.]+)", output).group(1)), "cpu_us_per_request": cpu_s / completed * 1e6}


def waiting_loop(rate, seconds, spin_us):
    """The bare waiting loop at the same rate, in the same way, on the generator's CPU."""
    output, _, _ = run([BINARIES / "waitloop", "--rate", rate, "--seconds", seconds, "--spin", round(spin_us), "--pin", GENERATOR_CPU])
    loop = json.loads(output)
    return {f"lateness_p{p}_us": loop["percentiles"][p] for p in LATENESS} | {"cpu_us_per_wake": loop["cpu_us_per_wake"]}


def cases(seconds):
    """(name, whether the server is pinned, function of its URL), in the order in which a round runs them."""
    spins_us = {}

    def paced(url, name, *options):
        figures = loadgen(url, seconds, "-c64", *options)
        spins_us[name] = figures["spin_us"]
        return figures

    for rate in (2000, 20000):
        for spin, option in (("spin", "auto"), ("no spin", "off")):
            name = f"{rate}/s {spin}"
            yield name, True, lambda url, n=name, r=rate, o=option: paced(url, n, f"-R{r}", "--spin", o)
            # The loop waits as the run before it did.
            yield f"{name}: waiting loop", True, lambda url, n=name, r=rate: waiting_loop(r, seconds, spins_us.get(n, 0))
        yield f"{rate}/s spin, nice -20", True, lambda url, r=rate: loadgen(url, seconds, "-c64", f"-R{r}", before=("nice", "-n", "-20"))
        yield f"{rate}/s unpinned", False, lambda url, r=rate: loadgen(url, seconds, "-c64", f"-R{r}", pinned=False)
    options = ("-c64", "--spin", "off")
    yield "50000/s", True, lambda url: loadgen(url, seconds, *options, "-R50000")
    yield "50000/s: waiting loop", True, lambda url: waiting_loop(50000, seconds, 0)
    yield "150000/s", True, lambda url: loadgen(url, seconds, *options, "-R150000")
    yield "Lua 120000/s", True, lambda url: loadgen(url, seconds, *options, "-R120000", "-s", PUT)
    yield "400000/s", True, lambda url: loadgen(url, seconds, *options, "-R400000")
    yield "Lua 400000/s", True, lambda url: loadgen(url, seconds, *options, "-R400000", "-s", PUT)
    yield "closed loop", True, lambda url: loadgen(url, seconds, "-c64", "--closed")
    yield "closed loop: wrk", True, lambda url: wrk(url, seconds)
    yield "1000 connections", True, lambda url: loadgen(url, seconds, "-c1000", "-R10000")


def goals(figures):
    """(what, what is required, unit, largest or smallest value that meets it, True if largest, all measured values).

    `figures(case, name)` are the values of all rounds.
    """
    for rate in (2000, 20000):
        for spin, p50, p99, difference in (("spin", 2, 30, 5), ("no spin", 30, 100, 30)):
            case = f"{rate}/s {spin}"
            for percentile, limit in (("50", p50), ("99", p99)):
                measured = figures(case, f"lateness_p{percentile}_us")
                yield f"{case}: send lateness p{percentile}", f"≤ {limit}", "µs", limit, True, measured
            for percentile, name in (("99.9", "p99.9"), ("100", "max")):
                key = f"lateness_p{percentile}_us"
                loop = median(figures(f"{case}: waiting loop", key))
                yield f"{case}: send lateness {name}", f"≤ 1.5 × waiting loop's {loop:g}", "µs", 1.5 * loop, True, figures(case, key)
            measured = figures(case, "response_minus_service_p50_us")
            yield f"{case}: response p50 − service p50", f"≤ {difference}", "µs", difference, True, measured
    paced = [f"{rate}/s {spin}" for rate in (2000, 20000) for spin in ("spin", "no spin")]
    for case in (*paced, "50000/s", "150000/s", "Lua 120000/s", "1000 connections"):
        trusted = [missed for missed, saturated in zip(figures(case, "missed_share"), figures(case, "saturated")) if not saturated]
        if trusted:
            yield f"{case}: rate missed, generator not saturated", "≤ 0.1", "%", 0.1, True, [100 * missed for missed in trusted]
    yield "static request, one core", "≥ 150000", "/s", 150_000, False, figures("400000/s", "rate_rps")
    yield "Lua request, one core", "≥ 120000", "/s", 120_000, False, figures("Lua 400000/s", "rate_rps")
    wrks_rate = median(figures("closed loop: wrk", "rate_rps"))
    yield "closed loop", f"≥ wrk's {wrks_rate:.0f}", "/s", wrks_rate, False, figures("closed loop", "rate_rps")
    wrks_cpu = median(figures("closed loop: wrk", "cpu_us_per_request"))
    yield "closed loop: CPU per request", f"≤ wrk's {wrks_cpu:.2f}", "µs", wrks_cpu, True, figures("closed loop", "cpu_us_per_request")
    required = f"≤ wrk's {wrks_cpu:.2f}"
    yield "50000/s: CPU per request (wrk: in its closed loop)", required, "µs", wrks_cpu, True, figures("50000/s", "cpu_us_per_request")
    yield "1000 connections: memory", "≤ 50", "MiB", 50, True, figures("1000 connections", "rss_mib")


def published(figures):
    """(what, unit, values): what is told and not promised."""
    for rate in (2000, 20000):
        for case in (f"{rate}/s unpinned", f"{rate}/s spin, nice -20", f"{rate}/s spin: waiting loop", f"{rate}/s no spin: waiting loop"):
            for percentile in LATENESS:
                name = "max" if percentile == "100" else f"p{percentile}"
                yield f"{case}: lateness {name}", "µs", figures(case, f"lateness_p{percentile}_us")
        for spin in ("spin", "no spin"):
            yield f"{rate}/s {spin}: CPU per request", "µs", figures(f"{rate}/s {spin}", "cpu_us_per_request")
            yield f"{rate}/s {spin}: CPU per wake of the waiting loop", "µs", figures(f"{rate}/s {spin}: waiting loop", "cpu_us_per_wake")
    for case in ("2000/s no spin", "20000/s no spin", "50000/s"):
        yield f"{case}: CPU per request without busy waiting", "µs", figures(case, "work_us_per_request")
    yield "50000/s: waiting loop, no spin: CPU per wake", "µs", figures("50000/s: waiting loop", "cpu_us_per_wake")
    yield "spin that fits itself to the machine", "µs", figures("2000/s spin", "spin_us") + figures("20000/s spin", "spin_us")
    yield "CPU of one sleep, as measured before a run", "µs", figures("2000/s no spin", "sleep_cost_us")
    for case in ("400000/s", "Lua 400000/s"):
        yield f"{case}: CPU per request", "µs", figures(case, "cpu_us_per_request")
        yield f"{case}: runs judged generator_saturated", "", [float(saturated) for saturated in figures(case, "saturated")]


def spread(values):
    """`median (smallest – largest)` in as many digits as tell something."""

    def digits(value):
        return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"

    return f"{digits(median(values))} ({digits(min(values))} – {digits(max(values))})"


def machine():
    """The machine in one line."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}"


def print_table(rows):
    """Each goal, what was measured and whether it is met, over the runs in which nothing else used the CPUs."""
    last_attempts = {(row["round"], row["case"]): row for row in rows}.values()
    values, repeats = {}, {row["case"]: 0 for row in rows}
    for row in last_attempts:
        if row["foreign_share"] <= FOREIGN_SHARE_MAX:
            repeats[row["case"]] += 1
            for name, value in row["figures"].items():
                values.setdefault((row["case"], name), []).append(value)
    least, most = min(repeats.values()), max(repeats.values())
    print(f"{machine()}; {datetime.now(timezone.utc):%Y-%m-%d}; each figure of {least} to {most} undisturbed runs;")
    again, left_out = len(rows) - len(last_attempts), len(last_attempts) - sum(repeats.values())
    print(f"disturbed by other programs: {again} runs made again, {left_out} left out\n")
    if least < REPEATS_MIN:
        few = ", ".join(case for case, count in repeats.items() if count < REPEATS_MIN)
        print(f"fewer than {REPEATS_MIN} undisturbed runs: {few}\n")
    try:
        print("| | goal | measured: median (smallest – largest) | |\n|---|---|---|---|")
        for what, required, unit, limit, is_most, measured in goals(lambda case, name: values[case, name]):
            found = median(measured)
            met = found <= limit if is_most else found >= limit
            ratio = found / limit if limit else float("inf")
            print(f"| {what} | {required} {unit} | {spread(measured)} {unit} | {'met' if met else f'**{ratio:.2f} × the goal**'} |")
        print("\n| not promised | measured: median (smallest – largest) |\n|---|---|")
        for what, unit, measured in published(lambda case, name: values[case, name]):
            print(f"| {what} | {spread(measured)} {unit} |")
    except KeyError as missing:
        print(f"the table needs every case: missing {missing}")


def measure_round(name, options):
    """Runs each case once and appends what it found to the results."""
    for case, pinned, measure in cases(options.seconds):
        if options.only not in case:
            continue
        for attempt in range(1, ATTEMPTS_MAX + 1):
            print(f"{name}: {case}" + (f", attempt {attempt}" if attempt > 1 else ""), file=sys.stderr)
            with NullServer(pinned) as server, Foreign(server.process.pid) as foreign:
                row = {"round": name, "case": case, "attempt": attempt, "figures": measure(server.url)}
            row["foreign_share"] = foreign.share
            with open(options.results, "a") as results:
                results.write(json.dumps(row) + "\n")
            if row["foreign_share"] <= FOREIGN_SHARE_MAX:
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="0: only print the table")
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
    sitting = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
    for number in range(options.rounds):
        measure_round(f"{sitting} round {number + 1}/{options.rounds}", options)
    if options.results.exists():
        print_table([json.loads(line) for line in options.results.read_text().splitlines()])


if __name__ == "__main__":
    main()
