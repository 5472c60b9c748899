"""``import kvstudy``: the tables as frames that a reader selects from and changes, and docs/api.md as it is
typed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kvstudy
from kvstudy.analyse import schema
from kvstudy.api import _check_values, _wanted
from kvstudy.errors import KvstudyError

CHECKOUT = Path(__file__).resolve().parents[1]
PAGE = (CHECKOUT / "docs" / "api.md").read_text()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A project with the first two repeats and the profiled runs of the reference's main experiment, and
    nothing measured."""
    root = tmp_path_factory.mktemp("project")
    for borrowed in ("notebooks", "experiments"):
        (root / borrowed).symlink_to(CHECKOUT / borrowed)
    for run in (CHECKOUT / "data" / "reference" / "reproduce").iterdir():
        if run.name.endswith(("-rep1", "-rep2", "-profiled")):
            shutil.copytree(run, root / "data" / "reference" / "reproduce" / run.name)
    return root


@pytest.fixture(autouse=True)
def at_home(root, monkeypatch):
    monkeypatch.chdir(root)
    monkeypatch.delenv("KVSTUDY_ROOT", raising=False)


def test_importing_the_package_loads_no_library():
    program = (
        "import kvstudy, sys; print(sorted({'pandas', 'numpy', 'plotly', 'IPython'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_a_folder_of_its_name_where_python_starts_hides_no_installed_checkout(tmp_path):
    checkout, installed = tmp_path / "above" / "kvstudy", tmp_path / "installed"
    (checkout / "kvstudy").mkdir(parents=True)
    for file in ("pyproject.toml", "kvstudy/__init__.py"):
        shutil.copy(CHECKOUT / file, checkout / file)
    build = f"from setuptools import build_meta; build_meta.build_editable({str(tmp_path)!r})"
    subprocess.run(
        [sys.executable, "-c", build], cwd=checkout, capture_output=True, text=True, check=True, timeout=60
    )
    (wheel,) = tmp_path.glob("*.whl")
    shutil.unpack_archive(wheel, installed, "zip")
    program = (
        f"import site, sys; sys.path.insert(0, ''); site.addsitedir({str(installed)!r}); "
        "import kvstudy; print(kvstudy.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        cwd=checkout.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == str(checkout / "kvstudy" / "__init__.py"), done.stderr


def test_the_tables_are_found_by_completion_and_a_wrong_name_is_an_attribute_error():
    assert {"runs", "percentiles", "histogram", "load"} <= set(dir(kvstudy))
    with pytest.raises(AttributeError, match="persentiles"):
        _ = kvstudy.persentiles


def test_every_example_of_the_page_runs_on_the_reference():
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    for example in examples:
        exec(compile(example, "docs/api.md", "exec"), names)
    assert len(examples) >= 7
    assert len(names["runs"]) and len(names["p99"]) and len(names["tails"]) and len(names["flushes"])
    assert names["figure"].data and names["whole"].get_total_count() > names["early"].get_total_count() > 0
    assert names["at"].choice.stop_s == 3


def test_the_page_names_the_columns_that_the_tables_have():
    for table in schema.TABLES:
        told = re.search(rf"^\| `{table}` \| (.*) \|$", PAGE, re.MULTILINE)
        assert (re.findall(r"`(\w+)`", told[1]) == schema.names(table)) if told else table == "runs"


@pytest.mark.parametrize("table", ["runs", "percentiles", "slowest", "stacks", "events", "validity"])
def test_a_table_has_its_documented_columns(table):
    frame = getattr(kvstudy, table)()
    assert list(frame) == schema.names(table) == list(kvstudy.columns(table)["column"]) and len(frame)


def test_histograms_are_in_the_intervals_only_when_asked_for():
    assert "histogram" not in kvstudy.intervals() and len(kvstudy.intervals())
    assert kvstudy.intervals(columns=["histogram"])["histogram"].str.startswith("HIST").all()


@pytest.mark.parametrize("table", schema.TABLES)
def test_without_columns_there_are_rows_alone(table):
    read = getattr(kvstudy, table)
    assert read(columns=[]).shape == (len(read(columns=["run_id"])), 0)
    chosen = read(experiment="reproduce", method="PUT", columns=[])
    assert chosen.shape == (len(read(experiment="reproduce", method="PUT")), 0)


def test_columns_of_runs_select_runs_and_columns_of_the_table_select_rows():
    puts = set(kvstudy.runs(method="PUT")["run_id"])
    rows = kvstudy.percentiles(method="PUT", latency_kind="response", percentile=[50, 99], label=None)
    assert set(rows["run_id"]) <= puts and set(rows["percentile"]) == {50, 99}
    assert set(rows["latency_kind"]) == {"response"}
    failed = kvstudy.validity(verdict="WARN")
    assert set(failed["verdict"]) <= {"WARN"}, "a column that both have is the table's own"


@pytest.mark.parametrize("dtype", [schema.COUNT, schema.REAL])
@pytest.mark.parametrize("none", [float("nan"), np.nan, pd.NA])
def test_cells_without_a_value_are_asked_for_by_either_name_of_none(dtype, none):
    assert pd.Series([1, None], dtype=dtype).isin(_wanted({"unsent": none})["unsent"]).tolist() == [
        False,
        True,
    ]
    assert kvstudy.runs(unsent=none).empty, "every run here has one"


def test_a_frame_may_be_changed_and_the_next_one_is_as_before():
    runs = kvstudy.runs()
    runs["workload"] = "mine"
    assert "mine" not in set(kvstudy.runs()["workload"])


@pytest.mark.parametrize(
    "selection",
    [
        {"workload": "unique_put", "method": "GET"},  # each has runs, both together none
        {"experiment": "stall"},  # has a file, and was not measured here
        {"workload": "delete", "percentile": [50, 99]},
        {"method": "DELETE", "latency_kind": "own_lateness"},
        {"profiled": False, "closed_loop": True},
        {"run_id": []},
    ],
)
def test_what_may_be_and_is_not_is_an_empty_frame_with_all_columns(selection):
    found = kvstudy.percentiles(**selection)
    assert found.empty and list(found) == schema.names("percentiles")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kvstudy.runs(experiment="reprodcue"), "experiment='reprodcue'\n.*did you mean reproduce"),
        (lambda: kvstudy.runs(connections="4"), "connections='4'\n.*did you mean 4"),
        (lambda: kvstudy.runs(connections=[4, 5]), "connections=5\n.*the nearest is 4"),
        (lambda: kvstudy.runs(profiled="true"), "profiled='true'\n.*did you mean True"),
        (lambda: kvstudy.percentiles(percentile=[99, 101]), "percentile=101\n.*the nearest is 100"),
        (lambda: kvstudy.percentiles(percentile=float("inf")), "percentile=inf\n.*the nearest is 100"),
        (lambda: kvstudy.percentiles(percentile=-float("inf")), "percentile=-inf\n.*the nearest is [0-5]"),
        (lambda: kvstudy.runs(connections=10**400), "connections=1000*\n.*the nearest is 4$"),
        (lambda: kvstudy.runs(workload="GET"), "workload='GET'\n.*did you mean get"),
        (lambda: kvstudy.events(kind="flsh"), "kind='flsh'\n.*did you mean flush"),
        (lambda: kvstudy.events(experiment="stall", kind="flsh"), "kind='flsh'\n.*did you mean flush"),
        (lambda: kvstudy.validity(run_id="2026"), "run_id='2026'"),
        (lambda: _check_values("event", ["cpuu"], schema.empty("stacks")["event"]), "event='cpuu'\n.*cpu"),
    ],
)
def test_a_value_that_no_run_has_is_told_with_the_nearest(call, message):
    with pytest.raises(KvstudyError, match=f"no row has this value: {message}"):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kvstudy.runs(wrokload="put"), "no such column: wrokload\n.*did you mean workload"),
        (lambda: kvstudy.runs(columns=["latency_us"]), "no such column: latency_us"),
        (lambda: kvstudy.runs(source="mine"), "no such source: mine\n.*own"),
        (lambda: kvstudy.columns("run"), "no such table: run"),
        (lambda: kvstudy.histogram("2026"), "no such run: 2026"),
        (lambda: kvstudy.histogram(None), "no such run: None"),
        (lambda: kvstudy.runs(columns="run"), "no such column: run\n.*did you mean run_id"),
        (
            lambda: kvstudy.load(CHECKOUT / "data" / "reference" / "stall").select(metod="PUT"),
            "no such column: metod\n.*method",
        ),
        (lambda: kvstudy.histogram(kvstudy.runs()["run_id"].iloc[0], start_s=1e6), "no second of this run"),
        (lambda: kvstudy.histogram(kvstudy.runs()["run_id"].iloc[0], "wait"), "no histogram of this run"),
        (lambda: kvstudy.histogram(kvstudy.runs()["run_id"]), "^no such run: .*\n  name one run"),
        (lambda: kvstudy.histogram(kvstudy.runs()["run_id"].iloc[0], start_s="0"), "not a time: start_s='0'"),
        (lambda: kvstudy.histogram("2026", of=3), "not tables: of=3\n  give what kvstudy.load returned"),
        (lambda: kvstudy.runs(source=["own"]), r"no such source: \['own'\]"),
        (lambda: kvstudy.runs(label=[["a"]]), r"not a value of a column: label=\['a'\]"),
        (lambda: kvstudy.runs(columns=[1]), "no such column: 1"),
        (lambda: kvstudy.columns(["runs"]), r"no such table: \['runs'\]"),
        (lambda: kvstudy.load(None), "not a path: None"),
        (lambda: kvstudy.load(""), "not a path: ''"),
        (lambda: kvstudy.load("~nobody-of-this-name/runs"), "no such folder: ~nobody"),
        (lambda: kvstudy.load("x" * 5000), "no such folder: xxx"),
        (lambda: kvstudy.load(CHECKOUT / "README.md"), "not a folder: .*README.md\n  name a run folder"),
        (
            lambda: kvstudy.events(run_id=kvstudy.runs()),
            r'^not a value of a column: run_id=.*\n  .*run_id=frame\["run_id"\]',
        ),
        (lambda: kvstudy.dataset("events", run_id={"run_id": 1}), "not a value of a column: run_id={"),
    ],
)
def test_a_mistake_is_told_in_a_line_with_what_to_do(call, message):
    with pytest.raises(KvstudyError, match=message):
        call()


def test_where_nothing_was_measured_a_command_is_named_that_can_be_typed(tmp_path, monkeypatch):
    for folder in ("notebooks", "experiments"):
        (tmp_path / folder).symlink_to(CHECKOUT / folder)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        KvstudyError, match="no sealed run of any experiment(.|\n)*experiments/reproduce.yaml$"
    ):
        kvstudy.runs()


def test_a_histogram_holds_every_answer_of_the_run_and_its_seconds_add_up():
    run = kvstudy.runs(profiled=False).iloc[0]
    whole = kvstudy.histogram(run["run_id"])
    count = kvstudy.intervals(run_id=run["run_id"], latency_kind="response")["count"].sum()
    early = kvstudy.histogram(run["run_id"], stop_s=3)
    late = kvstudy.histogram(run["run_id"], start_s=3)
    assert whole.get_total_count() == count == early.get_total_count() + late.get_total_count()
    tabled = kvstudy.percentiles(run_id=run["run_id"], latency_kind="response", percentile=99)
    assert whole.get_value_at_percentile(99) == pytest.approx(tabled["latency_us"].iloc[0], rel=0.002)


def test_runs_that_come_are_in_the_next_call(root):
    before = kvstudy.runs()
    gone = next((root / "data" / "reference" / "reproduce").iterdir())
    aside = root / gone.name
    gone.rename(aside)
    assert len(kvstudy.runs()) == len(before) - 1 and gone.name not in set(kvstudy.runs()["run_id"])
    aside.rename(gone)
    assert kvstudy.runs().equals(before)
