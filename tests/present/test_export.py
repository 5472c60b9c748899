"""Writing the study ends at once when it is interrupted, and may be asked for one experiment alone."""

import re
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from kvstudy.analyse.tables import DUETS
from kvstudy.errors import KvstudyError
from kvstudy.present import report

sys.path.append(str(Path(__file__).resolve().parents[1] / "analyse"))

from duet_maker import DuetMaker
from run_maker import RunMaker

ASKED = "warm_up: 2s\nconnections: 1\nthreads: 1\nrate: 1000\nrepeats: 2\nseed: 1\n"


def test_a_kernel_that_dies_costs_its_own_page_alone(tmp_path, monkeypatch):
    def dies(*_, **__):
        raise DeadKernelError("Kernel died")

    source = tmp_path / "05-profiles.ipynb"
    monkeypatch.setattr(report.papermill, "execute_notebook", dies)
    with pytest.raises(KvstudyError, match="^05-profiles.ipynb was not executed to its end: Kernel died"):
        report._executed(source, new_notebook(), tmp_path, None, None)


def test_a_kernel_that_never_began_is_started_once_more(tmp_path, monkeypatch):
    source, started = tmp_path / "05-profiles.ipynb", []

    def never_begins(notebook, *_, **__):
        started.append(notebook)
        raise RuntimeError("Kernel died before replying to kernel_info")

    monkeypatch.setattr(report.papermill, "execute_notebook", never_begins)
    with pytest.raises(KvstudyError, match="was not executed to its end: Kernel died before replying"):
        report._executed(source, new_notebook(), tmp_path, None, None)
    assert len(started) == 2


def test_one_experiment_alone_has_its_own_pages_with_links_to_the_whole_study(tmp_path):
    RunMaker(tmp_path / "data" / "raw")(experiment="shop")
    (tmp_path / "notebooks").mkdir()
    for name, text in (
        ("00-study", "# What was found?"),
        ("03-percentiles", "# How?\n\n[tail](07-tail.ipynb), [explore](09-explore.ipynb)"),
        ("09-explore", "# What?\n\n[back](03-percentiles.ipynb)"),
    ):
        parameters = new_code_cell("experiment = None", metadata={"tags": ["parameters"]})
        shown = new_code_cell("experiment")
        python = {"language_info": {"name": "python"}}
        notebook = new_notebook(cells=[parameters, new_markdown_cell(text), shown], metadata=python)
        nbformat.write(notebook, tmp_path / "notebooks" / f"{name}.ipynb")
    out = tmp_path / "figures" / "shop"
    assert report.export(tmp_path, out, progress=False, experiment="shop") == out / "index.html"
    index, explore = (out / "index.html").read_text(), (out / "09-explore.html").read_text()
    assert sorted(path.name for path in out.glob("*.html")) == ["09-explore.html", "index.html"]
    assert "How?" in index and "shop" in index
    assert re.search(r'<p class="answer">p99 at [^<]*</p>', index) and 'class="answer"' not in explore
    assert 'href="09-explore.html' in index and 'href="index.html' in explore
    assert "tail, <a" in index and "07-tail.html" not in index, "there is no study to lead to"
    study = tmp_path / "figures" / "study"
    study.mkdir()
    (study / "07-tail.html").touch()
    for folder in (out, tmp_path / "elsewhere" / "deep" / "shop"):
        report.export(tmp_path, folder, progress=False, experiment="shop")
        for page in folder.glob("*.html"):
            for target in re.findall(r'(?:href|src)="([^"#:]+)["#]', page.read_text()):
                assert (folder / target).is_file(), (page.name, target)
        assert "/study/07-tail.html" in (folder / "index.html").read_text()


def test_pages_have_their_charts_whatever_the_reader_told_plotly(tmp_path, monkeypatch):
    monkeypatch.setenv("PLOTLY_RENDERER", "browser")
    RunMaker(tmp_path / "data" / "raw")()
    (tmp_path / "notebooks").mkdir()
    drawn = new_code_cell("import plotly.express as px\npx.line(y=[1, 2, 4], title='It grows')")
    notebook = new_notebook(
        cells=[new_markdown_cell("# How?"), drawn], metadata={"language_info": {"name": "python"}}
    )
    nbformat.write(notebook, tmp_path / "notebooks" / "00-study.ipynb")
    index = report.export(tmp_path, tmp_path / "figures" / "study", progress=False)
    assert "It grows" in index.read_text()


def test_pages_of_one_experiment_begin_with_what_its_file_asks_and_expects(tmp_path):
    notebook = new_notebook(cells=[new_markdown_cell("# How?\n\n**Expectation.** It bends.")])
    report._ask(notebook, tmp_path, "shop")
    assert len(notebook.cells) == 1  # nobody knows any more
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "shop.yaml").write_text(
        "question: Is the shop open?\nexpectation: p99 under 10 ms.\nworkload: put\nconnections: 4\n"
        "threads: 1\nrate: 1000\nduration: 3s\nwarm_up: 1s\nrepeats: 1\n"
    )
    report._ask(notebook, tmp_path, "shop")
    about, asked = (cell.source for cell in notebook.cells)
    assert about.endswith("**Expectation of this page.** It bends.")
    assert asked == "**Question of `shop`.** Is the shop open?\n\n**Its expectation.** p99 under 10 ms."


def test_an_experiment_that_nobody_measured_is_refused_before_the_runs_of_others_are_read(tmp_path):
    RunMaker(tmp_path / "data" / "raw")(experiment="shop")
    (tmp_path / "notebooks").mkdir()
    nbformat.write(new_notebook(), tmp_path / "notebooks" / "03-percentiles.ipynb")
    with pytest.raises(KvstudyError, match="no sealed run of shopp(.|\n)*did you mean shop[?]"):
        report.export(tmp_path, tmp_path / "figures" / "shopp", progress=False, experiment="shopp")
    assert not (tmp_path / "data" / "tidy").exists() and not (tmp_path / "figures" / "shopp").exists()


SEARCH = {"objective": {"mean": 0.01}, "lowest_rate_rps": 100, "highest_rate_rps": 9000, "purpose": "search"}


@pytest.mark.parametrize(
    "made, index, others",
    [
        (["duet"], "06-before-after", []),
        (["run", "duet"], "03-percentiles", ["06-before-after", "09-explore"]),
        (["run", "profiled"], "03-percentiles", ["05-flame-graphs", "09-explore"]),
        (["trial"], "04-capacity", ["09-explore"]),
        (["trial", "duet"], "04-capacity", ["06-before-after", "09-explore"]),
    ],
)
def test_an_experiment_has_a_page_of_each_kind_that_was_measured_and_its_index_is_the_first(
    tmp_path, made, index, others
):
    own = RunMaker(tmp_path / "data" / "raw")
    kinds = {"trial": {"search": SEARCH}, "profiled": {"profile": ["cpu"]}}
    for kind in made:
        if kind == "duet":
            DuetMaker(tmp_path / "data" / "raw")(experiment="shop")
        else:
            own(f"run-{kind}", experiment="shop", **kinds.get(kind, {}))
    (tmp_path / "notebooks").mkdir()
    python = {"language_info": {"name": "python"}}
    names = ("03-percentiles", "04-capacity", "05-flame-graphs", "06-before-after", "07-tail", "09-explore")
    for name in ("00-study", *names):
        parameters = new_code_cell("experiment = None", metadata={"tags": ["parameters"]})
        cells = [new_markdown_cell(f"# Of {name}"), parameters, new_code_cell("experiment")]
        nbformat.write(new_notebook(cells=cells, metadata=python), tmp_path / "notebooks" / f"{name}.ipynb")
    page = report.export(tmp_path, tmp_path / "figures" / "shop", progress=False, experiment="shop")
    assert sorted(path.stem for path in page.parent.glob("*.html")) == [*others, "index"]
    assert f"Of {index}" in page.read_text()


def test_the_page_of_a_duet_of_which_nothing_counts_begins_with_that(tmp_path):
    DuetMaker(tmp_path / "data" / "raw")(
        experiment="shop", machine={"load_during": {"foreign_cpu_share_mean": 0.72}}
    )
    (card,) = report._cards_of("shop", frozenset({DUETS}), tmp_path).values()
    assert card.page == "06-before-after" and card.sure == ("0 of 1 launch counts",)
    assert card.answer == "Cannot tell whether change differs from main: no launch counts."


def test_pages_of_the_reference_alone_have_a_bound_of_their_own(tmp_path, monkeypatch):
    assert report._bytes_max(tmp_path) == report.REFERENCE_BYTES_MAX == 15_000_000
    RunMaker(tmp_path / "data" / "raw")(experiment="shop")
    assert report._bytes_max(tmp_path) == report.STUDY_BYTES_MAX
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "index.html").write_text("ten letter")
    report._check_sizes(tmp_path / "study", 10)
    with pytest.raises(KvstudyError, match="study too large: size=10 limit=9") as study:
        report._check_sizes(tmp_path / "study", 9)
    monkeypatch.setattr(report, "PAGE_BYTES_MAX", 9)
    with pytest.raises(KvstudyError, match=r"page too large: index\.html size=10 limit=9") as page:
        report._check_sizes(tmp_path / "study", 10)
    assert all("out of data/raw" in told.value.hint for told in (study, page))


def test_a_folder_may_have_signs_of_an_address_in_its_name(tmp_path):
    root = tmp_path / "no. #1, 100% <b> & co"
    run_id = RunMaker(root / "data" / "raw")(experiment="shop").run_id
    (root / "figures" / "study").mkdir(parents=True)
    (root / "figures" / "study" / "07-tail.html").touch()
    notebook, out = new_notebook(cells=[new_markdown_cell(run_id)]), tmp_path / "pages"
    found = report._folders(notebook, root, out)
    assert "#" not in found["base"]
    assert (out / unquote(found["base"]) / found["of"][run_id]).resolve().is_dir()
    link = report._linked_to_study('<a href="07-tail.html#Doubts">tail</a>', [], "03-percentiles", root, out)
    address, _, fragment = re.fullmatch('<a href="(.*)">tail</a>', link)[1].partition("#")
    assert fragment == "Doubts" and (out / unquote(unescape(address))).resolve().is_file()


def test_a_question_may_have_names_that_look_like_tags(tmp_path):
    (tmp_path / "experiments").mkdir()
    text = "name: shop\nquestion: Is queue<int> faster?\nexpectation: As `list<int>`, within 5 %.\n"
    (tmp_path / "experiments" / "shop.yaml").write_text(f"{text}workload: put\nduration: 5s\n{ASKED}")
    notebook = new_notebook(cells=[new_markdown_cell("# How?")])
    report._ask(notebook, tmp_path, "shop")
    assert notebook.cells[1].source == (
        "**Question of `shop`.** Is queue\\<int> faster?\n\n**Its expectation.** As `list<int>`, within 5 %."
    )
