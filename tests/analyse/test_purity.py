"""Measuring and analysing never mix: what reads runs starts no process and opens no connection."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kvstudy

PACKAGE = Path(kvstudy.__file__).parent
PURE = sorted(path for part in ("analyse", "record") for path in (PACKAGE / part).rglob("*.py"))
STARTS_SOMETHING = {
    "subprocess",
    "multiprocessing",
    "socket",
    "http",
    "urllib",
    "requests",
    "concurrent",
    "asyncio",
    "psutil",
    "pty",
}


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return names


@pytest.mark.parametrize("path", PURE, ids=lambda path: str(path.relative_to(PACKAGE).with_suffix("")))
def test_a_module_that_reads_runs_imports_nothing_that_measures_or_starts_a_process(path):
    found = imports(path)
    assert not [
        name for name in found if name.startswith(("kvstudy.measure", "kvstudy.present", "kvstudy.cli"))
    ]
    assert not {name.split(".")[0] for name in found} & STARTS_SOMETHING
    if path.is_relative_to(PACKAGE / "record"):
        assert not [name for name in found if name.startswith("kvstudy.analyse")]
    assert not {"system", "popen", "fork", "execv", "posix_spawn"} & _attributes_of_os(path)


def _attributes_of_os(path: Path) -> set[str]:
    return {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    }


def test_reading_runs_loads_no_measuring_code_and_starts_no_process(tmp_path):
    """In a fresh interpreter whose audit hook refuses to start anything."""
    program = f"""
import sys
def refuse(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.fork", "os.exec", "os.posix_spawn", "socket.connect"):
        raise RuntimeError(event)
sys.addaudithook(refuse)
from pathlib import Path
from kvstudy.analyse import tables, comparison, scalability, noise, published
tables.rebuild([Path({str(tmp_path)!r})], Path({str(tmp_path / "tidy")!r}))
tables.load(Path({str(tmp_path / "tidy")!r}))
print([name for name in sys.modules if name.startswith("kvstudy.measure")])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=PACKAGE.parent, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
