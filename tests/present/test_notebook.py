"""The tables of a notebook's cells, and how a frame is shown."""

import ast
import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from sample import empty_tables, sample_tables

from kvstudy.analyse import intervention
from kvstudy.errors import KvstudyError
from kvstudy.present import notebook, summary
from kvstudy.project import EXPORT_VARIABLE


def test_scalability_is_read_off_the_service_and_not_off_the_empty_server(monkeypatch):
    found = sample_tables(profiled=False)
    servers = ["empty" if index % 3 == 0 else "kv-service" for index in range(len(found.runs))]
    monkeypatch.setattr(
        notebook,
        "all_tables",
        lambda: replace(found, runs=found.runs.assign(server=servers, closed_loop=True)),
    )
    assert set(notebook.closed_loop_runs().runs["server"]) == {"kv-service"}


def test_runs_of_the_preset_smoke_are_named_shown_or_not():
    found = replace(sample_tables(profiled=False), smoke_shown=("other", "sample"), smoke_hidden=())
    assert (
        "**Smoke runs:** those of `sample` prove that everything works, not how fast it is."
        in notebook.source(found).data
    )
    assert (
        "Your runs of `sample` with the preset `smoke` are left out"
        in notebook.source(replace(found, smoke_shown=(), smoke_hidden=("sample",))).data
    )
    assert "moke" not in notebook.source(replace(found, smoke_shown=("other",))).data


def test_of_the_runs_that_do_not_count_the_interrupted_ones_are_counted_apart(tables):
    found = replace(tables, runs=tables.runs.assign(verdict="FAIL"))
    count = len(found.runs)
    assert f"; {count} of them invalid: grey" in notebook.source(found).data
    found.runs.loc[found.runs.index[:2], "outcome"] = "failed: interrupted"
    assert f"; {count} of them invalid (of these 2 interrupted): grey" in notebook.source(found).data


def test_a_service_whose_program_is_not_known_is_named_beside_its_runs():
    found = sample_tables(profiled=False)
    assert "Not known" not in notebook.source(found).data
    at_an_address = found.runs.assign(service_program='{"digest": "not recorded", "jdk": "not recorded"}')
    text = notebook.source(replace(found, runs=at_an_address.assign(server="mine"))).data
    assert "Not known: which program answered as `mine`." in text


def test_runs_up_to_saturation_are_its_experiments_else_trials_of_searches_else_the_main_experiments(
    monkeypatch,
):
    found = sample_tables()
    trials = found.runs["repeat"] == 2
    searched = replace(found, runs=found.runs.assign(search=trials.map({True: "{}", False: ""})))
    monkeypatch.setattr(notebook, "all_tables", lambda: searched)
    expected = set(searched.runs.loc[trials & ~searched.runs["profiled"], "run_id"])
    assert (
        set(notebook.runs_up_to_saturation().runs["run_id"])
        == set(notebook.trials().runs["run_id"])
        == expected
    )
    monkeypatch.setattr(notebook, "all_tables", lambda: found)
    monkeypatch.setattr(notebook, "tables", lambda: found)
    assert notebook.trials().runs.empty and set(notebook.runs_up_to_saturation().runs["run_id"]) == set(
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
        set(notebook.runs_up_to_saturation().runs["offered_rate_rps"]) == {4000}
        and not notebook.runs_up_to_saturation().runs["profiled"].any()
    )


def test_a_page_of_one_experiment_takes_nothing_of_others(monkeypatch):
    found = sample_tables()
    other = found.runs["repeat"] == 2
    runs = found.runs.assign(
        search=other.map({True: "{}", False: ""}),
        closed_loop=other,
        experiment=other.map({True: "a", False: "b"}),
    )
    both = replace(found, runs=runs.assign(generator="loadgen", server="mine"))
    monkeypatch.setattr(notebook, "all_tables", lambda: both)
    assert len(notebook.trials().runs) and len(notebook.runs_up_to_saturation().runs)
    mine, theirs = both.select(experiment="b"), both.select(experiment="a")
    assert notebook.trials(mine).runs.empty and notebook.closed_loop_runs(mine).runs.empty
    plain = set(mine.runs.loc[~mine.runs["profiled"], "run_id"])
    assert set(notebook.runs_up_to_saturation(mine).runs["run_id"]) == plain
    loops = set(theirs.runs.loc[~theirs.runs["profiled"], "run_id"])
    assert set(notebook.closed_loop_runs(theirs).runs["run_id"]) == loops
    assert notebook.closed_loop_runs().runs.empty, "no run of the store"


def test_what_a_page_draws_from_several_experiments_is_together_in_its_provenance(monkeypatch):
    found = sample_tables(profiled=False)
    found = replace(
        found,
        runs=found.runs.assign(
            experiment=["own" if rate == 1000 else "theirs" for rate in found.runs["offered_rate_rps"]]
        ),
    )
    mine = frozenset(found.runs.loc[found.runs["experiment"] == "own", "run_id"])
    every = replace(found, own=mine, source="data/raw (own, another) and data/reference")
    monkeypatch.setattr(notebook, "all_tables", lambda: every)
    own, theirs = found.select(experiment="own"), found.select(experiment="theirs")
    both = notebook.merge(own, theirs, own)
    assert (
        sorted(both.runs["run_id"]) == sorted(found.runs["run_id"])
        and both.source == "data/raw (own) and data/reference"
    )
    assert (notebook.merge(own).source, notebook.merge(theirs).source) == ("data/raw", "data/reference")
    told = [notebook.source(every.select(experiment=name)).data for name in ("own", "theirs")]
    assert "from `data/raw`;" in told[0] and "from `data/reference`;" in told[1], "whoever chose them"
    told = [summary.provenance(every.select(experiment=name))["value"].iloc[0] for name in ("own", "theirs")]
    assert [text.split(" from ")[1] for text in told] == ["data/raw", "data/reference"]


def test_in_the_pages_a_column_of_sentences_may_be_broken_into_lines_and_a_column_of_numbers_not(monkeypatch):
    monkeypatch.setenv(EXPORT_VARIABLE, "1")
    frame = pd.DataFrame(
        {
            "p99": ["1.24 ms"],
            "claim": ["requests handled asynchronously would let the service bear a higher load"],
        }
    )
    assert '"className": "sentence", "targets": [1]' in notebook.show(frame).data
    assert "sentence" not in notebook.show(frame[["p99"]]).data


def test_in_jupyterlab_words_stand_on_the_left_and_sentences_may_be_broken_into_lines(monkeypatch):
    shown = {}
    monkeypatch.setattr("itables.show", lambda _frame, **options: shown.update(options))
    monkeypatch.delenv(notebook.EXPORT_VARIABLE, raising=False)
    notebook.show(pd.DataFrame({"p99": [1.5], "check": ["no_steal"], "required": ["word " * 40]}))
    assert shown["columnDefs"] == [
        {"className": "dt-left", "targets": [1, 2]},
        {"className": "sentence", "targets": [2]},
    ]
    assert "classes" not in shown, "numbers stay whole, as itables has them by default"


def test_in_jupyterlab_the_names_of_a_rows_runs_stay_on_one_line(monkeypatch):
    shown = {}
    monkeypatch.setattr("itables.show", lambda _frame, **options: shown.update(options))
    monkeypatch.delenv(notebook.EXPORT_VARIABLE, raising=False)
    runs = " ".join(f"20261124T23200{repeat}Z-unique-put-c1-t1-r20000-rep{repeat}" for repeat in range(5))
    notebook.show(pd.DataFrame({"p99": ["1.24 ms"], "runs": [runs]}))
    assert shown["columnDefs"] == [{"className": "dt-left", "targets": [0, 1]}]


def test_columns_are_found_behind_those_of_an_index_that_is_shown(monkeypatch):
    shown = {}
    monkeypatch.setattr("itables.show", lambda _frame, **options: shown.update(options))
    monkeypatch.delenv(notebook.EXPORT_VARIABLE, raising=False)
    frame = pd.DataFrame({"a": [1], "b": [2], "p99": [1.5], "claim": ["word " * 40]})
    for index, place in (([], 3), (["a"], 3), (["a", "b"], 3)):
        notebook.show(frame.set_index(index) if index else frame)
        assert {"className": "sentence", "targets": [place]} in shown["columnDefs"], index
    notebook.show(frame.set_axis([7]))
    assert {"className": "sentence", "targets": [4]} in shown["columnDefs"], "numbers out of order"


def test_a_table_of_tall_rows_has_pages_and_says_above_itself_what_is_in_every_row(monkeypatch):
    """Two dozen runs with their sentences are a long way to scroll past."""
    monkeypatch.setenv(EXPORT_VARIABLE, "1")
    frame = pd.DataFrame({"run": ["20261122T105053Z-repeated-get-c4-t4-r02000-rep1"] * 24})
    frame.attrs["caption"] = "In every row: label <a>."
    told = notebook.show(frame).data
    assert '"pageLength": 10' in told and '"paging": true' in told and "label &lt;a&gt;" in told
    assert '"paging": false' in notebook.show(frame.head(notebook.TALL_ROWS_MAX)).data


def test_a_table_without_rows_says_what_is_missing_and_the_command_that_measures_it():
    nothing_held_off = summary.interventions(intervention.interventions(empty_tables()))
    assert notebook.show(nothing_held_off).data == (
        "Nothing was held off yet, so nothing can be called a cause. Measure it: `kvstudy run "
        "experiments/tail-intervention.yaml --preset reference`."
    )
    for frame in (summary.searches(empty_tables()), summary.held_shares(empty_tables())):
        assert "kvstudy run experiments/report-1.yaml" in notebook.show(frame).data
    assert "none of the runs on this page" in notebook.show(pd.DataFrame(columns=["a"])).data


@pytest.fixture
def make_run(tmp_path, monkeypatch):
    """Makes sealed runs of a project of this notebook's own."""
    for name in ("notebooks", "experiments"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("KVSTUDY_ROOT", str(tmp_path))
    monkeypatch.setattr(notebook, "_first_seen", {})
    maker = Path(__file__).parents[1] / "analyse" / "run_maker.py"
    spec = importlib.util.spec_from_file_location("made_runs", maker)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made.RunMaker(tmp_path / "data" / "raw")


@pytest.fixture
def said(monkeypatch):
    found = []
    monkeypatch.setattr(notebook, "display", lambda shown: found.append(shown.data))
    return found


def test_as_long_as_no_run_comes_a_notebook_reads_its_tables_once(make_run, said):
    make_run("20261120T204223Z-put-rep1")
    first, again = notebook.all_tables(), notebook.tables("rates")
    assert vars(first)["intervals"].stored is vars(again)["intervals"].stored and not said


def test_a_notebook_sees_runs_that_come_while_it_is_open_and_says_so_once(make_run, said):
    make_run("20261120T204223Z-put-rep1")
    before = notebook.all_tables()
    make_run("20261120T204323Z-put-rep2")
    now = notebook.all_tables()
    assert len(now.runs) == 2 and len(now.intervals) > len(before.intervals) > 0
    assert said == [notebook.MADE_ANEW] and len(notebook.all_tables().runs) == 2 and len(said) == 1


@pytest.mark.parametrize(
    "wanted",
    [
        {"workload": "ptu"},
        {"workload": ["unique_put", "ptu"]},
        {"workload": 12},
        {"offered_rate_rps": "1000"},
        {"offered_rate_rps": [[1000.0]]},
        {"workload": []},
        {"workload": "unique_put", "connections": 99},
    ],
    ids=str,
)
def test_a_value_that_no_run_has_is_an_error_with_those_that_there_are(wanted):
    found = sample_tables(profiled=False)
    with pytest.raises(KvstudyError, match="no run here") as error:
        notebook.filter_runs(found, **wanted)
    assert error.value.hint


def test_runs_are_chosen_by_a_value_or_several_and_none_takes_all():
    found = sample_tables(profiled=False)
    known = set(found.runs["workload"])
    one, *_ = known
    assert set(notebook.filter_runs(found, workload=one, offered_rate_rps=None).runs["workload"]) == {one}
    assert set(notebook.filter_runs(found, workload=sorted(known)).runs["workload"]) == known
    assert set(notebook.filter_runs(found, offered_rate_rps=1000).runs["offered_rate_rps"]) == {1000.0}
    assert notebook.filter_runs(empty_tables(), workload=one).runs.empty, "the page says that there is none"


def test_values_that_no_run_has_together_are_told():
    found = sample_tables(profiled=False)
    put = (found.runs["workload"] == "unique_put") & (found.runs["offered_rate_rps"] > 1000)
    found = found.only(found.runs.loc[put | (found.runs["workload"] != "unique_put"), "run_id"])
    with pytest.raises(KvstudyError, match="workload='unique_put', offered_rate_rps=1000"):
        notebook.filter_runs(found, workload="unique_put", offered_rate_rps=1000)


def test_a_name_that_no_experiment_has_is_an_error_and_one_without_runs_is_none(monkeypatch):
    found = sample_tables(profiled=False)
    monkeypatch.setattr(notebook, "all_tables", lambda: found)
    assert len(notebook.experiment_tables("sample", found).runs) == len(found.runs)
    assert notebook.experiments_tables(["peers", "handler"], found).runs.empty, "they are in experiments/"
    with pytest.raises(KvstudyError, match="no such experiment: 'peerss'") as error:
        notebook.experiment_tables("peerss", found)
    assert error.value.hint == "did you mean peers?"


def test_what_pages_ask_for_by_themselves_is_no_mistake_where_it_has_no_file(monkeypatch, tmp_path):
    found = sample_tables(profiled=False)
    monkeypatch.setattr(notebook, "all_tables", lambda: found)
    monkeypatch.setattr(notebook, "project_root", lambda: tmp_path)
    defaults = set()
    for page in ("01-instrument", "10-peers"):
        values = [node.value for node in ast.parse(code_cells(page)[0]).body if isinstance(node, ast.Assign)]
        defaults |= {value for value in map(ast.literal_eval, values) if isinstance(value, str)}
    assert defaults == notebook.OF_PAGES
    assert notebook.experiments_tables(sorted(defaults), found).runs.empty
    with pytest.raises(KvstudyError, match="no such experiment: 'handler'"):
        notebook.experiment_tables("handler", found)


def code_cells(page: str) -> list[str]:
    cells = json.loads((Path(__file__).parents[2] / "notebooks" / f"{page}.ipynb").read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("experiment", [["wal"], 12, {}, True])
def test_what_is_no_name_of_an_experiment_is_refused(experiment):
    with pytest.raises(KvstudyError, match="no name of an experiment"):
        notebook.tables(experiment)
    with pytest.raises(KvstudyError, match="no name of an experiment"):
        notebook.experiment_tables(experiment, sample_tables(profiled=False))
