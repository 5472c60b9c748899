"""Ctrl-C at any moment: outside ``shielded`` it raises KeyboardInterrupt, inside it waits until the block is
done.

SIGTERM and SIGHUP are treated as Ctrl-C while measuring, so that neither ``kill`` nor a closed terminal
leaves a process behind; where ``nohup`` has SIGHUP ignored, it stays so. In threads other than the main one
signals never arrive, and both functions do nothing there.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """These signals raise KeyboardInterrupt in this block."""
    with _handled_by(_interrupt):
        yield


@contextmanager
def shielded() -> Iterator[None]:
    """These signals are kept back in this block, and raise KeyboardInterrupt at its end (not when it ends by
    an error of its own)."""
    kept: list[int] = []
    with _handled_by(lambda number, _frame: kept.append(number)):
        yield
    if kept:
        raise KeyboardInterrupt


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _handled_by(handler) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in _SIGNALS if not _is_to_be_outlived(number)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _is_to_be_outlived(number: signal.Signals) -> bool:
    """As under ``nohup``: who started us wants the end of the terminal ignored."""
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN
