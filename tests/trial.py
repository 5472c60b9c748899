"""The smallest whole experiment, of which a test changes what it is about."""

from kvstudy.plan.experiment import Experiment
from kvstudy.plan.run_plan import Configuration, configurations_of

TRIAL = {
    "name": "trial",
    "question": "?",
    "expectation": "1 ms",
    "workload": "put",
    "connections": 1,
    "threads": 1,
    "rate": 10,
    "duration": "2s",
    "warm_up": "1s",
    "repeats": 1,
}


def trial(**change) -> Experiment:
    return Experiment.from_parameters(TRIAL | change)


def configuration(**change) -> Configuration:
    """The first of such an experiment."""
    return configurations_of(trial(**change))[0]
