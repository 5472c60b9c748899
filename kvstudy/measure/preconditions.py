"""What must be true of the host that a service runs on before anything is started there: space for its
stores, and a port that nobody has."""

import errno
import shutil
import socket
from pathlib import Path

from kvstudy.errors import LITTLE_ROOM, InputError, KvstudyError
from kvstudy.subject.protocol import LOOPBACK
from kvstudy.units import format_bytes

LESS_DISK = "free some space, or choose fewer records, a lower rate or a shorter duration"


def check_disk(folder: Path, needed_bytes: int, hint: str = LESS_DISK, what: str = "") -> None:
    """``folder``: on the disk in question; ``what``: needs it."""
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise KvstudyError(
            f"not enough disk{what}: needed={format_bytes(needed_bytes)} free={format_bytes(free)} "
            f"at {folder}",
            hint,
        )


def full_disk(*places: Path) -> Path | None:
    """The first of these folders, there or to be made, whose disk has no room left."""
    for place in places:
        there = next(one for one in (place, *place.parents) if one.exists())
        if shutil.disk_usage(there).free < LITTLE_ROOM:
            return there
    return None


def check_port(port: int, address: str = LOOPBACK, what: str = "") -> None:
    """Once, before the first run, for all of them would fail; what a killed measurement left on it has been
    ended by then. InputError says ``what`` needs it."""
    if port == 0:
        return
    try:
        socket.create_server((address, port)).close()
    except OSError as error:
        why = (
            "is in use"
            if error.errno == errno.EADDRINUSE
            else f"cannot be used: {(error.strerror or str(error)).lower()}"
        )
        raise InputError(
            f"port {port} {why}{what}", "choose another one, or port: 0, which takes a free one"
        ) from error
