"""A child process that cannot outlive its run: its own process group, ended orderly, then by force.

Its own group, so that Ctrl-C in a terminal or a notebook reaches kvstudy alone, which then ends its children
in order and seals the run. Where Linux offers it, the child also gets SIGTERM when its creator dies without a
word (SIGKILL, a notebook kernel shut down): ``setpriv`` asks the kernel for that and becomes the program, so
that pid and exit code are the program's.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import ClassVar

import psutil

from kvstudy.hosts.interrupt import shielded

ORDERLY_STOP_TIMEOUT_S = 20.0
KILLED_TIMEOUT_S = 5.0
STOPPED_WITHIN_S = 5.0  # a thread that waits for the disk stops when it has what it waits for


class OwnedProcess:
    """``argv`` runs in its own session. ``registered`` is told the pid at start and at the end, so that a
    crash leaves a trace. ``folder``: where it runs; ours if it is not said. ``stderr``: a descriptor in the
    place of the file ``stderr_path``."""

    alive: ClassVar[set[int]] = (
        set()
    )  # of all that were started and not stopped yet, the session too, since each leads its own

    def __init__(
        self,
        argv: list[str],
        *,
        stdout: int = subprocess.DEVNULL,
        stderr_path: Path,
        cores: list[int] | None = None,
        environment: dict[str, str] | None = None,
        registered: Callable[[int, bool], None] | None = None,
        folder: Path | None = None,
        stderr: int | None = None,
    ):
        self.argv = argv
        self.outlived_by: list[
            int
        ] = []  # who was still there when the time of ``stop`` was over, and was killed
        self._registered = registered or (lambda _pid, _alive: None)
        # An interrupt waits until the pid is noted: whoever catches it can then end the child.
        with shielded():
            with stderr_path.open("ab") as log, _affinity(cores):
                self._process = subprocess.Popen(
                    [*_until_creator_dies(), *argv],
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=log if stderr is None else stderr,
                    env=environment,
                    cwd=folder,
                    start_new_session=True,
                )
            self.alive.add(self.pid)
            self._registered(self.pid, True)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdout(self):
        return self._process.stdout

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process.poll()

    def stop(self, timeout_s: float = ORDERLY_STOP_TIMEOUT_S, by: signal.Signals = signal.SIGTERM) -> int:
        """The signal ``by`` to its whole session, and SIGKILL to who is left of it when the time is over.
        Returns the exit code; safe to call again.

        The time is everybody's: a shell that runs the program dies of the signal at once, and the program may
        need as long as it is given to end by itself."""
        if self.pid not in self.alive:
            return self._process.wait()
        end = time.monotonic() + timeout_s
        self._signal(signal.SIGCONT)
        self._signal(by)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        if not wait_until(lambda: not self._left(), max(0.0, end - time.monotonic())):
            self.outlived_by = [process.pid for process in self._left()]
            wait_until(self._killed, KILLED_TIMEOUT_S)
        code = self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self.alive.discard(self.pid)
        self._registered(self.pid, False)
        return code

    def send(self, number: signal.Signals) -> None:
        self._signal(number)

    def confine(self, cores: list[int]) -> None:
        """Every thread of it runs on these cores from now on, and what they start. It has no children yet.

        It is stopped meanwhile: while threads end the kernel's list leaves others out, and one that is being
        started has its creator's cores of before. A process that has ended is left alone: whoever asks for
        its exit code says so."""
        threads = Path(f"/proc/{self.pid}/task")
        self._process.send_signal(signal.SIGSTOP)  # nothing, where it is known to have ended
        try:
            wait_until(lambda: all(map(_is_stopped, threads.glob("*/stat"))), STOPPED_WITHIN_S, 0.001)
            for thread in names_in(str(threads)):
                _confine(int(thread), cores)
        finally:
            self._process.send_signal(signal.SIGCONT)

    def wait(self, timeout_s: float) -> bool:
        """True when it has ended within the time."""
        try:
            self._process.wait(timeout_s)
            return True
        except subprocess.TimeoutExpired:
            return False

    def _left(self) -> list[psutil.Process]:
        """Of its session, itself included."""
        # else its own end would leave it there, as one that nobody asked for its exit code
        self._process.poll()
        return session_of(self.pid)

    def _killed(self) -> bool:
        """Again and again: what is killed may have started another one meanwhile."""
        left = self._left()
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        return not left

    def _signal(self, number: signal.Signals) -> None:
        """To its group at once; one by one to those of its session that are in groups of their own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        for process in session_of(self.pid):
            with suppress(psutil.Error, OSError):
                if os.getpgid(process.pid) != self.pid:
                    process.send_signal(number)


def session_of(leader: int) -> list[psutil.Process]:
    """Who runs in the session, or the group, that ``leader`` began, whether he is still there or not."""
    found = []
    for pid in psutil.pids():
        with suppress(psutil.Error, OSError):
            if leader in (os.getsid(pid), os.getpgid(pid)):
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
    return found


def command_text(argv: list[str], environment: dict[str, str]) -> str:
    """What service.cmd and generator.cmd hold: one argument per line, then the environment variables that
    were set for it."""
    lines = [*argv, "", *(f"{name}={value}" for name, value in sorted(environment.items()))]
    return "\n".join(lines).rstrip("\n") + "\n"


@cache
def _until_creator_dies() -> list[str]:
    """The words before a command that tie its life to ours; none where util-linux's setpriv is missing or too
    old."""
    words = ["setpriv", "--pdeathsig", "TERM", "--"]
    try:
        return words if subprocess.run([*words, "true"], capture_output=True).returncode == 0 else []
    except OSError:
        return []


def wait_until(condition: Callable[[], bool], timeout_s: float, step_s: float = 0.05) -> bool:
    """Polls; False when the time is over first."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(step_s)
    return True


def names_in(folder: str) -> list[str]:
    """None where it is gone, as that of a process that has ended."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_stopped(stat: Path) -> bool:
    """Of a thread, by its file; one that has ended runs nowhere."""
    with suppress(OSError):
        return stat.read_text(errors="replace").rpartition(") ")[2][0] in "TtZX"
    return True


def _confine(thread: int, cores: list[int]) -> None:
    with suppress(ProcessLookupError):
        os.sched_setaffinity(thread, cores)


@contextmanager
def _affinity(cores: list[int] | None) -> Iterator[None]:
    """A child takes its creator's affinity: set for the moment of its creation, so that not one of its
    threads starts elsewhere."""
    if cores is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
