"""Markdown of the study's own sentences. They name what readers called their runs, and that may be
``queue<int>``: as a tag nobody would see it."""

import re

from IPython import display

_CODE_OR_TAG = re.compile(r"(`[^`\n]*`)|(?<!\\)<(?=[A-Za-z/!?])")


def without_tags(text: str) -> str:
    """``text`` in which what looks like a tag is text; code is as it was."""
    return _CODE_OR_TAG.sub(lambda found: found[1] or r"\<", text)


class Markdown(display.Markdown):
    """``IPython.display.Markdown`` of ``without_tags``."""

    def __init__(self, data: str) -> None:
        super().__init__(without_tags(data))
