import json

import pytest

from kvstudy.analyse.configuration import comparisons, configured
from kvstudy.analyse.tables import load, rebuild


@pytest.fixture
def compared(tmp_path, make_run):
    """Comparisons of the label before with after, whose processors were kept awake or not."""

    def of(before_awake, after_awake):
        for label, awake in (("before", before_awake), ("after", after_awake)):
            machine = {} if awake is None else {"processors_awake": awake}
            make_run(f"{label}-rep1", label=label, more={"machine.json": json.dumps(machine)})
        rebuild([make_run.root], tmp_path / "tidy", progress=False)
        tables = load(tmp_path / "tidy")
        return tables, comparisons(tables, "label", "before", "after")

    return of


def test_runs_whose_processors_were_kept_awake_are_compared(compared):
    assert len(compared(True, True)[1]) == 3  # p50, p99, p99.9


@pytest.mark.parametrize("asleep", [False, None], ids=["asked to sleep", "of before it was noted"])
def test_a_run_whose_processors_were_kept_awake_is_not_compared_with_one_whose_were_not(compared, asleep):
    tables, rows = compared(asleep, True)
    assert rows.empty
    assert configured(tables.runs)["configuration"].nunique() == 2


def test_runs_of_before_it_was_noted_are_compared_with_those_that_slept(compared):
    assert len(compared(None, False)[1]) == 3
