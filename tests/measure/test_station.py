"""What a run asks of its stations, and what these do of themselves, without starting anything."""

from types import SimpleNamespace

import pytest
import trial

from kvstudy.measure.pinning import Pinning
from kvstudy.measure.run import Run
from kvstudy.measure.station import Station
from kvstudy.plan.run_plan import plan
from kvstudy.record.run_folder import RunWriter

COMMAND = {"name": "own", "command": ["server", "{port}"]}
ADDRESS = {"name": "own", "url": "http://127.0.0.1:8080"}
SPLIT = Pinning([0], [1], "service on core 0, generator on core 1")


@pytest.mark.parametrize(("subject", "is_pinned"), [(COMMAND, True), (ADDRESS, False)])
def test_what_runs_at_an_address_is_given_no_cores_and_its_generator_none_either(
    tmp_path, subject, is_pinned
):
    (planned,) = plan(trial.trial(subject=subject)).runs
    crew = SimpleNamespace(
        service=SimpleNamespace(station=SimpleNamespace(disk_facts=dict)),
        is_here=True,
        sees_service=True,
        begin=lambda *_: {},
        pinning=lambda *_: SPLIT,
    )
    run = Run(planned, SimpleNamespace(crew=crew, artifacts=SimpleNamespace(digests_of=lambda _: {})))
    run._begin(RunWriter.create(tmp_path, "trial", "run"))
    assert (run._pinning == SPLIT) == is_pinned
    assert is_pinned or (run._pinning.service, run._pinning.generator) == (None, None)


def test_a_service_that_was_launched_when_its_run_had_failed_already_is_stopped_at_the_end(tmp_path):
    stopped = []
    here = SimpleNamespace(stores=tmp_path / "stores")
    station = Station(here, SimpleNamespace(subjects={}), None)
    station.enter(tmp_path, "run")
    station._subject = SimpleNamespace(stop=lambda: stopped.append(station._store.exists()))
    station._store.mkdir(parents=True)
    station.end()
    assert stopped == [True] and not station._store.exists(), "before its store is dropped"
