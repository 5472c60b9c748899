"""process.csv and store.csv: one row per second of the run, from the start of the measured window (negative
in the warm-up)."""

import numpy as np

from kvstudy.errors import FormatError


def read(text: str, file: str) -> dict[str, np.ndarray]:
    """Column name → float64 array, one element per row; an empty cell is NaN. ``file``: the text's name, for
    errors.

    FormatError with the line for anything else, a file that ends within a line included.
    """
    lines = text.splitlines()
    if not lines or "second" not in (names := lines[0].split(",")):
        raise FormatError(file, 1, "the head line must name the columns, second among them")
    if not text.endswith("\n"):
        raise FormatError(file, len(lines), f"cut within a line: {lines[-1][:80]!r}")
    rows = np.empty((len(lines) - 1, len(names)))
    for number, line in enumerate(lines[1:], start=2):
        try:
            cells = [float(cell) if cell else np.nan for cell in line.split(",")]
            if len(cells) != len(names):  # numpy would give one cell to all columns
                raise ValueError
            rows[number - 2] = cells
        except ValueError:
            raise FormatError(file, number, f"not {len(names)} numbers: {line[:80]!r}") from None
    return dict(zip(names, rows.T, strict=True))
