"""Imports nbformat without a second of work that nobody asked for. plotly imports it wherever it is, it
imports jsonschema, and that compiles a grammar of international addresses (rfc3987_syntax) if it is
installed: more CPU than all else that a notebook of ours begins with. Only a check of the format *iri* needs
the grammar; no schema of a notebook has one.

    import_nbformat()      before anything imports plotly, papermill or nbformat
"""

import sys
from importlib import import_module

GRAMMAR = "rfc3987_syntax"


def import_nbformat() -> None:
    """jsonschema does without a grammar that cannot be imported. Whoever imports it later still can."""
    is_open = GRAMMAR not in sys.modules and "jsonschema" not in sys.modules
    if is_open:
        sys.modules[GRAMMAR] = None
    try:
        import_module("nbformat")
    finally:
        if is_open:
            del sys.modules[GRAMMAR]
