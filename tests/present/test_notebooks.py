"""The rules of the notebooks: parameters first, one idea per cell, code imported, outputs not kept."""

import ast
import re
from pathlib import Path

import nbformat
import papermill
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from kvstudy.present.extension import DEFAULTS, parameters
from kvstudy.present.figures.panels import TITLE_WORDS
from kvstudy.present.page import EXPLORE_TAG

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
CELLS_MAX, LINES_MAX = 38, 18  # 31 of the page, and what is there to be changed by a reader
PLAIN_MIN, PLAIN_TOTAL_MIN, PLAIN_STATEMENTS_MAX = 2, 18, 4
MEASURES = "02-sweep"

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def code(path: Path) -> list[ast.Module]:
    transform = TransformerManager().transform_cell
    return [ast.parse(transform(cell.source)) for cell in cells(path, "code")]


def plain(path: Path) -> list:
    """Cells of pandas and plotly alone: they call nothing of kvstudy but the tables of ``import kvstudy``."""
    of_study = {
        alias.asname or alias.name
        for tree in code(path)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("kvstudy")
        for alias in node.names
    } - {"sweep"}
    found = []
    for cell, tree in zip(cells(path, "code"), code(path), strict=True):
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        called = any(isinstance(node, ast.Call) for node in ast.walk(tree))
        if (
            called
            and not names & (of_study | {"get_ipython"})
            and "parameters" not in cell.metadata.get("tags", [])
        ):
            found.append(cell)
    return found


def test_there_are_notebooks():
    assert MEASURES in [path.stem for path in NOTEBOOKS]


@each
def test_the_parameters_come_first_one_literal_per_line(path):
    first = nbformat.read(path, as_version=4).cells[0]
    assert first.metadata.tags == ["parameters"]
    assert first.source.startswith(DEFAULTS)
    inspected = papermill.inspect_notebook(str(path))
    # What papermill sees, and refuses nothing of, is what the notebook reads.
    assert {name: ast.literal_eval(one["default"]) for name, one in inspected.items()} == parameters(
        [first.source]
    )


@each
def test_the_title_is_a_question(path):
    title = cells(path, "markdown")[0].source.splitlines()[0]
    assert re.fullmatch(r"# .+\?", title)


@each
def test_a_notebook_is_valid_short_and_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert len(notebook.cells) <= CELLS_MAX
    for cell in cells(path, "code"):
        assert not cell.outputs and cell.execution_count is None
        assert "parameters" in cell.metadata.get("tags", []) or len(cell.source.splitlines()) <= LINES_MAX


@each
def test_code_is_imported_not_written_in_the_notebook(path):
    for tree in code(path):
        for node in ast.walk(tree):
            assert not isinstance(
                node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While)
            )


@each
def test_a_notebook_has_cells_that_a_reader_can_change_and_a_turn_of_his_own(path):
    found = plain(path)
    assert len(found) >= PLAIN_MIN, [cell.source for cell in found]
    assert all(len(ast.parse(cell.source).body) <= PLAIN_STATEMENTS_MAX for cell in found)
    assert any(re.search(r"^##+ Your turn$", cell.source, re.MULTILINE) for cell in cells(path, "markdown"))


def test_there_is_enough_to_change():
    assert sum(len(plain(path)) for path in NOTEBOOKS) >= PLAIN_TOTAL_MIN


@each
def test_a_chart_on_a_page_has_a_title_of_few_words_and_no_number(path):
    for cell, tree in zip(cells(path, "code"), code(path), strict=True):
        if EXPLORE_TAG in cell.metadata.get("tags", []):  # for the reader's own, not on the page
            continue
        named = [node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "title"]
        for title in (node.value for node in named):
            assert isinstance(title, ast.Constant), ast.unparse(title)
            assert len(title.value.split()) <= TITLE_WORDS and not re.search(r"\d", title.value), title.value


@each
def test_no_chart_shades_a_connection_by_its_number_which_ranks_nothing(path):
    for tree in code(path):
        for node in ast.walk(tree):
            is_colour = isinstance(node, ast.keyword) and node.arg == "color"
            assert not (is_colour and ast.unparse(node.value) == "'connection'")


@each
def test_what_prepares_a_notebook_is_one_line_of_a_cell_that_jupyterlab_shows_folded(path):
    texts = [cell.source for cell in cells(path, "code")]
    (prepares,) = (cell for cell in cells(path, "code") if "%load_ext kvstudy" in cell.source)
    assert prepares.source.startswith("%load_ext kvstudy\n"), "the line that stays to be seen"
    assert prepares.metadata.jupyter.source_hidden, "or imports stand between the question and the answer"
    assert not [text for text in texts if re.search(r"\bIn\b", text)]


@each
def test_only_the_sweep_measures(path):
    names = {name for tree in code(path) for node in ast.walk(tree) for name in _imported(node)}
    measures = ("kvstudy.measure", "kvstudy.sweep", "subprocess")
    measuring = {name for name in names if name.startswith(measures) or name == "os"}
    assert bool(measuring) == (path.stem == MEASURES)


@each
def test_a_link_leads_to_a_file(path):
    for cell in cells(path, "markdown"):
        for target in re.findall(r"\]\(([^)#]+)\)", cell.source):
            assert (path.parent / target).is_file(), target


@each
def test_every_heading_has_text_or_a_figure_after_it_and_provenance_ends_the_page(path):
    headings = [
        line
        for cell in cells(path, "markdown")
        for line in cell.source.splitlines()
        if line.startswith("## ")
    ]
    assert headings[-1] == "## Provenance"


def test_the_sweep_has_every_key_of_an_experiment_as_parameter():
    from kvstudy.plan.experiment import Experiment

    sweep = next(path for path in NOTEBOOKS if path.stem == MEASURES)
    names = {statement.targets[0].id for statement in code(sweep)[0].body}
    assert Experiment.keys() <= names


def _imported(node) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module:
        return {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return set()
