"""Programs and workloads come to a host once, by the SHA-256 of their bytes, and are laid out there as in the
project.

    <folder>/artefacts/<sha256>        each file once, whole: it gets this name when its bytes have this
                                       digest and are on the disk; until nobody asks for it any more
    <folder>/tree/<path in project>    links to them: what a measurement asked for, and nothing else
"""

import hashlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from kvstudy.errors import KvstudyError
from kvstudy.record.durable import to_disk

ARTEFACTS, TREE = "artefacts", "tree"
UNUSED_MAX_S = 30 * 86_400


@dataclass(frozen=True)
class Item:
    """``path``: in the project."""

    path: str
    digest: str
    is_executable: bool


def manifest(root: Path, files: list[Path]) -> list[Item]:
    """``files``: below ``root``."""
    return [
        Item(str(path.relative_to(root)), _digest(path), os.access(path, os.X_OK))
        for path in dict.fromkeys(files)
    ]


def check_unchanged(root: Path, item: Item) -> None:
    """KvstudyError where the file is another one by now: hosts of one measurement have the same."""
    if not (root / item.path).is_file() or _digest(root / item.path) != item.digest:
        raise KvstudyError(
            f"file was changed while it was measured: {root / item.path}",
            "a host lacks it as it was; the same command measures with what is there now",
        )


def missing(folder: Path, digests: list[str]) -> list[str]:
    """Of these; what an interrupted sending or a power cut left is dropped."""
    for left in (folder / ARTEFACTS).glob("*.new"):
        left.unlink()
    return [digest for digest in dict.fromkeys(digests) if not _is_kept(folder / ARTEFACTS / digest)]


def _is_kept(path: Path) -> bool:
    """Whole: a name alone says nothing after a power cut."""
    if not path.is_file():
        return False
    if _digest(path) == path.name:
        return True
    path.unlink()
    return False


def keep(folder: Path, digest: str, piece: bytes, is_last: bool) -> None:
    """The next piece of a file. KvstudyError when the whole is not what it should be."""
    artefacts = folder / ARTEFACTS
    artefacts.mkdir(parents=True, exist_ok=True)
    new = artefacts / f"{digest}.new"
    with new.open("ab") as file:
        file.write(piece)
    if is_last:
        if _digest(new) != digest:
            new.unlink()
            raise KvstudyError(
                f"file came damaged to the host: sha256={digest[:16]}", "the same command sends it again"
            )
        to_disk(new)
        new.rename(artefacts / digest)
        to_disk(artefacts)


def lay_out(folder: Path, items: list[Item]) -> None:
    """The tree of these files alone. What nobody has asked for in UNUSED_MAX_S goes."""
    tree = folder / TREE
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("experiments", "notebooks"):  # by these a project is known
        (tree / name).mkdir(parents=True)
    for item in items:
        path = tree / item.path
        path.parent.mkdir(parents=True, exist_ok=True)
        source = folder / ARTEFACTS / item.digest
        source.chmod(0o755 if item.is_executable else 0o644)
        os.utime(source)
        os.link(source, path)
    for artefact in (folder / ARTEFACTS).iterdir():
        if artefact.stat().st_mtime < time.time() - UNUSED_MAX_S:
            artefact.unlink()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
