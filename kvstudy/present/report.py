"""The HTML study: executes the analysing notebooks, writes a page each and what they share, and swaps the
whole folder in.

    figures/study/index.html            00-study: the findings
    figures/study/NN-name.html          one page per notebook; 02-sweep measures and is shown, not executed
    figures/study/methodology.html      METHODOLOGY.md, and limits.html LIMITS.md
    figures/study/assets/               plotly.min.js, tables.js, our styles and scripts: nothing else is
                                        loaded, from anywhere

Everything is written into a hidden folder beside the study and renamed at the end: an interrupted export
leaves the old study, or none. A notebook that fails costs its own page, which then says why; the others are
written. Notebooks that analyse start no process but readers of new runs, so an export measures nothing.
"""

import os
import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import chdir
from copy import deepcopy
from html import escape
from pathlib import Path
from urllib.parse import quote

import nbformat
import papermill
from jupyter_client.manager import AsyncKernelManager
from nbformat.v4 import new_markdown_cell, new_notebook
from papermill.exceptions import PapermillExecutionError
from plotly.offline import get_plotlyjs
from tqdm import tqdm

import kvstudy
from kvstudy import workers
from kvstudy.analyse.tables import DUETS, PROFILES, RUNS, TRIALS, kinds_measured, study_tables
from kvstudy.errors import InputError, KvstudyError
from kvstudy.plan.experiment import Experiment
from kvstudy.present import cards
from kvstudy.present.kernels import Copies, imported_by
from kvstudy.present.markdown import without_tags
from kvstudy.present.page import LEAD, Entry, page_of, title_of
from kvstudy.project import EXPORT_VARIABLE, ROOT_VARIABLE, raw_root, study_root
from kvstudy.record.run_folder import SEAL
from kvstudy.record.swap import replacing

MEASURING = "02-sweep"
FIRST = "00-study"
# The pages of one experiment alone, by what there is of it; the first is its index.
OF_ONE = {
    RUNS: ("03-percentiles", "09-explore"),
    TRIALS: ("04-capacity", "09-explore"),
    PROFILES: ("05-flame-graphs",),
    DUETS: ("06-before-after",),
}
DOCUMENTS = ("METHODOLOGY.md", "LIMITS.md")
KERNELS = 2
# jupyter_client draws a kernel's ports and gives them up again; another program may take one before it does.
KERNEL_NEVER_BEGAN = "Kernel died before replying"
FEWER_RUNS = "move runs that it can do without out of data/raw while it is written"
PAGE_BYTES_MAX = 8_000_000
STUDY_BYTES_MAX = 40_000_000  # a reader's own runs may be many more than …
REFERENCE_BYTES_MAX = 15_000_000  # … the committed ones
_ASSETS = Path(__file__).parent / "assets"
_LINK = re.compile(
    r'<a href="(?P<page>[0-9]{2}-[a-z-]+)\.html(?P<rest>[^"]*)"(?P<more>[^>]*)>(?P<text>.*?)</a>', re.DOTALL
)
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[A-Za-z0-9._-]+")


def export(project_root: Path, out_dir: Path, progress: bool = True, experiment: str | None = None) -> Path:
    """Writes the study of ``project_root`` to ``out_dir`` and returns its index.html. ``experiment``: only
    those of OF_ONE.

    KvstudyError when there is no run to show, every notebook fails, or a page outgrows its limit; ``out_dir``
    is then as before. And when some notebook fails: then the study is written, and the page of that notebook
    says what went wrong.
    """
    sources = sorted((project_root / "notebooks").glob("[0-9][0-9]-*.ipynb"))
    if experiment is not None:
        kinds = kinds_measured(experiment, project_root / "data", progress, workers.processes)
        of_one = {page for kind in kinds for page in OF_ONE[kind]}
        sources = [source for source in sources if source.stem in of_one]
    if not sources:
        raise KvstudyError(f"no notebook to export: folder={project_root / 'notebooks'}")
    out_dir = out_dir.resolve()
    is_study = (out_dir / "index.html").is_file()
    if out_dir.exists() and not is_study and (not out_dir.is_dir() or any(out_dir.iterdir())):
        raise InputError(f"not a study, will not be replaced: {out_dir}", "name a new folder")
    with replacing(out_dir) as partial:
        executed, failed = _all_executed(sources, project_root, progress, experiment)
        if len(failed) == sum(source.stem != MEASURING for source in sources):
            raise next(iter(failed.values()))
        first = FIRST if experiment is None else sources[0].stem
        answers = _cards(executed) if experiment is None else _cards_of(experiment, kinds, project_root)
        _write_pages(partial, executed, answers, project_root, out_dir, first)
        _write_assets(partial / "assets")
        _check_sizes(partial, _bytes_max(project_root))
    if failed:
        raise KvstudyError(
            "; ".join(error.message for error in failed.values()),
            f"the other pages are written: {(out_dir / 'index.html').as_uri()}; see it with: jupyter "
            f"lab notebooks/{next(iter(failed))}.ipynb",
        )
    return out_dir / "index.html"


def _all_executed(
    sources: list[Path], root: Path, progress: bool, experiment: str | None
) -> tuple[dict[str, nbformat.NotebookNode], dict[str, KvstudyError]]:
    """Notebook by name, in order, and why those that failed did. Two kernels at a time, since each waits for
    the other side."""
    notebooks = {source: nbformat.read(source, as_version=4) for source in sources}
    analysing = {source: notebook for source, notebook in notebooks.items() if source.stem != MEASURING}
    if experiment is None:  # once, before kernels would each build them
        study_tables(root / "data", progress=progress, spread=workers.processes)
    # The kernel gets this environment; it has to find the same package as the exporter, wherever that was
    # started.
    package = str(Path(kvstudy.__file__).resolve().parents[1])
    given = {
        EXPORT_VARIABLE: "1",
        ROOT_VARIABLE: str(root),
        "PLOTLY_RENDERER": "plotly_mimetype",  # else plotly asks, when it is imported, who shows its charts
        "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]),
    }
    kept = {name: os.environ.get(name) for name in given}
    os.environ |= given
    try:
        with (
            chdir(root),  # papermill changes to it and back, in two threads whose turns may cross
            Copies(imported_by(analysing.values())) as copies,
            ThreadPoolExecutor(KERNELS) as pool,
            tqdm(total=len(analysing), desc="executing notebooks", disable=not progress, leave=False) as bar,
        ):
            running = {
                source: pool.submit(_executed, source, notebook, root, experiment, copies.manager)
                for source, notebook in analysing.items()
            }
            try:
                for future in as_completed(running.values()):
                    if future.exception() and not isinstance(future.exception(), KvstudyError):
                        raise future.exception()
                    bar.update()
            except BaseException:
                # Nobody who interrupts waits for the notebooks under way.
                pool.shutdown(wait=False, cancel_futures=True)
                copies.end()
                raise
        failed = {source: future.exception() for source, future in running.items() if future.exception()}
        executed = {source: future.result() for source, future in running.items() if source not in failed}
        pages = {
            source: _page_of_failure(notebooks[source], source.stem, failed[source]) for source in failed
        }
        shown = notebooks | executed | pages
        return {source.stem: shown[source] for source in sources}, {
            source.stem: error for source, error in failed.items()
        }
    finally:
        for name, value in kept.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _run(
    notebook: nbformat.NotebookNode, root: Path, parameters: dict, manager: type[AsyncKernelManager]
) -> nbformat.NotebookNode:
    return papermill.execute_notebook(
        deepcopy(notebook),
        None,
        parameters=parameters,
        cwd=str(root),
        progress_bar=False,
        log_output=False,
        kernel_name="python3",
        kernel_manager_class=manager,
        extra_arguments=["--log-level=CRITICAL"],
    )


def _executed(
    source: Path,
    notebook: nbformat.NotebookNode,
    root: Path,
    experiment: str | None,
    manager: type[AsyncKernelManager],
) -> nbformat.NotebookNode:
    if experiment is not None:  # what leads the study's page may be of all experiments
        for cell in notebook.cells:
            cell.metadata["tags"] = [tag for tag in cell.metadata.get("tags", []) if tag != LEAD]
        _ask(notebook, root, experiment)
    parameters = {} if experiment is None else {"experiment": experiment}
    try:
        try:
            return _run(notebook, root, parameters, manager)
        except RuntimeError as error:
            if not str(error).startswith(KERNEL_NEVER_BEGAN):
                raise
            return _run(notebook, root, parameters, manager)
    except PapermillExecutionError as error:
        raise KvstudyError(
            f"{source.name} failed in cell {error.exec_count}: {error.ename}: {error.evalue}",
            f"see it with: jupyter lab {source}",
        ) from None
    except (RuntimeError, TimeoutError) as error:  # of a kernel that died, or did not answer
        raise KvstudyError(
            f"{source.name} was not executed to its end: {error}",
            "where memory was short: close something, and make the pages again",
        ) from None


def _ask(notebook: nbformat.NotebookNode, root: Path, name: str) -> None:
    """What the experiment's file asks and expects, behind what its page is about: whoever wrote it looks for
    that first. Nothing where there is no such file any more, or it is none."""
    try:
        one = Experiment.load(root / "experiments" / f"{name}.yaml")
    except KvstudyError:
        return
    place, about = next(
        (place, cell) for place, cell in enumerate(notebook.cells) if cell.cell_type == "markdown"
    )
    about.source = about.source.replace("**Expectation.**", "**Expectation of this page.**")
    asked = f"**Question of `{name}`.** {without_tags(one.question.strip())}"
    expected = f"**Its expectation.** {without_tags(one.expectation.strip())}"
    notebook.cells.insert(place + 1, new_markdown_cell(f"{asked}\n\n{expected}"))


def _page_of_failure(
    notebook: nbformat.NotebookNode, name: str, error: KvstudyError
) -> nbformat.NotebookNode:
    """The notebook's title, and what went wrong."""
    title = title_of(notebook, name)
    return new_notebook(
        cells=[
            new_markdown_cell(
                f"# {title}\n\n**This page could not be made.** The others do not depend on it.\n\n"
                f"~~~~text\n{error}\n~~~~"
            )
        ]
    )


def _write_pages(
    folder: Path,
    executed: dict[str, nbformat.NotebookNode],
    answers: dict[str, cards.Card],
    root: Path,
    out_dir: Path,
    first: str,
) -> None:
    for text in DOCUMENTS:
        if (root / text).is_file():
            stem = text.removesuffix(".md").lower()
            executed = executed | {
                stem: new_notebook(cells=[new_markdown_cell((root / text).read_text(encoding="utf-8"))])
            }
    titles = {stem: _menu_title(stem, notebook) for stem, notebook in executed.items()}
    for stem, notebook in executed.items():
        pages = [Entry(_href(other, first), title, here=other == stem) for other, title in titles.items()]
        if stem == MEASURING:
            notebook.cells.insert(
                2, new_markdown_cell("*This notebook measures. The study shows it and does not execute it.*")
            )
        text = page_of(
            notebook,
            pages,
            "Written by `kvstudy report` from sealed runs.".replace("`", ""),
            card=answers.get(stem),
            folders=_folders(notebook, root, out_dir),
        )
        (folder / _href(stem, first)).write_text(
            text if first == FIRST else _linked_to_study(text, executed, first, root, out_dir),
            encoding="utf-8",
        )


def _cards(executed: dict[str, nbformat.NotebookNode]) -> dict[str, cards.Card]:
    """The answers that the first notebook gave, by page."""
    outputs = (
        [output for cell in executed[FIRST].cells for output in cell.get("outputs", [])]
        if FIRST in executed
        else []
    )
    stored = [output["data"][cards.MIME] for output in outputs if cards.MIME in output.get("data", {})]
    return cards.read(stored[0]) if stored else {}


def _cards_of(experiment: str, kinds: frozenset[str], root: Path) -> dict[str, cards.Card]:
    """The answers of the experiment's own runs and of its last duet."""
    from kvstudy.present import duets, headlines  # which the whole study needs in its kernels alone

    found = {}
    if kinds != {DUETS}:
        found |= headlines.of_experiment(study_tables(root / "data", experiment, progress=False))
    if shown := duets.chosen(experiment, data_root=root / "data"):
        found["06-before-after"] = duets.card(shown)
    return found


def _folders(notebook: nbformat.NotebookNode, root: Path, out_dir: Path) -> dict:
    """Where the runs lie that the page names, seen from the page."""
    named = set(_RUN_ID.findall(nbformat.writes(notebook)))
    data = root / "data"
    found = {
        path.name: path.relative_to(data).as_posix()
        for place in ("raw", "reference")
        for path in (data / place).glob("*/*")
        if path.name in named
    }
    return {"base": _address(data, out_dir), "of": found}


def _address(path: Path, from_dir: Path) -> str:
    """Of ``path`` in a page in ``from_dir``: a # or % in the name of a folder is no sign of an address."""
    return quote(Path(os.path.relpath(path, from_dir)).as_posix())


def _menu_title(stem: str, notebook: nbformat.NotebookNode) -> str:
    number = stem.split("-")[0]
    title = title_of(notebook, stem)
    return f"{int(number)} · {title}" if number.isdigit() else title


def _href(stem: str, first: str) -> str:
    return "index.html" if stem == first else f"{stem}.html"


def _linked_to_study(text: str, here: Iterable[str], first: str, root: Path, out_dir: Path) -> str:
    """Links to pages that are not here lead to the whole study of the project, where it has them; else their
    text stays alone."""
    study = study_root(root)

    def linked(link: re.Match) -> str:
        page = link["page"]
        if page in here:
            target = _href(page, first)
        elif (study / _href(page, FIRST)).is_file():
            target = escape(_address(study / _href(page, FIRST), out_dir))
        else:
            return link["text"]
        return f'<a href="{target}{link["rest"]}"{link["more"]}>{link["text"]}</a>'

    return _LINK.sub(linked, text)


def _write_assets(folder: Path) -> None:
    import itables.options
    from itables.javascript import generate_init_offline_itables_html

    folder.mkdir()
    for asset in _ASSETS.iterdir():
        shutil.copyfile(asset, folder / asset.name)
    (folder / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
    script = generate_init_offline_itables_html(itables.options.dt_bundle)
    (folder / "tables.js").write_text(
        script[script.index(">") + 1 : script.index("</script>")], encoding="utf-8"
    )


def _bytes_max(root: Path) -> int:
    has_own = any(raw_root(root).glob(f"*/*/{SEAL}"))
    return STUDY_BYTES_MAX if has_own else REFERENCE_BYTES_MAX


def _check_sizes(folder: Path, limit: int) -> None:
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    for path, size_bytes in sizes.items():
        if size_bytes > PAGE_BYTES_MAX:
            raise KvstudyError(
                f"page too large: {path.name} size={size_bytes} limit={PAGE_BYTES_MAX}",
                f"{FEWER_RUNS}; in JupyterLab (make lab) its notebook takes all of them",
            )
    if sum(sizes.values()) > limit:
        raise KvstudyError(
            f"study too large: size={sum(sizes.values())} limit={limit}",
            f"{FEWER_RUNS}; or write one experiment at a time: kvstudy report --experiment NAME",
        )
