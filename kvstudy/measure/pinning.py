"""Which cores the service and the generator get. Disjoint sets where the machine has enough, else none, and
why is said."""

import os
from dataclasses import dataclass

CORES_MIN = 4


@dataclass(frozen=True)
class Pinning:
    """Core numbers, or None where nothing is pinned; ``reason`` says which and why, for machine.json and the
    pages."""

    service: list[int] | None
    generator: list[int] | None
    reason: str


def pinning(threads: int, cores: list[int] | None = None) -> Pinning:
    """The generator gets a core per thread, at most half of all; the service the rest. ``cores``: those this
    process may use."""
    if cores is None:
        if not hasattr(os, "sched_getaffinity"):
            return Pinning(None, None, "not pinned: this system has no CPU affinity")
        cores = sorted(os.sched_getaffinity(0))
    if len(cores) < CORES_MIN:
        return Pinning(
            None,
            None,
            f"not pinned: {len(cores)} cores, {CORES_MIN} are needed so that the service keeps more "
            "than one; "
            "service and generator take time from each other",
        )
    taken = min(threads, len(cores) // 2)
    generator, service = cores[-taken:], cores[:-taken]
    return Pinning(
        service, generator, f"service on cores {_ranges(service)}, generator on {_ranges(generator)}"
    )


def _ranges(cores: list[int]) -> str:
    return ",".join(map(str, cores)) if len(cores) < 3 else f"{cores[0]}-{cores[-1]}"
