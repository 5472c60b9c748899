"""async-profiler in a profiled run: loaded through jcmd, started and stopped with the measured window,
converted before sealing.

One JFR file holds all events. cpu uses perf_events with kernel frames where kernel.perf_event_paranoid allows
it; where it does not, async-profiler falls back to timers, and ``engine`` in run.json says so.
"""

import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kvstudy.errors import RunFailed
from kvstudy.record import stacks
from kvstudy.subject.evidence.slow_profile import slow_seconds
from kvstudy.subject.jdk import Jdk

SAMPLE_INTERVAL = "1ms"
ALLOC_INTERVAL_BYTES = 128 << 10
LOCK_THRESHOLD = "10us"
CONVERTER_TIMEOUT_S = 180
ATTACH_TIMEOUT_S = 30


@dataclass(frozen=True)
class Seen:
    """What of a recording is of the run. ``clock_offset_s``: what has to be added to the recording's times to
    get the latency log's; ``window``: begin and end of the measured one, ``covered``: of the recording, both
    in seconds since the epoch by that log's clock."""

    clock_offset_s: float
    window: tuple[float, float]
    covered: tuple[float, float]

    def options(self, part: tuple[float, float]) -> list[str]:
        """The converter's, of a part by the log's clock: it takes whole milliseconds."""
        begin_ms, end_ms = (round((at_s - self.clock_offset_s) * 1000) for at_s in part)
        return ["--from", str(begin_ms), "--to", str(end_ms)]


@dataclass(frozen=True)
class Profiler:
    """``library``: libasyncProfiler.so; ``converter``: jfr-converter.jar."""

    jdk: Jdk
    library: Path
    converter: Path

    def start(self, pid: int, events: tuple[str, ...], recording: Path) -> None:
        with _without_commas(recording) as path:
            self._agent(pid, start_arguments(events, path))

    def stop(self, pid: int) -> None:
        self._agent(pid, "stop")

    def convert(self, recording: Path, events: tuple[str, ...], folder: Path, seen: Seen) -> None:
        """``<event>.collapsed`` and ``<event>.flamegraph.html`` of the measured window for every event, one
        process each; of cpu also its heat map, and both forms again for the slow seconds alone
        (``cpu_slow``), by the latency log that stands beside."""
        window = seen.options(seen.window)
        for event in events:
            self.convert_event(recording, event, folder.joinpath, window)
        if "cpu" in events:
            heatmap = folder / "cpu.heatmap.html"
            self._convert(["--cpu", *window, "-o", "heatmap", "--title", "cpu"], recording, heatmap)
            if "<html" not in heatmap.read_text(encoding="utf-8", errors="replace")[:1000].lower():
                heatmap.unlink()  # of no sample it says so in a line
            self._convert_slow(recording, folder, seen)

    def convert_event(
        self, recording: Path, event: str, file: Callable[[str], Path], window: Sequence[str] = ()
    ) -> None:
        """The first line of ``convert``, for one event. ``file``: the path of a file by its name; ``window``:
        the converter's options for a part of the recording."""
        weight = ["--total"] if event in ("alloc", "lock") else []
        kind = [f"--{event}", *weight, *window]
        self._convert([*kind, "-o", "collapsed"], recording, file(f"{event}.collapsed"))
        self._convert([*kind, "-o", "html", "--title", event], recording, file(f"{event}.flamegraph.html"))

    def _convert_slow(self, recording: Path, folder: Path, seen: Seen) -> None:
        whole: Counter[str] = Counter()
        for second in slow_seconds(folder / "latency.hlog", seen.covered):
            part = folder / "cpu_slow.part"
            self._convert(["--cpu", *seen.options(second), "-o", "collapsed"], recording, part)
            whole.update(stacks.read(part.read_text(encoding="utf-8"), part.name))
            part.unlink()
        if whole:
            collapsed = folder / "cpu_slow.collapsed"
            collapsed.write_text(
                "".join(f"{stack} {samples}\n" for stack, samples in sorted(whole.items())), encoding="utf-8"
            )
            self._convert(
                ["-o", "html", "--title", "cpu, slow seconds"], collapsed, folder / "cpu_slow.flamegraph.html"
            )

    def _convert(self, options: list[str], source: Path, target: Path) -> None:
        argv = [
            self.jdk.tool("java"),
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-jar",
            str(self.converter),
            *options,
            str(source),
            str(target),
        ]
        done = _finished(argv, CONVERTER_TIMEOUT_S)
        if done.returncode != 0 or not target.is_file():
            raise RunFailed(
                f"profile could not be converted: {target.name}: {_last_line(done.stderr or done.stdout)}"
            )

    def _agent(self, pid: int, arguments: str) -> None:
        # jcmd puts its arguments together to one line and takes it apart again: what may hold a blank has to
        # be quoted.
        done = _finished(
            [self.jdk.tool("jcmd"), str(pid), "JVMTI.agent_load", f'"{self.library}"', f'"{arguments}"'],
            ATTACH_TIMEOUT_S,
        )
        if done.returncode != 0 or "return code: 0" not in done.stdout:
            raise RunFailed(
                f"profiler refused: {arguments.split(',')[0]}: {_last_line(done.stdout + done.stderr)}"
            )


@dataclass(frozen=True)
class AttachedProfiler:
    """A profiler and the process that it is for."""

    profiler: Profiler
    pid: int

    def start(self, events: tuple[str, ...], recording: Path) -> None:
        self.profiler.start(self.pid, events, recording)

    def stop(self) -> None:
        self.profiler.stop(self.pid)

    def convert(self, recording: Path, events: tuple[str, ...], folder: Path, seen: Seen) -> None:
        self.profiler.convert(recording, events, folder, seen)

    def convert_event(self, recording: Path, event: str, file: Callable[[str], Path]) -> None:
        self.profiler.convert_event(recording, event, file)


@contextmanager
def _without_commas(recording: Path) -> Iterator[Path]:
    """``recording`` by a name that the agent does not take for several options; it opens its file once, and
    needs no name for it then."""
    if "," not in str(recording):
        yield recording
        return
    with tempfile.TemporaryDirectory(prefix="kvstudy-") as folder:
        link = Path(folder) / "run"
        link.symlink_to(recording.parent)
        yield link / recording.name


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
        raise RunFailed(
            f"{Path(argv[0]).name} did not end within {timeout_s:g} s: {' '.join(argv)[:300]}"
        ) from None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"
