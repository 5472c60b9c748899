"""Tables made by the hosts of a cluster: ``kvstudy tables --cluster hosts.yaml``.

    with spread_over(file, root, registered) as spread:
        rebuild(roots, tidy_root, spread=spread)

A part of the tables is a function of its runs and of the code (analyse/tidy): it has the same bytes wherever
it is made. So a host that does not see the runs is sent them, a part that one cannot make is made by another,
and what no host is left for is made here. So is a part most of whose runs were read before: their rows are
here. The cluster is put up when there is work for it.
"""

import queue
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from kvstudy.analyse.tidy import part
from kvstudy.analyse.tidy.build import Spread
from kvstudy.analyse.tidy.part import Task
from kvstudy.analyse.tidy.seals import seal_of
from kvstudy.errors import FormatError, KvstudyError, RunFolderError
from kvstudy.hosts.cluster import Hosts
from kvstudy.hosts.host import Here
from kvstudy.hosts.hosts_file import HostsFile
from kvstudy.hosts.remote import RemoteHost, give_up
from kvstudy.hosts.ssh import Remote, remotes
from kvstudy.project import work_root
from kvstudy.workers import processes

RUNS, PART = "runs.tar", "part"
STEP_S = 0.2


@contextmanager
def spread_over(file: HostsFile, root: Path, registered: Callable[[int, bool], None]) -> Iterator[Spread]:
    with ExitStack() as until_end:

        def spread(make: Callable[[Task], Task], tasks: list[Task]) -> Iterator[Task]:
            try:
                cluster = until_end.enter_context(Hosts(_reached(file), work_root(root), registered))
            except KvstudyError as error:
                print(f"no host makes tables, all are made here: {error.message}", file=sys.stderr)
                yield from processes(make, tasks)
                return
            yield from _Work(list(cluster.hosts.values()), make, tasks).done()

        yield spread


def _reached(file: HostsFile) -> HostsFile:
    """Without the hosts that ssh does not get to: the others do their work. KvstudyError where none is
    left."""
    if not file.ssh:
        return file

    def is_there(remote: Remote) -> bool:
        try:
            remote.asked("true")
        except KvstudyError as error:
            print(f"makes no tables: {error.message}", file=sys.stderr)
            return False
        return True

    with ThreadPoolExecutor(16) as threads:
        reached = zip(file.hosts.items(), threads.map(is_there, remotes(file)), strict=True)
        left = {name: entry for (name, entry), there in reached if there}
    if not left:
        raise KvstudyError("no host can be reached")
    return file.model_copy(update={"hosts": left})


class TableStation:
    """On a host: makes one part at a time."""

    def __init__(self, _here: Here):
        pass

    def sees(self, task: Task) -> bool:
        """Its runs, as they were sealed: on a disk that both machines have."""
        return all(_seal(run.path) == run.seal for run in task.batch.runs)

    def make(self, task: Task, folder: Path) -> Path:
        """Where its files lie. ``folder``: for this part alone; with the runs in it where they were sent."""
        batch = task.batch
        if (folder / RUNS).is_file():
            with tarfile.open(folder / RUNS) as packed:
                packed.extractall(folder / "runs", filter="data")
            runs = tuple(replace(run, path=folder / "runs" / run.run_id) for run in batch.runs)
            batch = replace(batch, runs=runs)
        made = part.make(replace(task, batch=batch, tidy_root=folder / PART, known={}))
        return folder / PART / made.batch.part_name(task.version)


class _Work:
    def __init__(self, hosts: list[RemoteHost], make: Callable[[Task], Task], tasks: list[Task]):
        self._hosts, self._make = hosts, make
        self._left: queue.SimpleQueue[tuple[int, Task]] = queue.SimpleQueue()
        self._mostly_known = []
        for number, task in enumerate(tasks):
            if 2 * task.fresh_runs < len(task.batch.runs):
                self._mostly_known.append(task)
            else:
                self._left.put((number, task))
        self._for_here: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._made: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._is_over = threading.Event()

    def done(self) -> Iterator[Task]:
        """Each task when it is done. The first error that no other host would be spared ends it all."""
        with ThreadPoolExecutor(2 * len(self._hosts)) as threads:
            working = [threads.submit(self._work_on, host) for host in self._hosts]
            try:
                yield from map(self._make, self._mostly_known)
                while not all(one.done() for one in working) or not self._made.empty():
                    with suppress(queue.Empty):
                        yield self._made.get(timeout=STEP_S)
                for one in working:
                    one.result()
            except BaseException:  # nobody waits for the parts that are under way
                self._is_over.set()
                give_up(self._hosts, "interrupted")
                raise
        while not self._left.empty():
            self._for_here.put(self._left.get()[1])
        while not self._for_here.empty():
            yield self._make(self._for_here.get())

    def _work_on(self, host: RemoteHost) -> None:
        try:
            host.renew()
            station = host.stationed(TableStation)
        except KvstudyError as error:
            print(f"makes no tables: {host.named(error).message}", file=sys.stderr)
            return
        while not self._is_over.is_set():
            try:
                number, task = self._left.get_nowait()
            except queue.Empty:
                return
            try:
                task = self._make_there(host, station, number, task)
            except (RunFolderError, FormatError):  # of the run: every host would say so
                self._is_over.set()
                raise
            except KvstudyError as error:  # it is lost, its disk is full, its code is another
                self._left.put((number, task))
                if not self._is_over.is_set():
                    print(f"makes no more tables: {host.named(error).message}", file=sys.stderr)
                return
            except OSError:  # of a file here: whether it can be read, who reads it here says
                self._for_here.put(task)
                continue
            except BaseException:
                self._is_over.set()
                raise
            self._made.put(task)

    def _make_there(self, host: RemoteHost, station: TableStation, number: int, task: Task) -> Task:
        there = host.run_folder(Path(f"tables-{number}"))
        try:
            with tempfile.TemporaryDirectory(dir=task.tidy_root, prefix=".") as aside:
                if not station.sees(task):
                    host.send(_packed(task, Path(aside) / RUNS), there / RUNS)
                new = Path(aside) / PART
                new.mkdir()
                host.fetch(station.make(task, there), new)
                return part.adopt(new, task)
        finally:
            if not host.is_lost:
                host.drop(there)


def _packed(task: Task, file: Path) -> Path:
    """Not compressed: what is large in a run folder is already. What a link leads to is sent, since it leads
    nowhere on the host."""
    with tarfile.open(file, "w", dereference=True) as packed:
        for run in task.batch.runs:
            packed.add(run.path, run.run_id)
    return file


def _seal(run: Path) -> str | None:
    try:
        return seal_of(run)
    except (OSError, KvstudyError):
        return None
