"""kvstudy: what the notebooks and the command line share.

Imports run downwards only: ``present → analyse → record → plan`` and ``measure → record → plan``; ``analyse``
and ``present`` never import ``measure``, so that looking at a run can never start a process.
"""

import warnings

# Without ipywidgets a notebook gets a progress bar of text, which is all we show: no warning in the reader's
# first cell.
warnings.filterwarnings("ignore", message="IProgress not found")

__version__ = "0.1.0"
