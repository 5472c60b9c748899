"""Something goes at a random moment of a measurement over hosts: `make kill-hosts` (KILLS=30, SEED=number for
the same ones again).

What goes: a worker, an agent, a whole host, a link, the scheduler, the service; or a worker, an agent or the
scheduler stands still. From what: two runs, the same on a cluster that was put up before, two launches of a
duet. When: each kind in the first, the second and the last third of the time that the same takes when nothing
happens. So 27 kills have every kind in every third. Where a measurement has ended before anything could go,
it is begun again.

Whatever goes, and whenever: what was under way is sealed within SEALED_WITHIN_S, with the name of the host in
its reason; kvstudy ends; what is completed has as many answers as ever; the tables hold what is sealed and
nothing else; `--resume` measures what is missing; and nothing is left running on any host, once it can be
reached, nor here. What is printed of each: what went, when, and how long it took until the run that was under
way then was sealed, and kvstudy ended."""

import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyarrow.parquet
import pytest
from project import TINY_SLICES, TWO_RUNS, UNDISTURBED, Project
from test_duets_over_hosts import SIDES_OF_OURS

from kvstudy.hosts.process import wait_until
from kvstudy.project import tidy_root, work_root
from kvstudy.record.run_folder import SEAL, sealed_runs
from kvstudy.record.verification import verify

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("hosts")]

KILLS = int(os.environ.get("KILLS") or 30)
SEED = int(os.environ.get("SEED") or time.time_ns() % 1_000_000)
SEALED_WITHIN_S = 15.0  # what was under way
HANGS_S = 15.0  # beside what the same takes when nothing happens
EMPTY_WITHIN_S = 40.0
ATTEMPTS = 4
ANSWERS_TOLERANCE = 0.15  # on a busy machine some are not sent in time
RUNS, ON_A_CLUSTER, DUET = SETTINGS = ("runs", "runs on a cluster that is up", "a duet")
WAITED: list[float] = []


# ---- what goes ---------------------------------------------------------------------------------------------


@dataclass
class Scene:
    hosts: object
    project: Project
    measuring: object
    name: str  # of the host in question

    def signalled(self, number: signal.Signals, module: str, host: str = "") -> bool:
        """The Python there that runs this module; a shell that starts or ends it is none. False where there
        is none yet, or any more."""
        for pid, words in self.hosts.pids(host or self.name).items():
            if words.startswith(sys.executable) and f" -m {module} " in f"{words} ":
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
                    return True
        return False

    def service_killed(self) -> bool:
        for pid, words in self.hosts.pids("a").items():
            if "kv-service.jar" in words:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    return True
        return False

    def host_gone(self) -> bool:
        """Silently: without the cut its kernel would still hang up for it."""
        self.hosts.cut(self.name)
        self.hosts.end(self.name)
        return True

    def link_cut(self) -> bool:
        self.hosts.cut(self.name)
        return True

    def scheduler_signalled(self, number: signal.Signals) -> bool:
        with suppress(OSError, ValueError, psutil.Error, KeyError):
            noted = json.loads((work_root(self.project.root) / "cluster" / "cluster.json").read_text())
            psutil.Process(noted["pid"]).send_signal(number)
            return True
        return False


WORKER, AGENT = "kvstudy.hosts.dask_host worker", "kvstudy.hosts.agent"
KINDS: dict[str, Callable[[Scene], bool]] = {
    "worker": lambda scene: scene.signalled(signal.SIGKILL, WORKER),
    "agent": lambda scene: scene.signalled(signal.SIGKILL, AGENT),
    "host": Scene.host_gone,
    "link": Scene.link_cut,
    "scheduler": lambda scene: scene.scheduler_signalled(signal.SIGKILL),
    "service": Scene.service_killed,
    "worker stands still": lambda scene: scene.signalled(signal.SIGSTOP, WORKER),
    "agent stands still": lambda scene: scene.signalled(signal.SIGSTOP, AGENT),
    "scheduler stands still": lambda scene: scene.scheduler_signalled(signal.SIGSTOP),
}
OF_NO_HOST = ("scheduler", "service", "scheduler stands still")


@dataclass(frozen=True)
class Kill:
    """``share``: of the time that it takes when nothing happens."""

    number: int
    kind: str
    setting: str
    name: str
    share: float

    def __str__(self) -> str:
        where = "" if self.kind in OF_NO_HOST else f" on {self.name}"
        return f"{self.number + 1} {self.kind}{where} of {self.setting} at {100 * self.share:.0f} %"

    def is_named_in(self, text: str) -> bool:
        if self.kind.startswith("scheduler"):
            return bool(re.search(r"scheduler|worker|host [abc]\b", text))
        if self.kind == "service":
            return bool(re.search(r"host a\b|service|side ", text))
        return bool(re.search(rf"host {self.name}\b", text))


def dealt(count: int, seed: int) -> list[Kill]:
    """Kinds in a random order, again and again; each the next time in the next third."""
    drawn, found = random.Random(seed), []
    places = {kind: place for place, kind in enumerate(KINDS)}
    while len(found) < count:
        turn = len(found) // len(KINDS)
        for kind in drawn.sample(list(KINDS), len(KINDS)):
            third = (places[kind] + turn) % 3
            setting = SETTINGS[len(found) % len(SETTINGS)]
            name = drawn.choice("ab" if setting == DUET else "abc")
            share = (third + drawn.uniform(0.1, 0.95)) / 3
            found.append(Kill(len(found), kind, setting, name, share))
    return found[:count]


# ---- what is measured --------------------------------------------------------------------------------------


@dataclass
class Measurement:
    hosts: object
    project: Project
    setting: str
    file: Path = field(init=False)

    def __post_init__(self) -> None:
        generators = {} if self.setting == DUET else {"c": ["generator"]}
        self.file = self.hosts.yaml(a=["service"], b=["generator"], **generators)

    def begin(self, *more: str):
        if self.setting == DUET:
            experiment = self.project.experiment(
                **SIDES_OF_OURS
                | {
                    "subject": "kv-service",
                    "rate": 400,
                    "compare": TINY_SLICES | {"pairs": 6, "launches": 2},
                }
            )
            return self.project.kvstudy("compare", experiment, "--hosts", self.file, *more, code=UNDISTURBED)
        experiment = self.project.experiment(**TWO_RUNS)
        return self.project.kvstudy("run", experiment, "--hosts", self.file, "--generators", 2, *more)

    @contextmanager
    def cluster(self) -> Iterator[None]:
        """Up until then, where that is the setting."""
        if self.setting != ON_A_CLUSTER:
            yield
            return
        self._hosts("up")
        try:
            yield
        finally:
            self._hosts("down")

    def _hosts(self, word: str) -> None:
        code, out, err = self.project.finished(self.project.kvstudy("hosts", word, self.file), 90)
        assert code == 0, out + err

    def runs(self) -> list:
        return sealed_runs(self.project.raw) if self.project.raw.is_dir() else []

    def completed(self) -> list:
        return [run for run in self.runs() if run.facts["outcome"] == "completed"]


@pytest.fixture(scope="module")
def undisturbed(hosts, tmp_path_factory):
    """By setting, how long it takes when nothing happens, and how many answers each run has."""
    print(f"\nSEED={SEED}")
    known: dict[str, tuple[float, list[int]]] = {}

    def of(setting: str) -> tuple[float, list[int]]:
        if setting not in known:
            project = Project(tmp_path_factory.mktemp("undisturbed") / "my project")
            one = Measurement(hosts, project, setting)
            with one.cluster():
                begun = time.monotonic()
                code, out, err = project.finished(one.begin(), 120)
                took_s = time.monotonic() - begun
            assert code == 0 and len(one.completed()) == 2, out + err
            known[setting] = took_s, [] if setting == DUET else [answers(run) for run in one.completed()]
            print(f"\n{setting}, and nothing happens: {took_s:.1f} s")
        return known[setting]

    yield of
    if WAITED:
        print(f"\nlongest wait of {len(WAITED)}: {max(WAITED):.1f} s; SEED={SEED}")


def answers(run) -> int:
    return json.loads(run.text("generator.json"))["counts"]["completed"]


# ---- and what is to hold -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kill", dealt(KILLS, SEED), ids=str)
def test_whatever_goes_at_whatever_moment_nothing_is_lost_and_nothing_is_left(
    hosts, project, undisturbed, kill
):
    usual_s, usual_answers = undisturbed(kill.setting)
    one = Measurement(hosts, project, kill.setting)
    with emptied(hosts), one.cluster(), revived(hosts):
        watched, went_s = gone_in_time(one, kill, usual_s)
        followed = watched.to_the_end(usual_s)
        code, out, err = project.finished(watched.measuring, timeout_s=5)
    outcomes = [run.facts["outcome"] for run in one.runs()]
    WAITED.append(max(followed.longest_s, *followed.sealed_s.values(), 0.0))
    print(f"\n{kill}, {went_s:.1f} s: {WAITED[-1]:.1f} s, exit {code}, {outcomes}")
    assert "Traceback" not in err, err
    assert all(waited_s <= SEALED_WITHIN_S for waited_s in followed.sealed_s.values()), followed
    assert not list(project.raw.rglob("*.partial")), list(project.raw.rglob("*.partial"))
    assert followed.left() == [] and project.processes() == []
    for run in one.runs():
        assert verify(run.path) == []
    failed = [outcome for outcome in outcomes if outcome != "completed"]
    assert all(outcome.startswith("failed: ") for outcome in failed), outcomes
    assert all(kill.is_named_in(outcome) for outcome in failed), failed
    if code:
        assert code == 1 and (failed or kill.is_named_in(err)), out + err
    elif kill.setting != DUET:  # of a duet a launch that a side ended is an answer
        assert outcomes == ["completed"] * 2, out + err
    for run in one.completed() if usual_answers else []:
        assert answers(run) == pytest.approx(usual_answers[0], rel=ANSWERS_TOLERANCE)
    assert in_tables(project) == {run.run_id for run in one.runs()}
    with emptied(hosts):
        code, out, err = project.finished(one.begin("--resume"), 120)
    assert code == 0, out + err
    answering = one.runs() if kill.setting == DUET and kill.kind == "service" else one.completed()
    assert len(answering) >= 2 if kill.setting == DUET else len(answering) == 2, out + err
    assert in_tables(project) == {run.run_id for run in one.runs()}


def gone_in_time(one: Measurement, kill: Kill, usual_s: float) -> tuple["Watched", float]:
    """What goes does so while it is measured; begun again, and earlier, where that had ended before."""
    for attempt in range(ATTEMPTS):
        shutil.rmtree(one.project.root / "data" / "raw", ignore_errors=True)
        begun, share = time.monotonic(), kill.share * 0.7**attempt
        watched = Watched(one.project, one.begin())
        scene = Scene(one.hosts, one.project, watched.measuring, kill.name)
        try:
            while time.monotonic() - begun < share * usual_s and watched.goes_on():
                time.sleep(0.02)
            while watched.goes_on() and time.monotonic() - begun < 2 * usual_s + HANGS_S:
                if KINDS[kill.kind](scene):
                    watched.fault()
                    return watched, time.monotonic() - begun
                time.sleep(0.02)
        except BaseException:
            watched.end()
            raise
        watched.end()
        code, out, err = one.project.finished(watched.measuring, 5)
        assert code == 0, f"failed before anything went: {out}{err}"
    raise AssertionError(f"there never was anything that could go: {kill}")


@dataclass
class Watched:
    """A measurement, and all that it has started here. ``sealed_s``: of each run that was under way when
    something went, how long it took from then. ``longest_s``: without any run that is sealed."""

    project: Project
    measuring: object
    under_way: set[Path] = field(default_factory=set)
    sealed_s: dict[Path, float] = field(default_factory=dict)
    longest_s: float = 0.0
    _started: set[psutil.Process] = field(default_factory=set)
    _fault: float = 0.0

    def goes_on(self) -> bool:
        with suppress(psutil.Error):
            self._started |= set(psutil.Process(self.measuring.pid).children(recursive=True))
        return self.measuring.poll() is None

    def fault(self) -> None:
        self._fault = time.monotonic()
        self.under_way = set(self._folders("*/*.partial"))

    def to_the_end(self, usual_s: float) -> "Watched":
        """AssertionError where it hangs."""
        last, sealed = self._fault, self._sealed()
        try:
            while self.goes_on():
                now = time.monotonic()
                assert now - last < HANGS_S + usual_s, f"hangs: {now - last:.0f} s without a sealed run"
                if (found := self._sealed()) != sealed:
                    sealed, last = found, now
                self._note_sealed()
                self.longest_s = max(self.longest_s, now - last)
                time.sleep(0.05)
            self._note_sealed()
        finally:
            self.end()
        return self

    def _note_sealed(self) -> None:
        for path in self.under_way - self.sealed_s.keys():
            if (path.with_suffix("") / SEAL).is_file():
                self.sealed_s[path] = time.monotonic() - self._fault

    def _sealed(self) -> set[Path]:
        return set(self._folders(f"*/*/{SEAL}"))

    def _folders(self, pattern: str) -> list[Path]:
        return list(self.project.raw.glob(pattern)) if self.project.raw.is_dir() else []

    def end(self) -> None:
        if self.measuring.poll() is None:
            self.measuring.kill()

    def left(self) -> list[str]:
        """Of what was started here, by processes and their numbers, not by words."""

        def alive() -> list[psutil.Process]:
            found = []
            for one in self._started:
                with suppress(psutil.Error):
                    if one.is_running() and one.status() != psutil.STATUS_ZOMBIE:
                        found.append(one)
            return found

        wait_until(lambda: not alive(), 5)
        return [" ".join(one.cmdline()) for one in alive()]


@contextmanager
def revived(hosts) -> Iterator[None]:
    """After all, every host can be reached, and nobody stands still."""
    try:
        yield
    finally:
        for name in "abc":
            hosts.heal(name)
            if name not in hosts.begun:
                hosts.begin(name)
            for pid in hosts.pids(name):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


@contextmanager
def emptied(hosts) -> Iterator[None]:
    """Nothing is left on any host; also after another failure the next test finds none of it."""
    try:
        yield
    finally:
        wait_until(lambda: not any(hosts.pids(name) for name in "abc"), EMPTY_WITHIN_S)
        left = {name: found for name in "abc" if (found := hosts.pids(name))}
        for found in left.values():
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if left and sys.exception() is None:
            raise AssertionError(f"left running: {left}")


def in_tables(project: Project) -> set[str]:
    """Ids of runs and launches that `kvstudy tables` finds."""
    if not any(project.raw.rglob(SEAL)):
        return set()
    code, out, err = project.finished(project.kvstudy("tables"))
    assert code == 0, out + err
    files = [path for name in ("runs", "duets") for path in tidy_root(project.root).rglob(f"{name}.parquet")]
    tables = [pyarrow.parquet.read_table(path, columns=["run_id"]) for path in files]
    return {run_id for table in tables for run_id in table.column("run_id").to_pylist()}
