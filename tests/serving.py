"""A server of a test's own, in a thread of the test's process."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from threading import Thread


@contextmanager
def serving(server: HTTPServer) -> Iterator[HTTPServer]:
    """It answers until the block is left, and has ended then."""
    # The standard library looks twice a second whether it is to end: longer than most tests take.
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
