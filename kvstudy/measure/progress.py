"""How far a measurement is and how long it still takes: a bar in a terminal or notebook, a line per run
elsewhere.

The bar counts planned seconds, so that short and long runs weigh what they take; its rate corrects the
estimate as runs go by.
"""

import sys
import time
from typing import NamedTuple

from kvstudy.plan.run_plan import PlannedRun
from kvstudy.units import format_duration

BAR = "{desc} {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left{postfix}"


class Second(NamedTuple):
    """What the generator told of its last second: answers, and their response times as it writes them."""

    rate_rps: int
    p50: str
    p99: str


class Progress:
    """``with Progress(runs, fill_s)``: ``begin`` and ``end`` for each run; ``doing`` and ``tick`` between
    them."""

    wants_seconds = False  # whether ``second`` is to be called, for each second under load

    def __init__(self, runs: list[PlannedRun], fill_s: float, bar: bool = True):
        self._total_s = sum(run.estimated_s for run in runs) + fill_s
        self._runs = len(runs)
        self._done = 0
        self._done_s = 0.0
        self._run: PlannedRun | None = None
        self._begun: set[str] = set()
        self._run_start = self._start = time.monotonic()
        self._bar = _bar(self._total_s) if bar and shows_bars() else None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def begin(self, run: PlannedRun) -> None:
        """One that was begun before is one more: other hosts measure what a lost one had."""
        if (identity := run.identity()) in self._begun:
            self._runs += 1
            self._total_s += run.estimated_s
            if self._bar is not None:
                self._bar.total = self._total_s
        self._begun.add(identity)
        self._run, self._run_start = run, time.monotonic()
        self.doing("begin")

    def doing(self, phase: str) -> None:
        """``phase``: wait for …, begin, launch, fill, warm-up, measure, check, stop, seal."""
        if self._bar is not None and self._run is not None:
            self._bar.set_description_str(
                f"{self._done + 1}/{self._runs} {self._run.configuration.summary()}", refresh=False
            )
            self._bar.set_postfix_str(phase, refresh=True)
        elif phase.startswith(("fill ", "wait ")):
            print(f"{phase} …", file=sys.stderr, flush=True)

    def tick(self) -> None:
        if self._bar is not None and self._run is not None:
            self._to(self._done_s + min(time.monotonic() - self._run_start, self._run.estimated_s))

    def second(self, second: Second) -> None:
        """Called by another thread than the measuring one."""

    def end(self, run: PlannedRun, outcome: str) -> None:
        self._done += 1
        self._done_s += run.estimated_s
        kind = " profiled" if run.profile else ""
        line = f"{self._done}/{self._runs} {run.configuration.summary()} repeat {run.repeat}{kind}: {outcome}"
        if self._bar is not None:
            self._to(self._done_s)
            if outcome != "completed":
                self._bar.write(line, file=sys.stderr)
            return
        left_s = (time.monotonic() - self._start) / self._done_s * max(0.0, self._total_s - self._done_s)
        left = f", {format_duration(round(left_s))} left" if self._done < self._runs else ""
        print(line + left, file=sys.stderr, flush=True)

    def _to(self, seconds: float) -> None:
        self._bar.update(max(0.0, seconds - self._bar.n))


def _bar(total_s: float):
    from tqdm import tqdm  # of text, in a notebook too: a widget would be dead in the saved one

    return tqdm(total=total_s, bar_format=BAR, smoothing=0, dynamic_ncols=True, mininterval=0.5)


def shows_bars() -> bool:
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    """Whether this process is a notebook's kernel; that some module imported ipykernel (papermill does) is
    not enough."""
    kernel_app = sys.modules.get("ipykernel.kernelapp")
    return kernel_app is not None and kernel_app.IPKernelApp.initialized()
