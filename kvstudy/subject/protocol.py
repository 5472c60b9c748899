"""What measuring asks of a subject, whatever it is: our service, any command, or an address where something
runs already.

    subject = subject_of(configuration, …)            what is to be measured (catalogue.py); starts nothing
    live = subject.launch(Place(store, folder))       it is ready and answers at live.url; RunFailed says why
                                                      not, in one line
    live.come_to_rest()                               nothing is left to flush, compact or compile
    …
    fault = live.stop()                               None when it ended in order; everything that it started
                                                      has ended
    evidence = live.evidence()                        after its end: what it told of itself

Several may be alive at once: each has a ``Place`` of its own, with its own data directory, port and names of
files in the run folder. What a subject cannot give (a process number, a recording, counters, a count of its
records) is None or empty, and is then not recorded.

    Subject  ├ kv_service.py   the service of this tree or of another revision, and the empty server
             ├ command.py      any command that serves HTTP
             └ running.py      an address: something else started it, and will stop it
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import Protocol

from kvstudy.subject.evidence.profiler import AttachedProfiler

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Place:
    """Where one launched subject lives.

    ``store``: its data directory, which is there: empty, or restored. ``folder``: of the run; ``named`` makes
    of the name of a file the one that this subject's has in it (``service.log`` → ``a.service.log``).
    ``port``: 0 takes a free one. ``cores``: those it may use; None: all. ``registered`` is called for
    each process at its start and its end (hosts/session.py). ``profiled``: a profiler will be attached.
    ``filling``: nothing is measured of it, it only has its store filled, and need give no evidence.
    ``address``: the one that it serves on.
    """

    store: Path
    folder: Path
    port: int = 0
    cores: list[int] | None = None
    registered: Callable[[int, bool], None] | None = None
    profiled: bool = False
    filling: bool = False
    named: Callable[[str], str] = str
    address: str = LOOPBACK

    def file(self, name: str) -> Path:
        return self.folder / self.named(name)


@dataclass(frozen=True)
class Evidence:
    """What a subject told of itself while it lived. ``events``: ``{"gc": […], "safepoints": […], "store":
    […]}`` for events.json, None: not recorded. ``counters``: UTC → its counters by name, for store.csv;
    empty: not recorded. ``memory_group``: facts of the one that it had (hosts/memory_group.py)."""

    events: dict[str, list[dict]] | None = None
    counters: Mapping[str, Mapping[str, float]] | None = None
    memory_group: dict | None = None


class LiveSubject(Protocol):
    """A subject that is ready. Not to be shared by threads, but for ``check_alive``."""

    url: str  # without a trailing slash

    @property
    def pids(self) -> tuple[int, ...]:
        """All of its processes, the one that was started first; empty where they are not known."""

    @property
    def profiler(self) -> AttachedProfiler | None:
        """None where nothing can be attached."""

    def check_alive(self, doing: str) -> None:
        """RunFailed when it has ended by itself."""

    def send(self, number: Signals) -> None:
        """SIGSTOP, SIGCONT: to all of its processes."""

    def come_to_rest(self, timeout_s: float = 60.0) -> bool:
        """True once nothing of what was asked of it is still being worked off; False at the end of the
        time."""

    def count_records(self) -> int | None:
        """How many records it holds; None where it cannot be asked."""

    def last_words(self) -> str:
        """The last line of its log that says something."""

    def stop(self, timeout_s: float | None = None) -> str | None:
        """Ends it and all that it started, by force at the end of the time (None: its own). Why that was not
        in order, or None. Safe to call again."""

    def evidence(self) -> Evidence:
        """After ``stop``. FormatError when what it wrote cannot be read."""


class Subject(Protocol):
    """What is to be measured. ``keeps_data``: what is written to it can be read back; ``scratch``: files of
    its place in the run folder that are not kept (they have become evidence); ``products``: what it starts of
    this tree's build, to be no older than its sources; ``watched``: files that it is made of, to be the
    same from the first run to the last; ``named``: files that somebody else's command names, its own
    among them; ``digest_name``: under which a run notes the digest."""

    name: str
    digest_name: str
    keeps_data: bool
    scratch: tuple[str, ...]
    products: tuple[Path, ...]
    watched: Sequence[Path]
    named: Sequence[Path]

    def check(self, profiled: bool) -> None:
        """KvstudyError, before anything is started: what is not there, and the command that makes it."""

    @property
    def digest(self) -> str | None:
        """Of the programs that are started, so that a repeat is told from a run of another build; None:
        nobody knows."""

    @property
    def versions(self) -> dict[str, str]:
        """For ``tool_versions`` of run.json."""

    def launch(self, place: Place) -> LiveSubject:
        """Starts it and waits until it is ready. RunFailed in one line, and nothing left running, when it
        does not become so."""
