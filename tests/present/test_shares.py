"""The families of words on a page share its 5 %: their shares, added up on the reference runs, and where runs
of the reader's own stand beside them. A family told twice counts once. What lies in data/raw changes
nothing here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADDED_UP = """
import sys
import nbformat
import own_runs
from kvstudy.analyse.comparison import families
own_runs.stand_beside_the_reference(sys.argv[2])
told, seen = families.with_reasons, {}
def noted(pairs, better, outcomes=None, share=families.WHOLE):
    pairs = list(pairs)
    seen[share, tuple((one.p, one.low) for one in pairs)] = share
    return told(pairs, better, outcomes, share)
families.with_reasons = noted
space = {"In": [""]}
for cell in nbformat.read(sys.argv[1], as_version=4).cells:
    if cell.cell_type == "code":
        space["In"].append(cell.source)
        exec(cell.source.replace("%load_ext kvstudy", ""), space)
assert seen, "no family was told"
print("shares:", sum(seen.values()))
"""
NONE, SOME, ALL = "", "reproduce report-3 report-5 noise handler", "every"


@pytest.mark.parametrize(
    ("page", "own"),
    [
        *((page, NONE) for page in ("00-study", "01-instrument", "03-percentiles", "06-before-after")),
        ("08-published-reports", NONE),
        ("00-study", ALL),
        ("06-before-after", ALL),
        ("00-study", SOME),
    ],
)
def test_the_families_of_a_page_share_its_five_percent(page, own):
    outcome = subprocess.run(
        [sys.executable, "-c", ADDED_UP, ROOT / "notebooks" / f"{page}.ipynb", own],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=300,
        env={
            **os.environ,
            "KVSTUDY_ROOT": str(ROOT),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "present")]),
        },
    )
    assert outcome.returncode == 0, f"{page} did not run: {outcome.stderr[-2000:]}"
    assert float(outcome.stdout.rsplit("shares: ", 1)[1]) <= 1 + 1e-9
