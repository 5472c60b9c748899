"""What may be measured, as an experiment says it; what cannot be measured is refused with file, line and
key."""

import pytest
from test_experiment import WHOLE, load, refused

from kvstudy.plan.run_plan import configurations_of, plan
from kvstudy.plan.subject import SubjectSpec, spec_of

COMMAND = {"command": ["./serve", "{port}", "{dir}"]}


def configurations(tmp_path, **change):
    return configurations_of(load(tmp_path, WHOLE | change))


@pytest.mark.parametrize(
    ("subject", "words", "hint"),
    [
        (
            "nginx",
            "subject: not one of kv-service, empty: 'nginx'",
            'for a program of your own: subject: {command: ["nginx", "{port}"]}',
        ),
        (
            "kv-servce",
            "subject: not one of kv-service, empty: 'kv-servce'",
            "did you mean kv-service?",
        ),
        ({"comand": ["x"]}, "subject: unknown key: comand", "did you mean command?"),
        ({"name": "x"}, "subject.command: give one of build, command and url", None),
        (
            {"build": "main", "url": "http://127.0.0.1:1"},
            "subject.url: give one of build, command and url, not build and url",
            None,
        ),
        ({"build": "--main"}, "subject.build: not a revision: '--main'", "a branch, a tag or a commit; or "),
        (
            {"command": "serve --port {port}"},
            "subject.command: a command is a list of words: 'serve --port {port}'",
            'write command: ["serve", "--port", "{port}"]',
        ),
        (
            {"command": ["serve", {"port": None}]},
            "subject.command: a word of a command is text: {port} without quotes is a mapping",
            'write "{port}"',
        ),
        (
            {"command": ["serve", 8, "{port}"]},
            "subject.command: a word of a command is text: 8",
            'write "8"',
        ),
        (
            {"command": "sh -c 'cd /srv && exec serve {port}'"},
            "subject.command: a command is a list of words: \"sh -c 'cd /srv && exec serve {port}'\"",
            'write command: ["sh", "-c", "cd /srv && exec serve {port}"]',
        ),
        (
            {"command": ["serve", True, "{port}"]},
            "subject.command: a word of a command is text: YAML reads True",
            "put it between quotes",
        ),
        (
            {"command": ""},
            "subject.command: a command is a list of words: ''",
            'write command: ["serve", "--port", "{port}"]',
        ),
        (
            "java -jar my.jar",
            "subject: a service of your own is a command or a url: 'java -jar my.jar'",
            'write subject: {command: ["java", "-jar", "my.jar"]}',
        ),
        (
            "http://127.0.0.1:8080",
            "subject: a service of your own is a command or a url: 'http://127.0.0.1:8080'",
            'write subject: {url: "http://127.0.0.1:8080"}',
        ),
        (COMMAND | {"statuses": 200}, "subject.statuses: must be a mapping", "keys: PUT, GET, DELETE"),
        (COMMAND | {"paths": "/{key}"}, "subject.paths: must be a mapping", "keys: PUT, GET, DELETE"),
        (COMMAND | {"files": ["x"]}, "subject.files: must be a mapping of keys to values: ['x']", None),
        (
            {"command": ["serve"]},
            "subject.command: {port} is missing: the command must be told the port to serve on",
            "write {port} where its port stands, in quotes; where that is a file of its own, name it in "
            "files, as experiments/peers.yaml does",
        ),
        (
            {"command": ["serve", "{prot}", "{port}"]},
            "subject.command: no such placeholder: {prot}",
            "there are: {port}, {dir}, {root}",
        ),
        (
            {"command": ["serve", "{port}"], "fill": "directory"},
            "subject.fill: {dir} is missing",
            "write {dir}",
        ),
        (
            COMMAND | {"fill": {"directory": "/var/lib/x"}},
            "subject.fill: only the data directory of a run can be kept and restored: '/var/lib/x'",
            "write fill: directory, and {dir} where",
        ),
        (
            {"build": "main", "memory": "1g"},
            "subject.memory: our own service has no memory",
            "write service: {memory: …}",
        ),
        (COMMAND | {"memory": "much"}, "subject.memory: not a size: 'much'", None),
        (
            COMMAND | {"stop": "STOP"},
            "subject.stop.signal: not one of TERM, INT, QUIT, HUP, KILL: 'STOP'",
            None,
        ),
        (COMMAND | {"files": {"my.conf": 1}}, "subject.files.my.conf: input should be a valid string", None),
        (
            COMMAND | {"ready": {"line": "x", "http": "/"}},
            "subject.ready.http: give either line or http, not both",
            None,
        ),
        (COMMAND | {"ready": {"http": "/a b"}}, "subject.ready.http: not a path: '/a b'", "it begins with /"),
        (COMMAND | {"metrics": "metrics"}, "subject.metrics: not a path: 'metrics'", "it begins with /"),
        (COMMAND | {"name": "My Shop"}, "subject.name: not a name of a subject: 'My Shop'", "small letters"),
        (
            COMMAND | {"environment": {"A=B": "x"}},
            "subject.environment: not a name of a variable: 'A=B'",
            None,
        ),
        (COMMAND | {"environment": {"": "x"}}, "subject.environment: not a name of a variable: ''", None),
        (
            COMMAND | {"command": ["a\0b", "{port}"]},
            "subject.command: holds a letter that is none: ",
            "write text",
        ),
        (COMMAND | {"memory": "99999g"}, "subject.memory: more than 16 TiB: '99999g'", None),
        (COMMAND | {"ready": {"lines": "x"}}, "subject.ready: unknown key: lines", "did you mean line?"),
        (
            COMMAND | {"statuses": {"PUT": 42}},
            "subject.statuses.PUT: input should be greater than or equal to 100: 42",
            None,
        ),
        (
            COMMAND | {"paths": {"PUT": "/x"}},
            "subject.paths: a path begins with / and holds {key} once: PUT: '/x'",
            "as /{key}",
        ),
        (
            COMMAND | {"paths": {"PUT": "/größe/{key}"}},
            "subject.paths: a path is sent as it is, in ASCII and without blanks: PUT: '/größe/{key}'",
            "percent-encode it: /gr%C3%B6%C3%9Fe/{key}",
        ),
        (
            COMMAND | {"environment": {"PORT": {"port": None}}},
            "subject.environment: variable PORT is text: {port} without quotes is a mapping",
            'write "{port}"',
        ),
        (
            COMMAND | {"environment": {"WORKERS": 4}},
            "subject.environment: variable WORKERS is text: 4",
            'write "4"',
        ),
        (
            {"command": ["serve", "{prot}"]},
            "subject.command: no such placeholder: {prot}",
            "there are: {port}",
        ),
        ({"url": "HTTP://h:80"}, "subject.url: not an address of HTTP: 'HTTP://h:80'", "as http://"),
        (
            {"url": "127.0.0.1:80"},
            "subject.url: not an address of HTTP: '127.0.0.1:80'",
            "as http://127.0.0.1:8080",
        ),
        (
            {"url": "http://h:99999"},
            "subject.url: not an address of HTTP: 'http://h:99999': port out of range 0-65535",
            "as http://",
        ),
        (
            {"url": "http://h:abc"},
            "subject.url: not an address of HTTP: 'http://h:abc': port could not be cast",
            "as http://",
        ),
        ({"url": "http://h:0"}, "subject.url: not an address of HTTP: 'http://h:0'", "as http://"),
        (
            {"url": "http://[::1:80"},
            "subject.url: not an address of HTTP: 'http://[::1:80': invalid ipv6 url",
            "as http://",
        ),
        (
            {"url": "http://me:secret@h:80"},
            "subject.url: not an address of HTTP: 'http://me:secret@h:80'",
            "as http://",
        ),
        ({"url": "http://h:80#top"}, "subject.url: not an address of HTTP: 'http://h:80#top'", "as http://"),
        (
            {"url": "http://h:1/api/"},
            "subject.url: an address has no path: 'http://h:1/api/'",
            "write it into paths, of each method: PUT: /api/{key}",
        ),
        (
            {"url": "http://127.0.0.1", "ready": "tcp"},
            "subject.ready: an address, where something runs already, has no ready",
            None,
        ),
        ({"build": "main", "jvm": True}, "subject.jvm: our own service has no jvm", None),
        (
            [COMMAND, COMMAND | {"stop": "INT"}],
            "subject: two subjects have one name: serve",
            "give each a name of its own",
        ),
        ([], "subject: an empty list has no runs", None),
    ],
)
def test_what_cannot_be_measured_is_refused_with_its_key_and_line(tmp_path, subject, words, hint):
    error = refused(tmp_path, {"subject": subject})
    assert words in error.message and "trial.yaml:" in error.message
    assert hint is None or error.hint.startswith(hint)


def test_server_is_the_older_name_of_subject_also_in_a_preset_and_is_refused_beside_it(tmp_path):
    assert (
        load(tmp_path, WHOLE | {"server": "empty"}).subject
        == load(tmp_path, WHOLE | {"subject": "empty"}).subject
    )
    assert (
        load(tmp_path, WHOLE | {"presets": {"full": {"server": "empty"}}}, preset="full").subject[0].label
        == "empty"
    )
    assert (
        "server is the older name of subject"
        in refused(tmp_path, {"server": "empty", "subject": "empty"}).message
    )
    assert (
        ": subject: not one of" in (error := refused(tmp_path, {"server": "epmty"})).message
        and "trial.yaml:" in error.message
    )


def test_the_two_of_this_tree_leave_no_trace_in_a_run_s_identity(tmp_path):
    for name in ("kv-service", "empty"):
        (configuration,) = configurations(tmp_path, subject=name)
        assert (configuration.server, configuration.subject, configuration.variant) == (name, None, {})


def test_a_subject_comes_back_from_what_a_run_notes_of_it(tmp_path):
    for given in (
        "empty",
        {"build": "main"},
        {"url": "http://127.0.0.1:80"},
        COMMAND | {"stop": "INT", "ready": {"line": "up"}, "statuses": {"PUT": [201, 204]}},
        COMMAND | {"stop": {"signal": "INT", "time": "1.5s"}, "ready": {"timeout": "2m"}},
    ):
        (configuration,) = configurations(tmp_path, subject=given)
        assert spec_of(configuration.subject, configuration.server) == configuration.spec


def test_several_subjects_are_a_factor_and_options_of_the_service_vary_no_other(tmp_path):
    found = configurations(
        tmp_path,
        subject=["kv-service", {"build": "v1"}, COMMAND, "empty"],
        service={"handler": ["selector", "workers"]},
        jvm={"heap": ["64m", "128m"]},
    )
    labels = [one.variant["subject"] for one in found]
    assert {label: labels.count(label) for label in labels} == {
        "kv-service": 4,
        "kv-service@v1": 4,
        "serve": 1,
        "empty": 2,
    }
    assert {one.server for one in found} == {"kv-service", "serve", "empty"}
    assert [one.jvm for one in found if one.server == "serve"] == [[]]


def test_an_address_is_neither_filled_nor_asked_for_it_unless_it_says_so(tmp_path):
    there = {"url": "http://127.0.0.1:80"}
    assert configurations(tmp_path, subject=there, workload="get")[0].fill is None
    assert (
        configurations(tmp_path, subject=there | {"fill": "http"}, workload="get", fill=100)[0].fill[
            "records"
        ]
        == 100
    )
    assert (
        "reads keys that nothing wrote"
        in refused(tmp_path, {"subject": there | {"fill": "http"}, "workload": "get"}).message
    )


def test_only_what_is_filled_once_and_restored_is_planned_as_a_fill(tmp_path):
    named = {"directory": "{dir}"}
    for change, fills in (({}, 0), ({"fill": "directory"}, 1), ({"fill": named}, 1)):
        assert (
            len(
                plan(
                    load(tmp_path, WHOLE | {"subject": COMMAND | change, "workload": "get", "fill": 1000})
                ).fills
            )
            == fills
        )


def test_profiled_runs_are_of_subjects_with_a_jvm(tmp_path):
    assert (
        "profile: async-profiler needs a JVM"
        in refused(tmp_path, {"subject": COMMAND, "profile": "cpu"}).message
    )
    runs = plan(
        load(
            tmp_path,
            WHOLE | {"subject": [COMMAND, COMMAND | {"jvm": True, "name": "java"}], "profile": "cpu"},
        )
    ).runs
    assert {run.configuration.server for run in runs if run.profile} == {"java"}


def test_what_runs_at_an_address_is_not_stopped_by_a_pause(tmp_path):
    error = refused(
        tmp_path, {"subject": {"url": "http://127.0.0.1:80"}, "pause": {"at": "500ms", "length": "500ms"}}
    )
    assert "pause: what runs at an address is not ours to stop" in error.message


def test_a_script_by_its_path_needs_its_method_and_has_to_be_there(tmp_path):
    assert (
        "workload: no such script: "
        in refused(tmp_path, {"workload": {"script": "no/such.lua"}, "method": "GET"}).message
    )


def test_a_read_back_can_be_made_larger_or_left_out(tmp_path):
    assert [configurations(tmp_path, verify=asked)[0].read_back for asked in ({"sample": 500}, False)] == [
        500,
        0,
    ]
    assert "verify.sample: " in refused(tmp_path, {"verify": {"sample": -1}}).message


@pytest.mark.parametrize(
    ("command", "label"),
    [(["/usr/sbin/Nginx"], "nginx"), (["{root}/my peer.sh"], "my-peer.sh"), (["..."], "command")],
)
def test_a_command_is_named_after_its_program(command, label):
    assert SubjectSpec.model_validate({"command": [*command, "{port}"]}).label == label


@pytest.mark.parametrize("url", ["http://h", "http://h/", "http://h:1", "http://[::1]:8080/"])
def test_an_address_is_a_host_and_perhaps_a_port(url):
    assert SubjectSpec(url=url).label == url.removeprefix("http://").rstrip("/")


@pytest.mark.parametrize("name", ["../conf", "/etc/conf", "a/../../conf", ""])
def test_no_file_of_a_subject_is_written_outside_its_directory(tmp_path, name):
    error = refused(tmp_path, {"subject": COMMAND | {"files": {name: "README.md"}}})
    assert f"subject.files: a file is written in {{dir}}, and nowhere else: {name!r}" in error.message


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (
            {"service": {"handler": "workers"}},
            "leave it out, or write service: {}; a command has in its words its options",
        ),
        ({"service": {"memory": "1g"}}, "its memory group in memory of the subject"),
        (
            {"jvm": {"heap": "64m"}},
            "leave it out, or write jvm: {}; a command has in its words the flags of its JVM",
        ),
    ],
)
def test_options_of_our_service_are_refused_where_no_subject_has_them(tmp_path, options, hint):
    (key,) = options
    error = refused(tmp_path, {"subject": COMMAND} | options)
    assert f"{key}: is of our own programs, and no subject is one" in error.message and hint in error.hint
