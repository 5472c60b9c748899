"""What a JVM tells of itself: the flags that make it write its GC log and a cheap flight recording, or the
same asked of one that runs already.

flags(place)                        for a JVM that we start
processors(place)                   the same on one core as on the machine's
Attached(jdk, pid, recording)       for one that somebody else started: the recording is begun and ended
                                    through jcmd
"""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from kvstudy.errors import RunFailed, ToolMissing
from kvstudy.plan.factors import HEAP_FLAG
from kvstudy.project import jfr_converter_jar, profiler_library
from kvstudy.subject.evidence.profiler import AttachedProfiler, Profiler
from kvstudy.subject.evidence.recording import RECORDING_SETTINGS, read_recording
from kvstudy.subject.jdk import Jdk
from kvstudy.subject.protocol import Evidence, Place
from kvstudy.units import parse_size_bytes

GC_LOG, RECORDING = "gc.log", "service.jfr"
RECORDING_MAX = "128m"
# Frames between safepoints are named too; without it a profile is biased towards loops' ends and calls.
PROFILING_FLAGS = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]
JCMD_TIMEOUT_S = 30
SERVER_CLASS_PROCESSORS = 2  # with fewer a JVM takes the serial collector, unless it is told otherwise
COMPILER_THREADS = (b"C1 CompilerThre", b"C2 CompilerThre")  # as the kernel cuts their names
BESIDE_HEAP_BYTES = 160 << 20  # code, threads, metaspace and buffers of one JVM with the service


def flags(place: Place) -> list[str]:
    """None of them for a JVM of which nothing is measured. Quoted: a folder may have , : or ' in its name."""
    if place.filling:
        return []
    return [
        *(PROFILING_FLAGS if place.profiled else []),
        "-Xlog:disable",
        "-Xlog:all=warning:stderr",
        f'-Xlog:gc*,safepoint:file="{place.file(GC_LOG)}":utctime,uptime,level,tags:filecount=0',
        f'-XX:StartFlightRecording:filename="{place.file(RECORDING)}",settings="{RECORDING_SETTINGS}",dumponexit=true,maxsize={RECORDING_MAX}',
    ]


def processors(place: Place) -> list[str]:
    """Where we leave a JVM one core of several, it would take another collector than without us."""
    cores = place.cores or ()
    is_confined = 0 < len(cores) < SERVER_CLASS_PROCESSORS <= len(os.sched_getaffinity(0))
    return [f"-XX:ActiveProcessorCount={SERVER_CLASS_PROCESSORS}"] if is_confined else []


def memory_needed_bytes(flags: Sequence[str]) -> int:
    """Of a JVM with these flags: its heap, a quarter of the machine's memory where nobody says how much, and
    what it takes beside."""
    heap = heap_bytes(flags)
    return BESIDE_HEAP_BYTES + (psutil.virtual_memory().total // 4 if heap is None else heap)


def heap_bytes(flags: Sequence[str]) -> int | None:
    """That these flags ask for; None where they leave it to the JVM."""
    given = [found[1] for flag in flags if (found := HEAP_FLAG.fullmatch(flag))]
    return parse_size_bytes(given[-1]) if given else None


def check_built(*paths: Path) -> None:
    """ToolMissing where one is not there."""
    for path in paths:
        if not path.is_file():
            raise ToolMissing(f"not built: {path}", "kvstudy build")


def check_profiler(root: Path) -> None:
    check_built(profiler_library(root), jfr_converter_jar(root))


def profiler(jdk: Jdk, root: Path, pid: int) -> AttachedProfiler:
    return AttachedProfiler(Profiler(jdk, profiler_library(root), jfr_converter_jar(root)), pid)


def evidence(recording: Path, jdk: Jdk) -> Evidence:
    """FormatError when the recording is not there or cannot be read."""
    read = read_recording(recording, jdk)
    return Evidence(read.events, read.counters)


@dataclass
class Attached:
    """A recording in a JVM that we did not start with our flags. ``is_written``: it has been ended, and may
    be read."""

    jdk: Jdk
    pid: int
    recording: Path
    is_written: bool = False

    def begin(self) -> None:
        """RunFailed where jcmd cannot reach it."""
        self._jcmd("JFR.start", "name=kvstudy", f"settings={RECORDING_SETTINGS}", f"maxsize={RECORDING_MAX}")

    def forget(self) -> None:
        """One that is going on in a JVM that outlives the run: a killed run left it, or it cannot be
        written."""
        with suppress(RunFailed):
            self._jcmd("JFR.stop", "name=kvstudy")

    def end(self) -> None:
        """Where jcmd cannot reach it any more, or the JVM may not write there, there is no recording, and the
        run says so."""
        with suppress(RunFailed):
            self._jcmd("JFR.stop", "name=kvstudy", f"filename={self.recording.resolve()}")
            self.is_written = True

    def evidence(self) -> Evidence:
        return evidence(self.recording, self.jdk) if self.is_written else Evidence()

    def _jcmd(self, *words: str) -> None:
        command, *options = words
        # jcmd puts its arguments together to one line and takes it apart again: what may hold a blank has to
        # be quoted.
        quoted = [f'{name}="{value}"' for name, value in (option.split("=", 1) for option in options)]
        try:
            done = subprocess.run(
                [self.jdk.tool("jcmd"), str(self.pid), command, *quoted],
                capture_output=True,
                text=True,
                timeout=JCMD_TIMEOUT_S,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise RunFailed(
                f"subject says jvm: true, but its JVM does not answer jcmd within {JCMD_TIMEOUT_S} s: "
                f"pid={self.pid}"
            ) from None
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        if done.returncode != 0 or any(
            "Could not start" in line or "Could not stop" in line for line in said
        ):
            raise RunFailed(
                f"subject says jvm: true, but jcmd {command} does not reach a HotSpot JVM: "
                f"pid={self.pid}: {said[-1][:200] if said else 'it said nothing'}"
            )
