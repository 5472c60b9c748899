"""When to measure no further: what failed will fail again."""

import re

from kvstudy.errors import KvstudyError
from kvstudy.measure.script import FILL
from kvstudy.record.run_folder import SealedRun
from kvstudy.units import counted

# When so many fail one after the other, the next ones will too.
FAILURES_IN_A_ROW_MAX = 3
# As loadgen says it: of a script or of a module that it requires, with the line where that is known.
_OF_SCRIPT = re.compile(r"generator failed: exit 1: (?:[^:]*/)?([^:/]+\.lua):(?:\d+:)? ")


class FailuresInARow:
    """``thing``: what is measured, a run or a launch."""

    def __init__(self, thing: str):
        self._thing, self._count = thing, 0

    def note(self, run: SealedRun) -> None:
        """Of each that was measured. KvstudyError where there is no use in another one."""
        check_script(run)
        self._count = 0 if run.facts["outcome"] == "completed" else self._count + 1
        if self._count == FAILURES_IN_A_ROW_MAX:
            raise _given_up(f"{counted(self._count, self._thing)} in a row failed, the last one", run)


def check_script(run: SealedRun) -> None:
    """KvstudyError where it failed by a mistake in its script."""
    if is_of_script(run.facts["outcome"]):
        raise _given_up("a script failed", run)


def is_of_script(outcome: str) -> bool:
    """Whether every other run of the script meets it too. What fills a store fails by what its service
    answers."""
    found = _OF_SCRIPT.search(outcome)
    return found is not None and found[1] != FILL


def _given_up(which: str, run: SealedRun) -> KvstudyError:
    return KvstudyError(
        f"{which}: {run.facts['outcome'].removeprefix('failed: ')}",
        f"see {run.path}; mend it and run the same command with --resume",
    )
