"""What is looked at once before the first run: what all runs would fail by, and what is sealed already."""

import json
import socket
import sys
from pathlib import Path

import pytest

from kvstudy.errors import KvstudyError
from kvstudy.measure.artifacts import Artifacts
from kvstudy.measure.execute import _sealed_with_these_programs
from kvstudy.measure.preconditions import check_port
from kvstudy.project import raw_root

sys.path.append(str(Path(__file__).parents[1] / "analyse"))
from duet_maker import DuetMaker
from run_maker import RunMaker


def test_a_port_in_use_is_named_before_anything_starts():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(KvstudyError) as refused:
            check_port(port)
    assert (
        str(refused.value)
        == f"port {port} is in use\n  choose another one, or port: 0, which takes a free one"
    )
    check_port(port)
    check_port(0)


def test_launches_of_a_duet_are_not_taken_for_runs_when_a_measurement_is_resumed(tmp_path):
    """Both are sealed below the experiment's name; a launch has two sides, and neither generator nor
    service."""
    DuetMaker(raw_root(tmp_path))(experiment="trial")
    run = RunMaker(raw_root(tmp_path))(experiment="trial", identity="a run", tool_digests={"loadgen": "0"})

    class Service:
        digest, digest_name = None, "kv-service"

    facts = run.facts
    key = [facts.get("server") or "kv-service", facts.get("subject"), facts["service"], facts["jvm"]]
    artifacts = Artifacts(tmp_path, Path("loadgen"), {}, {json.dumps(key, sort_keys=True): Service()})
    artifacts.__dict__["generator_digests"] = {"loadgen": "0"}  # of a program that is none
    assert list(_sealed_with_these_programs(artifacts, tmp_path, "trial", facts["label"])) == ["a run"]
