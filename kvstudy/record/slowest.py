"""slowest.csv of loadgen: the slowest measured answers one by one, in the order in which they were due.

    due_us,response_us,service_us,connection
    700000,300412,300412,0

``due_us`` counts from the start of the measured window and is negative when the request was due before it.
"""

import numpy as np

from kvstudy.errors import FormatError

COLUMNS = ("due_us", "response_us", "service_us", "connection")


def read(text: str, file: str) -> dict[str, np.ndarray]:
    """Column name → int64 array, one element per answer. ``file``: the text's name, for errors.

    FormatError with the line for anything else, a file that ends within a line included.
    """
    lines = text.splitlines()
    if not lines or lines[0] != ",".join(COLUMNS):
        raise FormatError(file, 1, f"the head line must be {','.join(COLUMNS)}")
    if not text.endswith("\n"):
        raise FormatError(file, len(lines), f"cut within a line: {lines[-1][:80]!r}")
    cells = [line.split(",") for line in lines[1:]]
    try:
        rows = np.array(cells, dtype=np.int64).reshape(len(cells), len(COLUMNS))
    except (ValueError, OverflowError):
        number, line = next(
            (number, line) for number, line in enumerate(lines[1:], start=2) if not _is_row(line)
        )
        raise FormatError(file, number, f"not {len(COLUMNS)} whole numbers: {line[:80]!r}") from None
    return dict(zip(COLUMNS, rows.T, strict=True))


def _is_row(line: str) -> bool:
    try:
        return np.array(line.split(","), dtype=np.int64).shape == (len(COLUMNS),)
    except (ValueError, OverflowError):
        return False


def merged(texts: list[str], files: list[str], count: int) -> str:
    """Of the slowest answers of several generators of one load the slowest ``count``, as one text."""
    columns = [read(text, file) for text, file in zip(texts, files, strict=True)]
    rows = np.concatenate([np.stack([one[name] for name in COLUMNS], axis=1) for one in columns])
    slowest = rows[np.argsort(-rows[:, 1], kind="stable")[:count]]
    ordered = slowest[np.lexsort((slowest[:, 3], slowest[:, 0]))]
    return "\n".join([",".join(COLUMNS), *(",".join(map(str, row)) for row in ordered.tolist())]) + "\n"
