"""How a notebook begins: its parameters, refused when they are not its own."""

from pathlib import Path

import nbformat
import plotly.express as px
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from kvstudy.errors import ExperimentError, KvstudyError
from kvstudy.present import extension
from kvstudy.project import EXPORT_VARIABLE

CHECKOUT = Path(__file__).resolve().parents[2]
OWN = "# Defaults: …\nexperiment = None\nlabel = 'a'  # a comment\nlimit = 2.5"


def test_without_injected_parameters_the_defaults_hold():
    assert extension.parameters(["", OWN]) == {"experiment": None, "label": "a", "limit": 2.5}


def test_an_injected_parameter_takes_the_place_of_a_default():
    assert extension.parameters(["", OWN, "# Parameters\nlabel = 'b'\n"])["label"] == "b"


def test_infinity_as_papermill_writes_it_is_read():
    assert extension.parameters(["", OWN, '# Parameters\nlimit = float("inf")'])["limit"] == float("inf")


def test_an_unknown_parameter_is_an_error_that_names_the_nearest():
    with pytest.raises(ExperimentError, match="unknown parameter: lable\n.*did you mean label"):
        extension.parameters(["", OWN, "# Parameters\nlable = 'b'"])


def test_a_name_beside_the_parameter_that_was_meant_is_told_and_none_of_ours_is(monkeypatch):
    assert extension.nearly_alike(["experiment", "label", "experimnt"]) == [("experimnt", "experiment")]
    assert extension.nearly_alike(["workload", "wrokload", "own_name"]) == [("wrokload", "workload")]
    for path in (CHECKOUT / "notebooks").glob("*.ipynb"):
        first = nbformat.read(path, as_version=4).cells[0].source
        assert extension.nearly_alike(extension.parameters([first])) == [], path.name
    told = []
    monkeypatch.setattr(extension, "_executed", lambda: ["", f"{OWN}\nlabl = 'b'"])
    monkeypatch.setattr(extension, "display", lambda shown: told.append(shown.data))
    extension.begin()
    assert len(told) == 1 and "`label` and `labl`" in told[0]


def test_a_parameter_by_its_older_name_is_told_the_newer_one():
    own = "# Defaults\nprofile = True\npreset = 'quick'"
    with pytest.raises(ExperimentError, match="unknown parameter: profile_name\n.*did you mean preset"):
        extension.parameters(["", own, "# Parameters\nprofile_name = 'smoke'"])


def test_executing_the_first_cell_again_in_jupyterlab_forgets_nothing():
    executed = ["", OWN, "# Parameters\nlabel = 'b'", "%load_ext kvstudy", OWN.replace("'a'", "'c'")]
    assert extension.parameters(executed)["label"] == "c"


def test_outside_a_project_a_notebook_takes_the_one_that_it_was_installed_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KVSTUDY_ROOT", "")
    monkeypatch.delenv("KVSTUDY_ROOT")
    extension.begin()
    assert extension.project_root() == CHECKOUT


def test_a_root_that_was_named_wrongly_is_an_error_not_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("KVSTUDY_ROOT", str(tmp_path))
    with pytest.raises(KvstudyError, match="not a kvstudy project"):
        extension.begin()


@pytest.mark.parametrize("said", [None, "light", "dark"])
def test_charts_follow_a_dark_jupyterlab_unless_their_theme_was_said(monkeypatch, said):
    told = []
    monkeypatch.delenv(EXPORT_VARIABLE, raising=False)
    monkeypatch.setenv("KVSTUDY_THEME", said) if said else monkeypatch.delenv("KVSTUDY_THEME", raising=False)
    monkeypatch.setattr(px.defaults, "height", None)
    monkeypatch.setattr(extension, "get_ipython", object)
    monkeypatch.setattr(extension, "display", lambda shown: told.append(shown.data))
    extension._look_of_jupyterlab()
    assert ("filter: invert" in told[0]) == (said is None)


def test_loaded_in_a_kernel_it_tells_a_mistake_in_two_lines_and_leaves_other_errors_whole(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    cells = [OWN, "# Parameters\nlable = 'b'", "%load_ext kvstudy", "1 / 0"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True)
    client.execute()
    mistake, other = (cell.outputs[-1] for cell in notebook.cells[2:])
    assert mistake["traceback"] == ["ExperimentError: unknown parameter: lable\n  did you mean label?"]
    assert len(other["traceback"]) > 1


def test_errors_end_a_batch(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    cells = [OWN, "# Parameters\nlable = 'b'", "%load_ext kvstudy"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with pytest.raises(CellExecutionError, match="unknown parameter"):
        NotebookClient(notebook, timeout=60, kernel_name="python3").execute()


def test_a_parameter_that_is_reckoned_has_what_the_kernel_made_of_it(monkeypatch):
    class Shell:
        user_ns = {"limit": 2000, "In": []}

    monkeypatch.setattr(extension, "get_ipython", Shell)
    assert extension.parameters(["", OWN.replace("2.5", "2 * 1000")])["limit"] == 2000
