"""`make reference`: what its command lines measure, and that experiments/README.md says how long it takes."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from kvstudy.plan.comparing import Comparing
from kvstudy.plan.comparison import SIDES, comparisons
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.run_plan import configurations_of, plan
from kvstudy.plan.selection import selected

ROOT = Path(__file__).parents[2]
OPTIONS = {"handler", "wal", "compaction", "gc", "cache", "value-size"}
DECIDED_BY_DUETS = OPTIONS | {"report-3", "report-5"}


@pytest.fixture(scope="module")
def measured():
    """experiment → [seconds of its runs, seconds of its duets, at most], of all commands of `make
    reference`."""
    printed = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "reference"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    found: dict[str, list[float]] = {}
    for line in printed.replace("\\\n", "").splitlines():
        words = shlex.split(line) if re.search(r"kvstudy (run|compare) ", line) else []
        only = [words[place + 1] for place, word in enumerate(words) if word == "--only"]
        for file in (word for word in words if word.endswith(".yaml")):
            seconds = found.setdefault(Path(file).stem, [0.0, 0.0, 0.0])
            if "run" in words:
                seconds[0] += selected(plan(Experiment.load(ROOT / file, "reference")), only).estimated_s
            else:
                duets = _duets(Path(file).stem)
                seconds[1] += sum(one.estimated_s for one in duets)
                seconds[2] += sum(one.at_most_s for one in duets)
    return found


def _duets(name):
    return comparisons(Experiment.load(ROOT / "experiments" / f"{name}.yaml", "reference", compared=True))


def test_make_reference_measures_the_duet_of_every_option(measured):
    assert {name for name, (_, duets, _) in measured.items() if duets} == DECIDED_BY_DUETS


@pytest.mark.parametrize("name", sorted(DECIDED_BY_DUETS))
def test_a_reference_duet_has_slices_of_the_usual_length_and_launches_enough_to_decide(name):
    usual = Comparing()
    for duet in _duets(name):
        asked = duet.comparing
        assert (asked.counted, asked.not_counted, asked.gap) == (usual.counted, usual.not_counted, usual.gap)
        assert asked.launches == 12
        assert asked.within >= 8 * duet.launch_s, duet.names


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_the_runs_of_an_option_show_the_values_that_its_duets_compare(name):
    file = ROOT / "experiments" / f"{name}.yaml"
    shown = configurations_of(Experiment.load(file, "reference"))
    compared = [load.of(side) for duet in _duets(name) for load in duet.loads for side in SIDES]
    assert {_value(one) for one in shown} == {_value(one) for one in compared}


def _value(configuration) -> tuple:
    return str(configuration.service), str(configuration.jvm), configuration.workload_args["value_bytes"]


def test_the_readme_of_experiments_says_how_long_make_reference_takes(measured):
    text = (ROOT / "experiments" / "README.md").read_text()
    runs, duets, most = (sum(column) for column in zip(*measured.values(), strict=True))
    total = f"{_hours(runs + duets)} on 2 cores, builds apart, and {_hours(runs + most)} where"
    assert total in " ".join(text.split())


def _hours(seconds: float) -> str:
    minutes = 5 * round(seconds / 300)
    return f"{minutes // 60} h {minutes % 60} min"
