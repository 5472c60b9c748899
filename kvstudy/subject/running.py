"""An address where something serves HTTP already: it is neither started nor stopped, and only its owner knows
what it is."""

import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from signal import Signals
from urllib.parse import urlsplit

import psutil

from kvstudy.errors import FormatError, KvstudyError, RunFailed
from kvstudy.hosts.process import command_text
from kvstudy.plan.subject import SUBJECT, SubjectSpec
from kvstudy.subject.evidence import jvm
from kvstudy.subject.evidence.process import (
    cpu_is_quiet,
    family,
    is_jvm,
    is_own,
    listeners,
    only_passes_on,
)
from kvstudy.subject.evidence.profiler import AttachedProfiler
from kvstudy.subject.evidence.prometheus import Scraper
from kvstudy.subject.jdk import Jdk
from kvstudy.subject.protocol import Evidence, Place

CONNECT_TIMEOUT_S = 5.0


class Address:
    """``jdk``: for a subject that says ``jvm: true``, else None."""

    digest_name = SUBJECT
    digest = None
    keeps_data = True
    products: tuple[Path, ...] = ()
    watched: tuple[Path, ...] = ()  # of what runs elsewhere nobody knows
    named: tuple[Path, ...] = ()

    def __init__(self, spec: SubjectSpec, root: Path, jdk: Jdk | None):
        self.spec, self.root, self.jdk = spec, root, jdk
        self.name = spec.label
        self.scratch = (jvm.RECORDING,) if jdk else ()
        self.url = spec.url.rstrip("/")

    def check(self, profiled: bool) -> None:
        ip, why = self._reached()
        if why:
            raise KvstudyError(why, "start it first, or let kvstudy start it: subject: {command: […]}")
        held = self.holders(ip)
        if self.jdk and held and not any(map(is_jvm, held)):
            raise KvstudyError(
                f"subject says jvm: true, but what answers at {self.url} is no JVM: pid={held[0]}",
                "leave jvm out",
            )
        if profiled and self.jdk:
            jvm.check_profiler(self.root)

    @property
    def versions(self) -> dict[str, str]:
        return {}

    def launch(self, place: Place) -> "LiveAddress":
        place.file("service.cmd").write_text(command_text([self.url], {}), encoding="utf-8")
        ip, why = self._reached()
        if why:
            raise RunFailed(f"service is not there: {why}")
        live = LiveAddress(self, ip, place)
        try:
            live.begin()
        except BaseException:
            live.stop()
            raise
        return live

    def holders(self, ip: str) -> tuple[int, ...]:
        """Of its port, where that is of this machine; without those that only hand on to another process."""
        held = listeners(self.port, ip) if is_own(ip) else ()
        return tuple(pid for pid in held if not only_passes_on(pid))

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 80

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    def _reached(self) -> tuple[str, str | None]:
        """The address of the host that answered; why none did."""
        try:
            with socket.create_connection((self.host, self.port), timeout=CONNECT_TIMEOUT_S) as connection:
                return connection.getpeername()[0], None
        except (OSError, UnicodeError) as error:  # the latter of a name that no host can have
            why = getattr(error, "strerror", None) or str(error)
            return "", f"nothing answers at {self.url}: {why.lower()}"


class LiveAddress:
    """Of one on this machine the processes that hold the port are looked for, so that their CPU is known and
    not taken for a stranger's. Those that only hand on to another one (a container's) are not the service,
    whose CPU is then not known.
    """

    def __init__(self, address: Address, ip: str, place: Place):
        self._address = address
        self._holders = address.holders(ip)
        self._jvm_pid = next(filter(is_jvm, self._holders), None) if address.jdk else None
        self._recording: jvm.Attached | None = None
        self._scraper: Scraper | None = None
        self._place = place
        self.url = address.url

    def begin(self) -> None:
        """What its JVM will not tell, since it is in a container or another user's, is not recorded."""
        if path := self._address.spec.metrics:
            self._scraper = Scraper(self.url + path)
            self._scraper.begin()
        if self._jvm_pid and not self._place.filling:
            recording = jvm.Attached(self._address.jdk, self._jvm_pid, self._place.file(jvm.RECORDING))
            recording.forget()
            self._recording = recording  # before it begins: who is interrupted there ends it
            try:
                recording.begin()
            except RunFailed:
                self._recording = None

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(pid for holder in self._holders for pid in family(holder)))

    @property
    def profiler(self) -> AttachedProfiler | None:
        return jvm.profiler(self._address.jdk, self._address.root, self._jvm_pid) if self._jvm_pid else None

    def check_alive(self, doing: str) -> None:
        if self._holders and not any(map(psutil.pid_exists, self._holders)):
            raise RunFailed(
                f"service died during {doing}: its process {self._holders[0]} at {self.url} is gone"
            )

    def send(self, number: Signals) -> None:
        """To nobody: it is not ours to stop."""

    def come_to_rest(self, timeout_s: float = 60.0) -> bool:
        return cpu_is_quiet(self.pids, self.check_alive, timeout_s)

    def count_records(self) -> int | None:
        return None

    def last_words(self) -> str:
        return "its log is not known"

    def stop(self, timeout_s: float | None = None) -> str | None:
        if self._scraper:
            self._scraper.end()
        if self._recording and not self._recording.is_written and psutil.pid_exists(self._recording.pid):
            self._recording.end()
            if not self._recording.is_written:
                self._recording.forget()
        return None

    def evidence(self) -> Evidence:
        found = Evidence()
        if self._recording:
            with suppress(FormatError):  # it was written where we cannot read it
                found = self._recording.evidence()
        return replace(found, counters=self._scraper.counters) if self._scraper else found
