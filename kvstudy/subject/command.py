"""Any command that serves HTTP as a subject. It is told its port, its directory and the address to serve on
by ``{port}``, ``{dir}`` and ``{host}`` in its words, its environment, or in files that are written for it
into that directory.

What it must not do, and what is said in one line when it does: end before it is ready, never become ready, go
on in the background, serve on a port that another one holds, ignore the signal that stops it.
"""

import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from os.path import isdir, isfile  # Path's raise where a name is too long to be one
from pathlib import Path
from signal import Signals

from kvstudy.errors import RunFailed, ToolMissing
from kvstudy.hosts.adoption import Adoption
from kvstudy.hosts.process import command_text
from kvstudy.plan.subject import SUBJECT, SubjectSpec, words_of
from kvstudy.subject.evidence import jvm
from kvstudy.subject.evidence.process import cpu_is_quiet, family, is_jvm, listeners, members
from kvstudy.subject.evidence.profiler import AttachedProfiler
from kvstudy.subject.evidence.prometheus import Scraper
from kvstudy.subject.jdk import Jdk, find_jdk
from kvstudy.subject.launched import Launched, check_free, how_it_ended
from kvstudy.subject.protocol import LOOPBACK, Evidence, Place

PROBE_TIMEOUT_S = 1.0
OF_ANY_JVM = "JAVA_TOOL_OPTIONS"  # those that every JVM takes, also one that a script starts
ENDED_WELL = "service ended before it was ready: exit=0"
ANOTHER_STOP = ": give another signal, or more time, in stop"
IN_THE_FOREGROUND = "give the command the option that keeps it in the foreground"
DIGESTED_MAX_BYTES = 256 << 20  # of a larger file its size and time
CODE = (
    ".jar",
    ".war",
    ".java",
    ".py",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".go",
    ".rb",
    ".php",
    ".pl",
    ".lua",
    ".sh",
    ".dll",
)
CLASS_PATHS = ("-cp", "-classpath", "--class-path", "--module-path", "CLASSPATH")
JAVA, MODULE_PATH_OF_JAVA = "java", "-p"  # of other programs -p may be a folder that they write to
_BETWEEN_FILES = re.compile(r"[\s:;,=@'\"]+")  # in --config=FILE, a class path, a line for a shell
# Elsewhere an ordinary user is not told who holds a port, also of his own processes.
CAN_SEE_PORTS = sys.platform == "linux"


class Command:
    """``jdk``: for a subject that says ``jvm: true``, else None."""

    digest_name = SUBJECT
    keeps_data = True
    products: tuple[Path, ...] = ()

    def __init__(self, spec: SubjectSpec, root: Path, jdk: Jdk | None):
        self.spec, self.root, self.jdk = spec, root, jdk
        self.name = spec.label
        self.scratch = (jvm.RECORDING,) if jdk else ()

    def check(self, profiled: bool) -> None:
        if self._program is None:
            word = self._of_project(self.spec.command[0])
            if "/" in word and isfile(self.root / word):
                raise ToolMissing(
                    f"program cannot be executed: {word}: needed by subject {self.name}",
                    "chmod +x it, or name what runs it before: python3, sh, java -jar, …",
                )
            raise ToolMissing(
                f"no such program: {self.spec.command[0]}: needed by subject {self.name}",
                "install it, or write its path; a path that begins with {root} is the project's own; kvstudy "
                "doctor says what else is missing",
            )
        for needed in self.spec.needs or []:
            if shutil.which(needed) is None and not ("/" in needed and self._template(needed).exists()):
                what = "file" if "/" in needed else "program"
                raise ToolMissing(
                    f"no such {what}: {needed}: needed by subject {self.name}",
                    "needs names programs on PATH, and files and folders by a path with a slash"
                    if "/" in needed
                    else "install it; kvstudy doctor says what else is missing",
                )
        for template in (self.spec.files or {}).values():
            if not self._template(template).is_file():
                raise ToolMissing(
                    f"no such file: {self._template(template)}: needed by subject {self.name}",
                    "files maps a name in {dir} to a file to write there",
                )
        if profiled and self.jdk:
            jvm.check_profiler(self.root)

    @cached_property
    def digest(self) -> str:
        """Of its words, and of the files that they name: its program, those of a class path, of
        ``--config=FILE``, of a line for a shell, the code of a folder that it is started with; of the code
        that its environment names; of ``needs`` and of its own files. What a program finds by itself (modules
        of an interpreter) is seen only where ``needs`` names it."""
        digest = hashlib.sha256(json.dumps(self.spec.facts, sort_keys=True).encode())
        for path in self._files_named():
            with suppress(OSError):
                state = path.stat()
                if state.st_size > DIGESTED_MAX_BYTES:
                    digest.update(f"{state.st_size} {state.st_mtime_ns}".encode())
                    continue
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:16]

    @cached_property
    def watched(self) -> tuple[Path, ...]:
        """What it is, and not what it may write: its program, the code that it names, and its class path."""
        program = Path(self._program or "")
        first = self._first_named
        code = [path for path in (program, first) if path and _is_code(path)]
        named = (path for path in self._files_named() if path.suffix in CODE)
        class_paths = [(text, folder) for text, folder in self._given() if folder]
        class_paths += [(text, self.root) for name, text in self._environment() if name in CLASS_PATHS]
        of_class_paths = (path for text, folder in class_paths for path in self._class_path(text, folder))
        return tuple(dict.fromkeys([*code, *named, *of_class_paths]))

    @property
    def named(self) -> tuple[Path, ...]:
        return tuple(self._files_named())

    def _files_named(self) -> Iterator[Path]:
        for text, folder in self._given():
            if folder:
                yield from self._class_path(text, folder)
            else:
                for one in self._folders:
                    yield from filter(isfile, _pieces(text, one))
        for name, text in self._environment():
            if name in CLASS_PATHS:
                yield from self._class_path(text, self.root)
            else:  # what else is named there it may write, as a log
                yield from filter(_is_code, _pieces(text, self.root))
        for needed in self.spec.needs or []:
            yield from _files_of(Path(shutil.which(needed) or self._template(needed)))
        yield from (self._template(template) for template in (self.spec.files or {}).values())
        if (first := self._first_named) and first.is_dir():  # as of node app
            yield from (path for path in _files_of(first) if path.suffix in CODE)

    def _given(self) -> Iterator[tuple[str, Path | None]]:
        """Its program and its words, and the class paths of lines for a shell: see ``_with_class_paths``."""
        yield from _with_class_paths([self._program or "", *self._words], self.root)
        for line in self._lines:
            yield from (given for given in _with_class_paths(line, self.root) if given[1])

    @property
    def _words(self) -> list[str]:
        """Without its program."""
        return [self._of_project(word) for word in self.spec.command[1:]]

    @property
    def _lines(self) -> list[list[str]]:
        """The words of each word that is a line for a shell."""
        return [words_of(word) for word in self._words if " " in word and not isfile(self.root / word)]

    @property
    def _folders(self) -> list[Path]:
        """In which it may look for files: the project's, and those that a line changes to."""
        found = [folder for line in self._lines for folder in _changed_to(line, self.root)]
        return list(dict.fromkeys([self.root, *found]))

    def _environment(self) -> Iterator[tuple[str, str]]:
        for name, value in (self.spec.environment or {}).items():
            yield name, self._of_project(value)

    @property
    def _first_named(self) -> Path | None:
        """The first file, or folder of the project, that is a word of it."""
        words = (self.root / word for word in self._words)
        return next(
            (path for path in words if isfile(path) or (isdir(path) and self.root in path.parents)), None
        )

    def _class_path(self, text: str, folder: Path) -> Iterator[Path]:
        for piece in _pieces(text, folder):
            if isdir(piece) and self.root.is_relative_to(piece.resolve()):  # runs are written below it
                yield from sorted(piece.glob("*.class"))
            else:
                yield from _of_class_path(piece)

    @property
    def versions(self) -> dict[str, str]:
        return {"jdk": self.jdk.version} if self.jdk else {}

    def launch(self, place: Place) -> "LiveCommand":
        port = place.port or free_port(place.address)
        check_free(port, place.address)
        words, environment = self._prepared(place, port)
        place.file("service.cmd").write_text(command_text(words, environment), encoding="utf-8")
        adoption, ready = Adoption(), self.spec.ready
        has_begun = ready_rule(ready.line, ready.http, port, place.address)
        try:
            launched = Launched(
                words,
                place.file("service.log"),
                lambda process: f"http://{place.address}:{port}" if has_begun(process) else None,
                cores=place.cores,
                registered=place.registered,
                environment=os.environ | environment,
                folder=self.root,
                ready_timeout_s=ready.timeout,
                awaited=partial(awaited_by, ready.line, ready.http, port, place.address),
                memory_bytes=None if place.filling else self.spec.memory_bytes,
            )
        except BaseException as error:
            gone = adoption.end_escaped()
            if isinstance(error, RunFailed) and gone:
                raise RunFailed(_left(gone)) from error
            if isinstance(error, RunFailed) and error.message.startswith(ENDED_WELL):
                raise RunFailed(
                    f"{error.message}: {IN_THE_FOREGROUND}"
                ) from error  # it had not left our session yet, and was ended with it
            raise
        live = LiveCommand(self, launched, place, adoption)
        try:
            live.begin(port)
        except BaseException:
            live.stop()
            raise
        return live

    def _prepared(self, place: Place, port: int) -> tuple[list[str], dict[str, str]]:
        """Its words and its environment; its files are written."""
        values = {"{port}": str(port), "{host}": place.address, "{dir}": str(place.store.resolve())}

        def filled_in(text: str) -> str:
            for name, value in values.items():
                text = text.replace(name, value)
            return self._of_project(text)

        try:
            for name, template in (self.spec.files or {}).items():
                path = place.store / name
                path.parent.mkdir(parents=True, exist_ok=True)
                content = self._template(template).read_bytes()
                with suppress(UnicodeDecodeError):  # one that is no text has no placeholders
                    content = filled_in(content.decode()).encode()
                path.write_bytes(content)
        except OSError as error:
            raise RunFailed(
                f"service cannot be given its file: {name}: {(error.strerror or str(error)).lower()}"
            ) from error
        words = [self._program or self.spec.command[0], *map(filled_in, self.spec.command[1:])]
        environment = {name: filled_in(value) for name, value in (self.spec.environment or {}).items()}
        if self.jdk and (ours := jvm.processors(place)):
            theirs = environment.get(OF_ANY_JVM, os.environ.get(OF_ANY_JVM, ""))
            environment[OF_ANY_JVM] = " ".join([*ours, theirs]).strip()  # of two that differ theirs holds
        return words, environment

    @property
    def _program(self) -> str | None:
        """Where the command's first word is found: on PATH; with a slash in it, from the project's folder."""
        word = self._of_project(self.spec.command[0])
        return shutil.which(str(self.root / word) if "/" in word else word)

    def _template(self, path: str) -> Path:
        return self.root / self._of_project(path)

    def _of_project(self, text: str) -> str:
        """With what is the same at every launch filled in."""
        if "{java}" in text:
            text = text.replace("{java}", str((self.jdk or find_jdk()).tool("java")))
        return text.replace("{root}", str(self.root))


class LiveCommand:
    """A ``Command`` that is ready."""

    def __init__(self, command: Command, launched: Launched, place: Place, adoption: Adoption):
        self._command, self._launched, self._place, self._adoption = command, launched, place, adoption
        self._recording: jvm.Attached | None = None
        self._scraper: Scraper | None = None
        self._fault: str | None = None
        self._stopped = False
        self._is_seen = True
        self.url = launched.url
        self.check_alive, self.send, self.last_words = (
            launched.check_alive,
            launched.send,
            launched.last_words,
        )

    def begin(self, port: int) -> None:
        """What can only be asked of one that is ready: is it really it that answers, and has it a JVM that
        can be recorded?"""
        if self._launched.exit_code is not None:
            gone = [process.pid for process in self._adoption.escaped()]
            raise RunFailed(
                _left(gone)
                if gone
                else f"service ended when it was ready: {how_it_ended(self._launched.exit_code)}: "
                f"{self.last_words()}"
            )
        holders = set(listeners(port, self._place.address))
        if holders and not holders & set(self._members):
            escaped = [process.pid for process in self._adoption.escaped()]
            raise RunFailed(
                _left(escaped)
                if holders & set(escaped)
                else f"port {port} is served by another process: "
                f"pid={min(holders)}: service does not serve on the port that it is given"
            )
        self._is_seen = bool(holders) or not CAN_SEE_PORTS
        self._holders = holders
        if self._command.jdk and not self._place.filling:
            self._recording = jvm.Attached(
                self._command.jdk, self._jvm_pid(), self._place.file(jvm.RECORDING)
            )
            self._recording.begin()
        if self._command.spec.metrics and not self._place.filling:
            self._scraper = Scraper(self.url + self._command.spec.metrics)
            self._scraper.begin()

    @property
    def pids(self) -> tuple[int, ...]:
        """With those that took a session of their own. None where the port is held by one that we cannot see:
        what was started then only asked another one to serve, as the program of a container does, and its CPU
        is not the service's."""
        if not self._is_seen:
            return ()
        return tuple(dict.fromkeys((*self._members, *family(self._launched.pid))))

    @property
    def _members(self) -> tuple[int, ...]:
        return members(self._launched.pid)

    @property
    def profiler(self) -> AttachedProfiler | None:
        return (
            jvm.profiler(self._command.jdk, self._command.root, self._jvm_pid())
            if self._command.jdk
            else None
        )

    def come_to_rest(self, timeout_s: float = 60.0) -> bool:
        return cpu_is_quiet(self._members, self.check_alive, timeout_s)

    def count_records(self) -> int | None:
        return None

    def stop(self, timeout_s: float | None = None) -> str | None:
        if self._stopped:
            return self._fault
        self._stopped = True
        if self._scraper:
            self._scraper.end()
        rule = self._command.spec.stop
        signal, time_s = Signals[f"SIG{rule.signal}"], rule.time if timeout_s is None else timeout_s
        if self._recording and self._launched.exit_code is None:
            self._recording.end()
        code = self._launched.stop(time_s, signal)
        self._adoption.end_escaped()
        expected = (0, 128 + signal, -signal) if rule.exit is None else tuple(rule.exit)
        if self._launched.outlived_by:
            self._fault = f"service ignored {signal.name} for {time_s:g} s and was killed"
            if (
                self._launched.pid not in self._launched.outlived_by
            ):  # a wrapper that ended, and not what it had started
                self._fault += (
                    f": its process {self._launched.outlived_by[0]} outlived the one that was started"
                )
            self._fault += ANOTHER_STOP
        elif code not in expected:
            self._fault = (
                self._launched.want_of_memory("before it had stopped")
                or f"service did not stop in order: {how_it_ended(code)}: {self.last_words()}"
            )
        return self._fault

    def evidence(self) -> Evidence:
        found = self._recording.evidence() if self._recording else Evidence()
        found = replace(found, memory_group=self._launched.memory_group)
        return replace(found, counters=self._scraper.counters) if self._scraper else found

    def _jvm_pid(self) -> int:
        """The one that serves; a launcher may be a JVM too, as Maven's is."""
        for pid in sorted(self._members, key=lambda pid: pid not in self._holders):
            if is_jvm(pid):
                return pid
        raise RunFailed(f"subject says jvm: true, but none of its processes is a JVM: {self._command.name}")


def _pieces(word: str, folder: Path) -> list[Path]:
    """What may be files of it: itself, else what stands between blanks, commas and the like."""
    whole = folder / word
    return [whole] if isfile(whole) else [folder / one for one in _BETWEEN_FILES.split(word) if one]


def _with_class_paths(words: list[str], folder: Path) -> Iterator[tuple[str, Path | None]]:
    """Each word with None; a class path, which may stand behind an equals sign, with the folder in which it
    is looked for: ``folder``, or that which the words changed to before."""
    before, is_of_java = "", False
    for word, where in zip(words, _changed_to(words, folder), strict=True):
        option, _, value = word.partition("=")
        is_class_path = before in CLASS_PATHS or (is_of_java and before == MODULE_PATH_OF_JAVA)
        if option in CLASS_PATHS and value:
            yield value, where
        else:
            yield word, where if is_class_path else None
        before, is_of_java = word, is_of_java or Path(word).name == JAVA


def _changed_to(words: list[str], folder: Path) -> Iterator[Path]:
    """Of each word of a line in which folder it is; ``cd`` changes that."""
    for before, word in pairwise(["", *words]):
        if before == "cd":
            folder = folder / word.rstrip(";")
        yield folder


def _is_code(path: Path) -> bool:
    return isfile(path) and (path.suffix in CODE or os.access(path, os.X_OK))


def ready_rule(
    line: str | None, path: str | None, port: int, host: str = LOOPBACK
) -> Callable[[Launched], bool]:
    """By a line of its log and a connection, which some take a moment later; by an answer that is no error of
    its own; or by a connection."""
    if line is not None:
        return lambda launched: launched.has_said(line) and takes_connections(port, host)
    if path is not None:
        return lambda _launched: (status := status_of(port, path, host)) is not None and status < 500
    return lambda _launched: takes_connections(port, host)


def awaited_by(line: str | None, path: str | None, port: int, host: str = LOOPBACK) -> str:
    """What ``ready_rule`` waits for, as it is missing."""
    if host != LOOPBACK and not takes_connections(port, host) and takes_connections(port):
        elsewhere = f"though {LOOPBACK}:{port} takes them: it has to listen on {{host}}"
        return f"no connection to {host}:{port}, {elsewhere}"
    if line is not None and takes_connections(port, host):
        return (
            f"no line with {line!r}, though {host}:{port} takes connections (what goes to a file may be kept "
            "back: python -u, stdbuf -oL)"
        )
    if line is not None:
        return f"no line with {line!r} and a connection to {host}:{port}"
    if path is not None:
        return f"no answer with a status under 500 to GET {path} of {host}:{port}"
    return f"no connection to {host}:{port}"


def status_of(port: int, path: str, host: str = LOOPBACK) -> int | None:
    """Of a GET to the port itself, by no proxy and without following where it leads; None where nothing
    answers, or not in HTTP."""
    connection = http.client.HTTPConnection(host, port, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def takes_connections(port: int, host: str = LOOPBACK) -> bool:
    with suppress(OSError), socket.create_connection((host, port), timeout=PROBE_TIMEOUT_S):
        return True
    return False


def _files_of(path: Path) -> Iterator[Path]:
    """The file itself, or those of a folder in the order of their names."""
    yield from sorted(one for one in path.rglob("*") if one.is_file()) if isdir(path) else (path,)


def _of_class_path(path: Path) -> Iterator[Path]:
    """Of one of its entries: a jar, a folder of classes or modules, or ``lib/*``, all jars of a folder."""
    yield from sorted(path.parent.glob("*.jar")) if path.name == "*" else _files_of(path)


def free_port(host: str = LOOPBACK) -> int:
    with socket.create_server((host, 0)) as server:
        return server.getsockname()[1]


def _left(pids: list[int]) -> str:
    return (
        f"service went on in the background: its process {pids[0]} left the one that was started, and "
        "was ended: "
    ) + IN_THE_FOREGROUND
