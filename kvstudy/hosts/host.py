"""Where parts of a run live: on this machine (local.py), or on another one (dask_host.py).

    with local_host(root) as host:                      or one of a cluster: cluster.py
        station = host.stationed(Station, plan)         an object that lives there: its methods run there
        station.launch()                                RunFailed as if it were here; HostLost when the host
                                                        is gone
        host.fetch(there, here)                         files of there, to here; nothing where it is one
                                                        folder

Who measures sees no more of a host than that. What lives there knows ``Here``: where its files lie, which
address it serves on, and whom to tell of the processes that it starts. One host is the ordinary case of many,
and needs no Dask.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")
WHERE_YOU_TYPE = "the machine where you type"


@dataclass(frozen=True)
class Here:
    """What lives on a host knows this of it. ``root``: the programs and workloads, laid out as in the
    project; ``work``: scratch for stores, fills and files of a run; ``address``: under which other hosts
    reach what serves here; ``registered``: called for each process at its start and its end, so that none
    outlives its run; ``messages``: what the measuring side sent while a method runs (``Host.tell``)."""

    root: Path
    work: Path
    registered: Callable[[int, bool], None]
    name: str = ""
    address: str = "127.0.0.1"
    cores: tuple[int, ...] | None = None
    messages: set[str] = field(default_factory=set)

    @property
    def stores(self) -> Path:
        return self.work / "stores"


class Host(Protocol):
    """``name``: as hosts.yaml has it, empty for this machine; ``is_remote``: files there are not files
    here."""

    name: str
    address: str
    is_remote: bool

    def stationed(self, make: Callable[..., T], *arguments: object) -> T:
        """``make(here, *arguments)`` on the host, once; what is given back is called here and works there."""

    def tell(self, word: str) -> None:
        """Adds to ``Here.messages``, also while a method runs there. Never fails; a lost host is skipped."""

    def run_folder(self, here: Path) -> Path:
        """Where the files of a run are written there, whose folder is ``here`` on this machine."""

    def fetch(self, there: Path, here: Path, only: Collection[str] | None = None) -> None:
        """The files of a folder there, or those of these names, into one here. HostLost when the host is
        gone."""

    def drop(self, there: Path) -> None:
        """A folder of a run."""

    def settle(self) -> None:
        """Returns when nothing goes on there any more that was asked for; by force after a while. Never
        fails."""

    def abandon(self, why: str) -> None:
        """All that runs there is ended, and whoever waits for it gets HostLost."""

    def give_up(self, why: str) -> None:
        """As ``abandon``, and for good: nothing begins there any more. By any thread."""

    def send(self, here: Path, there: Path) -> None:
        """One file."""

    def end(self) -> None:
        """Ends all that runs there, and drops its scratch. Safe to call again, and of a host that is gone."""
