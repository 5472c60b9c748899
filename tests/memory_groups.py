"""The mark of tests that put a process into a real memory group, which takes root or a delegated one."""

import pytest

from kvstudy.hosts.memory_group import NoMemoryGroup, try_out


def _problem() -> str | None:
    try:
        try_out()
    except NoMemoryGroup as missing:
        return missing.message
    return None


PROBLEM = _problem()
can_make_groups = pytest.mark.skipif(PROBLEM is not None, reason=f"{PROBLEM}")
