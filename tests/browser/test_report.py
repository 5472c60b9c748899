"""The exported study as files: whole or not there, offline, within its sizes."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from kvstudy.errors import KvstudyError
from kvstudy.present import report
from kvstudy.present.figures.panels import TITLE_WORDS


class Addresses(HTMLParser):
    """Everything a page names: attributes that load or link, ids, and addresses in style and script text."""

    def __init__(self, text: str):
        super().__init__()
        self.named, self.ids, self.frames = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if (
                name in ("src", "href", "action", "poster", "data", "srcset", "xlink:href")
                and value is not None
            ):
                self.named.append(value)
            elif name == "srcdoc":
                self.frames.append(Addresses(value))
            elif name == "id":
                self.ids.add(value)
            elif name == "style" and "url(" in (value or ""):
                self.named.append(value)


def pages(study: Path) -> list[Path]:
    found = sorted(study.glob("*.html"))
    assert len(found) >= 6
    return found


def test_there_is_a_page_for_every_notebook_the_methodology_and_the_limits(study, project):
    stems = {path.stem for path in (project / "notebooks").glob("[0-9]*.ipynb")} - {"00-study"} | {
        "index",
        "methodology",
        "limits",
    }
    assert {page.stem for page in pages(study)} == stems


def test_no_page_names_an_address_outside_the_study(study):
    for page in pages(study):
        text = page.read_text()
        parsed = Addresses(text)
        for address in parsed.named + [address for frame in parsed.frames for address in frame.named]:
            assert not re.match(r"\s*(https?:|//|ftp:)", address), f"{page.name}: {address}"
        # Not in text or data either: a namespace is a name, not a place.
        assert set(re.findall(r"https?://[^\s\"'<>&)]+", text)) <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }, page.name
    ours = [path for path in (study / "assets").iterdir() if path.name not in ("plotly.min.js", "tables.js")]
    style = "".join(path.read_text() for path in ours)
    assert not re.search(r"https?://|@import|url\(", style)


def test_every_link_leads_to_a_page_and_a_place_in_it(study):
    ids = {page.name: Addresses(page.read_text()).ids for page in pages(study)}
    for page in pages(study):
        for address in Addresses(page.read_text()).named:
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            target = unquote(parts.path) or page.name
            assert (study / target).is_file(), f"{page.name}: {address}"
            if parts.fragment and target in ids:
                assert unquote(parts.fragment) in ids[target], f"{page.name}: {address}"


def test_pages_and_study_keep_to_their_sizes(study):
    assert max(path.stat().st_size for path in study.rglob("*.html")) < report.PAGE_BYTES_MAX
    assert sum(path.stat().st_size for path in study.rglob("*") if path.is_file()) < report.STUDY_BYTES_MAX


def test_the_measuring_notebook_is_shown_and_not_executed(study):
    text = (study / "02-sweep.html").read_text()
    assert "does not execute it" in text
    assert 'class="printed"' not in text


def test_no_page_shows_an_error_or_a_warning(study):
    for page in pages(study):
        text = page.read_text()
        assert "Traceback" not in text and "Warning" not in text, page.name
        assert "<summary>messages" not in text, page.name


def test_every_chart_says_what_was_found(study):
    for page in pages(study):
        for stored in re.findall(
            r'<figure class="chart"><figcaption>.*?</figcaption><div class="plot".*?'
            r'<script type="application/json">(.*?)</script>',
            page.read_text(),
            re.DOTALL,
        ):
            meta = json.loads(stored)["layout"]["meta"]
            assert meta["title"] and meta["finding"] and "drawn" in meta
            assert len(meta["title"].split()) <= TITLE_WORDS, f"{page.name}: {meta['title']}"
            named = re.sub(r"\bp\d[\d.]*|\breport \d", "", meta["title"])  # a percentile, a report
            assert not re.search(r"\d", named), f"{page.name}: {meta['title']}"


def _project_of(tmp_path: Path, project: Path, *cells) -> Path:
    """A project with the runs of ``project`` and one notebook of these cells."""
    for name in ("notebooks", "experiments"):
        (tmp_path / name).mkdir()
    (tmp_path / "data").symlink_to(project / "data")
    nbformat.write(new_notebook(cells=list(cells)), tmp_path / "notebooks" / "00-study.ipynb")
    return tmp_path


def test_a_notebook_that_fails_costs_its_own_page_and_the_page_says_why(tmp_path, project):
    root = _project_of(tmp_path, project, new_markdown_cell("# What was found?"))
    broken = new_notebook(
        cells=[
            new_code_cell("number = 1"),
            new_markdown_cell("# Why?"),
            new_code_cell("raise ValueError('no <b>number</b>')"),
        ]
    )
    nbformat.write(broken, root / "notebooks" / "04-broken.ipynb")
    out = root / "figures" / "study"
    with pytest.raises(KvstudyError, match="04-broken.ipynb failed in cell 2: ValueError: no") as told:
        report.export(root, out, progress=False)
    assert (out / "index.html").as_uri() in told.value.hint
    assert "What was found?" in (out / "index.html").read_text()
    page = (out / "04-broken.html").read_text()
    assert "Why?" in page and "could not be made" in page and "ValueError: no &lt;b&gt;number" in page
    assert [path.name for path in out.parent.iterdir()] == ["study"]


def test_an_export_leaves_the_process_in_its_folder(tmp_path, project, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [new_markdown_cell("# Why?"), new_code_cell("import time\ntime.sleep(0.5)")]
    (tmp_path / "project").mkdir()
    root = _project_of(tmp_path / "project", project, *cells)
    nbformat.write(new_notebook(cells=cells[:1]), root / "notebooks" / "01-shorter.ipynb")
    report.export(root, root / "figures" / "study", progress=False)
    assert Path.cwd() == tmp_path


def test_when_every_notebook_fails_the_old_study_stays_as_it_was(tmp_path, project):
    root = _project_of(
        tmp_path, project, new_markdown_cell("# Why?"), new_code_cell("raise ValueError('no')")
    )
    out = root / "figures" / "study"
    out.mkdir(parents=True)
    (out / "index.html").write_text("old")
    with pytest.raises(KvstudyError, match="00-study.ipynb failed in cell 1: ValueError: no"):
        report.export(root, out, progress=False)
    assert (out / "index.html").read_text() == "old"
    assert [path.name for path in out.parent.iterdir()] == ["study"]


def test_an_interrupted_export_leaves_nothing_half_written(tmp_path, project, monkeypatch):
    root = _project_of(tmp_path, project, new_markdown_cell("# Why?"))

    def interrupted(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "_write_assets", interrupted)
    with pytest.raises(KeyboardInterrupt):
        report.export(root, root / "figures" / "study", progress=False)
    assert list((root / "figures").iterdir()) == []


def test_a_folder_that_is_no_study_is_never_replaced(tmp_path, project):
    root = _project_of(tmp_path, project, new_markdown_cell("# Why?"))
    out = root / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    with pytest.raises(KvstudyError, match="not a study"):
        report.export(root, out, progress=False)
    assert (out / "thesis.txt").read_text() == "years of work"


def test_without_notebooks_the_error_says_where_they_were_looked_for(tmp_path):
    with pytest.raises(KvstudyError, match="no notebook to export: folder="):
        report.export(tmp_path, tmp_path / "study", progress=False)
