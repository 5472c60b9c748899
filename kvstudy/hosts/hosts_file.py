"""hosts.yaml: which machines there are, what each may do, and how they are reached.

scheduler: tcp://10.0.0.1:8786          # a Dask cluster that runs already; or
ssh: {user: perf, key: ~/.ssh/id, python: ~/kvstudy/.venv/bin/python}
folder: ~/.cache/kvstudy                # on each host, for kvstudy alone: programs, fills, scratch
hosts:
  a: {address: 10.0.0.11, roles: [service]}
  b: {address: 10.0.0.12, roles: [generator], cores: 2-7}      # a comma needs quotes: "2-4,7"
"""

import re
from collections.abc import Collection
from os.path import expanduser, isfile  # Path's raises where nobody has that home
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from kvstudy.errors import ExperimentError
from kvstudy.plan.factors import OneOrMore, Part
from kvstudy.plan.refusal import Impossible, read_yaml, refusal

Role = Literal["service", "generator"]


def _cores(value: object) -> str:
    if not isinstance(value, str | int):
        raise ValueError(f"not cores: {value!r}; a list needs quotes: '2-4,7'")
    cores_in(str(value))
    return str(value)


def cores_in(text: str) -> tuple[int, ...]:
    """``2-4,7`` → 2, 3, 4, 7. ValueError says what is wrong."""
    found: list[int] = []
    for part in text.split(","):
        numbers = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", part.strip())
        first, last = (int(numbers[1]), int(numbers[2] or numbers[1])) if numbers else (1, 0)
        if last < first:
            raise ValueError(f"not cores: {text!r}; write 2-7 or 0,2,4-5")
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def _on_hosts(value: str) -> str:
    """A path there, where whoever reads it may stand anywhere."""
    if not value.startswith(("/", "~/")):
        raise ValueError(f"not from the root of the hosts, nor from a home: {value!r}; write /… or ~/…")
    return value


def _program(value: str) -> str:
    """The same, or a name."""
    return _on_hosts(value) if "/" in value else value


def _file_here(value: str) -> str:
    if not isfile(expanduser(value)):
        raise ValueError(f"no such file: {value!r}")
    return value


def _address(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", value):
        raise ValueError(
            f"not an IPv4 address, nor a name: {value!r}; write 10.0.0.11; user and port belong under ssh"
        )
    return value


def _name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
        raise ValueError(f"not a name of a host: {value!r}; letters, digits, dots, - and _")
    return value


class Ssh(Part):
    """``python``: of an environment on the hosts that has this kvstudy; ``options``: of ssh, as in
    ``["-o", "StrictHostKeyChecking=no"]``. What is left out is what ~/.ssh/config says."""

    user: str | None = None
    key: Annotated[str, AfterValidator(_file_here)] | None = None
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    python: Annotated[str, AfterValidator(_program)] = "python3"
    options: list[str] = []


class HostEntry(Part):
    """``cores``: those that may be used; all where it is not said."""

    address: Annotated[str, AfterValidator(_address)]
    roles: Annotated[list[Role], OneOrMore]
    cores: Annotated[str, BeforeValidator(_cores)] | None = None

    @property
    def core_numbers(self) -> tuple[int, ...] | None:
        return cores_in(self.cores) if self.cores else None


def _of_scheduler(value: str) -> str:
    if not re.fullmatch(r"(tcp|tls)://\S+:\d+", value):
        raise ValueError(f"not the address of a Dask scheduler: {value!r}; write tcp://10.0.0.1:8786")
    return value


class HostsFile(Part):
    scheduler: Annotated[str, AfterValidator(_of_scheduler)] | None = None
    ssh: Ssh | None = None
    folder: Annotated[str, AfterValidator(_on_hosts)] = "~/.cache/kvstudy"
    hosts: dict[Annotated[str, AfterValidator(_name)], HostEntry]

    @classmethod
    def load(cls, path: Path) -> "HostsFile":
        """ExperimentError with file, line and key."""
        values, source = read_yaml(Path(path), "hosts")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise refusal(error, cls, source, "see docs/hosts.md") from None

    @model_validator(mode="after")
    def _is_possible(self) -> "HostsFile":
        if self.scheduler and self.ssh:
            raise Impossible("ssh", "give ssh, or the scheduler of a cluster that runs already, not both")
        if not self.scheduler and not self.ssh:
            raise Impossible("hosts", "nobody knows how to reach them: give ssh or scheduler")
        if not self.of("generator"):  # a service may run at an address
            raise Impossible("hosts", "no host has the role generator")
        addresses = [entry.address for entry in self.hosts.values()]
        for address in addresses:
            if addresses.count(address) > 1:
                raise Impossible("hosts", f"two hosts have one address: {address}")
        return self

    def of(self, role: Role) -> list[str]:
        """Names of the hosts that have it, those that have no other one first."""
        names = [name for name, entry in self.hosts.items() if role in entry.roles]
        return sorted(names, key=lambda name: len(self.hosts[name].roles))

    def only(self, names: Collection[str]) -> "HostsFile":
        """With these hosts, and nothing to do with the others."""
        return self.model_copy(update={"hosts": {name: self.hosts[name] for name in names}})

    def generators(self, count: int) -> tuple[str, ...]:
        """Of a service at an address. ExperimentError when there are not so many."""
        names = self.of("generator")
        if len(names) < count:
            raise ExperimentError(
                f"not enough hosts: generators={count} are needed, with that role",
                f"generators: {', '.join(names)}",
            )
        return tuple(names[:count])

    def crews(self, generators: int) -> list[tuple[str, tuple[str, ...]]]:
        """As many runs as can go on side by side: each a service's host and so many generators', no host
        twice. A host that has both roles loads its own service where no other one could. ExperimentError
        when there is not one."""
        free, found = dict.fromkeys(self.hosts), []
        services = self.of("service")
        for service in services:
            # A host that could be a service's is a generator's last, so that more runs go on at once.
            others = sorted(
                (name for name in self.of("generator") if name in free and name != service),
                key=lambda name: name in services,
            )
            if service in free and len(others) >= generators:
                found.append((service, tuple(others[:generators])))
                for name in (service, *others[:generators]):
                    del free[name]
        if not found and generators == 1:
            found = [(name, (name,)) for name in services if name in self.of("generator")]
        if not found:
            raise ExperimentError(
                f"not enough hosts: generators={generators} and a service's host are needed, with a "
                "role each",
                f"generators: {', '.join(self.of('generator'))}; services: {', '.join(services) or 'none'}",
            )
        return found
