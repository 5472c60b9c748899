"""The families of words on a page share its 5 %: their shares, added up on the reference runs. A family told
twice counts once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADDED_UP = """
import sys
import nbformat
from kvstudy.analyse.comparison import families
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


@pytest.mark.parametrize(
    "page", ["00-study", "01-instrument", "03-percentiles", "06-before-after", "08-published-reports"]
)
def test_the_families_of_a_page_share_its_five_percent(page):
    outcome = subprocess.run(
        [sys.executable, "-c", ADDED_UP, ROOT / "notebooks" / f"{page}.ipynb"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=300,
        env={**os.environ, "KVSTUDY_ROOT": str(ROOT)},
    )
    assert outcome.returncode == 0, f"{page} did not run: {outcome.stderr[-2000:]}"
    assert float(outcome.stdout.rsplit("shares: ", 1)[1]) <= 1 + 1e-9
