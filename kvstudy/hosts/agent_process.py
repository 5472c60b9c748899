"""The agent of a host as a child of this process: what a worker of the cluster starts, and tests start too.

agent = AgentProcess({"folder": …, "name": …, "address": …, "who": …, "token": …})
                          KvstudyError when the host is taken, or its folder somebody else's
agent.exchange(frame)     the answer's frame; may be called by several threads; HostLost when the agent ends
agent.end()               waits until all that ran there has ended
"""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import SimpleQueue

from kvstudy.errors import HostLost
from kvstudy.hosts import wire
from kvstudy.hosts.folder import claim

START_TIMEOUT_S = 12.0  # whoever waits for it has given up before: remote.py
LOG_BYTES_MAX = 1_000_000  # then it is begun anew
END_TIMEOUT_S = 5.0  # what an agent that does not end had started the next one ends


class AgentProcess:
    def __init__(self, asked: dict):
        self._log = Path(asked["folder"]).expanduser() / "agent.log"
        self._numbers = count(1)
        self._waiting: dict[int, SimpleQueue[bytes | None]] = {}
        self._lock = threading.Lock()
        self._has_ended = False
        with _log(self._log) as log:
            self._log_begin = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kvstudy.hosts.agent", json.dumps(asked)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            )
        late = self._killed_after(START_TIMEOUT_S)  # one that stands still says nothing
        try:
            _, is_well, packed = wire.unpack(wire.read_frame(self._process.stdout))
            said = wire.unpack(packed)
        except EOFError:
            self._process.wait()
            raise HostLost(f"agent did not start: {self._last_words()}") from None
        finally:
            late.cancel()
        if not is_well:
            self.end()
            raise said
        self.pid: int = said["pid"]
        self.versions: dict[str, str | None] = said.get("versions", {})
        threading.Thread(target=self._read, daemon=True, name="agent").start()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def exchange(self, frame: bytes) -> bytes:
        """``frame``: of (kind, payload); the answer's: of (is it well, value or error)."""
        number, answer = next(self._numbers), SimpleQueue()
        with self._lock:
            if self._has_ended:
                raise HostLost(f"agent has ended: {self._last_words()}")
            self._waiting[number] = answer
            with suppress(BrokenPipeError):  # then the reader says so
                wire.write_frame(self._process.stdin, wire.pack((number, wire.unpack(frame))))
        got = answer.get()
        if got is None:
            raise HostLost(f"agent has ended: {self._last_words()}")
        return got

    def end(self) -> None:
        late = self._killed_after(END_TIMEOUT_S)
        try:
            with suppress(OSError):
                self._process.stdin.close()  # waits for a thread that still writes to it
            self._process.wait()
        finally:
            late.cancel()

    def _killed_after(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self._process.kill)
        timer.daemon = True
        timer.start()
        return timer

    def _read(self) -> None:
        with suppress(EOFError, OSError, ValueError):
            while True:
                number, *answer = wire.unpack(wire.read_frame(self._process.stdout))
                self._waiting.pop(number).put(wire.pack(answer))
        with self._lock:
            self._has_ended = True
            for answer in self._waiting.values():
                answer.put(None)

    def _last_words(self) -> str:
        code = None
        with suppress(subprocess.TimeoutExpired):  # its pipe closes a moment before it has ended
            code = self._process.wait(1.0)
        with suppress(OSError):
            text = self._log.read_bytes()[self._log_begin :].decode(errors="replace")
            lines = [line for line in text.splitlines() if line.strip()]
            if lines and code not in (0, None) and code > 0:
                return lines[-1].strip()[:300]
        return "it was killed" if code and code < 0 else "it says nothing"


def _log(path: Path):
    """In a folder of our own; nowhere where it cannot be written: the agent then says why."""
    try:
        claim(path.parent)
        # Behind what another one says, which may be somebody else's.
        return path.open("ab" if path.exists() and path.stat().st_size < LOG_BYTES_MAX else "wb")
    except OSError:
        return open(os.devnull, "wb")
