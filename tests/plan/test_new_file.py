"""The file that `kvstudy new` writes is an experiment, whatever the service is called."""

import pytest

from kvstudy.measure.new import write
from kvstudy.plan.experiment import Experiment


@pytest.mark.parametrize("name", ["my-service", "123", "1e3", "0x10", "2026-11-28", "null", "yes"])
def test_a_name_that_looks_like_something_else_stays_a_name(tmp_path, name):
    (tmp_path / "experiments").mkdir()
    file = write(name, tmp_path, "cat {port}", None, "tcp", "/v0/entity?id={key}")
    (subject,) = Experiment.load(file).subject
    assert (file.name, subject.name) == (f"{name}.yaml", name)
