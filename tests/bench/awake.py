"""What sleeping processors cost: response times of a null server and the CPU time that the machine's host
took, with processors that may sleep and with processors kept awake, taking turns (`make bench-awake`, about
1.5 min).

One thread, 16 connections, 4 000/s, 4 s of which the first is warm-up; nothing is pinned and nobody spins, as
for a service at a tenth of its saturation rate.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from kvstudy.measure.awake import kept_awake, problem
from kvstudy.measure.sampler import machine_times

BINARIES = Path(__file__).parents[2] / "loadgen/target/release"
ROUNDS, SECONDS, RATE_RPS = 8, 4, 4000


def measured(url: str, awake: bool, result: Path) -> tuple[float, float, float]:
    """p50 and p99 of response time, us; CPU stolen, of one core."""
    with kept_awake(awake):
        _, stolen_s = machine_times()
        subprocess.run(
            [
                BINARIES / "loadgen",
                "-c16",
                "-t1",
                f"-R{RATE_RPS}",
                f"-d{SECONDS}s",
                "--warmup",
                "1s",
                "--spin",
                "off",
                "--json",
                result,
                url,
            ],
            check=True,
            capture_output=True,
        )
        stolen_s = machine_times()[1] - stolen_s
    percentiles = json.loads(result.read_text())["response_time"]["percentiles"]
    return percentiles["50"], percentiles["99"], stolen_s / SECONDS


def main() -> None:
    if why := problem():
        sys.exit(f"processors cannot be kept awake: {why}")
    server = subprocess.Popen([BINARIES / "nullserver"], stdout=subprocess.PIPE, text=True)
    found: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    try:
        url = server.stdout.readline().strip().removeprefix("ready: ") + "/"
        with tempfile.TemporaryDirectory() as folder:
            for number in range(ROUNDS):
                for awake in ((False, True), (True, False))[number % 2]:
                    found[awake].append(measured(url, awake, Path(folder) / "result.json"))
    finally:
        server.terminate()
        server.wait()
    for place, (what, digits) in enumerate((("p50, us", 0), ("p99, us", 0), ("stolen, of one core", 3))):
        sleeping, awake = ([row[place] for row in found[kind]] for kind in (False, True))
        print(
            f"{what:20} may sleep {over_rounds(sleeping, digits)}   kept awake {over_rounds(awake, digits)}"
        )
    print(
        "p99 kept awake, of that of the same round with sleep: "
        f"{over_rounds([on[1] / off[1] for off, on in zip(found[False], found[True], strict=True)], 3)}; "
        f"{ROUNDS} rounds"
    )


def over_rounds(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


if __name__ == "__main__":
    main()
