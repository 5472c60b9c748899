"""`kvstudy doctor --warm-up`: how long a fresh service needs on this machine until its median latency and its CPU per request have settled.

Real runs without a warm-up of their own, sealed under data/raw/warm-up as any other; they answer no other question. What is recommended is
the longest of all that were measured.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kvstudy.analyse.observation import observe
from kvstudy.analyse.settling import settled_after_s
from kvstudy.analyse.validity import CPU_TICKS_US, RESOLUTION_US
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
    """Of one run: seconds until p50 and CPU per request had settled; None: not within the run."""

    workload: str
    p50_s: int | None
    cpu_s: int | None


def experiment(length_s: float = LONGEST_S, launches: int = LAUNCHES, rate_rps: float = 4000.0) -> Experiment:
    return Experiment.from_parameters({
        "name": NAME, "question": "How long does a fresh service need until its latency and its CPU have settled?",
        "expectation": f"Both have settled within {length_s * 2 / 3:.0f} s.",
        "workload": [{"script": "put", "key_count": 100_000}, {"script": "get", "key_count": 100_000}], "fill": {"records": 100_000, "methods": ["GET"]},
        "connections": [4], "threads": [1], "rate": [rate_rps], "duration": f"{length_s:g}s", "warm_up": f"{_LEAST_S:g}s", "repeats": launches,
    })  # fmt: skip


def measure(root: Path, one: Experiment | None = None) -> list[Settled]:
    """Runs and judges; KvstudyError as for any measurement."""
    result = execute(one or experiment(), root)
    return [settled(run) for run in result.sealed]


def settled(run: SealedRun) -> Settled:
    rows = [row for row in observe(run)["intervals"] if row["latency_kind"] == "response" and row["second"] >= 0]
    length = max((row["second"] for row in rows), default=-1) + 1
    medians, counts = np.full(length, np.nan), np.zeros(length)
    for row in rows:
        medians[row["second"]], counts[row["second"]] = row["p50_us"], row["count"]
    cpus = np.full(length, np.nan)
    if run.has("process.csv"):
        process = process_series.read(run.text("process.csv"), "process.csv")
        if "service_jit_cpu_s" in process:
            for second, used_s, compiled_s in zip(process["second"], process["service_cpu_s"], process["service_jit_cpu_s"], strict=True):
                if 0 <= second < length and counts[int(second)]:
                    cpus[int(second)] = (used_s - compiled_s) / counts[int(second)] * 1e6
    ticks_us = CPU_TICKS_US / max(1.0, float(np.median(counts))) if length else math.inf
    return Settled(run.facts["workload"], settled_after_s(medians, RESOLUTION_US), settled_after_s(cpus, ticks_us))


def advice(found: Iterable[Settled]) -> list[str]:
    """A line for each run, and what to write."""
    found = list(found)
    lines = [f"{one.workload}: p50 settled after {_said(one.p50_s)}, CPU per request after {_said(one.cpu_s)}" for one in found]
    times = [time for one in found for time in (one.p50_s, one.cpu_s)]
    if not times or None in times:
        return [*lines, "no warm-up can be recommended: not every run settled. Measure on a quiet machine, or take the longest you can afford"]
    return [*lines, f"write in experiments: warm_up: {max(1, max(times))}s (the longest of {len(found)} launches)"]


def _said(settled_s: int | None) -> str:
    return "longer than was measured" if settled_s is None else f"{settled_s} s"
