"""Which kvstudy, Python and Dask are here: what runs on a host is the code there, and who measures only names
it (objects travel as pickles, which hold names and no code).

    versions()         of this process
    check(theirs)      KvstudyError in one line where a host has others
"""

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import kvstudy
from kvstudy.errors import KvstudyError

REMEDY = (
    "bring the files of this checkout there (rsync), changes that are not committed too, "
    "and run make setup there"
)
HINT = f"{REMEDY}; kvstudy hosts check says more"
NEVER_THERE = "present"  # the room whose code no host executes


@cache
def code_digest() -> str:
    """Of all modules that a host may execute, as they lie here."""
    package, digest = Path(kvstudy.__file__).parent, hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package)
        if name.parts[0] != NEVER_THERE:
            digest.update(f"{name}\n".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


@cache
def versions() -> dict[str, str | None]:
    return {
        "kvstudy": code_digest(),
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "Dask": installed("distributed"),
    }


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def check(theirs: dict[str, str | None]) -> None:
    other = [
        f"{name} {theirs.get(name) or 'none'} instead of {ours}"
        for name, ours in versions().items()
        if theirs.get(name) != ours
    ]
    if other:
        raise KvstudyError(f"other versions there: {', '.join(other)}", HINT)
