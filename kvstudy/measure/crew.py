"""Which hosts a run takes: one for the service, one or more for generators; on one machine it is the same."""

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from kvstudy.errors import HostLost, KvstudyError, in_words
from kvstudy.hosts.host import Host
from kvstudy.hosts.local import LocalHost
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.awake import Wanted
from kvstudy.measure.fill import Fills
from kvstudy.measure.limits import Needs
from kvstudy.measure.pinning import Pinning
from kvstudy.measure.preconditions import full_disk
from kvstudy.measure.station import Station
from kvstudy.plan.comparison import Launch
from kvstudy.plan.run_plan import Configuration, PlannedRun
from kvstudy.service_failure import NO_ROOM, is_for_want_of_room

SHARED = "service and generator share it: another host with the role generator would load it from outside"


class Member:
    """A host with its station, and of the run that goes on the folder there."""

    def __init__(self, host: Host, station: Station):
        self.host, self.station = host, station
        self._folder: Path | None = None
        self._brought: set[str] = set()

    def ready(self) -> None:
        """Before each run. KvstudyError when a host that was lost is not there again."""

    def begin(self, planned: PlannedRun, folder: Path, run_id: str) -> dict:
        """Facts of the machine. ``folder``: of the run, on this machine."""
        self._folder, self._brought = self.host.run_folder(folder), set()
        return self.station.begin(planned, self._folder, run_id)

    def fetch(
        self, here: Path, named: Callable[[str], str] = str, only: Collection[str] | None = None
    ) -> None:
        """Its files that were not brought before. ``named``: what they are called here; ``only``: these,
        where others are still written."""
        if not self.host.is_remote:
            return
        with tempfile.TemporaryDirectory(dir=here) as aside:
            self.host.fetch(self._folder, Path(aside), only)
            for path in sorted(Path(aside).iterdir()):
                target = here / named(path.name)
                if path.name not in self._brought and not target.exists():
                    shutil.move(path, target)
                self._brought.add(path.name)

    def send(self, here: Path) -> None:
        """A file of the run to where its others are there."""
        self.host.send(here, self._folder / here.name)

    def end(self, here: Path, named: Callable[[str], str] = str) -> str | None:
        """Of the run: what is left of it there comes here, or goes. Why not all of it did: of a host that is
        lost nothing comes."""
        self.host.settle()
        try:
            if self._folder is not None:
                self.station.end()
                self.fetch(here, named)
                self.host.drop(self._folder)
        except KvstudyError as error:
            return error.message
        finally:
            self._folder = None
        return None


@dataclass(frozen=True)
class Crew:
    service: Member
    generators: tuple[Member, ...]

    @property
    def is_one_host(self) -> bool:
        """Then the load and the service are watched together."""
        return self.generators == (self.service,)

    @property
    def is_here(self) -> bool:
        """On this machine alone: its processes are children of this one."""
        return self.is_one_host and not self.service.host.is_remote

    @property
    def sees_service(self) -> bool:
        """Not where it runs at an address and other hosts load it: then nothing is known of its machine."""
        return self.is_one_host or self.service.host.is_remote

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(dict.fromkeys((self.service, *self.generators)))

    def ready(self) -> None:
        """Before each run. KvstudyError when a host that was lost is not there again."""
        for member in self.members:
            member.ready()

    def begin(self, planned: PlannedRun | Launch, folder: Path, run_id: str, keep_awake: Wanted) -> dict:
        """Of a run, on all hosts. What machine.json says: facts of the service's machine, where they are
        known, and over hosts of those of all."""
        facts = {
            member: member.begin(planned, folder, run_id) | member.station.keep_awake(keep_awake)
            for member in self.members
        }
        of_service = facts[self.service] if self.sees_service else {}
        of_hosts = {member.host.name: facts[member] for member in self.members if member.host.is_remote}
        return of_service | ({} if self.is_here else {"hosts": of_hosts})

    def facts_before(self) -> dict:
        """Of the service's machine, as ``begin``."""
        return self.service.station.facts_before() if self.sees_service else {}

    @contextmanager
    def as_one(self) -> Iterator[None]:
        """While it lasts, HostLost comes as soon as any of the hosts is lost, whichever is waited for."""
        away = [member.host for member in self.members if member.host.is_remote]
        with ExitStack() as until_end:
            for host in away:
                until_end.enter_context(host.together_with(one for one in away if one is not host))
            yield

    def pinning(self, threads: int, wanted: str | None, apart: str) -> Pinning:
        """``threads``: of the generator; ``wanted``: what the experiment says of ``cores``. Where the
        generator has a host of its own nothing is pinned: ``apart``."""
        if not self.is_one_host:
            return Pinning(None, None, apart)
        return self.service.station.pinning(threads, wanted)

    def disturbed_now(self) -> str | None:
        """What takes the CPU of a host of the run now, as its name and the reason; None when all are quiet.
        Of a host that is lost, or has nothing of the study on it, nothing is asked."""
        for one in self.members:
            if one.host.is_remote or self.is_one_host:
                with suppress(HostLost):
                    if found := one.station.disturbed_now():
                        return f"host {one.host.name}: {found}" if one.host.name else found
        return None

    def check(
        self,
        port: int,
        keep_awake: Wanted,
        cores: str | None,
        needs: Needs,
        to_come: list[Configuration],
        stores_bytes: int,
        *told: str,
    ) -> list[str]:
        """Of hosts, before anything is started there: KvstudyError with a host's name for stores without
        space, a port that is taken, memory groups, open files or cores that cannot be had, or processors
        that must not sleep and do; notes of what may be otherwise. ``to_come``: whose fills have to be
        there; ``stores_bytes``: of the stores beside; ``told``: of the disk, what to do and what needs it."""
        notes: list[tuple[str, str]] = []
        if self.service.host.is_remote:
            self.service.station.check_disk(to_come, stores_bytes, *told)
            self.service.station.check_port(port)
            notes += [(self.service.host.name, one) for one in self.service.station.limit_notes(needs)]
        away = [one for one in self.members if one.host.is_remote]
        for one in away:
            if one in self.generators:
                one.station.check_open_files(-(-needs.connections // len(self.generators)))
            notes += [(one.host.name, note)] if (note := one.station.awake_note(keep_awake)) else []
        self.pinning(1, cores, "")
        if self.is_one_host and away:
            notes.append((self.service.host.name, SHARED))
        return [f"host {name}: {note}" for name, note in notes]

    def reason(self, error: KvstudyError | OSError, here: Path) -> str:
        """Why the run failed, behind the disk that has no room left: for want of that it may have. Asked
        before anything is dropped. ``here``: the run's folder."""
        message = in_words(error) if isinstance(error, OSError) else error.message
        names_no_place = message.lower() == NO_ROOM
        if is_for_want_of_room(message) and not names_no_place:
            return message
        if isinstance(error, HostLost):  # the others are still at work, and answer when they are done
            return message
        found = {"": full_disk(here)}
        for one in self.members:
            with suppress(KvstudyError):
                found[one.host.name] = one.station.full_disk()
        for host, place in found.items():
            if place:
                words = [f"host {host}"] if host else []
                words += [NO_ROOM, str(place)] + ([] if names_no_place else [message])
                return ": ".join(words)
        return message

    def end(self, here: Path) -> str | None:
        """Of the run, on all hosts; why not all of its files are here."""
        said = [member.end(here, partial(self.named, member)) for member in self.members]
        return next(filter(None, said), None)

    def named(self, member: Member, file: str) -> str:
        """What a file of a member is called here: generators must not take each other's place, nor their
        seconds the service's."""
        if self.is_one_host or member not in self.generators:
            return file
        if len(self.generators) == 1 and file != "process.csv":
            return file
        return part_file_name(file, 1 + self.generators.index(member))

    @property
    def names(self) -> str:
        """For people: ``a ← b c``, ``a`` where the service's host loads it too; empty for this machine."""
        if self.is_here:
            return ""
        return crew_name(self.service.host.name, [one.host.name for one in self.generators])

    @cached_property
    def machines(self) -> dict[str, dict]:
        """Facts of the machine of each host of the run, by name, as they were when that was first asked."""
        return {
            member.host.name: member.station.machine_facts()
            for member in self.members
            if member.host.is_remote
        }


def crew_name(service: str | None, generators: Iterable[str]) -> str:
    """``service``: none where it runs at an address."""
    generators = list(generators)
    if generators == [service]:
        return service
    return f"{service or ''} ← {' '.join(generators)}"


def part_file_name(name: str, number: int) -> str:
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{number}{dot}{suffix}"


def local_member(host: LocalHost, artifacts: Artifacts, fills: Fills) -> Member:
    return Member(host, host.stationed(Station, artifacts, fills))


def local_crew(host: LocalHost, artifacts: Artifacts, fills: Fills) -> Crew:
    """Everything on this machine."""
    member = local_member(host, artifacts, fills)
    return Crew(member, (member,))
