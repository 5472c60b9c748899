"""kvstudy: what the notebooks and the command line share, and the tables of the study for who explores them.

    import kvstudy
    kvstudy.runs(experiment="reproduce")           tables as pandas DataFrames: docs/api.md
    kvstudy.histogram(run_id)                      latencies of one run as a HdrHistogram
    %load_ext kvstudy                              in a notebook: its theme, tables and one-line errors

Imports run downwards only. ``measure`` imports ``subject``, ``hosts``, ``record``, ``plan`` and
``analyse``; ``present`` imports ``analyse``, ``record`` and ``plan``. ``analyse`` and ``present`` never
import ``measure``, so that looking at a run can never measure one.
"""

from importlib import import_module

__version__ = "0.1.0"

# Of kvstudy/api.py, imported when one of them is first asked for: every module of the package imports this
# file, and `kvstudy --help` needs no pandas.
_API = (
    "columns",
    "dataset",
    "events",
    "histogram",
    "intervals",
    "load",
    "percentiles",
    "runs",
    "slowest",
    "stacks",
    "validity",
)


def __getattr__(name: str) -> object:
    if name in _API:
        return getattr(import_module("kvstudy.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_API])


def load_ipython_extension(_shell: object) -> None:
    """``%load_ext kvstudy``."""
    import_module("kvstudy.present.extension").begin()
