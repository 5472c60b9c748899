"""A folder that is written beside the one whose place it takes: who is killed meanwhile leaves the old one,
or none, never a mixture.

    with replacing(folder) as new: …      writes into ``new``; where it raises, ``folder`` stays

What a killed one left behind goes with the next. A lock tells it from the folder of one that is still at
work, and no two have one name, also where the other one is in another container.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from kvstudy.record.run_folder import PARTIAL_SUFFIX

_OLD = ".old"


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A new folder; at the end of the block it takes the place of ``folder``, by two renames."""
    _drop_left_behind(folder)
    mine = f".{folder.name}.{uuid4().hex}"
    new, old = (folder.with_name(f"{mine}{what}{PARTIAL_SUFFIX}") for what in (".new", _OLD))
    lock = _begun(new)
    try:
        yield new
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        if old.exists() and not folder.exists():  # interrupted between the two
            old.rename(folder)
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
        os.close(lock)


def _begun(folder: Path) -> int:
    """Its lock; whoever tidies up may take the folder for one left behind before it has that."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if folder.is_dir():
                return lock
            os.close(lock)


def _drop_left_behind(folder: Path) -> None:
    """Of those killed between the renames the old folder stays where no new one came."""
    named = re.compile(
        rf"\.{re.escape(folder.name)}\.(\d+|[0-9a-f]{{32}})(\.new|(?P<old>\.old))?({PARTIAL_SUFFIX})?"
    )
    for path in folder.parent.glob(".*"):
        found = named.fullmatch(path.name)
        if found and not (found["old"] and not folder.exists()) and _is_left(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
