"""Other processes that share the work of reading runs: as many as there are processors, each a copy of this
program that measures nothing.

    rebuild(roots, tidy_root, spread=workers.processes)

kvstudy.analyse starts no process by itself: who calls it says who does the work. multiprocessing was
rejected: it imports the caller's main script again in every worker, so that a script which reads tables
without a guard starts itself again and waits for itself; and its pool leaves the workers of a process that
was killed waiting for ever.

A worker is ``python -m kvstudy.workers``: pickled tasks on its stdin, pickled answers on its stdout. It ends
when its stdin does.
"""

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from typing import TypeVar

from kvstudy.errors import KvstudyError

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")


def processes(work: Callable[[_Task], _Answer], tasks: list[_Task]) -> Iterator[_Answer]:
    """``work``, a function of a module, of each of ``tasks``, in the order in which they are done. The first
    that fails ends it all, with its error; nothing is left running."""
    count = min(len(tasks), len(os.sched_getaffinity(0)))
    if count < 2:
        yield from map(work, tasks)
        return
    idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    workers = [_Worker() for _ in range(count)]
    for worker in workers:
        idle.put(worker)

    def done_by_one(task: _Task) -> _Answer:
        worker = idle.get()
        try:
            return worker.answer(work, task)
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(count) as threads:
        try:
            for done in as_completed([threads.submit(done_by_one, task) for task in tasks]):
                yield done.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.end()


class _Worker:
    def __init__(self):
        # In a session of its own: Ctrl-C is for who waits for the answers, and ends it.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],  # a folder kvstudy where it runs is not this one
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )

    def answer(self, work: Callable, task: object) -> object:
        try:
            pickle.dump((work, task), self._process.stdin)
            self._process.stdin.flush()
            answer, error = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError) as ended:
            raise KvstudyError(
                f"a process that reads runs ended: pid={self._process.pid} exit code={self._process.wait()}",
                "was it killed, or is memory short? the same command goes on where it was",
            ) from ended
        if error is not None:
            raise error
        return answer

    def end(self) -> None:
        """At once, whatever it does: what it has not finished has no name yet."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                pipe.close()


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed is no answer
    tasks: queue.SimpleQueue[tuple[Callable, object]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(tasks,), daemon=True).start()
    while True:
        work, task = tasks.get()
        try:
            answer = work(task), None
        except Exception as error:
            answer = None, error
        pickle.dump(answer, answers)
        answers.flush()


def _receive(tasks: queue.SimpleQueue) -> None:
    """Ends the process with who asked, also in the middle of a task."""
    with suppress(EOFError):
        while True:
            tasks.put(pickle.load(sys.stdin.buffer))
    os._exit(0)


if __name__ == "__main__":
    _serve()
