"""Where the CPU time of a request goes: user code, and which system calls, of loadgen and of wrk beside it.

    python3 loadgen/bench/kernel_profile.py [--seconds 3]

Needs perf and the right to profile the kernel (root, or kernel.perf_event_paranoid at most 1). Samples CPU 0,
on which the generator is, 5 000 times a second by clock; the null server has CPU 1 and polls. Prints a table
in Markdown: microseconds of CPU per request.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from bench import BINARIES, GENERATOR_CPU, PUT, NullServer

HZ = 4999
CALLS = {
    "sendto": "send",
    "write": "send",
    "recvfrom": "receive",
    "read": "receive",
    "epoll_wait": "epoll_wait",
    "epoll_ctl": "epoll_ctl",
    "timerfd_settime": "set the timer",
}
PARTS = [
    "user code and clock",
    "send",
    "receive",
    "epoll_wait",
    "epoll_ctl",
    "set the timer",
    "the rest of the kernel",
]


def part(frames):
    """Which part a stack (innermost frame first) belongs to."""
    for frame in frames:
        if call := re.match(r"(?:__x64_sys|ksys)_(\w+)", frame):
            return CALLS.get(call.group(1), "the rest of the kernel")
    in_kernel = any(
        frame in ("entry_SYSCALL_64_after_hwframe", "do_syscall_64") or frame.startswith("asm_")
        for frame in frames
    )
    return "the rest of the kernel" if in_kernel else "user code and clock"


def samples(recording, program):
    """Samples of `program` by part."""
    script = subprocess.run(
        ["perf", "script", "-i", recording, "-F", "comm,ip,sym"], capture_output=True, text=True, check=True
    ).stdout
    parts = Counter()
    for stack in script.split("\n\n"):
        lines = stack.strip().splitlines()
        # perf does not always learn the name of a thread: then it is its number behind a colon.
        if lines and lines[0].strip().startswith((program, ":")):
            parts[part([line.split()[1] for line in lines[1:] if len(line.split()) > 1])] += 1
    return parts


def measure(name, command, program, result):
    """Runs `command` under perf; (name, requests per second, CPU µs per request by part)."""
    with tempfile.TemporaryDirectory() as folder, NullServer() as server:
        recording, answers = Path(folder) / "perf.data", Path(folder) / "r.json"
        arguments = [str(word) for word in command(server.url, answers)]
        perf = [
            "perf",
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-F",
            str(HZ),
            "-g",
            "-C",
            GENERATOR_CPU,
            "-o",
            str(recording),
            "--",
        ]
        done = subprocess.run(perf + arguments, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"perf failed: {done.stderr.strip()}")
        completed, seconds = result(done.stdout, answers)
        parts = samples(recording, program)
    return name, completed / seconds, {which: count / HZ / completed * 1e6 for which, count in parts.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=3, help="length of each run")
    seconds = parser.parse_args().seconds

    def loadgen(*options):
        before = [BINARIES / "loadgen", "-t1", "-c64", f"-d{seconds}s", "--pin", GENERATOR_CPU, *options]
        return lambda url, answers: [*before, "--json", answers, url]

    def of_json(_, answers):
        result = json.loads(answers.read_text())
        return result["counts"]["completed"], result["duration_s"]

    def of_text(text, _):
        return int(re.search(r"(\d+) requests in", text).group(1)), seconds

    runs = [
        measure("2 000/s, asleep", loadgen("-R2000", "--spin", "off"), "loadgen", of_json),
        measure("20 000/s, asleep", loadgen("-R20000", "--spin", "off"), "loadgen", of_json),
        measure("50 000/s, asleep", loadgen("-R50000", "--spin", "off"), "loadgen", of_json),
        measure("400 000/s asked for", loadgen("-R400000", "--spin", "off"), "loadgen", of_json),
        measure("the same, Lua request", loadgen("-R400000", "--spin", "off", "-s", PUT), "loadgen", of_json),
        measure("closed loop", loadgen("--closed"), "loadgen", of_json),
        measure(
            "wrk",
            lambda url, _: ["taskset", "-c", GENERATOR_CPU, "wrk", "-t1", "-c64", f"-d{seconds}s", url],
            "wrk",
            of_text,
        ),
    ]
    print(
        "| CPU µs per request | "
        + " | ".join(name for name, *_ in runs)
        + " |\n|---"
        + "|---:" * len(runs)
        + "|"
    )
    print("| requests/s, under the profiler | " + " | ".join(f"{rate:.0f}" for _, rate, _ in runs) + " |")
    for which in PARTS:
        print(f"| {which} | " + " | ".join(f"{parts.get(which, 0):.2f}" for *_, parts in runs) + " |")
    print("| all | " + " | ".join(f"{sum(parts.values()):.2f}" for *_, parts in runs) + " |")


if __name__ == "__main__":
    main()
