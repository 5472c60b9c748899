"""The README's picture, as a page that holds nothing else: a browser turns it into a PNG (`make figure`).

    python -m kvstudy.present.picture build/figure.html

Drawn by the study's own figure from data/reference, whatever was measured here since. Starts no process
itself.
"""

import sys
from pathlib import Path

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from kvstudy.errors import KvstudyError
from kvstudy.present import notebook, theme
from kvstudy.present.figures import spectrum

WIDTH_PX, HEIGHT_PX = 1200, 560
EXPERIMENT = "stall"


def picture() -> go.Figure:
    """Response time against service time by percentile, of the service that is stopped once for a second
    while requests go on being due."""
    theme.use("light")
    stopped = notebook.reference_tables().select(experiment=EXPERIMENT, profiled=False, closed_loop=False)
    figure = spectrum.response_against_service(stopped, panel_by=None)
    figure.update_layout(width=WIDTH_PX, height=HEIGHT_PX)
    return figure


def write(path: Path) -> None:
    """The page, with plotly in it."""
    drawn = picture().to_html(
        full_html=False, include_plotlyjs=False, config={"displayModeBar": False, "staticPlot": True}
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    text = (
        "<!doctype html><meta "
        f"charset=utf-8><style>body{{margin:0}}</style><script>{get_plotlyjs()}</script>{drawn}"
    )
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        write(Path(sys.argv[1]))
    except KvstudyError as error:
        sys.exit(f"figure: {error}")
