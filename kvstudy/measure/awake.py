"""Keeps the processors awake while a run is measured.

A processor with nothing to do sleeps, and has to be woken for the next request. On a machine of one's own
that costs microseconds; in a virtual machine the sleeping processor is given to somebody else, and its host
gives it back when it pleases: what the kernel then counts as stolen. Linux keeps all processors from sleeping
while a process holds DEVICE open with a latency of 0 us (its PM quality of service, which cyclictest uses for
the same reason); it ends when the process ends, however it ends. What they do instead counts as idle.
"""

import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from kvstudy.errors import RunFailed

DEVICE = Path("/dev/cpu_dma_latency")
Wanted = bool | Literal["auto"]
HINT = f"run as root, or: sudo chmod o+w {DEVICE}"


def problem(device: Path = DEVICE) -> str | None:
    """Why the processors cannot be kept awake, or None."""
    if not device.exists():
        return f"there is no {device}"
    return None if os.access(device, os.W_OK) else f"no permission to write {device}"


def note(wanted: Wanted, device: Path = DEVICE) -> str | None:
    """What to tell before measuring begins, or None; RunFailed where it is ``wanted`` and cannot be."""
    why = None if wanted is False else problem(device)
    if why and wanted is True:
        raise RunFailed(f"processors cannot be kept awake: {why}", HINT)
    return f"note: processors sleep between requests: {why}; {HINT}" if why else None


@contextmanager
def kept_awake(wanted: Wanted, device: Path = DEVICE) -> Iterator[dict]:
    """Facts for machine.json: whether no processor sleeps inside, and if not, why. RunFailed where it is
    ``wanted`` and cannot be; "auto" takes what there is."""
    note(wanted, device)
    why = "not asked for" if wanted is False else problem(device)
    if why:
        yield {"processors_awake": False, "processors_asleep_why": why}
        return
    descriptor = os.open(device, os.O_WRONLY)
    try:
        os.write(descriptor, struct.pack("=i", 0))
        yield {"processors_awake": True}
    finally:
        os.close(descriptor)


def main(command: list[str]) -> None:
    """``python -m kvstudy.measure.awake COMMAND…``: COMMAND in this process's place, processors awake until
    it ends; where that is not allowed it says so and runs it all the same."""
    if warning := note("auto"):
        print(warning, file=sys.stderr)
    else:
        descriptor = os.open(DEVICE, os.O_WRONLY)
        os.write(descriptor, struct.pack("=i", 0))
        os.set_inheritable(descriptor, True)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
