"""`kvstudy doctor --warm-up`: how long a fresh service needs on this machine until its median latency and its
CPU per request have settled.

Real runs without a warm-up of their own, sealed under data/raw/warm-up as any other; they answer no other
question. What is recommended is the longest of all that were measured and that nothing from outside
disturbed: how long a disturbed one took says nothing of the service.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from kvstudy.analyse.by_second import by_second
from kvstudy.analyse.observation import observe
from kvstudy.analyse.settling import settled_after_s
from kvstudy.analyse.validity import CPU_TICKS_US, FAIL, OF_THE_SERVICE, OUTSIDE, RESOLUTION_US
from kvstudy.measure.execute import execute
from kvstudy.plan.experiment import Experiment
from kvstudy.record import process_series
from kvstudy.record.run_folder import SealedRun

NAME = "warm-up"
LAUNCHES = 3
LONGEST_S = 45.0
_LEAST_S = 0.1  # an experiment has a warm-up; this one is not felt


@dataclass(frozen=True)
class Settled:
    """Of one run: seconds until p50 and CPU per request had settled; None: not within the run. ``disturbed``:
    what from outside failed it."""

    workload: str
    p50_s: int | None
    cpu_s: int | None
    disturbed: str = ""


def experiment(length_s: float = LONGEST_S, launches: int = LAUNCHES, rate_rps: float = 4000.0) -> Experiment:
    return Experiment.from_parameters(
        {
            "name": NAME,
            "question": "How long does a fresh service need until its latency and its CPU have settled?",
            "expectation": f"Both have settled within {length_s * 2 / 3:.0f} s.",
            "workload": [{"script": "put", "key_count": 100_000}, {"script": "get", "key_count": 100_000}],
            "fill": {"records": 100_000, "methods": ["GET"]},
            "connections": [4],
            "threads": [1],
            "rate": [rate_rps],
            "duration": f"{length_s:g}s",
            "warm_up": f"{_LEAST_S:g}s",
            "repeats": launches,
        }
    )


def measure(root: Path, one: Experiment | None = None) -> list[Settled]:
    """Runs and judges; KvstudyError as for any measurement."""
    result = execute(one or experiment(), root, goes_on_by="nothing")
    return [settled(run) for run in result.sealed]


def settled(run: SealedRun) -> Settled:
    observed = observe(run)
    medians, counts = _of_seconds(observed["intervals"])
    cpus = np.full(len(medians), np.nan)
    if run.has("process.csv"):
        process = process_series.read(run.text("process.csv"), "process.csv")
        if "service_jit_cpu_s" in process:
            for second, used_s, compiled_s in zip(
                process["second"], process["service_cpu_s"], process["service_jit_cpu_s"], strict=True
            ):
                if 0 <= second < len(medians) and counts[int(second)]:
                    cpus[int(second)] = (used_s - compiled_s) / counts[int(second)] * 1e6
    ticks_us = CPU_TICKS_US / max(1.0, float(np.median(counts))) if len(counts) else math.inf
    return Settled(
        run.facts["workload"],
        settled_after_s(medians, RESOLUTION_US),
        settled_after_s(cpus, ticks_us),
        _disturbed(observed),
    )


def advice(found: Iterable[Settled]) -> list[str]:
    """A line for each run, and what to write. A disturbed run is told and left out."""
    found = list(found)
    quiet = [one for one in found if not one.disturbed]
    left_out = len(found) - len(quiet)
    lines = [
        f"{one.workload}: "
        + (
            f"left out, disturbed from outside: {one.disturbed}"
            if one.disturbed
            else f"p50 settled after {_said(one.p50_s)}, CPU per request after {_said(one.cpu_s)}"
        )
        for one in found
    ]
    without = f"; {left_out} disturbed from outside left out" if left_out else ""
    times = [time for one in quiet for time in (one.p50_s, one.cpu_s)]
    if {one.workload for one in quiet} != {one.workload for one in found} or not quiet:
        return [
            *lines,
            (
                f"no warm-up can be recommended: a workload has no undisturbed run{without}. Measure on a "
                "quiet machine"
            ),
        ]
    if None in times:
        return [
            *lines,
            (
                f"no warm-up can be recommended: not every run settled{without}. Measure on a quiet "
                "machine, or take the longest you can afford"
            ),
        ]
    return [
        *lines,
        (
            f"write in experiments: warm_up: {max(1, max(times))}s (the longest of {len(quiet)} "
            f"launches{without})"
        ),
    ]


def _of_seconds(intervals: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Median response time and answers of each second, however long an interval is; NaN and 0 where nothing
    was answered."""
    rows = [row for row in intervals if row["latency_kind"] == "response" and row["second"] >= 0]
    length = max((row["second"] for row in rows), default=-1) + 1
    medians, counts = np.full(length, np.nan), np.zeros(length)
    if rows:
        seconds = by_second(pd.DataFrame(rows))
        at = seconds["second"].to_numpy()
        medians[at], counts[at] = seconds["p50_us"], seconds["count"]
    return medians, counts


def _disturbed(observed: dict) -> str:
    """What from outside failed the run; "" where nothing did. What the service itself did is what is measured
    here."""
    if observed["runs"][0]["excluded"] != OUTSIDE:
        return ""
    failed = [
        f"{row['check']} {row['observed']}"
        for row in observed["validity"]
        if row["verdict"] == FAIL and row["check"] not in OF_THE_SERVICE
    ]
    return ", ".join(failed)


def _said(settled_s: int | None) -> str:
    return "longer than was measured" if settled_s is None else f"{settled_s} s"
