"""How the profiler is called."""

import subprocess
from pathlib import Path

import pytest

from kvstudy.subject.evidence import profiler
from kvstudy.subject.evidence.profiler import Profiler
from kvstudy.subject.jdk import Jdk


@pytest.fixture
def asked(monkeypatch):
    """The words of every call, and where the file that the agent is told lay then."""
    calls = []

    def finished(words, _timeout_s):
        told = words[-1].strip('"').split(",")
        files = [Path(one.removeprefix("file=")).resolve() for one in told if one.startswith("file=")]
        calls.append((words, files))
        return subprocess.CompletedProcess(words, 0, "return code: 0", "")

    monkeypatch.setattr(profiler, "_finished", finished)
    return calls


def of(folder: Path) -> Profiler:
    return Profiler(Jdk(Path("/jdk"), "25"), folder / "libasyncProfiler.so", Path("/c.jar"))


def test_paths_with_a_blank_reach_the_jvm_in_one_piece(asked):
    of(Path("/my dir")).start(7, ("cpu",), Path("/my dir/profile.jfr"))
    of(Path("/my dir")).stop(7)
    agent = ["/jdk/bin/jcmd", "7", "JVMTI.agent_load", '"/my dir/libasyncProfiler.so"']
    assert [words for words, _ in asked] == [
        [*agent, '"start,jfr,file=/my dir/profile.jfr,event=cpu,interval=1ms"'],
        [*agent, '"stop"'],
    ]


def test_a_comma_in_the_name_of_a_folder_ends_no_option_of_the_agent(asked, tmp_path):
    folder = tmp_path / "mine, and yours"
    folder.mkdir()
    of(folder).start(7, ("cpu",), folder / "profile.jfr")
    ((words, files),) = asked
    assert files == [folder / "profile.jfr"]
    assert words[-1].count(",") == len(("jfr", "file", "event", "interval"))
