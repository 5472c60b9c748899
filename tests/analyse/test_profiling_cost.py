import numpy as np
import pytest

from kvstudy.analyse import profiling_cost, tables


def measured(make_run, tmp_path, cost: float, closed: bool = True, repeats: int = 6):
    """Runs in turns, without and with a profiler that takes the share ``cost`` of the answers; 1 % apart from
    run to run."""
    generator = np.random.default_rng(4)
    rate = {"closed_loop": True, "offered_rate_rps": None} if closed else {}
    for repeat in range(repeats):
        for profile in (None, ["cpu"]):
            answers = (
                int(2000 * (1 - cost * bool(profile)) * (1 + 0.01 * generator.standard_normal()))
                if closed
                else 2000
            )
            make_run(
                f"r{repeat}-{bool(profile)}",
                repeat=repeat + 1,
                profile=profile,
                seconds=[generator.integers(200, 400, answers)] * 6,
                **rate,
            )
    tables.rebuild([make_run.root], tmp_path / "tidy", progress=False)
    return profiling_cost.cost(tables.load(tmp_path / "tidy")).set_index("measure")


def test_what_the_profiler_takes_is_found_with_its_size(make_run, tmp_path):
    found = measured(make_run, tmp_path, 0.08).loc["achieved rate"]
    assert (found["word"], found["runs_before"], found["runs_after"]) == ("slower", 6, 6)
    assert found["ratio"] == pytest.approx(0.92, abs=0.02) and found["low"] < 0.92 < found["high"]


def test_a_profiler_that_costs_nothing_is_not_blamed(make_run, tmp_path):
    assert measured(make_run, tmp_path, 0.0).loc["achieved rate", "word"] == "the same"


def test_at_a_constant_rate_the_cost_is_cpu_and_not_answers(make_run, tmp_path):
    found = measured(make_run, tmp_path, 0.0, closed=False)
    assert found.index.tolist() == ["CPU per request"]
    assert found.loc["CPU per request", "before"] == pytest.approx(0.5 / 2000 * 1e6)


def test_runs_without_a_counterpart_are_left_out(make_run, tmp_path):
    make_run("alone", profile=["cpu"])
    make_run("other", connections=4)
    tables.rebuild([make_run.root], tmp_path / "tidy", progress=False)
    assert profiling_cost.cost(tables.load(tmp_path / "tidy")).empty


@pytest.mark.parametrize(
    ("outcome", "lost"),
    [
        ("failed: service ended: exit_code=1", 4),
        ("failed: interrupted during measure", 8),  # by others, of one side alone: more than chance explains
    ],
)
def test_runs_lost_under_the_profiler_are_counted(make_run, tmp_path, outcome, lost):
    for number in range(lost):
        make_run(
            f"lost-{number}",
            repeat=7 + number,
            profile=["cpu"],
            closed_loop=True,
            offered_rate_rps=None,
            outcome=outcome,
        )
    found = measured(make_run, tmp_path, 0.0).loc["achieved rate"]
    counts = found[["invalid_before", "of_before", "invalid_after", "of_after"]]
    assert counts.tolist() == [0, 6, lost, 6 + lost]
    assert (found["runs_before"], found["runs_after"]) == (6, 6)


def test_runs_whose_profilers_counted_different_events_are_not_pooled(make_run, tmp_path):
    for repeat in range(6):
        make_run(
            f"alloc-{repeat}",
            repeat=repeat + 1,
            profile=["cpu", "alloc"],
            closed_loop=True,
            offered_rate_rps=None,
        )
    rows = measured(make_run, tmp_path, 0.0).loc[["achieved rate"]]
    assert rows[["runs_before", "runs_after"]].values.tolist() == [[6, 6], [6, 6]]
    assert all("events=" in differs for differs in rows["differs"])
