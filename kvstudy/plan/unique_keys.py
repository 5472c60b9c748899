"""How many keys unique_put gets, so that a run writes each once."""

import math

# Workloads that walk through all keys before any comes again. Where a load is made by several processes, one
# after the other, each goes on behind the keys of those before (`skip` of workloads/keyspace.lua).
WALKS = ("unique_put", "unique_get")

# In a closed loop: what no service here reaches, and what most do not. A plan with fewer keys is refused.
CLOSED_LOOP_RPS, CLOSED_LOOP_RPS_LEAST = 1_000_000, 50_000


def enough_unique_keys(offered_rate_rps: float | None, duration_s: float) -> int:
    """As many as the run can write at most; without a rate, in a closed loop."""
    return math.ceil((offered_rate_rps or CLOSED_LOOP_RPS) * (duration_s + 1))
