"""Rooms of the package: imports run downwards only, and only the room of subjects knows what a subject is
made of."""

import ast
import re
from pathlib import Path

import pytest

import kvstudy

PACKAGE = Path(kvstudy.__file__).parent
BELOW = {
    "plan": set(),
    "record": {"plan"},
    "hosts": {"plan", "record"},
    "subject": {"plan", "record", "hosts"},
    "measure": {"plan", "record", "hosts", "subject", "analyse"},
    "analyse": {"plan", "record"},
    "present": {"plan", "record", "analyse"},
}
FILES = [path for room in BELOW for path in sorted((PACKAGE / room).rglob("*.py"))]
# What only a JVM, or our own service, has. What `jvm: {heap, gc}` of an experiment means is the plan's.
OF_A_SUBJECT = re.compile(
    r"-XX:|-Xlog|-Xmx|\bjcmd\b|StartFlightRecording|ready: http|\"-jar\"|service\.jfr|kv-service\.jar"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_its_own_room_and_those_below(path):
    room = path.relative_to(PACKAGE).parts[0]
    rooms = {
        name.split(".")[1]
        for name in imports(path)
        if name.startswith("kvstudy.") and name.split(".")[1] in BELOW
    }
    assert rooms - {room} <= BELOW[room]


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.relative_to(PACKAGE).parts[0] in ("measure", "hosts", "record")],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_nothing_outside_the_room_of_subjects_knows_a_jvm_or_our_service(path):
    code = ast.parse(path.read_text())
    texts = [
        node.value
        for node in ast.walk(code)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    docstrings = {
        node.value.value
        for node in ast.walk(code)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    assert not [text for text in texts if text not in docstrings and OF_A_SUBJECT.search(text)]


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module}
    return names


def test_one_module_alone_imports_dask_and_none_needs_it_to_be_imported():
    importing = [
        path.name
        for path in FILES
        if any(name.split(".")[0] in ("distributed", "dask") for name in imports(path))
    ]
    assert importing == ["dask_host.py"]
    needing = [
        path.name
        for path in FILES
        if any(
            isinstance(node, ast.ImportFrom | ast.Import) and "dask_host" in ast.unparse(node)
            for node in ast.parse(path.read_text()).body
        )
    ]
    assert needing == []
