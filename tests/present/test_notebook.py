"""How a notebook begins: its parameters, refused when they are not its own."""

from dataclasses import replace

import pandas as pd
import pytest
from sample import empty_tables, sample_tables

from kvstudy.analyse import intervention
from kvstudy.errors import ExperimentError, KvstudyError
from kvstudy.present import notebook, summary

OWN = "# Defaults: …\nexperiment = None\nlabel = 'a'  # a comment\nlimit = 2.5"


def test_without_injected_parameters_the_defaults_hold():
    assert notebook.begin(["", OWN, "notebook.begin(In)"]) == {"experiment": None, "label": "a", "limit": 2.5}


def test_an_injected_parameter_takes_the_place_of_a_default():
    assert notebook.begin(["", OWN, "# Parameters\nlabel = 'b'\n", "notebook.begin(In)"])["label"] == "b"


def test_infinity_as_papermill_writes_it_is_read():
    assert notebook.begin(["", OWN, '# Parameters\nlimit = float("inf")'])["limit"] == float("inf")


def test_an_unknown_parameter_is_an_error_that_names_the_nearest():
    with pytest.raises(ExperimentError, match="unknown parameter: lable\n.*did you mean label"):
        notebook.begin(["", OWN, "# Parameters\nlable = 'b'"])


def test_executing_the_first_cell_again_in_jupyterlab_forgets_nothing():
    executed = [
        "",
        OWN,
        "# Parameters\nlabel = 'b'",
        "notebook.begin(In)",
        OWN.replace("'a'", "'c'"),
        "notebook.begin(In)",
    ]
    assert notebook.begin(executed)["label"] == "c"


def test_a_sweep_without_parameters_takes_the_main_experiment():
    parameters = notebook.sweep_parameters(["", "# Defaults\nlabel = ''\nresume = True\nrate = None"])
    assert parameters.experiment == {
        "experiment_file": str(parameters.root / "experiments" / "reproduce.yaml")
    }
    assert (parameters.label, parameters.resume, parameters.profile_name) == ("", True, None)


def test_a_sweep_hands_every_key_to_the_experiment_known_or_not():
    parameters = notebook.sweep_parameters(
        ["", "# Defaults\nlabel = ''", "# Parameters\nrtae = 5\nprofile_name = 'smoke'"]
    )
    assert parameters.experiment == {"rtae": 5}
    assert parameters.profile_name == "smoke"


def test_a_wrong_label_is_an_error():
    with pytest.raises(ExperimentError, match="label=7"):
        notebook.sweep_parameters(["", "# Defaults\nlabel = ''", "# Parameters\nlabel = 7"])


def test_outside_a_project_a_notebook_takes_the_one_that_it_was_installed_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KVSTUDY_ROOT", "")
    monkeypatch.delenv("KVSTUDY_ROOT")
    assert (
        notebook.sweep_parameters(["", "# Defaults\nlabel = ''"]).root / "notebooks" / "02-sweep.ipynb"
    ).is_file()


def test_a_root_that_was_named_wrongly_is_an_error_not_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("KVSTUDY_ROOT", str(tmp_path))
    with pytest.raises(KvstudyError, match="not a kvstudy project"):
        notebook.begin([""])


def test_scalability_is_read_off_the_service_and_not_off_the_empty_server(monkeypatch):
    found = sample_tables(profiled=False)
    servers = ["empty" if index % 3 == 0 else "kv-service" for index in range(len(found.runs))]
    monkeypatch.setattr(
        notebook,
        "all_tables",
        lambda: replace(found, runs=found.runs.assign(server=servers, closed_loop=True)),
    )
    assert set(notebook.closed_loops().runs["server"]) == {"kv-service"}


def test_runs_of_the_profile_smoke_are_named_shown_or_not():
    found = replace(sample_tables(profiled=False), smoke_shown=("other", "sample"), smoke_hidden=())
    assert (
        "**Smoke runs:** those of `sample` prove that everything works, not how fast it is."
        in notebook.source(found).data
    )
    assert (
        "Your runs of `sample` with the profile `smoke` are left out"
        in notebook.source(replace(found, smoke_shown=(), smoke_hidden=("sample",))).data
    )
    assert "moke" not in notebook.source(replace(found, smoke_shown=("other",))).data


def test_runs_that_go_up_to_saturation_are_those_of_its_experiment_else_trials_of_searches_else_the_main_experiments(
    monkeypatch,
):
    found = sample_tables()
    trials = found.runs["repeat"] == 2
    searched = replace(found, runs=found.runs.assign(search=trials.map({True: "{}", False: ""})))
    monkeypatch.setattr(notebook, "all_tables", lambda: searched)
    expected = set(searched.runs.loc[trials & ~searched.runs["profiled"], "run_id"])
    assert (
        set(notebook.towards_saturation().runs["run_id"]) == set(notebook.trials().runs["run_id"]) == expected
    )
    monkeypatch.setattr(notebook, "all_tables", lambda: found)
    monkeypatch.setattr(notebook, "tables", lambda: found)
    assert notebook.trials().runs.empty and set(notebook.towards_saturation().runs["run_id"]) == set(
        found.runs.loc[~found.runs["profiled"], "run_id"]
    )

    overloaded = replace(
        searched,
        runs=searched.runs.assign(
            experiment=[
                notebook.SATURATION if rate == 4000 else "other" for rate in searched.runs["offered_rate_rps"]
            ]
        ),
    )
    monkeypatch.setattr(notebook, "all_tables", lambda: overloaded)
    assert (
        set(notebook.towards_saturation().runs["offered_rate_rps"]) == {4000}
        and not notebook.towards_saturation().runs["profiled"].any()
    )


def test_what_a_page_draws_from_several_experiments_is_together_in_its_provenance(monkeypatch, tmp_path):
    found = sample_tables(profiled=False)
    found = replace(
        found,
        runs=found.runs.assign(
            experiment=["own" if rate == 1000 else "theirs" for rate in found.runs["offered_rate_rps"]]
        ),
    )
    folders = {
        run.run_id: tmp_path / "data" / ("raw" if run.experiment == "own" else "reference") / run.run_id
        for run in found.runs.itertuples()
    }
    monkeypatch.setattr(
        notebook,
        "all_tables",
        lambda: replace(found, folders=folders, source="data/raw (own, another) and data/reference"),
    )
    monkeypatch.setattr(notebook, "project_root", lambda: tmp_path)
    own, theirs = found.select(experiment="own"), found.select(experiment="theirs")
    both = notebook.together(own, theirs, own)
    assert (
        sorted(both.runs["run_id"]) == sorted(found.runs["run_id"])
        and both.source == "data/raw (own) and data/reference"
    )
    assert (notebook.together(own).source, notebook.together(theirs).source) == ("data/raw", "data/reference")


def test_in_the_pages_a_column_of_sentences_may_be_broken_into_lines_and_a_column_of_numbers_not(monkeypatch):
    monkeypatch.setenv(notebook.EXPORT_VARIABLE, "1")
    frame = pd.DataFrame(
        {
            "p99": ["1.24 ms"],
            "claim": ["requests handled asynchronously would let the service bear a higher load"],
        }
    )
    assert '"className": "sentence", "targets": [1]' in notebook.show(frame).data
    assert "sentence" not in notebook.show(frame[["p99"]]).data


def test_a_table_of_tall_rows_has_pages_and_says_above_itself_what_is_in_every_row(monkeypatch):
    """Two dozen runs with their sentences are a long way to scroll past."""
    monkeypatch.setenv(notebook.EXPORT_VARIABLE, "1")
    frame = pd.DataFrame({"run": ["20261122T105053Z-repeated-get-c4-t4-r02000-rep1"] * 24})
    frame.attrs["caption"] = "In every row: label <a>."
    told = notebook.show(frame).data
    assert '"pageLength": 10' in told and '"paging": true' in told and "label &lt;a&gt;" in told
    assert '"paging": false' in notebook.show(frame.head(notebook.TALL_ROWS_MAX)).data


def test_a_table_without_rows_says_what_is_missing_and_the_command_that_measures_it():
    nothing_held_off = summary.interventions(intervention.interventions(empty_tables()))
    assert notebook.show(nothing_held_off).data == (
        "Nothing was held off yet, so nothing can be called a cause. Measure it: `kvstudy run experiments/tail-intervention.yaml --profile reference`."
    )
    for frame in (summary.searches(empty_tables()), summary.held_shares(empty_tables())):
        assert "kvstudy run experiments/report-1.yaml" in notebook.show(frame).data
    assert "none of the runs on this page" in notebook.show(pd.DataFrame(columns=["a"])).data
