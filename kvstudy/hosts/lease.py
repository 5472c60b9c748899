"""A host of ``--hosts`` is measured by one at a time, whoever it is: the lease is a name that only one
process of a machine can hold, and that ends with it. Who measures on his own machine takes none: there
session.py keeps to one at a time in each checkout.

    with Lease("perf@laptop", token, "a"):     LeaseTaken says who has it
    holder()                                   the same, for who only wants to know; None: it is free

``token``: of the measurement. Its own lease is waited for: an agent whose worker was killed first ends all
that it has started, and the next one of the same measurement is there before that. ``name``: of the host; a
measurement that has it under another name takes one machine for two.

The name is a Unix socket without a file (Linux, ``\\0kvstudy.lease``): no lock is left behind by a process
that was killed, users who may not read each other's files see it all the same, and each network namespace has
its own. Who holds it answers with three lines: who and since when, the token, and the host's name.
KVSTUDY_LEASE is put behind the name: tests that go on at once each have their own.
"""

import os
import socket
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime

from kvstudy.errors import KvstudyError

ASK_TIMEOUT_S = 1.0
OWN_TIMEOUT_S = 12.0
STEP_S = 0.1
NAMELESS = "a process that does not say who it is"


class LeaseTaken(KvstudyError):
    """``message`` names the holder."""


class Lease:
    def __init__(self, who: str, token: str = "", name: str = ""):
        self._token, self._name = token, name
        self._line = f"{who} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, pid {os.getpid()}"
        self._socket: socket.socket | None = None

    def __enter__(self) -> "Lease":
        end = time.monotonic() + OWN_TIMEOUT_S
        while (holding := _bound()) is None:
            answer = _answer_of_holder()  # None: it went a moment ago
            who, token, name = answer or (NAMELESS, self._token, self._name)
            is_ours = not answer or token == self._token != ""
            if is_ours and name != self._name:
                raise LeaseTaken(
                    f"host is the same machine as host {name}",
                    "leave one of them out of the file: each of its hosts is a machine of its own",
                )
            if not is_ours or time.monotonic() >= end:
                raise LeaseTaken(
                    f"host is in use: by {who}",
                    "wait until that measurement ends: two at a time would measure each other",
                )
            time.sleep(STEP_S)
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
                    asking.sendall("\n".join((self._line, self._token, self._name)).encode())


def holder() -> str | None:
    """Who has the lease of this host. One that is stopped has it without saying who he is."""
    answer = _answer_of_holder()
    return answer[0] if answer else None


def _bound() -> socket.socket | None:
    """None where another process has the name."""
    holding = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holding.bind(_name())
    except OSError:
        holding.close()
        return None
    return holding


def _answer_of_holder() -> tuple[str, str, str] | None:
    """Who, the token and the name; None: nobody has it, or its process just ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(ASK_TIMEOUT_S)
        try:
            asking.connect(_name())
        except OSError:
            return None
        try:
            who, *more = asking.recv(1000).decode().split("\n")
        except TimeoutError:
            return NAMELESS, "", ""
        except OSError:
            return None
    token, name = (*more, "", "")[:2]
    return (who, token, name) if who else None


def _name() -> str:
    return "\0kvstudy.lease" + os.environ.get("KVSTUDY_LEASE", "")
