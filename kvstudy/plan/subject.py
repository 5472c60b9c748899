"""What is measured, as an experiment says it. A list makes a factor.

    subject: kv-service                                the service of this tree, with the experiment's
                                                       ``service`` and ``jvm``
    subject: empty                                     one-nio with a handler that does nothing: the upper
                                                       limit
    subject: {build: main}                             the service of another revision, built apart, or of a
                                                       jar: {build: before/kv-service.jar}
    subject: {command: [nginx, -p, "{dir}", …]}        any command that serves HTTP on ``{port}`` and keeps
                                                       its data in ``{dir}``
    subject: {url: "http://127.0.0.1:8080"}            what runs there already: it is neither started nor
                                                       stopped

``spec_of(configuration.subject, configuration.server)`` gives the ``SubjectSpec`` of a planned run back.
"""

import json
import re
import shlex
from pathlib import PurePath
from string import punctuation
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlsplit

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from kvstudy.errors import meant
from kvstudy.plan.factors import Part, SizeAsWritten, TimeLimitS, listed, text_of
from kvstudy.plan.refusal import Impossible
from kvstudy.units import parse_size_bytes, write_duration

PROGRAMS = KV_SERVICE, EMPTY = "kv-service", "empty"
KINDS = ("program", "build", "command", "url")  # exactly one of them is given
# What any HTTP service may answer to a request that it has carried out; the service's own contract says it
# more exactly.
STATUSES_OF_OURS = {"PUT": (201,), "GET": (200,), "DELETE": (202,)}
STATUSES_OF_OTHERS = {"PUT": (200, 201, 204), "GET": (200,), "DELETE": (200, 202, 204)}
PATH_OF_OURS = "/v0/entity?id={key}"
PLACEHOLDERS = ("{port}", "{dir}", "{root}", "{host}", "{java}")
STOP_SIGNALS = ("TERM", "INT", "QUIT", "HUP", "KILL")
# Under which name a run notes the digest of what was measured, by its server; of any other server under
# SUBJECT.
SERVER_PROGRAMS = {KV_SERVICE: "service", EMPTY: "empty-server"}
SUBJECT = "subject"
Name = text_of(
    r"[a-z0-9][a-z0-9.@_-]*", "a name of a subject\nsmall letters, digits and . @ _ -, as my-service-2"
)
Path = text_of(r"/[!-~]*", "a path\nit begins with / and is sent as it is, in ASCII and without blanks")
Revision = text_of(
    r"[^-\s]\S*", "a revision\na branch, a tag or a commit; or a path that ends with .jar, without blanks"
)

HttpMethod = Literal["PUT", "GET", "DELETE"]
Status = Annotated[int, Field(ge=100, le=599)]
Statuses = Annotated[list[Status], BeforeValidator(listed)]
# A run notes it as it is written in a file, so that ``spec_of`` can read it: a bare number is no duration.
NotedTimeLimitS = Annotated[TimeLimitS, PlainSerializer(write_duration)]


class Ready(Part):
    """When a command counts as ready: its port takes connections, and where ``line`` is given it has written
    one that holds it; where ``http`` is given, it answers a GET of that with a status under 500."""

    line: Annotated[str, Field(min_length=1)] | None = None
    http: Path | None = None
    timeout: NotedTimeLimitS = 60.0

    @model_validator(mode="after")
    def _is_one(self) -> "Ready":
        if self.line and self.http:
            raise Impossible("http", "give either line or http, not both")
        return self


class Stop(Part):
    """How a command is ended: by ``signal``, and by force after ``time``. ``exit``: the codes of an orderly
    end; without it 0 and the signal's own."""

    signal: Literal[STOP_SIGNALS] = "TERM"
    time: NotedTimeLimitS = 20.0
    exit: Annotated[list[Annotated[int, Field(ge=0, le=255)]], BeforeValidator(listed)] | None = None


def _ready(value: Any) -> Any:
    return {} if value == "tcp" else value


def _stop(value: Any) -> Any:
    return {"signal": value} if isinstance(value, str) else value


def _fill(value: Any) -> Any:
    """``{directory: "{dir}"}`` says of ``directory`` which one it is; there is no other that a run has."""
    if isinstance(value, dict) and list(value) == ["directory"]:
        if value["directory"] in ("{dir}", {"dir": None}):  # the latter is what YAML reads without quotes
            return "directory"
        raise ValueError(
            f"only the data directory of a run can be kept and restored: {value['directory']!r}\n"
            "write fill: directory, and {dir} where the command is told its directory"
        )
    return value


def _named(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    words = words_of(value)
    if len(words) > 1 or "://" in value:
        own = f"{{url: {json.dumps(value)}}}" if "://" in value else f"{{command: {json.dumps(words)}}}"
        raise ValueError(f"a service of your own is a command or a url: {value!r}\nwrite subject: {own}")
    if value not in PROGRAMS:
        own = f'for a program of your own: subject: {{command: [{json.dumps(value)}, "{{port}}"]}}'
        raise ValueError(f"not one of {', '.join(PROGRAMS)}: {value!r}\n{meant(value, PROGRAMS, own)}")
    return {"program": value}


def words_of(line: str) -> list[str]:
    """Of a line as of a shell."""
    try:
        return shlex.split(line)
    except ValueError:  # a quote that nothing closes
        return line.split()


def _words(value: Any) -> Any:
    """What YAML makes of words that are written as in a shell, or without quotes, is told by name."""
    if isinstance(value, str):
        words = words_of(value) or ["serve", "--port", "{port}"]
        raise ValueError(f"a command is a list of words: {value!r}\nwrite command: {json.dumps(words)}")
    for word in value if isinstance(value, list) else []:
        _check_text(word, "a word of a command")
    return value


def _variables(value: Any) -> Any:
    for name, text in value.items() if isinstance(value, dict) else ():
        if not name or "=" in name:
            raise ValueError(f'not a name of a variable: {name!r}\nwrite environment: {{NAME: "value"}}')
        _check_text(text, f"variable {name}")
    return value


def _check_text(value: Any, what: str) -> None:
    """ValueError says what YAML has made of it, and what to write instead."""
    if isinstance(value, dict) and len(value) == 1 and list(value.values()) == [None]:
        name = f"{{{next(iter(value))}}}"
        raise ValueError(f'{what} is text: {name} without quotes is a mapping\nwrite "{name}"')
    if value is None or isinstance(value, bool):  # of yes, off, null and such; what was typed is gone
        raise ValueError(f"{what} is text: YAML reads {value!r}\nput it between quotes")
    if not isinstance(value, str):
        raise ValueError(f'{what} is text: {value!r}\nwrite "{value}"')


class SubjectSpec(Part):
    """One subject. ``command`` and ``files`` may hold ``{port}``, ``{dir}`` (its data directory), ``{root}``
    (the project's folder) and ``{java}`` (of the JDK that our own service runs on). ``metrics``: where it
    tells its counters, in Prometheus' format. ``memory``: of a memory group that it and all that it starts
    get."""

    program: Literal["kv-service", "empty"] | None = None
    build: Revision | None = None
    command: Annotated[list[str] | None, BeforeValidator(_words)] = Field(None, min_length=1)
    url: str | None = None
    name: Name | None = None
    ready: Annotated[Ready, BeforeValidator(_ready)] = Ready()
    stop: Annotated[Stop, BeforeValidator(_stop)] = Stop()
    jvm: bool = False
    metrics: Path | None = None
    statuses: dict[HttpMethod, Statuses] | None = None
    paths: dict[HttpMethod, str] | None = None
    fill: Annotated[Literal["http", "directory"] | None, BeforeValidator(_fill)] = None
    files: dict[str, str] | None = None
    environment: Annotated[dict[str, str] | None, BeforeValidator(_variables)] = None
    needs: Annotated[list[str], BeforeValidator(listed)] | None = None
    memory: SizeAsWritten | None = None

    @model_validator(mode="after")
    def _is_possible(self) -> "SubjectSpec":
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise Impossible(
                given[1] if given else "command",
                "give one of build, command and url" + (f", not {' and '.join(given)}" if given else ""),
            )
        self._has_only_what_its_kind_has(given[0])
        if self.command:
            self._command_is_possible()
        if self.url is not None:
            self._url_is_possible()
        for name in self.files or {}:
            if PurePath(name).is_absolute() or ".." in PurePath(name).parts or not PurePath(name).name:
                raise Impossible(
                    "files",
                    f"a file is written in {{dir}}, and nowhere else: {name!r}\n"
                    "as files: {nginx.conf: my/nginx.conf}",
                )
        for method, path in (self.paths or {}).items():
            if not path.startswith("/") or path.count("{key}") != 1:
                raise Impossible(
                    "paths", f"a path begins with / and holds {{key}} once: {method}: {path!r}\nas /{{key}}"
                )
            if not re.fullmatch(r"[!-~]*", path):
                raise Impossible(
                    "paths",
                    f"a path is sent as it is, in ASCII and without blanks: {method}: {path!r}\n"
                    f"percent-encode it: {quote(path, punctuation, errors='replace')}",
                )
        return self

    def _has_only_what_its_kind_has(self, kind: str) -> None:
        ours = {"program", "build", "name"}
        known = {
            "program": ours,
            "build": ours,
            "url": {"url", "name", "jvm", "metrics", "statuses", "paths", "fill"},
        }.get(kind)
        for key in [] if known is None else self.model_fields_set - known:
            what = (
                "our own service"
                if kind in ("program", "build")
                else "an address, where something runs already,"
            )
            raise Impossible(
                key,
                f"{what} has no {key}\n"
                + (
                    "write service: {memory: …}"
                    if key == "memory" and kind != "url"
                    else "it is of a command"
                ),
            )
        if kind == "url" and self.fill == "directory":
            raise Impossible("fill", "an address has no directory that could be restored\nwrite fill: http")

    def _url_is_possible(self) -> None:
        example = "as http://127.0.0.1:8080"
        try:
            parts = urlsplit(self.url)
            port = parts.port
        except ValueError as error:
            raise Impossible(
                "url", f"not an address of HTTP: {self.url!r}: {str(error).lower()}\n{example}"
            ) from None
        bare = parts.query == parts.fragment == "" and not parts.username and not re.search(r"\s", self.url)
        if not self.url.startswith("http://") or not parts.hostname or port == 0 or not bare:
            raise Impossible("url", f"not an address of HTTP: {self.url!r}\n{example}")
        if parts.path not in ("", "/"):
            path = parts.path.rstrip("/")
            raise Impossible(
                "url",
                f"an address has no path: {self.url!r}\n"
                f"write it into paths, of each method: PUT: {path}/{{key}}",
            )

    def _command_is_possible(self) -> None:
        words = [*self.command, *(self.environment or {}).values()]
        if not self.command[0].strip():
            raise Impossible("command", "the first word of a command is its program: ''")
        for word in words:
            for found in re.findall(r"\{[a-z_]*\}", word):
                if found not in PLACEHOLDERS:
                    raise Impossible(
                        "command", f"no such placeholder: {found}\nthere are: {', '.join(PLACEHOLDERS)}"
                    )
        if not self.files and not any("{port}" in word for word in words):
            raise Impossible(
                "command",
                "{port} is missing: the command must be told the port to serve on\n"
                "write {port} where its port stands, in quotes; where that is a file of its own, name it in "
                "files, as experiments/peers.yaml does",
            )
        if self.fill == "directory" and not self.files and not any("{dir}" in word for word in words):
            raise Impossible(
                "fill",
                "{dir} is missing: only the directory that the command is told can be kept and "
                "restored\nwrite {dir} where its directory stands, or fill: http",
            )

    @property
    def is_ours(self) -> bool:
        """Our service, of this tree or of another revision."""
        return self.program == KV_SERVICE or self.build is not None

    @property
    def keeps_data(self) -> bool:
        return self.program != EMPTY

    @property
    def can_be_filled(self) -> bool:
        """Records are written to it before a run that reads. An address is left as it is unless ``fill`` says
        otherwise."""
        return self.is_ours or self.command is not None or self.fill is not None

    @property
    def is_restored(self) -> bool:
        """Filled once, kept, and restored for each run; else filled for each run anew."""
        return self.is_ours or self.fill == "directory"

    @property
    def has_our_jvm(self) -> bool:
        """Its JVM is started with the experiment's ``jvm``."""
        return self.is_ours or self.program is not None

    @property
    def memory_bytes(self) -> int | None:
        """Of a command's memory group."""
        return None if self.memory is None else parse_size_bytes(self.memory)

    @property
    def can_be_profiled(self) -> bool:
        return self.has_our_jvm or self.jvm

    @property
    def server(self) -> str:
        """The column ``server`` of the tables: what kind of thing answered."""
        return KV_SERVICE if self.is_ours else self.label

    @property
    def label(self) -> str:
        """What tells it from the other subjects of an experiment."""
        if self.name:
            return self.name
        if self.build:
            return f"{KV_SERVICE}@{self.build}"
        if self.command:
            return (
                re.sub(r"[^a-z0-9._-]+", "-", PurePath(self.command[0]).name.lower()).lstrip("-._")
                or "command"
            )
        return self.program or urlsplit(self.url).netloc

    @property
    def facts(self) -> dict | None:
        """For run.json and a run's identity; None for the two of this tree, whose name says it all."""
        return None if self.program and not self.name else self.model_dump(exclude_defaults=True)

    def statuses_of(self, method: str) -> tuple[int, ...]:
        if self.program == EMPTY:
            return (200,)
        if self.statuses and method in self.statuses:
            return tuple(self.statuses[method])
        return (STATUSES_OF_OURS if self.is_ours else STATUSES_OF_OTHERS)[method]

    def path_of(self, method: str) -> str:
        return (self.paths or {}).get(method, PATH_OF_OURS)


def subjects(value: Any) -> Any:
    """One subject or a list of them, for a field of the experiment."""
    return [_named(item) for item in listed(value)]


Subjects = Annotated[list[SubjectSpec], BeforeValidator(subjects)]
OUR_SERVICE = SubjectSpec(program=KV_SERVICE)


def spec_of(facts: dict | None, server: str) -> SubjectSpec:
    """The subject of a configuration, from what ``SubjectSpec.facts`` and ``server`` gave."""
    return SubjectSpec.model_validate(facts if facts is not None else {"program": server})
