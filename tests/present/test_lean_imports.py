"""Pages and runs begin without what takes long to import and nobody asks for; who wants it still gets it."""

import subprocess
import sys

UNWANTED = ("rfc3987_syntax", "scipy.optimize", "scipy.stats", "statsmodels")


def loaded_by(modules: str, unwanted: tuple[str, ...] = UNWANTED) -> str:
    """Of what nobody asks for, in a process of its own."""
    asked = f"import sys, {modules}; print(*(name for name in {unwanted} if name in sys.modules))"
    command = [sys.executable, "-c", asked]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_page_begins_without_statistics_of_all_kinds_and_without_the_grammar_of_addresses():
    page = "kvstudy.present.notebook, kvstudy.present.headlines, kvstudy.present.extension"
    assert loaded_by(f"{page}, plotly.express, nbformat") == ""


def test_whoever_wants_one_of_them_can_import_it_later():
    assert loaded_by("kvstudy.present, rfc3987_syntax") == "rfc3987_syntax"


def test_a_run_begins_without_the_libraries_of_tables():
    assert loaded_by("kvstudy.measure.execute", (*UNWANTED, "pandas", "pyarrow")) == ""
