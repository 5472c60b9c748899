"""async-profiler in a profiled run: loaded through jcmd, started and stopped with the measured window, converted before sealing.

One JFR file holds all events. cpu uses perf_events with kernel frames where kernel.perf_event_paranoid allows it; where it does not,
async-profiler falls back to timers, and ``engine`` in run.json says so.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from kvstudy.errors import RunFailed
from kvstudy.measure.jdk import Jdk

SAMPLE_INTERVAL = "1ms"
ALLOC_INTERVAL_BYTES = 128 << 10
LOCK_THRESHOLD = "10us"
CONVERTER_TIMEOUT_S = 180
ATTACH_TIMEOUT_S = 30


@dataclass(frozen=True)
class Profiler:
    """``library``: libasyncProfiler.so; ``converter``: jfr-converter.jar."""

    jdk: Jdk
    library: Path
    converter: Path

    def start(self, pid: int, events: tuple[str, ...], recording: Path) -> None:
        self._agent(pid, start_arguments(events, recording))

    def stop(self, pid: int, recording: Path) -> None:
        self._agent(pid, f"stop,jfr,file={recording}")

    def convert(self, recording: Path, events: tuple[str, ...], folder: Path) -> None:
        """``<event>.collapsed`` and ``<event>.flamegraph.html`` for every event, one process each."""
        for event in events:
            weight = ["--total"] if event in ("alloc", "lock") else []
            for output, name, more in (("collapsed", f"{event}.collapsed", []), ("html", f"{event}.flamegraph.html", ["--title", event])):
                argv = [self.jdk.tool("java"), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", str(self.converter), f"--{event}", *weight,
                        "-o", output, *more, str(recording), str(folder / name)]
                done = _finished(argv, CONVERTER_TIMEOUT_S)
                if done.returncode != 0 or not (folder / name).is_file():
                    raise RunFailed(f"profile could not be converted: {name}: {_last_line(done.stderr or done.stdout)}")

    def _agent(self, pid: int, arguments: str) -> None:
        done = _finished([self.jdk.tool("jcmd"), str(pid), "JVMTI.agent_load", str(self.library), f'"{arguments}"'], ATTACH_TIMEOUT_S)
        if done.returncode != 0 or "return code: 0" not in done.stdout:
            raise RunFailed(f"profiler refused: {arguments.split(',')[0]}: {_last_line(done.stdout + done.stderr)}")


def start_arguments(events: tuple[str, ...], recording: Path) -> str:
    """What the agent is told. Memory and locks have options of their own beside the one sampled event."""
    words = ["start", "jfr", f"file={recording}"]
    if "cpu" in events:
        words += ["event=cpu", f"interval={SAMPLE_INTERVAL}"]
    if "wall" in events:
        words += ["event=wall" if "cpu" not in events else "wall=5ms"]
    if "alloc" in events:
        words.append(f"alloc={ALLOC_INTERVAL_BYTES}")
    if "lock" in events:
        words.append(f"lock={LOCK_THRESHOLD}")
    return ",".join(words)


def cpu_engine() -> str:
    """What cpu samples rest on here: ``perf_events`` with kernel frames, or timers without them."""
    try:
        paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    except (OSError, ValueError):
        return "timers, no kernel frames: this system has no perf_events"
    if paranoid <= 1:
        return "perf_events with kernel frames"
    return f"timers or perf_events without kernel frames: kernel.perf_event_paranoid={paranoid}"


def _finished(argv: list[str], timeout_s: float) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, start_new_session=True)
    except subprocess.TimeoutExpired:
        raise RunFailed(f"{Path(argv[0]).name} did not end within {timeout_s:g} s: {' '.join(argv)[:300]}") from None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"
