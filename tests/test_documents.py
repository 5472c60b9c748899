"""The documents as a reader meets them: their links lead somewhere, and the README stays short."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
# A path of this tree in code quotes; not one with a placeholder, nor an experiment that a reader is to write.
NAMED = re.compile(
    r"`((?:docs|service|loadgen|kvstudy|tests|experiments)/[\w./-]+\.(?:md|py|rs|java|lua|sh))`"
)


def documents() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines()]


def anchors(document: Path) -> set[str]:
    """As GitHub makes them of headings: small letters, blanks to hyphens, no other signs."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_are_there(document):
    text = CODE.sub("", document.read_text(encoding="utf-8"))
    broken = []
    for name, anchor in LINK.findall(text):
        target = document.parent / name if name else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{name}#{anchor}" if anchor else name)
    assert not broken


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_a_document_names_are_there(document):
    named = NAMED.findall(document.read_text(encoding="utf-8"))
    assert [
        name for name in named if not (ROOT / name).exists() and not (document.parent / name).exists()
    ] == []


def test_the_readme_has_at_most_120_lines():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
