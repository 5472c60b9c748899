"""No line is too long to read beside another file. Layout is the formatters' (`make format`), which leave
long texts and comments as they are. Python and Markdown have linters of their own (`make lint`)."""

import subprocess
from pathlib import Path

import pytest
from committed import experiments

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 110
COLUMNS_OF = {".java": 120}  # palantir-java-format's own
SUFFIXES = (".rs", ".java", ".lua", ".sh", ".yaml", ".yml", ".html", ".css", ".js", ".j2")
NOT_OURS = ("data/", "tests/analyse/profiles/", "loadgen/tests/golden/")  # made or borrowed, not written


def listed() -> list[Path]:
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    of_readers = set((ROOT / "experiments").glob("*.yaml")) - set(experiments())
    return [ROOT / name for name in files if not name.startswith(NOT_OURS) and ROOT / name not in of_readers]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_line_is_longer_than_its_language_allows(suffix):
    allowed = COLUMNS_OF.get(suffix, COLUMNS)
    long = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"
        for path in listed()
        if path.suffix == suffix and path.is_file()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > allowed
    ]
    assert not long, f"{len(long)} lines of more than {allowed} columns:\n" + "\n".join(long)
