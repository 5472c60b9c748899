"""Whose the folder of a host is: nobody loses data because its folder was named in hosts.yaml."""

import subprocess
import sys
from pathlib import Path

import pytest

from kvstudy.errors import KvstudyError
from kvstudy.hosts import folder
from kvstudy.hosts.folder import HINT, REFUSED, check, claim


def laid_out(there: Path, *names: str) -> Path:
    for name in names:
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text(name)
    return there


def content(there: Path) -> dict[str, str]:
    return {str(path.relative_to(there)): path.read_text() for path in there.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "theirs",
    [
        "notes.txt",
        ".hidden",
        "runs/2024/result.csv",
        "tree/oak",
        "work/stores/1",
        "cluster/nodes",
        "artefacts/vase",
        "tree/pyvenv.cfg",
    ],
)
def test_a_folder_that_holds_something_else_is_refused_and_nothing_in_it_is_touched(tmp_path, theirs):
    """Also under a name that kvstudy uses."""
    there = laid_out(tmp_path / "perf", theirs)
    for ask in (check, claim):
        with pytest.raises(KvstudyError) as refused:
            ask(there)
        found = theirs.split("/")[0]
        assert refused.value.message == f"folder holds something else: folder={there} found={found}"
        assert refused.value.hint == HINT
    assert content(there) == {theirs: theirs}


def test_something_else_beside_what_an_older_kvstudy_left_is_refused(tmp_path):
    there = laid_out(tmp_path / "perf", "agent.log", "runs/1", *"dcba")
    with pytest.raises(KvstudyError, match="found=a, b, c, …"):
        claim(there)


@pytest.mark.parametrize(
    "left",
    [
        [],
        ["agent.log", "artefacts/0", "dask/lock", "runs/1", "tree/x", "work/session.json"],
        ["cluster/worker.log", "cluster/key.pem"],
        ["dask/lock", "lost+found/1", ".venv/pyvenv.cfg"],
    ],
    ids=["nothing", "of an older agent", "of an older worker", "a disk with an environment"],
)
def test_an_empty_folder_is_claimed_and_one_of_an_older_kvstudy_or_with_an_environment_too(tmp_path, left):
    there = laid_out(tmp_path / "kvstudy", *left)
    check(there)
    assert content(there) == dict(zip(left, left, strict=True))
    claim(there)
    laid_out(there, "runs/2", "whatever")
    claim(there)  # it is ours from then on
    assert content(there).items() >= dict(zip(left, left, strict=True)).items()


def test_who_asks_over_ssh_gets_one_line_and_a_code_that_says_it(tmp_path):
    there = laid_out(tmp_path / "perf", "notes.txt")
    asked = [sys.executable, "-m", folder.__name__, "claim"]
    done = subprocess.run([*asked, str(there)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (REFUSED, "")
    assert done.stderr == f"folder holds something else: folder={there} found=notes.txt\n"
    assert subprocess.run([*asked, str(tmp_path / "new")], check=True, capture_output=True).stdout == b""
    assert (tmp_path / "new").is_dir()
