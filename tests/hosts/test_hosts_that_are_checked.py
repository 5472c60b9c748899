"""What `kvstudy hosts check` says of real hosts: every field, and a clock that is wrong."""

import os
import platform
import re
from importlib.metadata import version

import pytest
from namespaces import WrongClock
from test_planted import begun_anew

from kvstudy.hosts.version import code_digest

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts")]

LINE = re.compile(
    r"(?P<verdict>ok|not ready) +(?P<name>\w)  (?P<address>\S+)  (?P<roles>\S+)"
    r"  kvstudy (?P<kvstudy>\S+)  python (?P<python>\S+)  Dask (?P<dask>\S+)  JDK (?P<jdk>\S+)"
    r"  (?P<cores>\d+) cores  disk (?P<disk>[\d.]+) GiB  (?P<use>free|used by others: load average \S+)"
    r"  clock (?P<ahead_ms>[+-][\d.]+) ms ± (?P<bound_ms>[\d.]+) ms  round trip (?P<round_trip_us>\d+) us"
    r"  (?P<megabytes_per_s>\d+) MB/s"
)


def test_one_line_says_of_each_host_all_that_a_run_needs(hosts, project):
    ahead_ms = 250
    with begun_anew(hosts, {"b": {"clock": WrongClock(ahead_ms * 1_000_000, 0)}}):
        file = hosts.yaml(a=["service"], b=["generator", "service"])
        code, out, err = project.finished(project.kvstudy("hosts", "check", file), 60)
    assert code == 0, out + err
    lines = [LINE.fullmatch(line) for line in out.splitlines()]
    assert len(lines) == 2 and all(lines), out
    for name, said, roles, planted_ms in zip(
        "ab", lines, ("service", "generator+service"), (0, ahead_ms), strict=True
    ):
        assert (said["verdict"], said["name"], said["roles"]) == ("ok", name, roles)
        assert said["address"] == hosts.address[name]
        assert said["kvstudy"] == code_digest() and said["dask"] == version("distributed")
        assert said["python"] == platform.python_version() and said["jdk"].startswith("25")
        assert int(said["cores"]) == os.cpu_count() and 1 <= float(said["disk"]) <= 2
        off_ms = abs(float(said["ahead_ms"]) - planted_ms)
        assert off_ms <= float(said["bound_ms"]) + 0.001  # rounded
        assert int(said["round_trip_us"]) > 0 and float(said["bound_ms"]) < 20
        assert int(said["megabytes_per_s"]) > 0


def test_hosts_that_do_not_reach_one_another_are_named(hosts, project):
    """Each reaches this machine, and is reached from it."""
    file = hosts.yaml(a=["service"], b=["generator"], c=["generator"])
    with hosts.no_way("b", "a"):
        code, out, err = project.finished(project.kvstudy("hosts", "check", file), 60)
    assert code == 1 and "not ready: a, b\n" in err, out + err
    hints = [line.strip() for line in out.splitlines() if line.startswith("    → ")]
    told = [re.match(r"→ host (\w) cannot be reached from it: ([\d.]+):\d+: ", line) for line in hints]
    assert [one and one.groups() for one in told] == [
        ("b", hosts.address["b"]),
        ("a", hosts.address["a"]),
    ], out


def test_what_cannot_be_reached_is_said_and_the_others_are_looked_at(hosts, project):
    file = hosts.yaml(a=["service"], b=["generator"])
    hosts.cut("b")
    try:
        code, out, err = project.finished(project.kvstudy("hosts", "check", file), 60)
    finally:
        hosts.heal("b")
    assert code == 1 and "not ready: b" in err, out + err
    first, second, hint = out.splitlines()
    assert LINE.fullmatch(first)["name"] == "a" and second.startswith("not ready b  ")
    assert "cannot be reached over ssh" in hint or "does not answer over ssh" in hint
