"""What a launch seals of what its sides told: of each side as a run does of its service."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
import trial
from memory_groups import can_make_groups
from project import TINY_SLICES, UNDISTURBED

from kvstudy.errors import HostLost, RunFailed
from kvstudy.measure import duet_part
from kvstudy.measure.border_counters import Border, Used
from kvstudy.measure.duet import DuetLaunch, load_during
from kvstudy.measure.duet_part import Attended, Part, Turn, part_of
from kvstudy.measure.generator import SideSilent
from kvstudy.measure.pinning import Pinning
from kvstudy.measure.slice_times import SliceTimes
from kvstudy.plan.comparison import SIDES, Launch, Slices, comparisons
from kvstudy.record import process_series
from kvstudy.record.run_folder import RunWriter, sealed_runs
from kvstudy.subject.protocol import Evidence

FIRST_SLICE = datetime(2026, 11, 24, 20, tzinfo=UTC)


def at(seconds: float) -> str:
    """From the first slice that counts."""
    return (FIRST_SLICE + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def slice_of(begin_s: float, end_s: float) -> dict:
    begin_ns = round(FIRST_SLICE.timestamp()) * 10**9
    return {
        "begin_utc_ns": begin_ns + round(begin_s * 1e9),
        "end_utc_ns": begin_ns + round(end_s * 1e9),
    }


def launch_of(told: dict[str, Evidence]) -> DuetLaunch:
    """With slices of two parts in three seconds, after a second of warm-up."""
    service = SimpleNamespace(station=SimpleNamespace(evidence=lambda: told))
    crew = SimpleNamespace(ready=lambda: None, service=service, is_one_host=False)
    load = SimpleNamespace(loops=(SimpleNamespace(warm_up_s=1.0), SimpleNamespace(warm_up_s=0.0)))
    bench = SimpleNamespace(crew=crew, comparison=SimpleNamespace(loads=(load,)))
    launch = DuetLaunch(Launch(1, 7, SIDES, SIDES, SIDES), bench)
    launch._rows = [slice_of(0, 0.5), slice_of(0.6, 1.1), slice_of(2.5, 3)]
    return launch


class Station:
    """Of sides that do all that they are asked for; ``parts``: what is found in each, by its loop. ``told``:
    what it was asked for."""

    def __init__(self, parts):
        self.parts, self.told = parts, []

    def run_part(self, _doing, _load, slices, *_rest):
        found = self.parts[slices.loop]
        if isinstance(found, Exception):
            raise found
        return found

    def start_profilers(self, _events):
        return True, None

    def stop_profilers(self):
        return None

    def stop(self):
        return []

    def __getattr__(self, name):
        return lambda *asked: self.told.append((name, *asked))


class Members(SimpleNamespace):
    """A crew whose one host is this machine."""

    is_here = is_one_host = True

    def ready(self):
        pass

    def facts_before(self):
        return {}

    def as_one(self):
        return nullcontext()


def measured(tmp_path, station, profile=()) -> DuetLaunch:
    """A launch with a part at the rate; raises what ends it."""
    (whole,) = comparisons(trial.trial(service={"handler": ["selector", "workers"]}))
    (load,) = whole.loads
    one = replace(whole, loads=(replace(load, loops=load.loops[:1]),))
    host = SimpleNamespace(settle=lambda: None)
    crew = Members(service=SimpleNamespace(station=station, host=host))
    bench = SimpleNamespace(crew=crew, comparison=one, doing=lambda _phase: None, tick=None)
    launch = DuetLaunch(Launch(1, 7, SIDES, SIDES, SIDES), bench, profile)
    launch._pinning = Pinning(None, None, "not pinned")
    launch._write_evidence = lambda _folder: None
    launch._measured(RunWriter.create(tmp_path, "trial", "launch"))
    return launch


def test_a_side_that_answers_nothing_is_blamed_and_named_wherever_the_generator_found_it(tmp_path):
    station = Station({"rate": SideSilent("b", "sent 30")})
    silent = "service answered no request in its slices: sent 30"
    with pytest.raises(RunFailed, match=f"^side handler=workers: {silent}$"):
        measured(tmp_path, station)
    assert ("blame", "b", silent) in station.told


@pytest.mark.parametrize("why", ["side handler=workers: service died during get profile: signal 11"])
def test_slices_of_a_profiler_that_fail_are_a_note_and_what_was_measured_before_counts(tmp_path, why):
    station = Station(
        {"rate": Part([slice_of(0, 1)], {"a": (), "b": ()}, {}, None), "profile": RunFailed(why)}
    )
    launch = measured(tmp_path, station, ("cpu",))
    asked = [name for name, *_ in station.told]
    assert asked.index("excuse_profiled") < asked.index("check") and "blame" not in asked
    assert len(launch._rows) == 1
    assert (launch._profile_note, launch._is_profiled) == (why, False)


def test_a_host_that_is_lost_while_it_is_profiled_ends_the_launch(tmp_path):
    station = Station({"rate": Part([], {"a": (), "b": ()}, {}, None), "profile": HostLost("host a is lost")})
    with pytest.raises(HostLost):
        measured(tmp_path, station, ("cpu",))


def test_counters_and_memory_groups_are_written_of_each_side_that_has_some(tmp_path):
    read = {at(second): {"puts": float(second)} for second in (-1.5, -0.5, 1.25, 3.5)}
    group = {"version": 2, "limit_bytes": 256 << 20, "peak_bytes": 1, "killed": False}
    launch = launch_of({"a": Evidence(), "b": Evidence({"gc": []}, read, group)})
    folder = RunWriter.create(tmp_path, "trial", "launch")
    launch._write_evidence(folder)
    names = {path.name for path in (tmp_path / "trial" / "launch.partial").iterdir()}
    assert names == {"events-b.json", "store-b.csv"}
    counters = process_series.read(folder.path("store-b.csv").read_text(), "store-b.csv")
    assert counters["second"].tolist() == [-1, 1]  # not those of the fill, nor of the check
    assert counters["at_s"].tolist() == counters["puts"].tolist() == [-0.5, 1.25]
    assert launch._machine == {"memory_groups": {"b": group}}


def test_a_launch_without_memory_groups_says_nothing_of_any(tmp_path):
    launch = launch_of({side: Evidence() for side in SIDES})
    launch._write_evidence(RunWriter.create(tmp_path, "trial", "launch"))
    assert launch._machine == {}


@pytest.mark.machine
@can_make_groups
def test_the_memory_group_and_the_counters_of_both_services_are_sealed(project):
    path = project.experiment(
        subject="kv-service",
        service={"memory": ["256m", "320m"]},
        jvm={"heap": "64m"},
        workload="get",
        fill=2000,
        rate=400,
        duration="2s",
        warm_up="1s",
        compare=TINY_SLICES | {"launches": 1, "pairs": 8},
    )
    _, _, err = project.finished(project.kvstudy("compare", path, code=UNDISTURBED))
    (run,) = sealed_runs(project.raw)
    assert run.facts["outcome"] == "completed", err
    groups = run.machine["memory_groups"]
    assert [groups[side]["limit_bytes"] for side in SIDES] == [256 << 20, 320 << 20]
    for side in SIDES:
        counters = process_series.read(run.text(f"store-{side}.csv"), f"store-{side}.csv")
        assert len(counters["at_s"]) > 0 and counters["gets"][-1] > 0
    assert project.processes() == []


def test_a_machine_so_busy_that_every_border_is_read_late_is_found_busy_all_the_same(monkeypatch):
    """No slice has counters then; what the others took is known by when it was read."""
    monkeypatch.setattr(duet_part, "expected_statuses", lambda load: "200")
    late_ns, ms = 30_000_000, 1_000_000
    counted = [(100 * ms * n, 100 * ms * n + 80 * ms) for n in range(4)]

    def border(planned_ns: int, number: int) -> Border:
        at_ns = planned_ns + late_ns
        return Border(at_ns, {side: Used(0, 0, 0) for side in SIDES}, {"1": number * 60 * ms}, 0, at_ns)

    borders = {at_ns: border(at_ns, n) for n, at_ns in enumerate(at for pair in counted for at in pair)}
    latency = {"count": 0, "mean": None}
    found = [
        {
            "slice": n,
            "server": "AB"[n % 2],
            "counted_from_unix_ns": begin_ns,
            "counted_until_unix_ns": end_ns,
            "sent": 0,
            "completed": 0,
            "unanswered": 0,
            "unexpected": 0,
            "late": 0,
            "achieved_rate_rps": 0.0,
            "response_time_ns": latency,
        }
        for n, (begin_ns, end_ns) in enumerate(counted)
    ]
    slices = Slices("rate", 0, 2, 0.02, 0.08, (0.01, 0.01))
    planned = SimpleNamespace(
        load=SimpleNamespace(workload="get", a=SimpleNamespace(connections=1)),
        slices=slices,
        turn=Turn({}, "a", 1),
        times=SliceTimes(0, tuple(counted)),
    )
    result = {"alternate": {"slices": found, "servers": []}, "answers": {}}
    part = part_of(planned, result, 0, Attended(borders, 0))
    assert not any("steal_ns" in row or "foreign_ns" in row for row in part.rows)
    load = load_during(part.taken, cores=2)
    assert load["foreign_cpu_share_mean"] == pytest.approx(60 / 160) and load["steal_share_mean"] == 0
