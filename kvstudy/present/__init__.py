"""From tables to figures, notebooks and the offline HTML study. Pure as far as runs go: nothing here measures
anything."""
