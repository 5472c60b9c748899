"""What 02-sweep is asked for, and its plan as a table."""

import pytest

from kvstudy import sweep
from kvstudy.errors import ExperimentError

SWEEP = "# Defaults\nlabel = ''\nresume = True\nprofile_name = None\nrate = None"


def test_a_sweep_without_parameters_takes_the_main_experiment():
    asked = sweep.asked(["", SWEEP])
    assert asked.experiment == {"experiment_file": str(asked.root / "experiments" / "reproduce.yaml")}
    assert (asked.label, asked.resume, asked.profile_name) == ("", True, None)


def test_a_sweep_hands_the_keys_to_the_experiment():
    asked = sweep.asked(["", SWEEP, "# Parameters\nrate = 5\nprofile_name = 'smoke'"])
    assert asked.experiment == {"rate": 5} and asked.profile_name == "smoke"


def test_a_wrong_label_is_an_error():
    with pytest.raises(ExperimentError, match="label=7"):
        sweep.asked(["", SWEEP, "# Parameters\nlabel = 7"])


def test_the_plan_is_a_table_with_a_row_for_every_run_in_their_order():
    experiment = sweep.experiment(sweep.asked(["", SWEEP]))
    table = sweep.plan_table(experiment)
    assert list(table["run"]) == list(range(1, len(table) + 1)) and set(table["workload"]) > {"unique_put"}
    assert "expected:" in sweep.described(experiment).data
