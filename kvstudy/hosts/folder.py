"""The folder of a host, as hosts.yaml names it, is kvstudy's alone: whole trees in it are deleted each time.

    claim(folder)     makes and marks it; KvstudyError where it holds something else: nothing is touched then
    check(folder)     the same, and nothing is written
    python -m kvstudy.hosts.folder claim FOLDER      for who comes over ssh; where it is refused one line and
                                                     the exit code REFUSED

It is known by its MARKER. Without one it may be empty, hold a Python environment, or be that of a kvstudy of
before there was a marker, which holds nothing but OURS, and one of FIRST. Names alone say nothing: ``runs``
and ``tree`` may be anybody's.
"""

import sys
from pathlib import Path

from kvstudy.errors import KvstudyError, in_words

MARKER = ".kvstudy-host"
OURS = frozenset({"agent.log", "artefacts", "cluster", "dask", "runs", "tree", "work"})
FIRST = ("agent.log", "cluster/worker.log")  # written before all else by agents and workers of then
NEVER_DELETED = frozenset({"dask", "lost+found"})  # a worker's own; that of a disk which is mounted there
REFUSED = 3
HINT = "name an empty one under folder"
NAMED_MAX = 3


def claim(folder: Path) -> None:
    check(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MARKER).exists():
        (folder / MARKER).write_text("of kvstudy, which deletes what lies here: see docs/hosts.md\n")


def check(folder: Path) -> None:
    if folder.is_dir() and not (folder / MARKER).exists() and (others := _others_in(folder)):
        more = ", …" if len(others) > NAMED_MAX else ""
        raise KvstudyError(
            f"folder holds something else: folder={folder} found={', '.join(others[:NAMED_MAX])}{more}", HINT
        )


def _others_in(folder: Path) -> list[str]:
    is_of_before = any((folder / name).is_file() for name in FIRST)
    ours = NEVER_DELETED | OURS if is_of_before else NEVER_DELETED
    return sorted(
        path.name for path in folder.iterdir() if path.name not in ours and not _is_environment(path)
    )


def _is_environment(path: Path) -> bool:
    """Of Python, under a name that we do not use."""
    return path.name not in OURS and (path / "pyvenv.cfg").is_file()


def main(what: str, folder: str) -> int:
    try:
        {"claim": claim, "check": check}[what](Path(folder).expanduser())
    except (KvstudyError, OSError) as error:
        print(in_words(error) if isinstance(error, OSError) else error.message, file=sys.stderr)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
