"""Crews of several hosts: what a measurement needs is brought there once, and again when a host was lost.

    with crews_on(file, work, registered, plan, artifacts, root, generators) as crews: …

On a service's host a station has the subjects of the plan, made of the files that were brought; a generator's
host needs nothing but the load generator and the scripts: no JDK, no service.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from kvstudy.errors import ExperimentError, HostLost, KvstudyError
from kvstudy.hosts.cluster import Hosts
from kvstudy.hosts.host import Here
from kvstudy.hosts.hosts_file import HostsFile
from kvstudy.hosts.remote import RemoteHost, give_up
from kvstudy.hosts.ship import manifest
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.base_station import BaseStation
from kvstudy.measure.crew import Crew, Member
from kvstudy.measure.fill import Fills
from kvstudy.measure.station import Station
from kvstudy.plan.comparison import Comparison
from kvstudy.plan.run_plan import Plan, PlannedRun
from kvstudy.project import jfr_converter_jar, loadgen_binary, profiler_library, workloads_root
from kvstudy.subject.builds import Build
from kvstudy.subject.protocol import LOOPBACK, Subject

LOADGEN = "loadgen"
GOES_ON = "what is sealed is kept: the same command with --resume goes on when that host is there again"


def over_a_network(plan: Plan, generators: int) -> Plan:
    """The same runs, as runs of so many generator hosts. ExperimentError for what cannot be one."""
    for run in plan.runs:
        if run.configuration.generator != LOADGEN:
            raise ExperimentError(
                f"{run.configuration.generator} cannot be used with --hosts: only loadgen begins at a "
                "given time",
                "generator: loadgen",
            )
        if run.configuration.connections < generators:
            raise ExperimentError(
                f"too few connections for {generators} generators: "
                f"connections={run.configuration.connections}",
                "each generator needs one",
            )
    return Plan(plan.experiment, [_of_generators(run, generators) for run in plan.runs])


def _of_generators(run: PlannedRun, count: int) -> PlannedRun:
    """Threads are those of each generator, and each needs a connection of its own."""
    one = run.configuration
    threads = min(one.threads, one.connections // count)
    return replace(run, configuration=replace(one, generators=count, threads=threads))


def wanted_crews(file: HostsFile, plan: Plan, generators: int) -> list[tuple[str | None, tuple[str, ...]]]:
    """Names of the service's host, none where all subjects are addresses, and of the generators'."""
    if all(run.configuration.spec.url for run in plan.runs):
        wanted = [(None, file.generators(generators))]
    else:
        wanted = file.crews(generators)
    for url in dict.fromkeys(filter(None, (run.configuration.spec.url for run in plan.runs))):
        _check_means_one_machine(url, file, wanted)
    return wanted


def _check_means_one_machine(
    url: str, file: HostsFile, crews: Iterable[tuple[str | None, tuple[str, ...]]]
) -> None:
    """ExperimentError for an address by which each host means itself. Without a service's host who types asks
    it, too."""
    if not _is_loopback(urlsplit(url).hostname or ""):
        return
    for service, generators in crews:
        addresses = [file.hosts[name].address for name in (service, *generators) if name]
        machines = {LOOPBACK if _is_loopback(address) else address for address in addresses}
        if len(machines | ({LOOPBACK} if service is None else set())) > 1:
            raise ExperimentError(
                f"by this address each host means itself: url={url}",
                "write the one under which the generators reach it",
            )


def _is_loopback(address: str) -> bool:
    with suppress(ValueError):
        return ip_address(address).is_loopback
    return address == "localhost"


def own_scripts(plan: Plan, root: Path) -> list[Path]:
    """Scripts that are none of the project's workloads, with the Lua files beside and below them, which they
    may require. ExperimentError for one that lies elsewhere: a host has the tree of the project alone."""
    found: list[Path] = []
    for script in dict.fromkeys(run.configuration.script for run in plan.runs if run.configuration.script):
        if Path(script).is_absolute() or ".." in Path(script).parts:
            raise ExperimentError(
                f"script cannot be brought to other hosts: script={script}",
                "put it into the project, and write its path from the project's folder: script: my/own.lua",
            )
        folder = (root / script).parent
        found += sorted(folder.glob("*.lua") if folder == root else folder.rglob("*.lua"))
    return found


Builds = dict[str, tuple[Build, str]]


def station_there(here: Here, plan: Plan, builds: Builds, is_service: bool) -> Station:
    """On the host. ToolMissing says what it lacks."""
    return Station(here, *_programs(here, plan, builds, is_service))


def duet_station_there(
    comparison: Comparison, here: Here, plan: Plan, builds: Builds, is_service: bool
) -> BaseStation:
    # Here: hosts of runs need no pandas, which takes longer to load than all that they do need.
    from kvstudy.measure.duet_station import DuetStation

    return DuetStation(here, *_programs(here, plan, builds, is_service), comparison)


def _programs(here: Here, plan: Plan, builds: Builds, is_service: bool) -> tuple[Artifacts, Fills]:
    loadgen = loadgen_binary(here.root)

    def built(revision: str, root: Path) -> Build:
        one, path = builds[revision]
        return replace(one, jar=root / path)

    artifacts = (
        Artifacts.needed_by(plan, here.root, built)
        if is_service
        else Artifacts(here.root, loadgen, {LOADGEN: str(loadgen)}, {}, {})
    )
    fills = Fills(here.work, workloads_root(here.root), artifacts, here.registered, lambda _doing: None)
    return artifacts, fills


@contextmanager
def crews_on(
    file: HostsFile,
    work: Path,
    registered: Callable[[int, bool], None],
    plan: Plan,
    artifacts: Artifacts,
    root: Path,
    generators: int,
    local: Member,
    make: Callable = station_there,
    at_most: int | None = None,
) -> Iterator[list[Crew]]:
    """``local``: takes the service's place where all subjects are addresses: nothing of the study runs on
    their hosts. ``make``: the stations; ``at_most``: so many crews."""
    wanted = wanted_crews(file, plan, generators)[:at_most]
    needs = Needs(plan, artifacts, root, make)
    names = dict.fromkeys(name for service, others in wanted for name in (service, *others) if name)
    # Nothing is started on the others: one of them may be that of a service at an address.
    with Hosts(file.only(names), work, registered) as hosts:
        services = {service for service, _ in wanted}
        with ThreadPoolExecutor(16) as threads:
            try:
                members = dict(
                    threads.map(
                        lambda name: (name, needs.member(hosts.hosts[name], name in services)), sorted(names)
                    )
                )
            except BaseException:  # else what others are still brought would be waited for
                give_up(hosts.hosts.values(), "the measurement is over")
                raise
        yield [
            Crew(members[service] if service else local, tuple(members[name] for name in others))
            for service, others in wanted
        ]


class Needs:
    """What hosts have to be given. ExperimentError for what they cannot be."""

    def __init__(self, plan: Plan, artifacts: Artifacts, root: Path, make: Callable):
        self._plan, self._artifacts, self._root, self._make = plan, artifacts, root, make
        self._scripts = own_scripts(plan, root)
        # Once: a host that was lost is brought what the others have, whatever is saved or built meanwhile.
        self._brought = {role: manifest(root, self._files(is_service=role)) for role in (True, False)}

    def member(self, host: RemoteHost, is_service: bool) -> Member:
        return _RemoteMember(host, lambda: self._station(host, is_service))

    def _station(self, host: RemoteHost, is_service: bool) -> Station:
        host.renew()
        try:
            host.ship(self._root, self._brought[is_service])
            builds = {
                name: (one, str(one.jar.relative_to(self._root)))
                for name, one in self._artifacts.builds.items()
            }
            return host.stationed(self._make, self._plan, builds, is_service)
        except HostLost:
            raise
        except KvstudyError as error:
            raise host.named(error) from None

    def _files(self, is_service: bool) -> list[Path]:
        files = [path for path in sorted((self._root / "experiments").rglob("*")) if path.is_file()]
        files += [*self._scripts, loadgen_binary(self._root)]
        if is_service:
            files += [path for one in self._artifacts.subjects.values() for path in one.products]
            files += [path for one in self._artifacts.subjects.values() for path in self._own_of(one)]
            files += [one.jar for one in self._artifacts.builds.values()]
            files += [profiler_library(self._root), jfr_converter_jar(self._root)]
        return list(dict.fromkeys(path for path in files if path.is_file()))

    def _own_of(self, subject: Subject) -> list[Path]:
        """What a command names in the project: its jar, its configuration. All else has to be there."""
        return [path for path in subject.named if path.is_relative_to(self._root)]


class _RemoteMember(Member):
    """Its station is made anew when its host was lost."""

    def __init__(self, host: RemoteHost, made: Callable[[], Station]):
        self._made = made
        super().__init__(host, made())

    def ready(self) -> None:
        with suppress(HostLost):
            self.host.now_ns()
            return
        try:
            self.station = self._made()
        except KvstudyError as error:
            error.hint = error.hint or GOES_ON
            raise
