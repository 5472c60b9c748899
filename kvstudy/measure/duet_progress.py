"""How far a duet is: one line that renews itself in a terminal or notebook, and what each launch found as
lines of their own everywhere."""

import sys
import time
from contextlib import suppress

from kvstudy.measure.progress import shows_bars
from kvstudy.units import format_duration

RENEW_S = 0.5


class DuetProgress:
    """``begin`` for each launch; ``doing`` and ``tick`` between; ``say`` for what stays."""

    def __init__(self, within_s: float):
        self._within_s = within_s
        self._start = time.monotonic()
        self._live = shows_bars()
        self._launch, self._phase, self._renewed = 0, "", 0.0

    def begin(self, launch: int) -> None:
        if self._launch == 0:
            self._start = time.monotonic()
        self._launch = launch

    def waited(self, seconds: float) -> None:
        """For a quiet machine: that is not counted as gone."""
        self._start += seconds

    def doing(self, phase: str) -> None:
        """``phase``: wait for …, fill …, launch, get at the rate, get closed loop, get profile, check, stop,
        convert, seal."""
        self._phase = phase
        if self._live:
            self._renew()
        elif phase.startswith(("fill ", "wait ")):
            print(f"{phase} …", file=sys.stderr, flush=True)

    def tick(self) -> None:
        if self._live and time.monotonic() - self._renewed >= RENEW_S:
            self._renew()

    def say(self, line: str) -> None:
        print(f"\r\033[K{line}" if self._live else line, file=sys.stderr, flush=True)

    def _renew(self) -> None:
        self._renewed = time.monotonic()
        launch = f"launch {self._launch}, " if self._launch else ""
        gone = (
            (
                f", {format_duration(round(self._renewed - self._start))} of "
                f"{format_duration(self._within_s)} gone"
            )
            if self._launch
            else ""
        )
        with suppress(OSError):  # of a terminal that was closed: its launch is sealed all the same
            print(f"\r\033[K{launch}{self._phase}{gone}", end="", file=sys.stderr, flush=True)
