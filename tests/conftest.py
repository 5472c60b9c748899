"""Which tests go to the same process when several share the work (`make test-python`): what they share is
made once."""

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    folder, file = item.path.parts[-2:]
    if folder == "browser":
        return folder
    shared = getattr(item, "callspec", None) and item.callspec.params.get("project")
    return f"{folder}/{file}/{shared}" if shared else f"{folder}/{file}"
