"""The service as benchmarks have it that no duet can be: started, filled and loaded by kvstudy's own pieces.

    with Bench("kv-redis") as bench:
        service = bench.service("service", {"wal": "interval"}, heap="128m")
        bench.fill(service, records=10_000)
        bench.loaded(service, "random_get", 10_000, connections=16, seconds=5)["counts"]["measured"]

At the end of the block all that was started is stopped, and the bench's folder goes.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from kvstudy.errors import KvstudyError, RunFailed
from kvstudy.hosts.interrupt import interruptible
from kvstudy.hosts.process import OwnedProcess
from kvstudy.hosts.session import Session
from kvstudy.measure.fill import RECORDS_AT_REST_PER_S, write_records
from kvstudy.measure.generator import check_exit, generator_commands
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.run_plan import configurations_of
from kvstudy.plan.subject import OUR_SERVICE
from kvstudy.project import loadgen_binary, project_root, service_jar, work_root, workloads_root
from kvstudy.subject.evidence import jvm
from kvstudy.subject.jdk import find_jdk
from kvstudy.subject.kv_service import KvService, LiveKvService
from kvstudy.subject.protocol import LiveSubject, Place, Subject

KEY_BYTES, VALUE_BYTES = 16, 100
REST_S = 60.0
UNEXPECTED_ANSWERS = 3  # loadgen's exit code


def options_of(text: str) -> dict[str, str]:
    """``"--wal always --handler workers"`` → ``{"wal": "always", "handler": "workers"}``."""
    words = text.split()
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}


def run(main: Callable[[], int | None]) -> None:
    """Ends the program with what it returns; in one line where something is missing, or failed."""
    try:
        sys.exit(main())
    except KvstudyError as error:
        sys.exit(str(error))


class Unrecorded(KvService):
    """Without the flight recording and the GC log that runs of the study carry: some benchmarks count
    memory."""

    def command(self, place: Place) -> list[str]:
        recording = jvm.flags(place)
        return [word for word in super().command(place) if word not in recording]


class Bench:
    """One measurement, which has this machine to itself: KvstudyError where another one goes on. ``folder``:
    of its own, for logs and stores."""

    def __init__(self, name: str):
        self.root = project_root()
        self._name = name
        self._until_end = ExitStack()

    def __enter__(self) -> "Bench":
        with ExitStack() as stack:
            stack.enter_context(interruptible())
            self._session = stack.enter_context(Session(work_root(self.root)))
            self.folder = Path(tempfile.mkdtemp(prefix=f"{self._name}-", dir=work_root(self.root)))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._until_end = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._until_end.close()

    def service(
        self,
        name: str,
        options: Mapping[str, object],
        heap: str = "128m",
        jar: Path | None = None,
        store: Path | None = None,
        filling: bool = False,
    ) -> LiveKvService:
        """Ready. ``options``: of the service, as an experiment names them; ``jar``: of another build, which
        says itself whether it has admin requests; ``store``: its directory, else a new one; ``filling``:
        nothing is measured of it, and it brings all of its records into tables before it rests."""
        if jar and not jar.is_file():
            raise KvstudyError(f"no such file: {jar}", "a jar of the service, as service/target has one")
        has_admin = None if jar else True
        own = jar or service_jar(self.root)
        program = Unrecorded(find_jdk(), own, options, [f"-Xmx{heap}"], self.root, has_admin)
        return self.launched(name, program, store, filling)

    def launched(
        self, name: str, subject: Subject, store: Path | None = None, filling: bool = False
    ) -> LiveSubject:
        """Ready; ``name`` begins the names of its files."""
        subject.check(profiled=False)
        store = store or self.folder / name
        store.mkdir(parents=True, exist_ok=True)
        place = Place(
            store,
            self.folder,
            registered=self._session.registered,
            filling=filling,
            named=lambda file: f"{name}.{file}",
        )
        live = subject.launch(place)
        self._until_end.callback(live.stop)
        return live

    def fill(self, service: LiveSubject, records: int) -> float:
        """Writes them, and returns when nothing is left to flush or compact: it would be measured with the
        requests. In how many seconds all were written."""
        began = time.monotonic()
        write_records(
            loadgen_binary(self.root),
            workloads_root(self.root),
            OUR_SERVICE,
            service,
            records,
            "fill",
            self.folder / "fill.log",
            self._session.registered,
            key_count=records,
            key_bytes=KEY_BYTES,
            value_bytes=VALUE_BYTES,
        )
        written_s = time.monotonic() - began
        if not service.come_to_rest(REST_S + records / RECORDS_AT_REST_PER_S):
            raise RunFailed("service did not come to rest after its fill")
        found = service.count_records()
        if found not in (None, records):
            raise RunFailed(f"fill lost records: filled={records} found={found}")
        return written_s

    def loaded(
        self,
        service: LiveSubject,
        workload: str,
        records: int,
        connections: int,
        seconds: float,
        warm_up: float = 1.0,
        rate: float | None = None,
        each_second: Callable[[], None] = lambda: None,
        **arguments: object,
    ) -> dict:
        """loadgen's result of one thread: at a constant rate, or in a closed loop when there is none;
        ``arguments``: further ones of the workload. RunFailed when an answer is not what was expected."""
        (one,) = configurations_of(
            Experiment.from_parameters(
                {
                    "name": self._name,
                    "question": "how fast?",
                    "expectation": "any number, 0 too",
                    "workload": {"script": workload, "key_count": records} | arguments,
                    "fill": records,
                    "connections": connections,
                    "threads": 1,
                    "rate": rate or "closed",
                    "duration": f"{warm_up + seconds:g}s",
                    "warm_up": f"{warm_up:g}s",
                    "repeats": 1,
                }
            )
        )
        files = {name: self.folder / f"load.{name}" for name in ("json", "hlog", "slowest")}
        program, workloads = str(loadgen_binary(self.root)), workloads_root(self.root)
        (command,) = generator_commands(program, one, service.url, workloads, 1, cores=None, **files)
        log = self.folder / "load.log"
        log.write_bytes(b"")
        generator = OwnedProcess(command.argv, stderr_path=log, registered=self._session.registered)
        try:
            while not generator.wait(1.0):
                service.check_alive(workload)
                each_second()
        finally:
            code = generator.stop(timeout_s=2)
        check_exit("loadgen", code, log)
        if code == UNEXPECTED_ANSWERS:
            raise RunFailed(f"unexpected answers: {workload}: {log.read_text().strip()[-300:]}")
        return json.loads(files["json"].read_text())
