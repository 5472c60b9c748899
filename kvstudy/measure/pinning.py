"""Which cores the service and the generator get: disjoint ones, for all of the service where the machine has enough, else for the threads
that a request goes through.

A request goes from the generator's thread to the service's and back. Left alone the scheduler puts the two on one core for some seconds and on
two for the next, and on one core the other's wake-up costs a third less: the median and the CPU of a request double from one state to the
other. So which of them runs where is never left to it.
"""

import os
from dataclasses import dataclass
from pathlib import Path

CORES_MIN = 4
REQUEST_THREADS = ("NIO Selector #", "worker-", "ForkJoinPool-", "VirtualThread-")  # of one-nio, of the pool of workers, of virtual threads


@dataclass(frozen=True)
class Pinning:
    """Core numbers, or None where nothing is pinned; ``reason`` says which and why, for machine.json and the pages.

    ``service``: for every thread of it. ``request_threads``: for those of the service that requests go through, where the others may run anywhere.
    """

    service: list[int] | None
    generator: list[int] | None
    reason: str
    request_threads: list[int] | None = None

    @property
    def is_shared(self) -> bool:
        """The generator's cores are not its alone."""
        return self.service is None


def pinning(threads: int, cores: list[int] | None = None) -> Pinning:
    """The generator gets a core per thread, at most half of all; the service the rest. ``cores``: those this process may use."""
    if cores is None:
        if not hasattr(os, "sched_getaffinity"):
            return Pinning(None, None, "not pinned: this system has no CPU affinity")
        cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return Pinning(None, None, "not pinned: one core; service and generator take time from each other")
    taken = min(threads, len(cores) // 2)
    generator, service = cores[-taken:], cores[:-taken]
    if len(cores) < CORES_MIN:
        return Pinning(None, generator, f"the service's request threads on cores {_ranges(service)}, generator on {_ranges(generator)}; {len(cores)} "
                                        f"cores, {CORES_MIN} are needed so that the service keeps more than one: its other threads run on all",
                       request_threads=service)
    return Pinning(service, generator, f"service on cores {_ranges(service)}, generator on {_ranges(generator)}")


def pin_request_threads(pid: int, cores: list[int]) -> int:
    """Of the threads that the service has now, those that requests go through stay on these cores. Returns how many there are."""
    pinned = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            if (task / "comm").read_text().startswith(REQUEST_THREADS):
                os.sched_setaffinity(int(task.name), cores)
                pinned += 1
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended meanwhile
    return pinned


def _ranges(cores: list[int]) -> str:
    return ",".join(map(str, cores)) if len(cores) < 3 else f"{cores[0]}-{cores[-1]}"
