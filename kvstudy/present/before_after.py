"""What stands where on page 06: duets first, where there are any; independent runs, with their warning, where
there is none or below.

both = before_after.independent_runs(shown, experiment, factor, before, after)
before_after.main_chart(shown, both)         the chart that answers; the table is ``main_table``
before_after.independent_chart(shown, both)  the independent runs' chart, unless it is the main one
"""

import pandas as pd
from IPython.display import HTML

from kvstudy.present import duets, notebook, sides, summary
from kvstudy.present.duets import Shown
from kvstudy.present.figures import duets as duet_figures
from kvstudy.present.figures import ratios
from kvstudy.present.markdown import Markdown
from kvstudy.present.sides import ComparedRuns

ABOVE = "No duet was measured of this, so its chart is the first one of the page."


def independent_runs(
    shown: Shown | None, experiment: str | None, factor: str | None, before: object, after: object
) -> ComparedRuns:
    """``choose_sides``; without a run where the experiment, or all that was measured, is duets alone."""
    every = notebook.all_tables()
    asked = every.runs if experiment is None else every.select(experiment=experiment).runs
    if shown and asked.empty:
        return ComparedRuns(every.only([]), "label", "", "")
    return sides.choose_sides(experiment, factor, before, after)


def main_chart(shown: Shown | None, both: ComparedRuns):
    """A figure: of every duet, one of which is shown at a time, or that of the independent runs."""
    return duet_figures.every(shown) if shown else _of_runs(both)


def main_table(shown: Shown | None, both: ComparedRuns) -> pd.DataFrame:
    """Of every measure of every duet; of independent runs where there is none."""
    if shown is None:
        return summary.compared(both.compared())
    return duets.every_measure(shown) if shown.others else duets.measures(shown)


def independent_chart(shown: Shown | None, both: ComparedRuns):
    return _of_runs(both) if shown else Markdown(ABOVE)


def rounds_chart(shown: Shown | None):
    """Every slice pair, where there is a duet."""
    return duet_figures.rounds(shown) if shown else Markdown("There is no duet to show.")


def table(frame: pd.DataFrame) -> HTML | Markdown | None:
    """``notebook.show``; a line where there is no row."""
    return notebook.show(frame) if len(frame) else Markdown("Nothing.")


def _of_runs(both: ComparedRuns):
    return ratios.ratios(both.compared(), *both.names, both.doubts())
