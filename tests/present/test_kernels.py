"""Kernels of an export are copies of one process: each is alone with what it does, and none outlives who
asked for it."""

import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from kvstudy.hosts.process import wait_until
from kvstudy.present.kernels import Copies, imported_by
from kvstudy.present.report import _run

PYTHON = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
WAITS = (
    "import os, time; from pathlib import Path\nPath({file!r}).write_text(str(os.getpid()))\ntime.sleep(60)"
)


def notebook(*cells):
    return new_notebook(cells=[new_code_cell(cell) for cell in cells], metadata=PYTHON)


def said(copies, root, *cells) -> str:
    """What the cells printed, executed in a kernel of its own."""
    executed = _run(notebook(*cells), root, {}, copies.manager)
    return "".join(output.text for cell in executed.cells for output in cell.outputs)


def waiting(copies, root) -> tuple[threading.Thread, psutil.Process, list[Exception]]:
    """A notebook that takes a minute, and its kernel. When it ends with an error, that is in the list."""
    file, errors = root / "pid", []

    def execute():
        try:
            _run(notebook(WAITS.format(file=str(file))), root, {}, copies.manager)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=execute)
    thread.start()
    assert wait_until(lambda: file.is_file() and file.read_text(), 60)
    return thread, psutil.Process(int(file.read_text())), errors


def has_ended(process: psutil.Process) -> bool:
    """Also when nobody has asked yet how."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_modules_that_cells_import_are_found_whatever_else_is_in_them():
    cells = ("%load_ext kvstudy\nimport pandas as pd, json", "from kvstudy import sweep, runs\n!ls", "if (")
    text = new_notebook(cells=[new_markdown_cell("import this")])
    assert imported_by([text, notebook(*cells), notebook("import json")]) == [
        "pandas",
        "json",
        "kvstudy.sweep",
        "kvstudy.runs",
    ]


def test_a_kernel_has_what_was_imported_for_it_and_its_own_folder_and_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("WHO", "reader")
    with Copies(["wave", "no_such_module", "kvstudy.units.parse_size_bytes", "no.such.name"]) as copies:
        monkeypatch.setenv("WHO", "another")
        told = "import os, sys; print(*(name in sys.modules for name in ('wave', 'kvstudy.units', 'chunk')))"
        assert said(copies, tmp_path, told, "print(os.getcwd(), os.environ['WHO'], sys.stdin.read())") == (
            f"True True False\n{tmp_path} another \n"
        )


def test_what_a_kernel_does_another_does_not_see(tmp_path):
    with Copies(["wave"]) as copies:
        assert said(copies, tmp_path, "import wave, os; wave.mine = 1; os.chdir('/'); print(1)") == "1\n"
        assert said(copies, tmp_path, "import wave, os; print(hasattr(wave, 'mine'), os.getcwd())") == (
            f"False {tmp_path}\n"
        )


def test_kernels_under_way_are_ended_and_none_begins_afterwards(tmp_path):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        with Copies([]) as copies:
            thread, kernel, _ = waiting(copies, tmp_path)
            copies.end()
            thread.join(30)
            assert not thread.is_alive() and has_ended(kernel)
            with pytest.raises(RuntimeError, match="^kernels were ended$"):
                said(copies, tmp_path, "print(1)")
        assert other.poll() is None
        other.kill()


def test_a_kernel_that_is_killed_is_told_of_and_the_next_one_begins(tmp_path):
    with Copies([]) as copies:
        thread, kernel, errors = waiting(copies, tmp_path)
        kernel.kill()
        thread.join(30)
        assert [type(error) for error in errors] == [DeadKernelError]
        assert said(copies, tmp_path, "print(1)") == "1\n"


def test_when_the_process_dies_that_is_copied_its_kernels_end_and_the_next_has_another(tmp_path):
    with Copies([]) as copies:
        thread, kernel, errors = waiting(copies, tmp_path)
        kernel.parent().kill()
        thread.join(30)
        assert [type(error) for error in errors] == [DeadKernelError] and has_ended(kernel)
        assert said(copies, tmp_path, "print(1)") == "1\n"


def test_no_kernel_outlives_who_asked_for_it(tmp_path):
    file = tmp_path / "pid"
    program = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
from pathlib import Path
from test_kernels import Copies, waiting
waiting(Copies([]), Path({str(tmp_path)!r}))
print("waits", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout.readline() == "waits\n"
        kernel = psutil.Process(int(file.read_text()))
        origin = kernel.parent()
        asking.kill()
    assert wait_until(lambda: has_ended(kernel) and has_ended(origin), 30)
