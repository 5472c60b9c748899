import pytest
from run_maker import RunMaker


@pytest.fixture
def make_run(tmp_path) -> RunMaker:
    return RunMaker(tmp_path / "raw")
