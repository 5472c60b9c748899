"""Did p99 grow with the work as page 11 expected?

held_against(tables)      a ``Held`` for each line of each growth that was measured
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kvstudy.analyse import growth as analysed
from kvstudy.analyse.capacity import HELD, NOT_HELD
from kvstudy.analyse.comparison.outcomes import allowed
from kvstudy.analyse.comparison.words import CANNOT_TELL, SAME, SLOWER
from kvstudy.analyse.growth import Growth
from kvstudy.analyse.tables import Tables

# p99 at most doubles between these amounts of work; from less data than memory to more than memory it grows
# by more than the data.
AT_MOST = 2.0
BETWEEN = {analysed.RECORDS: (1e6, 1e7), analysed.CONNECTIONS: (64.0, 1e4)}


@dataclass(frozen=True)
class Held:
    """``row``: the comparison of p99 (``configuration.comparisons``), None where these amounts of work were
    not both measured; ``limit``: of its ratio; ``beyond``: whether more was expected, or no more."""

    growth: Growth
    line: str
    least: float
    most: float
    limit: float
    beyond: bool
    row: object | None

    @property
    def verdict(self) -> str:
        if self.row is None:
            return CANNOT_TELL
        if self.row.low > self.limit and self._may_be(SLOWER):
            return HELD if self.beyond else NOT_HELD
        if self.row.high <= self.limit and self._may_be(SAME):
            return NOT_HELD if self.beyond else HELD
        return CANNOT_TELL

    def _may_be(self, word: str) -> bool:
        """Of a side that lost a larger share of its runs nothing favourable is said."""
        row = self.row
        return allowed(word, row.invalid_before, row.of_before, row.invalid_after, row.of_after) == word


def held_against(tables: Tables) -> list[Held]:
    return [found for growth in analysed.growths() for found in _lines(tables, growth)]


def _lines(tables: Tables, growth: Growth) -> Iterator[Held]:
    for line, (fewest, most_of_all), runs in analysed.lines(tables, growth):
        least, most = BETWEEN.get(growth, (fewest, most_of_all))
        limit = AT_MOST if growth in BETWEEN else most / least
        is_tested = {least, most} <= set(runs["work"]) and (growth in BETWEEN or least <= 1 < most)
        rows = analysed.between(tables, growth, runs, least, most, (99.0,), cpu=False) if is_tested else ()
        found = [row for row in rows.itertuples() if row.measure == analysed.P99] if len(rows) else [None]
        for row in found:
            yield Held(growth, line, least, most, limit, growth not in BETWEEN, row)
