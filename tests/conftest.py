"""Which tests go to the same process when several share the work (`make test-python`): what they share is
made once. Which files are read where only what launches something is asked for."""

import os
from functools import lru_cache
from pathlib import Path

import pytest

from kvstudy.present.lean_imports import import_nbformat

import_nbformat()
for inherited in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):  # a make that a test starts is no part of `make test`
    os.environ.pop(inherited, None)


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.get_closest_marker("machine") and not _says_machine(item.path):
        raise pytest.UsageError(f"{item.path}: not read by `make test`, which looks for mark.machine")
    if item.get_closest_marker("xdist_group") is None:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


@lru_cache
def _says_machine(file: Path) -> bool:
    return "mark.machine" in file.read_text(encoding="utf-8")


def _group(item: pytest.Item) -> str:
    """Those of a file; each that launches something alone, since it makes a project of its own and mostly
    waits. What says its group itself shares more, or must not run beside the others of it."""
    folder, file = item.path.parts[-2:]
    if folder == "browser" or "hosts" in getattr(item, "fixturenames", ()):
        return folder
    if item.get_closest_marker("machine"):
        return item.nodeid
    shared = getattr(item, "callspec", None) and item.callspec.params.get("project")
    return f"{folder}/{file}/{shared}" if shared else f"{folder}/{file}"
