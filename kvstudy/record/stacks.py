"""Collapsed stacks: one line per distinct stack, frames joined by ';', root first, then a blank and the
samples.

    java/lang/Thread.run;one/nio/net/SelectorThread.run;epoll_wait_[k] 1203

Addresses of hidden classes, whatever these are called (``C$$Lambda.0x0000000030128438``,
``DowncallStub.0x00000000100a1000``), are dropped: each start of the same code draws others, and stacks that
differ by them alone could not be compared between runs.
"""

import re

from kvstudy.errors import FormatError

_HIDDEN_CLASS_ADDRESS = re.compile(r"[.+/]0x[0-9a-f]{6,}")


def read(text: str, file: str) -> dict[str, int]:
    """Samples of each stack. Lines of the same stack are added up. FormatError with the line when one is no
    stack; ``file``: its name."""
    stacks: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        stack, _, samples = line.rstrip().rpartition(" ")
        if not stack or not samples.isdecimal():
            raise FormatError(file, number, f"not a collapsed stack: {line[:80].rstrip()!r}")
        stack = without_address(stack)
        stacks[stack] = stacks.get(stack, 0) + int(samples)
    return stacks


def without_address(stack: str) -> str:
    """``stack``, or one frame, without the addresses of hidden classes."""
    return _HIDDEN_CLASS_ADDRESS.sub("", stack)
