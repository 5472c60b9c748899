"""The process whose copies kernels are (kernels.py).

    python -m kvstudy.present.kernel_origin MODULE...

It imports the modules. For each line on its stdin, a JSON object of argv, cwd and env, it forks a kernel and
prints its pid. It ends with its stdin, and its kernels end with it.
"""

import atexit
import gc
import json
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module

from kvstudy.present.lean_imports import import_nbformat


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what is printed is no answer
    import_nbformat()
    kernelapp = import_module("ipykernel.kernelapp")
    for name in sys.argv[1:]:
        _import(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a kernel ended
    gc.freeze()  # copies share what is never looked through
    for line in sys.stdin:
        origin, kernel = os.getpid(), os.fork()
        if kernel == 0:
            answers.close()
            kernelapp.launch_new_instance(argv=_prepared(origin, **json.loads(line)))
            atexit._run_exitfuncs()
            os._exit(0)  # without taking everything that was imported apart, which takes 0.4 s
        print(kernel, file=answers, flush=True)


def _import(name: str) -> None:
    """A module, or what a module has of that name. What cannot be imported its notebook will tell."""
    try:
        import_module(name)
    except Exception:
        with suppress(Exception):
            import_module(name.rpartition(".")[0])


def _prepared(origin: int, argv: list[str], cwd: str, env: dict[str, str]) -> list[str]:
    """This process as one of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    return [*argv, f"--IPKernelApp.parent_handle={origin}"]  # with which it ends


if __name__ == "__main__":
    main()
