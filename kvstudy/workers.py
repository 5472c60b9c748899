"""Other processes that share the work of reading runs: as many as there are processors, each a copy of this program that measures nothing.

    rebuild(roots, tidy_root, spread=workers.processes)

kvstudy.analyse starts no process by itself: who calls it says who does the work.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")


def processes(work: Callable[[_Task], _Answer], tasks: list[_Task]) -> Iterator[_Answer]:
    """``work`` of each of ``tasks``, in the order in which they are done. The first that fails ends it all, with its error; nothing is left running."""
    count = min(len(tasks), len(os.sched_getaffinity(0)))
    if count < 2:
        yield from map(work, tasks)
        return
    # Not forked: a notebook's kernel has threads, whose locks a fork would take along.
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin) as pool:
        try:
            for done in as_completed([pool.submit(work, task) for task in tasks]):
                yield done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin() -> None:
    """Ctrl-C is for who waits for the answers. A worker ends with that process, however it ends: the pool itself would leave it waiting for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(parent) -> None:
    parent.join()
    os._exit(1)
