"""The heat-map page of a sealed run, read back: the samples of the collapsed stacks, with their times."""

import re
from collections import Counter
from pathlib import Path

import pytest

from kvstudy.errors import FormatError
from kvstudy.record import heatmap, stacks
from kvstudy.record.jfr import epoch_s
from kvstudy.record.run_folder import open_run

REFERENCE = Path(__file__).resolve().parents[2] / "data" / "reference"
PAGE = "cpu.heatmap.html"
RUNS = sorted(path.parent for path in REFERENCE.glob(f"*/*/{PAGE}.gz"))
_KIND = re.compile(r"_\[.\](?=;|$)")


def text_of(run: Path) -> str:
    return open_run(run).text(PAGE)


@pytest.mark.parametrize("run", RUNS[::8], ids=lambda run: run.name)
def test_every_sample_is_there_with_the_stack_that_the_collapsed_stacks_have(run):
    found = heatmap.read(text_of(run), PAGE)
    collapsed = stacks.read(open_run(run).text("cpu.collapsed"), "cpu.collapsed")
    timed, whole = Counter(), Counter()
    for stack in found.stack:
        timed[_KIND.sub("", found.stacks[stack])] += 1
    for stack, samples in collapsed.items():
        whole[_KIND.sub("", stack)] += samples
    assert timed == whole
    assert not [stack for stack in timed if re.search(r"0x[0-9a-f]{6,}", stack)]


@pytest.mark.parametrize("run", RUNS[::8], ids=lambda run: run.name)
def test_samples_are_in_the_order_of_time_and_begin_with_the_measured_window(run):
    found = heatmap.read(text_of(run), PAGE)
    phase = open_run(run).facts["phases"]["measure"]
    begin, end = epoch_s(phase["start_utc"]), epoch_s(phase["stop_utc"])
    assert (found.block[1:] >= found.block[:-1]).all()
    assert begin - 1 < found.start_epoch_s < begin + 1
    assert abs(found.start_epoch_s + heatmap.BLOCK_S * (found.block[-1] + 1) - end) < 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda page: "",
        lambda page: page[: len(page) // 3],
        lambda page: page.replace("let cpool", "let other"),
    ],
)
def test_a_page_that_is_no_such_heat_map_is_an_error_with_its_name(spoil):
    with pytest.raises(FormatError, match=PAGE):
        heatmap.read(spoil(text_of(RUNS[0])), PAGE)
