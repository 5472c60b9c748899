"""A process that has become ready: its log, its death noticed, its end.

How it says that it is ready is its adapter's business: ``ready(launched)`` is asked until it gives an
address. Anything else that a process does instead (it ends, it says nothing, it takes too long) is one line,
and nothing is left running.
"""

import os
import re
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from signal import SIGTERM, Signals

from kvstudy.errors import RunFailed
from kvstudy.hosts.memory_group import MemoryGroup, NoMemoryGroup
from kvstudy.hosts.process import OwnedProcess, wait_until
from kvstudy.units import format_bytes

READY_TIMEOUT_S = 60.0
READY_STEP_S = 0.01
STDOUT_LINES_KEPT = 50
SEARCHED_BYTES = 16 << 20  # at once, of a log that may be of any length
LAST_BYTES = 64 << 10
# Of a log that is longer its beginning stays, and its end.
LOG_MAX_BYTES, LOG_BEGIN_BYTES = 256 << 20, 64 << 20
# Said by the JVM after its reason, which is all that it said before.
REFUSED_BY_JVM = "Error: Could not create the Java Virtual Machine"


class Launched:
    """``url`` has no trailing slash. RunFailed when it does not become ready.

    stderr goes to ``log``. With ``ready_line`` stdout is read line by line, and ``announced`` is the first
    group of the first line that matches; without it stdout goes to the log too. ``memory_bytes``: it gets a
    memory group of so much, which goes when it ends. ``awaited``: says what is missing as long as it is
    not ready. ``starts_anywhere``: it is confined to its cores when it is ready, not before.
    """

    def __init__(
        self,
        command: list[str],
        log: Path,
        ready: Callable[["Launched"], str | None],
        *,
        ready_line: re.Pattern[bytes] | None = None,
        cores: list[int] | None = None,
        registered: Callable[[int, bool], None] | None = None,
        environment: dict[str, str] | None = None,
        folder: Path | None = None,
        ready_timeout_s: float = READY_TIMEOUT_S,
        awaited: Callable[[], str] | None = None,
        memory_bytes: int | None = None,
        starts_anywhere: bool = False,
    ):
        self.command = command
        self.announced: str | None = None
        self._said: deque[str] = deque(maxlen=STDOUT_LINES_KEPT)
        self._log, self._log_begin = log, _size(log)  # before it may stand what another one said
        self._searched_until = self._log_begin
        self._cut_out = 0
        self._ready_line = ready_line
        self._group = _group_of(memory_bytes)
        try:
            self._process = self._started(None if starts_anywhere else cores, registered, environment, folder)
        except BaseException as error:
            self._leave_group()
            if isinstance(error, OSError):
                raise RunFailed(
                    f"service cannot be started: {command[0]}: {(error.strerror or str(error)).lower()}"
                ) from error
            raise
        if ready_line:
            self._reader = threading.Thread(target=self._read_stdout, daemon=True)
            self._reader.start()
        url: str | None = None

        def has_begun_or_ended() -> bool:
            nonlocal url
            self._bound_log()
            ended = self._process.exit_code is not None  # asked first: what it said before its end counts
            if ended and ready_line:
                self._reader.join(timeout=1)
            url = ready(self)
            return url is not None or ended

        try:
            in_time = wait_until(has_begun_or_ended, ready_timeout_s, step_s=READY_STEP_S)
            if url is None:
                self._keep_what_it_said()
                if in_time:
                    raise RunFailed(
                        self.want_of_memory("before it was ready")
                        or f"service ended before it was ready: {how_it_ended(self._process.exit_code)}: "
                        f"{self.last_words()}{f'; it ran in {folder}' if folder else ''}"
                    )
                last = f"{awaited()}; it last wrote: " if awaited else ""
                raise RunFailed(
                    f"service was not ready in time: timeout={ready_timeout_s:g}s: {last}{self.last_words()}"
                )
            if starts_anywhere and cores:
                self._process.confine(cores)
        except BaseException:
            self._process.stop(timeout_s=2)
            self._leave_group()
            raise
        self.url: str = url

    def _started(self, cores, registered, environment, folder) -> OwnedProcess:
        command = [*(self._group.prefix if self._group else []), *self.command]
        if self._ready_line:
            return OwnedProcess(
                command,
                stdout=subprocess.PIPE,
                stderr_path=self._log,
                cores=cores,
                registered=registered,
                environment=environment,
                folder=folder,
            )
        with self._log.open("ab") as stdout:
            return OwnedProcess(
                command,
                stdout=stdout.fileno(),
                stderr_path=self._log,
                cores=cores,
                registered=registered,
                environment=environment,
                folder=folder,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.exit_code

    @property
    def outlived_by(self) -> list[int]:
        """Who did not end in time when it was stopped, and was killed."""
        return self._process.outlived_by

    def check_alive(self, doing: str) -> None:
        """RunFailed when it has ended by itself."""
        self._bound_log()
        code = self._process.exit_code
        if code is not None:
            raise RunFailed(
                self.want_of_memory(f"during {doing}")
                or f"service died during {doing}: {how_it_ended(code).replace('=', ' ')}: {self.last_words()}"
            )

    def want_of_memory(self, when: str) -> str | None:
        """What to say of one that ended because its memory group was full; None where it was not so."""
        if self._group is None or not self._group.killed:
            return None
        return (
            f"service was killed {when}: its memory group is too small: "
            f"memory={format_bytes(self._group.limit_bytes)}: "
            "give it more memory, or a smaller heap"
        )

    @property
    def memory_group(self) -> dict | None:
        """Facts of its memory group, also after its end; None where it has none."""
        return self._group.facts if self._group else None

    def send(self, number: Signals) -> None:
        self._process.send(number)

    def stop(self, timeout_s: float = 20.0, by: Signals = SIGTERM) -> int:
        """Orderly; the exit code."""
        try:
            return self._process.stop(timeout_s, by)
        finally:
            self._leave_group()

    def _leave_group(self) -> None:
        if self._group:
            self._group.end()

    def has_said(self, text: str) -> bool:
        """Whether a line of its log holds it. Asked again and again: what was looked through is not read
        twice, and a log that grows faster than it is read is left for the next time."""
        wanted, found = text.encode(errors="surrogateescape"), b""
        with suppress(OSError), self._log.open("rb") as log:
            log.seek(self._searched_until)
            found = log.read(SEARCHED_BYTES)
        if wanted in found:
            return True
        self._searched_until += max(0, len(found) - len(wanted) + 1)
        return False

    def _bound_log(self) -> None:
        """Who writes without end does not fill the disk: its next line follows what is kept, since it was
        given the log to append to."""
        begin = self._log_begin + LOG_BEGIN_BYTES
        if (size := _size(self._log)) - self._log_begin <= LOG_MAX_BYTES:
            return
        end = self._end_of_log(begin)
        self._cut_out += size - begin - len(end)
        with suppress(OSError):
            os.truncate(self._log, begin)
            with self._log.open("ab") as log:
                log.write(b"\nkvstudy: log too long: bytes cut out here: %d\n%s" % (self._cut_out, end))
        self._searched_until = min(self._searched_until, begin)

    def _last_lines(self) -> list[str]:
        """Of its log, those that say something: frames of a stack trace do not."""
        text = self._end_of_log(self._log_begin).decode(errors="replace")
        return [line.strip() for line in text.splitlines() if line.strip() and not re.match(r"\s+at ", line)]

    def _end_of_log(self, begin: int) -> bytes:
        with suppress(OSError), self._log.open("rb") as log:
            log.seek(max(begin, _size(self._log) - LAST_BYTES))
            return log.read(LAST_BYTES)
        return b""

    def last_words(self) -> str:
        """The last line of its log that says something; of a JVM that refused to start its reason."""
        lines = self._last_lines()
        refused = next((number for number, line in enumerate(lines) if line.startswith(REFUSED_BY_JVM)), 0)
        return (" ".join(lines[:refused]) if refused else lines[-1])[:300] if lines else "it said nothing"

    def _keep_what_it_said(self) -> None:
        """Puts what it wrote to stdout into its log where that says nothing: a JVM tells there why its heap
        could not be had."""
        if self._ready_line and self._process.exit_code is not None:
            self._reader.join(timeout=1)
        if self._said and not self._last_lines():
            with self._log.open("a", encoding="utf-8") as log:
                log.writelines(f"{line}\n" for line in list(self._said))

    def _read_stdout(self) -> None:
        try:
            for line in self._process.stdout:
                match = self._ready_line.match(line)
                if match and self.announced is None:
                    self.announced = match[1].decode()
                elif text := line.decode(errors="replace").strip():
                    self._said.append(text)
        except ValueError:
            pass  # closed while being read: the service was stopped


def check_free(port: int, host: str) -> None:
    """RunFailed where another program has it."""
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise RunFailed(
            f"service cannot have its port: port {port}: {os.strerror(error.errno or 0).lower()}"
        ) from error


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def how_it_ended(code: int | None) -> str:
    """``exit=1``, or ``signal=9``."""
    return f"signal={-code}" if code is not None and code < 0 else f"exit={code}"


def _group_of(memory_bytes: int | None) -> MemoryGroup | None:
    if memory_bytes is None:
        return None
    try:
        return MemoryGroup(memory_bytes).__enter__()
    except NoMemoryGroup as missing:
        raise RunFailed(
            f"service cannot be limited to its memory: {missing.message}", missing.hint
        ) from missing
