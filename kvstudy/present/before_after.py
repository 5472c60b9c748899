"""What stands where on page 06: duets first, where there are any; independent runs, with their warning, where
there is none or below.

both = before_after.independent(shown, experiment, factor, before, after)
before_after.first(shown, both)         the chart that answers; the table is ``first_table``
before_after.apart(shown, both)         the independent runs' chart, where it is not the first one already
"""

import pandas as pd
from IPython.display import HTML, Markdown

from kvstudy.errors import KvstudyError
from kvstudy.present import duets, notebook, sides, summary
from kvstudy.present.duets import Shown
from kvstudy.present.figures import duets as duet_figures
from kvstudy.present.figures import ratios
from kvstudy.present.sides import Sides

ABOVE = "No duet was measured of this, so its chart is the first one of the page."


def independent(
    shown: Shown | None, experiment: str | None, factor: str | None, before: object, after: object
) -> Sides:
    """``sides.sides_of``; without a run where the experiment, or all that was measured, is duets alone."""
    every = notebook.all_tables()
    without_run = Sides(every.only([]), factor or "label", "", "")
    if every.runs.empty:
        return without_run
    try:
        return sides.sides_of(experiment, factor, before, after)
    except KvstudyError:
        if shown is None or experiment is None:
            raise
        return without_run


def first(shown: Shown | None, both: Sides):
    """A figure: the duet's, or that of the independent runs."""
    return duet_figures.ratios(shown) if shown else _of_runs(both)


def first_table(shown: Shown | None, both: Sides) -> pd.DataFrame:
    return duets.measures(shown) if shown else summary.compared(both.compared())


def apart(shown: Shown | None, both: Sides):
    return _of_runs(both) if shown else Markdown(ABOVE)


def shown_rounds(shown: Shown | None):
    """Every slice pair, where there is a duet."""
    return duet_figures.rounds(shown) if shown else Markdown("No duet was measured yet.")


def table(frame: pd.DataFrame) -> HTML | Markdown | None:
    """``notebook.show``; a line where there is no row."""
    return notebook.show(frame) if len(frame) else Markdown("Nothing.")


def _of_runs(both: Sides):
    return ratios.ratios(both.compared(), *both.names, both.doubts())
