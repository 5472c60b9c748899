"""What is said of hosts before they are asked."""

import json
import platform
import socket
import time
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace

import pytest

from kvstudy.errors import KvstudyError, ToolMissing
from kvstudy.hosts.hosts_file import HostEntry, HostsFile
from kvstudy.hosts.reach import unreached
from kvstudy.hosts.version import code_digest
from kvstudy.measure import hosts_check
from kvstudy.measure.host_facts import host_facts, platform_here


def test_who_has_no_dask_is_told_what_to_install(monkeypatch):
    def none(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(hosts_check, "version", none)
    hosts = {
        name: {"address": f"192.0.2.{place}", "roles": [role]}
        for place, (name, role) in enumerate((("a", "service"), ("b", "generator")), start=1)
    }
    with pytest.raises(ToolMissing) as told:
        hosts_check.examine(HostsFile.model_validate({"ssh": {}, "hosts": hosts}))
    assert told.value.message == "measuring on several hosts needs Dask, and there is none here"
    assert "make setup" in told.value.hint


def facts(**other) -> dict:
    return {
        "kvstudy": code_digest(),
        "python": platform.python_version(),
        "dask": version("distributed"),
        "jdk": "25.0.1",
        "no_jdk": None,
        "disk_free_bytes": 20 << 30,
        "is_writable": True,
        "platform": platform_here(),
        "cores": 4,
        "load_average": 0.1,
        "holder": None,
    } | other


@pytest.mark.parametrize(
    ("other", "wrong"),
    [
        ({}, None),
        ({"kvstudy": "0123456789ab"}, f"kvstudy must be {code_digest()}, as here, and is 0123456789ab"),
        ({"kvstudy": None}, f"kvstudy must be {code_digest()}, as here, and is older"),
        ({"python": "3.9.1"}, "python must be"),
        ({"dask": None}, "Dask must be"),
        ({"platform": "Linux ppc"}, "it is Linux ppc, and the load generator is built here, for "),
        ({"jdk": None, "no_jdk": "no JDK"}, "no JDK: a service's host needs a JDK 25"),
        ({"is_writable": False}, "its folder cannot be written"),
        ({"disk_free_bytes": 1 << 20}, "disk is nearly full"),
        ({"holder": "perf@laptop since noon"}, "in use by perf@laptop since noon"),
    ],
)
def test_what_has_to_be_done_on_a_host_is_said_of_what_it_has(other, wrong):
    found = hosts_check.Checked("a")
    entry = HostEntry(address="192.0.2.1", roles=["service"])
    hosts_check._judge(found, entry, facts(**other), version("distributed"))
    assert [one.startswith(wrong) for one in found.wrong] == ([] if wrong is None else [True]), found.wrong
    assert found.line().startswith("ok" if wrong is None else "not ready")


@pytest.mark.parametrize(("cores", "wrong"), [("0-3", []), ("2-5,9", ["no such cores: 4, 5, 9: it has 4"])])
def test_cores_that_a_host_does_not_have_are_named(cores, wrong):
    found = hosts_check.Checked("a")
    entry = HostEntry(address="192.0.2.1", roles=["service"], cores=cores)
    hosts_check._judge(found, entry, facts(), version("distributed"))
    assert found.wrong == wrong


def test_what_a_shell_says_to_everybody_is_no_answer():
    assert hosts_check._last_line('welcome to a\n\n{"cores": 4}\n') == '{"cores": 4}'
    assert hosts_check._last_line("") == ""


def test_what_one_host_cannot_reach_of_the_others_is_said_of_it_and_of_whom():
    places = {"192.0.2.1:1": "host a", "192.0.2.2:2": "host b", "192.0.2.9:9": "the machine where you type"}
    asked = []

    def none(of):
        asked.extend(of)
        return dict.fromkeys(of, "no route to host")

    found = hosts_check.Checked("a")
    hosts_check._look_around(found, hosts_check.There({}, 1, none), places)
    assert asked == ["192.0.2.2:2", "192.0.2.9:9"]
    assert found.wrong == [
        f"{whose} cannot be reached from it: {place}: no route to host: {hosts_check.ALL_PORTS}"
        for whose, place in (("host b", "192.0.2.2:2"), ("the machine where you type", "192.0.2.9:9"))
    ]


def test_a_place_where_nobody_listens_is_not_reached_and_one_where_somebody_does_is():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as gone:
        here, there = (f"127.0.0.1:{one.getsockname()[1]}" for one in (server, gone))
        gone.close()
        assert unreached([here, there]) == {there: "connection refused"}
    assert unreached([]) == {}


class Remote(SimpleNamespace):
    """Answers, and then has a clock that says nothing and does not end."""

    python, folder, address, file = "python3", "~/there", "192.0.2.1", None

    said = json.dumps(facts())

    def asked(self, _words):
        return SimpleNamespace(returncode=0, stdout=self.said)

    def command(self, _words):
        return ["sh", "-c", "trap '' TERM; sleep 60"]


def test_a_host_whose_clock_says_nothing_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(hosts_check, "CLOCK_TIMEOUT_S", 0.3)
    begun = time.monotonic()
    with (
        pytest.raises(KvstudyError, match="it cannot serve on its own address: 192.0.2.1"),
        hosts_check._over_ssh(Remote()),
    ):
        pass
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize(("said", "why"), [("", "it says nothing"), ("welcome\n", "welcome")])
def test_a_python_that_is_none_is_named_as_what_is_wrong(said, why):
    file = SimpleNamespace(ssh=SimpleNamespace(python="/bin/true"))
    with (
        pytest.raises(KvstudyError, match=f"its python cannot be used: /bin/true: {why}"),
        hosts_check._over_ssh(Remote(said=said, file=file)),
    ):
        pass


@pytest.mark.parametrize("folder", ["/proc/kvstudy", "/dev/null", "/dev/null/kvstudy"])
def test_a_folder_that_nobody_can_make_is_not_writable_also_to_root(folder):
    assert not host_facts(folder)["is_writable"]


def test_a_folder_that_can_be_made_is_writable_and_trying_leaves_nothing_there(tmp_path):
    assert host_facts(str(tmp_path / "of" / "kvstudy"))["is_writable"]
    assert not list(tmp_path.iterdir())


def test_ssh_notices_a_host_that_falls_silent():
    from kvstudy.hosts.ssh import remotes

    hosts = {
        name: {"address": f"192.0.2.{place}", "roles": [role]}
        for place, (name, role) in enumerate((("a", "service"), ("b", "generator")), start=1)
    }
    (one, _) = remotes(HostsFile.model_validate({"ssh": {}, "hosts": hosts}))
    words = " ".join(one.command("true"))
    assert "-o ServerAliveInterval=2 -o ServerAliveCountMax=3" in words
