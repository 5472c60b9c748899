"""Measures loadgen against its goals, beside wrk and a bare waiting loop, on this machine; prints one table
in Markdown.

    make bench-loadgen                  # builds first; ONLY=slack ROUNDS=5
    python3 loadgen/bench/bench.py [--rounds 5] [--seconds 3] [--results FILE] [--only WORD]
    WRK2=/path/to/wrk python3 …         # a real wrk2 beside it

About two minutes a round. Every round runs every case once, so that a slow moment of the machine meets them
all alike; what is told is the median over the rounds, with the smallest and the largest. The null server has
CPU 1 and polls; generators have CPU 0. Nothing else should run.

A run during which other programs (or the hypervisor) used over 3 % of a CPU is made again, once; a run that
stayed disturbed is left out, by this rule and no other, and it says how many were. All runs are kept in FILE
(one JSON object per line, default loadgen/target/bench.jsonl), and the table is made of all that were made
with the programs as they are now, so that rounds can be measured in several sittings.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
# What the goal names, and twice as much.
SLACKS = ("50us", "100us")
BINARIES = HERE.parent / "target" / "release"
PUT = HERE / "put.lua"
PIPELINE = HERE / "pipeline.lua"
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
    """What others than this program and its children used of a CPU during a `with`, and what the hypervisor
    took: `share`, 1 = one CPU."""

    def __init__(self, *own):
        self.own = {os.getpid(), *own}

    def __enter__(self):
        self.before, self.steal_s, self.since = used_s(), steal_s(), time.monotonic()
        return self

    def __exit__(self, *_):
        others = sum(
            now - self.before.get(number, 0) for number, now in used_s().items() if number not in self.own
        )
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


# Starts a command and writes how it ended to a file. A process counts as its own the memory that its parent
# had when it was started: of this program, with its libraries, over 70 MiB; of a bare Python some 9.
LAUNCHER = """
import json, os, sys
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, _, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as file:
    json.dump([usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024], file)
"""


def run(arguments):
    """Runs a command; returns its output, its CPU seconds and its largest resident size in MiB."""
    with tempfile.NamedTemporaryFile() as ended:
        command = [sys.executable, "-I", "-S", "-c", LAUNCHER, ended.name, *(str(a) for a in arguments)]
        output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        cpu_s, mib = json.load(ended)
    return output, cpu_s, mib


def loadgen(url, seconds, *options, pinned=True, before=()):
    """One run of loadgen: figures of its JSON result. Half a second of warm-up is left out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        pin = ["--pin", GENERATOR_CPU] if pinned else []
        _, _, mib = run(
            [
                *before,
                BINARIES / "loadgen",
                "-t1",
                f"-d{seconds}s",
                "--warmup",
                "500ms",
                *pin,
                *options,
                "--json",
                path,
                url,
            ]
        )
        result = json.loads(path.read_text())
    figures = {
        "rate_rps": result["achieved_rate_rps"],
        "cpu_us_per_request": sum(t["cpu_s"] for t in result["threads"])
        / result["counts"]["completed"]
        * 1e6,
        "work_us_per_request": sum(t["cpu_s"] - t["spun_s"] for t in result["threads"])
        / result["counts"]["completed"]
        * 1e6,
        "rss_mib": mib,
        "spun_share": sum(t["spun_s"] for t in result["threads"]) / result["duration_s"],
        "response_p50_us": result["response_time"]["percentiles"]["50"],
        "response_p99_us": result["response_time"]["percentiles"]["99"],
        "spin_us": result["threads"][0]["spin_us"],
        "sleep_cost_us": result["threads"][0]["sleep_cost_us"],
        "saturated": result["verdict"]["generator_saturated"],
        "response_minus_service_p50_us": result["response_time"]["percentiles"]["50"]
        - result["service_time"]["percentiles"]["50"],
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
    return {
        "rate_rps": float(re.search(r"Requests/sec: *([\d.]+)", output).group(1)),
        "cpu_us_per_request": cpu_s / completed * 1e6,
    }


def waiting_loop(rate, seconds, spin_us):
    """The bare waiting loop at the same rate, in the same way, on the generator's CPU."""
    output, _, _ = run(
        [
            BINARIES / "waitloop",
            "--rate",
            rate,
            "--seconds",
            seconds,
            "--spin",
            round(spin_us),
            "--pin",
            GENERATOR_CPU,
        ]
    )
    loop = json.loads(output)
    return {f"lateness_p{p}_us": loop["percentiles"][p] for p in LATENESS} | {
        "cpu_us_per_wake": loop["cpu_us_per_wake"]
    }


def wrk2(url, seconds, rate):
    """One run of a real wrk2 at a rate; its corrected percentiles."""
    options = ["-t1", "-c16", f"-R{rate}", f"-d{seconds + 11}s", "-L"]  # it calibrates for 10 s
    output, _, _ = run(["taskset", "-c", GENERATOR_CPU, os.environ["WRK2"], *options, url])
    us = {"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6}
    told = re.findall(r"^ *([\d.]+)% +([\d.]+)(us|ms|s|m) *$", output, re.M)
    return {f"response_p{float(p):g}_us": float(value) * us[unit] for p, value, unit in told}


def pipelined_by_wrk(url, seconds):
    output, cpu_s, _ = run(
        ["taskset", "-c", GENERATOR_CPU, "wrk", "-t1", "-c64", f"-d{seconds}s", "-s", PIPELINE, url]
    )
    completed = int(re.search(r"(\d+) requests in", output).group(1))
    return {
        "rate_rps": float(re.search(r"Requests/sec: *([\d.]+)", output).group(1)),
        "cpu_us_per_request": cpu_s / completed * 1e6,
    }


def alternate(url, *options, slice_ms=200):
    """The same server under both names for 8.8 s: in forty slices of 200 ms, or in fewer, longer ones."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        slices = ["--slice", f"{slice_ms}ms", "--gap", "20ms", "-d8800ms", "--warmup", "0s"]
        slices += ["--alternate", url, url]
        run([BINARIES / "loadgen", "-t1", "--pin", GENERATOR_CPU, *options, "--json", path, *slices])
        result = json.loads(path.read_text())
    p50 = [server["response_time_ns"]["percentiles"]["50"] for server in result["alternate"]["servers"]]
    return {
        "slices": len(result["alternate"]["slices"]),
        "p50_differs_percent": abs(p50[0] / p50[1] - 1) * 100,
        "response_p50_us": sum(p50) / 2e3,
        "work_us_per_request": sum(t["cpu_s"] - t["spun_s"] for t in result["threads"])
        / result["counts"]["completed"]
        * 1e6,
    }


class FirstArrivals:
    """A server that answers, and notes when the first request of each part (its header `Part`) came."""

    def __enter__(self):
        self.at_s, self.listener = {}, socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.ended = False
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return self

    def serve(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener, selectors.EVENT_READ)
            while not self.ended:
                for key, _ in selector.select(0.1):
                    now = time.monotonic()
                    if key.fileobj is self.listener:
                        selector.register(self.listener.accept()[0], selectors.EVENT_READ)
                        continue
                    received = key.fileobj.recv(65536)
                    if not received:
                        selector.unregister(key.fileobj)
                        key.fileobj.close()
                        continue
                    self.at_s.setdefault(re.search(rb"Part: (\d)", received).group(1).decode(), now)
                    key.fileobj.sendall(
                        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" * received.count(b"\r\n\r\n")
                    )

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()
        self.listener.close()


def parts(_url, _seconds):
    """Two parts of one load on this machine: how far apart their schedules begin, as the server sees it."""
    rate = 20
    start = datetime.now(UTC) + timedelta(seconds=2)
    with FirstArrivals() as server:
        options = [
            "-t1",
            "-c2",
            f"-R{rate}",
            "-d500ms",
            "--warmup",
            "0s",
            "--start-at",
            f"{start:%Y-%m-%dT%H:%M:%S.%fZ}",
        ]
        commands = [
            [BINARIES / "loadgen", *options, "--part", f"{n}/2", "-H", f"Part: {n}", server.url]
            for n in (1, 2)
        ]
        processes = [
            subprocess.Popen([str(a) for a in command], stdout=subprocess.DEVNULL) for command in commands
        ]
        for process in processes:
            process.wait()
    # The first request of the second part is due one period after that of the first.
    return {"begin_apart_ms": abs(server.at_s["2"] - 1 / rate - server.at_s["1"]) * 1e3}


def cases(seconds):
    """(name, whether the server is pinned, function of its URL), in the order in which a round runs them."""
    spins_us = {}

    def paced(url, name, *options):
        figures = loadgen(url, seconds, "-c64", *options)
        spins_us[name] = figures["spin_us"]
        return figures

    def loaded(*options, **how):
        """A run with these options, whatever the loops below go on to."""
        return lambda url: loadgen(url, seconds, *options, **how)

    for rate in (2000, 20000):
        for spin, option in (("spin", "auto"), ("asleep", "off")):
            name = f"{rate}/s {spin}"
            yield name, True, lambda url, n=name, r=rate, o=option: paced(url, n, f"-R{r}", "--spin", o)
            # The loop waits as the run before it did.
            yield (
                f"{name}: waiting loop",
                True,
                lambda url, n=name, r=rate: waiting_loop(r, seconds, spins_us.get(n, 0)),
            )
        nice = ("nice", "-n", "-20")
        yield f"{rate}/s spin, nice -20", True, loaded("-c64", f"-R{rate}", before=nice)
        yield f"{rate}/s unpinned", False, loaded("-c64", f"-R{rate}", pinned=False)
    asleep = ("-c64", "--spin", "off")
    yield "50000/s", True, loaded(*asleep, "-R50000")
    yield "50000/s: waiting loop", True, lambda url: waiting_loop(50000, seconds, 0)
    for slack in SLACKS:
        yield f"50000/s slack {slack}", True, loaded("-c64", "-R50000", "--slack", slack)
    yield "150000/s", True, loaded(*asleep, "-R150000")
    yield "Lua 120000/s", True, loaded(*asleep, "-R120000", "-s", PUT)
    yield "400000/s", True, loaded(*asleep, "-R400000")
    yield "Lua 400000/s", True, loaded(*asleep, "-R400000", "-s", PUT)
    yield "closed loop", True, loaded("-c64", "--closed")
    yield "closed loop: wrk", True, lambda url: wrk(url, seconds)
    yield "pipelined 16", True, loaded("-c64", "--closed", "-s", PIPELINE)
    yield "pipelined 16: wrk", True, lambda url: pipelined_by_wrk(url, seconds)
    spinning = ("-c64", "-R20000", "--spin", "1ms")
    yield "alternate", True, lambda url: alternate(url, *spinning)
    # Its p50 is told in nanoseconds too: that of a run with one server alone is rounded to a microsecond,
    # which is more than what may differ.
    yield "alternate: two slices", True, lambda url: alternate(url, *spinning, slice_ms=4380)
    yield "alternate: one server", True, lambda url: loadgen(url, 9, *spinning)
    yield "two parts", True, lambda url: parts(url, seconds)
    if "WRK2" in os.environ:
        for rate in (2000, 20000):
            yield f"{rate}/s c16", True, loaded("-c16", f"-R{rate}")
            yield f"{rate}/s c16: wrk2", True, lambda url, r=rate: wrk2(url, seconds, r)
    yield "1000 connections", True, loaded("-c1000", "-R10000")


@dataclass(frozen=True)
class Beside:
    """A limit that another case of the same rounds sets: so many times its median."""

    factor: float
    whose: str
    case: str
    key: str


@dataclass(frozen=True)
class Goal:
    """``limit``: the largest value that reaches it, the smallest where not ``at_most``. ``scale``: of the
    figures, to ``unit``. ``trusted``: of runs alone in which the generator was not the limit."""

    what: str
    unit: str
    limit: float | Beside
    case: str
    key: str
    at_most: bool = True
    scale: float = 1.0
    trusted: bool = False


def goals():
    """All of them, in the order of the table."""
    percentiles = {"50": "p50", "99": "p99", "99.9": "p99.9", "100": "max"}

    def as_late_as_the_loop(case, told):
        for percentile in told:
            key = f"lateness_p{percentile}_us"
            loop = Beside(1.5, "waiting loop's", f"{case}: waiting loop", key)
            yield Goal(f"{case}: send lateness {percentiles[percentile]}", "µs", loop, case, key)

    for rate in (2000, 20000):
        case = f"{rate}/s spin"
        for percentile, limit in (("50", 2), ("99", 30)):
            key = f"lateness_p{percentile}_us"
            yield Goal(f"{case}: send lateness p{percentile}", "µs", limit, case, key)
        yield from as_late_as_the_loop(case, ("99.9", "100"))
        key = "response_minus_service_p50_us"
        yield Goal(f"{case}: response p50 − service p50", "µs", 5, case, key)
        # Who sleeps is as late as the machine wakes its sleepers, and by nothing else.
        case = f"{rate}/s asleep"
        yield from as_late_as_the_loop(case, LATENESS)
        yield Goal(f"{case}: waited busily", "% of the time", 0, case, "spun_share", scale=100)
    paced = [f"{rate}/s {spin}" for rate in (2000, 20000) for spin in ("spin", "asleep")]
    for case in (*paced, "50000/s", "50000/s slack 50us", "150000/s", "Lua 120000/s", "1000 connections"):
        what = f"{case}: rate missed, generator not saturated"
        yield Goal(what, "%", 0.1, case, "missed_share", scale=100, trusted=True)
    yield Goal("static request, one core", "/s", 150_000, "400000/s", "rate_rps", at_most=False)
    yield Goal("Lua request, one core", "/s", 120_000, "Lua 400000/s", "rate_rps", at_most=False)
    wrks = Beside(1.15, "wrk's", "closed loop: wrk", "rate_rps")
    yield Goal("closed loop", "/s", wrks, "closed loop", "rate_rps", at_most=False)
    key = "cpu_us_per_request"
    wrks = Beside(0.85, "wrk's", "closed loop: wrk", key)
    yield Goal("closed loop: CPU per request", "µs", wrks, "closed loop", key)
    yield Goal("pipelined 16, one core", "/s", 2_000_000, "pipelined 16", "rate_rps", at_most=False)
    case = "50000/s slack 50us"
    yield Goal(f"{case}: CPU per request", "µs", 8, case, key)
    yield Goal(f"{case}: send lateness p99", "µs", 200, case, "lateness_p99_us")
    what = "alternate, one server under both names, 40 slices: p50 differs"
    yield Goal(what, "%", 1, "alternate", "p50_differs_percent")
    for name, whose, beside, key in (
        ("p50", "two long slices'", "two slices", "response_p50_us"),
        ("CPU per request without busy waiting", "one server's", "one server", "work_us_per_request"),
    ):
        yield Goal(
            f"alternate: {name}", "µs", Beside(1.05, whose, f"alternate: {beside}", key), "alternate", key
        )
    yield Goal("two parts with --start-at: begin apart", "ms", 1, "two parts", "begin_apart_ms")
    yield Goal("1000 connections: memory", "MiB", 50, "1000 connections", "rss_mib")


def table_row(goal, figures):
    """Of the table: the goal, what was measured, and whether it is reached; or what was not measured.

    `figures(case, name)` are the values of all rounds; none where there were none.
    """
    sign, limit, asked = "≤" if goal.at_most else "≥", goal.limit, ""
    lacking = [goal.case] if not figures(goal.case, goal.key) else []
    if isinstance(limit, Beside):
        asked = f"{limit.factor:g} × {limit.whose} "
        whose = figures(limit.case, limit.key)
        if whose:
            asked += f"{median(whose):.4g}"
            limit = limit.factor * median(whose)
        else:
            lacking.append(limit.case)
    else:
        asked = f"{limit:g}"
    measured = [goal.scale * value for value in figures(goal.case, goal.key)]
    if goal.trusted:
        saturated = figures(goal.case, "saturated")
        measured = [value for value, limited in zip(measured, saturated, strict=True) if not limited]
    if lacking:
        verdict, told = "not measured", f"no undisturbed run of {', '.join(lacking)}"
    elif not measured:
        verdict, told = "not measured", "the generator was the limit in every run"
    else:
        found = median(measured)
        reached = found <= limit if goal.at_most else found >= limit
        ratio = found / limit if limit else float("inf")
        verdict = "reached" if reached else f"**not reached: {ratio:.2f} × the goal**"
        told = f"{spread(measured)} {goal.unit}"
    return f"| {goal.what} | {sign} {asked.strip()} {goal.unit} | {told} | {verdict} |"


def published(figures):
    """(what, unit, values): what is told and not promised."""
    for rate in (2000, 20000):
        for case in (
            f"{rate}/s unpinned",
            f"{rate}/s spin, nice -20",
            f"{rate}/s spin: waiting loop",
            f"{rate}/s asleep: waiting loop",
        ):
            for percentile in LATENESS:
                name = "max" if percentile == "100" else f"p{percentile}"
                yield f"{case}: lateness {name}", "µs", figures(case, f"lateness_p{percentile}_us")
        for spin in ("spin", "asleep"):
            yield f"{rate}/s {spin}: CPU per request", "µs", figures(f"{rate}/s {spin}", "cpu_us_per_request")
            yield (
                f"{rate}/s {spin}: CPU per wake of the waiting loop",
                "µs",
                figures(f"{rate}/s {spin}: waiting loop", "cpu_us_per_wake"),
            )
    for case in ("2000/s spin", "20000/s spin"):
        yield f"{case}: CPU per request without busy waiting", "µs", figures(case, "work_us_per_request")
    for case in ("50000/s", "pipelined 16", "pipelined 16: wrk"):
        yield f"{case}: CPU per request", "µs", figures(case, "cpu_us_per_request")
    yield "pipelined 16: wrk", "/s", figures("pipelined 16: wrk", "rate_rps")
    for case in (f"50000/s slack {slack}" for slack in SLACKS):
        yield f"{case}: CPU per request", "µs", figures(case, "cpu_us_per_request")
        for percentile in LATENESS:
            name = "max" if percentile == "100" else f"p{percentile}"
            yield f"{case}: lateness {name}", "µs", figures(case, f"lateness_p{percentile}_us")
    if "WRK2" in os.environ:
        for rate in (2000, 20000):
            for case in (f"{rate}/s c16", f"{rate}/s c16: wrk2"):
                for percentile in ("50", "99"):
                    yield f"{case}: response p{percentile}", "µs", figures(case, f"response_p{percentile}_us")
    yield (
        "50000/s: waiting loop, asleep: CPU per wake",
        "µs",
        figures("50000/s: waiting loop", "cpu_us_per_wake"),
    )
    yield (
        "spin that fits itself to the machine",
        "µs",
        figures("2000/s spin", "spin_us") + figures("20000/s spin", "spin_us"),
    )
    yield "CPU of one sleep, as measured before a run", "µs", figures("2000/s asleep", "sleep_cost_us")
    for case in ("400000/s", "Lua 400000/s"):
        yield f"{case}: CPU per request", "µs", figures(case, "cpu_us_per_request")
        yield (
            f"{case}: runs judged generator_saturated",
            "",
            [float(saturated) for saturated in figures(case, "saturated")],
        )


def spread(values):
    """`median (smallest – largest)` in as many digits as tell something."""

    def digits(value):
        return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"

    return f"{digits(median(values))} ({digits(min(values))} – {digits(max(values))})"


def machine():
    """The machine in one line."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return (
        f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} CPUs, Linux "
        f"{platform.release()}"
    )


def print_table(rows):
    """Each goal, what was measured and whether it is met, over the runs in which nothing else used the
    CPUs."""
    known = {case for case, _, _ in cases(1)}
    rows = [row for row in rows if row.get("programs") == programs() and row["case"] in known]
    last_attempts = {(row["round"], row["case"]): row for row in rows}.values()
    values, repeats = {}, {row["case"]: 0 for row in rows}
    if not rows:
        return print("no runs of these programs yet")
    for row in last_attempts:
        if row["foreign_share"] <= FOREIGN_SHARE_MAX:
            repeats[row["case"]] += 1
            for name, value in row["figures"].items():
                values.setdefault((row["case"], name), []).append(value)
    least, most = min(repeats.values()), max(repeats.values())
    print(f"{machine()}; {datetime.now(UTC):%Y-%m-%d}; each figure of {least} to {most} undisturbed runs;")
    again, left_out = len(rows) - len(last_attempts), len(last_attempts) - sum(repeats.values())
    print(f"disturbed by other programs: {again} runs made again, {left_out} left out\n")
    if least < REPEATS_MIN:
        few = ", ".join(case for case, count in repeats.items() if count < REPEATS_MIN)
        print(f"fewer than {REPEATS_MIN} undisturbed runs: {few}\n")
    print("| | goal | measured: median (smallest – largest) | |\n|---|---|---|---|")
    for goal in goals():
        print(table_row(goal, lambda case, name: values.get((case, name), [])))
    print("\n| not promised | measured: median (smallest – largest) |\n|---|---|")
    for what, unit, measured in published(lambda case, name: values.get((case, name), [])):
        if measured:
            print(f"| {what} | {spread(measured)} {unit} |")


def programs():
    """Which programs are measured, in eight digits."""
    return hashlib.sha256(
        (BINARIES / "loadgen").read_bytes() + (BINARIES / "nullserver").read_bytes()
    ).hexdigest()[:8]


def needed_by(case):
    """The program beside loadgen that a case runs, if any."""
    return next((program for program in ("wrk2", "wrk") if case.endswith(f": {program}")), None)


def missing_programs():
    """What cases run and this machine lacks, and what to do."""
    missing = {} if shutil.which("wrk") else {"wrk": "apt-get install wrk"}
    wrk2 = os.environ.get("WRK2")
    if wrk2 is not None and not shutil.which(wrk2):
        missing["wrk2"] = f"WRK2 must be the path of a program: {wrk2}"
    return missing


def measure_round(name, options, missing):
    """Runs each case once and appends what it found to the results."""
    for case, pinned, measure in cases(options.seconds):
        if options.only not in case or needed_by(case) in missing:
            continue
        for attempt in range(1, ATTEMPTS_MAX + 1):
            print(f"{name}: {case}" + (f", attempt {attempt}" if attempt > 1 else ""), file=sys.stderr)
            with NullServer(pinned) as server, Foreign(server.process.pid) as foreign:
                row = {
                    "programs": programs(),
                    "round": name,
                    "case": case,
                    "attempt": attempt,
                    "figures": measure(server.url),
                }
            row["foreign_share"] = foreign.share
            with open(options.results, "a") as results:
                results.write(json.dumps(row) + "\n")
            if row["foreign_share"] <= FOREIGN_SHARE_MAX:
                break


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="0: only print the table")
    parser.add_argument("--seconds", type=int, default=3, help="length of each run")
    parser.add_argument("--results", type=Path, default=BINARIES.parent / "bench.jsonl")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    options = parser.parse_args()
    for tool in (BINARIES / "loadgen", BINARIES / "nullserver", BINARIES / "waitloop"):
        if not tool.exists():
            sys.exit(f"not built: {tool}\n  cargo build --release --manifest-path loadgen/Cargo.toml")
    missing = missing_programs()
    for program, cure in missing.items() if options.rounds else ():
        print(f"{program} is missing, and what is measured beside it is left out: {cure}", file=sys.stderr)
    if options.rounds and (os.cpu_count() or 1) < 2:
        sys.exit("two CPUs are needed: one for the generator, one for the server")
    sitting = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    for number in range(options.rounds):
        measure_round(f"{sitting} round {number + 1}/{options.rounds}", options, missing)
    if options.results.exists():
        print_table([json.loads(line) for line in options.results.read_text().splitlines()])


if __name__ == "__main__":
    main()
