"""Pages begin without what takes long to import and nobody asks for; who wants it still gets it."""

import subprocess
import sys

LOADED = "import sys; import {module}; print(sys.modules.get('{wanted}', 'not there'))"


def printed(module: str, wanted: str = "rfc3987_syntax") -> str:
    command = [sys.executable, "-c", LOADED.format(module=module, wanted=wanted)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_page_begins_without_the_grammar_of_addresses():
    assert printed("kvstudy.present.extension, plotly.express, nbformat") == "not there"


def test_a_page_begins_without_the_statistics_of_all_the_world():
    for wanted in ("scipy.stats", "scipy.optimize", "statsmodels"):
        assert printed("kvstudy.present.notebook, kvstudy.present.headlines", wanted) == "not there"


def test_whoever_wants_the_grammar_can_import_it_later():
    assert "module" in printed("kvstudy.present, rfc3987_syntax")
