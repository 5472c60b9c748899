"""How an option and its default are called; what they do is ``analyse.options``.

instead("handler=selector", "handler=workers")      "handler=workers instead of selector"
"""

from kvstudy.analyse.answers import options
from kvstudy.analyse.options import compared_options, parts_of
from kvstudy.analyse.tables import Tables

__all__ = ["compared_options", "instead", "standing"]


def standing(tables: Tables, reference: Tables | None) -> Tables:
    """``tables``, with the reference's runs of every experiment of which the reader's own decide less."""
    return options.standing(tables, reference)[0]


def instead(before: str, after: str) -> str:
    """A value beside the default that it replaces; of several parts both whole."""
    first, second = parts_of(before), parts_of(after)
    alone = len(first) == 1 and first.keys() == second.keys()
    return f"{after} instead of {next(iter(first.values())) if alone else before}"
