"""The fixtures ``hosts`` (four namespaces with sshd) and ``project``. Tests of the groups "hosts" and "hosts
that fail" may run at once, in namespaces of their own; more at a time would wait for one another."""

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "measure"))
from namespaces import Namespaces, missing
from project import project


@pytest.fixture(scope="session")
def hosts(tmp_path_factory):
    """Where they cannot be made the test fails and says why, so that nobody takes it for passed."""
    if lacks := missing():
        if os.environ.get("KVSTUDY_NO_NETNS") == "1":
            pytest.skip(f"no namespaces, as KVSTUDY_NO_NETNS=1 allows: {', '.join(lacks)}")
        pytest.fail(f"this machine lacks: {', '.join(lacks)}; KVSTUDY_NO_NETNS=1 leaves these tests out")
    with Namespaces(tmp_path_factory.mktemp("hosts"), ["a", "b", "c", "d"]) as made:
        yield made
