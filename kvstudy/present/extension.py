"""``%load_ext kvstudy``: what a notebook needs before its first chart, out of its reader's sight.

    the project is found, wherever the notebook was started; charts get their theme
    tables need no network
    a mistake of the reader's is told in a line or two; a parameter that the notebook does not have is one

How parameters are found: papermill puts a cell that begins with "# Parameters" after the notebook's own,
which begins with DEFAULTS. IPython's ``In`` holds both as text; what the first does not name is a mistake,
which papermill only warns about. Its own inspection needs the notebook's path, which a kernel is not told,
and gives values as text; a test holds every notebook's defaults against it.
"""

import ast
import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from IPython import get_ipython
from IPython.display import HTML, Markdown, display

from kvstudy.errors import ExperimentError, KvstudyError
from kvstudy.present import theme
from kvstudy.project import EXPORT_VARIABLE, ROOT_VARIABLE, project_root

DEFAULTS = "# Defaults"
INJECTED = "# Parameters"
_NEARLY = 0.85  # as difflib counts: all but a letter of five
_THEME = "KVSTUDY_THEME"
RENAMED = {"profile_name": "preset"}  # parameters that had another name


def begin() -> None:
    """Prepares the notebook of this kernel. ExperimentError for a parameter that it does not have."""
    _at_home()
    _errors_in_one_line()
    theme.use(os.environ.get(_THEME, "light"))
    _tables_offline()
    _look_of_jupyterlab()
    _again()
    for name, near in nearly_alike(parameters(_executed())):
        display(
            Markdown(
                f"**`{near}` and `{name}` stand in the first cell, and one of them may be misspelt.** A name "
                "that the notebook does not have changes nothing."
            )
        )


def parameters(executed: list[str] | None = None) -> dict:
    """Name → value of what the notebook was asked for; ``executed``: IPython's ``In``, None for this
    kernel's."""
    defaults, given = _parameter_cells(_executed() if executed is None else executed)
    for name in given:
        if name not in defaults:
            near = difflib.get_close_matches(RENAMED.get(name, name), list(defaults), n=1)
            hint = f"did you mean {near[0]}?" if near else f"parameters: {', '.join(defaults)}"
            raise ExperimentError(f"unknown parameter: {name}", hint)
    return defaults | given


def set_elsewhere(found: dict) -> dict:
    """Of the parameters ``found`` those that have another value in this kernel, with that: a cell that is
    none of theirs has given it."""
    shell = get_ipython()
    now = {} if shell is None else shell.user_ns
    return {
        name: now[name] for name, value in found.items() if name in now and repr(now[name]) != repr(value)
    }


def nearly_alike(names: Iterable[str]) -> list[tuple[str, str]]:
    """Of parameters each that is hardly another name than an earlier one, with that: what a reader adds to
    the first cell by mistake is read by nobody. A plural is a name of its own."""
    names = list(names)
    return [
        (name, near)
        for place, name in enumerate(names)
        for near in difflib.get_close_matches(name, names[:place], n=1, cutoff=_NEARLY)
        if {name, near} not in ({name, f"{name}s"}, {near, f"{near}s"})
    ]


def _executed() -> list[str]:
    shell = get_ipython()
    return [] if shell is None else shell.user_ns.get("In", [])


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


def _look_of_jupyterlab() -> None:
    """JupyterLab's renderer of plotly asks a chart whose place was resized to fill it, and the place is as
    high as the chart: without a height of its own it has none then. It knows no template's height, either.
    Sentences in tables are broken into lines as in the pages. Charts are as dark as JupyterLab where nobody
    said how dark they should be."""
    if not os.environ.get(EXPORT_VARIABLE) and get_ipython() is not None:
        import plotly.express as px

        px.defaults.height = theme.HEIGHT_PX
        styles = _assets("tables.css", *([] if _THEME in os.environ else ["lab.css"]))
        scripts = _assets("quantities.js", "ticks.js", "lab.js")
        display(HTML(f"<style>{styles}</style><script>{scripts}</script>"))


def _assets(*names: str) -> str:
    folder = Path(__file__).parent / "assets"
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)


def _again() -> None:
    """``%load_ext`` executed once more begins once more, as all other cells do: a page that was loaded again
    needs its scripts, and parameters may be others."""
    shell = get_ipython()
    if shell is None:
        return

    def forget(*_result) -> None:
        shell.extension_manager.loaded.discard("kvstudy")
        shell.events.unregister("post_run_cell", forget)

    shell.events.register("post_run_cell", forget)


def _errors_in_one_line() -> None:
    """A mistake of the user is told in a line or two; everything else keeps its traceback."""
    shell = get_ipython()
    if shell is None:
        return

    def show_error(self, _kind, error, _trace, tb_offset=None):
        lines = [f"{type(error).__name__}: {error}"]
        self._showtraceback(type(error), error, lines)
        return lines

    shell.set_custom_exc((KvstudyError,), show_error)


def _parameter_cells(executed: list[str]) -> tuple[dict, dict]:
    """Names and values of the last defaults cell, and of what papermill put after it."""
    starts = [i for i, cell in enumerate(executed) if cell.lstrip().startswith(DEFAULTS)]
    if not starts:
        return {}, {}
    after = [cell for cell in executed[starts[-1] + 1 :] if cell.lstrip().startswith(INJECTED)]
    return _assigned(executed[starts[-1]]), _assigned(after[-1]) if after else {}


def _assigned(cell: str) -> dict:
    """Name → value for every assignment of a parameters cell."""
    found = {}
    for statement in ast.parse(cell).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
        else:
            continue
        found[name] = _value(name, statement.value)
    return found


def _value(name: str, expression: ast.expr | None) -> object:
    """A literal as it stands; papermill writes infinity and NaN as calls of float. Of all else, as ``2 *
    1000``, what the kernel has by that name, which executed it."""
    text = ast.unparse(expression) if expression else "None"
    if text.startswith("float('"):
        return float(text[7:-2])
    try:
        return ast.literal_eval(text)
    except ValueError:
        shell = get_ipython()
        return None if shell is None else shell.user_ns.get(name)
