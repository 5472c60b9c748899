"""Which cores the service and the generator get. Disjoint sets where the machine has enough or the experiment
asks for them, else none, and why is said. A duet takes them from two cores on: on two that all share, the
kernel decides slice by slice which service is woken on the generator's core, and that side's median is then
half of the other's."""

import os
from dataclasses import dataclass

from kvstudy.errors import RunFailed
from kvstudy.plan.experiment import APART, SHARED

CORES_MIN = 4
OF_A_DUET = "of a duet"  # what a duet wants of cores where its experiment says nothing
CORES_MIN_APART = 2


@dataclass(frozen=True)
class Pinning:
    """Core numbers, or None where nothing is pinned; ``reason`` says which and why, for machine.json and the
    pages."""

    service: list[int] | None
    generator: list[int] | None
    reason: str


def pinning(threads: int, wanted: str | None = None, cores: list[int] | None = None) -> Pinning:
    """The generator gets a core per thread, at most half of all; the service the rest. ``wanted``: what the
    experiment says of ``cores``, None for the machine's own choice, OF_A_DUET for that of a duet; ``cores``:
    those this process may use. RunFailed where they are to be apart and cannot."""
    if cores is None:
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if wanted == APART and len(cores) < CORES_MIN_APART:
        raise RunFailed(
            f"cores: apart: service and generator cannot have cores of their own: usable={len(cores)}",
            "a machine with 2 or more, or another value of cores",
        )
    if not cores:
        return Pinning(None, None, "not pinned: this system has no CPU affinity")
    if wanted == SHARED:
        return Pinning(None, None, "not pinned: the experiment asks for cores that both share")
    if wanted == OF_A_DUET and len(cores) < CORES_MIN_APART:
        return Pinning(None, None, "not pinned: one core; services and generator take time from each other")
    if len(cores) < CORES_MIN and wanted not in (APART, OF_A_DUET):
        return Pinning(
            None,
            None,
            f"not pinned: {len(cores)} cores, {CORES_MIN} are needed so that the service keeps more "
            "than one; "
            "service and generator take time from each other",
        )
    taken = min(threads, len(cores) // 2)
    generator, service = cores[-taken:], cores[:-taken]
    return Pinning(service, generator, f"service on {_named(service)}, generator on {_named(generator)}")


def _named(cores: list[int]) -> str:
    ranges = ",".join(map(str, cores)) if len(cores) < 3 else f"{cores[0]}-{cores[-1]}"
    return f"{'core' if len(cores) == 1 else 'cores'} {ranges}"
