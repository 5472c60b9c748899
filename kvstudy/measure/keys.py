"""Keys of a fill, and what is stored under them: experiments/workloads/keyspace.lua once more, in Python.

key_of(42, 16)                 "k000000000000042"
value_of(key_of(42, 16), 24)   b"k000000000000042 abcdefg"
"""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def key_of(number: int, key_bytes: int) -> str:
    return "k" + str(number).zfill(key_bytes - 1)


def value_of(key: str, value_bytes: int) -> bytes:
    length = value_bytes - len(key) - 1
    return f"{key} {(_LETTERS * (length // len(_LETTERS) + 1))[:length]}".encode()
