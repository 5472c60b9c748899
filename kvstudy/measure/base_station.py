"""What every station has on its host, whatever is measured there: what must be true before it begins, a
clock that other hosts compare theirs with, and what is dropped at the end.

Who measures (run.py, duet.py) says what is to be done; a station does it where it stands, in a folder and a
store of its host. ``artifacts`` and ``fills``: of this host.
"""

import shutil
import time
from contextlib import ExitStack
from pathlib import Path

from kvstudy.errors import RunFailed
from kvstudy.hosts.clock import Clock, ClockWatch, Course, Offset, offset_to
from kvstudy.hosts.host import WHERE_YOU_TYPE, Here
from kvstudy.measure import awake, limits, machine, quiet
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.fill import Fills, disk_needed
from kvstudy.measure.pinning import Pinning, pinning
from kvstudy.measure.preconditions import check_disk, check_port, full_disk
from kvstudy.plan.run_plan import Configuration


class BaseStation:
    def __init__(self, here: Here, artifacts: Artifacts, fills: Fills):
        self._here, self._artifacts, self._fills = here, artifacts, fills
        self._folder: Path | None = None
        self._store: Path | None = None
        self._until_end = ExitStack()
        self._clock: Clock | None = None
        self._watch: ClockWatch | None = None

    # ---- before anything is started --------------------------------------------------------------------

    def check_disk(self, configurations: list[Configuration], stores_bytes: int, *told: str) -> None:
        check_disk(self._here.work, disk_needed(configurations, self._fills, stores_bytes), *told)

    def full_disk(self) -> Path | None:
        """Of the run's."""
        return full_disk(*filter(None, (self._folder, self._store)))

    def check_port(self, port: int) -> None:
        check_port(port, self._here.address)

    def limit_notes(self, needs: limits.Needs) -> list[str]:
        """Of a service's host."""
        return list(limits.notes(needs, self._here.work))

    def check_open_files(self, connections: int) -> None:
        """Of a generator's host. A soft limit that is too low is raised for all that is started here."""
        limits.check_open_files(connections)

    def awake_note(self, wanted: awake.Wanted) -> str | None:
        """RunFailed where processors have to be kept awake, and cannot be."""
        return awake.note(wanted)

    def machine_facts(self) -> dict:
        return dict(machine.fixed_facts())

    def disk_facts(self) -> dict:
        """Of the disk that stores will lie on."""
        folder = self._here.stores
        return machine.disk_facts(next(one for one in (folder, *folder.parents) if one.exists()))

    def pinning(self, threads: int, wanted: str | None) -> Pinning:
        """Of a service and its generator, which are both here. RunFailed as ``pinning``."""
        return pinning(threads, wanted)

    def disturbed_now(self) -> str | None:
        return quiet.disturbed_now()

    # ---- a run -----------------------------------------------------------------------------------------

    def enter(self, folder: Path, run_id: str) -> dict:
        """Facts of the machine."""
        self._folder, self._store = folder, self._here.stores / run_id
        return self.machine_facts()

    def keep_awake(self, wanted: awake.Wanted) -> dict:
        """Until ``end``. Facts for machine.json."""
        return dict(self._until_end.enter_context(awake.kept_awake(wanted)))

    def end(self) -> None:
        """Drops what is not evidence. First the store: sealing needs space, and may fail for want of it."""
        self._until_end.close()
        self.close_clock()
        if self._watch:
            self._watch.close()
        self._watch = None
        if self._store is not None:
            shutil.rmtree(self._store, ignore_errors=True)

    # ---- clocks ----------------------------------------------------------------------------------------

    def open_clock(self) -> int:
        """Its port; other hosts compare theirs with it."""
        self.close_clock()
        self._clock = Clock(self._here.address)
        return self._clock.port

    def close_clock(self) -> None:
        if self._clock:
            self._clock.close()
        self._clock = None

    def clock_offset(self, address: str, port: int) -> Offset:
        try:
            return offset_to(address, port)
        except OSError as error:
            raise RunFailed(
                f"hosts cannot compare their clocks: {self._here.name or WHERE_YOU_TYPE} does not reach "
                f"{address}:{port}: "
                f"{(error.strerror or str(error)).lower()}"
            ) from error

    def watch_clock(self) -> int:
        """From now until ``end``; what ``clock_course`` is asked with."""
        self._watch = self._watch or ClockWatch()
        return self._watch.mark()

    def clock_course(self, since: int) -> Course:
        return self._watch.course(since)

    def now_s(self) -> float:
        return time.time()
