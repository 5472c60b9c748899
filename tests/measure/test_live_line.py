"""What loadgen tells of each second, heard by a program; its log is as without."""

import subprocess
import sys

from kvstudy.measure.live_line import LiveLine
from kvstudy.measure.progress import Second


def heard_from(argv: list, log) -> list[Second]:
    told = []
    line = LiveLine(told.append, log)
    subprocess.run(argv, stderr=line.descriptor, stdout=subprocess.DEVNULL, check=False, timeout=30)
    line.close()
    return told


def test_each_second_is_told_and_the_rest_is_in_the_log(tmp_path):
    code = """
import sys, time
for text in ("note\\n", "\\r\\x1b[K", "812/s  p50 1.05ms  p99 8.12ms  2s left", "\\r\\x1b[K",
             "9/s  p50 -  p99 -  1s", " left", "\\r\\x1b[Kwarning: late\\n", "end"):
    sys.stderr.write(text); sys.stderr.flush(); time.sleep(0.02)
"""
    told = heard_from([sys.executable, "-c", code], tmp_path / "log")
    assert told == [Second(812, "1.05ms", "8.12ms"), Second(9, "-", "-")]
    assert (tmp_path / "log").read_text() == "note\nwarning: late\nend"
