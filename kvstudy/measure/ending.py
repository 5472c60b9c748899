"""How a run or a launch ended: what run.json says of it, and what is raised once it is sealed."""

from collections.abc import Callable
from dataclasses import dataclass

from kvstudy.errors import KvstudyError
from kvstudy.service_failure import INTERRUPTED


@dataclass
class Ending:
    """``outcome``: as in run.json. ``raised``: an interrupt, or an error of kvstudy itself."""

    outcome: str = "completed"
    raised: BaseException | None = None

    def evidence_lost(self, why: str | None) -> None:
        if why and self.outcome == "completed":
            self.outcome = f"failed: {why}"

    def raise_again(self) -> None:
        if self.raised is not None:
            raise self.raised


def ending_of(
    work: Callable[[], None],
    phase: Callable[[], str],
    reason: Callable[[KvstudyError | OSError], str],
) -> Ending:
    """Works, and says how that ended. ``phase``: which one it is in; ``reason``: why it failed, in words."""
    try:
        work()
    except KeyboardInterrupt as interrupt:
        return Ending(f"{INTERRUPTED} during {phase()}", interrupt)
    except (KvstudyError, OSError) as error:
        return Ending(f"failed: {reason(error)}")
    except Exception as error:
        return Ending(f"failed: {type(error).__name__}: {error}", error)
    return Ending()
