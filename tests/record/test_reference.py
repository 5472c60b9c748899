"""What is committed: copied as it was sealed but for what only repeats the rest, and chosen by what the
machine did and by nothing else."""

import json

import pytest
from trial import TRIAL

from kvstudy import cli
from kvstudy.errors import ExperimentError, RunFolderError, SealBroken
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.run_plan import plan
from kvstudy.record import reference
from kvstudy.record.copies import BY_THE_MOMENT
from kvstudy.record.reference import publish
from kvstudy.record.run_folder import DUET, DUET_FACTS, REQUIRED_FACTS, RunWriter, sealed_runs
from kvstudy.record.verification import verify_all


@pytest.fixture
def measured(tmp_path):
    """``measured("rates", "run-1", steal=0.1, outcome=…)``: a sealed run under data/raw."""

    def seal(
        experiment: str,
        run_id: str,
        steal: float = 0.0,
        outcome: str = "completed",
        files: tuple[str, ...] = (),
        **facts,
    ):
        with RunWriter.create(tmp_path / "raw", experiment, run_id) as folder:
            folder.write_json(
                "run.json",
                dict.fromkeys(sorted(REQUIRED_FACTS))
                | {"schema_version": 2, "run_id": run_id, "outcome": outcome, **facts},
            )
            folder.write_json(
                "machine.json", {"load_during": {"steal_share_mean": steal, "foreign_cpu_share_mean": 0.0}}
            )
            for name in files:
                folder.write_text(name, f"{name}\n" * 100)
            return folder.seal()

    return seal


def ids(tmp_path) -> list[str]:
    return [run.run_id for run in sealed_runs(tmp_path / "reference")]


def test_runs_that_the_host_disturbed_are_left_out_and_failed_ones_are_not(measured, tmp_path):
    measured("rates", "run-1")
    measured("rates", "run-2", steal=0.2)
    measured("rates", "run-3", outcome="failed: generator stopped")
    assert [
        (one.experiment, one.copied, one.disturbed)
        for one in publish(tmp_path / "raw", tmp_path / "reference")
    ] == [("rates", 2, 1)]
    assert ids(tmp_path) == ["run-1", "run-3"]
    assert verify_all(tmp_path / "reference") == []


def test_the_runs_of_an_experiment_are_replaced_and_other_experiments_stay(measured, tmp_path):
    measured("rates", "run-1")
    measured("cache", "run-2")
    publish(tmp_path / "raw", tmp_path / "reference")
    measured("rates", "run-3")
    (tmp_path / "raw" / "rates" / "run-1").rename(tmp_path / "gone")
    publish(tmp_path / "raw", tmp_path / "reference", ("rates",))
    assert ids(tmp_path) == ["run-2", "run-3"]
    assert sorted(path.name for path in (tmp_path / "reference").iterdir()) == ["cache", "rates"]


def test_of_two_runs_of_one_identity_the_newest_is_taken_but_every_trial_of_a_search(measured, tmp_path):
    measured("rates", "run-1", identity="a")
    measured("rates", "run-2", identity="a")
    measured("rates", "run-3", identity="b", search={"method": "bisect"})
    measured("rates", "run-4", identity="b", search={"method": "bisect"})
    publish(tmp_path / "raw", tmp_path / "reference")
    assert ids(tmp_path) == ["run-2", "run-3", "run-4"]


def test_a_run_that_was_not_asked_for_is_neither_copied_nor_counted(measured, tmp_path):
    measured("rates", "run-1")
    measured("rates", "run-2", steal=0.5)
    (told,) = publish(tmp_path / "raw", tmp_path / "reference", asked_for=lambda run: run.run_id == "run-1")
    assert (told.copied, told.disturbed, ids(tmp_path)) == (1, 0, ["run-1"])


def test_a_run_that_is_not_as_it_was_sealed_stops_the_copy(measured, tmp_path):
    run = measured("rates", "run-1")
    (run.path / "machine.json").chmod(0o644)
    (run.path / "machine.json").write_text('{"load_during": {"steal_share_mean": 0.0}}')
    with pytest.raises(SealBroken, match="machine.json: changed after sealing"):
        publish(tmp_path / "raw", tmp_path / "reference")
    assert not (tmp_path / "reference").exists()


def test_an_experiment_without_a_run_that_was_asked_for_is_told_so_and_replaces_nothing(measured, tmp_path):
    measured("rates", "run-1")
    with pytest.raises(
        RunFolderError,
        match="^no run to publish: experiment=rates sealed=1, none of them of its preset reference\n",
    ):
        publish(
            tmp_path / "raw",
            tmp_path / "reference",
            asked_for=lambda _run: False,
            asked="its preset reference",
        )
    assert ids(tmp_path) == []


def test_what_measures_the_runs_that_are_lacking_is_of_the_preset_that_was_asked_for(measured, tmp_path):
    measured("rates", "run-1", steal=0.5)
    with pytest.raises(RunFolderError) as told:
        publish(tmp_path / "raw", tmp_path / "reference", preset="quick")
    assert told.value.hint == "kvstudy run experiments/rates.yaml --preset quick --resume --retries 2"


def test_an_experiment_of_which_every_run_was_disturbed_replaces_nothing(measured, tmp_path):
    measured("cache", "run-1")
    publish(tmp_path / "raw", tmp_path / "reference")
    measured("rates", "run-2", steal=0.5)
    with pytest.raises(RunFolderError, match="no undisturbed run to publish: experiment=rates runs=1"):
        publish(tmp_path / "raw", tmp_path / "reference")
    assert ids(tmp_path) == ["run-1"]


def test_more_than_a_clone_should_carry_is_refused_with_the_largest_named(measured, tmp_path, monkeypatch):
    measured("rates", "run-1")
    measured("cache", "run-2")
    publish(tmp_path / "raw", tmp_path / "reference", ("cache",))
    monkeypatch.setattr(reference, "REFERENCE_BYTES_MAX", 1000)
    with pytest.raises(RunFolderError, match="too large to be committed") as told:
        publish(tmp_path / "raw", tmp_path / "reference", ("rates",))
    assert "the largest is rates" in told.value.hint
    assert ids(tmp_path) == ["run-2"]


def test_what_only_repeats_the_rest_is_left_out_of_the_copy_and_of_its_seal(measured, tmp_path):
    run = measured(
        "rates", "run-1", files=("profile.jfr", "cpu.collapsed", "generator.json", "generator.txt")
    )
    (published,) = publish(tmp_path / "raw", tmp_path / "reference")
    copy = tmp_path / "reference" / "rates" / "run-1"
    names = {path.name for path in copy.iterdir()}
    assert names == {"SHA256SUMS", "run.json", "machine.json", "cpu.collapsed.gz", "generator.json.gz"}
    assert verify_all(tmp_path / "reference") == []
    assert all(
        (copy / name).read_bytes() == (run.path / name).read_bytes() for name in names - {"SHA256SUMS"}
    )
    assert set((copy / "SHA256SUMS").read_text().splitlines()) < set(
        (run.path / "SHA256SUMS").read_text().splitlines()
    )
    assert not (copy / "SHA256SUMS").stat().st_mode & 0o222
    assert verify_all(tmp_path / "raw") == []  # the run itself is as it was
    left_out = sum((run.path / name).stat().st_size for name in ("profile.jfr.gz", "generator.txt.gz"))
    assert published.size_bytes == sum(path.stat().st_size for path in run.path.iterdir()) - left_out


@pytest.mark.parametrize(("profile", "closed_loop"), [(None, False), (["cpu"], False), (None, True)])
def test_single_answers_are_copied_of_latency_runs_on_a_schedule_that_a_page_shows_by_the_moment(
    measured, tmp_path, profile, closed_loop
):
    measured(BY_THE_MOMENT, "run-1", files=("slowest.csv",), profile=profile, closed_loop=closed_loop)
    measured("rates", "run-2", files=("slowest.csv",), profile=profile, closed_loop=closed_loop)
    publish(tmp_path / "raw", tmp_path / "reference")
    assert not (tmp_path / "reference" / "rates" / "run-2" / "slowest.csv.gz").exists()
    assert (tmp_path / "reference" / BY_THE_MOMENT / "run-1" / "slowest.csv.gz").is_file() == (
        profile is None and not closed_loop
    )
    assert verify_all(tmp_path / "reference") == []


def test_a_text_without_a_json_beside_it_is_copied(measured, tmp_path):
    measured("rates", "run-1", files=("generator.txt",))
    publish(tmp_path / "raw", tmp_path / "reference")
    assert (tmp_path / "reference" / "rates" / "run-1" / "generator.txt.gz").is_file()


def test_without_runs_the_error_says_how_to_measure(tmp_path):
    with pytest.raises(RunFolderError, match="no sealed run here") as told:
        publish(tmp_path / "raw", tmp_path / "reference")
    assert told.value.hint == "measure first: make reference"


@pytest.fixture
def launch(tmp_path):
    """``launch("rates", "duet-1", steal=0.1)``: a sealed launch of a duet under data/raw."""

    def seal(experiment: str, run_id: str, steal: float = 0.0, **facts):
        with RunWriter.create(tmp_path / "raw", experiment, run_id) as folder:
            folder.write_json(
                "run.json",
                dict.fromkeys(sorted(DUET_FACTS))
                | {"schema_version": 3, "kind": DUET, "run_id": run_id, "outcome": "completed", **facts},
            )
            folder.write_json("machine.json", {"load_during": {"steal_share_mean": steal}})
            for name in ("slices.csv", "profile-a.jfr", "generator-put-rate.txt", "generator-put-rate.json"):
                folder.write_text(name, f"{name}\n" * 100)
            return folder.seal()

    return seal


def test_every_launch_of_a_duet_is_copied_whatever_preset_is_published_but_none_of_a_smoke_test(
    launch, tmp_path
):
    launch("rates", "duet-1")
    launch("rates", "duet-2", steal=0.3)
    launch("rates", "duet-3", preset="smoke")
    publish(tmp_path / "raw", tmp_path / "reference", asked_for=lambda run: False)
    assert ids(tmp_path) == ["duet-1", "duet-2"] and verify_all(tmp_path / "reference") == []
    files = {path.name for path in (tmp_path / "reference" / "rates" / "duet-1").iterdir()}
    assert files == {"run.json", "machine.json", "slices.csv.gz", "generator-put-rate.json.gz", "SHA256SUMS"}


def test_duets_replace_duets_alone_and_independent_runs_theirs(measured, launch, tmp_path):
    measured("rates", "run-1")
    publish(tmp_path / "raw", tmp_path / "reference")
    (tmp_path / "raw" / "rates" / "run-1").rename(tmp_path / "gone")
    launch("rates", "duet-1")
    publish(tmp_path / "raw", tmp_path / "reference")
    assert ids(tmp_path) == ["duet-1", "run-1"]
    (tmp_path / "raw" / "rates" / "duet-1").rename(tmp_path / "gone-too")
    measured("rates", "run-2")
    publish(tmp_path / "raw", tmp_path / "reference")
    assert ids(tmp_path) == ["duet-1", "run-2"] and verify_all(tmp_path / "reference") == []


def test_both_series_of_a_label_are_copied_and_an_interrupted_try_takes_no_completed_runs_place(
    measured, tmp_path
):
    measured("rates", "run-1", identity="a", label="before")
    measured("rates", "run-2", identity="a", label="after")
    measured("rates", "run-3", identity="a", label="after")
    measured("rates", "run-4", identity="a", label="after", outcome="failed: interrupted during measure")
    measured("rates", "run-5", identity="b", label="after", outcome="failed: service died")
    publish(tmp_path / "raw", tmp_path / "reference")
    assert ids(tmp_path) == ["run-1", "run-3", "run-5"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """One whose data is that of ``measured``."""
    root = tmp_path / "project"
    for folder in ("experiments", "notebooks"):
        (root / folder).mkdir(parents=True)
    (root / "data").symlink_to(tmp_path)
    monkeypatch.setenv("KVSTUDY_ROOT", str(root))
    return root


def test_without_names_what_has_no_file_or_no_such_preset_is_named_and_left_out(
    measured, project, tmp_path, capsys
):
    for name, presets in (("rates", {"reference": {"repeats": 1}}), ("mine", {"quick": {"repeats": 1}})):
        asked = {key: value for key, value in TRIAL.items() if key != "name"} | {"presets": presets}
        (project / "experiments" / f"{name}.yaml").write_text(json.dumps(asked))
    planned = plan(Experiment.load(project / "experiments" / "rates.yaml", "reference")).runs[0]
    measured("rates", "run-1", identity=planned.identity())
    measured("mine", "run-2")
    measured("warm-up", "run-3")
    cli.publish.callback((), "reference")
    assert ids(tmp_path) == ["run-1"]
    assert capsys.readouterr().err.splitlines() == [
        "left out: mine: its file has no preset reference",
        f"left out: warm-up: there is no {project / 'experiments' / 'warm-up.yaml'}",
    ]
    with pytest.raises(ExperimentError, match="no such preset: reference"):
        cli.publish.callback(("mine",), "reference")


def test_a_run_that_its_service_did_not_survive_is_copied_beside_its_later_survivor(measured, tmp_path):
    """Else a service that died in three of ten would be published as one that never did."""
    measured("rates", "run-1", identity="a", outcome="failed: service died during measure: signal 9")
    measured("rates", "run-2", identity="a")
    publish(tmp_path / "raw", tmp_path / "reference")
    assert ids(tmp_path) == ["run-1", "run-2"]
