"""The measuring notebook refuses what it cannot do before it starts anything."""

from pathlib import Path

import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"conections": 7}, "unknown parameter: conections\n.*did you mean connections"),
        ({"connections": 1, "threads": 4}, "number of connections must be >= threads"),
        ({"duration": "five minutes"}, "not a duration"),
    ],
    ids=["unknown", "impossible", "mistyped"],
)
def test_a_wrong_parameter_ends_the_sweep_before_anything_is_built_or_launched(
    tmp_path, monkeypatch, parameters, message
):
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    # A project without a service: should the sweep get past its parameters, it could still launch nothing.
    for name in ("experiments", "notebooks"):
        (tmp_path / name).symlink_to(CHECKOUT / name)
    monkeypatch.setenv("KVSTUDY_ROOT", str(tmp_path))
    with pytest.raises(PapermillExecutionError, match=message) as failed:
        papermill.execute_notebook(
            str(CHECKOUT / "notebooks" / "02-sweep.ipynb"),
            str(tmp_path / "out.ipynb"),
            cwd=str(tmp_path),
            progress_bar=False,
            kernel_name="python3",
            parameters={"experiment_file": str(CHECKOUT / "experiments" / "reproduce.yaml")} | parameters,
        )
    assert failed.value.ename == "ExperimentError"
    assert "Traceback" not in str(failed.value).split("Exception encountered")[1]
    assert failed.value.exec_count < 5
