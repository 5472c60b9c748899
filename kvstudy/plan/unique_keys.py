"""How many keys unique_put gets, so that a run writes each once."""

import math
from collections.abc import Sequence

# Workloads that walk through all keys before any comes again. Where a load is made by several processes, one
# after the other, each goes on behind the keys of those before (`skip` of workloads/keyspace.lua).
WALKS = ("unique_put", "unique_get")

# In a closed loop: what no service here reaches, and what most do not. A plan with fewer keys is refused.
CLOSED_LOOP_RPS, CLOSED_LOOP_RPS_LEAST = 1_000_000, 50_000


def enough_unique_keys(offered_rate_rps: float | None, duration_s: float) -> int:
    """As many as the run can write at most; without a rate, in a closed loop."""
    return math.ceil((offered_rate_rps or CLOSED_LOOP_RPS) * (duration_s + 1))


def least_unique_keys(offered_rate_rps: float | None, duration_s: float) -> float:
    """As many as are reckoned with where the keys are not left to the plan; without a rate, in a closed
    loop."""
    return (offered_rate_rps or CLOSED_LOOP_RPS_LEAST) * duration_s


def keys_skipped(key_count: int, loads: Sequence[tuple[float | None, float]]) -> int:
    """Behind how many keys the last of these loads begins its walk, each a rate and seconds: as many as those
    before can write. Where the keys are too few for that, as they may be behind a closed loop, each load has
    its share of them, so that none begins among those that were just written."""
    before = loads[:-1]
    most = sum(enough_unique_keys(*load) for load in before)
    least, with_last = (sum(least_unique_keys(*load) for load in some) for some in (before, loads))
    return min(most, int(key_count * least / with_last))
