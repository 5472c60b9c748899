"""The two sides of a launch: each with its own data, port and files, alive at the same time."""

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import psutil

from kvstudy.analyse.evidence import log_errors
from kvstudy.errors import KvstudyError, RunFailed
from kvstudy.hosts.memory_group import forget_pages
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.fill import Fills
from kvstudy.measure.preconditions import check_port
from kvstudy.plan.comparison import SIDES, Comparison, Launch
from kvstudy.plan.run_plan import Configuration, fill_identity
from kvstudy.record.duet import side_file
from kvstudy.service_failure import is_for_want_of_room, was_never_started
from kvstudy.subject.evidence.jvm import memory_needed_bytes
from kvstudy.subject.protocol import LOOPBACK, LiveSubject, Place
from kvstudy.units import format_bytes

LOG_ERRORS_KEPT = 20
_PEAK = re.compile(rb"^VmHWM:\s*(\d+) kB", re.MULTILINE)


@dataclass
class End:
    """How a side ended, for run.json's ``ends``. None: not known."""

    died: bool | None = False
    fault: str | None = ""  # why it did not start, come to rest or stop in order
    log_errors: list[str] | None = None
    rss_max_bytes: int | None = None
    store_bytes_before: int | None = None
    store_bytes_after: int | None = None
    data_check: dict | None = None


@dataclass
class LiveSide:
    """A side that is ready. ``file`` gives the path of a file of this side in the run folder; ``is_gone``: it
    ended while it was profiled."""

    name: str
    configuration: Configuration
    live: LiveSubject
    store: Path
    file: Callable[[str], Path]
    end: End = field(default_factory=End)
    is_gone: bool = False
    _logged_before: list[str] | None = None
    _is_excused: bool = False
    _fault: str | None = None
    _stopped: bool = False

    def check_alive(self, doing: str) -> None:
        try:
            self.live.check_alive(doing)
        except RunFailed as error:
            self.end.died = True
            raise RunFailed(f"side {self.name}: {error.message}") from error

    def begin_profile(self) -> None:
        self._logged_before = self._log_errors()

    def excuse_profile(self) -> None:
        """What was measured before counts: neither its end nor what it has logged since is its fault."""
        try:
            self.live.check_alive("profile")
        except RunFailed:
            self.is_gone = True
        self._is_excused, self.end.died = True, False

    def stop(self) -> str | None:
        """Why it did not end in order, or None; safe to call again. Notes what is known of it then."""
        if not self._stopped:
            self.end.rss_max_bytes = _rss_max_bytes(self.live.pids)
            fault = self.live.stop()
            fault = None if self.is_gone else fault
            self._fault = f"side {self.name}: {fault}" if fault else None
            self.end.fault = self.end.fault or fault or ""
            self.end.store_bytes_after = size_of(self.store)
            self.end.log_errors = self._logged_before if self._is_excused else self._log_errors()
            self._stopped = True
        return self._fault

    def _log_errors(self) -> list[str] | None:
        """None where it has no log."""
        log = self.file("service.log")
        if not log.is_file():
            return None
        return list(log_errors(log.read_text(encoding="utf-8", errors="replace")))[:LOG_ERRORS_KEPT]


def launch_sides(
    comparison: Comparison,
    launch: Launch,
    artifacts: Artifacts,
    fills: Fills,
    stores: Path,
    folder: Path,
    cores: list[int] | None,
    registered: Callable[[int, bool], None],
    live: dict[str, LiveSide],
    ends: dict[str, End],
    address: str = LOOPBACK,
) -> None:
    """Puts both into ``live``, each as soon as it is ready, so that who called can stop what runs whatever
    happens then; and into ``ends`` how each ended, of one that did not become ready why.

    Whatever comes first here comes first in a drawn order, and no path or port belongs to a side: what were
    the same in all launches would look like a difference between the sides. Under the other draw the same
    is done to the other side."""
    store = {side: stores / f"{place}" for place, side in enumerate(launch.places, 1)}
    are_limited = any(filled(comparison, side).memory_bytes is not None for side in SIDES)
    for side in launch.places:
        fills.restore(store_of(comparison, side), store[side])
        if are_limited:  # whoever filled it; and both, else the side without a group would begin warm
            forget_pages(store[side])
    ports = dict(zip(launch.ports, chosen_ports(comparison.experiment.port, address), strict=True))
    for side in launch.starts:
        name, one = comparison.names[SIDES.index(side)], filled(comparison, side)
        place = Place(
            store[side],
            folder,
            ports[side],
            cores,
            registered,
            bool(comparison.comparing.profile),
            named=lambda file, side=side: side_file(file, side),
            address=address,
        )
        end = ends[side] = End(store_bytes_before=size_of(store[side]))
        with name_side(name):
            with record_fault(end):
                subject = artifacts.subject(one).launch(place)
            live[side] = LiveSide(name, one, subject, store[side], place.file, end)
    for side in launch.places:
        one = live[side]
        with name_side(one.name), record_fault(one.end):
            if one.configuration.fill and not one.configuration.spec.is_restored:
                fills.write(one.configuration, one.live, one.file("fill.log"))
            if one.configuration.fill and not one.live.come_to_rest():
                raise RunFailed("store did not come to rest: flush or compaction still runs after 60 s")


@contextmanager
def record_fault(end: End) -> Iterator[None]:
    """What fails within is that side's doing: launches that only the slow one of two survives would flatter
    it. Not what kept it from being started at all, as a port that another program took, nor a full disk."""
    try:
        yield
    except RunFailed as error:
        if not (was_never_started(error.message) or is_for_want_of_room(error.message)):
            end.fault = error.message
        raise


@contextmanager
def name_side(name: str) -> Iterator[None]:
    """Puts the side's name before what failed."""
    try:
        yield
    except RunFailed as error:
        raise RunFailed(f"side {name}: {error.message}", error.hint) from error


def filled(comparison: Comparison, side: str) -> Configuration:
    """The side's configuration with the fill of a load that has one: all loads get the same store."""
    loads = [load.of(side) for load in comparison.loads]
    return next((one for one in loads if one.fill), loads[0])


def store_of(comparison: Comparison, side: str) -> Configuration:
    """By whom the side's store is filled. Two of our service, or of one command, get copies of one store,
    filled by side a, where their options lay the same on disk: how two fills happened to flush and compact
    would otherwise be a difference that stays in all launches."""
    own, first = filled(comparison, side), filled(comparison, SIDES[0])
    are_restored = all(one.fill and one.spec.is_restored for one in (own, first))
    if comparison.comparing.own_fills or not are_restored:
        return own
    if not (own.spec.is_ours and first.spec.is_ours) and _nameless(own) != _nameless(first):
        return own
    return (
        first
        if fill_identity(replace(own, subject=None)) == fill_identity(replace(first, subject=None))
        else own
    )


def _nameless(one: Configuration) -> dict:
    """Its subject, whatever it is called."""
    return (one.spec.facts or {}) | {"name": None}


def chosen_ports(asked: int, address: str = LOOPBACK) -> tuple[int, int]:
    """Two free ones; of a port that the experiment names, that one and the next. InputError when one is
    taken."""
    if asked:
        for port in (asked, asked + 1):
            check_port(port, address, f": two sides need ports {asked} and {asked + 1}")
        return asked, asked + 1
    with socket.create_server((address, 0)) as one, socket.create_server((address, 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


def check_memory(comparison: Comparison) -> None:
    """KvstudyError when both sides together need more than there is: one would push the other's pages out,
    and both the generator's."""
    needed = sum(
        memory_needed_bytes(one.jvm)
        for one in (comparison.loads[0].of(side) for side in SIDES)
        if one.spec.has_our_jvm
    )
    available = psutil.virtual_memory().available
    if needed > available:
        raise KvstudyError(
            f"not enough memory for both sides together: needed={format_bytes(needed)} "
            f"available={format_bytes(available)}",
            "choose a smaller heap: jvm: {heap: 128m}",
        )


def size_of(folder: Path) -> int:
    """Bytes of the files below it; files that go meanwhile count nothing."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total += os.stat(os.path.join(place, name)).st_size
    return total


def _rss_max_bytes(pids: tuple[int, ...]) -> int | None:
    """Of all processes of a side, each at its own peak; None where it is not known."""
    peaks = []
    for pid in pids:
        try:
            found = _PEAK.search(Path(f"/proc/{pid}/status").read_bytes())
        except OSError:
            found = None
        peaks += [int(found[1]) * 1024] if found else []
    return sum(peaks) if peaks else None


def side_facts(
    configuration: Configuration, name: str, digest: str | None, revision: tuple[str, bool] | None
) -> Mapping:
    """A side of run.json's ``sides``: its name, all that was asked of it, and of which program. ``revision``:
    of one that was built, with its dirty flag."""
    facts = asdict(configuration)
    facts.pop("question")
    commit, dirty = revision or (None, None)
    return {"name": name, **facts, "digest": digest, "revision": commit, "dirty": dirty}
