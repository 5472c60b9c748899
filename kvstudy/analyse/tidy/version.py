"""Of which code a part of the tables is: a digest of all that has a say in its rows and bytes.

Whoever changes a check, a reader, a rule or a column gets tables of that code, without a number to raise;
whoever changes a figure or a statistic keeps those he has. The code is found by following imports from where
runs are read: a list would be forgotten.
"""

import hashlib
import re
from functools import cache
from importlib import metadata
from pathlib import Path

import kvstudy

ROOTS = ("kvstudy.analyse.tidy.part", "kvstudy.analyse.tidy.batches")
LIBRARIES = (
    "numpy",
    "pandas",
    "pyarrow",
    "hdrhistogram",
    "pydantic",
)  # they compute the numbers and write the bytes
_PACKAGE = Path(kvstudy.__file__).parent
# Parsing 45 files would take every process 0.1 to 0.2 s. A line of a text that looks like an import counts as
# one: tables are then made anew once too often.
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<package>[\w.]+)[ \t]+)?import[ \t]+(?P<members>\([^)]*\)|.+)$", re.MULTILINE
)


@cache
def code_version() -> str:
    digest = hashlib.sha256()
    for library in LIBRARIES:
        digest.update(f"{library} {metadata.version(library)}\n".encode())
    for name, path in sorted(modules().items()):
        digest.update(f"{name}\n".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def modules() -> dict[str, Path]:
    """Name → file of every module of kvstudy that reading a run may execute."""
    found: dict[str, Path] = {}
    waiting = [(name, _file(name)) for name in ROOTS]
    while waiting:
        name, path = waiting.pop()
        if name not in found:
            found[name] = path
            waiting += [(one, file) for one in _imported(name, path) if (file := _file(one)) is not None]
    return found


def _imported(name: str, path: Path) -> set[str]:
    """What ``path`` imports, and the packages around each: their __init__ runs too."""
    names = {name}
    for found in _IMPORT.finditer(path.read_text(encoding="utf-8")):
        package, members = found["package"], re.findall(r"[\w.]+", found["members"])
        assert not (package or "").startswith("."), f"{path}: relative imports are not followed"
        names |= {package, *(f"{package}.{member}" for member in members)} if package else set(members)
    return names | {name.rsplit(".", level)[0] for name in names for level in range(1, name.count(".") + 1)}


def _file(name: str) -> Path | None:
    """None for what is no module of kvstudy."""
    package, *parts = name.split(".")
    if package != kvstudy.__name__:
        return None
    base = _PACKAGE.joinpath(*parts)
    return next(
        (
            path
            for path in (base.with_suffix(".py") if parts else base / "__init__.py", base / "__init__.py")
            if path.is_file()
        ),
        None,
    )


code_version()  # now: of the source that was imported, not of what somebody has made of it by the first call
