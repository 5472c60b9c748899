"""The families of words on a page share its 5 %: their shares, added up on the reference runs, and where runs
of the reader's own stand beside them. A family told twice counts once. What lies in data/raw changes
nothing here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Pages beside the same runs share a process, and with it what is known of those runs.
ADDED_UP = """
import json
import sys
from kvstudy.present.lean_imports import import_nbformat
import_nbformat()
import nbformat
import own_runs
from kvstudy.analyse.comparison import families
own_runs.stand_beside_the_reference(sys.argv[1])
told, seen = families.with_reasons, {}
def noted(pairs, better, outcomes=None, share=families.WHOLE):
    pairs = list(pairs)
    seen[share, tuple((one.p, one.low) for one in pairs)] = share
    return told(pairs, better, outcomes, share)
families.with_reasons = noted
shares = {}
for page in sys.argv[2:]:
    seen.clear()
    space = {"In": [""], "display": lambda *shown: None}  # as in a kernel
    for cell in nbformat.read(f"notebooks/{page}.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            space["In"].append(cell.source)
            exec(cell.source.replace("%load_ext kvstudy", ""), space)
    assert seen, f"{page}: no family was told"
    shares[page] = sum(seen.values())
print("shares:", json.dumps(shares))
"""
NONE, SOME, ALL = "", "reproduce report-3 report-5 noise handler", "every"


@pytest.mark.parametrize(
    ("own", "pages"),
    [
        (NONE, ["00-study", "01-instrument", "03-percentiles", "06-before-after", "08-published-reports"]),
        (ALL, ["00-study", "03-percentiles", "06-before-after", "10-peers", "11-growth"]),
        (SOME, ["00-study"]),
    ],
    ids=["the reference alone", "own runs of every experiment", "own runs of some experiments"],
)
def test_the_families_of_a_page_share_its_five_percent(own, pages):
    outcome = subprocess.run(
        [sys.executable, "-c", ADDED_UP, own, *pages],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=600,
        env={
            **os.environ,
            "KVSTUDY_ROOT": str(ROOT),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "present")]),
        },
    )
    assert outcome.returncode == 0, outcome.stderr[-2000:]
    shares = json.loads(outcome.stdout.rsplit("shares: ", 1)[1])
    assert list(shares) == pages
    assert {page: share for page, share in shares.items() if share > 1 + 1e-9} == {}
