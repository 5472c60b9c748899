"""How the profiler is called."""

import subprocess
from pathlib import Path

from kvstudy.subject.evidence import profiler
from kvstudy.subject.evidence.profiler import Profiler
from kvstudy.subject.jdk import Jdk


def test_paths_with_a_blank_reach_the_jvm_in_one_piece(monkeypatch):
    asked = []
    monkeypatch.setattr(
        profiler,
        "_finished",
        lambda argv, _timeout_s: (
            asked.append(argv) or subprocess.CompletedProcess(argv, 0, "return code: 0", "")
        ),
    )
    Profiler(Jdk(Path("/jdk"), "25"), Path("/my dir/libasyncProfiler.so"), Path("/c.jar")).stop(
        7, Path("/my dir/profile.jfr")
    )
    assert asked == [
        [
            "/jdk/bin/jcmd",
            "7",
            "JVMTI.agent_load",
            '"/my dir/libasyncProfiler.so"',
            '"stop,jfr,file=/my dir/profile.jfr"',
        ]
    ]
