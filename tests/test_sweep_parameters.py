"""What 02-sweep is asked for, and its plan as a table."""

import asyncio
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from kvstudy import sweep
from kvstudy.errors import ExperimentError

SWEEP = "# Defaults\nlabel = ''\nresume = True\npreset = None\nrate = None\nhosts_file = None\ngenerators = 1"


def test_a_sweep_without_parameters_takes_the_main_experiment():
    asked = sweep.read_parameters(["", SWEEP])
    assert asked.experiment == {"experiment_file": str(asked.root / "experiments" / "reproduce.yaml")}
    assert (asked.label, asked.resume, asked.preset) == ("", True, None)


def test_a_sweep_hands_the_keys_to_the_experiment():
    asked = sweep.read_parameters(["", SWEEP, "# Parameters\nrate = 5\npreset = 'smoke'"])
    assert asked.experiment == {"rate": 5} and asked.preset == "smoke"


def test_a_wrong_label_is_an_error():
    with pytest.raises(ExperimentError, match="label=7"):
        sweep.read_parameters(["", SWEEP, "# Parameters\nlabel = 7"])
    with pytest.raises(ExperimentError, match="not a label: 'queue<int>'\n  write it"):
        sweep.read_parameters(["", SWEEP, "# Parameters\nlabel = 'queue<int>'"])


@pytest.mark.parametrize(
    "wrong",
    ["preset = 3", "preset = ['quick']", "experiment_file = 5", "hosts_file = 5", "generators = True"],
)
def test_a_parameter_of_another_type_is_refused_with_its_name(wrong):
    name = wrong.split()[0]
    with pytest.raises(ExperimentError, match=f"wrong parameter: .*{name}="):
        sweep.read_parameters(["", f"{SWEEP}\nexperiment_file = None", f"# Parameters\n{wrong}"])


def test_a_sweep_takes_hosts_and_several_of_them_as_generators(tmp_path):
    file = tmp_path / "hosts.yaml"
    file.write_text(
        "ssh: {user: perf}\nhosts:\n  a: {address: 10.0.0.1, roles: [service]}\n"
        "  b: {address: 10.0.0.2, roles: [generator]}\n"
    )
    asked = sweep.read_parameters(["", SWEEP, f"# Parameters\nhosts_file = {str(file)!r}\ngenerators = 2"])
    assert asked.hosts.of("service") == ["a"] and asked.generators == 2
    assert "hosts_file" not in asked.experiment and "generators" not in asked.experiment
    with pytest.raises(ExperimentError, match="generators=2 hosts_file=None"):
        sweep.read_parameters(["", SWEEP, "# Parameters\ngenerators = 2"])


@pytest.mark.parametrize(
    ("cells", "now", "told"),
    [
        ([SWEEP, "preset = 'smoke'"], {"preset": "smoke"}, "another cell than the first: preset='smoke'"),
        (["preset = 'smoke'"], {"preset": "smoke"}, "the cell of the parameters was not executed"),
        ([SWEEP, "# Parameters\nrate = 5"], {"preset": None, "rate": 5}, None),
        ([SWEEP, "preset = 'smoke'", SWEEP], {"preset": None}, None),
    ],
    ids=["elsewhere", "renamed", "injected", "executed again"],
)
def test_what_another_cell_than_the_first_has_set_is_refused_and_not_left_out(monkeypatch, cells, now, told):
    class Shell:
        user_ns = {"In": ["", *cells], "other": 7} | now

    monkeypatch.setattr(sweep.extension, "get_ipython", Shell)
    if told is None:
        assert sweep.read_parameters().preset is None
        return
    with pytest.raises(ExperimentError, match=f"{told}\n.*begins with # Defaults"):
        sweep.read_parameters()


def test_the_plan_is_a_table_with_a_row_for_every_run_in_their_order():
    experiment = sweep.experiment(sweep.read_parameters(["", SWEEP]))
    table = sweep.plan_table(experiment)
    assert list(table["run"]) == list(range(1, len(table) + 1)) and set(table["workload"]) > {"unique_put"}
    assert "expected:" in sweep.describe(experiment).data


def test_how_a_build_goes_on_is_shown_as_text_and_not_as_an_error(monkeypatch, capsys):
    monkeypatch.setattr("kvstudy.measure.build.build", lambda _root: print("service: built", file=sys.stderr))
    sweep.build(sweep.read_parameters(["", SWEEP]))
    assert capsys.readouterr() == ("service: built\n", "")


@pytest.mark.parametrize(
    ("resume", "completed", "kept", "told"),
    [
        (True, 1, "They are sealed and kept; the run under way", "This cell, executed again, goes on"),
        (False, 0, "The run under way", "This notebook with resume = True goes on"),
    ],
)
def test_who_stops_a_sweep_is_told_what_is_kept_and_what_goes_on_with_it(
    monkeypatch, resume, completed, kept, told
):
    def interrupted(*_asked, goes_on_by, **_more):
        assert goes_on_by.lower() in told.lower()
        raise KeyboardInterrupt

    view = SimpleNamespace(completed=completed, planned=4, progress=None)
    monkeypatch.setattr(sweep, "SweepView", lambda: nullcontext(view))
    monkeypatch.setattr(sweep, "execute", interrupted)
    asked = sweep.read_parameters(["", SWEEP, f"# Parameters\nresume = {resume}"])
    stopped = asyncio.run(sweep.measure(sweep.experiment(asked), asked, watched=True))
    assert (
        stopped.data.startswith(f"**Stopped** after {completed} of 4 runs. {kept}") and told in stopped.data
    )
