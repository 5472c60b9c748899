"""The experiments of this tree: who tries kvstudy has some of his own beside them."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def experiments() -> list[Path]:
    """Sorted. Of a tree that is no checkout all that are there."""
    listed = subprocess.run(
        ["git", "ls-files", "experiments"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    every = sorted((ROOT / "experiments").glob("*.yaml"))
    return [path for path in every if not listed or str(path.relative_to(ROOT)) in listed]
