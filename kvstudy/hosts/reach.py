"""Which places cannot be reached from this host.

    python -m kvstudy.hosts.reach 10.0.0.12:40001 10.0.0.1:40002     {"10.0.0.12:40001": "no route to host"}

Somebody listens there. All are tried at once: one that a firewall swallows answers nothing.
"""

import json
import socket
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

TIMEOUT_S = 3.0


def unreached(places: Collection[str]) -> dict[str, str]:
    """``places``: as ``address:port``; why, of those that cannot be reached."""
    with ThreadPoolExecutor(max(1, len(places))) as threads:
        return {place: why for place, why in zip(places, threads.map(_why_not, places), strict=True) if why}


def _why_not(place: str) -> str | None:
    address, _, port = place.rpartition(":")
    try:
        socket.create_connection((address, int(port)), TIMEOUT_S).close()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None


if __name__ == "__main__":
    print(json.dumps(unreached(sys.argv[1:])))
