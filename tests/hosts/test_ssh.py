"""What ssh would have asked is said, with a command that asks it."""

import json
import os

import pytest

from kvstudy.hosts.hosts_file import HostsFile
from kvstudy.hosts.ssh import Remote, Unreachable


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("Host key verification failed.", "its key is not known here: compare it, and say yes once: ssh "),
        (
            "perf@10.0.0.11: Permission denied (publickey).",
            "it has to let you in without a question (ssh-copy-id there, ssh-add here for a key with a "
            "passphrase): ssh ",
        ),
        ("connect to host 10.0.0.11 port 22: Connection refused", "try it: ssh "),
    ],
)
def test_what_ssh_would_have_asked_can_be_answered_with_the_command_that_is_told(
    tmp_path, monkeypatch, said, remedy
):
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    path = tmp_path / "hosts.yaml"
    path.write_text(
        json.dumps(
            {
                "ssh": {"user": "perf"},
                "hosts": {"a": {"address": "10.0.0.11", "roles": ["service", "generator"]}},
            }
        )
    )
    with pytest.raises(Unreachable) as raised:
        Remote("a", "10.0.0.11", HostsFile.load(path)).asked("true")
    assert raised.value.message == f"host a cannot be reached over ssh: {said}"
    assert raised.value.hint.startswith(remedy)
    assert raised.value.hint.endswith("-l perf 10.0.0.11 true") and "BatchMode" not in raised.value.hint


@pytest.fixture
def host(tmp_path, monkeypatch):
    """``host(script)``: one behind an ssh that does so."""

    def reached(script: str) -> Remote:
        ssh = tmp_path / "ssh"
        ssh.write_text(f"#!/bin/sh\n{script}\n")
        ssh.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        hosts = {"a": {"address": "10.0.0.11", "roles": ["service", "generator"]}}
        return Remote("a", "10.0.0.11", HostsFile.model_validate({"ssh": {}, "hosts": hosts}))

    return reached


def test_what_a_host_says_may_be_in_any_encoding(host):
    done = host(r"printf 'Verzeichnis f\374r niemanden' >&2; printf '\377\n'; exit 3").asked("true")
    assert (done.returncode, done.stdout, done.stderr) == (3, "\ufffd\n", "Verzeichnis f\ufffdr niemanden")


def test_the_shell_of_the_user_there_may_be_any(host):
    """It has to start another program; all else a POSIX shell does."""
    fish = 'for last; do :; done; case $last in "exec sh -c "*) eval "$last";; *) exit 127;; esac'
    done = host(fish).asked(
        "for name in one 'two  three'; do echo \"$name\"; done; sleep 0 & echo $(($! > 0))"
    )
    assert done.stdout == "one\ntwo  three\n1\n"
