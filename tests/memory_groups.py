"""The mark of tests that put a process into a real memory group, which takes root or a delegated one; and
what is left of a process's groups."""

from pathlib import Path

import pytest

from kvstudy.hosts.memory_group import NAME, NoMemoryGroup, controller, try_out


def _problem() -> str | None:
    try:
        try_out()
    except NoMemoryGroup as missing:
        return missing.message
    return None


PROBLEM = _problem()
can_make_groups = pytest.mark.skipif(PROBLEM is not None, reason=f"{PROBLEM}")


def groups_of(pid: int) -> list[Path]:
    """Of others on this machine nothing is known: they may measure meanwhile."""
    return list(controller().parent.glob(f"{NAME}{pid}-*"))
