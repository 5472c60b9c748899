"""Where things lie in the tree. The project root is the folder that holds ``experiments/`` and
``notebooks/``.

It is looked for upwards from the current folder, or given by the environment variable KVSTUDY_ROOT.
"""

import os
from pathlib import Path

from kvstudy.errors import InputError

ROOT_VARIABLE = "KVSTUDY_ROOT"
# Set while the HTML study is written: nobody can click, and its pages share one copy of the table script.
EXPORT_VARIABLE = "KVSTUDY_EXPORT"


def project_root(start: Path | None = None) -> Path:
    """The absolute project root; InputError when there is none above ``start`` (default: the current
    folder)."""
    given = os.environ.get(ROOT_VARIABLE)
    if given:
        root = Path(os.path.expanduser(given)).resolve()  # Path's own raises where nobody has that home
        if not _is_root(root):
            raise InputError(
                f"not a kvstudy project: {ROOT_VARIABLE}={given}",
                "it must name the folder that holds experiments/ and notebooks/",
            )
        return root
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if _is_root(folder):
            return folder
    raise InputError(
        f"not inside a kvstudy project: folder={here}",
        f"change to the folder that holds experiments/ and notebooks/, or set {ROOT_VARIABLE}",
    )


def raw_root(root: Path) -> Path:
    """Sealed run folders, one folder per experiment."""
    return root / "data" / "raw"


def reference_root(root: Path) -> Path:
    """The committed set of sealed runs."""
    return root / "data" / "reference"


def tidy_root(root: Path) -> Path:
    """Parquet tables, rebuilt from raw_root."""
    return root / "data" / "tidy"


def study_root(root: Path) -> Path:
    """The HTML pages of the whole study, unless another folder is named."""
    return root / "figures" / "study"


def work_root(root: Path) -> Path:
    """Scratch: stores of running services, filled stores kept for restoring, the lock of a running
    measurement."""
    return root / "data" / "work"


def workloads_root(root: Path) -> Path:
    return root / "experiments" / "workloads"


def service_jar(root: Path) -> Path:
    return root / "service" / "target" / "kv-service.jar"


def empty_server_jar(root: Path) -> Path:
    """One-nio with an empty handler: what the service is measured beside."""
    return root / "service" / "target" / "empty-server.jar"


def profiler_library(root: Path) -> Path:
    return root / "service" / "target" / "tools" / "libasyncProfiler.so"


def jfr_converter_jar(root: Path) -> Path:
    return root / "service" / "target" / "tools" / "jfr-converter.jar"


def loadgen_binary(root: Path) -> Path:
    return root / "loadgen" / "target" / "release" / "loadgen"


def _is_root(folder: Path) -> bool:
    return (folder / "experiments").is_dir() and (folder / "notebooks").is_dir()
