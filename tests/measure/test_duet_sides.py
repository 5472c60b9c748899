"""Which side of a duet comes first in what is done to both, and which is to blame, without starting any."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kvstudy.errors import RunFailed
from kvstudy.measure import duet_sides, duet_station
from kvstudy.measure.data_check import DataCheck
from kvstudy.measure.duet_sides import LiveSide, launch_sides, store_of
from kvstudy.measure.duet_station import DuetStation
from kvstudy.plan.comparison import SIDES, Launch, comparisons
from kvstudy.plan.experiment import Experiment
from kvstudy.subject.protocol import Evidence

RESTORED = {"service": {"handler": ["selector", "workers"]}, "compare": {"own_fills": True}}
TWO_COMMANDS = [{"command": ["server", "{port}"], "name": name} for name in ("one", "other")]
LAUNCHES = [
    Launch(1, 7, ("a", "b"), ("a", "b"), ("a", "b")),
    Launch(2, 7, ("b", "a"), ("a", "b"), ("b", "a")),
    Launch(3, 7, ("a", "b"), ("b", "a"), ("b", "a")),
]


class Acts:
    """What is done to each side, in its order. Stands for the fills, the programs and the live services."""

    def __init__(self, comparison):
        self.done: list[tuple] = []
        self._comparison = comparison

    def _letter(self, configuration) -> str:
        return next(side for side in SIDES if self._comparison.loads[0].of(side) == configuration)

    def restore(self, configuration, store):
        store.mkdir(parents=True)
        self.done.append(("restore", self._letter(configuration), str(store)))

    def write(self, configuration, _live, _log):
        self.done.append(("write", self._letter(configuration)))

    def subject(self, configuration):
        return Service(self, self._letter(configuration))


class Service:
    url = "http://127.0.0.1:1"
    pids = ()

    def __init__(self, acts, letter):
        self._acts, self._letter = acts, letter

    def launch(self, place):
        self._acts.done.append(("launch", self._letter, str(place.store), place.port))
        return self

    def come_to_rest(self):
        self._acts.done.append(("rest", self._letter))
        return True


def acts_of(comparison, launch, folder) -> list[tuple]:
    acts = Acts(comparison)
    folder.mkdir(exist_ok=True)
    launch_sides(comparison, launch, acts, acts, folder / "stores", folder, None, lambda *_: None, {}, {})
    shutil.rmtree(folder / "stores")
    return acts.done


def compared(folder, sides):
    path = folder / "trial.yaml"
    values = {
        "question": "which?",
        "expectation": "within 5 %",
        "workload": "get",
        "connections": 1,
        "threads": 1,
        "rate": 100,
        "fill": 100,
        "duration": "2s",
        "warm_up": "1s",
        "repeats": 1,
    }
    path.write_text(json.dumps(values | sides))
    (comparison,) = comparisons(Experiment.load(path, compared=True))
    return comparison


def exchanged(letters: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("b" if letter == "a" else "a" for letter in letters)


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: str(launch.number))
@pytest.mark.parametrize(
    "sides",
    [{"subject": TWO_COMMANDS}, RESTORED],
    ids=["filled in each launch", "restored"],
)
def test_under_the_other_draw_the_same_is_done_to_the_other_side(tmp_path, monkeypatch, launch, sides):
    """Whatever a letter alone decides would be the same in all launches, and pass for a difference."""
    monkeypatch.setattr(duet_sides, "chosen_ports", lambda *_: (8080, 8081))
    comparison = compared(tmp_path, sides)
    turned = replace(
        launch, **{name: exchanged(getattr(launch, name)) for name in ("starts", "ports", "places")}
    )
    one, other = (acts_of(comparison, drawn, tmp_path / "run") for drawn in (launch, turned))
    assert [tuple(exchanged((part,))[0] if part in SIDES else part for part in act) for act in one] == other
    assert [act[1] for act in one if act[0] == "restore"] == list(launch.places)
    assert [act[1] for act in one if act[0] == "launch"] == list(launch.starts)


@pytest.mark.parametrize("own_fills", [True, False])
@pytest.mark.parametrize("limited", [*SIDES, None])
def test_a_side_in_a_memory_group_has_to_pay_for_its_pages_though_the_other_has_none(
    tmp_path, monkeypatch, limited, own_fills
):
    """Whichever has one, both begin from the disk."""
    forgotten = []
    monkeypatch.setattr(duet_sides, "forget_pages", forgotten.append)
    comparison = compared(tmp_path, RESTORED | {"compare": {"own_fills": own_fills}})
    if limited:
        (load,) = comparison.loads
        one = load.of(limited)
        one = replace(one, service=one.service | {"memory": "256m"})
        comparison = replace(comparison, loads=(replace(load, **{limited: one}),))
    acts_of(comparison, LAUNCHES[0], tmp_path / "run")
    assert sorted(store.name for store in forgotten) == (["1", "2"] if limited else [])


@pytest.mark.parametrize(
    ("change", "own_fills", "is_shared"),
    [({}, False, True), ({}, True, False), ({"command": ["other", "{port}", "{dir}"]}, False, False)],
)
def test_two_sides_of_one_command_begin_with_copies_of_one_store(tmp_path, change, own_fills, is_shared):
    kept = {"command": ["server", "{port}", "{dir}"], "fill": "directory"}
    one, other = (side | kept for side in TWO_COMMANDS)
    sides = {"subject": [one, other | change], "compare": {"own_fills": own_fills}}
    comparison = compared(tmp_path, sides)
    assert (store_of(comparison, "b") == store_of(comparison, "a")) == is_shared


def test_a_fill_that_a_side_refuses_is_its_own_doing(tmp_path, monkeypatch):
    """From outside, the launch would leave the better ones of that side behind."""

    def refuses(_acts, configuration, _live, _log):
        if configuration.spec.name == "other":
            raise RunFailed("loadgen got unexpected answers: 507: 3")

    monkeypatch.setattr(Acts, "write", refuses)
    comparison, ends = compared(tmp_path, {"subject": TWO_COMMANDS}), {}
    acts, folder = Acts(comparison), tmp_path / "run"
    folder.mkdir()
    with pytest.raises(RunFailed, match="^side subject=other: loadgen got unexpected answers"):
        launch_sides(
            comparison, LAUNCHES[0], acts, acts, folder / "stores", folder, None, lambda *_: None, {}, ends
        )
    assert (ends["a"].fault, ends["b"].fault) == ("", "loadgen got unexpected answers: 507: 3")


@pytest.mark.parametrize(
    ("why", "is_its_own"),
    [
        ("service was not ready in time: timeout=60s: it said nothing", True),
        ("service cannot have its port: port 40123: address already in use", False),
        ("service cannot be limited to its memory: no controller", False),
    ],
)
def test_what_keeps_a_side_from_being_started_is_not_its_own_doing(tmp_path, monkeypatch, why, is_its_own):
    def refuses(_service, _place):
        raise RunFailed(why)

    monkeypatch.setattr(Service, "launch", refuses)
    comparison, ends = compared(tmp_path, {"subject": TWO_COMMANDS}), {}
    acts, folder = Acts(comparison), tmp_path / "run"
    folder.mkdir()
    with pytest.raises(RunFailed, match=f"^side subject=one: {why}"):
        launch_sides(
            comparison, LAUNCHES[0], acts, acts, folder / "stores", folder, None, lambda *_: None, {}, ends
        )
    assert ends["a"].fault == (why if is_its_own else "")


@pytest.fixture
def station(monkeypatch):
    """With both sides alive, of which whatever is sampled three are missing. Side b was started first."""
    monkeypatch.setattr(duet_station, "check_sample", lambda *_: DataCheck(200, 3, 0, 200))
    keeping = SimpleNamespace(spec=SimpleNamespace(keeps_data=True))
    one = DuetStation.__new__(DuetStation)
    one._artifacts = SimpleNamespace(check_unchanged=lambda: None)
    one._comparison, one._launch = SimpleNamespace(loads=()), LAUNCHES[0]
    one._live = {
        side: LiveSide(name, keeping, Profiled(), None, None) for side, name in (("b", "other"), ("a", "one"))
    }
    return one


def test_of_two_sides_that_lose_data_both_are_found_whichever_was_started_first(station):
    with pytest.raises(RunFailed, match="^side other lost data: sampled="):
        station.check({side: [] for side in SIDES})
    assert [station._live[side].end.data_check["missing"] for side in SIDES] == [3, 3]


def test_of_a_side_that_is_gone_since_it_was_profiled_nothing_more_is_asked(station):
    station._live["b"].is_gone = True
    with pytest.raises(RunFailed, match="^side one lost data: sampled="):
        station.check({side: [] for side in SIDES})
    assert station._live["b"].end.data_check is None and list(station.evidence()) == ["a"]


class Profiled:
    """A live service that its profiler may end."""

    url, pids = "http://127.0.0.1:1", ()
    fault = "service did not stop in order: signal=11"

    def __init__(self):
        self.is_alive = True

    def check_alive(self, doing):
        if not self.is_alive:
            raise RunFailed(f"service died during {doing}: signal 11")

    def stop(self):
        return None if self.is_alive else self.fault

    def evidence(self):
        return Evidence()


def test_who_ends_while_it_is_profiled_is_not_to_blame_for_that_nor_for_what_it_logs_of_it(tmp_path):
    live, log = Profiled(), tmp_path / "service.log"
    side = LiveSide("one", None, live, tmp_path, lambda name: tmp_path / name)
    log.write_text("ERROR: cannot open the cache\n")
    side.begin_profile()
    live.is_alive = False
    log.write_text(log.read_text() + "ERROR: broken pipe\n")
    with pytest.raises(RunFailed):
        side.check_alive("get profile")
    side.excuse_profile()
    assert (side.is_gone, side.stop()) == (True, None)
    assert (side.end.died, side.end.fault) == (False, "")
    assert side.end.log_errors == ["ERROR: cannot open the cache"]


def test_who_is_alive_when_the_profile_fails_still_has_to_stop_in_order(tmp_path):
    live = Profiled()
    side = LiveSide("one", None, live, tmp_path, lambda name: tmp_path / name)
    side.begin_profile()
    side.excuse_profile()
    live.is_alive = False
    assert not side.is_gone and side.stop() == f"side one: {Profiled.fault}"
    assert side.end.fault == Profiled.fault
