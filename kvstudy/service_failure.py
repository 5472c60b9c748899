"""Whether a run that did not complete failed by the service's own doing, told by its outcome.

Such a run is an outcome of the service: for a comparison (analyse/validity.py) as for a search
(plan/objective.py). What kept it from being started at all is not, nor is a disk without room.
"""

import re

NO_ROOM = "no space left on device"  # as the system says it, and so the service
INTERRUPTED = "failed: interrupted"
# Over a network it is said of which host: ``host a: service died …``.
_FAILED = r"failed: (?:host \S+: )?"
_NEVER_STARTED = r"cannot (be started|be given its file|have its port|be limited to its memory)"
_NOT_WRITTEN = "fill lost records|(fill|head start) was not (over in time|acknowledged)"
_OF_SERVICE = re.compile(
    rf"{_FAILED}(service (?!{_NEVER_STARTED})|{_NOT_WRITTEN}|filled store did not come|"
    r"restored store did not come|records cannot be counted|"
    r"data check could not read back|generator got no answer)"
)
_BEFORE_LOAD = re.compile(
    rf"{_FAILED}(service is not there|service was not ready in time|service (ended|was killed) before it was|"
    r"service ended when it was ready|service (died|was killed) during (fill|POST /v0/admin)|"
    r"service does not answer: POST /v0/admin|service cannot be asked whether it rests|"
    rf"{_NOT_WRITTEN}|filled store did not come|restored store did not come|records cannot be counted)"
)


def is_of_service(outcome: str) -> bool:
    """``outcome``: run.json's."""
    return _OF_SERVICE.match(outcome) is not None and not is_for_want_of_room(outcome)


def is_under_load(outcome: str) -> bool:
    """Of these, one that says something about the rate: nothing was asked yet of a service that did not get
    so far, or was gone before, at an address where nobody starts it anew."""
    return is_of_service(outcome) and not _BEFORE_LOAD.match(outcome)


def is_for_want_of_room(message: str) -> bool:
    """``message``: of the error, or an outcome."""
    return NO_ROOM in message.lower()


def was_never_started(message: str) -> bool:
    """``message``: of the error, without what stands before it in an outcome."""
    return re.match(rf"service {_NEVER_STARTED}", message) is not None


def what_ended(outcome: str) -> str:
    """Of an ``outcome``, without the host and the details: ``service died during fill``."""
    return re.sub(rf"{_FAILED}([^:]*).*", r"\1", outcome, flags=re.DOTALL)


def is_interrupted(outcome: str) -> bool:
    """By who measures."""
    return outcome.startswith(INTERRUPTED)
