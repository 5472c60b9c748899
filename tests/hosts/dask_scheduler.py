"""A Dask scheduler that a test starts as anybody would, and where it serves."""

import json
from contextlib import suppress
from pathlib import Path

from kvstudy.hosts.process import wait_until


def address_in(file: Path) -> str:
    """Of a `--scheduler-file`, which Dask creates first and then writes."""
    found = []

    def is_told() -> bool:
        with suppress(OSError, ValueError):
            found.append(json.loads(file.read_text())["address"])
        return bool(found)

    assert wait_until(is_told, 60), f"no scheduler has written {file}"
    return found[-1]
