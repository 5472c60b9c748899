"""A host of ``--hosts`` is measured by one at a time, whoever it is: the lease is a name that only one
process of a machine can hold, and that ends with it. Who measures on his own machine takes none: there
session.py keeps to one at a time in each checkout.

    with Lease("perf@laptop"):            LeaseTaken says who has it
    holder()                              the same, for who only wants to know; None: it is free

The name is a Unix socket without a file (Linux, ``\\0kvstudy.lease``): no lock is left behind by a process
that was killed, users who may not read each other's files see it all the same, and each network namespace has
its own. Who holds it answers with one line: who and since when. KVSTUDY_LEASE is put behind the name: tests
that go on at once each have their own.
"""

import os
import socket
import threading
from contextlib import suppress
from datetime import UTC, datetime

from kvstudy.errors import KvstudyError

ASK_TIMEOUT_S = 1.0


class LeaseTaken(KvstudyError):
    """``message`` names the holder."""


class Lease:
    def __init__(self, who: str):
        self._line = f"{who} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, pid {os.getpid()}"
        self._socket: socket.socket | None = None

    def __enter__(self) -> "Lease":
        holding = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            holding.bind(_name())
        except OSError:
            holding.close()
            raise LeaseTaken(
                f"host is in use: by {holder() or 'a process that does not say who it is'}",
                "wait until that measurement ends: two at a time would measure each other",
            ) from None
        holding.listen()
        self._socket = holding
        threading.Thread(target=self._answer, daemon=True, name="lease").start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.close()

    def _answer(self) -> None:
        with suppress(OSError):
            while True:
                asking, _ = self._socket.accept()
                with suppress(OSError), asking:
                    asking.sendall(self._line.encode())


def holder() -> str | None:
    """Who has the lease of this host. One that is stopped has it without saying who he is."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(ASK_TIMEOUT_S)
        try:
            asking.connect(_name())
        except OSError:
            return None
        with suppress(OSError):
            return asking.recv(1000).decode() or "a process that does not say who it is"
    return "a process that does not say who it is"


def _name() -> str:
    return "\0kvstudy.lease" + os.environ.get("KVSTUDY_LEASE", "")
