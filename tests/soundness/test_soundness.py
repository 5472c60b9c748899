"""The short form of every simulation; their full length is `make soundness`."""

import subprocess
import sys

import pytest
import run
from simulation import FOLDER, Outcome, Simulation, simulations

TABLE = max((FOLDER.parents[1] / "docs" / "results").glob("*-soundness.md"))


@pytest.mark.parametrize(
    "one", [pytest.param(one, id=f"{name}-{place}") for name, place, one in simulations()]
)
def test_a_rule_is_not_refuted_by_a_few_trials(one: Simulation):
    outcome = one.run(short=True)
    print(outcome)
    assert one.limit or not outcome.refuted, str(outcome)


def test_the_command_of_make_soundness_finds_all_rules_by_itself(tmp_path):
    asked = [sys.executable, str(FOLDER / "run.py"), "--only", "nothing"]
    told = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 2 and told.stderr.endswith("error: no such module: only=nothing\n"), told.stderr


def of(hits: int, trials: int, **goal) -> Outcome:
    return Outcome(Simulation("rule", "counted", lambda *_: hits, trials, trials, **goal), hits, trials, 0.0)


def test_a_goal_is_missed_on_its_own_side():
    assert of(5, 100, at_most=0.05).holds and not of(6, 100, at_most=0.05).holds
    assert of(90, 100, at_least=0.9).holds and not of(89, 100, at_least=0.9).holds


def test_few_trials_refute_only_what_chance_would_hardly_do():
    assert not of(8, 100, at_most=0.05).refuted and of(20, 100, at_most=0.05).refuted
    assert not of(85, 100, at_least=0.9).refuted and of(70, 100, at_least=0.9).refuted


def test_the_same_seed_counts_the_same():
    one = Simulation(
        "rule",
        "coin",
        lambda generator, trials: int((generator.random(trials) < 0.3).sum()),
        500,
        50,
        at_most=0.4,
    )
    assert one.run().hits == one.run().hits


def test_the_table_in_the_documents_has_a_row_for_every_simulation_and_no_other():
    """Renewed by make soundness WRITE=… (ONLY=… for the rows of one module)."""
    assert list(run.rows(TABLE)) == [(one.rule, one.counted) for _, _, one in simulations()]
