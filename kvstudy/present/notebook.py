"""The tables and the frames of a notebook's cells, after ``%load_ext kvstudy`` (extension.py).

    tables = notebook.tables(experiment, label)          measured runs, or the reference runs when nothing was
                                                         measured
    notebook.show(frame)                                 a table to sort and search, without a network

Each call gives the tables as the runs are now. A notebook whose runs change while it is open sees the new
ones from the cell on that is executed next, and says so once: the cells above still show the earlier ones.
"""

import os
import re
from collections.abc import Callable
from functools import lru_cache
from html import escape
from pathlib import Path

import pandas as pd
from IPython.display import HTML, display

from kvstudy import workers
from kvstudy.analyse import answers, published, schema
from kvstudy.analyse.answers import Answer
from kvstudy.analyse.conditions import has_known_program
from kvstudy.analyse.published import Published
from kvstudy.analyse.tables import (
    ALL_OWN,
    OWN_THEN_REFERENCE,
    REFERENCE_ALONE,
    Tables,
    source_of,
    state,
    study_tables,
    where_of,
)
from kvstudy.errors import KvstudyError
from kvstudy.present import claim_text, words
from kvstudy.present.markdown import Markdown
from kvstudy.project import EXPORT_VARIABLE, project_root, tidy_root
from kvstudy.service_failure import is_interrupted

MAIN = "reproduce"  # the experiment that `make reproduce` measures
SATURATION = "saturation"  # the one that means to overload the service
# What pages ask for by themselves, also in a project that has no file of it.
OF_PAGES = frozenset(
    {"instrument", "stall", "noise", "profile-cost", "generators", "wrk2", "workloads", "peers"}
)
ROWS_SHOWN = 40
TALL_ROWS_SHOWN, TALL_ROWS_MAX = (
    10,
    20,
)  # of sentences, which take several lines each: a page, and as many as go without pages
LINE_LETTERS = 44
LEFT_OPEN_MAX = 4  # answers that one line names
BESIDE_THE_REFERENCE = 1 / 2  # of a page's error: what the reader's own words may spend, and the reference's
MADE_ANEW = (
    "**Runs came or went since this notebook began.** This cell and those below show the runs of now; "
    "those above the earlier ones. Run all cells again to see the same runs everywhere."
)
_first_seen: dict = {}  # tidy folder → its state when this kernel last looked


def tables(experiment: str | None = None, label: str | None = None, smoke: bool = False) -> Tables:
    """Tables of one experiment and one label (None: every label); ``source`` says whether they are the
    reader's own runs. With ``smoke`` his runs of the preset smoke are among these, which else give way to
    any others.

    Without a name: the experiment ``reproduce`` if it was measured, else the one measured last. KvstudyError
    for what is no name, or of which nothing was measured.
    """
    if experiment is None:
        every = all_tables()
        known = every.runs
        if known.empty:  # nothing but duets was measured
            return every
        experiment = (
            MAIN if MAIN in set(known["experiment"]) else known.loc[known["start_utc"].idxmax(), "experiment"]
        )
    _check_name(experiment)
    found = _study(experiment=experiment, places=ALL_OWN if smoke else OWN_THEN_REFERENCE)
    if label is None:
        return found
    chosen = found.select(label=label)
    if chosen.runs.empty:
        labels = ", ".join(sorted(repr(known) for known in found.runs["label"].unique()))
        raise KvstudyError(f"no run of {experiment} has this label: label={label!r}", f"labels: {labels}")
    return chosen


def all_tables() -> Tables:
    """Every experiment: of each the reader's own runs if there are any, else the reference runs."""
    return _study()


def reference_tables() -> Tables:
    """Every experiment of data/reference, whatever the reader has measured."""
    return _study(places=REFERENCE_ALONE)


def beside(found: Tables) -> Tables | None:
    """The reference, where runs of the reader's own stand in the place of some of it and may decide less;
    None where none do, or nothing is committed."""
    if not found.own_runs:
        return None
    try:
        return reference_tables()
    except KvstudyError:
        return None


def left_open(found: Tables, *asked: Callable[[Tables], Answer | None]) -> Markdown | None:
    """What the committed runs decide and the reader's own, which stand in their place on a page, do not: a
    line, so that no answer goes in silence; None where there is nothing. ``asked``: questions as
    ``analyse.answers`` has them. Their words are those of two families, of his runs and of the committed ones
    of the same experiments, which have half of the page's error each (``Tables.part``)."""
    reference = beside(found)
    if reference is None:
        return None
    is_own = found.runs["run_id"].isin(found.own)
    theirs = reference.select(experiment=set(found.runs.loc[is_own, "experiment"]))
    claims = [claim for ask in asked for claim in answers.left_open(ask(found), ask(theirs))]
    if not claims:
        return None
    told = [claim_text.sentence(claim) for claim in claims[:LEFT_OPEN_MAX]]
    more = [f"{len(claims) - LEFT_OPEN_MAX} more"] if len(claims) > LEFT_OPEN_MAX else []
    yours = words.counted(found.own_runs, "run")
    return Markdown(f"**The reference decides what your own {yours} leave open:** {'; '.join(told + more)}.")


def _study(**asked: object) -> Tables:
    found = study_tables(spread=workers.processes, progress=False, **asked)
    folder = tidy_root(project_root())
    now = state(folder)
    found = found.but(part=_part(folder, now))
    if _first_seen.setdefault(folder, now) != now:
        _first_seen[folder] = now
        display(Markdown(MADE_ANEW))
    return found


@lru_cache(maxsize=2)
def _part(_folder: Path, _state: tuple[int, int]) -> float:
    """Half where runs of the reader's own stand beside the reference, since pages ask the same of both; the
    same on every page, so that a word is."""
    try:
        reference = study_tables(progress=False, places=REFERENCE_ALONE)
        both = study_tables(progress=False)
    except KvstudyError:
        return 1.0
    is_alone = not both.own_runs or set(both.runs["run_id"]) == set(reference.runs["run_id"])
    return 1.0 if is_alone else BESIDE_THE_REFERENCE


def closed_loop_runs(of: Tables | None = None) -> Tables:
    """Closed-loop latency runs by loadgen, what scalability is read off: ``of`` these runs, else of every
    experiment that drives the store."""
    found = all_tables().select(server="kv-service") if of is None else of
    return found.select(closed_loop=True, profiled=False, generator="loadgen")


def trials(of: Tables | None = None) -> Tables:
    """Every trial of every search for a stable rate among the runs ``of`` which is asked, else among all."""
    found = latency_runs(all_tables() if of is None else of)
    return found.only(found.runs.loc[found.runs["search"] != "", "run_id"])


def runs_up_to_saturation(of: Tables | None = None) -> Tables:
    """The latency runs ``of`` those that are asked for. Else those that go up to rates which cannot be held;
    where there are none every trial of every search for a stable rate; else the latency runs of the main
    experiment, or of the one measured last."""
    if of is not None:
        return latency_runs(of)
    for found in (latency_runs(all_tables().select(experiment=SATURATION)), trials()):
        if not found.runs.empty:
            return found
    return latency_runs(tables())


def merge(*parts: Tables) -> Tables:
    """The runs of all ``parts``, each once; ``source`` says which of their experiments are the reader's own,
    and of no other experiment."""
    found = all_tables()
    found = found.only({run_id for part in parts for run_id in part.runs["run_id"]})
    return found.but(source=where_of(found))


def report_tables() -> Tables:
    """The experiments that ask what the published reports asked."""
    found = all_tables()
    return found.only(found.runs.loc[found.runs["experiment"].str.startswith("report-"), "run_id"])


def experiment_tables(name: str, found: Tables) -> Tables:
    """The runs of one experiment that a reader names, of none when it was not measured: its charts then say
    so. KvstudyError for a name that no experiment has."""
    return experiments_tables([name], found)


def experiments_tables(names: list[str], found: Tables) -> Tables:
    """``experiment_tables`` of several."""
    measured = set(found.runs["experiment"])
    for name in names:
        _check_name(name)
        if name not in measured and name not in (known := _experiments()):
            raise KvstudyError(f"no such experiment: {name!r}", schema.nearest(name, sorted(known)))
    return found.select(experiment=names)


def _experiments() -> set[str]:
    """Those that were measured, those of ``experiments/``, and those of pages."""
    files = (project_root() / "experiments").glob("*.yaml")
    return OF_PAGES | set(all_tables().runs["experiment"]) | {file.stem for file in files}


def _check_name(experiment: object) -> None:
    if not isinstance(experiment, str):
        raise KvstudyError(f"no name of an experiment: {experiment!r}", 'one in quotes, as "reproduce"')


def filter_runs(found: Tables, **wanted) -> Tables:
    """Runs whose columns are as ``wanted``, which is a value or a list of them; a None leaves its column
    free. KvstudyError for a value that no run has, and where no run has them all."""
    wanted = {name: value for name, value in wanted.items() if value is not None}
    for name, value in wanted.items():
        known = sorted(found.runs[name].dropna().unique().tolist())
        asked = value if isinstance(value, list | tuple | set) else [value]
        if known and any(one not in known for one in asked):
            raise KvstudyError(
                f"no run here has this {name}: {name}={value!r}", f"there are: {', '.join(map(repr, known))}"
            )
    chosen = found.select(**wanted)
    if chosen.runs.empty and len(found.runs):
        asked = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
        raise KvstudyError(f"no run here is of all that is asked for: {asked}", "None takes all of one")
    return chosen


def published_reports() -> Published:
    """The numbers of the five published reports: data/published; as long as no file changes the same
    object."""
    folder = project_root() / "data" / "published"
    return _published(
        folder, tuple(sorted((file.name, file.stat().st_mtime_ns) for file in folder.glob("*.csv")))
    )


@lru_cache(maxsize=2)
def _published(folder: Path, _state: tuple) -> Published:
    return published.load(folder)


def latency_runs(found: Tables) -> Tables:
    """The runs that latency may be read off: not profiled. Invalid ones stay, to be drawn grey."""
    return found.select(profiled=False)


def profiled_runs(found: Tables) -> Tables:
    return found.select(profiled=True)


def source(found: Tables) -> Markdown:
    """A sentence: whose runs these are, how many, how many do not count, and how to measure one's own."""
    runs = found.runs
    if runs.empty:
        return Markdown(
            "**Nothing was measured for this page yet**: its charts are empty. `experiments/` holds "
            "the questions; `kvstudy run` measures one."
        )
    invalid = int((runs["verdict"] == "FAIL").sum())
    interrupted = int(runs["outcome"].map(is_interrupted).sum())
    of_these = f" (of these {words.count(interrupted)} interrupted)" if interrupted else ""
    validity = (
        f"{invalid} of them invalid{of_these}: grey or called INVALID in every chart, and in no median"
        if invalid
        else "none of them failed a check"
    )
    named = words.several([f"`{name}`" for name in sorted(runs["experiment"].unique())])
    source = source_of(found)
    sentence = f"**{words.counted(len(runs), 'run')}** of {named} from `{source}`; {validity}."
    if found.own_runs and found.own_runs < len(runs):
        sentence += f" {words.count(found.own_runs)} of them are yours."
    if source.endswith("reference"):
        which = "These" if source == "data/reference" else "Those of `data/reference`"
        command = "`kvstudy run experiments/…`" if found.own_runs else "`make reproduce`"
        sentence += (
            f" {which} are the reference runs that come with the project. To see your own machine's "
            f"instead, run {command} and execute this notebook again."
        )
    return Markdown(sentence + _of_unknown_programs(found) + _of_smoke(found))


def _of_unknown_programs(found: Tables) -> str:
    """A rebuilt service is another configuration only where its program was noted."""
    runs = found.runs
    unknown = sorted(set(runs.loc[~runs["service_program"].map(has_known_program), "server"]))
    return (
        f" **Not known: which program answered as {words.several([f'`{name}`' for name in unknown])}.** Runs "
        "before and after it was rebuilt would count as repeats: give each build a label of its own."
        if unknown
        else ""
    )


def _of_smoke(found: Tables) -> str:
    """What a reader must know of runs of the preset smoke, shown or not; empty where there are none."""
    shown, hidden = (
        [f"`{name}`" for name in names if name in set(found.runs["experiment"])]
        for names in (found.smoke_shown, found.smoke_hidden)
    )
    text = (
        f" **Smoke runs:** those of {words.several(shown)} prove that everything works, not how fast it is."
        if shown
        else ""
    )
    return text + (
        (
            f" Your runs of {words.several(hidden)} with the preset `smoke` are left out: they prove that "
            "everything works, not how fast it is."
        )
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
    first = _index_columns(frame)
    sentences = [
        i
        for i, name in enumerate(frame.columns, first)
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
    options |= {"caption": escape(frame.attrs["caption"])} if frame.attrs.get("caption") else {}
    if os.environ.get(EXPORT_VARIABLE):
        # The pages break these into lines; columns of numbers stay whole.
        if sentences:
            options = {"columnDefs": [{"className": "sentence", "targets": sentences}]} | options
        html = itables.to_html_datatable(frame, connected=False, display_logo_when_loading=False, **options)
        # What stands there until the table is drawn, and on its preview, links to the library's site: a page
        # of the study names no address.
        html = re.sub(
            r"<tbody>.*?</tbody>", "<tbody><tr><td>…</td></tr></tbody>", html, count=1, flags=re.DOTALL
        )
        return HTML(re.sub(r"<sup><noscript>.*?</sup>", "", html, flags=re.DOTALL))
    return itables.show(frame, **_in_jupyter(frame, sentences, first) | options)


def _index_columns(frame: pd.DataFrame) -> int:
    """How many columns itables shows before those of the frame: none for mere numbers of rows."""
    index = frame.index
    return 0 if isinstance(index, pd.RangeIndex) and index.name is None else index.nlevels


def _in_jupyter(frame: pd.DataFrame, sentences: list[int], first: int) -> dict:
    """What a page's style sheet does there: words stand on the left, and sentences are broken into lines.
    Names of runs, which a page cuts short, are one line to scroll to: five of them made fifteen.
    ``first``: the place of the frame's first column."""
    words = [
        i for i, name in enumerate(frame.columns, first) if pd.api.types.is_string_dtype(frame[name].dropna())
    ]
    aligned = [{"className": "dt-left", "targets": words}] if words else []
    sentences = [place for place in sentences if frame.columns[place - first] not in ("run", "runs")]
    broken = [{"className": "sentence", "targets": sentences}] if sentences else []
    return {"columnDefs": aligned + broken}
