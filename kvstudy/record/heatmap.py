"""async-profiler's heat-map page: the samples of a profile with their times, in blocks of 20 ms.

    found = heatmap.read(text, "cpu.heatmap.html")
    found.start_epoch_s + found.block[i] * BLOCK_S      when sample i was taken
    found.stacks[found.stack[i]]                        its frames joined by ';', root first

A sealed run has no other record of when a stack was seen: its JFR recording is not kept, and collapsed stacks
have no time. The format is what the page's own script decodes (``decodeExecutions`` of async-profiler 4):
numbers to the base 61, samples per block in a canonical Huffman code, stacks as chunks of an LZ78 dictionary.
"""

import json
import re
from dataclasses import dataclass

import numpy as np

from kvstudy.errors import FormatError
from kvstudy.record.stacks import without_address

BLOCK_S = 0.02
_DATA = r'<pre id="{}">(.*?)</pre>'
# What a page cannot hold as it is: NUL, carriage return, &, <, >.
_ESCAPED = {127: 0, 126: 13, 125: 38, 124: 60, 123: 62}
_BITS = 27  # of a Huffman code in each number to the base 123
# How a frame was run, as in collapsed stacks: interpreted, compiled, inlined, native, C++, kernel, by C1.
KINDS = ("_[0]", "_[j]", "_[i]", "", "", "_[k]", "_[1]")


@dataclass(frozen=True)
class TimedSamples:
    """One element of ``block`` and ``stack`` per sample, in the order of time."""

    start_epoch_s: float
    block: np.ndarray
    stack: np.ndarray
    stacks: list[str]


def read(text: str, file: str) -> TimedSamples:
    """FormatError for a page that is not as async-profiler 4 writes it; ``file``: its name."""
    try:
        start, executions, methods, pool = (
            re.search(pattern, text, re.DOTALL)[1]
            for pattern in (
                r"\blet startMs = (\d+);",
                _DATA.format("executionsHeatmap"),
                _DATA.format("methods"),
                r"\blet cpool = (\[.*?\]);\n",
            )
        )
        counts, chunks = _executions(_Numbers(executions))
        return _samples(
            int(start) / 1000,
            counts,
            chunks,
            _frames(_Numbers(methods), json.loads(re.sub(r",\]$", "]", pool))),
        )
    except (TypeError, ValueError, IndexError) as reason:
        raise FormatError(file, None, f"not a heat map of async-profiler 4: {reason}") from None


class _Numbers:
    """Numbers one after the other; the first letter of the text is a mark, and the last."""

    def __init__(self, text: str) -> None:
        self._bytes = [_ESCAPED.get(code, code) for code in map(ord, text)]
        self._at = 1

    def six_bits(self) -> int:
        self._at += 1
        return self._bytes[self._at - 1]

    def eighteen_bits(self) -> int:
        return self.six_bits() | self.six_bits() << 6 | self.six_bits() << 12

    def next(self) -> int:
        value, scale = 0, 1
        while True:
            digit = self.six_bits()
            value += digit % 61 * scale
            scale *= 61
            if digit < 61:
                return value

    def several(self) -> list[int]:
        return [self.next() for _ in range(self.next())]

    def base_123(self) -> int:
        value = 0
        for _ in range(4):
            value = value * 123 + self.six_bits()
        return value

    def from_the_end(self, place: int) -> int:
        """The ``place``-th number of five letters before the last one."""
        at = len(self._bytes) - 1 - 5 * place
        return sum(self._bytes[at + letter] << 6 * letter for letter in range(5))


def _executions(data: _Numbers) -> tuple[list[int], list[list[tuple[int, ...]]]]:
    """Samples in each block; and of each sample its chunks: numbers of frames, root first."""
    _samples, chunks, _storage, blocks, records = map(data.from_the_end, range(1, 6))
    starts = set(data.several())
    counts = _counts(data, blocks)
    synonyms = data.several()
    frames: list[tuple[int, ...]] = [()]
    for _ in range(1, records):
        before, frame = _meant(data.next(), synonyms), data.next()
        frames.append((*frames[before], frame))
    synonyms = data.several()
    samples: list[list[tuple[int, ...]]] = []
    for _ in range(chunks):
        chunk = frames[_meant(data.next(), synonyms)]
        if chunk[0] in starts:
            samples.append([])
        samples[-1].append(chunk)
    if len(samples) != sum(counts):
        raise ValueError(f"samples={len(samples)} in blocks={sum(counts)}")
    return counts, samples


def _meant(number: int, synonyms: list[int]) -> int:
    return (synonyms[number] if number < len(synonyms) else number) - len(synonyms)


def _counts(data: _Numbers, blocks: int) -> list[int]:
    size, longest = data.next(), data.next()
    values, of_length = [], [0] * (longest + 1)
    for _ in range(size):
        values.append(data.next())
        of_length[data.next()] += 1
    if longest == 0:
        return [values[0]] * blocks
    counts: list[int] = []
    code = first = place = 0
    length = 1
    while len(counts) < blocks:
        bits = data.base_123()
        for _ in range(_BITS):
            code |= bits & 1
            bits >>= 1
            if first + of_length[length] > code:
                counts.append(values[place + code - first])
                if len(counts) == blocks:
                    break
                code = first = place = 0
                length = 1
            else:
                first = (first + of_length[length]) << 1
                place += of_length[length]
                code <<= 1
                length += 1
    return counts


def _frames(data: _Numbers, pool: list[str]) -> list[str]:
    """Names of the frames by their numbers, which begin at 1."""
    data.six_bits()
    names = [""]
    for _ in range(data.next()):
        owner, name = pool[data.next()], pool[data.next()]
        data.eighteen_bits(), data.eighteen_bits()  # byte code and line: not in collapsed stacks either
        kind = KINDS[data.six_bits()]
        names.append(without_address(".".join(part for part in (owner, name) if part)) + kind)
    return names


def _samples(
    start_s: float, counts: list[int], chunks: list[list[tuple[int, ...]]], names: list[str]
) -> TimedSamples:
    numbers: dict[str, int] = {}
    stack = [
        numbers.setdefault(";".join(names[frame] for chunk in sample for frame in chunk), len(numbers))
        for sample in chunks
    ]
    return TimedSamples(
        start_s, np.repeat(np.arange(len(counts)), counts), np.array(stack, dtype=np.int64), list(numbers)
    )
