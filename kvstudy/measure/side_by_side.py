"""Runs side by side on crews that share no host.

What is handed out is a block: a repeat of every configuration, on one crew, so that the hosts of a crew meet
all that is compared with each other alike. A crew that cannot go on leaves its blocks to the others, and of
its last one what it has not measured.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable
from itertools import groupby

from kvstudy.errors import KvstudyError
from kvstudy.hosts.process import wait_until
from kvstudy.measure.crew import Crew
from kvstudy.plan.run_plan import PlannedRun

Block = list[PlannedRun]


def blocks(runs: list[PlannedRun]) -> list[Block]:
    """In their order: runs of one repeat that follow one another."""
    return [list(block) for _, block in groupby(runs, key=lambda run: run.repeat)]


def side_by_side(
    todo: list[Block],
    crews: list[Crew],
    measure: Callable[[Block, Crew], None],
    unmeasured: Callable[[Block], Block],
) -> None:
    """``measure(block, crew)`` of every block; ``unmeasured``: what of one is left when that failed. The
    first error of a crew when all is over; KeyboardInterrupt after all runs have been sealed."""
    left, errors, changed = deque(todo), [], threading.Condition()
    busy: set[str] = set()
    is_over = threading.Event()

    def next_block(crew: Crew) -> Block | None:
        """Waits while another crew may still leave something."""
        with changed:
            while not left and busy and not is_over.is_set():
                changed.wait(1.0)
            if not left or is_over.is_set():
                return None
            busy.add(crew.names)
            return left.popleft()

    def done(crew: Crew, rest: Block) -> None:
        with changed:
            busy.discard(crew.names)
            if rest:
                left.appendleft(rest)
            changed.notify_all()

    def work(crew: Crew) -> None:
        while (block := next_block(crew)) is not None:
            rest: Block = []
            try:
                measure(block, crew)
            except Exception as error:
                errors.append(error)
                if isinstance(error, KvstudyError):
                    rest = unmeasured(block)
                    if not is_over.is_set():
                        print(f"hosts {crew.names} measure no more: {error.message}", file=sys.stderr)
                return
            finally:
                done(crew, rest)

    threads = [threading.Thread(target=work, args=(crew,), name=crew.names) for crew in crews]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            wait_until(lambda: not any(thread.is_alive() for thread in threads), 1.0)
    except BaseException:
        is_over.set()
        for crew in crews:
            for member in crew.members:
                member.host.abandon("interrupted")
        for thread in threads:
            thread.join()
        raise
    bugs = [error for error in errors if not isinstance(error, KvstudyError)]
    if bugs or errors:
        raise (bugs or errors)[0]
