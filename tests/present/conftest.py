import pytest
from sample import keep, sample_tables


@pytest.fixture(scope="session")
def tables():
    """Sample runs of two workloads, two numbers of connections and three rates; 16 000 r/s is past
    saturation."""
    return keep(sample_tables(), lambda run: not run.profiled)


@pytest.fixture(scope="session")
def profiles():
    return keep(sample_tables(), lambda run: run.profiled)
