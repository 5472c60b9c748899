"""Our own two: the service, of this tree or of another revision, and the empty server beside which it is
measured.

Both print ``ready: http://…`` on stdout, end with 0 on SIGTERM, and run on a JVM that writes its GC log and a
flight recording.
"""

import hashlib
import http.client
import re
import subprocess
import time
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from kvstudy.errors import RunFailed, reason_unanswered
from kvstudy.hosts.process import command_text
from kvstudy.plan.factors import MEMORY
from kvstudy.plan.subject import EMPTY, KV_SERVICE, SERVER_PROGRAMS
from kvstudy.subject.evidence import jvm
from kvstudy.subject.evidence.process import cpu_is_quiet
from kvstudy.subject.evidence.profiler import AttachedProfiler
from kvstudy.subject.jdk import Jdk
from kvstudy.subject.launched import Launched, check_free, how_it_ended
from kvstudy.subject.protocol import LOOPBACK, Evidence, Place
from kvstudy.units import parse_size_bytes

READY_LINE = re.compile(rb"ready: (http://\S+?)/?\s*$")
BASE_FLAGS = [
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-XX:+PerfDisableSharedMem",
]
FILL_JVM = ["-Xmx512m"]
HELP_TIMEOUT_S = 30
STOP_TIMEOUT_S = 20.0
COUNT_PART_S = 20.0  # the service cuts an answer after 60 s
COUNT_PIECE_BYTES = 1 << 16
KEY_BYTES_MAX = 1 << 10
COUNT_TIMEOUT_S = 120
ADMIN = "--admin"


class OurProgram:
    """A jar of ours as a subject."""

    keeps_data = False
    named: tuple[Path, ...] = ()
    scratch = (jvm.RECORDING,)
    orderly_exits = (0,)
    memory_bytes: int | None = None  # of its memory group, where it gets one

    def __init__(self, name: str, jdk: Jdk, jar: Path, jvm_flags: list[str], root: Path):
        self.name, self.digest_name, self.jdk, self.jar, self.root = (
            name,
            SERVER_PROGRAMS[name],
            jdk,
            jar,
            root,
        )
        self.products = self.watched = (jar,)
        self._jvm_flags = jvm_flags

    def check(self, profiled: bool) -> None:
        jvm.check_built(self.jar, Path(self.jdk.tool("jfr")))
        if profiled:
            jvm.check_profiler(self.root)

    @cached_property
    def digest(self) -> str:
        return jar_digest(self.jar)

    @property
    def versions(self) -> dict[str, str]:
        return {"jdk": self.jdk.version}

    def command(self, place: Place) -> list[str]:
        flags = [
            *BASE_FLAGS,
            *jvm.processors(place),
            *(FILL_JVM if place.filling else self._jvm_flags),
            *jvm.flags(place),
        ]
        return [
            self.jdk.tool("java"),
            *flags,
            "-jar",
            str(self.jar),
            "--port",
            str(place.port),
            *self._options(place),
        ]

    def launch(self, place: Place) -> "LiveProgram":
        check_free(place.port, place.address)
        command = self.command(place)
        place.file("service.cmd").write_text(command_text(command, {}), encoding="utf-8")
        launched = Launched(
            command,
            place.file("service.log"),
            lambda process: process.announced,
            ready_line=READY_LINE,
            cores=place.cores,
            registered=place.registered,
            memory_bytes=None if place.filling else self.memory_bytes,
            # On one core its start takes longer; how many cores it counts is in its flags.
            starts_anywhere=bool(jvm.processors(place)),
        )
        return self._live(launched, place)

    def _options(self, place: Place) -> list[str]:
        return []

    def _live(self, launched: Launched, place: Place) -> "LiveProgram":
        return LiveProgram(self, launched, place)


class LiveProgram:
    """An ``OurProgram`` that is ready."""

    def __init__(self, program: OurProgram, launched: Launched, place: Place):
        self._program, self._launched, self._place = program, launched, place
        self.url = launched.url
        self.check_alive, self.send, self.last_words = (
            launched.check_alive,
            launched.send,
            launched.last_words,
        )

    @property
    def pids(self) -> tuple[int, ...]:
        return (self._launched.pid,)

    @property
    def profiler(self) -> AttachedProfiler:
        return jvm.profiler(self._program.jdk, self._program.root, self._launched.pid)

    def come_to_rest(self, timeout_s: float = 60.0) -> bool:
        return cpu_is_quiet(self.pids, self.check_alive, timeout_s)

    def count_records(self) -> int | None:
        return None

    def stop(self, timeout_s: float | None = None) -> str | None:
        code = self._launched.stop(STOP_TIMEOUT_S if timeout_s is None else timeout_s)
        if code in self._program.orderly_exits:
            return None
        return (
            self._launched.want_of_memory("before it had stopped")
            or f"service did not stop in order: {how_it_ended(code)}: {self.last_words()}"
        )

    def evidence(self) -> Evidence:
        told = jvm.evidence(self._place.file(jvm.RECORDING), self._program.jdk)
        return replace(told, memory_group=self._launched.memory_group)


class EmptyServer(OurProgram):
    orderly_exits = (0, 143)

    def __init__(self, jdk: Jdk, jar: Path, jvm_flags: list[str], root: Path):
        super().__init__(EMPTY, jdk, jar, jvm_flags, root)

    def _options(self, place: Place) -> list[str]:
        if place.address != LOOPBACK:
            raise RunFailed(
                f"the empty server serves on {LOOPBACK} alone: it cannot be measured over a network"
            )
        return []


class KvService(OurProgram):
    """``options``: of the service, as an experiment names them, MEMORY among them, which is no option of its
    command line. ``has_admin``: it answers ``POST
    /v0/admin/…``; None: its help is asked, which costs the start of a JVM."""

    keeps_data = True

    def __init__(
        self,
        jdk: Jdk,
        jar: Path,
        options: Mapping[str, object],
        jvm_flags: list[str],
        root: Path,
        has_admin: bool | None = True,
    ):
        super().__init__(KV_SERVICE, jdk, jar, jvm_flags, root)
        self._service_options = {name: value for name, value in options.items() if name != MEMORY}
        self.memory_bytes = parse_size_bytes(options[MEMORY]) if MEMORY in options else None
        if has_admin is None:  # built apart, from sources that are not this tree's
            self.products = ()
        self._has_admin = has_admin

    @cached_property
    def has_admin(self) -> bool:
        if self._has_admin is not None:
            return self._has_admin
        asked = subprocess.run(
            [self.jdk.tool("java"), "-jar", str(self.jar), "--help"],
            capture_output=True,
            text=True,
            timeout=HELP_TIMEOUT_S,
        )
        return ADMIN in asked.stdout + asked.stderr

    def _options(self, place: Place) -> list[str]:
        options = [
            word
            for name, value in self._service_options.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        if place.address != LOOPBACK:
            options = ["--host", place.address, *options]
        return ["--dir", str(place.store), *options, *([ADMIN] if self.has_admin else [])]

    def _live(self, launched: Launched, place: Place) -> "LiveKvService":
        return LiveKvService(self, launched, place)


class LiveKvService(LiveProgram):
    def come_to_rest(self, timeout_s: float = 60.0) -> bool:
        """When nothing is left to flush or compact, which the service knows; of one that cannot be asked,
        when its CPU is quiet. One that is being filled brings all of its records into tables too: a run that
        is given a copy of them then replays no log first."""
        if not self._program.has_admin:
            return super().come_to_rest(timeout_s)
        if self._place.filling:
            # idle before, or writers might have to wait and with them the flush
            return self._is_idle(timeout_s) and self._flush(timeout_s) and self._is_idle(timeout_s)
        return self._is_idle(timeout_s)

    def _flush(self, timeout_s: float) -> bool:
        status, _ = self._asked("POST", "/v0/admin/flush", timeout_s + 10)
        if status not in (200, 404, 503):  # 404: a build that knows no such request
            raise RunFailed(f"filled store cannot be flushed: POST /v0/admin/flush answered {status}")
        return status != 503

    def _is_idle(self, timeout_s: float) -> bool:
        status, _ = self._asked(
            "POST", f"/v0/admin/idle?timeout-ms={round(timeout_s * 1000)}", timeout_s + 10
        )
        if status not in (200, 503):
            raise RunFailed(
                f"service cannot be asked whether it rests: POST /v0/admin/idle answered {status}"
            )
        return status == 200

    def count_records(self) -> int:
        return count_records(self.url)

    def _asked(self, method: str, target: str, timeout_s: float) -> tuple[int, bytes]:
        connection = _connection(self.url, timeout_s)
        try:
            connection.request(method, target)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.check_alive(f"{method} {target}")
            raise RunFailed(
                f"service does not answer: {method} {target}: {reason_unanswered(error)}"
            ) from error
        finally:
            connection.close()


def jar_digest(path: Path) -> str:
    """Of the jar's contents, not of its bytes: two builds of the same sources count as the same program."""
    with zipfile.ZipFile(path) as jar:
        entries = sorted(
            (entry.filename, entry.CRC)
            for entry in jar.infolist()
            if not entry.filename.startswith("META-INF/maven/")
        )
    return hashlib.sha256(repr(entries).encode()).hexdigest()[:16]


def count_records(url: str) -> int:
    """How many the service holds, by reading all of them: one line per key, since values of the workloads
    hold no newline. In parts, since the service cuts an answer that takes a minute: each begins with the
    last key of the one before."""
    count, start = 0, "k"
    while True:
        found, last = _counted_from(url, start)
        count += found
        if last is None:
            return count
        count, start = count - 1, last


def _counted_from(url: str, start: str) -> tuple[int, str | None]:
    """How many there are from this key on, as far as they were read; the last of these where there may be
    more."""
    target, newlines = f"/v0/entities?start={start}", 0
    connection, end = _connection(url, COUNT_TIMEOUT_S), time.monotonic() + COUNT_PART_S
    kept, last, width = b"", b"", None
    try:
        connection.request("GET", target)
        answer = connection.getresponse()
        if answer.status != 200:
            raise RunFailed(f"records cannot be counted: GET {target} answered {answer.status}")
        while block := answer.read(COUNT_PIECE_BYTES):
            newlines += block.count(b"\n")
            seen = kept + block
            if (at := seen.rfind(b"\n")) >= 0:
                width = seen.find(b"\n") if width is None else width  # all keys have that of the first
                last = seen[max(0, at - width) : at]
            kept = seen[-KEY_BYTES_MAX:]
            if time.monotonic() >= end and _goes_on(last, start):
                return newlines, last.decode()
        return newlines, None
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, http.client.IncompleteRead) and _goes_on(last, start):
            return newlines, last.decode()
        raise RunFailed(f"records cannot be counted: GET {target}: {reason_unanswered(error)}") from error
    finally:
        connection.close()


def _goes_on(last: bytes, start: str) -> bool:
    """Whether it is a key of a workload, behind the one that was begun with."""
    return re.fullmatch(rb"k\d+", last) is not None and last.decode() > start


def _connection(url: str, timeout_s: float) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(url.removeprefix("http://"), timeout=timeout_s)
