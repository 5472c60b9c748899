"""Kernels for one export: copies of a process that has imported what its notebooks import. A page then takes
its own work alone, where a kernel of its own takes 3 s of CPU before it.

    with Copies(imported_by(notebooks)) as copies:
        papermill.execute_notebook(..., kernel_manager_class=copies.manager)

The process is kernel_origin.py.
"""

import ast
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress

import nbformat
import psutil
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

_MAGIC = re.compile(r"^\s*[%!].*$", re.MULTILINE)


def imported_by(notebooks: Iterable[nbformat.NotebookNode]) -> list[str]:
    """Names of what cells of code import, each once; of ``from a import b`` a.b, which may be no module."""
    found: dict[str, None] = {}
    for cell in (cell for notebook in notebooks for cell in notebook.cells if cell.cell_type == "code"):
        with suppress(SyntaxError):
            for node in ast.walk(ast.parse(_MAGIC.sub("", cell.source))):
                if isinstance(node, ast.Import):
                    found |= dict.fromkeys(one.name for one in node.names)
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found |= dict.fromkeys(f"{node.module}.{one.name}" for one in node.names)
    return list(found)


class Copies:
    """``manager``: the class of jupyter_client's kernel managers whose kernels are copies."""

    def __init__(self, modules: list[str]):
        self._modules, self._asking, self._is_over = modules, threading.Lock(), False
        self._origin = self._begun()
        copies = self

        class Provisioner(LocalProvisioner):
            async def launch_kernel(self, cmd: list[str], **given: object) -> dict:
                self.cwd = str(given.get("cwd") or os.getcwd())
                self.process = copies._copy(argv=cmd[cmd.index("-f") :], cwd=self.cwd, env=given["env"])
                self.pid = self.pgid = self.process.pid
                return self.connection_info

            async def send_signal(self, signum: int) -> None:
                if self.process.poll() is None:  # its number may be another's since
                    await super().send_signal(signum)

        class Manager(AsyncKernelManager):
            def __init__(self, **given: object):
                super().__init__(**given)
                self.provisioner = Provisioner(kernel_spec=self.kernel_spec, parent=self)

        self.manager = Manager

    def __enter__(self) -> "Copies":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """At once, with every kernel that is left. None begins afterwards."""
        self._is_over = True
        self._kill()
        with self._asking:  # who asked for a copy has been answered, or has begun another origin
            self._kill()
            self._forget()

    def _kill(self) -> None:
        if self._origin.poll() is None:
            origin = psutil.Process(self._origin.pid)
            origin.suspend()  # no copy begins while we look
            for process in (*origin.children(recursive=True), origin):
                with suppress(psutil.NoSuchProcess):
                    process.kill()

    def _begun(self) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "kvstudy.present.kernel_origin", *self._modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is ours
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # what has threads cannot be copied whole
        )

    def _forget(self) -> int:
        """How the origin, which has ended, did."""
        for pipe in (self._origin.stdin, self._origin.stdout):
            with suppress(OSError):
                pipe.close()
        return self._origin.wait()

    def _copy(self, **asked: object) -> "_Copy":
        """RuntimeError when the origin ends meanwhile, or was ended. One that is gone is begun anew."""
        with self._asking:
            if self._is_over:
                raise RuntimeError("kernels were ended")
            if self._origin.poll() is not None:
                self._forget()
                self._origin = self._begun()
            answer = ""
            with suppress(OSError, ValueError):
                print(json.dumps(asked), file=self._origin.stdin, flush=True)
                answer = self._origin.stdout.readline()
            if not answer:
                raise RuntimeError(f"the process that kernels are copies of ended: exit={self._forget()}")
            return _Copy(int(answer))


class _Copy:
    """What of a ``Popen`` jupyter_client asks for, of a process that is no child of ours."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        self.pid = pid
        try:
            self._handle: int | None = os.pidfd_open(pid)
        except ProcessLookupError:  # it has ended already
            self._handle = None

    def poll(self) -> int | None:
        """1 when it has ended, however that was."""
        return self._ended(0)

    def wait(self) -> int:
        return self._ended(None)

    def send_signal(self, signum: int) -> None:
        if self._handle is None:
            raise ProcessLookupError(self.pid)
        signal.pidfd_send_signal(self._handle, signum)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def __del__(self) -> None:
        if self._handle is not None:
            os.close(self._handle)

    def _ended(self, timeout_ms: int | None) -> int | None:
        if self._handle is None:
            return 1
        ended = select.poll()
        ended.register(self._handle, select.POLLIN)
        return 1 if ended.poll(timeout_ms) else None
