"""Waiting for a quiet machine before a run: what its host or other programs disturb says nothing, and costs
as much time as what does.

The host's share shows only while this machine wants the CPU. So a probe works on every core for a moment and
asks the kernel how much of that was refused; an idle machine looks quiet however busy its host is.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable

import psutil

from kvstudy.disturbance import disturbance
from kvstudy.measure.machine import load_now

PROBE_S = 0.4  # 40 ticks of the kernel's count on each core: 5 % are two of them
PAUSE_S = 5.0


class Patience:
    """``wait`` returns when the machine is quiet, or when ``budget_s`` is spent; all calls together wait that
    long at most, and without a budget nothing is looked at. Crews that wait side by side spend it together:
    each what it waits."""

    def __init__(
        self,
        budget_s: float,
        probe: Callable[[], str | None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._left_s = budget_s
        self._probe, self._sleep, self._clock = probe, sleep, clock
        self._spending = threading.Lock()

    def wait(self, doing: Callable[[str], None], disturbed: Callable[[], str | None] | None = None) -> float:
        """Seconds waited; ``doing`` is told once what is waited for. ``disturbed``: says what disturbs the
        machines that are measured; None: this one is asked."""
        if self._left_s <= 0:
            return 0.0
        began = self._clock()
        announced = False
        probe = self._probe or disturbed or disturbed_now
        while (reason := probe()) and (left_s := self._left_s - (self._clock() - began)) > 0:
            if not announced:
                doing(f"wait for a quiet machine: {reason}")
                announced = True
            self._sleep(min(PAUSE_S, left_s))
        waited_s = (
            self._clock() - began if announced else 0.0
        )  # a probe that found it quiet costs nobody's patience
        with self._spending:
            self._left_s -= waited_s
        return waited_s


def disturbed_now(probe_s: float = PROBE_S) -> str | None:
    """What takes the CPU from us now, by the rule for runs (``disturbance``); None when the machine is quiet.
    Works on every core for ``probe_s``."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1
    began, used_s = time.monotonic(), time.process_time()
    workers = [threading.Thread(target=_work, args=(began + probe_s,)) for _ in range(cores)]
    for worker in workers:
        worker.start()
    load = load_now(probe_s)
    ours_share = (time.process_time() - used_s) / (time.monotonic() - began) / (psutil.cpu_count() or 1)
    for worker in workers:
        worker.join()
    return disturbance(
        {
            "foreign_cpu_share_mean": max(0.0, load["busy_share"] - ours_share),
            "steal_share_mean": load["steal_share"],
        }
    )


def _work(until: float) -> None:
    while time.monotonic() < until:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 4000)  # milliseconds without the interpreter's lock
