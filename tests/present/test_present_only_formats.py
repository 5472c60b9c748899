"""A claim is data that is made in ``analyse``; ``present`` draws it and puts it into words. So nothing there
may estimate, test or correct."""

import ast
from pathlib import Path

import pytest

import kvstudy

PRESENT = Path(kvstudy.__file__).parent / "present"
MODULES = sorted(PRESENT.rglob("*.py"))
STATISTICS = {"scipy", "statsmodels", "statistics", "sklearn", "random"}
# Of ``analyse.comparison`` what makes an interval, a p or a word. What is left is words, and data.
RULES = {"families", "intervals", "outcomes", "pairs", "power", "sameness"}
ESTIMATES = {
    "median",
    "nanmedian",
    "quantile",
    "nanquantile",
    "nanpercentile",
    "std",
    "var",
    "sem",
    "corr",
    "random",
    "default_rng",
    "polyfit",
    "resample",
}


def faults(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in STATISTICS]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {alias.name for alias in node.names}
            if node.module.split(".")[0] in STATISTICS:
                found.append(node.module)
            if node.module == "kvstudy.analyse.comparison":
                found += sorted(names & RULES)
            if node.module.startswith("kvstudy.analyse.comparison.") and node.module.split(".")[-1] in RULES:
                found.append(node.module)
        elif isinstance(node, ast.Attribute):
            of_numpy = isinstance(node.value, ast.Name) and node.value.id == "np"
            if node.attr in ESTIMATES or (of_numpy and node.attr in ("percentile", "mean")):
                found.append(f"{ast.unparse(node)}, line {node.lineno}")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PRESENT).with_suffix("")))
def test_what_presents_estimates_nothing(path):
    assert not faults(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        "from scipy import stats",
        "import statsmodels.api as sm",
        "from kvstudy.analyse.comparison.pairs import pair",
        "from kvstudy.analyse.comparison import families",
        "runs['y'].median()",
        "np.percentile(values, 99)",
        "numpy.random.default_rng(1)",
    ],
)
def test_a_statistic_among_what_presents_is_found(source):
    assert faults(source)


def test_words_and_claims_are_no_statistics():
    assert not faults("from kvstudy.analyse.comparison.words import SAME\nwords.percentile(99)")
