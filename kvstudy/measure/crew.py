"""Which hosts a run takes: one for the service, one or more for generators; on one machine it is the same."""

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kvstudy.errors import HostLost
from kvstudy.hosts.host import Host
from kvstudy.hosts.local import LocalHost
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.fill import Fills
from kvstudy.measure.station import Station
from kvstudy.plan.run_plan import PlannedRun


class Member:
    """A host with its station, and of the run that goes on the folder there."""

    def __init__(self, host: Host, station: Station):
        self.host, self.station = host, station
        self._folder: Path | None = None

    def ready(self) -> None:
        """Before each run. KvstudyError when a host that was lost is not there again."""

    def begin(self, planned: PlannedRun, folder: Path, run_id: str) -> dict:
        """Facts of the machine. ``folder``: of the run, on this machine."""
        self._folder = self.host.run_folder(folder)
        return self.station.begin(planned, self._folder, run_id)

    def fetch(self, here: Path) -> None:
        """Its files that are not here yet."""
        if not self.host.is_remote:
            return
        with tempfile.TemporaryDirectory(dir=here) as aside:
            self.host.fetch(self._folder, Path(aside))
            for path in sorted(Path(aside).iterdir()):
                if not (here / path.name).exists():
                    shutil.move(path, here / path.name)

    def send(self, here: Path) -> None:
        """A file of the run to where its others are there."""
        self.host.send(here, self._folder / here.name)

    def end(self, here: Path) -> None:
        """Of the run: what is left of it there comes here, or goes. Also of a host that is lost."""
        self.host.settle()
        with suppress(HostLost):
            if self._folder is not None:
                self.station.end()
                self.fetch(here)
                self.host.drop(self._folder)
        self._folder = None


@dataclass(frozen=True)
class Crew:
    service: Member
    generators: tuple[Member, ...]

    @property
    def is_one_host(self) -> bool:
        """Then the load and the service are attended together."""
        return self.generators == (self.service,)

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(dict.fromkeys((self.service, *self.generators)))

    def ready(self) -> None:
        """Before each run. KvstudyError when a host that was lost is not there again."""
        for member in self.members:
            member.ready()

    @property
    def names(self) -> str:
        """For people: ``a ← b c``; empty for this machine alone."""
        if self.is_one_host:
            return self.service.host.name
        return f"{self.service.host.name} ← {' '.join(one.host.name for one in self.generators)}"


def local_member(host: LocalHost, artifacts: Artifacts, fills: Fills) -> Member:
    return Member(host, host.stationed(Station, artifacts, fills))


def local_crew(host: LocalHost, artifacts: Artifacts, fills: Fills) -> Crew:
    """Everything on this machine."""
    member = local_member(host, artifacts, fills)
    return Crew(member, (member,))
