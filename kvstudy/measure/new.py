"""`kvstudy new`: an experiment for a service of one's own, written with comments and tried once: ready? first
answers? does it stop?"""

import http.client
import json
import re
import shlex
import shutil
import time
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from pathlib import Path

from kvstudy.errors import InputError, KvstudyError, reason_unanswered
from kvstudy.hosts.interrupt import interruptible
from kvstudy.hosts.session import Session
from kvstudy.measure.keys import key_of, value_of
from kvstudy.plan.experiment import NAME, NAME_HINT, Experiment
from kvstudy.plan.run_plan import configurations_of
from kvstudy.plan.subject import Ready, SubjectSpec
from kvstudy.project import work_root
from kvstudy.subject.catalogue import subject_of
from kvstudy.subject.protocol import LiveSubject, Place
from kvstudy.units import format_duration

KEY, VALUE_BYTES, TIMEOUT_S = key_of(1, 16), 100, 10
ANSWER_BYTES = 1 << 20  # as much as is looked at
DEATH_STEPS, DEATH_STEP_S = 10, 0.05
NO_PUT = (405, 501)  # what says that it takes no PUT

TEMPLATE = """\
# What is measured, by `kvstudy run experiments/{name}.yaml`; all keys: experiments/README.md.
name: {quoted}
question: How fast does {name} answer {methods}?
expectation: At 1 000/s the p99 is under 10 ms.  # a number, written before the run

subject:
- name: {quoted}
{kind}{paths}  # What it answers when it has done it: PUT 200, 201 or 204, GET 200, if nothing else is said.
  # statuses: {{PUT: 201, GET: 200}}
  # jvm: true          # a HotSpot JVM: flame graphs (profile: cpu), GC and safepoints

{version}{workload}connections: 16
threads: 1
rate: [1000, 4000]     # per second; or closed: each connection sends as soon as it was answered
duration: 20s          # the whole run, of which
warm_up: 8s            # the first part is not measured
repeats: 5

presets:
  quick: {{duration: 5s, warm_up: 2s, repeats: 2{compared}}}
  full: {{}}
"""
COMMAND = """\
  # {{port}}, {{dir}} (its data directory) and {{root}} (the project's folder) are filled in.
  command: {command}
{files}  ready: {ready}           # or {{line: TEXT}} of its output, or {{http: /path}}
  stop: TERM           # or {{signal: INT, time: 20s, exit: 0}}
"""
FILES = "  files: {files}  # written in {{dir}}, with placeholders filled in\n"
# Commented out: another version beside the first, and how both are compared.
VERSION = """\
# Another version of it beside this one: take these # away and let one of the two commands start the other
# version. Then `kvstudy compare experiments/{name}.yaml` says which is faster (3 minutes; --preset full: 10).
#- name: {second}
#  command: {command}
{files}#  ready: {ready}
#  stop: TERM
{paths}compare: {{rate: 1000}}

"""
COMPARED = """\
,
    compare: {rate: 1000, warm_up: 4s, pairs: 14, closed_pairs: 0, not_counted: 30ms, counted: 100ms,
              gap: 20ms..60ms, profile: [], within: 3m}"""
ADDRESS = "  url: {url}  # runs already: it is neither started nor stopped\n"
KEYS = """\
  # Where a key stands. Without paths: /v0/entity?id={{key}}
  paths: {{PUT: {path}, GET: {path}, DELETE: {path}}}
"""
FILLED = "  fill: http           # but written to before runs that read\n"
PUT_AND_GET = """\
# Or a Lua script of your own: {script: my/own.lua}
workload: [{script: put, key_count: 10000}, {script: get, key_count: 10000}]
fill: 10000            # records written before a run that reads
"""
OWN_SCRIPT = """\
# What is sent stands in that script: change it to what your service is asked.
workload: experiments/{name}.lua
method: GET
"""
SCRIPT = """\
-- Sends GET {get}. request() gives the next request; wrk.format(method, path, headers, body) writes one.
function request()
  return wrk.format("GET", "{get}")
end
"""
OTHER_REQUESTS = (
    "bodies and headers of its own are sent by a script: experiments/README.md, Workloads; else write its "
    "path in paths"
)
PLAIN_IN_YAML = re.compile(r"(?!(null|true|false|yes|no|on|off|y|n)$)[a-z][a-z0-9-]*")  # others mean a number
PROGRAM_OF_A_SHELL = re.compile(r"[A-Za-z_]\w*=|~/|.*[$`]")  # its beginning
PATH = re.compile(r"/[!#-\[\]-~]*")  # what stands in a Lua string as it is


def write(
    name: str,
    root: Path,
    command: str | None,
    url: str | None,
    ready: str,
    path: str,
    get: str | None = None,
    replace: bool = False,
    given: Iterable[str] = (),
) -> Path:
    """InputError when the file is there already, and is not to be replaced, or what was given is no
    subject. ``get``: a path that is all that is asked for, by a script beside the experiment; else keys are
    written and read at ``path``. ``given``: NAME=PATH of files that a command is given in its directory."""
    if not re.fullmatch(NAME, name):
        raise InputError(f"not a name of an experiment: {name!r}", NAME_HINT)
    file = root / "experiments" / f"{name}.yaml"
    script = file.with_suffix(".lua")
    files = [file] if get is None else [file, script]
    for there in files:
        if there.exists() and not replace:
            raise InputError(
                f"there is such an experiment already: {there}",
                "choose another name, edit it, or give --replace",
            )
    if get is not None and not PATH.fullmatch(get):
        raise InputError(f"not a path: {get!r}", "it begins with /, as --get '/search?q=x'")
    if (command is None) == (url is None):
        raise InputError(
            "give either --command or --url",
            "as --command 'java -jar /path/to/my.jar --port {port} --data {dir}'",
        )
    keys = KEYS.format(path=_in_yaml(path)) if get is None else ""
    if command is None:
        kind, version = ADDRESS.format(url=_in_yaml(url)) + (FILLED if keys else ""), ""
    else:
        words = {"command": _in_yaml(_words(command)), "ready": _ready(ready)}
        own = _files(given)
        kind = COMMAND.format(files=own, **words)
        paths = "".join(f"#{line}\n" for line in keys.splitlines() if line.startswith("  paths:"))
        second, theirs = _plain(f"{name}-2"), own and f"#{own}"
        version = VERSION.format(name=name, second=second, files=theirs, paths=paths, **words)
    text = TEMPLATE.format(
        name=name,
        quoted=_plain(name),
        kind=kind,
        methods="PUT and GET" if get is None else f"GET {get}",
        paths=keys,
        version=version,
        compared=COMPARED if version else "",
        workload=PUT_AND_GET if get is None else OWN_SCRIPT.format(name=name),
    )
    before = {one: one.read_bytes() for one in files if one.exists()}
    try:
        file.write_text(text, encoding="utf-8")
        if get is not None:
            script.write_text(SCRIPT.format(get=get), encoding="utf-8")
        Experiment.load(file)
    except BaseException as error:
        for one in files:
            if one in before:
                one.write_bytes(before[one])
            else:
                one.unlink(missing_ok=True)
        if isinstance(error, KvstudyError):  # the file that it names is gone again
            what = re.sub(rf"^{re.escape(str(file))}(:\d+)?: ", "", error.message)
            raise type(error)(f"no experiment was written: {what}", error.hint) from None
        raise
    return file


def _plain(name: str) -> str:
    """As YAML reads it as text."""
    return name if PLAIN_IN_YAML.fullmatch(name) else _in_yaml(name)


def _in_yaml(value: object) -> str:
    """As JSON, but for its halves of letters beyond 16 bits, which YAML does not put together."""
    return json.dumps(value, ensure_ascii=False)


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(
            f"--command cannot be split into words: {str(error).lower()}: {command}",
            "write it as in a shell",
        ) from None
    if not words:
        raise InputError(
            "--command is empty", "as --command 'java -jar /path/to/my.jar --port {port} --data {dir}'"
        )
    of_shell = words[0] if PROGRAM_OF_A_SHELL.match(words[0]) else _of_a_shell(command)
    if of_shell:
        raise InputError(
            f"--command is no line of a shell: {of_shell!r}",
            "a variable: --command 'env PORT={port} serve'; all else: "
            "--command 'sh -c \"cd /srv && exec serve {port}\"'",
        )
    return words


def _files(given: Iterable[str]) -> str:
    """The line of the experiment; none where no file is given."""
    files = {}
    for word in given:
        name, _, path = word.partition("=")
        if not name or not path:
            raise InputError(f"--file takes NAME=PATH: {word!r}", "as --file nginx.conf=my/nginx.conf")
        files[name] = path
    return FILES.format(files=_in_yaml(files)) if files else ""


def _of_a_shell(command: str) -> str | None:
    """The first sign, not between quotes, that means something to a shell alone."""
    signs = shlex.shlex(command, posix=False, punctuation_chars="();<>|&")
    signs.whitespace_split = True
    signs.commenters = ""
    return next((word for word in signs if set(word) <= set("();<>|&")), None)


def try_service(file: Path, root: Path, get: str | None = None) -> Iterator[str]:
    """Says what it does, line by line. KvstudyError with the first thing that is not as it should be; nothing
    is left running."""
    configuration = configurations_of(Experiment.load(file))[0]
    subject, folder = subject_of(configuration, root, built=_no_build), work_root(root) / "tried"
    subject.check(profiled=False)
    with interruptible(), Session(work_root(root)) as session:
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "store").mkdir(parents=True)
        if configuration.spec.command:
            yield f"started: {_awaited(configuration.spec.ready)}"
        live = subject.launch(Place(folder / "store", folder, registered=session.registered))
        try:
            yield f"ready: {live.url}"
            yield from _answers(live, configuration.spec, get, folder / "service.log")
        finally:
            fault = live.stop()
        if fault:
            raise KvstudyError(fault, f"its log: {folder / 'service.log'}")
    if configuration.spec.command:
        yield "stopped in order"


def _awaited(ready: Ready) -> str:
    how = "its port takes connections"
    if ready.line:
        how = f"it writes a line with {ready.line!r}"
    elif ready.http:
        how = f"it answers GET {ready.http} with a status under 500"
    return f"waiting until {how}, at most {format_duration(ready.timeout)}"


def _answers(live: LiveSubject, spec: SubjectSpec, get: str | None, log: Path) -> Iterator[str]:
    value = value_of(KEY, VALUE_BYTES)
    asked = [
        (method, spec.path_of(method).replace("{key}", KEY), body)
        for method, body in (("PUT", value), ("GET", None))
    ]
    for method, target, body in asked if get is None else [("GET", get, None)]:
        connection = http.client.HTTPConnection(live.url.removeprefix("http://"), timeout=TIMEOUT_S)
        try:
            connection.request(method, target, body)
            answer = connection.getresponse()
            status, content = answer.status, answer.read(ANSWER_BYTES)
        except TimeoutError as error:
            raise KvstudyError(
                f"no answer to {method} {target} within {TIMEOUT_S} s", "look into what it does then"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            _tell_death(live, f"{method} {target}")
            raise KvstudyError(f"no answer to {method} {target}: {reason_unanswered(error)}") from error
        finally:
            connection.close()
        if status not in spec.statuses_of(method):
            raise KvstudyError(
                f"{method} {target} answered {status}: {content[:100].decode(errors='replace')!r}",
                "one that only reads is tried with --get /path"
                if method == "PUT" and status in NO_PUT
                else _where_to_look(status, spec, log)
                if status >= 500
                else _what_to_write(method, status, get),
            )
        yield f"{method} {target}: {status}"
    if get is None and content != value:
        yield "GET gives back something else than PUT wrote: write verify: false, if that is as it should be"


def _where_to_look(status: int, spec: SubjectSpec, log: Path) -> str:
    where = f": {log}" if log.is_file() else ""
    if status == HTTPStatus.SERVICE_UNAVAILABLE and spec.command and not (spec.ready.line or spec.ready.http):
        return f"if it still starts, say when it is ready: --ready /path; its log{where}"
    return f"look into its log{where}"


def _tell_death(live: LiveSubject, doing: str) -> None:
    """KvstudyError with its last words where it has ended, or ends now: its connections go before it."""
    for _ in range(DEATH_STEPS):
        live.check_alive(doing)
        time.sleep(DEATH_STEP_S)


def _what_to_write(method: str, status: int, get: str | None) -> str:
    """Of an answer that is none of those which say that it was done."""
    if get is not None:
        return "write its path in the script of the experiment, beside it"
    if method == "GET" and status == HTTPStatus.NOT_FOUND:  # of what PUT has written before
        return "it did not keep what PUT wrote, or has it at another path: write that in paths"
    if status == HTTPStatus.NOT_FOUND:
        return "write its path in paths, as --path '/items/{key}'"
    if status >= HTTPStatus.BAD_REQUEST:
        return OTHER_REQUESTS
    return f"write its path in paths, or what it answers in statuses: {{{method}: {status}}}"


def _ready(ready: str) -> str:
    """``tcp``, ``/path`` or a text of a line."""
    return ready if ready == "tcp" else _in_yaml({"http" if ready.startswith("/") else "line": ready})


def _no_build(revision: str, root: Path) -> Path:
    raise AssertionError(f"no subject of this has a build: {revision}")
