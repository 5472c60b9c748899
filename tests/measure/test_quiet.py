"""Waiting for a quiet machine: as long as it is not, and never longer than was allowed in all."""

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from kvstudy.measure.quiet import Patience, disturbed_now


class Machine:
    """A clock that only sleeping moves, and a machine that is disturbed until ``quiet_at``."""

    def __init__(self, quiet_at: float):
        self.now, self.quiet_at, self.told, self.probes = 0.0, quiet_at, [], 0

    def probe(self) -> str | None:
        self.probes += 1
        return None if self.now >= self.quiet_at else "the machine's host took 30 % of the CPU time, over 5 %"

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def patience(self, budget_s: float) -> Patience:
        return Patience(budget_s, self.probe, self.sleep, lambda: self.now)


def test_a_quiet_machine_is_not_waited_for_and_nothing_is_said():
    machine = Machine(quiet_at=0)
    assert machine.patience(60).wait(machine.told.append) == 0
    assert (machine.told, machine.probes) == ([], 1)


def test_the_wait_ends_when_the_machine_is_quiet():
    machine = Machine(quiet_at=12)
    assert machine.patience(60).wait(machine.told.append) == 15
    assert machine.told == [
        "wait for a quiet machine: the machine's host took 30 % of the CPU time, over 5 %"
    ]


def test_all_waits_together_are_no_longer_than_the_budget():
    machine = Machine(quiet_at=float("inf"))
    patience = machine.patience(12)
    assert patience.wait(machine.told.append) == 12
    probes = machine.probes
    assert patience.wait(machine.told.append) == 0
    assert machine.probes == probes


def test_without_a_budget_the_machine_is_not_even_looked_at():
    machine = Machine(quiet_at=float("inf"))
    assert machine.patience(0).wait(machine.told.append) == 0
    assert machine.probes == 0


@pytest.mark.machine
def test_other_programs_on_every_core_are_noticed():
    with ExitStack() as hogs:
        for _ in range(os.cpu_count()):
            hog = hogs.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            hogs.callback(hog.kill)
        assert disturbed_now(1.0)


def test_who_measures_says_which_machine_has_to_be_quiet():
    machine = Machine(quiet_at=0)
    elsewhere = iter(["host a: the machine's host took 30 % of the CPU time, over 5 %", None])
    patience = Patience(60, None, machine.sleep, lambda: machine.now)
    assert patience.wait(machine.told.append, lambda: next(elsewhere)) == 5
    assert machine.told == [
        "wait for a quiet machine: host a: the machine's host took 30 % of the CPU time, over 5 %"
    ]
