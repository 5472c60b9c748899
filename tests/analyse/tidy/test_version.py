"""Tables of other code are never taken for tables of this one."""

import ast
import subprocess
import sys
from pathlib import Path

import kvstudy
from kvstudy.analyse.tidy import version


def test_every_module_that_reading_a_run_loads_has_a_say_in_the_version(make_run):
    """In a fresh interpreter: nobody keeps a list."""
    run = make_run("a", profile=["cpu"], stacks={"cpu": "x;y 5\n"})
    program = f"""
import sys
from pathlib import Path
from kvstudy.analyse.tidy.batches import Source, batches
from kvstudy.analyse.tidy.part import Task, make
from kvstudy.analyse.tidy.version import code_version
run = Path({str(run.path)!r})
make(Task(batches([Source(run.name, "seal", run)])[0], run.parents[2] / "tidy", code_version()))
print(*(name for name in sys.modules if name.partition(".")[0] == "kvstudy"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert {
        "kvstudy.analyse.observation",
        "kvstudy.disturbance",
        "kvstudy.record.hdr",
        "kvstudy.analyse.comparison",
    } <= loaded
    assert loaded <= version.modules().keys()


def test_figures_and_statistics_have_no_say():
    assert not [
        name
        for name in version.modules()
        if name.startswith(
            ("kvstudy.present", "kvstudy.measure", "kvstudy.analyse.tail", "kvstudy.analyse.tables")
        )
    ]


def test_a_changed_line_or_library_is_another_version(tmp_path, monkeypatch):
    before = version.code_version()
    files = version.modules()
    changed = tmp_path / "disturbance.py"
    changed.write_text(files["kvstudy.disturbance"].read_text() + "\n")
    monkeypatch.setattr(version, "modules", lambda: files | {"kvstudy.disturbance": changed})
    assert version.code_version.__wrapped__() != before
    monkeypatch.setattr(version, "modules", lambda: files)
    assert version.code_version.__wrapped__() == before
    monkeypatch.setattr(version.metadata, "version", lambda library: "0")
    assert version.code_version.__wrapped__() != before


def test_the_package_itself_is_a_module_of_it():
    assert str(version.modules()["kvstudy"]) == kvstudy.__file__


def test_no_import_is_overlooked_however_it_is_laid_out(tmp_path):
    odd = tmp_path / "odd.py"
    odd.write_text(
        "import kvstudy.api as api, kvstudy.units\n"
        "def late():\n"
        "    from kvstudy.analyse import (\n        rates,  # of answers\n        tail as slow,\n    )\n"
        "    from kvstudy.record import hdr; return hdr\n"
    )
    for path in (odd, *Path(kvstudy.__file__).parent.rglob("*.py")):
        found = version._imported("kvstudy", path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= found, path
            elif isinstance(node, ast.ImportFrom):
                assert {f"{node.module}.{alias.name}" for alias in node.names} <= found, path
    assert {"kvstudy.units", "kvstudy.analyse.tail", "kvstudy.record.hdr"} <= version._imported("x", odd)
