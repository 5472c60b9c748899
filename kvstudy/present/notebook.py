"""What the first cells of every notebook call: the same beginning, the same tables, the same way to show a
frame.

    parameters = notebook.begin(In)                      theme, tables, one-line errors; refuses unknown parameters
    tables = notebook.tables(experiment, label)          measured runs, or the reference runs when nothing was measured
    notebook.show(frame)                                 a table to sort and search, without a network

How parameters are found: papermill puts a cell that begins with "# Parameters" after the notebook's own,
which begins with DEFAULTS. IPython's ``In`` holds both as text; what the first does not name is a mistake,
which papermill only warns about.
"""

import ast
import difflib
import math
import os
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pandas as pd
from IPython import get_ipython
from IPython.display import HTML, Markdown

from kvstudy import workers
from kvstudy.analyse import published, tail
from kvstudy.analyse.published import Published
from kvstudy.analyse.tables import ALL_OWN, OWN_THEN_REFERENCE, REFERENCE_ALONE, Tables, study_tables
from kvstudy.errors import ExperimentError, KvstudyError
from kvstudy.present import theme, words
from kvstudy.project import ROOT_VARIABLE, project_root, raw_root

DEFAULTS = "# Defaults"
INJECTED = "# Parameters"
MAIN = "reproduce"  # the experiment that `make reproduce` measures
SATURATION = "saturation"  # the one that means to overload the service
ROWS_SHOWN = 40
TALL_ROWS_SHOWN, TALL_ROWS_MAX = (
    10,
    20,
)  # of sentences, which take several lines each: a page, and as many as go without pages
LINE_LETTERS = 44
EXPORT_VARIABLE = (
    "KVSTUDY_EXPORT"  # set while the HTML study is written: its pages share one copy of the table script
)


def begin(executed: list[str]) -> dict:
    """Prepares the notebook and returns its parameters by name; ``executed`` is IPython's ``In``.

    ExperimentError for a parameter that the notebook does not have.
    """
    _prepare()
    defaults, given = _parameter_cells(executed)
    for name in given:
        if name not in defaults:
            near = difflib.get_close_matches(name, list(defaults), n=1)
            hint = f"did you mean {near[0]}?" if near else f"parameters: {', '.join(defaults)}"
            raise ExperimentError(f"unknown parameter: {name}", hint)
    return defaults | given


@dataclass(frozen=True)
class SweepParameters:
    """Of 02-sweep: ``experiment`` for ``Experiment.from_parameters``, which refuses unknown keys; the rest
    for the measurement."""

    root: Path
    experiment: dict
    profile_name: str | None
    label: str
    resume: bool


def sweep_parameters(executed: list[str]) -> SweepParameters:
    """What 02-sweep was asked for, with the main experiment when nothing was; theme and tables as after
    ``begin``.

    Names are not checked here: any key may be one of an experiment, and the experiment knows the nearest.
    """
    _prepare()
    root = project_root()
    defaults, injected = _parameter_cells(executed)
    given = {name: value for name, value in (defaults | injected).items() if value is not None}
    profile_name, label, resume = (
        given.pop(name, default)
        for name, default in (("profile_name", None), ("label", ""), ("resume", True))
    )
    if not isinstance(label, str) or not isinstance(resume, bool):
        raise ExperimentError(
            f"wrong parameter: label={label!r} resume={resume!r}", "label is a text, resume True or False"
        )
    file = given.get("experiment_file")
    if not given:
        given["experiment_file"] = str(root / "experiments" / f"{MAIN}.yaml")
    elif file is not None and not Path(file).is_file() and (root / file).is_file():
        given["experiment_file"] = str(root / file)
    return SweepParameters(root, given, profile_name, label, resume)


def tables(experiment: str | None = None, label: str | None = None, smoke: bool = False) -> Tables:
    """Tables of one experiment and one label (None: every label); ``source`` says whether they are the
    reader's own runs. With ``smoke`` his runs of the profile smoke are among these, which else give way to
    any others.

    Without a name: the experiment ``reproduce`` if it was measured, else the one measured last.
    """
    if experiment is None:
        known = study_tables(spread=workers.processes, progress=False).runs
        experiment = (
            MAIN if MAIN in set(known["experiment"]) else known.loc[known["start_utc"].idxmax(), "experiment"]
        )
    found = study_tables(
        experiment=experiment,
        spread=workers.processes,
        progress=False,
        places=ALL_OWN if smoke else OWN_THEN_REFERENCE,
    )
    if label is None:
        return found
    chosen = found.select(label=label)
    if chosen.runs.empty:
        labels = ", ".join(sorted(repr(known) for known in found.runs["label"].unique()))
        raise KvstudyError(f"no run of {experiment} has this label: label={label!r}", f"labels: {labels}")
    return chosen


def all_tables() -> Tables:
    """Every experiment: of each the reader's own runs if there are any, else the reference runs."""
    return study_tables(spread=workers.processes, progress=False)


def reference_tables() -> Tables:
    """Every experiment of data/reference, whatever the reader has measured."""
    return study_tables(spread=workers.processes, progress=False, places=REFERENCE_ALONE)


def closed_loops() -> Tables:
    """Closed-loop latency runs of every experiment that drives the store with loadgen: what scalability is
    read off."""
    return all_tables().select(closed_loop=True, profiled=False, generator="loadgen", server="kv-service")


def trials() -> Tables:
    """Every trial of every search for a stable rate."""
    found = for_latency(all_tables())
    return found.only(found.runs.loc[found.runs["search"] != "", "run_id"])


def towards_saturation() -> Tables:
    """The latency runs that go up to rates which cannot be held; where there are none every trial of every
    search for a stable rate; else the latency runs of the main experiment, or of the one measured last."""
    for found in (for_latency(of_experiment(SATURATION, all_tables())), trials()):
        if not found.runs.empty:
            return found
    return for_latency(tables())


def together(*parts: Tables) -> Tables:
    """The runs of all ``parts``, each once; ``source`` says which of their experiments are the reader's own,
    and of no other experiment."""
    found = all_tables()
    found = found.only({run_id for part in parts for run_id in part.runs["run_id"]})
    raw = raw_root(project_root()).resolve()
    own = {
        name
        for run_id, name in zip(found.runs["run_id"], found.runs["experiment"], strict=True)
        if found.folders[run_id].is_relative_to(raw)
    }
    if own and own != set(found.runs["experiment"]):
        return found.but(source=f"data/raw ({', '.join(sorted(own))}) and data/reference")
    return found.but(source="data/raw" if own else "data/reference")


def of_reports() -> Tables:
    """The experiments that ask what the published reports asked."""
    found = all_tables()
    return found.only(found.runs.loc[found.runs["experiment"].str.startswith("report-"), "run_id"])


def slow_limit_us(found: Tables, percentile: float) -> float:
    """The latency above which an answer is slow; infinite when there is no answer that could be."""
    answered = found.intervals[found.intervals["latency_kind"] == "response"]
    return math.inf if answered.empty else tail.threshold_us(found, percentile)


def of_experiment(name: str, found: Tables) -> Tables:
    """The runs of one experiment, of none when it was not measured: its charts then say so."""
    return found.select(experiment=name)


def of_experiments(names: list[str], found: Tables) -> Tables:
    return found.select(experiment=names)


def where(found: Tables, **wanted) -> Tables:
    """Runs whose columns are as ``wanted``; a None leaves its column free."""
    return found.select(**{name: value for name, value in wanted.items() if value is not None})


def published_reports() -> Published:
    """The numbers of the five published reports: data/published."""
    return published.load(project_root() / "data" / "published")


def for_latency(found: Tables) -> Tables:
    """The runs that latency may be read off: not profiled. Invalid ones stay, to be drawn grey."""
    return found.select(profiled=False)


def profiled(found: Tables) -> Tables:
    return found.select(profiled=True)


def source(found: Tables) -> Markdown:
    """A sentence: whose runs these are, how many, how many do not count, and how to measure one's own."""
    runs = found.runs
    if runs.empty:
        return Markdown(
            "**Nothing was measured for this page yet**: its charts are empty. `experiments/` holds the questions; `kvstudy run` measures one."
        )
    invalid = int((runs["verdict"] == "FAIL").sum())
    validity = (
        f"{invalid} of them invalid: grey or called INVALID in every chart, and in no median"
        if invalid
        else "none of them failed a check"
    )
    named = words.several([f"`{name}`" for name in sorted(runs["experiment"].unique())])
    sentence = f"**{words.counted(len(runs), 'run')}** of {named} from `{found.source}`; {validity}."
    if found.source.endswith("reference"):
        which = "These" if found.source == "data/reference" else "Those of `data/reference`"
        sentence += (
            f" {which} are the reference runs that come with the project. To see your own machine's, run `make reproduce` or "
            "`kvstudy run experiments/…` and execute this notebook again."
        )
    return Markdown(sentence + _of_smoke(found))


def _of_smoke(found: Tables) -> str:
    """What a reader must know of runs of the profile smoke, shown or not; empty where there are none."""
    shown, hidden = (
        [f"`{name}`" for name in names if name in set(found.runs["experiment"])]
        for names in (found.smoke_shown, found.smoke_hidden)
    )
    told = (
        f" **Smoke runs:** those of {words.several(shown)} prove that everything works, not how fast it is."
        if shown
        else ""
    )
    return told + (
        f" Your runs of {words.several(hidden)} with the profile `smoke` are left out: they prove that everything works, not how fast it is."
        if hidden
        else ""
    )


def show(frame: pd.DataFrame, **options):
    """``frame`` as an interactive table: sorted by a click, searched by typing, paged when long. One without
    rows says what is missing instead, as ``summary.missing`` puts it."""
    import itables

    if frame.empty:
        return Markdown(
            frame.attrs.get("missing", "**Nothing to show:** none of the runs on this page has such a row.")
        )
    sentences = [
        i
        for i, name in enumerate(frame.columns)
        if any(isinstance(value, str) and len(value) > LINE_LETTERS for value in frame[name])
    ]
    shown = TALL_ROWS_SHOWN if len(sentences) and len(frame) > TALL_ROWS_MAX else ROWS_SHOWN
    long = len(frame) > shown
    options = {
        "paging": long,
        "pageLength": shown,
        "lengthMenu": [10, ROWS_SHOWN, 100, 500],
        "layout": {} if long else dict.fromkeys(("topStart", "topEnd", "bottomStart", "bottomEnd")),
    } | options
    # The pages break these into lines; columns of numbers stay whole.
    options = (
        {"columnDefs": [{"className": "sentence", "targets": sentences}]} | options if sentences else options
    )
    options |= {"caption": escape(frame.attrs["caption"])} if "caption" in frame.attrs else {}
    if os.environ.get(EXPORT_VARIABLE):
        html = itables.to_html_datatable(frame, connected=False, display_logo_when_loading=False, **options)
        # What stands there until the table is drawn, and on its preview, links to the library's site: a page
        # of the study names no address.
        html = re.sub(
            r"<tbody>.*?</tbody>", "<tbody><tr><td>…</td></tr></tbody>", html, count=1, flags=re.DOTALL
        )
        return HTML(re.sub(r"<sup><noscript>.*?</sup>", "", html, flags=re.DOTALL))
    return itables.show(frame, **options)


def _prepare() -> None:
    _at_home()
    _errors_in_one_line()
    theme.use(os.environ.get("KVSTUDY_THEME", "light"))
    _tables_offline()


def _at_home() -> None:
    """papermill executes a notebook in the folder it was called from, which may be any: outside a project,
    take this package's own."""
    try:
        project_root()
    except KvstudyError:
        checkout = Path(__file__).resolve().parents[2]
        if ROOT_VARIABLE in os.environ or not (checkout / "notebooks").is_dir():
            raise
        os.environ[ROOT_VARIABLE] = str(checkout)


def _tables_offline() -> None:
    import itables

    itables.options.maxBytes = "1MB"
    itables.options.warn_on_undocumented_option = False
    itables.options.text_in_header_can_be_selected = False  # the whole heading sorts, not only its arrow
    itables.options.classes = "display nowrap compact"
    itables.options.style = "table-layout:auto;width:auto;margin:0"
    if not os.environ.get(EXPORT_VARIABLE) and get_ipython() is not None:
        itables.init_notebook_mode(all_interactive=False, connected=False)


def _errors_in_one_line() -> None:
    """A mistake of the user is told in a line or two; everything else keeps its traceback."""
    shell = get_ipython()
    if shell is None:
        return

    def told(self, _kind, error, _trace, tb_offset=None):
        lines = [f"{type(error).__name__}: {error}"]
        self._showtraceback(type(error), error, lines)
        return lines

    shell.set_custom_exc((KvstudyError,), told)


def _parameter_cells(executed: list[str]) -> tuple[dict, dict]:
    """Names and values of the last defaults cell, and of what papermill put after it."""
    starts = [i for i, cell in enumerate(executed) if cell.lstrip().startswith(DEFAULTS)]
    if not starts:
        return {}, {}
    after = [cell for cell in executed[starts[-1] + 1 :] if cell.lstrip().startswith(INJECTED)]
    return _assigned(executed[starts[-1]]), _assigned(after[-1]) if after else {}


def _assigned(cell: str) -> dict:
    """``name = literal`` for every line of a parameters cell; papermill writes infinity and NaN as calls of
    float."""
    found = {}
    for statement in ast.parse(cell).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = ast.unparse(statement.value)
            found[statement.targets[0].id] = (
                float(value[7:-2]) if value.startswith("float(") else ast.literal_eval(value)
            )
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found[statement.target.id] = ast.literal_eval(ast.unparse(statement.value))
    return found
