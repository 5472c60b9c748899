"""The service as a process: its command line, its ready line, its log, and its death noticed."""

import re
import subprocess
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable
from pathlib import Path

from kvstudy.errors import RunFailed
from kvstudy.hosts.process import OwnedProcess, wait_until
from kvstudy.plan.run_plan import Configuration
from kvstudy.subject.evidence.recording import RECORDING_SETTINGS
from kvstudy.subject.jdk import Jdk

READY_TIMEOUT_S = 60.0
# Said by the JVM after its reason, which is all that it said before.
REFUSED_BY_JVM = "Error: Could not create the Java Virtual Machine"
STDOUT_LINES_KEPT = 50
BASE_FLAGS = ["--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow", "-XX:+PerfDisableSharedMem"]
# Frames between safepoints are named too; without it a profile is biased towards loops' ends and calls.
PROFILING_FLAGS = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]


def service_command(jdk: Jdk, jar: Path, configuration: Configuration, store: Path, port: int, gc_log: Path | None, recording: Path | None,
                    profiled: bool) -> list[str]:
    """The argv of the service of one run; ``jar`` is that of the configuration's server. ``gc_log`` and ``recording`` are where the JVM writes them; None for a service that only fills."""
    flags = BASE_FLAGS + configuration.jvm + (PROFILING_FLAGS if profiled else [])
    if gc_log is not None:
        flags += ["-Xlog:disable", "-Xlog:all=warning:stderr", f"-Xlog:gc*,safepoint:file={gc_log}:utctime,uptime,level,tags:filecount=0"]
    if recording is not None:
        flags.append(f"-XX:StartFlightRecording:filename={recording},settings={RECORDING_SETTINGS},dumponexit=true,maxsize=128m")
    if configuration.server == "empty":
        return [jdk.tool("java"), *flags, "-jar", str(jar), "--port", str(port)]
    options = [word for name, value in configuration.service.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return [jdk.tool("java"), *flags, "-jar", str(jar), "--port", str(port), "--dir", str(store), *options]


class Service:
    """A service that is ready. ``url`` has no trailing slash. Raises RunFailed when it does not become ready."""

    def __init__(self, command: list[str], log: Path, cores: list[int] | None = None,
                 registered: Callable[[int, bool], None] | None = None, ready_timeout_s: float = READY_TIMEOUT_S):
        self.command = command
        self._log = log
        self._ready_url: str | None = None
        self._said: deque[str] = deque(maxlen=STDOUT_LINES_KEPT)
        self._process = OwnedProcess(command, stdout=subprocess.PIPE, stderr_path=log, cores=cores, registered=registered)
        self._reader = threading.Thread(target=self._read_stdout, daemon=True)
        self._reader.start()
        try:
            in_time = wait_until(lambda: self._ready_url is not None or self._process.exit_code is not None, ready_timeout_s, step_s=0.01)
            if self._ready_url is None:
                self._keep_what_it_said()
                if in_time:
                    raise RunFailed(f"service ended before it was ready: exit={self._process.exit_code}: {self.last_words()}")
                raise RunFailed(f"service was not ready in time: timeout={ready_timeout_s:g}s: {self.last_words()}")
        except BaseException:
            self._process.stop(timeout_s=2)
            raise
        self.url: str = self._ready_url

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.exit_code

    def check_alive(self, doing: str) -> None:
        """RunFailed when the service has ended by itself."""
        code = self._process.exit_code
        if code is not None:
            how = f"signal {-code}" if code < 0 else f"exit {code}"
            raise RunFailed(f"service died during {doing}: {how}: {self.last_words()}")

    def stop(self, timeout_s: float = 20.0) -> int:
        """Orderly; returns the exit code, 0 when the service has closed its store as it should."""
        return self._process.stop(timeout_s)

    def send(self, number) -> None:
        self._process.send(number)

    def last_words(self) -> str:
        """The last line of its log that says something (frames of a stack trace do not); of a JVM that refused to start its reason."""
        lines = self._log_lines()
        refused = next((number for number, line in enumerate(lines) if line.startswith(REFUSED_BY_JVM)), 0)
        return (" ".join(lines[:refused]) if refused else lines[-1])[:300] if lines else "it said nothing"

    def get(self, path: str, timeout_s: float = 10.0) -> tuple[int, bytes]:
        """Status and body of a GET."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=timeout_s) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except OSError as error:
            self.check_alive(f"GET {path}")
            raise RunFailed(f"service does not answer: GET {path}: {error}") from error

    def _log_lines(self) -> list[str]:
        try:
            text = self._log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        return [line.strip() for line in text.splitlines() if line.strip() and not re.match(r"\s+at ", line)]

    def _keep_what_it_said(self) -> None:
        """Puts what it wrote to stdout into its log where that says nothing: a JVM tells there why its heap could not be had."""
        if self._process.exit_code is not None:
            self._reader.join(timeout=1)
        if self._said and not self._log_lines():
            with self._log.open("a", encoding="utf-8") as log:
                log.writelines(f"{line}\n" for line in list(self._said))

    def _read_stdout(self) -> None:
        try:
            for line in self._process.stdout:
                match = re.match(rb"ready: (http://\S+?)/?\s*$", line)
                if match:
                    self._ready_url = match[1].decode()
                elif text := line.decode(errors="replace").strip():
                    self._said.append(text)
        except ValueError:
            pass  # closed while being read: the service was stopped
