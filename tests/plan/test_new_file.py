"""The file that `kvstudy new` writes is an experiment, whatever the service is called."""

import re
from pathlib import Path

import pytest

from kvstudy.errors import ExperimentError
from kvstudy.measure.compare import check_pairs, without_value, without_word
from kvstudy.measure.new import write
from kvstudy.plan.comparison import comparisons
from kvstudy.plan.experiment import Experiment


@pytest.mark.parametrize("name", ["my-service", "123", "1e3", "0x10", "2026-11-28", "null", "yes"])
def test_a_name_that_looks_like_something_else_stays_a_name(tmp_path, name):
    (tmp_path / "experiments").mkdir()
    file = write(name, tmp_path, "cat {port}", None, "tcp", "/v0/entity?id={key}")
    (subject,) = Experiment.load(file).subject
    assert (file.name, subject.name) == (f"{name}.yaml", name)
    first, second = Experiment.load(with_both_versions(file)).subject
    assert (first, second.name) == (subject, f"{name}-2")


def test_letters_of_every_script_stay_what_they_are(tmp_path):
    (tmp_path / "experiments").mkdir()
    command = "serve 'ü 漢 😀.py' {port}"
    (subject,) = Experiment.load(write("shop", tmp_path, command, None, "bereit 😀", "/{key}")).subject
    assert (subject.command, subject.ready.line) == (["serve", "ü 漢 😀.py", "{port}"], "bereit 😀")


def test_a_service_that_is_told_its_port_by_a_file_is_given_it_in_both_versions(tmp_path):
    (tmp_path / "experiments").mkdir()
    given = ["a.conf=my/a.conf", "b/c=d=e"]
    file = write("shop", tmp_path, "serve -p {dir}", None, "tcp", "/{key}", given=given)
    both = Experiment.load(with_both_versions(file)).subject
    assert [one.files for one in both] == 2 * [{"a.conf": "my/a.conf", "b/c": "d=e"}]


def with_both_versions(file):
    """As its comment says: without the # of the other version."""
    file.write_text(re.sub(r"^#(?=- |  )", "", file.read_text(), flags=re.MULTILINE))
    return file


@pytest.mark.parametrize("get", [None, "/health"])
@pytest.mark.parametrize("preset", ["quick", "full"])
def test_two_versions_of_a_service_are_compared_by_its_file(tmp_path, monkeypatch, get, preset):
    for folder in ("experiments", "notebooks"):
        (tmp_path / folder).mkdir()
    workloads = Path(__file__).parents[2] / "experiments" / "workloads"
    (tmp_path / "experiments" / "workloads").symlink_to(workloads)
    monkeypatch.setenv("KVSTUDY_ROOT", str(tmp_path))
    file = write("shop", tmp_path, "shop-1 {port}", None, "/health", "/items/{key}", get)
    with pytest.raises(ExperimentError, match="^one side only: shop has one subject: shop"):
        comparisons(Experiment.load(file, preset, compared=True))
    (duet,) = comparisons(Experiment.load(with_both_versions(file), preset, compared=True))
    assert duet.names == ("subject=shop", "subject=shop-2")
    assert check_pairs(duet) is None and without_word(duet) == without_value(duet) == []
    assert duet.at_most_s <= {"quick": 200, "full": 630}[preset]


def test_what_runs_at_an_address_is_given_no_second_version(tmp_path):
    (tmp_path / "experiments").mkdir()
    file = write("shop", tmp_path, None, "http://127.0.0.1:8080", "tcp", "/{key}")
    assert len(Experiment.load(with_both_versions(file)).subject) == 1
    assert "compare" not in file.read_text()
