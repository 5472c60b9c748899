"""hosts.yaml: what it may say, and which runs go on side by side on its hosts."""

import re

import pytest

from kvstudy.errors import ExperimentError
from kvstudy.hosts.hosts_file import HostsFile, cores_in
from kvstudy.measure.crew import crew_name
from kvstudy.measure.on_hosts import over_a_network, wanted_crews
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.run_plan import plan

TWO = """
ssh: {user: perf}
hosts:
  a: {address: 10.0.0.11, roles: [service]}
  b: {address: 10.0.0.12, roles: [generator], cores: '2-4,7'}
"""


def loaded(tmp_path, text: str) -> HostsFile:
    path = tmp_path / "hosts.yaml"
    path.write_text(text)
    return HostsFile.load(path)


def test_file_says_who_does_what_and_on_which_cores(tmp_path):
    file = loaded(tmp_path, TWO)
    assert file.of("service") == ["a"] and file.of("generator") == ["b"]
    assert file.hosts["b"].core_numbers == (2, 3, 4, 7)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("roles: [service]", "roles: [server]", "hosts.yaml:4: hosts.a.roles: not one of service, generator"),
        ("'2-4,7'", "4-2", "hosts.yaml:5: hosts.b.cores: not cores: '4-2'"),
        ("10.0.0.12", "10.0.0.11", "two hosts have one address: 10.0.0.11"),
        ("roles: [generator]", "roles: [service]", "no host has the role generator"),
        ("ssh: {user: perf}", "", "give ssh or scheduler"),
        ("ssh: {user: perf}", "ssh: {usr: perf}", "hosts.yaml:2: ssh: unknown key: usr"),
        ("address: 10.0.0.11, ", "", "hosts.yaml:4: hosts.a: required key is missing: address"),
        (
            "10.0.0.11",
            "fe80::1%eth0",
            "hosts.yaml:4: hosts.a.address: not an IPv4 address, nor a name: 'fe80::1",
        ),
        ("10.0.0.11", "perf@10.0.0.11", "user and port belong under ssh"),
        ("address: 10.0.0.11", "address: ''", "hosts.a.address: not an IPv4 address, nor a name: ''"),
        ("hosts:", "scheduler: tcp://h:1\nhosts:", "not both"),
        ("ssh: {user: perf}", "scheduler: http://h:1", "hosts.yaml:2: scheduler: not the address of a Dask"),
        ("ssh: {user: perf}", "scheduler: 10.0.0.1:8786", "write tcp://10.0.0.1:8786"),
        (
            "user: perf",
            "python: kv/.venv/bin/python",
            "hosts.yaml:2: ssh.python: not from the root of the hosts",
        ),
        (
            "ssh: {user: perf}",
            "folder: scratch/kv\nssh: {user: perf}",
            "folder: not from the root of the hosts",
        ),
        ("ssh: {user: perf}", "folder: kv\nssh: {user: perf}", "folder: not from the root of the hosts"),
        ("'2-4,7'", "[2, 4]", "hosts.yaml:5: hosts.b.cores: not cores: [2, 4]; a list needs quotes"),
        (TWO[TWO.index("hosts:") :], "hosts:", "hosts.yaml:3: hosts: must be a mapping of keys to values"),
        ("  a:", "  my host:", "not a name of a host: 'my host'"),
        ("user: perf", "key: ~/none/id", "hosts.yaml:2: ssh.key: no such file: '~/none/id'"),
        ("user: perf", "key: ~nobody-here/id", "hosts.yaml:2: ssh.key: no such file: '~nobody-here/id'"),
    ],
)
def test_a_mistake_is_named_by_file_line_and_key(tmp_path, old, new, said):
    with pytest.raises(ExperimentError) as refused:
        loaded(tmp_path, TWO.replace(old, new))
    assert said in str(refused.value)


def test_a_hosts_file_that_is_not_there_is_not_taken_for_an_experiment(tmp_path):
    (tmp_path / "host.yaml").write_text("question: which?")
    with pytest.raises(ExperimentError) as refused:
        HostsFile.load(tmp_path / "hosts.yaml")
    assert refused.value.message == f"no such hosts file: {tmp_path / 'hosts.yaml'}"
    assert refused.value.hint == "what one says: docs/hosts.md"


def test_no_host_takes_part_in_two_runs_at_once(tmp_path):
    roles = {"a": "service", "b": "generator", "c": "service, generator", "d": "generator", "e": "generator"}
    lines = [
        f"  {name}: {{address: 10.0.0.{place}, roles: [{of}]}}"
        for place, (name, of) in enumerate(roles.items())
    ]
    file = loaded(tmp_path, "ssh: {}\nhosts:\n" + "\n".join(lines))
    assert file.crews(1) == [("a", ("b",)), ("c", ("d",))]
    assert file.crews(3) == [("a", ("b", "d", "e"))]
    assert file.crews(4) == [("a", ("b", "d", "e", "c"))]
    with pytest.raises(ExperimentError, match="not enough hosts: generators=5"):
        file.crews(5)


BOTH = """
ssh: {user: perf}
hosts:
  a: {address: 10.0.0.11, roles: [service, generator]}
"""


def test_one_host_with_both_roles_loads_its_own_service(tmp_path):
    file = loaded(tmp_path, BOTH)
    assert file.crews(1) == [("a", ("a",))] and crew_name("a", ("a",)) == "a"
    with pytest.raises(ExperimentError, match="not enough hosts: generators=2"):
        file.crews(2)


def test_a_host_does_not_load_its_own_service_where_another_one_can(tmp_path):
    file = loaded(tmp_path, BOTH + "  b: {address: 10.0.0.12, roles: [service, generator]}\n")
    assert file.crews(1) == [("a", ("b",))]


def test_a_service_at_an_address_needs_no_host_of_its_own(tmp_path):
    file = loaded(tmp_path, TWO.replace("roles: [service]", "roles: [generator]"))
    assert file.generators(2) == ("a", "b")
    with pytest.raises(
        ExperimentError, match="not enough hosts: generators=1 and a service's host"
    ) as refused:
        file.crews(1)
    assert refused.value.hint == "generators: a, b; services: none"


def test_more_generators_than_there_are_hosts_are_refused_also_for_a_service_at_an_address(tmp_path):
    file = loaded(tmp_path, TWO)
    experiment = Experiment.from_parameters(
        {
            "question": "-",
            "expectation": "1 ms",
            "subject": {"url": "http://10.0.0.11:8080"},
            "workload": "put",
            "connections": 4,
            "threads": 1,
        }
        | {"rate": 100, "duration": "2s", "warm_up": "1s", "repeats": 1}
    )
    assert wanted_crews(file, plan(experiment), 1) == [(None, ("b",))]
    with pytest.raises(ExperimentError, match="not enough hosts: generators=3 are needed") as refused:
        wanted_crews(file, plan(experiment), 3)
    assert refused.value.hint == "generators: b"


def test_hosts_that_take_no_part_are_left_alone(tmp_path):
    file = loaded(tmp_path, TWO).only(["b"])
    assert list(file.hosts) == ["b"] and file.of("service") == []


def test_cores_are_written_as_ranges():
    assert cores_in("0,2-3") == (0, 2, 3)
    for wrong in ("two", "", "3-2", "2-", "-2", "0-9999999999", "²"):
        with pytest.raises(ValueError, match="not cores"):
            cores_in(wrong)


def test_generators_share_the_connections_and_have_threads_of_their_own():
    experiment = Experiment.from_parameters(
        {
            "question": "-",
            "expectation": "1 ms",
            "workload": "put",
            "connections": 4,
            "threads": "connections",
        }
        | {"rate": 100, "duration": "2s", "warm_up": "1s", "repeats": 1}
    )
    whole = plan(experiment)
    (run,) = {run.configuration.threads: run for run in over_a_network(whole, 2).runs}.values()
    assert (run.configuration.threads, run.configuration.generators) == (2, 2)
    assert run.identity() != whole.runs[0].identity()
    with pytest.raises(ExperimentError, match="too few connections for 5 generators: connections=4"):
        over_a_network(whole, 5)


HERE_TOO = """
ssh: {}
hosts:
  a: {address: 127.0.0.1, roles: [generator]}
  b: {address: 10.0.0.12, roles: [generator]}
"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_an_address_by_which_each_host_means_itself_is_refused(tmp_path, host):
    """What answers there on a generator's host is another program than the one that was meant."""
    url = f"http://{host}:8080"
    values = {"question": "-", "expectation": "1 ms", "subject": {"url": url}, "workload": "put"}
    values |= {"connections": 4, "threads": 1, "rate": 100, "duration": "2s", "warm_up": "1s", "repeats": 1}
    whole, file = plan(Experiment.from_parameters(values)), loaded(tmp_path, HERE_TOO)
    with pytest.raises(
        ExperimentError, match=f"by this address each host means itself: url={re.escape(url)}"
    ):
        wanted_crews(file, whole, 2)
    assert wanted_crews(file.only(["a"]), whole, 1) == [(None, ("a",))]  # this machine loads it
