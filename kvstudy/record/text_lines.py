"""A cursor over the lines of a tool's text whose every error names the file and the line."""

import re
from collections.abc import Callable
from typing import TypeVar

from kvstudy.errors import FormatError

T = TypeVar("T")


class TextLines:
    """Lines are handed out without the blanks around them; ``at`` is the number of lines read, so the last
    one's number."""

    def __init__(self, text: str, file: str):
        self.lines = text.splitlines()
        self.file = file
        self.at = 0

    def peek(self) -> str | None:
        return self.lines[self.at].strip() if self.at < len(self.lines) else None

    def next(self) -> str | None:
        line = self.peek()
        self.at += 1
        return line

    def skip_blank(self) -> None:
        while self.peek() == "":
            self.at += 1

    def error(self, what: str, hint: str | None = None) -> FormatError:
        """At the line last read, or at the end of the text."""
        return FormatError(self.file, max(1, min(self.at, len(self.lines))), what, hint)

    def first_words(self) -> str | None:
        words = next((line.strip() for line in self.lines if line.strip()), None)
        return None if words is None else f"it begins: {words[:120]}"

    def match(self, pattern: re.Pattern, what: str) -> re.Match:
        """The next line that is not blank, which must match."""
        self.skip_blank()
        line = self.next()
        if line is None:
            raise self.error(
                f"text ends before {what}", "the generator was stopped or its output was cut: measure again"
            )
        found = pattern.fullmatch(line)
        if found is None:
            raise self.error(f"{what} expected: found={line!r}")
        return found

    def take(self, pattern: re.Pattern) -> re.Match | None:
        """The next line that is not blank if it matches; else only blanks are passed."""
        self.skip_blank()
        line = self.peek()
        found = None if line is None else pattern.fullmatch(line)
        if found is not None:
            self.at += 1
        return found

    def read(self, convert: Callable[[str], T], text: str) -> T:
        """``convert(text)``; its ValueError becomes a FormatError at the line last read."""
        try:
            return convert(text)
        except ValueError as reason:
            raise self.error(str(reason)) from None
