"""The answer of each page in a sentence, a few bars and how sure it is: a card of the index, and the head of
its page.

    cards.shown(tables)          every card; the exporter reads the same ones for the heads of the pages

No number is worked out here: each card asks ``analyse.answers`` and puts its claims into words.
"""

import re
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from kvstudy.present import words

MIME = "application/vnd.kvstudy.cards+json"
BARS_MAX = 5
_ROWS_MAX = 4
_ROOMY = 4  # columns: of more each card has smaller text
NOT_MEASURED = "Not measured yet."
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|×|(r/s|µs|ms|s)\b)")  # a number and its unit stay on one line
GOOD, BAD, PLAIN = "good", "bad", "plain"
OPEN = "open"  # of a bar: its claim is not decided; drawn hollow, as the marks of charts are


@dataclass(frozen=True)
class Bar:
    """``value``: how long, at least 0; ``text``: the number beside it; ``hover``: what the label leaves
    out."""

    label: str
    value: float
    text: str
    tone: str = PLAIN
    hover: str = ""


@dataclass(frozen=True)
class Card:
    """``page``: the notebook it leads to; ``of``: what the bars show; ``sure``: badges, the doubts first;
    ``own``: what the reader's own runs say where the answer is the reference's, which decides more."""

    page: str
    question: str
    answer: str = NOT_MEASURED
    of: str = ""
    bars: tuple[Bar, ...] = ()
    sure: tuple[str, ...] = ()
    own: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "answer", _BEFORE_UNIT.sub("\u00a0", self.answer))
        object.__setattr__(self, "sure", tuple(_BEFORE_UNIT.sub("\u00a0", text) for text in self.sure))

    def html(self, is_wide: bool = False) -> str:
        """``is_wide``: in the place of two."""
        badges = "".join(f'<span class="badge">{escape(text)}</span>' for text in self.sure)
        begun = self.own.partition(":")[0]
        own = f'<p class="own" title="{escape(self.own)}">{escape(begun)}.</p>' if self.own else ""
        classes = "card wide" if is_wide else "card"
        return (
            f'<a class="{classes}" href="{self.page}.ipynb"><h2>{escape(self.question)}</h2>'
            f'<p class="answer">{escape(self.answer)}</p>{own}{self.chart()}'
            f'<p class="badges">{badges}</p></a>'
        )

    def chart(self) -> str:
        """The bars, and above them what they are of; nothing without bars."""
        if not self.bars:
            return ""
        longest = max(bar.value for bar in self.bars) or 1.0
        rows = "".join(
            f'<span class="label" title="{escape(bar.hover or bar.label)}">'
            f"{escape(bar.label).replace('=', '=<wbr>')}</span>"
            f'<span class="track"><i class="{bar.tone}" style="width:{100 * bar.value / longest:.1f}%"></i>'
            "</span>"
            f'<span class="number">{escape(bar.text)}</span>'
            for bar in self.bars[:BARS_MAX]
        )
        hollow = " (hollow: cannot tell)" if any(bar.tone == OPEN for bar in self.bars[:BARS_MAX]) else ""
        return f'<p class="of">{escape(self.of + hollow)}</p><div class="bars">{rows}</div>'


class Shown:
    """Cards in a notebook: HTML, and the same as data."""

    def __init__(self, cards: list[Card]) -> None:
        self.cards = cards

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        style = (Path(__file__).parent / "assets" / "cards.css").read_text(encoding="utf-8")
        # Two rows of cards with bars fill a screen, or two such rows and two low ones without.
        with_bars = sum(bool(card.bars) for card in self.cards)
        full = max(1, -(-with_bars // 2), -(-len(self.cards) // _ROWS_MAX))
        many = " many" if full > _ROOMY else ""
        # Narrow cards are high: there is no room for a low row of those without bars below them.
        columns = -(-len(self.cards) // 2) if many else full
        opening = f'<div class="cards{many}" style="--columns:{columns}">'
        # The last one stands in the place that an odd number of cards leaves in two rows.
        last = next((card for card in reversed(self.cards) if not card.bars), self.cards[-1])
        is_odd = many != "" and len(self.cards) % 2 == 1
        inner = "".join(card.html(is_wide=is_odd and card is last) for card in self.cards)
        return {
            "text/html": f"<style>{style}</style>{opening}{inner}</div>",
            "text/plain": "\n".join(f"{card.question} {card.answer}" for card in self.cards),
            MIME: [asdict(card) for card in self.cards],
        }


def read(stored: list[dict]) -> dict[str, Card]:
    """By page, of what MIME holds."""
    return {
        one["page"]: Card(
            **one | {"bars": tuple(Bar(**bar) for bar in one["bars"]), "sure": tuple(one["sure"])}
        )
        for one in stored
    }


def valid(runs) -> str:
    """ "118 of 120 runs valid"; runs: rows of that table."""
    return f"{words.count(int((runs['verdict'] != 'FAIL').sum()))} of {words.counted(len(runs), 'run')} valid"
