"""What has to outlast a power cut."""

import os
from pathlib import Path


def to_disk(path: Path) -> None:
    """Returns when a file's bytes, or a folder's names, are there. OSError when they cannot be."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
