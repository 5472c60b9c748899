"""While a load runs: the sampler, what has to be done to the service at given times, and who has died.

On one machine the generator and the service are watched together. On several each host watches what it has:
one with a service alone does so until it is told that the load is over.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kvstudy.errors import RunFailed
from kvstudy.hosts.interrupt import shielded
from kvstudy.hosts.process import OwnedProcess
from kvstudy.measure.generator import GeneratorCommand, check_load
from kvstudy.measure.live_line import LiveLine
from kvstudy.measure.progress import Second
from kvstudy.measure.sampler import Sampler
from kvstudy.subject.protocol import LiveSubject

POLL_S = 0.02
# How long after its planned end a generator may take: it waits for answers in flight up to its timeout.
GENERATOR_GRACE_S = 10.0


@dataclass(frozen=True)
class Timing:
    """``starts_at_s``: the host's clock (seconds since the epoch) when the load begins; None: at once.
    ``window_s``, ``length_s``: from the start of the load to that of the measured window, and to its end.
    ``is_over``: the word by which a host without a generator is told that there is no more load, and one with
    a generator that it has to end."""

    window_s: float
    length_s: float
    timeout_s: float
    starts_at_s: float | None = None
    is_over: str = ""


@dataclass
class SupervisedLoad:
    """``rows``: of the sampler; also of a load that failed, as far as it came."""

    start_utc: datetime | None = None
    rows: list[dict] = field(default_factory=list)


class Supervision:
    """``agenda``: by ``time.monotonic()``, what is done to the service, given window and end. ``entered`` and
    ``tick``: told of phases and of time that passes."""

    def __init__(
        self,
        timing: Timing,
        subject: LiveSubject | None,
        messages: set[str],
        entered: Callable[[str], None],
        tick: Callable[[], None],
    ):
        self._timing, self._subject, self._messages = timing, subject, messages
        self._entered, self._tick = entered, tick
        self._phase = ""
        self.load = SupervisedLoad()

    def watch_service(self, agenda: Callable[[float, float], list], process_csv: Path) -> SupervisedLoad:
        """Of a service whose generators are on other hosts. RunFailed when it dies."""
        start = self._start()
        window, end = start + self._timing.window_s, start + self._timing.length_s
        sampler = Sampler(self._subject.pids, None, window, process_csv)
        todo = agenda(window, end)
        whole = len(todo)
        sampler.start()
        try:
            while self._timing.is_over not in self._messages:
                self._step(start, window, todo)
                if time.monotonic() > end + self._timing.timeout_s + GENERATOR_GRACE_S:
                    break
            for _, action in todo if len(todo) < whole else ():  # what has begun is ended
                action()
        finally:
            with shielded():
                self.load.rows = sampler.stop()
        self._check_alive()
        return self.load

    def run_generator(
        self,
        kind: str,
        command: GeneratorCommand,
        cores: list[int] | None,
        registered: Callable[[int, bool], None],
        text: Path,
        stderr: Path,
        agenda: Callable[[float, float], list] | None,
        process_csv: Path | None,
        second: Callable[[Second], None] | None = None,
    ) -> SupervisedLoad:
        """Runs a generator to its end; with the service where that is here. With ``process_csv`` this is the
        measured one. ``second``: who is told of every second, where the generator tells of them."""
        timing = self._timing
        line = LiveLine(second, stderr) if second and kind == "loadgen" else None
        with text.open("wb") as out:
            start = self._start()
            generator = OwnedProcess(
                command.argv,
                stdout=out.fileno(),
                stderr_path=stderr,
                cores=cores,
                environment=os.environ | command.environment,
                registered=registered,
                stderr=line.descriptor if line else None,
            )
        window, end = start + timing.window_s, start + timing.length_s
        sampler = (
            Sampler(self._subject.pids if self._subject else None, generator.pid, window, process_csv)
            if process_csv
            else None
        )
        todo = agenda(window, end) if agenda else []
        if sampler:
            sampler.start()
        self._enter("warm_up" if start < window or not process_csv else "measure")
        try:
            while generator.exit_code is None:
                self._step(start, window if process_csv else None, todo)
                if time.monotonic() > end + timing.timeout_s + GENERATOR_GRACE_S:
                    waited = time.monotonic() - start
                    raise RunFailed(
                        f"generator did not end: planned={timing.length_s:g}s waited={waited:.0f}s"
                    )
                if timing.is_over and timing.is_over in self._messages:
                    raise RunFailed("generator was ended: the run failed elsewhere")
            for _, action in todo:
                action()
        finally:
            with shielded():
                code = generator.stop(timeout_s=1.0)
                if line:
                    line.close()
                if sampler:
                    self.load.rows = sampler.stop()
        self._check_alive()
        check_load(kind, code, stderr)
        if (lasted := time.monotonic() - start) < timing.length_s * 0.95:
            raise RunFailed(f"generator ended too early: planned={timing.length_s:g}s lasted={lasted:.1f}s")
        return self.load

    def _start(self) -> float:
        """``time.monotonic()`` at which the load begins. A clock that is set meanwhile does not move it."""
        now, now_utc = time.monotonic(), time.time()
        start = now if self._timing.starts_at_s is None else now + self._timing.starts_at_s - now_utc
        self.load.start_utc = datetime.fromtimestamp(now_utc + start - now, UTC)
        return start

    def _step(self, start: float, window: float | None, todo: list) -> None:
        # Not wait(POLL_S), which wakes up five times as often on the cores that are measured.
        time.sleep(POLL_S)
        now = time.monotonic()
        if window is not None and self._phase != "measure" and now >= window:
            self._enter("measure")
        while todo and now >= todo[0][0]:
            todo.pop(0)[1]()
        self._check_alive()
        self._tick()

    def _check_alive(self) -> None:
        if self._subject:
            self._subject.check_alive(self._phase or "warm_up")

    def _enter(self, phase: str) -> None:
        self._phase = phase
        self._entered(phase)
