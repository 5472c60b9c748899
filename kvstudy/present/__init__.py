"""From tables to figures, notebooks and the offline HTML study. Pure as far as runs go: nothing here measures
anything."""

from kvstudy.present.lean_imports import import_nbformat

import_nbformat()
