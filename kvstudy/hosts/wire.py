"""Frames between who measures and the agent of a host: eight bytes of length, then a pickle.

    asked      (number, (kind, packed payload))        answered      (number, is it well, packed value)

Payloads and values are packed by themselves: who hands frames on, or answers beats between them, must not
import what they are made of, which may take seconds.

Both ends are the same version of kvstudy and of one user: whoever may send a frame may start any process
there anyway. Where frames cross a network they do so inside Dask's own connections (TLS: cluster.py).
"""

import pickle
from typing import BinaryIO

_LENGTH_BYTES = 8


def pack(message: object) -> bytes:
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(frame: bytes) -> object:
    return pickle.loads(frame)


def write_frame(file: BinaryIO, frame: bytes) -> None:
    file.write(len(frame).to_bytes(_LENGTH_BYTES, "big") + frame)
    file.flush()


def read_frame(file: BinaryIO) -> bytes:
    """EOFError at the end, also in the middle of a frame."""
    return _read(file, int.from_bytes(_read(file, _LENGTH_BYTES), "big"))


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data
