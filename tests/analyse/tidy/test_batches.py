import random
from pathlib import Path

from kvstudy.analyse.tidy.batches import RUNS_MAX, Source, batches


def runs(names, experiment="rates", seal="s"):
    return [Source(name, seal, Path("/data/raw") / experiment / name) for name in names]


def names(count):
    return [f"20261120T{number:06d}Z-put" for number in range(count)]


def test_batches_do_not_depend_on_the_order_in_which_runs_are_found():
    seed = 20261123
    print(f"seed={seed}")
    found = runs(names(500)) + runs(names(70), "tail")
    expected = batches(found)
    random.Random(seed).shuffle(found)
    assert batches(found) == expected
    assert [run for batch in expected for run in batch.runs] == runs(names(500)) + runs(names(70), "tail")


def test_no_batch_is_larger_than_what_a_process_may_hold():
    sizes = [len(batch.runs) for batch in batches(runs(names(5000)))]
    assert max(sizes) <= RUNS_MAX and 30 < sum(sizes) / len(sizes) < 90


def test_a_run_more_or_less_changes_two_batches_in_the_mean_and_never_all():
    everything = names(3000)
    whole = {batch.part_name("v") for batch in batches(runs(everything))}
    changed = []
    for gone in range(0, 3000, 37):
        rest = {batch.part_name("v") for batch in batches(runs(everything[:gone] + everything[gone + 1 :]))}
        changed.append(len(rest - whole))
    assert sum(changed) / len(changed) < 3 and max(changed) < len(whole) / 3, changed


def test_a_name_tells_runs_seals_folder_and_code_apart_but_not_where_the_data_stands():
    (one,) = batches(runs(["a", "b"]))
    (moved,) = batches(
        [Source(run.run_id, run.seal, Path("/elsewhere/rates") / run.run_id) for run in one.runs]
    )
    assert moved.part_name("v") == one.part_name("v")
    others = [batches(runs(["a"])), batches(runs(["a", "b"], seal="t")), batches(runs(["a", "b"], "tail"))]
    assert len({one.part_name("v"), one.part_name("w"), *(batch.part_name("v") for (batch,) in others)}) == 5
