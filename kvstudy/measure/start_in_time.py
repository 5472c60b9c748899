"""A load that begins at a given time, on one host or on several: the programs have to have opened their
connections by then, and on a busy machine they may need another try.

    started_in_time(lambda lead_s: …)      with a longer lead each time, as long as it ends with MissedStart
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from kvstudy.errors import RunFailed

T = TypeVar("T")
MISSED_START = ("the time is past", "too late to start")  # as loadgen says it
MISSED_START_EXIT = 1


class MissedStart(RunFailed):
    """loadgen had not opened its connections when it should have begun."""


def generator_failed(code: int, said: str) -> RunFailed:
    """MissedStart where that is what it failed for."""
    how = f"signal {-code}" if code < 0 else f"exit {code}"
    missed = code == MISSED_START_EXIT and any(words in said for words in MISSED_START)
    return (MissedStart if missed else RunFailed)(f"generator failed: {how}: {said or 'it said nothing'}")


def started_in_time(tried: Callable[[float], T], leads_s: Sequence[float]) -> T:
    """``tried`` with the first of these leads that is long enough for it; MissedStart when none is."""
    *others_s, last_s = leads_s
    for lead_s in others_s:
        with suppress(MissedStart):
            return tried(lead_s)
    return tried(last_s)
