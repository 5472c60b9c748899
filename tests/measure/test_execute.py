"""What is looked at once before the first run, because all runs would fail by it."""

import socket

import pytest

from kvstudy.errors import KvstudyError
from kvstudy.measure.execute import _check_port


def test_a_port_in_use_is_named_before_anything_starts():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(KvstudyError) as refused:
            _check_port(port)
    assert (
        str(refused.value)
        == f"port {port} is in use\n  choose another one, or port: 0, which takes a free one"
    )
    _check_port(port)
    _check_port(0)
